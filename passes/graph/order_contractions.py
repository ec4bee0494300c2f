"""Compute chains of dense and sparse products in the order that is the least work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ...core.ir.context import decide
from ...core.ir.provenance import names
from ...core.ir.public_function import NAME
from ...core.ir.typed import owned
from ...core.pipelines.actions import allowed
from ...core.pipelines.budgets import SUMS
from ...core.pipelines.exactness import Exactness
from ...dialects.graph import ops as graph
from ...dialects.graph.attrs import PRIMITIVE
from ...dialects.graph.interfaces import GraphOp, set_result_types
from ...dialects.graph.op_builder import InsertingBuilder
from ...dialects.graph.plan.chains import (
    Chain,
    ChainCosts,
    Factor,
    Order,
    bias_of,
    chain_of,
    operands_of,
)
from ...dialects.graph.sizes.attributes import argument_attributes
from ...dialects.graph.sizes.shapes import SymbolicShapes
from .rules.permission import Permission

_LISTED = 5
"""Up to this many orders are all reported; of more, only a few (see `_considered`)."""


class ChainEmitter:
    """Emits the operators of a new order before the last one, reusing existing ones."""

    def __init__(self, chain: Chain) -> None:
        self.chain = chain
        before = Builder(InsertPoint.before(chain.root))
        self.builder = InsertingBuilder(before, chain.parts.values())

    def emit(self, order: Order) -> tuple[SSAValue, bool]:
        """The value of an order, and whether it is transposed."""
        if isinstance(order, int):
            factor = self.chain.factors[order]
            return factor.value, factor.transposed
        if order in self.chain.parts and order != self.chain.order:
            return self.chain.parts[order].results[0], False
        left, right = order
        by = self.chain.factors[left].by if isinstance(left, int) else None
        second = self.emit(right)
        if by is not None:
            x = self._upright(*second)
            if isinstance(by, graph.SpmmOp):
                return self.builder.spmm(by.a, x), False
            by = cast(graph.AggregateOp, by)
            return self.builder.aggregate(by.a, x, by.weights, by.kind.data.value), False
        first = self.emit(left)
        if first[1] and second[1]:
            # a^T b^T == (b a)^T
            return self.builder.matmul(second[0], first[0]), True
        a = self._upright(*first)
        if second[1]:
            return self.builder.dense(a, second[0]), False
        return self.builder.matmul(a, second[0]), False

    def whole(self, order: Order) -> SSAValue:
        """The value of the whole chain in an order, with the bias and type of its last operator."""
        root = self.chain.root
        value, _ = self.emit(order)
        bias, last = bias_of(root), owned(value, GraphOp)
        # a (x w) + b == dense(a x, w, b)
        if bias is not None and isinstance(last, graph.DenseOp):
            last.operands = [last.x, last.w, bias]
        elif bias is not None:
            last = owned(self.builder.add(value, bias), GraphOp)
        set_result_types(last, [root.results[0].type])
        return last.results[0]

    def _upright(self, value: SSAValue, transposed: bool) -> SSAValue:
        return self.builder.transpose(value, [1, 0]) if transposed else value


def _rewrite(chain: Chain, order: Order) -> None:
    """Compute a chain in another order."""
    emitter = ChainEmitter(chain)
    result, root = emitter.whole(order), chain.root
    result.name_hint = root.results[0].name_hint
    root.results[0].replace_all_uses_with(result)
    for part in reversed(chain.parts.values()):
        if not part.results[0].uses:
            Rewriter.erase_op(part)


def _name(factor: Factor) -> str:
    """The name of a factor in the model."""
    value = factor.value
    if isinstance(value, BlockArgument):
        function = value.block.parent_op()
        if isinstance(function, func.FuncOp):
            given = argument_attributes(function, value.index).get(NAME)
            if isinstance(given, StringAttr):
                return given.data
        return value.name_hint or f"arg{value.index}"
    op = owned(value, Operation)
    if isinstance(op, graph.NormalizeOp):
        return _name(Factor(op.a))
    key = op.key if isinstance(op, graph.ConstantOp) else None
    return key or next(iter(names(op)), None) or value.name_hint or op.name


def _text(order: Order, factors: Sequence[str]) -> str:
    """An order as text: ``a (x w)``."""
    if isinstance(order, int):
        return factors[order]
    parts = (f"({_text(p, factors)})" if isinstance(p, tuple) else factors[p] for p in order)
    return " ".join(parts)


def _considered(chain: Chain, costs: ChainCosts, best: Order) -> list[Order]:
    """The orders to report: all, or if many the best, the model's and the two one-sided ones."""
    last = len(chain.factors) - 1
    found: list[Order] = []
    for order in costs.orders(0, last):
        found.append(order)
        if len(found) > _LISTED:
            break
    if len(found) <= _LISTED:
        return [best, *(order for order in found if order != best)]
    left: Order = 0
    right: Order = last
    for number in range(1, last + 1):
        left, right = (left, number), (last - number, right)
    listed = [best, chain.order]
    listed += [o for o in (left, right) if costs.is_possible(o)]
    return list(dict.fromkeys(listed))


