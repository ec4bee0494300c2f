"""The type, created at run time, of executables that are called without Python code.

`fast_type(Executable)` is a subtype whose instances have two more words: the address of their
vectorcall, the same for all, and that of their plan. The interpreter jumps to the first; the code
there finds the second in the called object.
"""

from __future__ import annotations

import ctypes
import functools
from typing import TYPE_CHECKING, Any

from ..backends.llvm.boundary.layout import Boundary, Layout, mapped
from . import objects

if TYPE_CHECKING:
    from ..backends.llvm.images import Image

_CALL, _MEMBERS, _DOC = 50, 72, 56
"""Slots of types, by the numbers of CPython's stable interface."""
_SIZE_MEMBER, _READ_ONLY = 19, 1
_HAVE_VECTORCALL, _DEFAULT = 1 << 11, 1 << 18


class _Member(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("type", ctypes.c_int),
        ("offset", ctypes.c_ssize_t),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


class _Slot(ctypes.Structure):
    _fields_ = (("slot", ctypes.c_int), ("value", ctypes.c_void_p))


class _Spec(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("basicsize", ctypes.c_int),
        ("itemsize", ctypes.c_int),
        ("flags", ctypes.c_uint),
        ("slots", ctypes.POINTER(_Slot)),
    )


_BOUNDARIES: dict[type, Boundary] = {}


def boundary(base: type) -> Boundary | None:
    """The compiled boundary for subtypes of `base`; None if layouts differ."""
    if base not in _BOUNDARIES and objects.are_known():
        from ..backends.llvm.boundary import code

        _BOUNDARIES[base] = code.install(objects.layout(), _entries(base), objects.functions())
    return _BOUNDARIES.get(base)


def offer(base: type, layout: Layout, image: Image) -> Boundary | None:
    """The boundary for subtypes of `base`, by default from an image for a layout of objects.

    None if there is none yet, and layouts differ.
    """
    if base not in _BOUNDARIES and objects.are_known() and layout == objects.layout():
        _BOUNDARIES[base] = mapped(image, _entries(base), objects.functions())
    return _BOUNDARIES.get(base)


def _entries(base: type) -> list[int]:
    """The table of the boundary for subtypes of `base`, whose last word is the plan."""
    return objects.entries(base.__basicsize__ + 8)


@functools.cache
def fast_type(base: type) -> type:
    """A subtype of `base` whose instances are called by the compiled boundary."""
    members = (_Member * 2)(
        _Member(b"__vectorcalloffset__", _SIZE_MEMBER, base.__basicsize__, _READ_ONLY, None)
    )
    slots = (_Slot * 4)(
        _Slot(_CALL, ctypes.cast(ctypes.pythonapi.PyVectorcall_Call, ctypes.c_void_p)),
        _Slot(_MEMBERS, ctypes.cast(members, ctypes.c_void_p)),
        _Slot(_DOC, ctypes.cast(ctypes.c_char_p((base.__doc__ or "").encode()), ctypes.c_void_p)),
    )
    name = f"{base.__module__}.{base.__name__}".encode()
    flags = _DEFAULT | _HAVE_VECTORCALL
    spec = _Spec(name, base.__basicsize__ + 16, 0, flags, slots)
    make = ctypes.pythonapi.PyType_FromSpecWithBases
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object]
    _KEPT.append((name, members))
    return make(ctypes.addressof(spec), (base,))


_KEPT: list[Any] = []
"""Keeps alive the objects to which types of the process point."""


def attach(executable: Any, plan: int, call: int) -> None:
    """Set the vectorcall and the plan of an instance of a fast type, which must keep them alive."""
    words = (ctypes.c_int64 * 2).from_address(id(executable) + type(executable).__basicsize__ - 16)
    words[:] = call, plan
