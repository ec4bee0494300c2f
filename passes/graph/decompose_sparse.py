"""Rewrite users of a derived sparse matrix to use the matrix that it is derived from."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import GreedyRewritePatternApplier, PatternRewriteWalker

from ...core.ir.typed import owned
from ...core.pipelines.budgets import SUMS
from ...core.pipelines.exactness import OPEN, ROUNDING
from ...dialects.graph import ops as graph
from ...dialects.graph.attrs import NormalizeKind
from ...dialects.graph.interfaces import GraphOp, rank, set_result_types
from ...dialects.graph.known import sizes_of
from ...dialects.graph.nests.recording import Recorder
from ...dialects.graph.op_builder import InsertingBuilder
from ...dialects.graph.ops.moves.select import WHOLE_END
from ...dialects.graph.ops.sparse.sparse_forms import by_rows_and_columns
from ...dialects.graph.plan.uses import Uses
from ...dialects.graph.rules import rule
from ...dialects.graph.traits import ReadsPattern, TakesEntries
from .rules.recorded import recorded


@rule(
    "spmm(n := normalize(a), x) == s * (spmm(a, s * x) + m * s * x)  for s = degree(a)^-1/2, or "
    "by rows s * (spmm(a, x) + m * x) for s = degree(a)^-1, where m completes each row to one self "
    "loop: 1 if it stores none, see missing_self_loops",
    ROUNDING,
)
def spmm_of_normalized(
    b: InsertingBuilder, op: graph.SpmmOp, n: SSAValue, a: SSAValue, x: SSAValue
) -> SSAValue:
    normalize = owned(n, graph.NormalizeOp)
    symmetric = normalize.kind.data == NormalizeKind.SYMMETRIC
    loops = bool(normalize.self_loops.value.data)
    degree = b.degree(a, self_loops=loops, power=-0.5 if symmetric else -1.0)
    scale = b.reshape(degree, [-1, 1])
    x = b.mul(x, scale) if symmetric else x
    y = b.spmm(a, x)
    if loops:
        y = b.add(y, b.mul(x, b.reshape(b.missing_self_loops(a), [-1, 1])))
    return b.insert(graph.MulOp(y, scale, result_type=op.result.type))


_Reader = (GraphOp, ReadsPattern)
_Taker = (GraphOp, TakesEntries)


@rule("f(with_entries(a, e), *x) == f(a, *x)  for an f that reads the pattern", OPEN, f=_Reader)
def pattern_of_entries() -> None: ...


@rule("f(with_entries(a, e), v, *x) == f(a, v, *x)  for an f of other entries", OPEN, f=_Taker)
def other_entries() -> None: ...


@rule("f(with_entries(a, e)) == f(a, e)", OPEN, f=_Taker)
def user_of_entries() -> None: ...


@rule("entries(with_entries(a, e)) == e  whose size the type may leave open", OPEN)
def entries_of_entries(b: InsertingBuilder, op: graph.EntriesOp, e: SSAValue) -> SSAValue:
    kind = op.result.type
    return e if e.type == kind else b.insert(graph.ReshapeOp(e, [0], result_type=kind))


@rule('spmm(with_entries(a, e), x) == aggregate(a, x, e, kind="sum")', OPEN)
def product_of_entries() -> None: ...


@rule(
    "f(r := slice_rows(a), *x) == slice(f(a, *x), starts, ends)  for an f that combines the "
    "entries of each row: fusion keeps only the rows that are used",
    OPEN,
    f=GraphOp,
)
def user_of_rows(op: GraphOp, r: SSAValue, uses: Uses) -> Mapping[str, list[int]] | None:
    if not uses.combines_rows(op):
        return None
    start, end = owned(r, graph.SliceRowsOp).bounds
    others = sizes_of(op.results[0])[1:]
    ends = [end, *(WHOLE_END if size < 0 else size for size in others)]
    return {"starts": [start, *[0] * (rank(op.results[0]) - 1)], "ends": ends}


@rule(
    "normalize(a, self_loops=False) == with_entries(a, entries(a) * s_i * s_j)  for s = "
    "degree(a)^-1/2, or by rows entries(a) * s_i for s = degree(a)^-1; SpmmOfNormalized is better "
    "for products",
    OPEN,
)
def normalized_entries(b: InsertingBuilder, op: graph.NormalizeOp, a: SSAValue) -> SSAValue:
    symmetric = op.kind.data == NormalizeKind.SYMMETRIC
    scale = b.degree(a, power=-0.5 if symmetric else -1.0)
    new = by_rows_and_columns(a, scale, scale if symmetric else None)
    set_result_types(new[-1], [op.result.type])  # one that is known to be square
    return [b.insert(part) for part in new][-1]


_OF_ENTRIES = (
    normalized_entries,
    entries_of_entries,
    product_of_entries,
    pattern_of_entries,
    other_entries,
    user_of_entries,
)


class GraphDecomposeSparsePass(ModulePass):
    """Let the users of ``with_entries``, ``slice_rows`` and ``normalize`` read their operands.

    Before:

    ```mlir
    #csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed) }>
    !csr = tensor<9x7xf32, #csr>
    func.func @main(%a: !csr, %x: tensor<7x8xf32>) -> tensor<9x8xf32> {
      %e = graph.entries %a : (!csr) -> tensor<?xf32>
      %r = graph.relu %e : (tensor<?xf32>) -> tensor<?xf32>
      %b = graph.with_entries %a, %r : (!csr, tensor<?xf32>) -> !csr
      %y = graph.spmm %b, %x : (!csr, tensor<7x8xf32>) -> tensor<9x8xf32>
      func.return %y : tensor<9x8xf32>
    }
    ```

    After:

    ```mlir
    #csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed) }>
    !csr = tensor<9x7xf32, #csr>
    func.func @main(%a: !csr, %x: tensor<7x8xf32>) -> tensor<9x8xf32> {
      %e = graph.entries %a : (!csr) -> tensor<?xf32>
      %r = graph.relu %e : (tensor<?xf32>) -> tensor<?xf32>
      %y = graph.aggregate sum %a, %x weights %r
          : (!csr, tensor<7x8xf32>, tensor<?xf32>) -> tensor<9x8xf32>
      func.return %y : tensor<9x8xf32>
    }
    ```

    No matrix is built: values are computed where a row of the matrix is read, and a product with
    some rows of a matrix computes only these rows. The normalised matrix of a graph known only at
    run time would even have a number of entries that is not known in advance, where self loops are
    added. A product with it becomes one with the graph itself, between factors that are cheap.

    No kernel makes such a matrix, so that all rules are used with ``rounding="kept"``, too.

    Requires: nothing.
    Order: preceded by `graph-fold-constant`, which folds the matrices of constant graphs.
    Leaves: sparse arguments, constants, and matrices with users of other kinds.
    """

    name = "graph-decompose-sparse"
    budget = SUMS

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        products = recorded(spmm_of_normalized, ctx, "the entries of the matrix are not known")
        why = "they are computed where a row is read"
        rules = [recorded(rule, ctx, why) for rule in _OF_ENTRIES]
        rows = user_of_rows.with_given(uses=Uses(Recorder()))
        rules.append(recorded(rows, ctx, "a kernel computes only the rows of its result"))
        # No product is left that would read the scaled entries.
        for sweep in ([products], rules):
            applier = GreedyRewritePatternApplier(sweep, dce_enabled=True)
            PatternRewriteWalker(applier).rewrite_module(op)
