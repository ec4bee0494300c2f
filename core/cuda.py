"""NVIDIA's driver: the functions of libcuda that are called, and its errors as ours.

Prototypes are those of `cuda.h`; the numbers of attributes and errors are part of its interface.
"""

from __future__ import annotations

import ctypes
import functools
from ctypes import POINTER, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p
from typing import Any

from .errors import DeviceError, TargetError, explain

LIBRARY = "libcuda.so.1"

_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "cuInit": (c_uint,),
    "cuGetErrorName": (c_int, POINTER(c_char_p)),
    "cuGetErrorString": (c_int, POINTER(c_char_p)),
    "cuDeviceGetCount": (POINTER(c_int),),
    "cuDeviceGet": (POINTER(c_int), c_int),
    "cuDeviceGetName": (c_char_p, c_int, c_int),
    "cuDeviceGetAttribute": (POINTER(c_int), c_int, c_int),
    "cuDevicePrimaryCtxRetain": (POINTER(c_void_p), c_int),
    "cuCtxPushCurrent_v2": (c_void_p,),
    "cuCtxPopCurrent_v2": (POINTER(c_void_p),),
    "cuCtxSynchronize": (),
    "cuModuleLoadDataEx": (POINTER(c_void_p), c_char_p, c_uint, POINTER(c_int), POINTER(c_void_p)),
    "cuModuleUnload": (c_void_p,),
    "cuModuleGetFunction": (POINTER(c_void_p), c_void_p, c_char_p),
    "cuMemAlloc_v2": (POINTER(c_uint64), c_size_t),
    "cuMemFree_v2": (c_uint64,),
    "cuMemcpyHtoD_v2": (c_uint64, c_void_p, c_size_t),
    "cuMemcpyDtoH_v2": (c_void_p, c_uint64, c_size_t),
    "cuLaunchKernel": (
        *(c_void_p, *(c_uint,) * 6, c_uint, c_void_p),
        *(POINTER(c_void_p), POINTER(c_void_p)),
    ),
}
"""The functions with the types of their arguments; each returns a number, 0 if nothing failed."""

_MAX_GRID_DIM_X, _CAPABILITY_MAJOR, _CAPABILITY_MINOR = 5, 75, 76
_OUT_OF_MEMORY = 2
_LOST = {214, 220, 700, 702, 709, *range(714, 720), 710}
"""The errors after which the driver refuses all that a process asks of the device."""


class Driver:
    """The driver, and the first of the devices that it lets this process see.

    Attributes:
        name: the name of the device, such as "NVIDIA H200".
        capability: its number, 90 for "sm_90".
        most_blocks: the most blocks of a launch.

    Raises:
        TargetError: if there is no driver, or it has no device.
    """

    def __init__(self) -> None:
        try:
            library = ctypes.CDLL(LIBRARY)
            for function, types in _FUNCTIONS.items():
                # An item of the library would be another object each time.
                found = getattr(library, function)
                found.argtypes = types
                setattr(self, f"_{function}", found)
        except (OSError, AttributeError) as error:
            fact = f"NVIDIA's driver is not installed ({error})"
            raise _absent(fact) from error
        device, count, name = c_int(), c_int(), ctypes.create_string_buffer(256)
        try:
            self.call("cuInit", 0)
            self.call("cuDeviceGetCount", ctypes.byref(count))
            self.call("cuDeviceGet", ctypes.byref(device), 0)
            self.call("cuDeviceGetName", name, len(name), device)
        except DeviceError as error:
            raise _absent(str(error)) from error
        self._device = device.value
        self.name = name.value.decode(errors="replace")
        major, minor = map(self._attribute, (_CAPABILITY_MAJOR, _CAPABILITY_MINOR))
        self.capability = 10 * major + minor
        self.most_blocks = self._attribute(_MAX_GRID_DIM_X)

    def check(self, processor: str) -> None:
        """Check that the device takes code for a processor, such as "sm_90".

        Raises:
            TargetError: if it is older.
        """
        if self.capability < capability_of(processor):
            fact, got = "the device is too old", f"sm_{self.capability} ({self.name})"
            expected = f"{processor} or later"
            raise TargetError(explain("target", fact, expected=expected, got=got))

    def call(self, function: str, *arguments: Any, what: str = "driver") -> None:
        """Call a function of the driver.

        Raises:
            DeviceError: if it fails; `what` is what it is called for.
        """
        code = getattr(self, f"_{function}")(*arguments)
        if code == 0:
            return
        says = self._said("cuGetErrorString", code) or "an error that the driver does not know"
        fact = f"{says} ({self._said('cuGetErrorName', code) or code} of {function})"
        got = self.name if code == _OUT_OF_MEMORY else None
        hint = "this process cannot use the device any more" if code in _LOST else None
        raise DeviceError(explain(what, fact, got=got, hint=hint))

    @functools.cached_property
    def context(self) -> c_void_p:
        """The primary context of the device, which other libraries of the process use too."""
        context = c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), self._device)
        return context

    def _attribute(self, number: int) -> int:
        found = c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(found), number, self._device)
        return found.value

    def _said(self, function: str, code: int) -> str | None:
        text = c_char_p()
        failed = getattr(self, f"_{function}")(code, ctypes.byref(text))
        return None if failed or text.value is None else text.value.decode(errors="replace")


def capability_of(processor: str) -> int:
    """The number of a processor: 90 for "sm_90"."""
    return int(processor.removeprefix("sm_"))


@functools.cache
def driver() -> Driver:
    """The driver of this process.

    Raises:
        TargetError: if there is none, or it has no device.
    """
    return Driver()


def _absent(fact: str) -> TargetError:
    hint = '"cuda:sm_90,emulated" runs programs on an emulator'
    return TargetError(explain("target", fact, expected="an NVIDIA GPU", hint=hint))
