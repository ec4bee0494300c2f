"""Products of one operand become one wider product, of which each takes its columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ...core.context import decide
from ...core.provenance import fuse
from ...dialects.graph import ops as graph
from ...dialects.graph.interfaces import FusionKind, GraphOp, rank
from ...dialects.graph.known import is_constant, sizes_of
from ...dialects.graph.ops_binary import BinaryOp
from ...dialects.graph.ops_elementwise import UnaryOp
from ...dialects.graph.ops_select import WHOLE_END

_Product = graph.DenseOp | graph.MatmulOp


def _key(op: Operation) -> tuple[object, ...] | None:
    """What products that can be combined have in common; None if `op` is none of them."""
    if isinstance(op, graph.DenseOp):
        constant = is_constant(op.w) and (op.bias is None or is_constant(op.bias))
    elif isinstance(op, graph.MatmulOp):
        constant = is_constant(op.b) and rank(op.b) == 2
    else:
        return None
    width = sizes_of(op.result)[-1]
    return (type(op), op.operands[0], len(op.operands)) if constant and width > 0 else None


def _width(op: Operation) -> int:
    return sizes_of(op.results[0])[-1]


def _readers(op: Operation) -> list[Operation]:
    return list(dict.fromkeys(use.operation for use in op.results[0].uses))


def _copies(op: Operation) -> bool:
    """Whether a slice of columns in the place of `op` is a kernel of its own."""
    # What is fused reads the columns where they are.
    readers = _readers(op)
    kinds = (FusionKind.CONTRACTION, FusionKind.OPAQUE)
    return len(readers) != 1 or not isinstance(readers[0], GraphOp) or readers[0].fusion in kinds


def _next(branches: Sequence[GraphOp]) -> list[GraphOp] | None:
    """The operators that follow all branches in the same way, if there are such."""
    following: list[GraphOp] = []
    for branch in branches:
        readers = _readers(branch)
        if len(readers) != 1 or not isinstance(readers[0], UnaryOp | BinaryOp):
            return None
        following.append(readers[0])
    first = following[0]
    if len(set(following)) != len(following):
        return None
    same = all(type(op) is type(first) and op.properties == first.properties for op in following)
    fits = all(_follows(op, branch) for op, branch in zip(following, branches, strict=True))
    return following if same and fits else None


def _follows(op: GraphOp, branch: GraphOp) -> bool:
    """Whether `op` keeps the columns of its branch apart and takes but constants beside it."""
    if op.results[0].type != branch.results[0].type:
        return False
    if isinstance(op, UnaryOp):
        return True
    other = op.operands[1]
    return (
        op.operands[0] is branch.results[0]
        and is_constant(other)
        and (sizes_of(other) == (_width(branch),))
    )


class _Combination:
    """One wide product for several, and wide operators for what follows all of them.

    `stages` are the operators that the wide ones stand for: the products, then their users.
    """

    def __init__(self, products: Sequence[_Product]) -> None:
        self.stages: list[list[GraphOp]] = [list(products)]
        self.new: list[GraphOp] = []
        self.constants: dict[Operation, None] = {}

    def build(self) -> SSAValue:
        """Make the wide operators; returns the last result."""
        products = self.stages[0]
        first = products[0]
        x, *weights = (list(column) for column in zip(*(p.operands for p in products), strict=True))
        axes = (0, 0) if isinstance(first, graph.DenseOp) else (1,)
        operands = [x[0], *map(self._concat, weights, axes)]
        wide = self._add(type(first)(*operands), products)
        while (following := _next(self.stages[-1])) is not None:
            beside = [op.operands[1] for op in following if isinstance(op, BinaryOp)]
            copy = following[0].clone()
            copy.operands = [wide, self._concat(beside, 0)] if beside else [wide]
            copy.set_result_types([wide.type])
            wide = self._add(copy, following)
            self.stages.append(following)
        return wide

    def slices(self, wide: SSAValue) -> list[SSAValue]:
        """The columns of `wide` that stand for each operator of the last stage."""
        result: list[SSAValue] = []
        starts, ends = [0] * rank(wide), [WHOLE_END if n < 0 else n for n in sizes_of(wide)]
        ends[-1] = 0
        for op in self.stages[-1]:
            starts[-1], ends[-1] = ends[-1], ends[-1] + _width(op)
            part = graph.SliceOp(wide, starts, ends, result_type=op.results[0].type)
            result.append(self._add(part, [op]))
        return result

    def _concat(self, values: Sequence[SSAValue], axis: int) -> SSAValue:
        owners = [cast(Operation, value.owner) for value in values]
        self.constants.update(dict.fromkeys(owners))
        return self._add(graph.ConcatOp(values, axis), owners)

    def _add(self, op: GraphOp, sources: Sequence[Operation]) -> SSAValue:
        op.location = fuse(sources)
        self.new.append(op)
        return op.results[0]


def _chain_ends(products: Sequence[_Product]) -> list[GraphOp]:
    """The last operators of what follows all products in the same way."""
    branches: list[GraphOp] = list(products)
    while (following := _next(branches)) is not None:
        branches = following
    return branches


def _combine(ctx: Context, products: Sequence[_Product], position: Mapping[Operation, int]) -> None:
    """Combine products if that moves fewer elements, and say so."""
    # For each row: x is read once instead of once for each product; copies are read and written.
    saved = (len(products) - 1) * max(sizes_of(products[0].operands[0])[-1], 0)
    spent = 2 * sum(_width(op) for op in _chain_ends(products) if _copies(op))
    cost = f"for each row {saved} elements less to read, {spent} to copy"
    if spent >= saved:
        decide(ctx, products, "keep the products apart", "slices would cost more", cost)
        return
    combination, first = _Combination(products), products[0]
    parts = combination.slices(combination.build())
    for constant in combination.constants:
        if position[constant] > position[first]:
            constant.detach()
            Rewriter.insert_op(constant, InsertPoint.before(first))
    Rewriter.insert_op(combination.new, InsertPoint.before(first))
    for branch, part in zip(combination.stages[-1], parts, strict=True):
        branch.results[0].replace_all_uses_with(part)
    for stage in reversed(combination.stages):
        for op in stage:
            Rewriter.erase_op(op)
    decide(ctx, products, "one product for all", "they read the same operand", cost)


@dataclass(frozen=True)
class GraphCombineParallelDensePass(ModulePass):
    """Combine products of one operand with constant weights into one wider product.

    Before:

    ```mlir
    func.func @main(%x: tensor<?x9xf32>) -> tensor<?x1xf32> {
      %v = graph.constant dense<1.0> : tensor<1x9xf32>
      %w = graph.constant dense<2.0> : tensor<1x9xf32>
      %a = graph.dense %x, %v : (tensor<?x9xf32>, tensor<1x9xf32>) -> tensor<?x1xf32>
      %b = graph.dense %x, %w : (tensor<?x9xf32>, tensor<1x9xf32>) -> tensor<?x1xf32>
      %y = graph.mul %a, %b : (tensor<?x1xf32>, tensor<?x1xf32>) -> tensor<?x1xf32>
      func.return %y : tensor<?x1xf32>
    }
    ```

    After:

    ```mlir
    func.func @main(%x: tensor<?x9xf32>) -> tensor<?x1xf32> {
      %v = graph.constant dense<1.0> : tensor<1x9xf32>
      %w = graph.constant dense<2.0> : tensor<1x9xf32>
      %c = graph.concat %v, %w axis = 0 : (tensor<1x9xf32>, tensor<1x9xf32>) -> tensor<2x9xf32>
      %d = graph.dense %x, %c : (tensor<?x9xf32>, tensor<2x9xf32>) -> tensor<?x2xf32>
      %a = graph.slice %d starts = [0, 0] ends = [9223372036854775807, 1]
          steps = [1, 1] : (tensor<?x2xf32>) -> tensor<?x1xf32>
      %b = graph.slice %d starts = [0, 1] ends = [9223372036854775807, 2]
          steps = [1, 1] : (tensor<?x2xf32>) -> tensor<?x1xf32>
      %y = graph.mul %a, %b : (tensor<?x1xf32>, tensor<?x1xf32>) -> tensor<?x1xf32>
      func.return %y : tensor<?x1xf32>
    }
    ```

    It holds for `dense` and for `matmul` with a matrix. Elementwise operators that follow all of
    them in the same way are combined as well, with constants of their own columns. A slice that
    the kernel of its only reader can read in place costs nothing; others are copies, and where
    copies move more than is saved by reading the operand once, products stay apart.

    Requires: `graph-fold-constant` after it, which puts the weights together.
    Leaves: products of different kinds, with a bias and without one, and with weights that are
        no constants.
    """

    name = "graph-combine-parallel-dense"

    min_products: int = 2
    """The smallest number of products that are combined."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        groups: dict[tuple[object, ...], list[_Product]] = {}
        position: dict[Operation, int] = {}
        for number, inner in enumerate(op.walk()):
            position[inner] = number
            if (key := _key(inner)) is not None:
                groups.setdefault((inner.parent, *key), []).append(cast(_Product, inner))
        for products in groups.values():
            if len(products) >= max(self.min_products, 2):
                _combine(ctx, products, position)
