"""The overhead of a call from Python over its kernels, beside the cost of a NumPy call.

    OPENBLAS_NUM_THREADS=1 python benchmarks/run.py call_boundary

A loop in machine code calls the kernels alone, with the addresses that a call has left; a
call also checks its arguments, allocates the result, and releases and takes the GIL.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import cases
import llvmlite.binding as llvm
import numpy as np
from harness import Case, Make, Row, Table
from models import built

import stepwell as sw
from stepwell.backends.llvm.machine import machine
from stepwell.core.target import host
from stepwell.tools.timing import ROUNDS, measure

_LOOP = """
define void @loop(ptr %program, ptr %frame, i64 %count) {
entry:
  br label %body
body:
  %n = phi i64 [ 0, %entry ], [ %n1, %body ]
  %status = call i32 %program(ptr %frame)
  %n1 = add i64 %n, 1
  %more = icmp slt i64 %n1, %count
  br i1 %more, label %body, label %end
end:
  ret void
}
"""
_ENGINE = llvm.create_mcjit_compiler(llvm.parse_assembly(_LOOP), machine(host(), jit=True))
_ENGINE.finalize_object()
_REPEAT = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(
    _ENGINE.get_function_address("loop")
)

REPEAT = 100
"""How many times the kernels run for each call from Python."""


def add(size: int) -> Case:
    x, z = np.ones((2, 1, size), np.float32)
    module = built(lambda b, x, z: x + z, ("n", size), ("n", size))
    return Case([x, z], module=module, others=lambda threads: {"numpy": partial(np.add, x, z)})


CASES: dict[str, tuple[Make, str]] = {
    "x + z, 1 x 16": (partial(add, 16), "numpy"),
    "x @ z, 16 x 16": (partial(cases.matmul, 16), "numpy"),
    "MLP 784-128-10, batch 1": (partial(cases.fashion_mlp, 1), "numpy"),
    "GCN Cora, sparse features": (partial(cases.cora, dense=False), "scipy"),
}
"""Cases, and the peer beside each."""


def kernels(exe: sw.Executable, count: int) -> Callable[[], None]:
    """Repeats the kernels of a program's last call `count` times."""
    (address,) = exe._loaded.frames._known
    return partial(_REPEAT, exe._loaded.program.entry, address, count)


def calls(exe: sw.Executable, inputs: Sequence[Any]) -> dict[str, Callable[[], object]]:
    """The program called as users call it, with and without `out`."""
    y = exe(*inputs)
    if len(inputs) == 1:
        (x,) = inputs
        return {"call": lambda: exe(x), "out": lambda: exe(x, out=y)}
    x, z = inputs
    return {"call": lambda: exe(x, z), "out": lambda: exe(x, z, out=y)}


def row(name: str, made: tuple[Make, str], *, rounds: int = ROUNDS) -> Row:
    """Time one case: the minimum of all rounds, since the differences are small."""
    make, peer = made
    case = make()
    exe = sw.compile(case.program, threads=1)
    candidates = calls(exe, case.arrays)
    other = case.others(1)[peer]
    assert callable(other)
    candidates |= {"kernels": kernels(exe, REPEAT), "peer": other}
    found = measure(candidates, rounds=rounds)
    least = {kind: timing.minimum * 1e9 for kind, timing in found.items()}
    alone = least["kernels"] / REPEAT
    times = {
        "kernels": alone,
        "call": least["call"],
        "above": least["call"] - alone,
        "with out": least["out"],
        "above with out": least["out"] - alone,
        "NumPy/SciPy": least["peer"],
    }
    return {title: f"{value:.0f} ns" for title, value in times.items()}


TABLES = [Table("case", CASES, row)]
