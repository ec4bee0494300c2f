"""Operators of ONNX along dimensions whose sizes only a call decides."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
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

from ..harness import cases, close, floats, onnx_results, results, same

Shape = Sequence[int | str]


@dataclass(frozen=True)
class Case:
    """A node: its operator, the shapes of its inputs, arguments of calls, and what is constant."""

    kind: str
    shapes: Mapping[str, Shape]
    calls: Sequence[Sequence[np.ndarray]]
    constants: Mapping[str, np.ndarray] = field(default_factory=dict)
    attributes: Mapping[str, Any] = field(default_factory=dict)
    results: int = 1

    def proto(self) -> onnx.ModelProto:
        """The model."""
        types = [np_dtype_to_tensor_dtype(array.dtype) for array in self.calls[0]]
        named = zip(self.shapes.items(), types, strict=True)
        inputs = [make_tensor_value_info(name, kind, shape) for (name, shape), kind in named]
        names = [f"y{number}" for number in range(self.results)]
        kinds = [types[0], onnx.TensorProto.INT64][: self.results]
        outputs = [make_tensor_value_info(n, k, None) for n, k in zip(names, kinds, strict=True)]
        operands = [*self.shapes, *self.constants]
        node = make_node(self.kind, operands, names, name="node", **self.attributes)
        weights = [from_array(array, name) for name, array in self.constants.items()]
        graph = make_graph([node], "g", inputs, outputs, weights)
        return make_model(graph, opset_imports=[make_opsetid("", 18)], ir_version=9)


def pads(mode: str, *numbers: int) -> Case:
    constants = {"pads": np.array(numbers)}
    calls = [[floats(3, n)] for n in (5, 4, 9)]
    return Case("Pad", {"x": ("m", "n")}, calls, constants, {"mode": mode})


def indices(*sizes: int, below: int) -> np.ndarray:
    return np.random.default_rng(0).integers(-below, below, sizes)


CASES = {
    "reflected": pads("reflect", 0, 2, 0, 3),
    "reflected along both": pads("reflect", 1, 1, 2, 0),
    "ends": pads("edge", 2, 0, 0, 3),
    "wrapped": pads("wrap", 1, 3, 0, 2),
    "tiles": Case(
        "Tile", {"x": ("m", "n")}, [[floats(2, 3)], [floats(1, 4)]], {"by": np.array([2, 3])}
    ),
    "diagonal": Case(
        "Einsum", {"x": ("n", "n")}, [[floats(4, 4)], [floats(1, 1)]], {}, {"equation": "ii->i"}
    ),
    "trace": Case(
        "Einsum", {"x": ("b", "n", "n")}, [[floats(2, 5, 5)]], {}, {"equation": "bii->b"}
    ),
    "diagonal between": Case(
        "Einsum", {"x": ("n", "k", "n")}, [[floats(3, 2, 3)]], {}, {"equation": "iki->ki"}
    ),
    "rows of a batch": Case(
        "GatherND",
        {"x": ("b", "n", 3), "i": ("b", "k", 1)},
        [
            [floats(2, 4, 3), indices(2, 5, 1, below=4)],
            [floats(1, 2, 3), indices(1, 1, 1, below=2)],
        ],
        {},
        {"batch_dims": 1},
    ),
    "elements of two batches": Case(
        "GatherND",
        {"x": ("b", "c", "n"), "i": ("b", "c", 1)},
        [[floats(2, 3, 4), indices(2, 3, 1, below=4)]],
        {},
        {"batch_dims": 2},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_operators(name: str) -> None:
    case = CASES[name]
    module = sw.from_onnx(case.proto())
    exe = sw.compile(module, threads=1)
    for arrays in case.calls:
        wanted = onnx_results(case.proto(), *arrays)
        for run in (exe, module.run_reference):
            close(run(*arrays), wanted)


IMAGES: list[Shape] = [("n", "c", "h", "w"), (2, 3, "h", 6), ("n", 3, 7, 6)]
STORED = [(IMAGES[0], 1), (IMAGES[1], 0)]


@pytest.mark.parametrize("image", cases([*itertools.product(IMAGES, (0, 1))], STORED), ids=str)
def test_places_of_maxima(image: tuple[Shape, int]) -> None:
    """They are places in the whole tensor, in the order in which it is stored."""
    shape, order = image
    attributes = {"kernel_shape": [2, 3], "strides": [2, 1], "pads": [1, 0, 0, 1]}
    case = Case(
        "MaxPool",
        {"x": shape},
        [[floats(2, 3, 7, 6)]],
        {},
        {**attributes, "storage_order": order},
        results=2,
    )
    (x,) = case.calls[0]
    module = sw.from_onnx(case.proto())
    for run in (sw.compile(module, threads=1), module.run_reference):
        found, places = run(x)
        stored = x.transpose(0, 1, 3, 2) if order else x
        np.testing.assert_array_equal(stored.ravel()[places], found)
        same(found, onnx_results(case.proto(), x)[0])


@pytest.mark.parametrize("mode", cases(["SAME_UPPER", "SAME_LOWER"], ["SAME_UPPER"]))
def test_places_of_maxima_where_the_model_does_not_say_the_padding(mode: str) -> None:
    """They are those of a model of the size of each call."""
    given = {"kernel_shape": [2, 3], "strides": [3, 2], "dilations": [1, 2], "auto_pad": mode}
    images = [floats(1, 2, *size) for size in ((7, 6), (6, 5), (5, 9), (1, 3))]
    case = Case("MaxPool", {"x": (1, 2, "h", "w")}, [[x] for x in images], {}, given, 2)
    module = sw.from_onnx(case.proto())
    exe = sw.compile(module, threads=1)
    for x in images:
        wanted = results(sw.from_onnx(case.proto(), shapes={"x": x.shape}).run_reference(x))
        for run in (exe, module.run_reference):
            for got, want in zip(results(run(x)), wanted, strict=True):
                same(got, want)


def test_a_window_of_padding_alone_has_no_place() -> None:
    given, images = {"kernel_shape": [2], "dilations": [4], "pads": [2, 2]}, [floats(1, 1, 4)]
    module = sw.from_onnx(Case("MaxPool", {"x": (1, 1, "n")}, [images], {}, given, 2).proto())
    exe = sw.compile(module, threads=1)
    for run in (exe, module.run_reference):
        assert results(run(*images))[1].shape == (1, 1, 4)
        with pytest.raises(sw.InputError, match="out of range"):
            run(floats(1, 1, 3))


def test_cropping() -> None:
    """The evaluator of the onnx package does not pad by negative numbers."""
    x = floats(3, 5)
    exe = sw.compile(sw.from_onnx(pads("constant", 0, -1, 0, -2).proto()), threads=1)
    same(exe(x), x[:, 1:-2])
    with pytest.raises(sw.InputError, match="a size is out of range, expected 0 to 2, got -1"):
        exe(floats(3, 2))
    both = sw.compile(sw.from_onnx(pads("constant", -1, 2, 1, -1).proto()), threads=1)
    same(both(x), np.pad(x[1:, :-1], [(0, 1), (2, 0)]))


def test_sizes_that_are_too_small() -> None:
    exe = sw.compile(sw.from_onnx(CASES["reflected"].proto()))
    with pytest.raises(sw.InputError, match="index out of range"):
        exe(floats(3, 2))


def test_diagonals_and_batches_of_other_sizes() -> None:
    for name, inputs in {
        "diagonal": [floats(3, 4)],
        "rows of a batch": [floats(2, 4, 3), indices(3, 5, 1, below=4)],
    }.items():
        exe = sw.compile(sw.from_onnx(CASES[name].proto()), threads=1)
        with pytest.raises(sw.InputError, match="differ"):
            exe(*inputs)
