"""Operators along axes, those of a plug-in among them: the range check and the canonical form."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import IntegerAttr
from xdsl.irdl import operand_def, result_def

import stepwell as sw
from stepwell.core.algebra.dims import Shape
from stepwell.core.pipelines.staircase import run_passes
from stepwell.core.registry import make_context
from stepwell.dialects.graph.attrs import FLOAT_TENSOR, ints
from stepwell.dialects.graph.axes import AxesOp, AxisOp
from stepwell.dialects.graph.constructors import operator
from stepwell.dialects.graph.interfaces import GraphOp, ShapeFacts
from stepwell.dialects.graph.ops import QuantizeOp


@operator(axis=-1)
class FlipOp(AxisOp):
    """x with the elements along an axis in reverse order."""

    name = "outside.flip"

    x = operand_def(FLOAT_TENSOR)
    result = result_def(FLOAT_TENSOR)

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        return [shapes[0]]

    def reference(self, *arrays: Any) -> tuple[np.ndarray, ...]:
        return (np.flip(arrays[0], self.axis_from_front),)


@operator()
class FlipAllOp(AxesOp):
    """x with the elements along some axes in reverse order."""

    name = "outside.flip_all"

    x = operand_def(FLOAT_TENSOR)
    result = result_def(FLOAT_TENSOR)

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        return [shapes[0]]

    def reference(self, *arrays: Any) -> tuple[np.ndarray, ...]:
        return (np.flip(arrays[0], self.axes_from_front),)


Build = Callable[[sw.Builder, Any], Any]


def canonical(build: Build, shape: tuple[int, ...] = (4, 5, 6)) -> GraphOp:
    """The operator that is left of a program after `graph-canonicalize-ops`."""
    b = sw.Builder("main")
    b.output(build(b, b.input("x", shape, "f32")), name="y")
    module = b.module()
    run_passes(make_context(module.weights), module.op, "graph-canonicalize-ops")
    (op,) = (op for op in module.op.walk() if isinstance(op, AxisOp | AxesOp | QuantizeOp))
    return op


@pytest.mark.parametrize(
    "build",
    [
        lambda b, x: b.apply(FlipOp, x, axis=-2),
        lambda b, x: b.layer_norm(x, axis=-2),
        lambda b, x: b.rms_norm(x, axis=-2),
        lambda b, x: b.quantize(x, np.ones(5, np.float32), np.zeros(5, np.int8), axis=-2),
    ],
    ids=["flip", "layer_norm", "rms_norm", "quantize"],
)
def test_an_axis_is_counted_from_the_front(build: Build) -> None:
    axis = canonical(build).properties["axis"]
    assert isinstance(axis, IntegerAttr)
    assert axis.value.data == 1


@pytest.mark.parametrize(
    "build",
    [lambda b, x: b.apply(FlipAllOp, x, [-1, 0]), lambda b, x: b.l2_normalize(x, axes=[-1, 0])],
    ids=["flip_all", "l2_normalize"],
)
def test_axes_are_counted_from_the_front_in_ascending_order(build: Build) -> None:
    op = canonical(build)
    assert isinstance(op, AxesOp)
    assert ints(op.axes) == (0, 2)


@pytest.mark.parametrize(
    ("build", "shape", "message"),
    [
        (lambda b, x: b.apply(FlipOp, x, axis=2), (4, 5), "axis out of range, expected -2 <= axis"),
        (lambda b, x: b.apply(FlipOp, x, axis=-3), (4, 5), "axis out of range.* got -3"),
        (lambda b, x: b.apply(FlipOp, x, axis=0), (), "flip: axis out of range"),
        (lambda b, x: b.apply(FlipAllOp, x, [0, 2]), (4, 5), "flip_all: axis out of range.* got 2"),
        (lambda b, x: b.apply(FlipAllOp, x, [0, -2]), (4, 5), "flip_all: an axis is named twice"),
    ],
)
def test_a_wrong_axis_is_an_error(build: Build, shape: tuple[int, ...], message: str) -> None:
    with pytest.raises(sw.StepwellError, match=message):
        canonical(build, shape)
