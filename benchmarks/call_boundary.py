"""The overhead of a call from Python over its kernels, beside the cost of a NumPy call.

    OPENBLAS_NUM_THREADS=1 python benchmarks/run.py call_boundary

A loop in machine code calls the kernels alone, with the addresses that a call has left; a
call also checks its arguments, allocates the result, and releases and takes the GIL.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial
from typing import Any

import cases
import llvmlite.binding as llvm
import numpy as np
from harness import Row, Table
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

Case = tuple[sw.Module, tuple[Any, ...], Callable[[], object]]
"""A module, its inputs, and the same in NumPy or SciPy."""


def add(size: int) -> Case:
    """The sum of two arrays."""
    x, z = np.ones((2, 1, size), np.float32)
    module = built(lambda b, x, z: x + z, ("n", size), ("n", size))
    return module, (x, z), partial(np.add, x, z)


def square(size: int) -> Case:
    """The product of two matrices."""
    return model(partial(cases.matmul, size), "numpy")


def model(make: Callable[[], cases.Model], peer: str) -> Case:
    """A case of the table of models, beside one of its peers on one thread."""
    case = make()
    return case.program, case.inputs, case.others(1)[peer]


CASES: dict[str, Callable[[], Case]] = {
    "x + z, 1 x 16": lambda: add(16),
    "x @ z, 16 x 16": lambda: square(16),
    "MLP 784-128-10, batch 1": lambda: model(partial(cases.fashion_mlp, 1), "numpy"),
    "GCN Cora, sparse features": lambda: model(partial(cases.cora, dense=False), "scipy"),
}


def kernels(exe: sw.Executable, count: int) -> Callable[[], None]:
    """Repeats the kernels of a program's last call `count` times."""
    (address,) = exe._loaded.frames._known
    return partial(_REPEAT, exe._loaded.program.entry, address, count)


def calls(exe: sw.Executable, inputs: tuple[Any, ...]) -> dict[str, Callable[[], object]]:
    """The program called as users call it, with and without `out`."""
    y = exe(*inputs)
    if len(inputs) == 1:
        (x,) = inputs
        return {"call": lambda: exe(x), "out": lambda: exe(x, out=y)}
    x, z = inputs
    return {"call": lambda: exe(x, z), "out": lambda: exe(x, z, out=y)}


def row(name: str, make: Callable[[], Case], *, rounds: int = ROUNDS) -> Row:
    """Time one case: the minimum of all rounds, since the differences are small."""
    module, inputs, peer = make()
    exe = sw.compile(module, threads=1)
    candidates = calls(exe, inputs)
    found = measure({**candidates, "kernels": kernels(exe, REPEAT), "peer": peer}, rounds=rounds)
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
