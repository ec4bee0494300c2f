"""The facts that operators state fit what they define, and are stated once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from xdsl.dialects.builtin import TensorType, f32, i32, i64
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, result_def

from stepwell.core import registry
from stepwell.core.algebra.dims import Dim, Shape
from stepwell.dialects.graph import ops as graph
from stepwell.dialects.graph.attrs import FLOAT_TENSOR
from stepwell.dialects.graph.demands import (
    IndexBound,
    SizeBound,
    SizeResult,
    read_operands,
    size_results,
)
from stepwell.dialects.graph.interfaces import FusionKind, GraphOp, ShapeFacts
from stepwell.dialects.graph.plan.visibility import jumps
from stepwell.dialects.graph.traits import Discontinuous, HalfPrecision

OPERATORS = [op for op in registry.own_dialects()["graph"]().operations if issubclass(op, GraphOp)]


def of_types(*types: Attribute) -> Sequence[SSAValue]:
    return Block(arg_types=[TensorType(type, [6]) for type in types]).args


@pytest.mark.parametrize("op", OPERATORS, ids=lambda op: op.name)
def test_operators_write_where_their_kind_is_a_nest(op: type[GraphOp]) -> None:
    assert (op.write is not GraphOp.write) == (op.FUSION is FusionKind.NEST)
    assert op.write is GraphOp.write or op.value_at is GraphOp.value_at


@pytest.mark.parametrize("trait", [Discontinuous, HalfPrecision])
def test_traits_with_values_are_stated_once(trait: Any) -> None:
    """Traits of base classes add up: two of one kind would contradict each other."""
    counts = [len(op.get_traits_of_type(trait)) for op in OPERATORS]
    assert set(counts) == {0, 1}


def test_operands_with_which_a_result_jumps() -> None:
    x, y = of_types(f32, f32)
    rows, columns = of_types(i64, i64)
    assert [jumps(graph.PowOp(x, y), number) for number in range(2)] == [False, True]
    assert [jumps(graph.AddOp(x, y), number) for number in range(2)] == [False, False]
    assert [jumps(graph.LessOp(x, y), number) for number in range(2)] == [True, True]
    assert jumps(graph.FloorOp(x), 0)
    assert not jumps(graph.CastOp(rows, i32), 0)
    sorted_edges = graph.SortEdgesOp(rows, columns, x, y)
    assert [jumps(sorted_edges, number) for number in range(4)] == [False] * 4


def test_what_is_read_before_a_kernel_and_kept_after_it() -> None:
    (x,), (rows, columns) = of_types(f32), of_types(i64, i64)
    edges = graph.SortEdgesWithLoopsOp(rows, columns, x)
    assert read_operands(edges) == {rows, columns}
    assert size_results(edges) == {edges.count}
    assert IndexBound(rows, x, 0) in edges.demands
    assert SizeResult(edges.count) in edges.demands
    assert not read_operands(graph.NegOp(x))
    assert not size_results(graph.NegOp(x))


@irdl_op_definition
class UnknownKindOp(GraphOp):
    """An operator that writes, and does not say so."""

    name = "outside.unknown_kind"

    x = operand_def(FLOAT_TENSOR)
    result = result_def(FLOAT_TENSOR)

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        return [shapes[0]]

    def reference(self, *arrays: Any) -> tuple[Any, ...]:
        return arrays

    def write(self, k: Any, *_: Any) -> None:
        raise AssertionError


def test_an_operator_that_writes_and_is_no_nest_is_opaque() -> None:
    (x,) = of_types(f32)
    expected = "outside.unknown_kind has no value at an index: it is opaque"
    assert UnknownKindOp(operands=[x]).refusal == expected


def test_bounds_name_operands_of_lists() -> None:
    a, b = of_types(f32, f32)
    found = SizeBound(b, 0, 1).conditions(graph.ConcatOp([a, b], axis=0), Dim.symbol("n"))
    assert [condition.dimension for condition in found] == ["dimension 0 of inputs"]
