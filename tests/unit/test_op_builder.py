"""A function that composes operators works wherever operators come from."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pytest
from onnx.helper import make_node
from xdsl.builder import Builder as IRBuilder
from xdsl.dialects.builtin import TensorType, bf16, f32, i1, i32, i64
from xdsl.ir import Block, Operation
from xdsl.rewriter import InsertPoint

import stepwell as sw
from stepwell.core.ir.provenance import named
from stepwell.core.ir.typed import owned
from stepwell.core.ir.weights import WeightStore
from stepwell.dialects.graph import ops as graph
from stepwell.dialects.graph.dialect import Graph
from stepwell.dialects.graph.op_builder import (
    InsertingBuilder,
    OpBuilder,
    V,
    operators_of,
    parameters_of,
)
from stepwell.frontends.importing.values import Value
from stepwell.frontends.onnx.nodes import Node
from stepwell.frontends.onnx.registry import converts

from .test_onnx_import import make_opsetid, model

EXPECTED = ["constant", "less", "constant", "mul", "expm1", "constant", "where", "top_k", "concat"]

OF_OWN_TYPE = {
    "assemble": {"indptr": i64, "indices": i64, "sources": i64},
    "attention": {"lengths": i64},
    "check": {"condition": i1, "details": i64},
    "check_indices": {"x": i64},
    "dynamic_broadcast": {"sizes": i64},
    "dynamic_reshape": {"sizes": i64},
    "dynamic_slice": {"start": i64, "step": i64, "count": i64},
    "gather": {"indices": i64},
    "gather_elements": {"indices": i64},
    "gather_nd": {"indices": i64},
    "histogram": {"x": i64},
    "one_hot": {"indices": i64},
    "scatter_elements": {"indices": i64},
    "scatter_nd": {"indices": i64},
    "segment_reduce": {"offsets": i64},
    "sort_edges": {"targets": i64, "sources": i64},
    "sort_edges_with_loops": {"nodes": i64},
    "suppress_boxes": {"most": i64},
    "tree_ensemble": {"feature": i64, "next": i64, "leaf": i64, "root": i64, "depth": i64},
    "where": {"condition": i1},
}


def composed(b: OpBuilder[V], x: V) -> V:
    """Operators with numbers, with several results, and with a list of operands."""
    curve = b.where(b.less(x, 0), b.expm1(b.mul(x, 2.0)), 1)
    values, _ = b.top_k(curve, 2, axis=-1)
    return b.concat([values, curve], axis=1)


def operators(ops: Iterable[Operation]) -> list[str]:
    found = (op.name.partition(".") for op in ops)
    return [name for dialect, _, name in found if dialect == "graph"]


class Inserting:
    """A block with an argument and an operation, before which operators are inserted."""

    def __init__(self, *types: TensorType, weights: WeightStore | None = None) -> None:
        self.block = Block(arg_types=types)
        self.last = graph.ReluOp(self.block.args[0])
        self.last.location = named("layer")
        self.block.add_op(self.last)
        place = IRBuilder(InsertPoint.before(self.last))
        self.b = InsertingBuilder(place, [self.last], weights)


def in_python() -> Iterable[Operation]:
    b = sw.Builder("main")
    b.output(composed(b, b.input("x", (2, 4), "f32")))
    return b.module().op.walk()


def in_a_model() -> Iterable[Operation]:
    @converts("Composed", since=1, domain="com.acme")
    def convert(node: Node) -> Value:
        return composed(node, node.input(0))

    source = model([make_node("Composed", ["x"], ["y"], domain="com.acme")])
    source.opset_import.append(make_opsetid("com.acme", 1))
    return sw.from_onnx(source).op.walk()


def in_a_rewrite() -> Iterable[Operation]:
    place = Inserting(TensorType(f32, [2, 4]))
    composed(place.b, place.block.args[0])
    assert {op.location for op in place.block.ops} == {named("layer")}
    place.last.detach()
    return place.block.ops


@pytest.mark.parametrize("build", [in_python, in_a_model, in_a_rewrite])
def test_one_function_for_all_places(build: Callable[[], Iterable[Operation]]) -> None:
    assert operators(build()) == EXPECTED


def test_numbers_have_the_type_of_the_other_operand() -> None:
    place = Inserting(TensorType(bf16, [2]), TensorType(i32, [2]))
    for x in place.block.args:
        place.b.max(0, x)
    place.b.arange(4)
    found = [op.result.type for op in place.block.ops if isinstance(op, graph.ConstantOp)]
    assert found == [TensorType(kind, []) for kind in (bf16, i32, i64)]


def test_numbers_for_indices_are_integers() -> None:
    place = Inserting(TensorType(f32, [2]))
    made = place.b.gather(place.block.args[0], 1, axis=0)
    assert made.type == TensorType(f32, [])


def test_operands_of_an_element_type_of_their_own() -> None:
    found = {name: parameters_of(kind).own_types for name, kind in operators_of(Graph).items()}
    assert {name: own for name, own in found.items() if own} == OF_OWN_TYPE


def test_a_number_for_a_condition_is_a_truth_value() -> None:
    place = Inserting(TensorType(f32, [2]))
    made = place.b.where(True, place.block.args[0], 0)
    assert made.type == TensorType(f32, [2])


def test_lists_are_operands_where_there_are_several() -> None:
    b = sw.Builder()
    x = b.input("x", (2,), "f32")
    b.output(b.concat([np.zeros(2), b.add(x, [1, 2])], axis=0))
    assert operators(b.module().op.walk()) == ["constant", "add", "constant", "concat"]


def test_a_list_of_one_value_is_the_value() -> None:
    b = sw.Builder()
    x = b.input("x", (2,), "f16")
    b.output(b.concat([b.add((x,), 1)], axis=0))
    assert operators(b.module().op.walk()) == ["constant", "add", "concat"]


def test_a_number_that_would_be_cut_is_refused() -> None:
    place = Inserting(TensorType(i32, [2]))
    with pytest.raises(TypeError, match=r"graph\.add: 0\.5 is not of type i32"):
        place.b.add(place.block.args[0], 0.5)


def test_large_constants_are_weights() -> None:
    weights = WeightStore()
    place = Inserting(TensorType(f32, [2]), weights=weights)
    made = [place.b.constant(np.ones(n, np.float32), "table") for n in (16, 17)]
    assert [owned(value, graph.ConstantOp).key for value in made] == [None, "table"]
    np.testing.assert_array_equal(weights["table"], np.ones(17))


def test_an_operator_has_the_location_of_its_name_or_its_sources() -> None:
    place = Inserting(TensorType(f32, [2]))
    x = place.block.args[0]
    own = graph.ReluOp(x)
    own.location = named("own")
    made = place.b.neg(x, name="given"), place.b.insert(graph.AbsOp(x), [own])
    assert [owned(value, Operation).location for value in made] == [named("given"), named("own")]


def test_unknown_operators_are_named() -> None:
    place, name = Inserting(TensorType(f32, [2])), "rellu"
    with pytest.raises(AttributeError, match='no operator "rellu"; nearest: relu'):
        getattr(place.b, name)


def test_operators_that_only_passes_add_are_no_methods() -> None:
    place, name = Inserting(TensorType(f32, [2])), "small_exp"
    with pytest.raises(AttributeError, match='no operator "small_exp"'):
        getattr(place.b, name)
    assert name not in dir(place.b)
