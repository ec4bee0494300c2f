"""The inputs of a program that hold indices, and how large these may be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from xdsl.ir import BlockArgument, Operation, SSAValue

from ...core.algebra.dims import Dim
from ...core.ir.module import Module
from ...dialects.graph.demands import IndexBound, demands, read_operands
from ...dialects.graph.interfaces import GraphOp
from ...dialects.graph.kinds import FusionKind
from ...dialects.graph.ops.control.check import CheckIndicesOp
from ...dialects.graph.ops.elementwise.cast import CastOp
from ...dialects.graph.rearranging import is_alias
from ...dialects.graph.sizes.shapes import SymbolicShapes
from ...dialects.stages import stage_of

_MOVES = (FusionKind.INJECTIVE, FusionKind.BROADCAST)


def index_limits(module: Module, sizes: Mapping[str, int]) -> dict[int, int]:
    """By the number of each input that holds indices the size of the least that they point into.

    An input does if operators that only move or cast numbers bring it to one that reads or writes
    at indices.

    Args:
        module: the program; only those of stage `graph` say what is an index.
        sizes: the symbolic sizes; others are 1.
    """
    if stage_of(module.op) != "graph":
        return {}
    shapes, found = SymbolicShapes(module.main), dict[int, int]()
    for op in module.main.body.block.ops:
        for indices, size in _limits(op, shapes):
            limit = size.evaluate({name: sizes.get(name, 1) for name in size.symbols})
            for argument in _sources(indices):
                found[argument.index] = min(limit, found.get(argument.index, limit))
    return found


def _limits(op: Operation, shapes: SymbolicShapes) -> Iterator[tuple[SSAValue, Dim]]:
    """The operands that hold indices, and what these are below."""
    if isinstance(op, CheckIndicesOp):
        yield op.indices, op.limit(shapes)
    elif isinstance(op, GraphOp):
        for bound in demands(op, IndexBound):
            yield bound.operand, shapes.shape(bound.into)[bound.dimension]


def _sources(value: SSAValue) -> Iterator[BlockArgument]:
    """The arguments whose elements a value has."""
    if isinstance(value, BlockArgument):
        yield value
        return
    op = value.owner
    if not isinstance(op, GraphOp):
        return
    if is_alias(op):
        yield from _sources(op.operands[0])
    elif op.fusion in _MOVES or isinstance(op, CastOp):
        read = read_operands(op)
        for operand in op.operands:
            if operand not in read:
                yield from _sources(operand)
