"""What is computed once, what is erased, and what must be neither."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import stepwell as sw
from stepwell.core.ir.provenance import names

X = np.array([1.5, -0.0, np.nan, -np.inf], np.float32)
Y = np.array([-2.0, 0.0, 1.0, 3.0], np.float32)


def test_the_other_order_is_the_same(assert_same: Callable, transformed: Callable) -> None:
    """For signed zeros, NaN and infinities too."""
    b = sw.Builder()
    x, y = b.input("x", (4,)), b.input("y", (4,))
    for name in ("add", "mul", "max", "min"):
        operator = getattr(b, name)
        b.output(b.sub(operator(x, y, name=f"first_{name}"), operator(y, x, name=f"other_{name}")))
        b.output(operator(y, x))
    module = b.module()
    assert_same(module, "graph-cse", X, Y)
    after, ctx = transformed(module, "graph-cse")
    ops = {op.name: names(op) for op in after.main.body.block.ops if op.name != "graph.sub"}
    assert len([op for op in after.main.body.block.ops if op.name == "graph.add"]) == 1
    assert {"first_max", "other_max"} <= set(ops["graph.max"])
    told = (
        'nodes "first_add", "other_add": compute graph.add once, because it computes the same value'
    )
    assert told in map(str, ctx.decisions)


def test_every_call_of_a_registered_function_is_made() -> None:
    """A counter: two calls with the same operand, and one whose result is not used."""
    calls: list[int] = []

    @sw.register_function("test_cse_dce.count")
    def count(x: np.ndarray, y: np.ndarray) -> None:
        calls.append(len(calls))
        y[...] = x + len(calls)

    module = sw.from_mlir("""
        func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
          %a = graph.call_packed "test_cse_dce.count"(%x) : (tensor<4xf32>) -> tensor<4xf32>
          %b = graph.call_packed "test_cse_dce.count"(%x) : (tensor<4xf32>) -> tensor<4xf32>
          %c = graph.call_packed "test_cse_dce.count"(%x) : (tensor<4xf32>) -> tensor<4xf32>
          func.return %a, %c : tensor<4xf32>, tensor<4xf32>
        }""")
    exe = sw.compile(module, threads=1)
    first, third = exe(Y)
    np.testing.assert_array_equal(first, Y + 1)
    np.testing.assert_array_equal(third, Y + 3)
    assert len(calls) == 3


def test_erased_operations_are_told(transformed: Callable) -> None:
    b = sw.Builder()
    x = b.input("x", (4,))
    b.exp(b.neg(x, name="lost"), name="useless")
    b.output(b.relu(x))
    after, ctx = transformed(b.module(), "graph-dce")
    assert [op.name for op in after.main.body.block.ops] == ["graph.relu", "func.return"]
    told = sorted(str(decision) for decision in ctx.decisions)
    assert told == [
        'node "lost": erase graph.neg, because its results are not used',
        'node "useless": erase graph.exp, because its results are not used',
    ]
