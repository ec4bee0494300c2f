"""Div and Mod of ONNX: integers of every width, and remainders of floats without a rounding."""

from __future__ import annotations

from collections.abc import Callable

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
from onnx.numpy_helper import from_array

import stepwell as sw

from ..harness import cases, same

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


def model(
    operator: str, a: np.ndarray, b: np.ndarray, *, known: bool = False, **attributes: int
) -> ModelProto:
    """An operator of inputs like two arrays, or with `known` of these constants."""
    kind = np_dtype_to_tensor_dtype(a.dtype)
    operands = {"a": a, "b": b}
    infos = [make_tensor_value_info(name, kind, x.shape) for name, x in operands.items()]
    weights = [from_array(x, name) for name, x in operands.items()]
    y = make_tensor_value_info("y", kind, None)
    node = make_node(operator, ["a", "b"], ["y"], "n", **attributes)
    given = ([], [y], weights) if known else (infos, [y])
    return make_model(make_graph([node], "g", *given), opset_imports=[make_opsetid("", 22)])


def as_numpy(a: np.ndarray, b: np.ndarray, fmod: int) -> None:
    module = sw.from_onnx(model("Mod", a, b, fmod=fmod))
    with np.errstate(invalid="ignore"):
        want = (np.fmod if fmod else np.mod)(a, b)
    for run in (module.run_reference, sw.compile(module, threads=1)):
        same(run(a, b), want)


@pytest.mark.parametrize("dtype", cases(INTEGERS, ["int8", "int64", "uint16", "uint64"]))
def test_integers(dtype: str) -> None:
    limits = np.iinfo(dtype)
    a = np.array([limits.min, limits.max, 0, 1, 7, 100, limits.max // 2 + 1], dtype)[:, None]
    b = np.array([1, 2, 3, 7, 100, limits.max, limits.max - 1], dtype)
    signed = np.concatenate([b, -b[:5]]) if limits.min else b
    as_numpy(a, signed, 0)
    as_numpy(a, signed, 1)


BYTES: dict[str, tuple[str, dict[str, int], Callable[[int, int], int]]] = {
    "div": ("Div", {}, lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)),
    "mod": ("Mod", {}, lambda a, b: a % b),
    "fmod": ("Mod", {"fmod": 1}, lambda a, b: abs(a) % abs(b) * (-1 if a < 0 else 1)),
}


@pytest.mark.parametrize("name", BYTES)
def test_all_pairs_of_bytes(name: str) -> None:
    """Computed, and at import of constants; 128, the quotient of -128 and -1, is -128 as an i8."""
    operator, attributes, function = BYTES[name]
    numbers = range(-128, 128)
    a, b = np.array(numbers, np.int8)[:, None], np.array([n for n in numbers if n], np.int8)
    exact = np.array([[function(m, n) for n in numbers if n] for m in numbers])
    module = sw.from_onnx(model(operator, a, b, **attributes))
    folded = sw.from_onnx(model(operator, a, b, known=True, **attributes))
    for got in (
        module.run_reference(a, b),
        sw.compile(module, threads=1)(a, b),
        folded.run_reference(),
    ):
        np.testing.assert_array_equal(got, exact.astype(np.int8))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("fmod", [0, 1])
def test_floats(dtype: str, fmod: int) -> None:
    numbers = [5.3, -5.3, 4.0, -4.0, 0.1, 6e4, -6e4, 0.0, -0.0, np.nan]
    as_numpy(
        np.array([*numbers, np.inf, -np.inf], dtype)[:, None],
        np.array([0.7, -0.7, 2.0, -2.0, 0.1, 3e4, np.inf, -np.inf, np.nan], dtype),
        fmod,
    )
