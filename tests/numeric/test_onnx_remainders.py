"""Mod of ONNX against NumPy: integers of every width, and floats without a rounding."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto
from onnx.helper import (
    make_graph,
    make_model,
    make_node,
    make_opsetid,
    make_tensor_value_info,
    np_dtype_to_tensor_dtype,
)

import stepwell as sw

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


def model(dtype: np.dtype, counts: tuple[int, int], fmod: int) -> ModelProto:
    kind = np_dtype_to_tensor_dtype(dtype)
    a = make_tensor_value_info("a", kind, [counts[0], 1])
    b = make_tensor_value_info("b", kind, [counts[1]])
    y = make_tensor_value_info("y", kind, None)
    graph = make_graph([make_node("Mod", ["a", "b"], ["y"], "n", fmod=fmod)], "g", [a, b], [y])
    return make_model(graph, opset_imports=[make_opsetid("", 22)])


def check(a: np.ndarray, b: np.ndarray, fmod: int) -> None:
    module = sw.from_onnx(model(a.dtype, (len(a), len(b)), fmod))
    with np.errstate(invalid="ignore"):
        want = (np.fmod if fmod else np.mod)(a, b)
    for run in (module.run_reference, sw.compile(module, threads=1)):
        got = np.asarray(run(a, b)).reshape(want.shape)
        np.testing.assert_array_equal(got, want)
        if want.dtype.kind == "f":
            np.testing.assert_array_equal(np.signbit(got[want == 0]), np.signbit(want[want == 0]))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers(dtype: str) -> None:
    limits = np.iinfo(dtype)
    a = np.array([limits.min, limits.max, 0, 1, 7, 100, limits.max // 2 + 1], dtype)[:, None]
    b = np.array([1, 2, 3, 7, 100, limits.max, limits.max - 1], dtype)
    signed = np.concatenate([b, -b[:5]]) if limits.min else b
    check(a, signed, 0)
    check(a, signed, 1)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("fmod", [0, 1])
def test_floats(dtype: str, fmod: int) -> None:
    numbers = [5.3, -5.3, 4.0, -4.0, 0.1, 6e4, -6e4, 0.0, -0.0, np.nan]
    check(
        np.array([*numbers, np.inf, -np.inf], dtype)[:, None],
        np.array([0.7, -0.7, 2.0, -2.0, 0.1, 3e4, np.inf, -np.inf, np.nan], dtype),
        fmod,
    )
