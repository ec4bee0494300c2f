"""Expand and ConstantOfShape of ONNX to sizes that only a call decides."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, TensorProto
from onnx.helper import make_graph, make_model, make_node, make_opsetid, make_tensor_value_info
from onnx.numpy_helper import from_array

import stepwell as sw
from stepwell.core.errors import ImportModelError

KINDS = {
    "f": np.array([[-0.0], [np.nan]], np.float32),
    "i": np.array([[3], [-1]], np.int8),
    "b": np.array([[True], [False]]),
}


def model(size: str = "n") -> ModelProto:
    """Each of `KINDS` expanded to 2 x the size, and ones of the shape of x."""
    nodes = [
        make_node("Shape", ["x"], ["shape"]),
        make_node("Gather", ["shape", "last"], ["n"]),
        make_node("Add", ["n", "n"], ["2n"]),
        make_node("Mul", ["n", "2n"], ["square"]),
        make_node("Add", ["square", "last"], ["square+1"]),
        make_node("Sub", ["n", "last"], ["n-1"]),
        make_node("ConstantOfShape", ["shape"], ["ones"], value=from_array(np.ones(1, np.int64))),
        *(make_node("Expand", [kind, size], [f"y_{kind}"]) for kind in KINDS),
    ]
    names = ["ones", *(f"y_{kind}" for kind in KINDS)]
    types = [TensorProto.INT64, TensorProto.FLOAT, TensorProto.INT8, TensorProto.BOOL]
    outputs = [make_tensor_value_info(n, t, None) for n, t in zip(names, types, strict=True)]
    weights = [from_array(array, kind) for kind, array in KINDS.items()]
    weights.append(from_array(np.array([1]), "last"))
    inputs = [make_tensor_value_info("x", TensorProto.FLOAT, ["m", "n"])]
    graph = make_graph(nodes, "main", inputs, outputs, weights)
    return make_model(graph, opset_imports=[make_opsetid("", 18)], ir_version=9)


def test_expanding_to_the_size_of_an_input() -> None:
    module = sw.from_onnx(model())
    exe = sw.compile(module)
    for shape in ((2, 3), (1, 1), (3, 0)):
        x = np.full(shape, np.inf, np.float32)
        for program in (exe, module.run_reference):
            ones, *found = program(x)
            np.testing.assert_array_equal(ones, np.ones(shape, np.int64))
            for array, got in zip(KINDS.values(), found, strict=True):
                want = np.broadcast_to(array, (2, shape[1]))
                np.testing.assert_array_equal(got, want)
                assert got.dtype == want.dtype
                if array.dtype == np.float32:
                    np.testing.assert_array_equal(np.signbit(got), np.signbit(want))


def test_sums_and_products_of_sizes() -> None:
    module = sw.from_onnx(model("square+1"))
    exe = sw.compile(module)
    for n in (3, 1, 0):
        x = np.zeros((2, n), np.float32)
        for program in (exe, module.run_reference):
            for array, got in zip(KINDS.values(), program(x)[1:], strict=True):
                np.testing.assert_array_equal(got, np.broadcast_to(array, (2, 2 * n * n + 1)))


def test_a_size_that_no_value_has() -> None:
    message = r"expanding to symbolic dimension n-1, which no value has"
    with pytest.raises(ImportModelError, match=message):
        sw.from_onnx(model("n-1"))


def computed() -> ModelProto:
    """The places of what is not 0 and those of all, as many zeros, and all of them."""
    names = {"zero": np.array(0), "one": np.array(1), "rest": np.array([-1]), "none": np.array([0])}
    nodes = [
        make_node("NonZero", ["x"], ["found"]),
        make_node("Reshape", ["found", "rest"], ["places"]),
        make_node("Size", ["x"], ["n"]),
        make_node("Range", ["zero", "n", "one"], ["all"]),
        make_node("Concat", ["places", "all"], ["both"], axis=0),
        make_node("Shape", ["both"], ["size"]),
        make_node("ConstantOfShape", ["size"], ["zeros"]),
        make_node("Slice", ["both", "none", "size", "none"], ["same"]),
    ]
    types = {"both": TensorProto.INT64, "zeros": TensorProto.FLOAT, "same": TensorProto.INT64}
    outputs = [make_tensor_value_info(name, kind, [None]) for name, kind in types.items()]
    inputs = [make_tensor_value_info("x", TensorProto.FLOAT, ["n"])]
    weights = [from_array(array, name) for name, array in names.items()]
    graph = make_graph(nodes, "main", inputs, outputs, weights)
    return make_model(graph, opset_imports=[make_opsetid("", 18)], ir_version=9)


def test_sizes_that_are_computed() -> None:
    module = sw.from_onnx(computed())
    assert "dynamic_slice" not in str(module), "the size of what is sliced is known"
    exe = sw.compile(module)
    for x in ([0, 3, 0, 1], [0], [2], []):
        both = [*np.flatnonzero(x), *range(len(x))]
        for program in (exe, module.run_reference):
            found = program(np.array(x, np.float32))
            for got, want in zip(found, (both, [0] * len(both), both), strict=True):
                np.testing.assert_array_equal(got, want)


def test_a_range_up_to_a_difference_of_sizes() -> None:
    graph = make_graph(
        [
            make_node("Size", ["x"], ["n"]),
            make_node("Sub", ["n", "two"], ["n-2"]),
            make_node("Range", ["zero", "n-2", "one"], ["y"]),
        ],
        "main",
        [make_tensor_value_info("x", TensorProto.FLOAT, ["n"])],
        [make_tensor_value_info("y", TensorProto.INT64, [None])],
        [from_array(np.array(n), name) for n, name in enumerate(("zero", "one", "two"))],
    )
    model = make_model(graph, opset_imports=[make_opsetid("", 18)], ir_version=9)
    exe = sw.compile(sw.from_onnx(model))
    for n in (5, 1, 0):
        np.testing.assert_array_equal(exe(np.zeros(n, np.float32)), np.arange(n - 2))
