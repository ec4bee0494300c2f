"""Every row of `docs/canonical-forms.md`: what is met after the pass, with the same results."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import stepwell as sw
from stepwell.frontends.builder import Builder, Value

from ...harness import floats

W = floats(5, 4)
BIAS = floats(5)


def convolved(b: Builder, x: Value, summand: np.ndarray, *bias: np.ndarray) -> Value:
    images = b.reshape(x, [-1, 1, 2, 2])
    return b.conv(images, W[:2].reshape(2, 1, 2, 2)[..., :1], *bias) + summand


FORMS: dict[str, tuple[Callable[[Builder, Value], Value], list[str] | None]] = {
    "bias": (lambda b, x: b.dense(x, W) + BIAS, ["dense"]),
    "bias as a row": (lambda b, x: b.add(BIAS.reshape(1, 5), b.dense(x, W)), ["dense"]),
    "two biases": (lambda b, x: b.dense(x, W, BIAS) + BIAS * 2, ["dense"]),
    "bias minus": (lambda b, x: b.dense(x, W) - BIAS, ["dense"]),
    "bias of matmul": (lambda b, x: b.matmul(x, W.T.copy()) + BIAS, ["matmul", "add"]),
    "bias of filters": (
        lambda b, x: convolved(b, x, BIAS[:2].reshape(2, 1, 1)),
        ["reshape", "conv"],
    ),
    "two biases of filters": (
        lambda b, x: convolved(b, x, BIAS[:2].reshape(1, 2, 1, 1), BIAS[1:3]),
        ["reshape", "conv"],
    ),
    "a bias of columns": (lambda b, x: convolved(b, x, BIAS[:2]), ["reshape", "conv", "add"]),
    "one number": (lambda b, x: b.dense(x, W) + 2.0, ["dense", "add"]),
    "a column": (lambda b, x: b.dense(x, W) + b.reduce(x, "sum", [1], True), None),
    "transposed": (lambda b, x: b.matmul(x, b.transpose(b.tanh(b.constant(W)), [1, 0])), ["dense"]),
    "transposed twice": (
        lambda b, x: b.dense(x, b.transpose(b.tanh(b.constant(W.T.copy())), [1, 0])),
        ["matmul"],
    ),
    "a product transposed": (lambda b, x: b.transpose(b.dense(W, x), [1, 0]), ["dense"]),
    "a layer transposed": (
        lambda b, x: b.transpose(b.dense(x, W), [1, 0]),
        ["dense", "transpose"],
    ),
    "with a bias transposed": (
        lambda b, x: b.transpose(b.dense(W, b.reduce(x, "max", [0], True), BIAS[:1]), [1, 0]),
        ["reduce", "dense", "transpose"],
    ),
    "constant first": (lambda b, x: b.mul(2.0, x), ["mul"]),
    "constant minus": (lambda b, x: b.sub(2.0, x), ["sub"]),
    "minus": (lambda b, x: x - 2.0, ["add"]),
    "relu": (lambda b, x: b.max(0.0, x), ["relu"]),
    "clip to relu": (lambda b, x: b.clip(x, 0.0, float("inf")), ["relu"]),
    "lower": (lambda b, x: b.max(x, -0.5), ["clip"]),
    "upper": (lambda b, x: b.min(0.5, x), ["clip"]),
    "axis": (lambda b, x: b.softmax(x, -1), ["softmax"]),
    "axes": (lambda b, x: b.reduce(x, "sum", axes=[-1, 0]), ["reduce"]),
    "shape": (lambda b, x: b.reshape(x, [0, 2, -1]), ["reshape"]),
}


@pytest.mark.parametrize("rows", [3, 1, "n"])
@pytest.mark.parametrize("name", FORMS)
def test_form(name: str, rows: int | str, assert_same: Callable[..., sw.Module]) -> None:
    build, expected = FORMS[name]
    b = sw.Builder()
    b.output(build(b, b.input("x", (rows, 4))))
    x = floats(3 if rows == "n" else rows, 4)
    passes = "graph-canonicalize-ops,graph-fold-constant"
    # A sum of four products may start at the bias.
    after = assert_same(b.module(), passes, x, tolerance=2e-6)
    names = [op.name.removeprefix("graph.") for op in after.main.body.block.ops]
    if expected is not None:
        assert [n for n in names if n not in ("constant", "func.return")] == expected


@pytest.mark.parametrize("special", [0.0, -0.0, np.inf, -np.inf, np.nan])
@pytest.mark.parametrize(
    "name", ["minus", "relu", "clip to relu", "lower", "upper", "constant minus"]
)
def test_form_on_special_values(
    name: str, special: float, assert_same: Callable[..., sw.Module]
) -> None:
    b = sw.Builder()
    b.output(FORMS[name][0](b, b.input("x", (1, 4))))
    x = np.array([[special, 1, -2, special]], np.float32)
    assert_same(b.module(), "graph-canonicalize-ops", x, tolerance=0)
