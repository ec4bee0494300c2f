"""`emulate`: launch a kernel of a PTX module on arrays, without a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...core.errors import InputError, explain
from .counters import Emulation
from .decoding import decode, granules
from .machine import Shape, Threads
from .memory import GlobalMemory, Region
from .text import PtxKernel, PtxVariable, read_ptx

Array = np.ndarray[Any, np.dtype[Any]]

MOST_THREADS = 1024
"""The most threads of a block that devices allow."""
MOST_STEPS = 1_000_000
"""The number of steps after which a kernel counts as endless, by default."""
_TOGETHER = 1 << 14
"""The number of threads, in whole blocks, that are executed at a time."""
_MOST_SHARED = 227 << 10


def emulate(
    ptx: str,
    args: Sequence[Any],
    *,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    kernel: str | None = None,
    shared_bytes: int = 0,
    undefined: Sequence[np.ndarray] = (),
    max_steps: int = MOST_STEPS,
) -> Emulation:
    """Execute a kernel of a PTX module on NumPy arrays.

    The text comes from anywhere: from LLVM, from `nvcc -ptx`, or typed by hand. Arrays are the
    buffers of the device; the kernel reads and writes them in place. Each access to memory is
    checked: that it is inside of its buffer and aligned, that what it reads has been written, and
    that no two threads access the same bytes, one of them writing, without a barrier between.

    Args:
        ptx: the text of the module.
        args: the arguments in the order of the parameters: C-contiguous arrays for pointers,
            numbers for numbers.
        grid: the number of blocks, or up to three along x, y and z.
        block: the number of threads of a block, likewise.
        kernel: its name; not needed if the module has one kernel.
        shared_bytes: the bytes of shared memory beside what the kernel declares
            (``.extern .shared``).
        undefined: those of the arrays whose elements must be written before they are read.
        max_steps: how many instructions a group of blocks may execute, until it counts as endless.

    Returns:
        what was counted: instructions, sectors of memory, bank conflicts and divergence.

    Raises:
        EmulationError: if a thread does what it must not.
        InputError: if the text is not PTX, or the arguments do not fit the kernel.
        UnsupportedError: if the kernel has an instruction that is not emulated.
    """
    found = _kernel(read_ptx(ptx), kernel)
    shape = Shape(_sizes("grid", grid), _sizes("block", block))
    most = min(found.threads or MOST_THREADS, MOST_THREADS)
    if shape.threads > most:
        raise _wrong("too many threads in a block", f"at most {most}", shape.threads)
    if shape.threads * shape.blocks >= 1 << 31:
        raise _wrong("too many threads", "less than 2^31", shape.threads * shape.blocks)
    shared = found.bytes_in("shared") + shared_bytes
    if shared > _MOST_SHARED:
        raise _wrong("too much shared memory in a block", f"at most {_MOST_SHARED}", shared)
    memory = GlobalMemory()
    parameters = _parameters(found, args, memory, granules(found), undefined)
    return launched(found, shape, memory, parameters, shared, max_steps)


def launched(
    kernel: PtxKernel,
    shape: Shape,
    memory: GlobalMemory,
    parameters: Array,
    shared: int,
    max_steps: int = MOST_STEPS,
) -> Emulation:
    """Execute a kernel on memory that has its buffers.

    Args:
        kernel: the kernel.
        shape: its grid and blocks.
        memory: the buffers; variables of the module are added to it.
        parameters: the bytes of its parameters.
        shared: the bytes of shared memory of a block.
        max_steps: see `emulate`.

    Raises:
        EmulationError: if a thread does what it must not.
    """
    granule = granules(kernel)
    kernel = _with_variables(kernel, memory, granule)
    code = decode(kernel)
    together = max(1, _TOGETHER // shape.threads)
    for first in range(0, shape.blocks, together):
        blocks = min(together, shape.blocks - first)
        spaces = _spaces(kernel, blocks, shape, shared, granule)
        threads = Threads(kernel, shape, first, blocks, memory, spaces, parameters)
        threads.run(code, max_steps)
    executed = tuple(step.row for step in code if step.row.warps)
    return Emulation(kernel.name, shape.blocks, shape.threads, shared, executed)


def _wrong(fact: str, expected: object, got: object) -> InputError:
    return InputError(explain("emulate", fact, expected=expected, got=got))


def _kernel(kernels: dict[str, PtxKernel], name: str | None) -> PtxKernel:
    """The kernel of a name, or the only one."""
    if name is None and len(kernels) == 1:
        return next(iter(kernels.values()))
    if name not in kernels:
        fact = "several kernels" if name is None else "no such kernel"
        raise _wrong(fact, "one of " + ", ".join(kernels), name)
    return kernels[name]


def _sizes(what: str, given: int | Sequence[int]) -> tuple[int, int, int]:
    """Sizes along x, y and z."""
    sizes = (given,) if isinstance(given, int | np.integer) else tuple(given)
    right = all(isinstance(n, int | np.integer) and n > 0 for n in sizes)
    if not right or not 1 <= len(sizes) <= 3:
        raise _wrong(f"wrong {what}", "one to three positive numbers", given)
    x, y, z = (*map(int, sizes), 1, 1)[:3]
    return x, y, z


def _parameters(
    kernel: PtxKernel,
    args: Sequence[Any],
    memory: GlobalMemory,
    granule: int,
    undefined: Sequence[np.ndarray],
) -> Array:
    """The bytes of the parameters, in which addresses stand for arrays."""
    if len(args) != len(kernel.parameters):
        raise _wrong("wrong number of arguments", len(kernel.parameters), len(args))
    for array in undefined:
        if not any(array is arg for arg in args):
            raise InputError(explain("emulate", "an undefined array is not an argument"))
    size = max((p.offset + p.size for p in kernel.parameters), default=0)
    raw, known = np.zeros(size, np.uint8), dict[int, int]()
    for n, (parameter, arg) in enumerate(zip(kernel.parameters, args, strict=True)):
        at = slice(parameter.offset, parameter.offset + parameter.size)
        if not isinstance(arg, np.ndarray):
            raw[at] = _number(parameter, arg)
            continue
        if parameter.size != 8:
            fact = f"parameter {parameter.name} is no pointer"
            raise _wrong(fact, f"a number of {parameter.size} bytes", "an array")
        if not arg.flags.c_contiguous:
            raise _wrong(f"argument {n}", "a C-contiguous array", f"strides {arg.strides}")
        if id(arg) not in known:
            _check_apart(arg, n, args)
            data = arg.reshape(-1).view(np.uint8)
            defined = not any(arg is array for array in undefined)
            region = Region(
                f"argument {n}",
                data,
                granule,
                defined=defined,
                writable=arg.flags.writeable,
            )
            known[id(arg)] = memory.add(region)
        raw[at] = np.array([known[id(arg)]], np.uint64).view(np.uint8)
    return raw


def _check_apart(array: np.ndarray, n: int, args: Sequence[Any]) -> None:
    """Check that no earlier argument is another array of the same memory."""
    for m, other in enumerate(args[:n]):
        if isinstance(other, np.ndarray) and np.shares_memory(array, other):
            fact = f"arguments {m} and {n} overlap"
            raise InputError(explain("emulate", fact, expected="one array, or two apart"))


def _number(parameter: PtxVariable, arg: Any) -> Array:
    """The bytes of a number: a float by the width of the parameter, or an integer."""
    if isinstance(arg, np.generic):
        found = np.array([arg])
    elif isinstance(arg, float) and parameter.size in (2, 4, 8):
        found = np.array([arg], f"f{parameter.size}")
    elif isinstance(arg, bool | int) and parameter.size in (1, 2, 4, 8):
        bits = 8 * parameter.size
        if not -(1 << (bits - 1)) <= arg < 1 << bits:
            raise _wrong(f"parameter {parameter.name}", f"an integer of {bits} bits", arg)
        found = np.array([arg % (1 << bits)], f"u{parameter.size}")
    else:
        raise _wrong(f"parameter {parameter.name}", "an array or a number", type(arg).__name__)
    if found.nbytes != parameter.size:
        raise _wrong(f"parameter {parameter.name}", f"{parameter.size} bytes", found.nbytes)
    return found.view(np.uint8)


def _with_variables(kernel: PtxKernel, memory: GlobalMemory, granule: int) -> PtxKernel:
    """A kernel whose module's variables are buffers: their addresses are known from then on."""
    variables = dict(kernel.variables)
    for name, variable in kernel.variables.items():
        if variable.space in ("global", "const"):
            initial = variable.initial or bytes(variable.size)
            data = np.frombuffer(bytearray(initial), np.uint8)
            writable = variable.space == "global"
            address = memory.add(Region(f'"{name}"', data, granule, writable=writable))
            variables[name] = PtxVariable(name, variable.space, variable.size, address)
    return replace(kernel, variables=variables)


def _spaces(
    kernel: PtxKernel, blocks: int, shape: Shape, shared: int, granule: int
) -> dict[str, Region]:
    """Shared and local memory of some blocks, each part a multiple of 16 bytes apart."""
    local = -(-kernel.bytes_in("local") // 16) * 16
    shared = -(-shared // 16) * 16
    parts = {
        "shared": ("the shared memory of the block", shared, blocks),
        "local": ("the local memory of the thread", local, blocks * shape.threads),
    }
    return {
        space: Region(
            name,
            np.zeros(size * count, np.uint8),
            granule,
            size=size,
            races=space == "shared",
            defined=False,
            private=space == "local",
        )
        for space, (name, size, count) in parts.items()
    }
