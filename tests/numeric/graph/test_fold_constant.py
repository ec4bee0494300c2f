"""What folding says of a program that is constant, and how far it lets constants grow."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import stepwell as sw

WHOLE = "@main: the whole program is constant, because no result depends on an argument"


def told(ctx: object) -> list[str]:
    decisions = getattr(ctx, "decisions", [])
    return [str(d) for d in decisions if "whole program" in d.what]


def test_a_constant_program_is_named(assert_same: Callable, transformed: Callable) -> None:
    b = sw.Builder()
    x = b.input("x", (3,))
    c = b.constant(np.array([1, 4, 9], np.float32))
    b.output(b.sqrt(c) + 1)
    b.output(b.neg(c))
    b.relu(x)
    module = b.module()
    passes = "graph-fold-constant,graph-dce,graph-fold-constant"
    after = assert_same(module, passes, np.zeros(3, np.float32))
    assert {op.name for op in after.main.body.block.ops} == {"graph.constant", "func.return"}
    _, ctx = transformed(module, passes)
    assert told(ctx) == [WHOLE]
    exe = sw.compile(module, threads=1)
    root, negative = exe(np.zeros(3, np.float32))
    np.testing.assert_array_equal(root, [2, 3, 4])
    np.testing.assert_array_equal(negative, [-1, -4, -9])
    assert "the whole program is constant" in str(exe.explain())


def test_a_constant_program_with_a_product(transformed: Callable) -> None:
    b = sw.Builder()
    w = b.constant(np.ones((3, 3), np.float32))
    b.output(b.exp(b.dense(w, w)))
    _, ctx = transformed(b.module(), "graph-fold-constant")
    rest = "graph.dense, graph.exp would grow it or are products, and run on each call"
    assert told(ctx) == [f"{WHOLE}; {rest}"]


@pytest.mark.parametrize("result", ["%x", "%n", "%p"])
def test_a_program_that_depends_on_something(result: str, transformed: Callable) -> None:
    """On an argument, on an operator of one, or on a function that may answer anything."""
    module = sw.from_mlir(f"""
        func.func @main(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {{
          %c = graph.constant dense<[1.0, 2.0]> : tensor<2xf32>
          %n = graph.add %x, %c : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
          %p = graph.call_packed "env.f"(%c) : (tensor<2xf32>) -> tensor<2xf32>
          func.return %c, {result} : tensor<2xf32>, tensor<2xf32>
        }}""")
    _, ctx = transformed(module, "graph-fold-constant")
    assert told(ctx) == []


def test_a_broadcast_constant_is_not_written_out(assert_same: Callable) -> None:
    """A sum of a column and a row, a broadcast, and one of a single number."""
    b = sw.Builder()
    x = b.input("x", (200, 300))
    column = b.constant(np.arange(200, dtype=np.float32).reshape(200, 1))
    row = b.constant(np.arange(300, dtype=np.float32))
    b.output(x + (column + row))
    b.output(x * b.broadcast_to(row, [200, 300]))
    b.output(x * b.broadcast_to(b.constant(np.float32(3)), [200, 300]))
    after = assert_same(b.module(), "graph-fold-constant", np.ones((200, 300), np.float32))
    assert sum(after.weights[name].nbytes for name in after.weights) <= 2 * 4 * 500
    names = [op.name for op in after.main.body.block.ops]
    assert names.count("graph.broadcast_to") == 2


def test_a_number_everywhere_is_one_number(assert_same: Callable) -> None:
    """What is written as one number is no reason to write out as many as its shape has."""
    b = sw.Builder()
    x = b.input("x", (200, 300))
    ones = b.broadcast_to(b.constant(np.float32(1)), [200, 300])
    row = b.constant(np.arange(300, dtype=np.float32))
    b.output(x + b.mul(b.add(ones, ones), row))
    b.output(x + b.neg(b.add(ones, ones)))
    module = sw.from_mlir(
        str(b.module())
        .replace("dense<1.000000e+00> : tensor<f32>", "dense<1.000000e+00> : tensor<200x300xf32>")
        .replace(
            "(tensor<f32>) -> tensor<200x300xf32>", "(tensor<200x300xf32>) -> tensor<200x300xf32>"
        ),
        b.module().weights,
    )
    after = assert_same(module, "graph-fold-constant", np.ones((200, 300), np.float32))
    assert sum(after.weights[name].nbytes for name in after.weights) <= 4 * 300
    names = [op.name for op in after.main.body.block.ops]
    assert names.count("graph.mul") == 1
    assert not {"graph.neg", "graph.broadcast_to"} & set(names)


def test_a_chain_grows_as_little_as_an_operator(assert_same: Callable) -> None:
    b = sw.Builder()
    x = b.input("x", (1, 1 << 17))
    c = b.constant(np.arange(1 << 10, dtype=np.float32).reshape(1, -1))
    for _ in range(7):
        c = b.concat([b.neg(c), c], axis=1)
    b.output(x * c)
    after = assert_same(b.module(), "graph-fold-constant", np.ones((1, 1 << 17), np.float32))
    stored = [after.weights[name].nbytes for name in after.weights]
    names = [op.name for op in after.main.body.block.ops]
    # Four times 4096 bytes and 4096 more are four and a half doublings of the constant.
    assert max(stored) <= 5 * 4096
    assert names.count("graph.concat") == 5
