"""Buffers of programs against unmapped pages: constants, frames, arenas, and what kernels allocate.

Slots of the arena are `STRIDE` bytes apart, and not reused. Local buffers of kernels are not on the
stack but on the heap, where each thread has its own.
"""

from __future__ import annotations

import ctypes
import itertools
import math
import mmap
import re
import threading
from collections import OrderedDict
from typing import Any
from weakref import WeakKeyDictionary

import llvmlite.binding as llvm
import numpy as np
from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from stepwell.backends.llvm import jit
from stepwell.conversions.graph_to_rt import arena
from stepwell.conversions.graph_to_rt.arena import ArenaPart
from stepwell.conversions.graph_to_rt.function import BufferFunction
from stepwell.conversions.graph_to_rt.slots import plan_arena
from stepwell.dialects.rt.abi import (
    ALIGNMENT,
    SYSTEM_ALLOCATE,
    SYSTEM_FREE,
    Word,
    rounded_up,
)
from stepwell.runtime import constants, frames, interpreted
from stepwell.runtime.frames import Frame

from .memory import PAGE, Memory, Place, memory, protect

STRIDE = 1 << 22
"""The distance of slots in an arena; its first and last page are guards."""
_MOST = STRIDE - 2 * PAGE
_NO_RESERVE = 0x4000
"""The flag of mmap by that name: an arena with slots is mostly unused."""
_LOCAL = "stepwell_guarded_local"
_ALLOCA = re.compile(
    r"= alloca (?:\[(?P<count>\d+) x )?(?P<type>float|double|half|bfloat|i\d+)\]?"
    r"(?:, i\d+ (?P<times>\d+))?, align (?P<align>\d+)"
)
_BITS = {"float": 32, "double": 64, "half": 16, "bfloat": 16}


def install(place: Place) -> Memory:
    """Guard all buffers that are made from now on, those of NumPy in this thread."""
    found = memory(place)
    found.take_numpy()
    llvm.add_symbol(SYSTEM_ALLOCATE, found.address("guarded_allocate"))
    llvm.add_symbol(SYSTEM_FREE, found.address("guarded_free"))
    _guard_constants(found)
    _guard_frames(found)
    _guard_arenas(found.at_end)
    _guard_locals(found)
    return found


def _guard_constants(found: Memory) -> None:
    def aligned(array: np.ndarray) -> np.ndarray:
        raw = found.bytes(ALIGNMENT, array.nbytes)
        result = raw.view(array.dtype).reshape(array.shape)
        result[...] = array
        return result

    constants.aligned = aligned


def _guard_frames(found: Memory) -> None:
    make, aligned_bytes = Frame.__init__, frames.aligned_bytes

    def guarded_init(self: Frame, size: int, constants: int, functions: int) -> None:
        make(self, size, constants, functions)
        words = (ctypes.c_int64 * size).from_buffer(found.bytes(8, 8 * size))
        words[:] = self.words[:]
        self.words, self.address = words, ctypes.addressof(words)

    def guarded_bytes(size: int) -> np.ndarray:
        try:
            return _arena_memory(size, found.at_end)
        except (OSError, OverflowError):
            return aligned_bytes(size)

    Frame.__init__, frames.aligned_bytes = guarded_init, guarded_bytes
    add_tables = interpreted._InterpretedRun._add_tables

    def unguarded_tables(self: Any, memory: Any, words: np.ndarray) -> np.ndarray:
        """The interpreter checks all accesses, and fills an arena from its begin to its end."""
        if size := int(words[Word.ARENA_BYTES]):
            begin = int(words[Word.ARENA])
            first = begin // PAGE * PAGE
            protect(first, begin + size - first, mmap.PROT_READ | mmap.PROT_WRITE)
        return add_tables(self, memory, words)

    interpreted._InterpretedRun._add_tables = unguarded_tables


