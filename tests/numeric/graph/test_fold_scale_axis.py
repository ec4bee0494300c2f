"""Scales that go into weights: what is left of a program, and that it means the same."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import scipy.sparse as sp

import stepwell as sw
from stepwell.frontends.builder import Builder, Value

RNG = np.random.default_rng(0)
PASSES = "graph-canonicalize-ops,graph-fold-scale-axis,graph-fold-constant"


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


W, BIAS, V = floats(5, 4), floats(5), floats(6, 5)
PLUS, MIXED = RNG.uniform(0.5, 2, 5).astype(np.float32), floats(5)
PLUS4 = RNG.uniform(0.5, 2, 4).astype(np.float32)
CSR = sp.csr_array(sp.random_array((3, 3), density=0.6, rng=1)).astype(np.float32)
COLUMN = floats(3, 1)


def norm(b: Builder, x: Value) -> Value:
    n = x.shape[-1]
    assert isinstance(n, int)
    vectors = (floats(n), floats(n), floats(n), RNG.uniform(0.5, 2, n).astype(np.float32))
    return b.batch_norm(x, *vectors, axis=1)


FOLDED: dict[str, tuple[Callable[[Builder, Value], Value], list[str]]] = {
    "behind dense": (lambda b, x: b.dense(x, W, BIAS) * MIXED, ["dense"]),
    "one factor": (lambda b, x: b.dense(x, W, BIAS) * -3.0, ["dense"]),
    "behind matmul": (lambda b, x: b.matmul(x, W.T.copy()) * MIXED, ["matmul"]),
    "zero": (lambda b, x: b.dense(x, W, BIAS) * np.zeros(5, np.float32), ["dense"]),
    "through relu": (lambda b, x: b.relu(b.dense(x, W)) * PLUS, ["dense", "relu"]),
    "through leaky relu": (
        lambda b, x: b.leaky_relu(b.dense(x, W), 0.1) * PLUS,
        ["dense", "leaky_relu"],
    ),
    "through a sum of products": (
        lambda b, x: (b.dense(x, W) + b.matmul(x, W.T.copy())) * MIXED,
        ["dense", "matmul", "add"],
    ),
    "through a sum": (
        lambda b, x: (b.matmul(x, W.T.copy()) + BIAS) * MIXED,
        ["matmul", "add"],
    ),
    "through a difference": (lambda b, x: b.sub(2.0, b.dense(x, W)) * MIXED, ["dense", "sub"]),
    "in front of dense": (lambda b, x: b.dense(x * PLUS4, W, BIAS), ["dense"]),
    "in front of matmul": (lambda b, x: b.matmul(x * -PLUS4, W.T.copy()), ["matmul"]),
    "in front, through relu": (lambda b, x: b.dense(b.relu(x * PLUS4), W), ["relu", "dense"]),
    "in front, through a shift": (
        lambda b, x: b.dense(b.relu(x * PLUS4 + PLUS4[::-1].copy()), W),
        ["add", "relu", "dense"],
    ),
    "in front, one factor": (lambda b, x: b.dense(x * 0.25, W), ["dense"]),
    "batch norm behind": (lambda b, x: norm(b, b.dense(x, W, BIAS)), ["dense"]),
    "batch norm in front": (lambda b, x: b.dense(norm(b, x), W, BIAS), ["add", "dense"]),
    "between": (lambda b, x: b.dense(b.dense(x, W) * MIXED, V), ["dense", "dense"]),
}

SPARSE: dict[str, tuple[Callable[[Builder, Value], Value], list[str]]] = {
    "columns": (lambda b, x: b.spmm(CSR, b.dense(x, W)) * MIXED, ["dense", "spmm"]),
    "rows": (lambda b, x: b.spmm(CSR, x) * COLUMN, ["spmm"]),
    "rows of the operand": (lambda b, x: b.spmm(CSR, x * COLUMN), ["spmm"]),
    "both": (lambda b, x: b.spmm(CSR, x * COLUMN) * COLUMN, ["spmm"]),
}

KEPT: dict[str, Callable[[Builder, Value], Value]] = {
    "a factor below 0 and relu": lambda b, x: b.relu(b.dense(x, W)) * -PLUS,
    "a factor of 0 and relu": lambda b, x: b.relu(b.dense(x, W)) * 0.0,
    "an infinite factor": lambda b, x: b.dense(x, W) * float("inf"),
    "a product with two users": lambda b, x: (d := b.dense(x, W)) * PLUS + d,
    "an operand with two users": lambda b, x: b.dense(s := x * PLUS4, W[:4]) + s,
    "a shift by 0 * x": lambda b, x: b.dense(x * np.array([1, 0, 1, 1], np.float32) + 1.0, W),
    "another activation": lambda b, x: b.tanh(b.dense(x, W)) * PLUS,
    "a sum with the input": lambda b, x: (b.dense(x, W[:4]) + x) * PLUS4,
    "a scale of rows of dense": lambda b, x: b.dense(x, W) * COLUMN,
}


def program(build: Callable[[Builder, Value], Value], rows: int | str = 3) -> sw.Module:
    b = sw.Builder()
    b.output(build(b, b.input("x", (rows, 4))))
    return b.module()


def operators(module: sw.Module) -> list[str]:
    names = [op.name.removeprefix("graph.") for op in module.main.body.block.ops]
    return [name for name in names if name not in ("constant", "func.return")]


@pytest.mark.parametrize("rows", [3, 1, "n"])
@pytest.mark.parametrize("name", FOLDED)
def test_folded(name: str, rows: int | str, assert_same: Callable[..., sw.Module]) -> None:
    build, expected = FOLDED[name]
    x = floats(3 if rows == "n" else int(rows), 4)
    # Weights are rounded once more, and sums of five products cancel.
    passes = f"graph-simplify-inference,graph-fold-constant,{PASSES},{PASSES}"
    after = assert_same(program(build, rows), passes, x, tolerance=1e-5)
    assert operators(after) == expected


@pytest.mark.parametrize("name", SPARSE)
def test_folded_into_sparse(name: str, assert_same: Callable[..., sw.Module]) -> None:
    build, expected = SPARSE[name]
    after = assert_same(program(build), PASSES, floats(3, 4), tolerance=1e-5)
    assert operators(after) == expected


@pytest.mark.parametrize("name", KEPT)
def test_kept(name: str, assert_same: Callable[..., sw.Module]) -> None:
    module = program(KEPT[name])
    after = assert_same(module, "graph-fold-scale-axis", floats(3, 4), tolerance=0)
    assert operators(after) == operators(module)


def test_weights_with_two_users_stay_one(transformed: Callable) -> None:
    b = sw.Builder()
    x, w = b.input("x", (3, 4)), b.constant(W)
    b.output(b.dense(x, w) * PLUS)
    b.output(b.dense(x, w))
    module = b.module()
    after, ctx = transformed(module, "graph-fold-scale-axis")
    assert operators(after) == operators(module)
    assert not ctx.decisions


def test_it_says_what_it_folded(transformed: Callable) -> None:
    b = sw.Builder()
    b.output(b.mul(b.dense(b.input("x", (3, 4)), W, name="fc1"), PLUS, name="scale"))
    after, ctx = transformed(b.module(), "graph-fold-scale-axis")
    assert str(ctx.decisions[0]).startswith('node "scale": its scale goes into the weights')
    dense = next(op for op in after.op.walk() if op.name == "graph.dense")
    assert "fc1" in str(dense.location)
