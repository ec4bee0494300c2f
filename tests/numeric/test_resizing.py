"""Resize of ONNX against its reference evaluator, with sizes that are known and that are not."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto
from onnx.helper import make_graph, make_model, make_node, make_opsetid, make_tensor_value_info
from onnx.numpy_helper import from_array

import stepwell as sw

from ..harness import as_onnx, cases, close, floats, import_level, onnx_results

X = floats(1, 2, 5, 6)
COORDINATES = ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "asymmetric")
MODES = ("nearest", "linear", "cubic")
# Scales of the last axes of X, and the sizes of the result.
SCALED = (
    ([1.0, 1.0, 2.0, 3.0], [1, 2, 10, 18]),
    ([1.0, 1.0, 1.5, 1.4], [1, 2, 7, 8]),
    ([1.0, 1.0, 0.6, 0.4], [1, 2, 3, 2]),
)


def resize(
    shape: tuple[int | str, ...], scales: list[float] | None, opset: int = 19, **attributes: Any
) -> onnx.ModelProto:
    """A model of one Resize by known scales, or by sizes that it is given."""
    operands = ["x", "", "by"] if scales is not None else ["x", "", "", "by"]
    inputs = [make_tensor_value_info("x", TensorProto.FLOAT, shape)]
    weights = [] if scales is None else [from_array(np.array(scales, np.float32), "by")]
    if scales is None:
        inputs.append(make_tensor_value_info("by", TensorProto.INT64, [len(shape)]))
    node = make_node("Resize", operands, ["y"], name="n", **attributes)
    y = make_tensor_value_info("y", TensorProto.FLOAT, [None] * len(shape))
    graph = make_graph([node], "g", inputs, [y], weights)
    return make_model(graph, opset_imports=[make_opsetid("", opset)])


def cropped(
    shape: tuple[int, ...], part: list[float], scales: list[float], **attributes: Any
) -> onnx.ModelProto:
    """A model of one Resize of a part of its input: the first and last fractions of the axes."""
    model = resize(shape, scales, coordinate_transformation_mode="tf_crop_and_resize", **attributes)
    model.graph.node[0].input[1] = "part"
    model.graph.initializer.append(from_array(np.array(part, np.float32), "part"))
    return model


@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("mode", MODES)
def test_known_scales(mode: str, coordinates: str) -> None:
    options = {"mode": mode, "coordinate_transformation_mode": coordinates}
    for scales in ([1.0, 1.0, 2.0, 3.0], [1.0, 1.0, 0.6, 1.4]):
        as_onnx(resize(X.shape, scales, **options), X, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", MODES)
def test_corners_are_those_of_the_result(mode: str) -> None:
    """By ONNX's text; its reference evaluator counts 7.5 elements between the ends of 5 * 1.5."""
    options = {"mode": mode, "coordinate_transformation_mode": "align_corners"}
    for shape in (X.shape, (1, 2, "h", "w")):
        for scales, sizes in SCALED:
            by_sizes = resize(X.shape, None, **options)
            (want,) = onnx_results(by_sizes, X, np.array(sizes))
            got = sw.from_onnx(resize(shape, scales, **options)).run_reference(X)
            close(got, want, 1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", MODES)
def test_a_single_element(mode: str) -> None:
    """It is the first one, or the middle of the part that is taken."""
    options, scales = {"mode": mode}, [1.0, 1.0, 0.3, 0.3]
    first = resize(X.shape, scales, coordinate_transformation_mode="pytorch_half_pixel", **options)
    np.testing.assert_allclose(sw.from_onnx(first).run_reference(X), X[..., :1, :1], rtol=1e-6)
    corner = resize(X.shape, scales, coordinate_transformation_mode="align_corners", **options)
    np.testing.assert_allclose(sw.from_onnx(corner).run_reference(X), X[..., :1, :1], rtol=1e-6)
    part = cropped(X.shape, [0, 0, 0.0, 0.2, 1, 1, 1.0, 0.6], scales, **options)
    np.testing.assert_allclose(sw.from_onnx(part).run_reference(X), X[..., 2:3, 2:3], rtol=1e-5)


@pytest.mark.parametrize("mode", MODES)
def test_corners_of_a_part(mode: str) -> None:
    """The columns 1 to 6, with both ends."""
    x = X[..., [2, 0, 1, 2, 3, 4, 5, 3, 1]]
    model = cropped(x.shape, [0, 0, 0, 1 / 8, 1, 1, 1, 6 / 8], [1, 1, 1, 12.5 / 9], mode=mode)
    options = {"mode": mode, "coordinate_transformation_mode": "align_corners"}
    (want,) = onnx_results(resize(X.shape, None, **options), X, np.array([1, 2, 5, 12]))
    # Beyond the ends of the part a cubic sees other columns.
    inner = slice(3, -3) if mode == "cubic" else slice(None)
    got = np.asarray(sw.from_onnx(model).run_reference(x))
    close(got[..., inner], want[..., inner], 1e-4, atol=1e-5)


def test_filters() -> None:
    for mode in ("linear", "cubic"):
        as_onnx(resize(X.shape, [1, 1, 0.6, 0.3], mode=mode, antialias=1), X, rtol=1e-4, atol=1e-5)
        as_onnx(
            resize(X.shape, [1, 1, 0.6, 1.7], mode=mode, exclude_outside=1), X, rtol=1e-4, atol=1e-5
        )
    as_onnx(
        resize(X.shape, [1, 1, 1.5, 1.5], mode="cubic", cubic_coeff_a=-0.5), X, rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("rounding", ["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"])
def test_roundings(rounding: str) -> None:
    as_onnx(resize(X.shape, [1, 1, 0.7, 2.3], nearest_mode=rounding), X, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
def test_the_ratio_of_sides_is_kept(policy: str) -> None:
    options = {"keep_aspect_ratio_policy": policy, "axes": [2, 3]}
    node = make_node("Resize", ["x", "", "", "by"], ["y"], **options)
    infos = [
        make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", X.shape), ("y", None))
    ]
    graph = make_graph([node], "g", infos[:1], infos[1:], [from_array(np.array([7, 9]), "by")])
    as_onnx(make_model(graph, opset_imports=[make_opsetid("", 19)]), X, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", cases(MODES, ["linear"]))
def test_any_size_of_image(mode: str) -> None:
    """Compiled once: images of several sizes, each to sizes of the call."""
    model = resize((1, 2, "h", "w"), None, mode=mode)
    exe = sw.compile(sw.from_onnx(model), threads=1, opt_level=import_level())
    for rows, columns in ((5, 6), (1, 3)):
        x = np.ascontiguousarray(X[:, :, :rows, :columns])
        for sizes in ((7, 3), (rows, 12)):
            by = np.array([1, 2, *sizes])
            close(exe(x, by), onnx_results(model, x, by), 1e-4, atol=1e-5)


def test_elements_of_a_symbolic_image_are_repeated() -> None:
    module = sw.from_onnx(resize((1, 2, "h", "w"), [1, 1, 2, 3]))
    assert [spec.shape for spec in module.outputs] == [(1, 2, "2*h", "3*w")]
    assert "gather" not in module.text()
    np.testing.assert_array_equal(module.run_reference(X), X.repeat(2, 2).repeat(3, 3))


@pytest.mark.parametrize(
    ("scales", "attributes", "text"),
    [
        ([1, 1, 2], {}, "scales do not fit, expected 4 positive numbers, got [1.0, 1.0, 2.0]"),
        ([1, 1, 0, 2], {}, "scales do not fit, expected 4 positive numbers"),
        ([1, 1, 2, 2], {"mode": "area"}, "mode is unknown, expected nearest, linear or cubic"),
        ([1, 1, 2, 2], {"nearest_mode": "odd"}, "nearest_mode is unknown"),
        ([1, 1, 2, 2], {"coordinate_transformation_mode": "x"}, "transformation_mode is unknown"),
        (
            [1, 1, 2, 2],
            {"coordinate_transformation_mode": "tf_crop_and_resize"},
            "roi does not fit",
        ),
        ([1, 1, 0.1, 1], {}, "an empty dimension grows, or one becomes empty, expected 5, got 0"),
        ([], {}, "either scales or sizes must be given, expected 1, got 0"),
    ],
)
def test_what_does_not_fit(scales: list[float], attributes: dict[str, Any], text: str) -> None:
    with pytest.raises(sw.ImportModelError, match=re.escape(text)) as error:
        sw.from_onnx(resize(X.shape, scales, **attributes))
    assert 'node "n"' in str(error.value)
