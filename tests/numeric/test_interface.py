"""The interface of a program as plain data, and what a call loads of the compiler."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

import stepwell as sw
from stepwell.runtime.executable import executable
from stepwell.runtime.interface import Interface
from stepwell.runtime.vectorcall import boundary

from ..harness import RNG, floats, results

Calls = tuple[sw.Module, Sequence[tuple[Any, ...]]]


def matrix(rows: int, columns: int) -> csr_array:
    made = csr_array(random_array((rows, columns), density=0.4, rng=RNG, dtype=np.float32))
    made.indices, made.indptr = made.indices.astype(np.int32), made.indptr.astype(np.int32)
    return made


def sizes_that_agree() -> Calls:
    """Symbols, equal sizes, a constant, an arena of a symbolic size, a matrix, indices."""
    b = sw.Builder()
    graph = b.input("graph", sw.SparseSpec(("n", "n"), "f32", "e"))
    x, wide = b.input("x", ("n", 3)), b.input("wide", ("a", 5))
    ids = b.input("ids", ("n",), "i64")
    hidden = b.softmax(b.dense(x, floats(5, 3)), axis=1)
    b.output(b.softmax(b.concat([b.spmm(graph, hidden), wide], axis=0), axis=1))
    b.output(b.gather(x, ids, axis=0))
    wrong, broken = matrix(6, 6), matrix(6, 6)
    wrong.indices[1], broken.indptr[2] = 6, 99
    good = (matrix(6, 6), floats(6, 3), floats(2, 5), np.array([5, 0, -1, 2, 3, 4]))
    return b.module(), [
        good,
        (wrong, *good[1:]),
        (broken, *good[1:]),
        (*good[:3], good[3] + 1),
        (good[0], floats(7, 3), *good[2:]),
        (good[0], good[1].astype(np.float64), *good[2:]),
    ]


def computed_sizes() -> Calls:
    b = sw.Builder()
    rows, columns, _ = b.nonzero(b.input("x", ("n", 4)))
    b.output(rows)
    b.output(columns)
    return b.module(), [(floats(5, 4) * (floats(5, 4) > 0),), (np.zeros((0, 4), np.float32),)]


def halves_of_sizes() -> Calls:
    b = sw.Builder("main")
    x = b.input("x", ("h", "w"), "f32")
    b.output(b.pool(b.pad(x, [1, 1], [1, 1]), "sum", window=[3, 3], strides=[2, 2]))
    return b.module(), [(floats(5, 4),), (floats(2, 7),), (floats(0, 4),)]


def registered_functions() -> Calls:
    @sw.register_function("interface.halves")
    def halves(x: np.ndarray, y: np.ndarray) -> None:
        if len(x) == 3:
            raise ValueError("three")
        y[...] = x / 2

    text = """
    func.func @main(%x: tensor<?x4xf32> {graph.name = "x", graph.dims = ["n", ""]})
        -> tensor<?x4xf32> {
      %y = graph.call_packed "interface.halves"(%x) dims [["n", ""]]
          : (tensor<?x4xf32>) -> tensor<?x4xf32>
      func.return %y : tensor<?x4xf32>
    }
    """
    return sw.from_mlir(text), [(floats(2, 4),), (floats(3, 4),)]


def outcome(exe: sw.Executable, inputs: Sequence[Any]) -> list[Any]:
    """The results of a call, or its error."""
    try:
        found = exe(*inputs)
    except sw.StepwellError as error:
        return [type(error), str(error)]
    return [array.tolist() for array in results(found)]


@pytest.mark.parametrize(
    "made", [sizes_that_agree, computed_sizes, halves_of_sizes, registered_functions]
)
def test_a_program_runs_with_an_interface_that_was_json(made: Callable[[], Calls]) -> None:
    module, calls = made()
    exe = sw.compile(module, threads=1, opt_level=0)
    program = exe._loaded.program
    text = json.dumps(program.interface.to_dict())
    read = Interface.from_dict(json.loads(text))
    assert read == program.interface
    again = executable(replace(program, interface=read), boundary(sw.Executable))
    outcomes = [outcome(exe, inputs) for inputs in calls]
    assert [outcome(again, inputs) for inputs in calls] == outcomes
    assert again.inputs == exe.inputs
    assert again.outputs == exe.outputs


def test_a_call_needs_neither_xdsl_nor_llvm_nor_scipy() -> None:
    code = """
import sys
import stepwell.runtime.executable, stepwell.runtime.interface, stepwell.runtime.functions
loaded = {name.partition(".")[0] for name in sys.modules}
print(*sorted({"xdsl", "llvmlite", "scipy", "safetensors"} & loaded))
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "\n"
