"""Convolutions, pools and paddings of images whose height and width only a call decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, NodeProto, TensorProto
from onnx.helper import make_graph, make_model, make_node, make_opsetid, make_tensor_value_info
from onnx.numpy_helper import from_array

import stepwell as sw

RNG = np.random.default_rng(7)
SIZES = [(9, 7), (8, 8), (13, 6), (5, 10), (6, 5)]


def weights(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


def image(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


def model(
    nodes: Sequence[NodeProto],
    constants: Mapping[str, np.ndarray],
    outputs: Sequence[str],
    shape: Sequence[int | str] = ("n", 3, "h", "w"),
) -> ModelProto:
    inputs = [make_tensor_value_info("x", TensorProto.FLOAT, shape)]
    results = [onnx.ValueInfoProto(name=name) for name in outputs]
    initial = [from_array(value, name) for name, value in constants.items()]
    graph = make_graph(list(nodes), "main", inputs, results, initial)
    return make_model(graph, opset_imports=[make_opsetid("", 19)], ir_version=9)


def several(operator: str, cases: Mapping[str, Mapping[str, Any]], *more: str) -> list[NodeProto]:
    """Nodes of an operator on x, each named after its result."""
    return [make_node(operator, ["x", *more], [name], **given) for name, given in cases.items()]


def check(source: ModelProto, images: Sequence[np.ndarray], threads: int = 1) -> None:
    """Compare one compilation for all sizes with a model of each fixed size.

    1e-5 relative, because sums are taken in another order.
    """
    module = sw.from_onnx(source)
    exe = sw.compile(module, threads=threads)
    for x in images:
        wanted = results(sw.from_onnx(source, shapes={"x": x.shape}).run_reference(x))
        for program in (exe, module.run_reference):
            found, names = results(program(x)), [output.name for output in source.graph.output]
            for name, want, got in zip(names, wanted, found, strict=True):
                assert got.shape == want.shape, name
                np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5, err_msg=name)


def results(found: np.ndarray | tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    return found if isinstance(found, tuple) else (found,)


CONVS: dict[str, dict[str, Any]] = {
    "plain": {},
    "padded": {"pads": [1, 1, 1, 1]},
    "strided": {"pads": [1, 1, 1, 1], "strides": [2, 2]},
    "uneven": {"pads": [0, 2, 1, 0], "strides": [2, 3]},
    "dilated": {"pads": [2, 2, 2, 2], "dilations": [2, 2]},
    "same": {"auto_pad": "SAME_UPPER"},
    "same_low": {"auto_pad": "SAME_LOWER", "dilations": [2, 1]},
    "valid": {"auto_pad": "VALID", "strides": [1, 2]},
    "same_strided": {"auto_pad": "SAME_UPPER", "strides": [2, 3]},
    "same_low_strided": {"auto_pad": "SAME_LOWER", "strides": [2, 4], "dilations": [2, 1]},
}


@pytest.mark.parametrize("threads", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_convolutions(threads: int) -> None:
    source = model(
        several("Conv", CONVS, "w", "b"), {"w": weights(5, 3, 3, 3), "b": weights(5)}, list(CONVS)
    )
    check(source, [image(1 + i % 2, 3, *size) for i, size in enumerate(SIZES)], threads)


POOLS: dict[str, dict[str, Any]] = {
    "halves": {"kernel_shape": [2, 2], "strides": [2, 2]},
    "padded": {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]},
    "ceil": {"kernel_shape": [3, 2], "strides": [2, 2], "ceil_mode": 1},
    "ceil_padded": {
        "kernel_shape": [3, 3],
        "strides": [3, 2],
        "pads": [1, 1, 1, 1],
        "ceil_mode": 1,
    },
    "ceil_outside": {
        "kernel_shape": [2, 3],
        "strides": [4, 5],
        "pads": [0, 0, 1, 2],
        "ceil_mode": 1,
    },
    "dilated": {"kernel_shape": [2, 2], "dilations": [2, 3], "pads": [0, 1, 0, 1]},
    "same": {"kernel_shape": [2, 3], "auto_pad": "SAME_UPPER"},
    "same_strided": {"kernel_shape": [2, 3], "strides": [3, 2], "auto_pad": "SAME_LOWER"},
    "same_gaps": {"kernel_shape": [1, 2], "strides": [2, 4], "auto_pad": "SAME_UPPER"},
}


def test_maxima() -> None:
    check(model(several("MaxPool", POOLS), {}, list(POOLS)), [image(2, 3, *s) for s in SIZES])


@pytest.mark.slow
def test_means() -> None:
    cases = POOLS | {f"{name}_all": {**own, "count_include_pad": 1} for name, own in POOLS.items()}
    check(model(several("AveragePool", cases), {}, list(cases)), [image(1, 3, *s) for s in SIZES])


@pytest.mark.parametrize("threads", [1, 2])
def test_paddings(threads: int) -> None:
    """Loops over symbolic sizes are cut at their borders; an empty image has nothing else."""
    b = sw.Builder("main")
    x = b.input("x", ("n", 3, "h", "w"), "f32")
    b.output(b.relu(b.pad(x, [0, 0, 1, 2], [0, 0, 1, 0], 1.5)))
    b.output(b.pad(x, [1, 0, 0, 0], [0, 2, 0, 3], -1.0))
    exe = sw.compile(b.module(), threads=threads)
    assert "split_border(m, 2, 0)" in exe.ir("scheduled")
    for size in (
        (2, 3, 5, 7),
        (1, 3, 0, 3),
        (2, 3, 4, 0),
        (1, 3, 1, 1),
        (0, 3, 2, 2),
        (1, 3, 40, 67),
    ):
        values = image(*size)
        first, second = exe(values)
        ends = ((0, 0), (0, 0), (1, 1), (2, 0))
        np.testing.assert_array_equal(
            first, np.maximum(np.pad(values, ends, constant_values=1.5), 0)
        )
        ends = ((1, 0), (0, 2), (0, 0), (0, 3))
        np.testing.assert_array_equal(second, np.pad(values, ends, constant_values=-1.0))


TRANSPOSED: dict[str, dict[str, Any]] = {
    "plain": {},
    "double": {"strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 1]},
    "uneven": {"strides": [2, 3], "dilations": [2, 1]},
    "same": {"strides": [2, 2], "auto_pad": "SAME_UPPER"},
    "valid": {"strides": [3, 1], "auto_pad": "VALID"},
}


def test_transposed_convolutions() -> None:
    nodes = several("ConvTranspose", TRANSPOSED, "w", "b")
    source = model(nodes, {"w": weights(3, 4, 3, 3), "b": weights(4)}, list(TRANSPOSED))
    check(source, [image(1 + i % 2, 3, *size) for i, size in enumerate(SIZES[:3])])
    message = "output_shape for symbolic dimension h"
    node = make_node("ConvTranspose", ["x", "w"], ["y"], output_shape=[20, 20])
    with pytest.raises(sw.ImportModelError, match=message):
        sw.from_onnx(model([node], {"w": weights(3, 4, 3, 3)}, ["y"]))


def test_sizes_that_a_model_computes() -> None:
    """Half of an image, enlarged to its size, and in a row."""
    nodes = [
        make_node("MaxPool", ["x"], ["a"], kernel_shape=[2, 2], strides=[2, 2]),
        make_node("Shape", ["x"], ["whole"]),
        make_node("Slice", ["whole", "0", "2"], ["front"]),
        make_node("Slice", ["whole", "2", "4"], ["image"]),
        make_node("Div", ["image", "2"], ["half"]),
        make_node("Concat", ["front", "half"], ["shape"], axis=0),
        make_node("Reshape", ["a", "shape"], ["y_same"]),
        make_node("Resize", ["a", "", "", "whole"], ["y_wide"], mode="linear"),
        make_node("Resize", ["a", "", "scales"], ["y_scaled"], mode="nearest"),
        make_node("Reshape", ["a", "row"], ["y_row"]),
    ]
    numbers = {"0": [0], "2": [2], "4": [4], "row": [0, -1]}
    own = {name: np.array(value, np.int64) for name, value in numbers.items()}
    own["scales"] = np.array([1, 1, 1.5, 0.7], np.float32)
    outputs = ["y_same", "y_wide", "y_scaled", "y_row"]
    check(model(nodes, own, outputs), [image(2, 3, *size) for size in SIZES])


def test_norms_and_whole_images() -> None:
    nodes = [
        *several("LpPool", {"lp": {"kernel_shape": [2, 2], "strides": [2, 2], "p": 2}}),
        *several("GlobalAveragePool", {"mean": {}}),
        *several("GlobalMaxPool", {"max": {}}),
        *several("GlobalLpPool", {"norm": {"p": 3}}),
    ]
    outputs = ["lp", "mean", "max", "norm"]
    check(model(nodes, {}, outputs), [image(2, 3, *size) for size in SIZES])


def network(channels: int = 16) -> ModelProto:
    """Convolutions one after the other, a residual, pools and a classifier."""
    c, c2 = channels, 2 * channels
    nodes = [
        make_node("Conv", ["x", "w0"], ["a"], strides=[2, 2], pads=[3, 3, 3, 3]),
        make_node("Relu", ["a"], ["b"]),
        make_node("MaxPool", ["b"], ["c"], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
        make_node("Conv", ["c", "w1"], ["d"], pads=[1, 1, 1, 1]),
        make_node("Add", ["d", "c"], ["e"]),
        make_node("Relu", ["e"], ["f"]),
        make_node("Conv", ["f", "w2"], ["g"], strides=[2, 2], pads=[1, 1, 1, 1]),
        make_node("Conv", ["f", "w3"], ["h"], strides=[2, 2]),
        make_node("Add", ["g", "h"], ["i"]),
        make_node("Relu", ["i"], ["j"]),
        make_node("GlobalAveragePool", ["j"], ["k"]),
        make_node("Flatten", ["k"], ["l"]),
        make_node("MatMul", ["l", "w4"], ["y"]),
    ]
    own = {
        "w0": weights(c, 3, 7, 7) / 12,
        "w1": weights(c, c, 3, 3) / 12,
        "w2": weights(c2, c, 3, 3) / 12,
        "w3": weights(c2, c, 1, 1) / 4,
        "w4": weights(c2, 10) / 5,
    }
    return model(nodes, own, ["j", "y"])


@pytest.mark.parametrize("threads", [1, 2])
def test_a_residual_network(threads: int) -> None:
    images = [image(n, 3, *size) for n, size in ((1, (33, 47)), (2, (32, 32)), (1, (65, 20)))]
    check(network(), images, threads)


def test_threads_take_rows_of_an_image() -> None:
    """A symbolic batch may be 1."""
    exe = sw.compile(sw.from_onnx(network()), threads=2)
    kernels = exe.ir("scheduled").split("loop.kernel ")
    (conv,) = [kernel for kernel in kernels if kernel.startswith("@fused_blocked_conv_add_relu(")]
    assert 'loop.for "l" %l' in conv
    assert "tiles(l)" in conv


def test_sizes_are_reported() -> None:
    module = sw.from_onnx(network())
    exe = sw.compile(module)
    assert [out.shape for out in exe.outputs] == [("n", 32, "(h+7)//8", "(w+7)//8"), ("n", 10)]


def test_a_window_that_does_not_fit() -> None:
    source = model(
        several("Conv", {"y": {"pads": [1, 0, 0, 0]}}, "w"), {"w": weights(2, 3, 4, 3)}, ["y"]
    )
    module = sw.from_onnx(source)
    exe = sw.compile(module)
    for program in (exe, module.run_reference):
        program(image(1, 3, 3, 3))
        with pytest.raises(
            sw.InputError, match="dimension 2 of x is too small, expected 4 or more"
        ):
            program(image(1, 3, 2, 3))
        with pytest.raises(
            sw.InputError, match="dimension 3 of x is too small, expected 3 or more"
        ):
            program(image(1, 3, 3, 2))


def test_halves_that_do_not_match() -> None:
    """A skip connection of a U-Net: the size must be even."""
    nodes = [
        make_node("MaxPool", ["x"], ["a"], kernel_shape=[2, 2], strides=[2, 2]),
        make_node("Resize", ["a", "", "twice"], ["b"], mode="nearest"),
        make_node("Concat", ["x", "b"], ["y"], axis=1),
    ]
    source = model(nodes, {"twice": np.array([1, 1, 2, 2], np.float32)}, ["y"])
    check(source, [image(1, 3, 6, 4), image(2, 3, 2, 8)])
    module = sw.from_onnx(source)
    for program in (sw.compile(module), module.run_reference):
        with pytest.raises(sw.InputError, match="size h is not divisible"):
            program(image(1, 3, 5, 4))


@pytest.mark.parametrize(("of_x", "of_w"), [(6, "m"), ("n", 3), ("n", "m")])
def test_groups_of_channels(of_x: int | str, of_w: int | str) -> None:
    """One side has to say how many there are: the index of the first of a group depends on it."""
    b = sw.Builder("main")
    x, w = b.input("x", ("batch", of_x, 7), "f32"), b.input("w", (4, of_w, 2), "f32")
    if of_x == "n" and of_w == "m":
        with pytest.raises(sw.InputError, match="channels whose number is not known, expected a f"):
            b.conv(x, w, groups=2)
        return
    b.output(b.conv(x, w, groups=2))
    module, arrays = b.module(), (image(3, 6, 7), weights(4, 3, 2))
    wanted = module.run_reference(*arrays)
    np.testing.assert_allclose(sw.compile(module)(*arrays), wanted, rtol=1e-5, atol=1e-5)
