"""Cut a program on a graph into functions on one part of it, with exchanges in between."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from ...core.ir.context import count, decide
from ...core.ir.public_function import is_public
from ...core.pipelines.actions import allowed
from ...core.pipelines.budgets import EXACT
from ...core.pipelines.exactness import Exactness
from ...dialects.graph.sizes.shapes import SymbolicShapes
from .halo.alignment import Alignment, graph_of
from .halo.emission import Emission
from .halo.stages import Prices, Stages


def _report(ctx: Context, found: Stages) -> None:
    """Record what is sent before each stage, and what is computed again for the halo."""
    function, sent = found.known.function, set[SSAValue]()
    for stage in found.stages:
        new = [value for value in stage.received if value not in sent]
        sent |= set(new)
        count(ctx, "values exchanged", len(new))
        for value in new:
            about = value.owner if isinstance(value.owner, Operation) else function
            what = f"exchange {value.name_hint or 'a value'} before stage {stage.level}"
            why, cost = "it is read along the edges", f"{found.bytes(value)} B for each node"
            decide(ctx, about, what, why, cost)
        for op in (op for op in function.body.block.ops if op in stage.columns):
            what = f"compute {op.name} for the halo in stage {stage.level}"
            decide(ctx, op, what, "it costs less than to send the result")


@Exactness.EXACT
@dataclass(frozen=True)
class GraphSplitAtHaloPass(ModulePass):
    """Cut a program where it needs rows of other parts of its graph.

    Before:

    ```mlir
    #csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed) }>
    !a = tensor<?x?xf32, #csr> !x = tensor<?x8xf32>
    func.func @f(%a: !a {graph.dims = ["n", "n"]}, %x: !x {graph.dims = ["n", ""]}) -> !x {
      %y = graph.spmm %a, %x : (!a, !x) -> !x
      func.return %y : !x
    }
    ```

    After:

    ```mlir
    #csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed) }>
    !a = tensor<?x?xf32, #csr> !x = tensor<?x8xf32>
    func.func private @f.1(%a: !a {graph.dims = ["n", "columns"], graph.nnz = "edges"},
        %x: !x {graph.dims = ["columns", ""]}) -> (!x {graph.dims = ["n", ""]}) {
      %y = graph.spmm %a, %x : (!a, !x) -> !x
      func.return %y : !x
    }
    func.func @f(%a: !a {graph.dims = ["n", "columns"]}, %x: !x {graph.dims = ["n", ""]}) -> !x {
      %h = graph.exchange %a, %x : (!a, !x) -> !x
      %y = func.call @f.1(%a, %h) : (!a, !x) -> !x
      func.return %y : !x }
    ```

    An aggregation reads rows of the nodes in whose columns entries are. On a part of the graph
    these are its own nodes and its halo, whose rows other parts send: `graph.exchange`. So the
    program becomes functions of own rows and of rows with the halo, and the public function calls
    them in turn. `stepwell.distributed` runs it on many parts; as it stands it is the program of
    one part that has all nodes.

    What combines all nodes, as the sum of a pool, is computed by each part for its own nodes;
    `graph.combine` makes one result of these, which later functions take.

    Which values are sent, and which are computed again for the halo, is the cheapest choice by
    their bytes and the work (a minimum cut); so is what is kept for later functions. A function
    with the attribute `graph.whole_part` compares rows with columns, and takes all rows of a part
    at once.

    Requires: `graph-decompose-sparse`, and for a cut one square sparse argument, the graph.
    Leaves: operators in private functions; calls, `graph.exchange` and `graph.combine` in the
        public one. A program without a graph, or with one of fixed size, stays as it is.
    """

    name = "graph-split-at-halo"
    budget = EXACT

    sent: int = 64
    """The operations on numbers in the time in which a byte travels to another part."""

    moved: int = 2
    """Those in the time in which a byte is read from memory, or written."""

    assumed_entries: int = 8
    """The assumed number of stored entries in a row."""

    assumed_size: int = 1024
    """The assumed value of an unknown size that is none of the graph."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [f for f in op.ops if isinstance(f, func.FuncOp) and is_public(f)]:
            shapes = SymbolicShapes(function)
            graph = graph_of(function, shapes)
            if isinstance(graph, str):
                decide(ctx, function, "keep the program in one piece", graph, kind="missed")
                continue
            known = Alignment(function, shapes, graph)
            if not allowed("split at halo", function):
                continue
            prices = Prices(self.sent, self.moved, self.assumed_entries, self.assumed_size)
            stages = Stages(known, prices)
            _report(ctx, stages)
            Emission(known, stages).emit()
