"""The work of the operators of a kernel: arithmetic operations and bytes moved."""

from __future__ import annotations

from xdsl.dialects import func
from xdsl.ir import BlockArgument, SSAValue

from ...core.algebra.dims import Dim
from ...core.ir.context import Work
from ...core.ir.provenance import names
from ...dialects.graph.interfaces import GraphOp
from ...dialects.graph.plan.moved import bytes_of
from ...dialects.graph.sizes.shapes import SymbolicShapes


def work_of(function: func.FuncOp, shapes: SymbolicShapes) -> tuple[Work, ...]:
    """The work of each operator of a primitive function, in sizes of its arguments."""
    last = function.body.block.last_op
    returned = set(last.operands) if last is not None else set[SSAValue]()
    found: list[Work] = []
    for op in function.body.block.ops:
        if isinstance(op, GraphOp):
            # Bytes are read from arguments and written to results of the function.
            read = [v for v in dict.fromkeys(op.operands) if isinstance(v, BlockArgument)]
            written = [value for value in op.results if value in returned]
            sizes = op.flops(shapes), bytes_of([*read, *written], shapes)
            found.append(Work(names(op), *(_in_arguments(size, shapes) for size in sizes)))
    return tuple(found)


def _in_arguments(dim: Dim | None, shapes: SymbolicShapes) -> Dim | None:
    return None if dim is None else shapes.in_arguments(dim)
