"""ONNX operators as they were before opset 7, against NumPy."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from onnx.helper import (
    make_graph,
    make_model,
    make_node,
    make_opsetid,
    make_tensor_value_info,
    np_dtype_to_tensor_dtype,
)
from onnx.numpy_helper import from_array

import stepwell as sw

from ..harness import RNG, close, floats

X, M = floats(2, 3, 4, 5), floats(3, 4)
TRUE = X > 0


def imported(
    operator: str,
    opset: int,
    xs: list[np.ndarray],
    constants: Mapping[int, np.ndarray] | None = None,
    outputs: int = 1,
    **attributes: Any,
) -> sw.Module:
    """A model of one node whose operands are inputs, but for those at these positions."""
    fixed = {f"x{at}": array for at, array in (constants or {}).items()}
    names = [f"x{i}" for i in range(len(xs) + len(fixed))]
    given = [name for name in names if name not in fixed]
    infos = [
        make_tensor_value_info(name, np_dtype_to_tensor_dtype(x.dtype), x.shape)
        for name, x in zip(given, xs, strict=True)
    ]
    results = [f"y{i}" for i in range(outputs)]
    node = make_node(operator, names, results, name="old", **attributes)
    weights = [from_array(array, name) for name, array in fixed.items()]
    declared = [make_tensor_value_info(name, 0, None) for name in results]
    graph = make_graph([node], "g", infos, declared, weights)
    return sw.from_onnx(make_model(graph, opset_imports=[make_opsetid("", opset)]))


def gives(
    want: np.ndarray, operator: str, opset: int, xs: list[np.ndarray], **options: Any
) -> None:
    close(imported(operator, opset, xs, **options).run_reference(*xs), want, atol=1e-6)


@pytest.mark.parametrize("opset", [1, 6])
def test_operands_broadcast_from_an_axis_on(opset: int) -> None:
    request = {"broadcast": 1}
    gives(X + M[None, :, :, None], "Add", opset, [X, M], axis=1, **request)
    gives(X - M[None, :, :, None], "Sub", opset, [X, M], axis=-3, **request)
    gives(X * X[0], "Mul", opset, [X, X[0]], **request)
    gives(X / M[:1, :1], "Div", opset, [X, M[:1, :1]], **request)
    gives(np.abs(X) ** 2, "Pow", opset, [np.abs(X), np.float32(2).reshape(())], **request)
    gives(X + X, "Add", opset, [X, X])


@pytest.mark.parametrize("opset", [1, 6])
def test_comparisons_broadcast_from_an_axis_on(opset: int) -> None:
    gives(X > M[None, :, :, None], "Greater", opset, [X, M], axis=1, broadcast=1)
    gives(X < X[0], "Less", opset, [X, X[0]], broadcast=1)
    columns = TRUE[0, :, 0, 0]
    gives(TRUE | columns[:, None, None], "Or", opset, [TRUE, columns], axis=1, broadcast=1)


@pytest.mark.parametrize(
    ("operands", "attributes", "text"),
    [
        ((X, X[0]), {}, "onnx.Add: the shapes of operands differ without broadcast"),
        (
            (X, M),
            {"broadcast": 1, "axis": 3},
            "onnx.Add: axis out of range, expected 0 <= axis <= 2",
        ),
        ((X, M), {"broadcast": 1, "axis": -9}, "onnx.Add: axis out of range, expected 0 <= axis"),
        ((M, X), {"broadcast": 1}, "onnx.Add: axis out of range"),
        ((X, X[:, :2]), {"broadcast": 1}, "onnx.Add: "),
        ((X[:1], X), {"broadcast": 1}, "onnx.Add: the second operand does not broadcast"),
    ],
)
def test_operands_that_do_not_broadcast(
    operands: tuple[np.ndarray, ...], attributes: dict[str, int], text: str
) -> None:
    with pytest.raises(sw.ImportModelError, match=re.escape(text)):
        imported("Add", 6, list(operands), **attributes)


def test_first_forms_of_operators() -> None:
    gives(X.astype(np.int32), "Cast", 1, [X], to="INT32")
    with pytest.raises(sw.ImportModelError, match="no such element type, got INTEGER"):
        imported("Cast", 1, [X], to="INTEGER")
    gives(np.concatenate([X, X], 1), "Concat", 1, [X, X])
    gives(np.pad(M, ((1, 0), (2, 3))), "Pad", 1, [M], paddings=[1, 2, 0, 3])
    gives(X.reshape(6, 20), "Reshape", 1, [X], shape=[-1, 20], consumed_inputs=[0])
    gives(np.maximum(X, 0), "Relu", 1, [X], consumed_inputs=[0])
    gives(np.clip(X, -1, 0.5), "Clip", 1, [X], min=-1.0, max=0.5)
    tiles = {1: np.array([3]), 2: np.array([1])}
    gives(np.tile(M, (1, 3)), "Tile", 1, [M], constants=tiles)
    norm = np.sqrt((X * X).sum((2, 3), keepdims=True))
    gives(norm, "GlobalLpPool", 1, [X], p=2.0)
    gives(X, "Dropout", 6, [X], is_test=1)
    product = 2 * M.T @ M + 1
    gives(product, "Gemm", 6, [M, M, np.ones(1, np.float32)], transA=1, alpha=2.0, broadcast=1)


def test_slopes_are_those_of_channels() -> None:
    slope = np.array([0.1, 0.2, 0.3], np.float32)
    want = np.where(X < 0, X * slope[:, None, None], X)
    gives(want, "PRelu", 6, [X, slope])
    gives(np.where(X < 0, X * slope[1], X), "PRelu", 1, [X, slope[1:2]])


def test_a_normalisation_of_old_is_that_of_inference() -> None:
    scale, bias, mean, variance = RNG.uniform(0.5, 2, (4, 3)).astype(np.float32)
    own = [p[:, None, None] for p in (scale, bias, mean, variance)]
    want = (X - own[2]) / np.sqrt(own[3] + 1e-5) * own[0] + own[1]
    for test in (0, 1):
        gives(want, "BatchNormalization", 6, [X, scale, bias, mean, variance], is_test=test)


def test_hardmax_of_several_dimensions() -> None:
    rows = X.reshape(6, 20)
    want = np.zeros_like(rows)
    want[np.arange(6), rows.argmax(1)] = 1
    gives(want.reshape(X.shape), "Hardmax", 11, [X], axis=2)


def test_groups_with_a_scale_each() -> None:
    x = floats(2, 6, 4)
    scale, bias = np.array([1, 2], np.float32), np.array([3, -1], np.float32)
    groups = x.reshape(2, 2, 12)
    mean, deviation = groups.mean(2, keepdims=True), groups.var(2, keepdims=True)
    want = (groups - mean) / np.sqrt(deviation + 1e-5) * scale[:, None] + bias[:, None]
    gives(want.reshape(x.shape), "GroupNormalization", 18, [x, scale, bias], num_groups=2)


def test_sizes_of_parts_are_an_operand_or_an_attribute() -> None:
    for options in ({"constants": {1: np.array([1, 3])}}, {"split": [1, 3]}):
        parts = imported("Split", 1, [M], outputs=2, axis=1, **options).run_reference(M)
        for got, want in zip(parts, np.split(M, [1], 1), strict=True):
            np.testing.assert_array_equal(got, want)
