"""Indices of fewer rows than the data, where both numbers are known in a call only."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto
from onnx.helper import make_graph, make_model, make_node, make_opsetid, make_tensor_value_info

import stepwell as sw

from ..harness import same

SIZES = [(5, 5, 3), (5, 3, 2), (5, 0, 3), (0, 0, 0), (4, 1, 3)]
"""The rows of the data, and the rows and columns of the indices."""


def model(operator: str, **attributes: object) -> ModelProto:
    inputs = {"x": TensorProto.FLOAT, "i": TensorProto.INT64, "u": TensorProto.FLOAT}
    if operator == "GatherElements":
        del inputs["u"]
    shapes = {"x": ["n", 3, 4], "i": ["m", "k", 2], "u": ["m", "k", 2]}
    graph = make_graph(
        [make_node(operator, list(inputs), ["y"], axis=2, **attributes)],
        "main",
        [make_tensor_value_info(name, kind, shapes[name]) for name, kind in inputs.items()],
        [make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    return make_model(graph, opset_imports=[make_opsetid("", 18)], ir_version=9)


@functools.cache
def ways(operator: str, **attributes: str) -> tuple[Callable[..., Any], ...]:
    module = sw.from_onnx(model(operator, **attributes))
    return sw.compile(module, threads=1), module.run_reference


def arrays(n: int, m: int, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n + m)
    x = rng.normal(size=(n, 3, 4)).astype(np.float32)
    # No place twice: then the order of updates does not matter.
    indices = np.tile(np.array([3, -3]), (m, k, 1))
    return x, indices, rng.normal(size=(m, k, 2)).astype(np.float32)


def test_gather() -> None:
    for n, m, k in SIZES:
        x, indices, _ = arrays(n, m, k)
        for run in ways("GatherElements"):
            same(run(x, indices), np.take_along_axis(x[:m, :k], indices, 2))


@pytest.mark.parametrize("reduction", ["none", "add"])
def test_scatter(reduction: str) -> None:
    for n, m, k in SIZES:
        x, indices, updates = arrays(n, m, k)
        want = x.copy()
        old = np.take_along_axis(x[:m, :k], indices, 2) if reduction == "add" else 0
        np.put_along_axis(want[:m, :k], indices, old + updates, 2)
        for run in ways("ScatterElements", reduction=reduction):
            same(run(x, indices, updates), want)


@pytest.mark.parametrize("sizes", [(3, 5, 3), (3, 3, 4), (0, 1, 1)])
def test_more_rows_than_the_data_has(sizes: tuple[int, int, int]) -> None:
    x, indices, updates = arrays(*sizes)
    none = {"reduction": "none"}
    for name, options, given in (
        ("Gather", {}, (x, indices)),
        ("Scatter", none, (x, indices, updates)),
    ):
        for run in ways(f"{name}Elements", **options):
            with pytest.raises(sw.InputError, match=r"index (out of range|into an empty)"):
                run(*given)
