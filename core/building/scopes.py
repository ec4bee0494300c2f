"""Open scopes: the body of a function and of the nested loops that are being built.

A pure operation is placed in the outermost scope where it is legal, and only once: loop invariants
are hoisted as they are built. The operation of a loop is created after its body, and so follows the
operations hoisted from its body. Legal means that

- all operands are defined there;
- an operation that may trap, such as a division, stays inside regions that may not run, and so does
  a read at an index that may be outside of its buffer;
- a read of a buffer stays inside a loop that has written to it.
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
"""Operations that trap on a divisor of 0."""

_EQUAL = arith.CMPI_COMPARISON_OPERATIONS.index("eq")


@dataclass(eq=False)
class Scope:
    """A block that is being filled."""

    block: Block
    depth: int = 0
    conditional: bool = field(default=False, kw_only=True)
    """Whether the block may be skipped when the block around it runs."""
    memo: dict[object, SSAValue] = field(default_factory=dict, kw_only=True)
    """The results of operations in the block, by a key that equal operations have in common."""
    written: set[SSAValue] = field(default_factory=set, kw_only=True)
    """The buffers that the block has written to so far."""


ScopeT = TypeVar("ScopeT", bound=Scope)


class Scopes(ABC, Generic[ScopeT]):
    """The open scopes, the outermost one first."""

    def __init__(self, outermost: ScopeT) -> None:
        self.scopes = [outermost]

    @property
    def here(self) -> int:
        """The depth of the innermost scope."""
        return len(self.scopes) - 1

    @abstractmethod
    def depth_of(self, values: Sequence[SSAValue]) -> int:
        """The depth of the innermost scope that defines any of the values."""

    def home(self, kind: type[Operation], operands: Sequence[SSAValue]) -> int:
        """The depth of the outermost scope where an operation without effects is legal."""
        depth = self.depth_of(operands)
        if may_trap(kind, operands):
            for scope in self.scopes[:depth:-1]:
                if scope.conditional:
                    return scope.depth
        return depth

    def home_of_read(self, buffer: SSAValue, operands: Sequence[SSAValue]) -> int:
        """The depth of the outermost scope in which a buffer may be read, at an index it has."""
        depth = self.depth_of(operands)
        for scope in self.scopes[:depth:-1]:
            if buffer in scope.written:
                return scope.depth
        return depth

    def note_write(self, buffer: SSAValue) -> None:
        """Record that an operation in the innermost scope writes to a buffer."""
        for scope in self.scopes:
            scope.written.add(buffer)


def may_trap(kind: type[Operation], operands: Sequence[SSAValue]) -> bool:
    """Whether an operation may trap with these operands."""
    return kind in TRAPPING and not _is_harmless(kind, operands[1])


def _is_harmless(kind: type[Operation], divisor: SSAValue) -> bool:
    """Whether a division never traps: the divisor is neither 0 nor -1 (which overflows)."""
    number, op = _number(divisor), divisor.owner
    if number is not None:
        return number not in (0, -1)
    # For a signed division, the largest unsigned number is -1.
    largest = arith.MaxUIOp if kind in (arith.DivUIOp, arith.RemUIOp) else arith.MaxSIOp
    if isinstance(op, arith.MaxSIOp | largest):
        return (_number(op.lhs) or 0) > 0 or (_number(op.rhs) or 0) > 0
    if isinstance(op, Operation) and op.name == arith.SelectOp.name:
        condition, chosen, other = op.operands
        return _is_harmless(kind, chosen) and {0, -1} <= set(_excluded(condition, other))
    return False


def _excluded(condition: SSAValue, value: SSAValue) -> Iterator[int]:
    """Numbers that a value differs from if a condition does not hold."""
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
