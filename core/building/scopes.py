"""Open scopes: the body of a function and of the loops in it, all being filled at once.

A pure operation goes to the outermost scope that it may legally be in, and is made once there, so
that what a loop does not change is computed before it. The operation of a loop is made after its
body, and so comes after what its body has put outside. Legal means that

- all operands are defined there;
- what may trap, as a division does, stays inside of what may not run at all;
- what reads a buffer stays inside of a loop that has written to the buffer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import ConstantLike

TRAPPING: frozenset[type[Operation]] = frozenset(
    (
        *(arith.DivSIOp, arith.DivUIOp, arith.RemSIOp, arith.RemUIOp),
        *(arith.FloorDivSIOp, arith.CeilDivSIOp, arith.CeilDivUIOp),
    )
)
"""Operations that a divisor of 0 ends the program in."""

_EQUAL = arith.CMPI_COMPARISON_OPERATIONS.index("eq")


@dataclass(eq=False)
class Scope:
    """A block that is being filled."""

    block: Block
    depth: int = 0
    conditional: bool = field(default=False, kw_only=True)
    """Whether the block may not run where the one around it does."""
    memo: dict[object, SSAValue] = field(default_factory=dict, kw_only=True)
    """What was made in the block, by what equal operations have in common."""
    written: set[SSAValue] = field(default_factory=set, kw_only=True)
    """The buffers that operations in the block write to, as far as it is filled."""


ScopeT = TypeVar("ScopeT", bound=Scope)


class Scopes(ABC, Generic[ScopeT]):
    """The scopes that are open, the outermost one first."""

    def __init__(self, outermost: ScopeT) -> None:
        self.scopes = [outermost]

    @property
    def here(self) -> int:
        """The depth of the innermost scope."""
        return len(self.scopes) - 1

    @abstractmethod
    def depth_of(self, values: Sequence[SSAValue]) -> int:
        """The depth of the innermost scope that values come from."""

    def home(self, kind: type[Operation], operands: Sequence[SSAValue]) -> int:
        """The depth of the outermost scope that an operation without effects may be in."""
        depth = self.depth_of(operands)
        if kind in TRAPPING and not _is_harmless(operands[1]):
            for scope in self.scopes[:depth:-1]:
                if scope.conditional:
                    return scope.depth
        return depth

    def home_of_read(self, buffer: SSAValue, operands: Sequence[SSAValue]) -> int:
        """The depth of the outermost scope in which a buffer may be read."""
        depth = self.depth_of(operands)
        for scope in self.scopes[:depth:-1]:
            if buffer in scope.written:
                return scope.depth
        return depth

    def note_write(self, buffer: SSAValue) -> None:
        """Say that an operation in the innermost scope writes to a buffer."""
        for scope in self.scopes:
            scope.written.add(buffer)


def _is_harmless(divisor: SSAValue) -> bool:
    """Whether a division never traps: not by 0, nor the least number by -1."""
    number, op = _number(divisor), divisor.owner
    if number is not None:
        return number not in (0, -1)
    if isinstance(op, arith.MaxSIOp | arith.MaxUIOp):
        return (_number(op.lhs) or 0) > 0 or (_number(op.rhs) or 0) > 0
    if isinstance(op, Operation) and op.name == arith.SelectOp.name:
        condition, chosen, other = op.operands
        return _is_harmless(chosen) and {0, -1} <= set(_excluded(condition, other))
    return False


def _excluded(condition: SSAValue, value: SSAValue) -> Iterator[int]:
    """The numbers that a value is not where a condition does not hold."""
    op = condition.owner
    if isinstance(op, arith.OrIOp):
        yield from _excluded(op.lhs, value)
        yield from _excluded(op.rhs, value)
    elif isinstance(op, arith.CmpiOp) and op.predicate.value.data == _EQUAL and op.lhs is value:
        number = _number(op.rhs)
        if number is not None:
            yield number


def _number(value: SSAValue) -> int | None:
    found = ConstantLike.get_constant_value(value)
    return found.value.data if isinstance(found, IntegerAttr) else None