def _report(ctx: Context, chain: Chain, costs: ChainCosts, order: Order) -> None:
    """Record the chosen order, and each order considered with its cost."""
    factors = [_name(factor) for factor in chain.factors]
    subject = list(chain.parts.values())
    chosen, *others = _considered(chain, costs, order)
    own, rest = costs.of(chosen), [costs.of(other) for other in others]
    why = "it is the least work" if others else "no other order can be computed"
    # Where no term is negative, no size of 1 or more makes another order less work.
    if any(count <= 0 for cost in rest for _, count in (cost.flops - own.flops).terms):
        why += f" if {costs.assumption}"
    instead = "" if order == chain.order else f" instead of {_text(chain.order, factors)}"
    kind = "passed" if instead else "analysis"
    decide(ctx, subject, f"order {_text(chosen, factors)}{instead}", why, str(own), kind)
    for other, cost in zip(others, rest, strict=True):
        less = "it is as much work" if cost.flops == own.flops else "it is more work"
        what = f"not the order {_text(other, factors)}"
        decide(ctx, subject, what, less, str(cost), kind="analysis")


def _chains(function: func.FuncOp) -> list[Chain]:
    """The chains of three factors or more, in order; a product is in one of them at most."""
    inside: set[Operation] = set()
    found: list[Chain] = []
    for op in reversed(list(function.walk())):
        if isinstance(op, GraphOp) and op not in inside and operands_of(op) is not None:
            chain = chain_of(op)
            inside |= set(chain.parts.values())
            if len(chain.factors) > 2:
                found.append(chain)
    return found[::-1]


@Exactness.OPEN
@dataclass(frozen=True)
class GraphOrderContractionsPass(ModulePass):
    """Compute chains of products in the order that is the least work: ``a (x w)`` or ``(a x) w``.

    Before:

    ```mlir
    #csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed) }>
    !csr = tensor<9x9xf32, #csr>
    func.func @main(%a: !csr, %x: tensor<9x2xf32>, %w: tensor<2x8xf32>) -> tensor<9x8xf32> {
      %p = graph.matmul %x, %w : (tensor<9x2xf32>, tensor<2x8xf32>) -> tensor<9x8xf32>
      %y = graph.spmm %a, %p : (!csr, tensor<9x8xf32>) -> tensor<9x8xf32>
      func.return %y : tensor<9x8xf32>
    }
    ```

    After:

    ```mlir
    #csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed) }>
    !csr = tensor<9x9xf32, #csr>
    func.func @main(%a: !csr, %x: tensor<9x2xf32>, %w: tensor<2x8xf32>) -> tensor<9x8xf32> {
      %p = graph.spmm %a, %x : (!csr, tensor<9x2xf32>) -> tensor<9x2xf32>
      %y = graph.matmul %p, %w : (tensor<9x2xf32>, tensor<2x8xf32>) -> tensor<9x8xf32>
      func.return %y : tensor<9x8xf32>
    }
    ```

    A chain consists of `matmul`, `dense`, `spmm`, and `aggregate` where that sums rows. A product
    with other users is a factor. Only the last operator of a chain may have a bias. Work is counted
    from shapes and numbers of stored entries; unknown ones are assumed, which is reported if the
    choice depends on it.

    Requires: nothing.
    Order: before `graph-decompose-sparse`, which puts the operators of `graph.normalize` in
        between.
    Leaves: the products, in their orders.
    """

    name = "graph-order-contractions"
    budget = SUMS

    assumed_size: int = 1024
    """The assumed value of an unknown size."""

    assumed_entries: int = 8
    """The assumed number of stored entries in a row if it is unknown."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if not Permission(op).allows(Exactness.OPEN, op):
            return
        for function in [f for f in op.walk() if isinstance(f, func.FuncOp)]:
            if not function.body.blocks or PRIMITIVE in function.attributes:
                continue
            chains = _chains(function)
            if not chains:
                continue
            shapes, best = SymbolicShapes(function), list[Order]()
            for chain in chains:
                costs = ChainCosts(chain, shapes, self.assumed_size, self.assumed_entries)
                best.append(costs.best())
                _report(ctx, chain, costs, best[-1])
            # A factor may be the product of an earlier chain.
            for chain, order in reversed(list(zip(chains, best, strict=True))):
                if order != chain.order and allowed("order", chain.root):
                    _rewrite(chain, order)
