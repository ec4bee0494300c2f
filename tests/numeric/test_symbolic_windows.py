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

from ..harness import as_reference, cases, close, floats, results, same

SIZES = [(9, 7), (8, 8), (6, 5), (13, 6), (5, 10)]


@pytest.fixture
def sizes(all_tests: bool) -> Sequence[tuple[int, int]]:
    """Those of images: the first three are odd, even, and both."""
    return SIZES if all_tests else SIZES[:3]


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


def several(operator: str, named: Mapping[str, Mapping[str, Any]], *more: str) -> list[NodeProto]:
    """Nodes of an operator on x, each named after its result."""
    return [make_node(operator, ["x", *more], [name], **given) for name, given in named.items()]


def as_fixed_sizes(
    source: ModelProto, images: Sequence[np.ndarray], threads: int = 1
) -> sw.Executable:
    """Compare one compilation for all sizes with a model of each fixed size.

    1e-5 relative, because sums are taken in another order.
    """
    module = sw.from_onnx(source)
    exe = sw.compile(module, threads=threads)
    for x in images:
        wanted = results(sw.from_onnx(source, shapes={"x": x.shape}).run_reference(x))
        names = [output.name for output in source.graph.output]
        for program in (exe, module.run_reference):
            for name, want, got in zip(names, wanted, results(program(x)), strict=True):
                close(got, want, what=name)
    return exe


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


FEW_CONVS = ("strided", "uneven", "dilated", "valid", "same_strided", "same_low_strided")


@pytest.mark.parametrize("threads", cases([1, 2], [2]))
def test_convolutions(threads: int, all_tests: bool, sizes: Sequence[tuple[int, int]]) -> None:
    named = {name: CONVS[name] for name in (CONVS if all_tests else FEW_CONVS)}
    own = {"w": floats(5, 3, 3, 3), "b": floats(5)}
    source = model(several("Conv", named, "w", "b"), own, list(named))
    as_fixed_sizes(source, [floats(1 + i % 2, 3, *size) for i, size in enumerate(sizes)], threads)


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


FEW_POOLS = ("padded", "ceil_padded", "ceil_outside", "dilated", "same_strided", "same_gaps")


def test_maxima(all_tests: bool, sizes: Sequence[tuple[int, int]]) -> None:
    named = {name: POOLS[name] for name in (POOLS if all_tests else FEW_POOLS)}
    source = model(several("MaxPool", named), {}, list(named))
    as_fixed_sizes(source, [floats(2, 3, *size) for size in sizes])


@pytest.mark.slow
def test_means() -> None:
    named = POOLS | {f"{name}_all": {**own, "count_include_pad": 1} for name, own in POOLS.items()}
    source = model(several("AveragePool", named), {}, list(named))
    as_fixed_sizes(source, [floats(1, 3, *size) for size in SIZES])


@pytest.mark.parametrize("threads", cases([1, 2], [2]))
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
        values = floats(*size)
        first, second = exe(values)
        ends = ((0, 0), (0, 0), (1, 1), (2, 0))
        same(first, np.maximum(np.pad(values, ends, constant_values=1.5), 0))
        ends = ((1, 0), (0, 2), (0, 0), (0, 3))
        same(second, np.pad(values, ends, constant_values=-1.0))


