"""Operators on bits: every integer type, at its ends, shifts by any number of places."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.helper import make_graph, make_model, make_node, make_opsetid, make_tensor_value_info

import stepwell as sw
from stepwell.core.dtype_names import dtype_named

from ..harness import same

SIGNED, UNSIGNED = ("i8", "i16", "i32", "i64"), ("ui8", "ui16", "ui32")


def numbers(name: str, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    """Numbers of the whole range, its ends among them."""
    dtype = dtype_named(name)
    if name == "i1":
        return np.random.default_rng(seed).integers(0, 2, shape).astype(dtype)
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    array = np.random.default_rng(seed).integers(low, high, shape, dtype, endpoint=True)
    array.flat[:4] = low, high, 0, 1
    return array


@pytest.mark.parametrize("name", ["i1", *SIGNED, *UNSIGNED])
def test_bits(name: str, all_tests: bool) -> None:
    b = sw.Builder("main")
    x, y = b.input("x", ("n", 37), name), b.input("y", (37,), name)
    b.output(b.bitwise_and(x, y))
    b.output(b.bitwise_or(x, y))
    b.output(b.bitwise_not(b.bitwise_xor(x, y)))
    runs = ways(b.module(), LEVELS if all_tests or name == "i8" else (3,))
    for rows in (0, 1, 13):
        left, right = numbers(name, (rows or 1, 37))[:rows], numbers(name, (37,), 1)
        for run in runs:
            same(run(left, right), (left & right, left | right, ~(left ^ right)))


LEVELS = (0, 3)


def ways(module: sw.Module, levels: Sequence[int] = LEVELS) -> list[Callable[..., Any]]:
    exes = (sw.compile(module, opt_level=level, threads=1) for level in levels)
    return [module.run_reference, *exes]


@pytest.mark.parametrize("name", [*SIGNED, *UNSIGNED])
def test_shifts(name: str, all_tests: bool) -> None:
    b = sw.Builder("main")
    x, places = b.input("x", (29, 1), name), b.input("places", ("n",), name)
    b.output(b.shift_left(x, places))
    b.output(b.shift_right(x, places))
    b.output(b.shift_right(b.shift_left(x, 3), 2))
    left, bits = numbers(name, (29, 1)), 8 * dtype_named(name).itemsize
    away = [*range(bits + 2), 100, *([-1, -bits] if name in SIGNED else [200])]
    given = np.array(away).astype(dtype_named(name))
    # Python's integers have as many bits as it takes.
    kept = [[p if 0 <= p < bits else bits for p in given.tolist()]] * len(left)
    whole = left.astype(object)
    expected = [(whole << kept).astype(object), whole >> kept, ((whole << 3) % 2**bits) >> 2]
    if name in SIGNED:
        half = 2 ** (bits - 1)
        expected[2] = (((whole << 3) + half) % 2**bits - half) >> 2
    wanted = [(part % 2**bits).astype(np.uint64).astype(left.dtype) for part in expected]
    for run in ways(b.module(), LEVELS if all_tests or name == "ui32" else (3,)):
        same(run(left, given), wanted)


def model(operator: str, dtype: str, count: int, **attributes: str) -> onnx.ModelProto:
    kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    names = ["a", "b"][:count]
    inputs = [
        make_tensor_value_info(name, kind, ["n", 3][-(2 - i) :]) for i, name in enumerate(names)
    ]
    node = make_node(operator, names, ["y"], **attributes)
    graph = make_graph([node], "g", inputs, [onnx.ValueInfoProto(name="y")])
    return make_model(graph, opset_imports=[make_opsetid("", 18)])


ONNX = {
    "BitwiseAnd": ({}, np.bitwise_and),
    "BitwiseOr": ({}, np.bitwise_or),
    "BitwiseXor": ({}, np.bitwise_xor),
    "BitwiseNot": ({}, np.invert),
    "left": ({"direction": "LEFT"}, np.left_shift),
    "right": ({"direction": "RIGHT"}, np.right_shift),
}


@pytest.mark.parametrize("name", ONNX)
def test_operators_of_onnx(name: str) -> None:
    attributes, function = ONNX[name]
    operator = "BitShift" if attributes else name
    a, b = np.array([[1, 16, 200], [4, 3, 0]], np.uint8), np.array([1, 2, 3], np.uint8)
    given = [a, b][: function.nin]
    module = sw.from_onnx(model(operator, "uint8", function.nin, **attributes))
    same(module.run_reference(*given), function(*given))


def test_unknown_direction() -> None:
    with pytest.raises(
        sw.ImportModelError, match="direction is unknown, expected LEFT or RIGHT, got UP"
    ):
        sw.from_onnx(model("BitShift", "uint8", 2, direction="UP"))
