"""Axes and diagonals of ONNX operators that come at run time."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto
from onnx.helper import make_graph, make_model, make_node, make_opsetid, make_tensor_value_info

import stepwell as sw

from ..harness import cases, close, floats, import_level

X = floats(2, 3, 4)


def imported(
    operator: str,
    shape: tuple[int | str, ...],
    axes: list[int],
    rank: int,
    opset: int = 26,
    **attributes: Any,
) -> sw.Module:
    """A program of one node whose second operand is an input, without sizes of its result."""
    node = make_node(operator, ["x", "a"], ["y"], name="n", **attributes)
    x = make_tensor_value_info("x", TensorProto.FLOAT, shape)
    a = make_tensor_value_info("a", TensorProto.INT64, axes)
    y = make_tensor_value_info("y", TensorProto.FLOAT, [None] * rank)
    model = make_model(
        make_graph([node], "g", [x, a], [y]), opset_imports=[make_opsetid("", opset)]
    )
    return sw.from_onnx(model)


def compiled(*given: Any, **options: Any) -> sw.Executable:
    return sw.compile(imported(*given, **options), threads=1, opt_level=import_level())


def test_axes_of_ones() -> None:
    wide = compiled("Unsqueeze", ("n", 3, 4), [2], 5)
    narrow = compiled("Squeeze", ("a", "b", "c", 4), [2], 2)
    for axes in ((0, 1), (1, 3), (-1, 0), (4, 2)):
        got = wide(X, np.array(axes))
        np.testing.assert_array_equal(got, np.expand_dims(X, axes))
    for shape, axes in (((1, 3, 1, 4), (0, 2)), ((2, 1, 1, 4), (-2, 1)), ((1, 1, 5, 4), (0, 1))):
        x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        np.testing.assert_array_equal(narrow(x, np.array(axes)), x.squeeze(axes))
    for exe, x, axes in ((wide, X, (0, 5)), (wide, X, (1, 1)), (narrow, X[None], (0, 1))):
        with pytest.raises(sw.InputError, match='node "n"'):
            exe(x, np.array(axes))


def test_sums_along_an_axis() -> None:
    exe = compiled("CumSum", ("n", 3, 4), [], 3, reverse=0)
    for axis in (0, 1, 2, -1, -3):
        np.testing.assert_allclose(exe(X, np.array(axis)), X.cumsum(axis), rtol=1e-5, atol=1e-6)
    for axis in (3, -4):
        with pytest.raises(sw.InputError, match='node "n"'):
            exe(X, np.array(axis))


@pytest.mark.parametrize("upper", [0, 1])
def test_triangles(upper: int) -> None:
    exe = compiled("Trilu", (2, "n", "m"), [], 3, upper=upper)
    want = np.triu if upper else np.tril
    for k in (-5, -1, 0, 2, 9):
        for x in (X, X[:, :1], X[:, :0]):
            given = np.ascontiguousarray(x)
            np.testing.assert_array_equal(exe(given, np.array(k)), want(given, k))


REDUCTIONS = {
    "ReduceSum": np.sum,
    "ReduceMean": lambda x, **k: np.sum(x, **k) / np.sum(np.ones_like(x), **k),
    "ReduceMax": lambda x, **k: np.max(x, initial=-np.inf, **k),
    "ReduceL2": lambda x, **k: np.sqrt(np.sum(x * x, **k)),
    "ReduceLogSumExp": lambda x, **k: np.log(np.sum(np.exp(x), **k)),
}


COMPILED = ("ReduceMax", 0), ("ReduceMean", 1)


PAIRS = list(itertools.product(REDUCTIONS, (0, 1)))
QUICK = [pair for n, pair in enumerate(PAIRS) if n % 4 in (0, 3) or pair in COMPILED]
"""Each operator, which keeps dimensions or does not."""


@pytest.mark.parametrize("pair", cases(PAIRS, QUICK), ids=str)
def test_reductions_to_a_shape_that_is_computed(pair: tuple[str, int], all_tests: bool) -> None:
    """In quick tests the reference computes those whose branches are like others."""
    operator, keepdims = pair
    module = imported(operator, ("n", 3, "m"), [2], 3 if keepdims else 1, keepdims=keepdims)
    is_compiled = all_tests or (operator, keepdims) in COMPILED
    level = import_level()
    run = sw.compile(module, threads=1, opt_level=level) if is_compiled else module.run_reference
    for axes in ((0, 1), (1, 2), (0, 2), (-1, 0)):
        for x in (X, X[:1, :, :1], X[:, :, :0]):
            given = np.ascontiguousarray(x)
            with np.errstate(divide="ignore", invalid="ignore"):
                want = REDUCTIONS[operator](given, axis=axes, keepdims=bool(keepdims))
            close(run(given, np.array(axes)), np.asarray(want, np.float32), atol=1e-6)
    for axes in ((0, 3), (1, 1), (-4, 0), (1, -2)):
        with pytest.raises(sw.InputError, match=r'node "n".*axes out of range, or named twice'):
            run(X, np.array(axes))


def test_padding_of_axes() -> None:
    inputs = {"x": TensorProto.FLOAT, "p": TensorProto.INT64, "a": TensorProto.INT64}
    shapes = {"x": ("n", 3, 4), "p": (4,), "a": (2,)}
    infos = [make_tensor_value_info(name, kind, shapes[name]) for name, kind in inputs.items()]
    node = make_node("Pad", ["x", "p", "", "a"], ["y"], name="n", mode="edge")
    y = make_tensor_value_info("y", TensorProto.FLOAT, [None] * 3)
    graph = make_graph([node], "g", infos, [y])
    exe = sw.compile(
        sw.from_onnx(make_model(graph, opset_imports=[make_opsetid("", 21)])), threads=1
    )
    for axes in ((0, 2), (2, 1), (-3, -1)):
        margins = [(0, 0)] * 3
        margins[axes[0]], margins[axes[1]] = (1, 0), (2, 3)
        want = np.pad(X, margins, mode="edge")
        np.testing.assert_array_equal(exe(X, np.array([1, 2, 0, 3]), np.array(axes)), want)
    for axes in ((0, 3), (1, 1)):
        with pytest.raises(sw.InputError, match=r'node "n".*axes out of range, or named twice'):
            exe(X, np.array([1, 2, 0, 3]), np.array(axes))