TRANSPOSED: dict[str, dict[str, Any]] = {
    "plain": {},
    "double": {"strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 1]},
    "uneven": {"strides": [2, 3], "dilations": [2, 1]},
    "same": {"strides": [2, 2], "auto_pad": "SAME_UPPER"},
    "valid": {"strides": [3, 1], "auto_pad": "VALID"},
}


def test_transposed_convolutions() -> None:
    nodes = several("ConvTranspose", TRANSPOSED, "w", "b")
    source = model(nodes, {"w": floats(3, 4, 3, 3), "b": floats(4)}, list(TRANSPOSED))
    as_fixed_sizes(source, [floats(1 + i % 2, 3, *size) for i, size in enumerate(SIZES[:3])])
    message = "output_shape for symbolic dimension h"
    node = make_node("ConvTranspose", ["x", "w"], ["y"], output_shape=[20, 20])
    with pytest.raises(sw.ImportModelError, match=message):
        sw.from_onnx(model([node], {"w": floats(3, 4, 3, 3)}, ["y"]))


def test_sizes_that_a_model_computes(sizes: Sequence[tuple[int, int]]) -> None:
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
    as_fixed_sizes(model(nodes, own, outputs), [floats(2, 3, *size) for size in sizes])


def test_norms_and_whole_images(sizes: Sequence[tuple[int, int]]) -> None:
    nodes = [
        *several("LpPool", {"lp": {"kernel_shape": [2, 2], "strides": [2, 2], "p": 2}}),
        *several("GlobalAveragePool", {"mean": {}}),
        *several("GlobalMaxPool", {"max": {}}),
        *several("GlobalLpPool", {"norm": {"p": 3}}),
    ]
    outputs = ["lp", "mean", "max", "norm"]
    as_fixed_sizes(model(nodes, {}, outputs), [floats(2, 3, *size) for size in sizes])


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
        "w0": floats(c, 3, 7, 7) / 12,
        "w1": floats(c, c, 3, 3) / 12,
        "w2": floats(c2, c, 3, 3) / 12,
        "w3": floats(c2, c, 1, 1) / 4,
        "w4": floats(c2, 10) / 5,
    }
    return model(nodes, own, ["j", "y"])


@pytest.mark.parametrize("threads", cases([1, 2], [2]))
def test_a_residual_network(threads: int, all_tests: bool) -> None:
    """Threads take rows of an image: a symbolic batch may be 1."""
    sizes = [(1, (33, 47)), (2, (32, 32)), (1, (65, 20))]
    images = [floats(n, 3, *size) for n, size in (sizes if all_tests else sizes[:2])]
    exe = as_fixed_sizes(network(), images, threads)
    assert [out.shape for out in exe.outputs] == [("n", 32, "(h+7)//8", "(w+7)//8"), ("n", 10)]
    if threads == 1:
        return
    name = "@fused_blocked_conv_add_relu"
    schedules = {d.subject: d.what for d in exe.decisions if d.pass_name == "loop-schedule"}
    assert "tiles(l)" in schedules[name]
    if not all_tests:
        return
    kernels = exe.ir("scheduled").split("loop.kernel ")
    (conv,) = [kernel for kernel in kernels if kernel.startswith(f"{name}(")]
    assert 'loop.for "l" %l' in conv
    assert "tiles(l)" in conv


def test_a_window_that_does_not_fit() -> None:
    source = model(
        several("Conv", {"y": {"pads": [1, 0, 0, 0]}}, "w"), {"w": floats(2, 3, 4, 3)}, ["y"]
    )
    module = sw.from_onnx(source)
    exe = sw.compile(module)
    for program in (exe, module.run_reference):
        program(floats(1, 3, 3, 3))
        with pytest.raises(
            sw.InputError, match="dimension 2 of x is too small, expected 4 or more"
        ):
            program(floats(1, 3, 2, 3))
        with pytest.raises(
            sw.InputError, match="dimension 3 of x is too small, expected 3 or more"
        ):
            program(floats(1, 3, 3, 2))


def test_halves_that_do_not_match() -> None:
    """A skip connection of a U-Net: the size must be even."""
    nodes = [
        make_node("MaxPool", ["x"], ["a"], kernel_shape=[2, 2], strides=[2, 2]),
        make_node("Resize", ["a", "", "twice"], ["b"], mode="nearest"),
        make_node("Concat", ["x", "b"], ["y"], axis=1),
    ]
    source = model(nodes, {"twice": np.array([1, 1, 2, 2], np.float32)}, ["y"])
    exe = as_fixed_sizes(source, [floats(1, 3, 6, 4), floats(2, 3, 2, 8)])
    for program in (exe, sw.from_onnx(source).run_reference):
        with pytest.raises(sw.InputError, match="size h is not divisible"):
            program(floats(1, 3, 5, 4))


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
    as_reference(b.module(), floats(3, 6, 7), floats(4, 3, 2), threads=1)
