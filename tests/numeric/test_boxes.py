"""Non-maximum suppression: against the reference, and against that of ONNX."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto
from onnx.helper import make_graph, make_model, make_node, make_opsetid, make_tensor_value_info
from onnx.numpy_helper import from_array

import stepwell as sw

from ..harness import RNG, as_onnx, cases, same


def some_boxes(batch: int, count: int) -> np.ndarray:
    middle = RNG.random((batch, count, 2)) * 10
    sides = RNG.random((batch, count, 2)) * 3
    return np.concatenate([middle - sides, middle + sides], axis=2).astype(np.float32)


def some_scores(*shape: int) -> np.ndarray:
    """Scores of few values, so that some are equal."""
    return RNG.integers(0, 9, shape).astype(np.float32) / 8


def scalars(most: int, overlap: float, least: float) -> list[np.ndarray]:
    return [np.array(most), np.array(overlap, np.float32), np.array(least, np.float32)]


def operator(batch: Any, classes: Any, count: Any, dtype: str = "f32") -> sw.Module:
    b = sw.Builder("main")
    boxes = b.input("boxes", (batch, count, 4), dtype)
    scores = b.input("scores", (batch, classes, count), dtype)
    limits = [b.input("most", (), "i64"), *(b.input(name, (), dtype) for name in ("u", "least"))]
    b.output(b.suppress_boxes(boxes, scores, *limits), name="y")
    return b.module()


@pytest.mark.parametrize("threads", cases([1, 2], [2]))
def test_any_number_of_boxes(threads: int) -> None:
    module = operator("b", "c", "n")
    exe = sw.compile(module, threads=threads)
    for batch, classes, count in ((2, 3, 40), (1, 1, 1), (1, 2, 9), (2, 2, 0), (0, 2, 3)):
        boxes = some_boxes(batch, count)
        for most in (0, -3, 2, count + 1):
            for overlap, least in ((0.5, np.nan), (0.0, 0.3), (1.0, -np.inf), (-1.0, 0.0)):
                scores = some_scores(batch, classes, count)
                given = [boxes, scores, *scalars(most, overlap, least)]
                want = module.run_reference(*given)
                same(exe(*given), want)


def test_special_numbers(all_tests: bool) -> None:
    module = operator(1, 1, 6)
    exe = sw.compile(module, threads=1, check=all_tests)
    boxes = some_boxes(1, 6)
    boxes[0, 3, 1] = np.nan
    boxes[0, 4] = boxes[0, 5]
    boxes[0, 2, 2:] = boxes[0, 2, :2]
    scores = np.array([[[np.nan, -np.inf, np.inf, 0.5, 0.5, 0.5]]], np.float32)
    found = exe(boxes, scores, *scalars(9, 0.9, np.nan))
    np.testing.assert_array_equal(found, [[[2, 3, 4, 1, -1, -1]]])
    assert (exe(boxes, scores, *scalars(9, 0.9, np.inf)) == -1).all()


def test_half_precision() -> None:
    module = operator(1, 2, 30, "f16")
    exe = sw.compile(module, threads=1)
    most, *limits = scalars(20, 0.25, 0.1)
    given = [x.astype(np.float16) for x in (some_boxes(1, 30), some_scores(1, 2, 30), *limits)]
    given.insert(2, most)
    same(exe(*given), module.run_reference(*given))


def model(
    count: int | str, known: dict[str, Any], classes: int = 2, **attributes: int
) -> onnx.ModelProto:
    """A model with some of the limits as constants, and the others as inputs."""
    kinds = {"most": TensorProto.INT64, "overlap": TensorProto.FLOAT, "least": TensorProto.FLOAT}
    shapes = {"boxes": [2, count, 4], "scores": [2, classes, count]}
    inputs = [make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in shapes.items()]
    inputs += [make_tensor_value_info(n, k, [1]) for n, k in kinds.items() if n not in known]
    weights = [from_array(value, name) for name, value in known.items() if value is not None]
    names = [name if known.get(name, 0) is not None else "" for name in kinds]
    node = make_node("NonMaxSuppression", ["boxes", "scores", *names], ["y"], "n", **attributes)
    y = make_tensor_value_info("y", TensorProto.INT64, [None, 3])
    graph = make_graph([node], "g", inputs, [y], weights)
    return make_model(graph, opset_imports=[make_opsetid("", 11)])


@pytest.mark.parametrize("center", [0, 1])
def test_models(center: int) -> None:
    boxes, scores = some_boxes(2, 25), some_scores(2, 2, 25)
    if center:
        boxes = np.concatenate([boxes[..., :2], boxes[..., 2:] - boxes[..., :2]], axis=2)
    else:
        # Any diagonal gives a box.
        boxes[:, ::2] = boxes[:, ::2, [2, 1, 0, 3]]
    known = {"most": np.array([4]), "overlap": np.array([0.3], np.float32)}
    for least in (None, np.array([0.2], np.float32)):
        program = model(25, {**known, "least": least}, center_point_box=center)
        way = "compiled" if least is None and not center else "reference"
        as_onnx(program, boxes, scores, ways=[way], rtol=0)
    limits = [np.array([30]), np.array([0.5], np.float32), np.array([0.4], np.float32)]
    program = model("n", {}, center_point_box=center)
    as_onnx(program, boxes, scores, *limits, ways=["compiled"], rtol=0, threads=1)


def test_no_limit_means_no_box() -> None:
    program = model(5, {"most": None, "overlap": None, "least": None})
    found = sw.from_onnx(program).run_reference(some_boxes(2, 5), some_scores(2, 2, 5))
    assert isinstance(found, np.ndarray)
    assert found.shape == (0, 3)


def test_boxes_of_another_shape_are_refused() -> None:
    program = model(5, {})
    program.graph.input[0].type.tensor_type.shape.dim[2].dim_value = 5
    with pytest.raises(sw.ImportModelError, match=r'boxes have the wrong shape.*node "n"'):
        sw.from_onnx(program)
