"""Programs on an edge list as programs on a graph: a partition has the edges sorted already."""

from __future__ import annotations

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr
from xdsl.ir import Block, BlockArgument, SSAValue
from xdsl.rewriter import Rewriter

from ..core.errors import CompileError, explain
from ..core.ir.public_function import argument_attrs
from ..dialects.graph import ops as graph
from ..dialects.graph.sizes.attributes import argument_attributes
from ..dialects.graph.sizes.shapes import SymbolicShapes

_HINT = "edges that are sorted by csr_from_edges, as of gnn.EdgeListSpec(); or use gnn.GraphSpec()"


def take_graph(function: func.FuncOp) -> bool | None:
    """Make the matrix of an edge list an argument, in the place of the list and its weights.

        edges, x: a = assemble(sort_edges(edges)); f(a, x)  ->  a, x: f(a, x)

    Returns:
        Whether the edges have weights, None for a program that sorts no edges.

    Raises:
        CompileError: if the program uses the list, or the order of its edges, in another way, or
            several lists.
    """
    block = function.body.block
    sorts = [op for op in block.ops if isinstance(op, graph.SortEdgesOp)]
    loops = [op for op in block.ops if isinstance(op, graph.SortEdgesWithLoopsOp)]
    if not sorts and not loops:
        return None
    matrices = [op for op in block.ops if isinstance(op, graph.AssembleOp)]
    if len(sorts) != 1 or len(matrices) != 1:
        what = "adds self loops to an edge list" if loops else "sorts several edge lists"
        raise _refusal(f"the program {what}")
    (sort,), (matrix,) = sorts, matrices
    weights = _weights(matrix, sort)
    lists = {_list_of(sort), *([] if weights is None else [weights])}
    shapes = SymbolicShapes(function)
    names = [str(shapes.shape(matrix.result)[0]), str(shapes.shape(sort.order)[0])]
    made = block.insert_arg(matrix.result.type, 0)
    made.name_hint = "graph"
    Rewriter.replace_op(matrix, [], [made])
    _erase_unused(block)
    if used := [v for v in block.args if v in lists and v.uses]:
        raise _refusal(f'argument "{used[0].name_hint}" is used by edges in the order of the list')
    _drop(function, [v for v in block.args if v in lists], names)
    return weights is not None


def _weights(matrix: graph.AssembleOp, sort: graph.SortEdgesOp) -> BlockArgument | None:
    """The weights of the edges, in the order of the list; None if all are 1."""
    if matrix.indptr is not sort.indptr or matrix.indices is not sort.indices:
        raise _refusal("a matrix has other edges than those that are sorted")
    match matrix.values.owner:
        case graph.CastOp(x=x) if isinstance(x.owner, graph.EqualOp):
            if set(x.owner.operands) == {sort.order}:
                return None
        case graph.GatherOp(operands=(BlockArgument() as values, order)) if order is sort.order:
            return values
    raise _refusal("the weights of edges are computed")


def _list_of(sort: graph.SortEdgesOp) -> BlockArgument:
    """The list of sources and targets; the rows of the matrix are the targets."""
    match _end(sort.columns), _end(sort.rows):
        case (BlockArgument() as first, 0), (second, 1) if first is second:
            return first
    raise _refusal("the rows of the matrix are not the targets of an edge list that is an argument")


def _end(value: SSAValue) -> tuple[SSAValue, int | None]:
    """The list, and the number of its row, that a vector of sources or targets is."""
    match value.owner:
        case graph.ReshapeOp(x=x) if isinstance(x.owner, graph.SliceOp):
            return x.owner.x, x.owner.starts.get_values()[0]
    return value, None


def _erase_unused(block: Block) -> None:
    for op in reversed(list(block.ops)):
        if not isinstance(op, func.ReturnOp) and not any(result.uses for result in op.results):
            Rewriter.erase_op(op)


def _drop(function: func.FuncOp, unused: list[BlockArgument], names: list[str]) -> None:
    """Remove arguments after the first one, the graph, which gets its name and its sizes."""
    nodes, edges = names
    old = [argument_attributes(function, n) for n in range(len(function.function_type.inputs))]
    kept = [a for n, a in enumerate(old) if function.args[n + 1] not in unused]
    for argument in unused:
        function.body.block.erase_arg(argument)
    function.arg_attrs = ArrayAttr(
        [argument_attrs("graph", [nodes, nodes], edges), *map(DictionaryAttr, map(dict, kept))]
    )
    function.update_function_type()


def _refusal(fact: str) -> CompileError:
    return CompileError(explain("distribute", fact, expected=_HINT))
