"""Compute what is linear or elementwise in gathered slices before they are gathered."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.transforms.dead_code_elimination import region_dce

from ...core.ir.context import count, decide
from ...core.pipelines.actions import allowed
from ...core.pipelines.budgets import SUMS
from ...core.pipelines.exactness import Exactness
from ...dialects.graph import ops as graph
from ...dialects.graph.attrs import PRIMITIVE
from ...dialects.graph.op_builder import InsertingBuilder
from ...dialects.graph.plan.chains import Cost
from ...dialects.graph.sizes.shapes import SymbolicShapes
from .messages.before_gather import BeforeGather, before_gather
from .rules.permission import Permission

_FLOPS_PER_BYTE = 2
"""The operations in the time of a byte: a core does 100 GFLOP/s, and gathers rows at 50 GB/s."""


@dataclass(frozen=True)
class _AssumedSizes:
    """What unknown sizes are taken to be.

    Attributes:
        size: the number of rows of a matrix, or another unknown size.
        entries: the number of entries of a row.
    """

    size: int
    entries: int

    def pays(self, found: BeforeGather) -> bool:
        """Whether another way to compute an operator is less work."""
        own, before = found.costs()
        known = {}
        nodes = {s for _, value in found.gathered for s in found.sizes.shape(value)[0].symbols}
        if all(ends.axis is not None for ends, _ in found.gathered):
            edges = set(found.result[0].symbols) - nodes
            known = dict.fromkeys(edges, self.size * self.entries)
        return self._work(before, known) < self._work(own, known)

    def _work(self, cost: Cost, known: dict[str, int]) -> int:
        total = cost.flops + cost.bytes * _FLOPS_PER_BYTE
        return total.evaluate({name: known.get(name, self.size) for name in total.symbols})

    def why(self, found: BeforeGather) -> str:
        """What the choice depends on."""
        own, before = found.costs()
        static = all(dim.is_static for dim in (own.flops, own.bytes, before.flops, before.bytes))
        assumed = f" if sizes are {self.size} and rows have {self.entries} entries"
        return "" if static else assumed


def _rewrite(
    ctx: Context, function: func.FuncOp, permission: Permission, sizes: _AssumedSizes
) -> bool:
    """Rewrite the operators of a function in order; returns whether there were any."""
    shapes, changed = SymbolicShapes(function), False
    for op in list(function.walk()):
        found = before_gather(op, shapes)
        if found is None or not permission.allows(found.exactness, op):
            continue
        own, before = found.costs()
        if not sizes.pays(found):
            what, why = f"keep {op.name} of gathered slices", f"it is less work{sizes.why(found)}"
            decide(ctx, op, what, why, f"{own}; before they are gathered {before}", "missed")
        elif allowed("compute before gather", op):
            what, why = f"compute {op.name} before slices are gathered", sizes.why(found)
            decide(ctx, op, what, f"it is less work{why}", f"{before}; after it {own}")
            _replace(op, found)
            count(ctx, "operators computed before gathers", 1)
            shapes, changed = SymbolicShapes(function), True
    return changed


def _replace(op: Operation, found: BeforeGather) -> None:
    """Compute an operator in the other way."""
    result = found.emit(InsertingBuilder(Builder(InsertPoint.before(op)), [op]))
    result.name_hint = op.results[0].name_hint
    Rewriter.replace_op(op, [], [result])


@Exactness.ROUNDING
@dataclass(frozen=True)
class GraphComputeBeforeGatherPass(ModulePass):
    """Compute products and elementwise operators on nodes rather than on edges.

    Before:

    ```mlir
    #csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed) }>
    !a = tensor<9x9xf32, #csr> !e = tensor<?x4xf32>
    func.func @main(%a: !a, %x: tensor<9x4xf32>, %w: tensor<8x4xf32>) -> tensor<?x8xf32> {
      %i = graph.at_entries %a, %x axis = 0 : (!a, tensor<9x4xf32>) -> !e
      %j = graph.at_entries %a, %x axis = 1 : (!a, tensor<9x4xf32>) -> !e
      %d = graph.sub %j, %i : (!e, !e) -> !e
      %y = graph.dense %d, %w : (!e, tensor<8x4xf32>) -> tensor<?x8xf32>
      func.return %y : tensor<?x8xf32>
    }
    ```

    After:

    ```mlir
    #csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed) }>
    !a = tensor<9x9xf32, #csr> !x = tensor<9x4xf32> !w = tensor<8x4xf32> !y = tensor<9x8xf32>
    func.func @main(%a: !a, %x: !x, %w: !w) -> tensor<?x8xf32> {
      %p = graph.dense %x, %w : (!x, !w) -> !y
      %j = graph.at_entries %a, %p axis = 1 : (!a, !y) -> tensor<?x8xf32>
      %m = graph.neg %w : (!w) -> !w
      %q = graph.dense %x, %m : (!x, !w) -> !y
      %i = graph.at_entries %a, %q axis = 0 : (!a, !y) -> tensor<?x8xf32>
      %y = graph.add %j, %i : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
      func.return %y : tensor<?x8xf32>
    }
    ```

    A product is linear: where its left operand is made of gathered slices by concatenation, sums,
    differences, factors, slices and reshapes, it is the sum of products with parts of the weights,
    each of which is computed for nodes and gathered then. What is not gathered, such as features
    of edges, keeps a product of its own, with its part of the weights. An elementwise operator on
    slices that are gathered in one way is computed before, too.

    Whether that is less work follows from the numbers of slices before and after, the widths, and
    what is read and written; `explain()` states both costs. Sizes that are not known are assumed,
    which is reported.

    Differences are rounded after the product instead of before, so that this is a rounding; what
    is concatenated is the same sum in another order; an elementwise operator has the same bits.

    Requires: nothing.
    Order: after `graph-raise-messages`, which replaces gathers along an edge list.
    Leaves: products of few slices, or of more columns than rows, which it does not pay for.
    """

    name = "graph-compute-before-gather"
    budget = SUMS

    assumed_size: int = 1024
    """The assumed value of an unknown size."""

    assumed_entries: int = 8
    """The assumed number of stored entries in a row if it is unknown."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        permission, sizes = Permission(op), _AssumedSizes(self.assumed_size, self.assumed_entries)
        for function in [f for f in op.walk() if isinstance(f, func.FuncOp)]:
            gathers = (graph.AtEntriesOp, graph.GatherOp)
            if PRIMITIVE in function.attributes or not any(
                isinstance(inner, gathers) for inner in function.walk()
            ):
                continue
            if _rewrite(ctx, function, permission, sizes):
                region_dce(function.body)
