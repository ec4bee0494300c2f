"""What the machine can do at most, measured: multiply-adds on registers, and reads of memory."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from stepwell.backends.llvm.jit import CompiledModule, Effort
from stepwell.core.target import Target, host

_ACCUMULATORS = 16
_STEPS = 500_000
_RUNS = 60


@dataclass(frozen=True)
class Limits:
    """Single precision GFLOP/s on registers, and GB/s read from a buffer of given bytes."""

    gflops: float
    _reads: _Kernel
    threads: int

    def read(self, size: int) -> float:
        """GB/s at which `size` bytes are read again and again, shared out among the threads."""
        share = max(4096, size // self.threads)
        buffers = [np.zeros(share + 64, np.uint8) for _ in range(self.threads)]
        vectors = share // self._reads.vector_bytes // 8 * 8
        repeats = max(1, (1 << 26) // share)
        starts = [-(-b.ctypes.data // 64) * 64 for b in buffers]
        seconds = _best(lambda i: self._reads.read(starts[i], vectors, repeats), self.threads)
        return self.threads * vectors * self._reads.vector_bytes * repeats / seconds / 1e9


def measure_limits(threads: int) -> Limits:
    """Measure the limits of this machine with so many threads at once."""
    target = host()
    kernel = _Kernel(target)
    seconds = _best(lambda _: kernel.multiply_add(_STEPS), threads)
    lanes = kernel.vector_bytes // 4
    work = threads * _STEPS * _ACCUMULATORS * lanes * 2
    return Limits(work / seconds / 1e9, kernel, threads)


class _Kernel:
    """Two loops in machine code: multiply-adds on registers, and reads of a buffer."""

    def __init__(self, target: Target) -> None:
        self.vector_bytes = target.vector_bits // 8
        self._code = CompiledModule(_text(self.vector_bytes // 4), target, Effort.NONE)
        word, address = ctypes.c_int64, self._code.address
        self.multiply_add = ctypes.CFUNCTYPE(ctypes.c_float, word)(address("multiply_add"))
        self.read = ctypes.CFUNCTYPE(ctypes.c_float, word, word, word)(address("read"))


def _text(lanes: int) -> str:
    """LLVM IR of both loops for vectors of `lanes` floats."""
    kind = f"<{lanes} x float>"
    every = range(_ACCUMULATORS)
    phis = "\n".join(
        f"  %a{i} = phi {kind} [zeroinitializer, %entry], [%b{i}, %loop]" for i in every
    )
    steps = "\n".join(
        f"  %b{i} = call {kind} @llvm.fma.v{lanes}f32({kind} %x, {kind} %x, {kind} %a{i})"
        for i in every
    )
    sums = _sum("b", _ACCUMULATORS, kind)
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
{sums}
}}

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


def _best(work: Callable[[int], object], threads: int) -> float:
    """The least time in which `threads` threads do `work(i)` at once; it releases the GIL."""
    with ThreadPoolExecutor(threads) as pool:
        best = float("inf")
        for _ in range(_RUNS):
            start = time.perf_counter()
            list(pool.map(work, range(threads)))
            best = min(best, time.perf_counter() - start)
    return best
