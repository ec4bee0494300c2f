"""MaxPool with places, MaxUnpool, Col2Im, AffineGrid and RoiAlign of ONNX against its reference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.helper import make_graph, make_model, make_node, make_opsetid
from onnx.numpy_helper import from_array

import stepwell as sw

from ..harness import as_onnx, close, floats, onnx_results


def model(
    operator: str,
    inputs: dict[str, np.ndarray | Sequence[int | str]],
    constants: dict[str, Any] | None = None,
    results: int = 1,
    declared: Sequence[int] | None = None,
    **attributes: Any,
) -> onnx.ModelProto:
    infos: list[onnx.ValueInfoProto] = []
    for name, x in inputs.items():
        array = x if isinstance(x, np.ndarray) else np.zeros(0, np.float32)
        kind = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
        shape = x.shape if isinstance(x, np.ndarray) else x
        infos.append(onnx.helper.make_tensor_value_info(name, kind, shape))
    weights = [from_array(np.asarray(value), name) for name, value in (constants or {}).items()]
    outputs = [f"y{n}" for n in range(results)]
    node = make_node(operator, [*inputs, *(constants or {})], outputs, "n", **attributes)
    found = [onnx.ValueInfoProto(name=name) for name in outputs]
    if declared is not None:
        found = [onnx.helper.make_tensor_value_info("y0", 1, declared)]
    graph = make_graph([node], "g", infos, found, weights)
    return make_model(graph, opset_imports=[make_opsetid("", 22)])


def node_as_onnx(program: onnx.ModelProto, *inputs: np.ndarray, compiled: bool = False) -> None:
    way = "compiled" if compiled else "reference"
    as_onnx(program, *inputs, ways=[way], rtol=1e-4, atol=1e-5, threads=1)


def test_places_of_maxima() -> None:
    """They are places in the whole tensor, in the order in which it is stored."""
    x = floats(2, 3, 7, 6)
    for options in ({}, {"strides": [2, 2], "pads": [0, 1, 1, 1]}):
        pool = model("MaxPool", {"x": x}, results=2, kernel_shape=[2, 3], **options)
        run = sw.compile(sw.from_onnx(pool), threads=1) if options else None
        found, places = run(x) if run else sw.from_onnx(pool).run_reference(x)
        np.testing.assert_array_equal(x.ravel()[places], found)
        attribute = onnx.helper.make_attribute("storage_order", 1)
        pool.graph.node[0].attribute.append(attribute)
        found, places = sw.from_onnx(pool).run_reference(x)
        np.testing.assert_array_equal(x.transpose(0, 1, 3, 2).ravel()[places], found)


@pytest.mark.parametrize("kernel", [[2, 1], [1, 3], [1, 1]])
def test_places_in_windows_of_one_element_along_an_axis(kernel: list[int]) -> None:
    x = floats(2, 3, 7, 6)
    module = sw.from_onnx(model("MaxPool", {"x": x}, results=2, kernel_shape=kernel))
    rows, columns = (n - size + 1 for n, size in zip((7, 6), kernel, strict=True))
    shifted = [x[:, :, i:][:, :, :rows] for i in range(kernel[0])]
    shifted = [y[..., j:][..., :columns] for y in shifted for j in range(kernel[1])]
    for run in (sw.compile(module, threads=1), module.run_reference):
        found, places = run(x)
        np.testing.assert_array_equal(found, np.max(shifted, axis=0))
        np.testing.assert_array_equal(x.ravel()[places], found)


def test_maxima_are_put_back() -> None:
    x = np.round(floats(2, 3, 6, 4), 1)
    options = {"kernel_shape": [2, 2], "strides": [2, 2]}
    pool = model("MaxPool", {"x": x}, results=2, **options)
    found, places = sw.from_onnx(pool).run_reference(x)
    unpool = model("MaxUnpool", {"x": found, "i": places}, **options)
    node_as_onnx(unpool, found, places, compiled=True)
    unpool = model("MaxUnpool", {"x": found, "i": places}, {"s": [2, 3, 8, 5]}, **options)
    node_as_onnx(unpool, found, places)
    with pytest.raises(sw.InputError, match="out of range"):
        sw.compile(sw.from_onnx(unpool), threads=1)(found, places + 200)


def test_blocks_are_added_up() -> None:
    x = floats(2, 12, 20)
    given = {"image": [5, 6], "block": [2, 2]}
    node_as_onnx(model("Col2Im", {"x": x}, given), x, compiled=True)
    for block, options, count in (
        ([3, 2], {"strides": [2, 1]}, 10),
        ([2, 3], {"pads": [1, 0, 1, 2]}, 36),
        ([2, 2], {"dilations": [2, 4]}, 6),
    ):
        x = floats(2, 12, count)
        node_as_onnx(model("Col2Im", {"x": x}, {**given, "block": block}, **options), x)
    x = floats(1, 8, 12)
    node_as_onnx(model("Col2Im", {"x": x}, {"image": [3, 4, 3], "block": [2, 2, 2]}), x)
    exe = sw.compile(sw.from_onnx(model("Col2Im", {"x": ["n", 4, 20]}, given)), threads=1)
    x = floats(3, 4, 20)
    want = sw.from_onnx(model("Col2Im", {"x": x}, given)).run_reference(x)
    np.testing.assert_allclose(exe(x), want, rtol=1e-5, atol=1e-6)


def test_blocks_whose_sizes_come_at_run_time() -> None:
    x, given = floats(2, 12, 10), {"image": np.array([5, 6]), "block": np.array([3, 2])}
    options = {"strides": [2, 2], "pads": [0, 1, 1, 1]}
    x = floats(2, 12, 8)
    program = model("Col2Im", {"x": x, **given}, None, 1, (2, 2, 5, 6), **options)
    exe = sw.compile(sw.from_onnx(program), threads=1)
    close(exe(x, *given.values()), onnx_results(program, x, *given.values()), 1e-4, 1e-5)
    for sizes, message in (
        (([6, 6], [3, 2]), "the image has not the declared shape"),
        (([5, 6], [2, 2]), "wrong number of elements of a block, expected 4, got 6"),
        (([5, 6], [0, 2]), "wrong number of elements of a block, expected 0, got 6"),
        (([5, 6], [1, 6]), "wrong number of blocks, expected 6, got 8"),
    ):
        with pytest.raises(sw.InputError, match=message):
            exe(x, *map(np.array, sizes))
    with pytest.raises(sw.ImportModelError, match="without a declared shape"):
        sw.from_onnx(model("Col2Im", {"x": x, **given}))


@pytest.mark.parametrize("align", [0, 1])
def test_grids(align: int) -> None:
    theta = floats(2, 2, 3)
    node_as_onnx(model("AffineGrid", {"t": theta}, {"s": [2, 4, 5, 6]}, align_corners=align), theta)
    theta = floats(2, 3, 4)
    program = model("AffineGrid", {"t": theta}, {"s": [2, 4, 3, 5, 6]}, align_corners=align)
    node_as_onnx(program, theta, compiled=True)
    size = np.array([2, 1, 3, 5, 6])
    program = model("AffineGrid", {"t": theta, "s": size}, None, 1, (2, 3, 5, 6, 3))
    node_as_onnx(program, theta, size)


def test_regions() -> None:
    x = floats(2, 3, 9, 8)
    rois = np.array(
        [[0, 0, 7, 8], [1.3, 2.1, 5.2, 4.4], [-3, -2, 2, 1], [6, 6, 11, 12], [3, 3, 3.2, 3.1]],
        np.float32,
    )
    batches = np.array([0, 1, 1, 0, 1])
    given = {"x": x, "rois": rois, "i": batches}
    for mode in ("avg", "max"):
        for kind in ("half_pixel", "output_half_pixel"):
            options = {"mode": mode, "coordinate_transformation_mode": kind}
            sizes = {"output_height": 3, "output_width": 2, "sampling_ratio": 2}
            program = model("RoiAlign", given, spatial_scale=0.75, **options, **sizes)
            node_as_onnx(program, *given.values(), compiled=(mode, kind) == ("avg", "half_pixel"))
    with pytest.raises(sw.InputError, match="out of range"):
        sw.compile(sw.from_onnx(program), threads=1)(x, rois, batches + 1)


REFUSED: dict[str, tuple[Any, ...]] = {
    "kernel_shape, strides or pads do not fit": (
        "MaxUnpool",
        {"x": floats(1, 1, 2, 2), "i": np.zeros((1, 1, 2, 2), np.int64)},
        {},
        {"kernel_shape": [2]},
    ),
    "places of shape": (
        "MaxUnpool",
        {"x": floats(1, 1, 2, 2), "i": np.zeros((1, 1, 2, 3), np.int64)},
        {},
        {"kernel_shape": [2, 2]},
    ),
    "blocks do not fit the image": (
        "Col2Im",
        {"x": floats(1, 4, 5)},
        {"s": [3, 3], "b": [2, 2]},
        {},
    ),
    "channels do not fit blocks": (
        "Col2Im",
        {"x": floats(1, 5, 4)},
        {"s": [3, 3], "b": [2, 2]},
        {},
    ),
    "is not positive": ("Col2Im", {"x": floats(1, 4, 4)}, {"s": [3, 3], "b": [2, 0]}, {}),
    "theta has the wrong shape": ("AffineGrid", {"t": floats(1, 2, 2)}, {"s": [1, 1, 2, 2]}, {}),
    "an image is empty": ("AffineGrid", {"t": floats(1, 2, 3)}, {"s": [1, 1, 0, 2]}, {}),
    "a sampling_ratio of 0": (
        "RoiAlign",
        {"x": floats(1, 1, 2, 2), "r": floats(1, 4), "i": np.zeros(1, np.int64)},
        {},
        {},
    ),
    "regions do not fit": (
        "RoiAlign",
        {"x": floats(1, 1, 2, 2), "r": floats(1, 3), "i": np.zeros(1, np.int64)},
        {},
        {"sampling_ratio": 1},
    ),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_is_refused(message: str) -> None:
    operator, inputs, constants, options = REFUSED[message]
    with pytest.raises(sw.ImportModelError, match=message) as error:
        sw.from_onnx(model(operator, inputs, constants, **options))
    assert 'node "n"' in str(error.value)
