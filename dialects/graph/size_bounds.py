"""Lower and upper limits of the sizes of an operator's operands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from xdsl.ir import SSAValue
from xdsl.irdl import IRDLOperation

from ...core.dims import Dim
from ..loop.arguments import SizeCondition


class SizeBound(NamedTuple):
    """A dimension of an operand, the least size that it must have, and the largest, if any."""

    operand: SSAValue
    dimension: int
    least: int = 0
    most: int | None = None

    def conditions(self, op: IRDLOperation, size: Dim) -> Iterator[SizeCondition]:
        """What the operator demands of the size, which is that of the dimension."""
        names = (name for name, _ in op.get_irdl_definition().operands)
        operand = next(name for name in names if self.operand is getattr(op, name))
        what = f"dimension {self.dimension} of {operand}"
        if self.least > 0:
            yield SizeCondition(size, self.least, False, op.name, what)
        if self.most is not None:
            yield SizeCondition(size, self.most, True, op.name, what)
