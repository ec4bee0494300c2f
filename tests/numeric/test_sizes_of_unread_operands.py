"""Operators compare the sizes of an operand also where no result depends on its elements."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import stepwell as sw
from stepwell.frontends.builder import Value

ENDS = np.array([0, 2])
"""Of edges from nodes to themselves."""


def some(b: sw.Builder, a: Value) -> Value:
    """Which rows of a matrix have entries."""
    return b.less(np.zeros((), np.float32), b.reshape(b.degree(a), [-1, 1]))


def largest(b: sw.Builder, a: Value, x: Value) -> Value:
    return b.reduce_entries(a, b.neg(b.at_entries(a, x, axis=1)), "max")


def not_chosen(b: sw.Builder, a: Value, x: Value, y: Value) -> Value:
    return b.where(np.array(True), np.ones((4, 2), np.float32), y)


def chosen_elsewhere(b: sw.Builder, a: Value, x: Value, y: Value) -> Value:
    return b.where(some(b, a), b.where(some(b, a), largest(b, a, x), y), 1.0)


def of_rows_without_entries(b: sw.Builder, a: Value, x: Value, y: Value) -> Value:
    return b.at_entries(a, b.where(some(b, a), largest(b, a, x), y), axis=0)


def beside_the_slice(b: sw.Builder, a: Value, x: Value, y: Value) -> Value:
    return b.slice(b.concat([x, y], axis=0), starts=[0, 0], ends=[4, 2**63 - 1])


@pytest.mark.parametrize(
    "made", [not_chosen, chosen_elsewhere, of_rows_without_entries, beside_the_slice]
)
def test_a_call_compares_them(made: Callable[..., Value]) -> None:
    b = sw.Builder("main")
    ends = b.input("ends", (2,), "i64")
    a, _ = b.csr_from_edges(ends, ends, (4, 4))
    x, y = b.input("x", (4, "n"), "f32"), b.input("y", (4, "m"), "f32")
    b.output(made(b, a, x, y), name="z")
    exe = sw.compile(b.module())
    one = np.arange(8, dtype=np.float32).reshape(4, 2)
    expected = b.module().run_reference(ENDS, one, one)
    np.testing.assert_array_equal(exe(ENDS, one, one), expected)
    for run in (exe, b.module().run_reference):
        with pytest.raises(sw.InputError, match=r"expected 2, got 3|expected 3, got 2"):
            run(ENDS, one, np.zeros((4, 3), np.float32))


@pytest.mark.parametrize("text", ["graph.sub %x, %c", "graph.add %c, %x"])
def test_what_a_type_leaves_open(text: str) -> None:
    """The size of a result is that of an operand which changes nothing."""
    types = ", ".join("tensor<2xf32>" if "c" in v else "tensor<?xf32>" for v in text.split()[1:])
    module = sw.from_mlir(f"""
    func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {{
      %c = graph.constant dense<{"0.0" if "sub" in text else "-0.0"}> : tensor<2xf32>
      %y = {text} : ({types}) -> tensor<?xf32>
      func.return %y : tensor<?xf32>
    }}""")
    exe = sw.compile(module)
    np.testing.assert_array_equal(exe(np.ones(2, np.float32)), np.ones(2, np.float32))
    with pytest.raises(sw.InputError, match=r"dimensions .* must agree, expected"):
        exe(np.ones(3, np.float32))
