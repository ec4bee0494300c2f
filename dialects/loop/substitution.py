"""Replacing indices of a kernel by expressions, in place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from xdsl.dialects.builtin import AffineMapAttr
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineExpr

from .ops import ForOp, KernelOp
from .proofs.bounds import constant_index, without_repeats
from .rebuild import Rebuild


class Substitution(Rebuild):
    """Replaces indices of a kernel by expressions; the kernel stays the same operation."""

    def __init__(self, kernel: KernelOp) -> None:
        super().__init__(kernel, [])
        self._constants: set[Operation] = set()

    def replace(self, index: SSAValue, expr: AffineExpr) -> None:
        """Replace every use of an index by an expression."""
        self.bind(index, expr)
        for user in reversed(list(dict.fromkeys(use.operation for use in index.uses))):
            self._computed = {}
            with self.inside(Block()):
                self.source = user
                self.visit_op(user)
                made = list(self.block.ops)
            assert user.parent is not None
            for op in made:
                op.detach()
            user.parent.insert_ops_before(made, user)
            if isinstance(user, ForOp):
                continue
            for result in user.results:
                new = self._bound[result]
                if isinstance(new, AffineExpr):
                    self.replace(result, new)
                else:
                    result.replace_all_uses_with(new)
            user.detach()
            user.erase()

    def known(self, expr: AffineExpr) -> SSAValue | None:
        """The value of an expression; each constant is emitted once."""
        if not isinstance(expr, AffineConstantExpr):
            return super().known(expr)
        for op in _before(self.source):
            if op in self._constants and constant_index(op.results[0]) == expr.value:
                return op.results[0]
        constant = super().known(expr)
        assert constant is not None
        self._constants.add(cast(Operation, constant.owner))
        return constant

    def visit_for(self, op: ForOp) -> None:
        bound, rest = self.bound(op), op.operands[op.bound.data.num_dims :]
        map, operands = self.map(bound if op.over_entries else without_repeats(bound))
        op.bound, op.operands = AffineMapAttr(map), [*operands, *rest]


def _before(op: Operation | None) -> Iterator[Operation]:
    """The operations before `op`, nearest first, in its block and in the enclosing blocks."""
    while op is not None and not isinstance(op, KernelOp):
        before = op.prev_op
        while before is not None:
            yield before
            before = before.prev_op
        op = op.parent_op()
