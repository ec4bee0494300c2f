"""What this machine can do at most, measured: multiply-adds on registers, and reads of memory."""

from __future__ import annotations

import ctypes
import functools
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np

from ..backends.llvm.jit import CompiledModule, Effort
from ..core.target import Target, host

_ACCUMULATORS = 16
_STEPS = 500_000
_RUNS = 60
_QUICK_RUNS = 12
_LEAST, _MOST = 1 << 16, 1 << 28
"""Bytes of the smallest and of the largest buffer for which rooflines measure reads."""


@dataclass(frozen=True)
class Limits:
    """Single precision GFLOP/s on registers, and GB/s read from a buffer of given bytes.

    What was measured once is known for as long as the object lives.
    """

    gflops: float
    threads: int
    _reads: _Kernel
    _runs: int
    known: dict[int, float] = field(default_factory=dict[int, float])
    """GB/s read from buffers, by their bytes, that were asked for."""

    def seconds(self, flops: int, moved: int, among: int) -> tuple[float, float]:
        """The least time that so many operations, and so many bytes `among` those in use, take.

        That is the roofline (Williams et al., 2009), with memory as fast as it is for buffers of
        `among` bytes, in steps of powers of four.
        """
        size = _LEAST
        while size < min(among, _MOST):
            size *= 4
        if size not in self.known:
            self.known[size] = self.read(size)
        return flops / self.gflops / 1e9, moved / self.known[size] / 1e9

    def read(self, size: int) -> float:
        """GB/s at which `size` bytes are read again and again, shared out among the threads."""
        share = max(4096, size // self.threads)
        buffers = [np.zeros(share + 64, np.uint8) for _ in range(self.threads)]
        vectors = share // self._reads.vector_bytes // 8 * 8
        repeats = max(1, (1 << 26) // share)
        starts = [-(-b.ctypes.data // 64) * 64 for b in buffers]
        seconds = _best(
            lambda i: self._reads.read(starts[i], vectors, repeats), self.threads, self._runs
        )
        return self.threads * vectors * self._reads.vector_bytes * repeats / seconds / 1e9


def measure_limits(threads: int, runs: int = _RUNS) -> Limits:
    """Measure the limits of this machine with so many threads at once; the best run counts."""
    target = host()
    kernel = _Kernel(target)
    seconds = _best(lambda _: kernel.multiply_add(_STEPS), threads, runs)
    lanes = kernel.vector_bytes // 4
    work = threads * _STEPS * _ACCUMULATORS * lanes * 2
    return Limits(work / seconds / 1e9, threads, kernel, runs)


@functools.cache
def known_limits(threads: int) -> Limits:
    """The limits of this machine, measured once in a process, and quickly."""
    return measure_limits(threads, _QUICK_RUNS)


class _Kernel:
    """Two loops in machine code: multiply-adds on registers, and reads of a buffer."""

    def __init__(self, target: Target) -> None:
        self.vector_bytes = target.vector_bits // 8
        lanes = self.vector_bytes // 4
        self._code = CompiledModule(_multiply_adds(lanes) + _reads(lanes), target, Effort.NONE)
        word, address = ctypes.c_int64, self._code.address
        self.multiply_add = ctypes.CFUNCTYPE(ctypes.c_float, word)(address("multiply_add"))
        self.read = ctypes.CFUNCTYPE(ctypes.c_float, word, word, word)(address("read"))


def _multiply_adds(lanes: int) -> str:
    """LLVM IR of the loop of multiply-adds on registers, for vectors of `lanes` floats."""
    kind = f"<{lanes} x float>"
    every = range(_ACCUMULATORS)
    phis = "\n".join(
        f"  %a{i} = phi {kind} [zeroinitializer, %entry], [%b{i}, %loop]" for i in every
    )
    steps = "\n".join(
        f"  %b{i} = call {kind} @llvm.fma.v{lanes}f32({kind} %x, {kind} %x, {kind} %a{i})"
        for i in every
    )
    return f"""
declare {kind} @llvm.fma.v{lanes}f32({kind}, {kind}, {kind})

define float @multiply_add(i64 %count) {{
entry:
  %f = sitofp i64 %count to float
  %e = insertelement {kind} zeroinitializer, float %f, i32 0
  %x = shufflevector {kind} %e, {kind} poison, <{lanes} x i32> zeroinitializer
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%j, %loop]
{phis}
{steps}
  %j = add i64 %i, 1
  %more = icmp slt i64 %j, %count
  br i1 %more, label %loop, label %exit
exit:
{_sum("b", _ACCUMULATORS, kind)}
}}
"""


def _reads(lanes: int) -> str:
    """LLVM IR of the loop that reads a buffer, for vectors of `lanes` floats."""
    kind = f"<{lanes} x float>"
    loads = "\n".join(
        f"  %p{i} = getelementptr {kind}, ptr %from, i64 {i}\n"
        f"  %v{i} = load volatile {kind}, ptr %p{i}, align 64\n"
        f"  %d{i} = fadd {kind} %c{i}, %v{i}"
        for i in range(8)
    )
    carried = "\n".join(
        f"  %c{i} = phi {kind} [zeroinitializer, %again], [%d{i}, %inner]" for i in range(8)
    )
    return f"""
define float @read(ptr %buffer, i64 %vectors, i64 %repeats) {{
entry:
  br label %again
again:
  %r = phi i64 [0, %entry], [%s, %done]
  br label %inner
inner:
  %i = phi i64 [0, %again], [%j, %inner]
{carried}
  %from = getelementptr {kind}, ptr %buffer, i64 %i
{loads}
  %j = add i64 %i, 8
  %more = icmp slt i64 %j, %vectors
  br i1 %more, label %inner, label %done
done:
  %s = add i64 %r, 1
  %rest = icmp slt i64 %s, %repeats
  br i1 %rest, label %again, label %exit
exit:
{_sum("d", 8, kind)}
}}
"""


def _sum(name: str, count: int, kind: str) -> str:
    """Add up vectors and return the first lane, so that none of them is dead."""
    lines = [f"  %s{name}0 = fadd {kind} %{name}0, %{name}1"]
    lines += [
        f"  %s{name}{i - 1} = fadd {kind} %s{name}{i - 2}, %{name}{i}" for i in range(2, count)
    ]
    lines += [
        f"  %result = extractelement {kind} %s{name}{count - 2}, i32 0",
        "  ret float %result",
    ]
    return "\n".join(lines)


def _best(work: Callable[[int], object], threads: int, runs: int) -> float:
    """The least time in which `threads` threads do `work(i)` at once; it releases the GIL."""
    with ThreadPoolExecutor(threads) as pool:
        best = float("inf")
        for _ in range(runs):
            start = time.perf_counter()
            list(pool.map(work, range(threads)))
            best = min(best, time.perf_counter() - start)
    return best
