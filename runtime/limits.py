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

_ACCUMULATORS = 16
_READERS = 8
_STEPS = 500_000
_RUNS = 60
_QUICK_RUNS = 12
_LEAST, _MOST = 1 << 16, 1 << 28
"""The sizes of the smallest and the largest buffer for which reads are measured, in bytes."""


@dataclass(frozen=True)
class Limits:
    """Single-precision GFLOP/s on registers, and GB/s read from a buffer of a given size.

    Measurements are cached in the object.
    """

    gflops: float
    threads: int
    _reads: _Kernel
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


def measure_limits(threads: int, runs: int = _RUNS) -> Limits:
    """Measure the limits of this machine with a number of threads; the best run counts."""
    target = host()
    kernel = _Kernel(target)
    seconds = _best(lambda _: kernel.multiply_add(_STEPS), threads, runs)
    lanes = kernel.vector_bytes // 4
    work = threads * _STEPS * _ACCUMULATORS * lanes * 2
    return Limits(work / seconds / 1e9, threads, kernel, runs)


@functools.cache
def known_limits(threads: int) -> Limits:
    """The limits of this machine, measured quickly and once per process."""
    return measure_limits(threads, _QUICK_RUNS)


class _Kernel:
    """Two loops in machine code: multiply-adds on registers, and reads of a buffer."""

    def __init__(self, target: Target) -> None:
        self.vector_bytes = target.vector_bits // 8
        self._code = CompiledModule(str(_module(self.vector_bytes // 4)), target, Effort.NONE)
        word, address = ctypes.c_int64, self._code.address
        self.multiply_add = ctypes.CFUNCTYPE(ctypes.c_float, word)(address("multiply_add"))
        self.read = ctypes.CFUNCTYPE(ctypes.c_float, word, word, word)(address("read"))


_FLOAT, _INDEX = ir.FloatType(), ir.IntType(64)


def _module(lanes: int) -> ir.Module:
    """LLVM IR of both loops for vectors of `lanes` floats."""
    module, kind = ir.Module(), ir.VectorType(_FLOAT, lanes)
    _add_multiply_add(module, kind)
    _add_read(module, kind)
    return module


def _add_multiply_add(module: ir.Module, kind: ir.VectorType) -> None:
    """`(count) -> float`: `count` steps, each with a multiply-add on every accumulator."""
    function = ir.Function(module, ir.FunctionType(_FLOAT, [_INDEX]), "multiply_add")
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    (count,) = function.args
    fma = ir.Function(module, ir.FunctionType(kind, [kind] * 3), f"llvm.fma.v{kind.count}f32")
    first = builder.sitofp(count, _FLOAT)
    zero = ir.Constant(kind, None)
    single = builder.insert_element(zero, first, ir.Constant(ir.IntType(32), 0))
    every = ir.Constant(ir.VectorType(ir.IntType(32), kind.count), None)
    x = builder.shuffle_vector(single, ir.Constant(kind, ir.Undefined), every)
    with _loop(builder, count, 1, [zero] * _ACCUMULATORS) as (_, sums):
        sums[:] = [builder.call(fma, (x, x, one)) for one in sums]
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
