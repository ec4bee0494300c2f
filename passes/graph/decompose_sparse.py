"""Rewrite users of a derived sparse matrix to use the matrix that it is derived from."""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    GreedyRewritePatternApplier,
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)

from ...core.budgets import SUMS
from ...core.context import decide
from ...core.exactness import OPEN, states
from ...dialects.graph import ops as graph
from ...dialects.graph.attrs import NormalizeKind
from ...dialects.graph.interfaces import GraphOp, rank, set_result_types
from ...dialects.graph.known import sizes_of
from ...dialects.graph.nests.recording import Recorder
from ...dialects.graph.op_builder import InsertingBuilder
from ...dialects.graph.ops_select import WHOLE_END
from ...dialects.graph.plan.uses import Uses
from ...dialects.graph.rewrites import on_other_operand
from ...dialects.graph.sparse_forms import by_rows_and_columns
from ...dialects.graph.traits import ReadsPattern, TakesEntries
from .rules.recorded import recorded


@states(
    OPEN,
    "spmm(normalize(a), x) == s * (spmm(a, t) + m * t)  for t = s * x, s = degree(a)^-1/2",
    "spmm(normalize row (a), x) == s * (spmm(a, x) + m * x)  for s = degree(a)^-1 where m "
    "completes each row to one self loop: 1 if it stores none, see missing_self_loops",
)
class SpmmOfNormalized(RewritePattern):
    """Scale the rows of the features instead of the entries of the matrix."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.SpmmOp, rewriter: PatternRewriter) -> None:
        normalize = op.a.owner
        if not isinstance(normalize, graph.NormalizeOp):
            return
        symmetric = normalize.kind.data == NormalizeKind.SYMMETRIC
        loops = bool(normalize.self_loops.value.data)
        factors, b = (InsertingBuilder(rewriter, [source]) for source in (normalize, op))
        power = -0.5 if symmetric else -1.0
        degree = factors.degree(normalize.a, self_loops=loops, power=power)
        scale = factors.reshape(degree, [-1, 1])
        x = b.mul(op.x, scale) if symmetric else op.x
        y = b.spmm(normalize.a, x)
        if loops:
            missing = factors.reshape(factors.missing_self_loops(normalize.a), [-1, 1])
            y = b.add(y, b.mul(x, missing))
        y = b.insert(graph.MulOp(y, scale, result_type=op.result.type))
        rewriter.replace(op, [], [y])


def _decide(ctx: Context, made: graph.WithEntriesOp, op: GraphOp) -> None:
    what = "use the values of the entries without building their matrix"
    decide(ctx, [made, op], what, "they are computed where a row is read")


@states(
    OPEN,
    "degree(with_entries(a, e)) == degree(a) values e",
    "with_entries(with_entries(a, e), f) == with_entries(a, f)",
)
@dataclass
class UserOfEntries(RewritePattern):
    """Separate the values from the pattern."""

    ctx: Context

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        if not isinstance(op, GraphOp):
            return
        if not (op.has_trait(ReadsPattern) or op.has_trait(TakesEntries)):
            return
        made, rest = op.operands[0].owner, list(op.operands[1:])
        if not isinstance(made, graph.WithEntriesOp):
            return
        _decide(self.ctx, made, op)
        if op.has_trait(ReadsPattern) or rest:
            _take(op, [made.a, *rest], rewriter)
        else:
            _take(op, [made.a, made.values], rewriter)


@states(OPEN, "entries(with_entries(a, e)) == e")
@dataclass
class EntriesOfEntries(RewritePattern):
    """Take the values that a matrix is made with."""

    ctx: Context

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.EntriesOp, rewriter: PatternRewriter) -> None:
        if not isinstance(made := op.a.owner, graph.WithEntriesOp):
            return
        _decide(self.ctx, made, op)
        if made.values.type == op.result.type:
            rewriter.replace(op, (), (made.values,))
            return
        # The declared type may leave the size open.
        same = graph.ReshapeOp(made.values, [0], result_type=op.result.type)
        same.location = op.location
        rewriter.replace(op, same)


@states(OPEN, "spmm(with_entries(a, e), x) == aggregate sum (a, x) weights e")
@dataclass
class ProductOfEntries(RewritePattern):
    """Multiply by the values that a matrix is made with."""

    ctx: Context

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.SpmmOp, rewriter: PatternRewriter) -> None:
        if isinstance(made := op.a.owner, graph.WithEntriesOp):
            _decide(self.ctx, made, op)
            new = graph.AggregateOp(made.a, op.x, made.values, result_type=op.result.type)
            new.location = op.location
            rewriter.replace(op, new)


def _take(op: GraphOp, operands: list[SSAValue], rewriter: PatternRewriter) -> None:
    new = type(op).create(operands=operands, result_types=op.result_types, properties=op.properties)
    new.location = op.location
    rewriter.replace(op, new)


@states(
    OPEN,
    "f(slice(a), x) == slice(f(a, x))  for an operator that combines the entries of each row",
)
@dataclass
class UserOfRows(RewritePattern):
    """Compute all rows and slice: fusion keeps only the rows that are used."""

    ctx: Context
    uses: Uses = field(default_factory=lambda: Uses(Recorder()), init=False, repr=False)

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        if not isinstance(op, GraphOp) or not op.operands:
            return
        made = op.operands[0].owner
        if not isinstance(made, graph.SliceRowsOp) or not self.uses.combines_rows(op):
            return
        whole = on_other_operand(op, made.a)
        if whole is None:
            return
        why = "a kernel computes only the rows of its result"
        decide(self.ctx, [made, op], "slice the result instead of the matrix", why)
        count = rank(op.results[0])
        start, end = made.bounds
        ends = [WHOLE_END if size < 0 else size for size in sizes_of(whole.results[0])]
        starts, ends = [start, *[0] * (count - 1)], [end, *ends[1:]]
        rows = graph.SliceOp(whole, starts, ends, result_type=op.results[0].type)
        whole.location = rows.location = op.location
        rewriter.replace(op, [whole, rows])


@states(
    OPEN,
    "normalize(a) == with_entries(a, entries(a) * s_i * s_j)  for s = degree(a)^-1/2",
    "normalize row (a) == with_entries(a, entries(a) * s_i)  for s = degree(a)^-1",
)
@dataclass
class NormalizedEntries(RewritePattern):
    """Scale the entries; `SpmmOfNormalized` is better for products."""

    ctx: Context

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.NormalizeOp, rewriter: PatternRewriter) -> None:
        if op.self_loops.value.data:
            return
        what = "scale the stored values without building a normalised matrix"
        decide(self.ctx, op, what, "they are computed where a row is read")
        symmetric = op.kind.data == NormalizeKind.SYMMETRIC
        scale = graph.DegreeOp(op.a, power=-0.5 if symmetric else -1.0)
        new = [scale, *by_rows_and_columns(op.a, scale.result, scale.result if symmetric else None)]
        set_result_types(new[-1], [op.result.type])  # one that is known to be square
        for part in new:
            part.location = op.location
        rewriter.replace(op, new)


@dataclass(frozen=True)
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

    Requires: nothing; a constant graph is better folded first (`graph-fold-constant`).
    Leaves: sparse arguments, constants, and matrices with users of other kinds.
    """

    name = "graph-decompose-sparse"
    budget = SUMS

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        product = recorded(SpmmOfNormalized(), ctx, "the entries of the matrix are not known")
        kinds = (
            NormalizedEntries,
            EntriesOfEntries,
            ProductOfEntries,
            UserOfEntries,
            UserOfRows,
        )
        # No product is left that would read the scaled entries.
        sweeps: tuple[list[RewritePattern], ...] = [product], [kind(ctx) for kind in kinds]
        for rules in sweeps:
            applier = GreedyRewritePatternApplier(rules, dce_enabled=True)
            PatternRewriteWalker(applier).rewrite_module(op)
