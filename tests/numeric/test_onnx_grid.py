"""GridSample of ONNX against its reference evaluator."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto
from onnx.helper import make_graph, make_model, make_node, make_opsetid, make_tensor_value_info

import stepwell as sw

from ..harness import RNG, cases, close, floats, onnx_results

SYMBOLIC = ("n", 2, "h", "w"), ("n", "i", "j", 2)


def model(image: Sequence[int | str], grid: Sequence[int | str], **attributes: Any) -> Any:
    pairs = (("x", image), ("g", grid))
    infos = [make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in pairs]
    node = make_node("GridSample", ["x", "g"], ["y"], name="n", **attributes)
    y = make_tensor_value_info("y", TensorProto.FLOAT, [None] * len(image))
    return make_model(make_graph([node], "g", infos, [y]), opset_imports=[make_opsetid("", 22)])


def sampled_as_onnx(
    source: onnx.ModelProto, run: Any, image: tuple[int, ...], grid: tuple[int, ...]
) -> None:
    x, g = floats(*image), RNG.uniform(-1.6, 1.6, grid).astype(np.float32)
    close(run(x, g), onnx_results(source, x, g), 1e-4, 1e-5)


WAYS = [*itertools.product(("nearest", "linear", "cubic"), ("zeros", "border", "reflection"))]
OTHERS = [("nearest", "reflection"), ("linear", "border"), ("cubic", "zeros")]


@pytest.mark.parametrize("way", cases(WAYS, [w for w in WAYS if w not in OTHERS]), ids="-".join)
def test_any_size_of_image_and_grid(way: tuple[str, str], all_tests: bool) -> None:
    mode, padding = way
    for align in (0, 1) if all_tests or mode != "cubic" else (1,):
        source = model(*SYMBOLIC, mode=mode, padding_mode=padding, align_corners=align)
        run = sw.from_onnx(source).run_reference
        sampled_as_onnx(source, run, (2, 2, 4, 5), (2, 3, 2, 2))
        if all_tests or mode == "nearest":
            sampled_as_onnx(source, run, (1, 2, 2, 3), (1, 1, 4, 2))


def test_compiled_with_three_dimensions() -> None:
    source = model((1, 2, 3, 4, 5), (1, 2, 2, 3, 3), padding_mode="border")
    sampled_as_onnx(
        source, sw.compile(sw.from_onnx(source), threads=1), (1, 2, 3, 4, 5), (1, 2, 2, 3, 3)
    )


def test_an_image_of_one_element_is_reflected_to_itself() -> None:
    source = model((1, 1, 1, 1), (1, 2, 2, 2), padding_mode="reflection", align_corners=1)
    g = RNG.uniform(-3, 3, (1, 2, 2, 2)).astype(np.float32)
    y = sw.from_onnx(source).run_reference(np.full((1, 1, 1, 1), 3, np.float32), g)
    np.testing.assert_array_equal(y, np.full((1, 1, 2, 2), 3, np.float32))


@pytest.mark.parametrize(
    ("grid", "attributes", "text"),
    [
        ((1, 2, 2, 3), {}, "the grid does not fit the image, expected 2 numbers each"),
        ((1, 2, 2, 2), {"mode": "area"}, "mode is unknown, expected linear, nearest or cubic"),
        ((1, 2, 2, 2), {"padding_mode": "wrap"}, "padding_mode is unknown, expected zeros"),
    ],
)
def test_what_does_not_fit(grid: tuple[int, ...], attributes: dict[str, str], text: str) -> None:
    with pytest.raises(sw.ImportModelError, match=re.escape(text)):
        sw.from_onnx(model((1, 1, 3, 3), grid, **attributes))
