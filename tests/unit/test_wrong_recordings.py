"""Operators that use their nest in a wrong way are named when they are recorded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import pytest
from xdsl.dialects.builtin import TensorType, f32
from xdsl.ir import Block, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, result_def

from stepwell.core.dims import Shape
from stepwell.core.errors import UnsupportedError
from stepwell.dialects.graph.attrs import FLOAT_TENSOR
from stepwell.dialects.graph.interfaces import GraphOp, Index, Nest, ShapeFacts, WritingNest
from stepwell.dialects.graph.plan.recording import Recorder


class Wrong(GraphOp):
    x = operand_def(FLOAT_TENSOR)
    result = result_def(FLOAT_TENSOR)
    DOES: ClassVar[Callable[..., Any]]

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        return [shapes[0]]

    def reference(self, *arrays: object) -> tuple[Any, ...]:
        raise NotImplementedError


@irdl_op_definition
class PullingOp(Wrong):
    name = "wrong.pulling"

    def value_at(self, nest: Nest, index: Index, result: int = 0) -> SSAValue:
        return type(self).DOES(self, nest, index)


@irdl_op_definition
class PushingOp(Wrong):
    name = "wrong.pushing"

    def write(self, nest: WritingNest) -> None:
        with nest.loops([nest.extent(self.x, dim) for dim in range(2)]) as index:
            type(self).DOES(self, nest, index)


@pytest.mark.parametrize(
    ("kind", "does", "message"),
    [
        (PullingOp, lambda op, n, i: n.at(op.x, i[:1]), "another rank, expected 2, got 1"),
        (PullingOp, lambda op, n, i: n.at(op.result, i), "reads what is not an operand"),
        (PullingOp, lambda op, n, i: None, "of another type, expected f32, got NoneType"),
        (PullingOp, lambda op, n, i: n.value(i[0]), "of another type, expected f32, got index"),
        (PushingOp, lambda op, n, i: n.at(op.result, i), "reads what is not an operand"),
        (PushingOp, lambda op, n, i: n.write(1, i, n.at(op.x, i)), "expected 0 to 0, got 1"),
        (PushingOp, lambda op, n, i: n.update(-1, i, n.at(op.x, i)), "expected 0 to 0, got -1"),
        (PushingOp, lambda op, n, i: n.fill(2, lambda j: n.at(op.x, j)), "0 to 0, got 2"),
    ],
)
def test_wrong_uses_name_the_operator(
    monkeypatch: pytest.MonkeyPatch, kind: type[Wrong], does: Callable[..., Any], message: str
) -> None:
    monkeypatch.setattr(kind, "DOES", does, raising=False)
    x = Block(arg_types=[TensorType(f32, [4, 6])]).args[0]
    op = kind(operands=[x])
    with pytest.raises(UnsupportedError, match=f"{kind.name}: .*{message}"):
        Recorder().recording(op)
