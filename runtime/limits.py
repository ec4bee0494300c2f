"""Measured limits of this machine: multiply-adds on registers, and reads of memory."""

from __future__ import annotations

import ctypes
import functools
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from llvmlite import ir

from ..backends.llvm.jit import CompiledModule, Effort
from ..core.target import Target, host

_MOST_CHAINS = 16
"""How many multiply-adds run at a time, at most, which is enough for any latency."""
_READERS = 8
_STEPS = 500_000
_RUNS = 60
_QUICK_RUNS = 12
LINE = 64
"""The bytes of a cache line."""
_GATHERED = 1 << 18
_AHEAD = 8
"""How many rows ahead a gather prefetches."""
_LEAST, _MOST = 1 << 16, 1 << 28
"""The sizes of the smallest and the largest buffer for which reads are measured, in bytes."""


@dataclass
class MachineLimits:
    """Single-precision GFLOP/s on registers, and GB/s read from a buffer of a given size.

    Measurements are cached in the object; `raise_by_measuring` repeats them.
    """

    gflops: float
    threads: int
    _reads: _LimitLoops
    _runs: int
    known: dict[int, float] = field(default_factory=dict[int, float])
    """Measured GB/s, by the size of the buffer in bytes."""

    def seconds(self, flops: int, moved: int, among: int) -> tuple[float, float]:
        """The least time for a number of operations, and for a number of moved bytes.

        This is the roofline (Williams et al., 2009), with the bandwidth of a buffer of `among`
        bytes, those in use, rounded up to a power of four times the smallest buffer.
        """
        size = _LEAST
        while size < min(among, _MOST):
            size *= 4
        if size not in self.known:
            self.known[size] = self.read(size)
        return flops / self.gflops / 1e9, moved / self.known[size] / 1e9

    def read(self, size: int) -> float:
        """The GB/s of repeated reads of `size` bytes, divided among the threads."""
        share = max(4096, size // self.threads)
        # Pages that were never written would all be one page of zeros, and so in a cache.
        buffers = [np.ones(share + 64, np.uint8) for _ in range(self.threads)]
        vectors = share // self._reads.vector_bytes // 8 * 8
        repeats = max(1, (1 << 26) // share)
        starts = [-(-b.ctypes.data // 64) * 64 for b in buffers]
        seconds = _best(
            lambda i: self._reads.read(starts[i], vectors, repeats), self.threads, self._runs
        )
        return self.threads * vectors * self._reads.vector_bytes * repeats / seconds / 1e9

    def raise_by_measuring(self) -> None:
        """Measure what is known once more; the best of all measurements counts.

        Whatever else runs on the machine can only make a limit look lower than it is.
        """
        self.gflops = max(self.gflops, self._reads.gflops(self.threads, self._runs))
        for size, rate in list(self.known.items()):
            self.known[size] = max(rate, self.read(size))

    def gather(self, rows: int, row_bytes: int) -> float:
        """The GB/s of reading random rows of a table of `rows` rows, on all threads together.

        Rows begin at cache lines, and of the last line of one only what belongs to it counts.
        """
        lines, share = -(-row_bytes // LINE), _GATHERED // self.threads
        table = np.ones((rows + 1) * lines * LINE, np.uint8)
        start = -(-table.ctypes.data // LINE) * LINE
        rng = np.random.default_rng(0)
        # Behind the last one, places are only prefetched.
        places = [rng.integers(0, rows, share + _AHEAD, np.int32) for _ in range(self.threads)]
        seconds = _best(
            lambda i: self._reads.gather(start, places[i].ctypes.data, share, lines),
            self.threads,
            self._runs,
        )
        return self.threads * share * row_bytes / seconds / 1e9


def measure_limits(threads: int, runs: int = _RUNS) -> MachineLimits:
    """Measure the limits of this machine with a number of threads; the best run counts."""
    loops = _LimitLoops(host())
    return MachineLimits(loops.gflops(threads, runs), threads, loops, runs)


@functools.cache
def known_limits(threads: int) -> MachineLimits:
    """The limits of this machine, measured quickly and once per process."""
    return measure_limits(threads, _QUICK_RUNS)


class _LimitLoops:
    """Loops in machine code: multiply-adds on registers, reads of a buffer, and of rows of it."""

    def __init__(self, target: Target) -> None:
        self.vector_bytes = target.vector_bits // 8
        self._chains = _chains(target)
        self._code = CompiledModule(str(_module(target)), target, Effort.NONE)
        word, address = ctypes.c_int64, self._code.address
        self.multiply_add = ctypes.CFUNCTYPE(ctypes.c_float, word)(address("multiply_add"))
        self.read = ctypes.CFUNCTYPE(ctypes.c_float, word, word, word)(address("read"))
        self.gather = ctypes.CFUNCTYPE(word, word, word, word, word)(address("gather"))

    def gflops(self, threads: int, runs: int) -> float:
        """The GFLOP/s of multiply-adds on registers, on all threads together."""
        seconds = _best(lambda _: self.multiply_add(_STEPS), threads, runs)
        return threads * _STEPS * self._chains * (self.vector_bytes // 4) * 2 / seconds / 1e9


_FLOAT, _INDEX = ir.FloatType(), ir.IntType(64)
_LINE_TYPE = ir.ArrayType(ir.IntType(8), LINE)


def _chains(target: Target) -> int:
    """How many multiply-adds run at a time: one register holds their factor."""
    return min(_MOST_CHAINS, target.vector_registers - 1)


def _module(target: Target) -> ir.Module:
    """LLVM IR of the loops for whole vectors of floats."""
    lanes = target.vector_bits // 32
    module, kind = ir.Module(), ir.VectorType(_FLOAT, lanes)
    _add_multiply_add(module, kind, _chains(target))
    _add_read(module, kind)
    _add_gather(module, ir.VectorType(_INDEX, lanes // 2))
    return module


def _add_multiply_add(module: ir.Module, kind: ir.VectorType, chains: int) -> None:
    """`(count) -> float`: `count` steps, each with a multiply-add on every one of the chains.

    Two instructions are a multiply-add where the processor has no fused one; in place, they take
    no further register, and no product is the same in all steps.
    """
    function = ir.Function(module, ir.FunctionType(_FLOAT, [_INDEX]), "multiply_add")
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    (count,) = function.args
    name = f"llvm.fmuladd.v{kind.count}f32"
    multiply_add = ir.Function(module, ir.FunctionType(kind, [kind] * 3), name)
    first = builder.sitofp(count, _FLOAT)
    zero = ir.Constant(kind, None)
    single = builder.insert_element(zero, first, ir.Constant(ir.IntType(32), 0))
    every = ir.Constant(ir.VectorType(ir.IntType(32), kind.count), None)
    x = builder.shuffle_vector(single, ir.Constant(kind, ir.Undefined), every)
    with _loop(builder, count, 1, [zero] * chains) as (_, sums):
        sums[:] = [builder.call(multiply_add, (one, x, x)) for one in sums]
    _return_sum(builder, sums)


def _add_read(module: ir.Module, kind: ir.VectorType) -> None:
    """`(buffer, vectors, repeats) -> float`: reads all vectors of a buffer `repeats` times."""
    types = [ir.PointerType(), _INDEX, _INDEX]
    function = ir.Function(module, ir.FunctionType(_FLOAT, types), "read")
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    buffer, vectors, repeats = function.args
    zero = ir.Constant(kind, None)
    repeating = _loop(builder, repeats, 1, [])
    reading = _loop(builder, vectors, _READERS, [zero] * _READERS)
    with repeating, reading as (place, sums):
        start = builder.gep(buffer, [place], source_etype=kind)
        for number, one in enumerate(sums):
            at = builder.gep(start, [ir.Constant(_INDEX, number)], source_etype=kind)
            sums[number] = builder.fadd(one, builder.load(at, align=64, typ=kind))
    _return_sum(builder, sums)


def _add_gather(module: ir.Module, kind: ir.VectorType) -> None:
    """`(table, rows, count, lines) -> word`: reads all `lines` of `count` rows of a table.

    Vectors are combined bit by bit, which waits for nothing but the reads.
    """
    types = [ir.PointerType(), ir.PointerType(), _INDEX, _INDEX]
    function = ir.Function(module, ir.FunctionType(_INDEX, types), "gather")
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    table, rows, count, lines = function.args
    each, word = LINE * 8 // (kind.count * 64), ir.IntType(32)
    signature = ir.FunctionType(ir.VoidType(), [ir.PointerType(), word, word, word])
    prefetch = ir.Function(module, signature, "llvm.prefetch.p0")
    with _loop(builder, count, 1, [ir.Constant(kind, None)] * each) as (place, before):
        start, later = (
            _row(builder, table, rows, lines, builder.add(place, _INDEX(ahead)))
            for ahead in (0, _AHEAD)
        )
        with _loop(builder, lines, 1, before) as (number, found):
            at = builder.gep(later, [number], source_etype=_LINE_TYPE)
            builder.call(prefetch, (at, word(0), word(3), word(1)))
            first = builder.mul(number, _INDEX(each))
            for part, one in enumerate(found):
                at = builder.gep(start, [builder.add(first, _INDEX(part))], source_etype=kind)
                found[part] = builder.xor(one, builder.load(at, align=LINE // each, typ=kind))
        before[:] = found
    total = functools.reduce(builder.xor, before)
    builder.ret(builder.extract_element(total, ir.Constant(ir.IntType(32), 0)))


def _row(builder: ir.IRBuilder, table: Any, rows: Any, lines: Any, place: Any) -> Any:
    """The address of the row of a table whose number is at a place."""
    narrow = ir.IntType(32)
    row = builder.load(builder.gep(rows, [place], source_etype=narrow), typ=narrow)
    line = builder.mul(builder.sext(row, _INDEX), lines)
    return builder.gep(table, [line], source_etype=_LINE_TYPE)


@contextmanager
def _loop(
    builder: ir.IRBuilder, count: Any, step: int, starts: Sequence[Any]
) -> Iterator[tuple[Any, list[Any]]]:
    """Build a loop that runs at least once; yields its index and a list of its carried values.

    The body replaces the values in the list; after the loop, the list holds the final values.
    """
    before, body = builder.block, builder.append_basic_block()
    builder.branch(body)
    builder.position_at_end(body)
    index = builder.phi(_INDEX)
    phis = [builder.phi(start.type) for start in starts]
    values: list[Any] = list(phis)
    yield index, values
    following = builder.add(index, ir.Constant(_INDEX, step))
    latch, after = builder.block, builder.append_basic_block()
    builder.cbranch(builder.icmp_signed("<", following, count), body, after)
    ends = zip((index, *phis), (ir.Constant(_INDEX, 0), *starts), (following, *values), strict=True)
    for phi, start, end in ends:
        phi.add_incoming(start, before)
        phi.add_incoming(end, latch)
    builder.position_at_end(after)


def _return_sum(builder: ir.IRBuilder, vectors: Sequence[Any]) -> None:
    """Return the first lane of the sum of vectors, which keeps all of them live."""
    total = functools.reduce(builder.fadd, vectors)
    builder.ret(builder.extract_element(total, ir.Constant(ir.IntType(32), 0)))


def _best(work: Callable[[int], object], threads: int, runs: int) -> float:
    """The least time in which `threads` threads run `work(i)`, which releases the GIL."""
    with ThreadPoolExecutor(threads) as pool:
        best = float("inf")
        for _ in range(runs):
            start = time.perf_counter()
            list(pool.map(work, range(threads)))
            best = min(best, time.perf_counter() - start)
    return best
