"""Operators that use their nest in a wrong way are named when they are recorded."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, ClassVar

import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import TensorType, f32, f64
from xdsl.ir import Block, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.irdl import irdl_op_definition

from stepwell.core.errors import UnsupportedError
from stepwell.core.ir.provenance import named
from stepwell.dialects.graph.interfaces import FusionKind, Indices, Nest
from stepwell.dialects.graph.nests import scalars
from stepwell.dialects.graph.nests.nest import LocalBuffer, WritingNest
from stepwell.dialects.graph.nests.recording import Recorder

from .unary import Unary


class Wrong(Unary):
    DOES: ClassVar[Callable[..., Any]]


@irdl_op_definition
class PullingOp(Wrong):
    name = "wrong.pulling"

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        return type(self).DOES(self, nest, index)


@irdl_op_definition
class PushingOp(Wrong):
    name = "wrong.pushing"
    FUSION: ClassVar[FusionKind] = FusionKind.NEST

    def write(self, k: Any, *_: Any) -> None:
        nest: WritingNest = k.nest
        with nest.loops([nest.extent(self.x, dim) for dim in range(2)]) as index:
            type(self).DOES(self, nest, index)


OTHER = AffineExpr.dimension(40)
SCALAR = Block(arg_types=[f32]).args[0]


def total(op: Any, nest: Nest, combine: str = "add", step: Any = None) -> SSAValue:
    zero, extent = scalars.zero(nest, f32), nest.extent(op.x, 0)
    return nest.reduce([extent], combine, zero, step or (lambda k, total: total))


def mixed(op: Any, nest: Nest, index: Indices) -> SSAValue:
    return nest.insert(arith.AddfOp(nest.at(op.x, index), nest.constant(1.0, f64), result_type=f32))


def after_its_loop(op: Any, nest: Nest, index: Indices) -> SSAValue:
    found: list[SSAValue] = []

    def step(_: Indices, total: SSAValue) -> SSAValue:
        found.append(scalars.add(nest, total, nest.constant(1.0, f32)))
        return total

    total(op, nest, step=step)
    return found[0]


def after_a_loop_that_failed(op: Any, nest: Nest, index: Indices) -> SSAValue:
    found: list[SSAValue] = []

    def step(_: Indices, total: SSAValue) -> SSAValue:
        found.append(scalars.add(nest, total, nest.constant(1.0, f32)))
        raise KeyError

    with suppress(KeyError):
        total(op, nest, step=step)
    return found[0]


def carry(op: Any, nest: WritingNest, step: Callable[..., Any]) -> None:
    nest.serial(nest.extent(op.x, 0), [scalars.zero(nest, f32)], lambda _, carried: step(carried))


def local(nest: WritingNest) -> LocalBuffer:
    return nest.local((AffineExpr.constant(4),), f32)


def another_loop(op: Any, nest: WritingNest, index: Indices) -> None:
    with nest.loops([nest.extent(op.x, 0)]) as (first,):
        nest.write(0, index, nest.at(op.x, index))
    nest.write(0, (first, index[1]), nest.at(op.x, index))


def local_after_its_loop(op: Any, nest: WritingNest, index: Indices) -> None:
    with nest.loops([nest.extent(op.x, 0)]) as (first,):
        buffer = local(nest)
        buffer.put((first,), nest.constant(1.0, f32))
    nest.write(0, index, buffer.at((AffineExpr.constant(0),)))


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
        (PullingOp, lambda op, n, i: n.at(op.x, (0, 1)), "not an index expression, .*, got int"),
        (PullingOp, lambda op, n, i: n.at(op.x, (i[0], OTHER)), "is of another nest"),
        (PullingOp, lambda op, n, i: n.extent(op.x, 7), "have a dimension, expected 0 to 1, got 7"),
        (PullingOp, lambda op, n, i: n.extent(SCALAR, 0), "the size of another tensor"),
        (PullingOp, lambda op, n, i: n.stored_entry(op.x, i[0]), "entries of a dense operand"),
        (PullingOp, lambda op, n, i: scalars.add(n, SCALAR, SCALAR), "not of this nest, got f32"),
        (PullingOp, lambda op, n, i: SCALAR, "not of this nest, got f32"),
        (PullingOp, lambda op, n, i: n.insert(arith.AddfOp(n.at(op.x, i), 1.0)), "raised "),
        (PullingOp, mixed, "inserts an operation that is not valid: .*f32.*f64"),
        (PullingOp, lambda op, n, i: {}["x"], "raised KeyError: 'x' \\(node \"here\"\\)"),
        (PullingOp, lambda op, n, i: total(op, n, "plus"), "unknown combiner, .*, got plus"),
        (PullingOp, lambda op, n, i: total(op, n, step=lambda k, t: None), "not a scalar, .*None"),
        (PullingOp, after_its_loop, "uses a scalar of a loop outside of it .*; a loop returns"),
        (PullingOp, after_a_loop_that_failed, "uses a scalar of a loop outside of it"),
        (PushingOp, lambda op, n, i: carry(op, n, lambda c: None), "expected f32, got NoneType"),
        (PushingOp, lambda op, n, i: carry(op, n, lambda c: [*c, *c]), "f32, got 2 values"),
        (PushingOp, lambda op, n, i: carry(op, n, lambda c: [n.value(i[0])]), "f32, got index"),
        (PushingOp, lambda op, n, i: n.loops([1]).__enter__(), "not an index expression, .*int"),
        (PushingOp, lambda op, n, i: n.write(0, i, n.value(i[0])), "expected f32, got index"),
        (PushingOp, lambda op, n, i: n.write(0, i, 1.0), "not a scalar, .*, got float"),
        (PushingOp, lambda op, n, i: n.update(0, i, n.at(op.x, i), "sub"), "combiner, .*, got sub"),
        (PushingOp, lambda op, n, i: local(n).put(i[:1], n.value(i[0])), "f32, got index"),
        (PushingOp, another_loop, "uses the variable of a loop outside of it"),
        (PushingOp, local_after_its_loop, "uses a local buffer of a loop outside of it"),
    ],
)
def test_wrong_uses_name_the_operator(
    monkeypatch: pytest.MonkeyPatch, kind: type[Wrong], does: Callable[..., Any], message: str
) -> None:
    monkeypatch.setattr(kind, "DOES", does, raising=False)
    x = Block(arg_types=[TensorType(f32, [4, 6])]).args[0]
    op = kind(operands=[x])
    op.location = named("here")
    with pytest.raises(UnsupportedError, match=f"{kind.name}: .*{message}"):
        Recorder().recording(op)
