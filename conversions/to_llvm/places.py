"""Where new operations go: before the one that is being lowered, or after their last operand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from xdsl.dialects import llvm
from xdsl.dialects.builtin import UnrealizedConversionCastOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.traits import NoMemoryEffect, Pure

from ...core.building.creation import created


class LoweringPlaces:
    """Inserts operations into functions that are visited, definitions before uses."""

    def __init__(self) -> None:
        self.op: Operation
        """The operation that is being lowered; new operations are inserted before it."""
        self.entry: Block | None = None
        """The entry of the function that is being lowered."""
        self._emitted: list[Operation] = []
        # When each operation and block was visited; a hoisted one counts as the one it follows.
        self._order: dict[Operation | Block, int] = {}
        self._anchors: dict[Operation | Block, Operation | Block] = {}
        self._tails: dict[Operation | Block, Operation] = {}
        self._hoisted: dict[object, SSAValue] = {}

    def begins(self, block: Block) -> None:
        """Note that a block is visited now, unless it was before."""
        self._order.setdefault(block, len(self._order))

    @contextmanager
    def function(self, entry: Block | None) -> Iterator[None]:
        """Hoist to this entry of a function within the context."""
        outer = self.entry, self._hoisted
        self.entry, self._hoisted = entry, {}
        if entry is not None:
            self.begins(entry)
        yield
        self.entry, self._hoisted = outer

    @contextmanager
    def before(self, op: Operation) -> Iterator[None]:
        """Insert new operations before this one within the context."""
        outer, self.op = self.op, op
        yield
        self.op = outer

    def emit(
        self,
        kind: type[Operation],
        operands: Sequence[SSAValue],
        result_type: Attribute,
        properties: Mapping[str, Attribute] = {},
    ) -> SSAValue:
        """Insert an operation with one result before the one that is being lowered."""
        op = created(kind, operands, (result_type,), properties)
        self.place_before(op)
        return op.results[0]

    def perform(self, op: Operation) -> Operation:
        """Insert an operation before the one that is being lowered."""
        self.place_before(op)
        return op

    def hoist(
        self,
        key: object,
        kind: type[Operation],
        operands: Sequence[SSAValue],
        result_type: Attribute,
        properties: Mapping[str, Attribute] = {},
    ) -> SSAValue:
        """The result of a pure operation, placed right after the last of its operands.

        It is emitted once for each `key`, so an address that is invariant in a loop is computed
        before it. An operation without operands goes to the entry of the function.
        """
        found = self._hoisted.get(key)
        if found is not None:
            return found
        op = created(kind, operands, (result_type,), properties)
        anchor = self.last_definition(operands)
        if anchor is None:
            self.place_before(op)
        else:
            self.place_after(op, anchor)
        self._hoisted[key] = op.results[0]
        return op.results[0]

    def place_before(self, op: Operation) -> None:
        """Insert an operation before the one that is being lowered."""
        place = self.op
        op.location = place.location
        block = place.parent
        assert block is not None
        block.insert_op_before(op, place)
        self._order[op] = len(self._order)
        self._emitted.append(op)

    def place_after(self, op: Operation, anchor: Operation | Block) -> None:
        """Insert an operation after a definition and after those already hoisted there."""
        op.location = self.op.location
        tail = self._tails.get(anchor, anchor)
        if isinstance(tail, Operation):
            assert tail.parent is not None
            tail.parent.insert_op_after(op, tail)
        elif tail.first_op is None:
            tail.add_op(op)
        else:
            tail.insert_op_before(op, tail.first_op)
        self._tails[anchor] = op
        self._anchors[op] = anchor
        self._emitted.append(op)

    def time_of(self, value: SSAValue) -> int:
        """When the definition of an LLVM value was visited: its place in the dominance order."""
        return self._order.get(self._anchor_of(value), len(self._order))

    def _anchor_of(self, value: SSAValue) -> Operation | Block:
        owner = value.owner
        return self._anchors.get(owner, owner)

    def last_definition(self, operands: Sequence[SSAValue]) -> Operation | Block | None:
        """The owner of the latest of `operands`; None if unknown."""
        last: Operation | Block | None = self.entry
        time = -1 if last is None else self._order.get(last, -1)
        for operand in operands:
            anchor = self._anchor_of(operand)
            met = self._order.get(anchor)
            if met is None:
                return None
            if met > time:
                last, time = anchor, met
        return last

    def erase_unused(self) -> None:
        """Erase dead code: unused sizes, and sums folded into addresses."""
        for op in reversed(self._emitted):
            unused = all(result.first_use is None for result in op.results)
            if unused and op.results and _is_pure(op):
                op.detach()
                op.erase()


_PURE: dict[type[Operation], bool] = {}


def _is_pure(op: Operation) -> bool:
    kind = type(op)
    known = _PURE.get(kind)
    if known is None:
        known = op.has_trait(Pure) or op.has_trait(NoMemoryEffect)
        known = _PURE[kind] = known or kind in (llvm.ConstantOp, UnrealizedConversionCastOp)
    return known