def _arena_memory(size: int, at_end: bool) -> np.ndarray:
    """Memory for an arena.

    There are guards around it, and if its slots are `STRIDE` bytes apart, between these too.
    """
    room = -(-size // PAGE) * PAGE
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE
    raw = np.frombuffer(mmap.mmap(-1, room + 2 * PAGE, flags), np.uint8)
    base = raw.ctypes.data + PAGE
    for guard in (base - PAGE, base + room):
        protect(guard, PAGE)
    strides, rest = divmod(size, STRIDE)
    if strides and rest == ALIGNMENT:
        for start in range(base, base + strides * STRIDE, STRIDE):
            protect(start, PAGE)
            protect(start + STRIDE - PAGE, PAGE)
    elif at_end:
        base += room - rounded_up(size)
    return raw[base - raw.ctypes.data :][:size]


def _guard_arenas(at_end: bool) -> None:
    make = arena.offsets_in_arena
    strides: WeakKeyDictionary[BufferFunction, int] = WeakKeyDictionary()
    """How many strides a function has; -1 if one of its slots is too large for that."""
    ends: WeakKeyDictionary[BufferFunction, set[SSAValue | None]] = WeakKeyDictionary()
    """Where the strides of a function end; what a branch keeps may be behind that."""

    def guarded_plan(lifetimes: Any, may_share: Any) -> Any:
        return plan_arena(lifetimes, lambda number: False)

    def guarded_arena(
        function: BufferFunction, part: ArenaPart, owner: Operation
    ) -> tuple[SSAValue, list[SSAValue]]:
        before, slots = strides.get(function, 0), part.plan.slots
        known = ends.setdefault(function, {None})
        large = any(slot.is_static and rounded_up(slot.value) > _MOST for slot in slots)
        if before < 0 or large or function.arena_end not in known:
            strides[function] = -1
            return make(function, part, owner)
        strides[function] = before + len(slots)
        offsets = _with_strides(function, part, owner, before, at_end)
        function.arena_end = function.sizes.index((before + len(slots)) * STRIDE + ALIGNMENT)
        known.add(function.arena_end)
        return arena.arena_up_to(function, function.arena_end), offsets

    arena.offsets_in_arena, arena.plan_arena = guarded_arena, guarded_plan


def _with_strides(
    function: BufferFunction, part: ArenaPart, owner: Operation, before: int, at_end: bool
) -> list[SSAValue]:
    """The offsets of the slots of an arena: see `arena.offsets_in_arena`."""
    index, slots = function.sizes.index, part.plan.slots
    negative = {
        slot
        for buffer, slot in zip(part.buffers, part.plan.slot_of, strict=True)
        if function.may_be_negative(*map(function.shapes.at_most, buffer.shape))
    }
    offsets: list[SSAValue] = []
    for number, size in enumerate(slots):
        start = (before + number) * STRIDE + PAGE
        end = start + _MOST
        if size.is_static:
            offsets.append(index(end - rounded_up(size.value) if at_end else start))
            continue
        total = function.size(size, owner)
        if number in negative:
            total = function.insert(arith.MaxSIOp(total, index(0)))
        rounded = arena.rounded_size(function, total)
        offsets.append(
            function.insert(arith.SubiOp(index(end), rounded)) if at_end else index(start)
        )
    return offsets


class _Locals:
    """The local buffers of kernels: one for each thread and place in the code.

    A function runs once at a time in a thread, so none is used twice.
    """

    MOST = 2000
    """How many are kept: more than are in use."""

    def __init__(self, found: Memory) -> None:
        self._memory, self._lock = found, threading.Lock()
        self._kept: OrderedDict[tuple[int, int], int] = OrderedDict()

    def address(self, place: int, alignment: int, size: int) -> int:
        """The buffer of a place in the code, for the thread that calls."""
        key = threading.get_ident(), place
        with self._lock:
            if key not in self._kept:
                self._kept[key] = self._memory.allocate(alignment, size)
                if len(self._kept) > self.MOST:
                    self._memory.free(self._kept.popitem(last=False)[1])
            self._kept.move_to_end(key)
            return self._kept[key]


def _guard_locals(found: Memory) -> None:
    """Replace buffers on the stack in the LLVM IR of programs."""
    kind = ctypes.CFUNCTYPE(ctypes.c_void_p, *[ctypes.c_int64] * 3)
    callback = kind(_Locals(found).address)
    llvm.add_symbol(_LOCAL, ctypes.cast(callback, ctypes.c_void_p).value)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(callback))
    places, link = itertools.count(), jit.library

    def replacement(alloca: re.Match[str]) -> str:
        bits = _BITS.get(alloca["type"]) or int(alloca["type"][1:])
        count = math.prod(int(alloca[name] or 1) for name in ("count", "times"))
        size = count * max(1, bits // 8)
        arguments = f"i64 {next(places)}, i64 {alloca['align']}, i64 {size}"
        return f"= call ptr @{_LOCAL}({arguments})"

    def guarded_library(module: Any, code: bytes) -> Any:
        text, count = _ALLOCA.subn(replacement, str(module))
        if not count:
            return link(module, code)
        changed = llvm.parse_assembly(f"{text}\ndeclare ptr @{_LOCAL}(i64, i64, i64)\n")
        return link(changed, jit.machine(jit.host(), jit=True).emit_object(changed))

    jit.library = guarded_library
