"""Checks of operations before LLVM's builder gets them.

Neither xDSL nor the builder makes them, and LLVM ends the process for some of what they refuse.
Text that anybody wrote may break any rule.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import llvm
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...core.errors import CompileError, explain
from ...core.ir.provenance import origin

_MOST_ALIGNMENT = 1 << 32
_ORDERINGS = {llvm.LoadOp: (1, 2, 4, 7), llvm.StoreOp: (1, 2, 5, 7)}
"""Those of atomic operations: a load does not release, a store does not acquire."""


def check(op: Operation, what: str, good: bool, expected: object, got: object) -> None:
    """Refuse an operation.

    Raises:
        CompileError: if it is not `good`.
    """
    if not good:
        fact, where = f"wrong {what}", origin(op)
        raise CompileError(explain(op.name, fact, expected=expected, got=got, origin=where))


def check_types(
    op: Operation, what: str, given: Sequence[SSAValue], wanted: Sequence[Attribute]
) -> None:
    """Refuse an operation whose values have other types than wanted.

    Raises:
        CompileError: if some have.
    """
    types = [value.type for value in given]
    if types != list(wanted):
        texts = (", ".join(map(str, one)) for one in (wanted, types))
        check(op, f"types of {what}", False, *texts)


def atomic_access(op: llvm.LoadOp | llvm.StoreOp) -> tuple[str, int] | None:
    """The ordering and the alignment of an atomic operation; None for another one.

    Raises:
        CompileError: if it states an unknown ordering, or no valid alignment.
    """
    if op.ordering is None or not op.ordering.value.data:
        return None
    if op.alignment is None:
        raise CompileError(explain(op.name, "atomic without an alignment", origin=origin(op)))
    number, known = op.ordering.value.data, _ORDERINGS[type(op)]
    check(op, "ordering", number in known, ", ".join(map(str, known)), number)
    return llvm.ATOMIC_ORDERING_KEYWORDS[number], alignment_of(op, op.alignment)


def alignment_of(op: Operation, stated: IntegerAttr) -> int:
    """The alignment that an operation states, in bytes.

    LLVM ends the process for others, in intrinsics.

    Raises:
        CompileError: if it is none.
    """
    number = stated.value.data
    valid = number.bit_count() == 1 and 0 < number <= _MOST_ALIGNMENT
    check(op, "alignment", valid, f"a power of two up to {_MOST_ALIGNMENT}", number)
    return number


def check_branch(op: Operation, target: Block, given: Sequence[SSAValue]) -> None:
    """Refuse a branch to a block that takes other arguments, or to which none may go.

    Raises:
        CompileError: if it is one.
    """
    check_types(op, "arguments", given, [argument.type for argument in target.args])
    region = target.parent
    is_first = region is not None and target is region.first_block
    check(op, "target", not is_first, "a block that is not the first", "the first")
