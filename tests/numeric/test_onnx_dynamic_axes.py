"""Axes and diagonals of ONNX operators that come at run time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto
from onnx.helper import make_graph, make_model, make_node, make_opsetid, make_tensor_value_info

import stepwell as sw

X = np.random.default_rng(0).standard_normal((2, 3, 4), np.float32)


def compiled(
    operator: str,
    shape: tuple[int | str, ...],
    axes: list[int],
    rank: int,
    opset: int = 26,
    **attributes: Any,
) -> sw.Executable:
    """A program of one node whose second operand is an input, without sizes of its result."""
    node = make_node(operator, ["x", "a"], ["y"], name="n", **attributes)
    x = make_tensor_value_info("x", TensorProto.FLOAT, shape)
    a = make_tensor_value_info("a", TensorProto.INT64, axes)
    y = make_tensor_value_info("y", TensorProto.FLOAT, [None] * rank)
    model = make_model(
        make_graph([node], "g", [x, a], [y]), opset_imports=[make_opsetid("", opset)]
    )
    return sw.compile(sw.from_onnx(model), threads=1)


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
