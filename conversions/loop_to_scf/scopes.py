"""Emits operations on scalars and machine vectors into the open scopes of a function."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import cast

from xdsl.dialects import arith, scf, vector
from xdsl.dialects.builtin import (
    UNKNOWN_LOC,
    AnyFloat,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    LocationAttr,
    VectorType,
    i1,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ...core.bounded_cache import bounded_cache
from ...core.building.arithmetic import INDEX
from ...core.building.creation import created
from ...core.building.scopes import Scope, Scopes
from ...dialects.upstream import ops as upstream

_COMPARISONS = {
    name: IntegerAttr(number, i64) for number, name in enumerate(arith.CMPI_COMPARISON_OPERATIONS)
}


@dataclass(eq=False)
class VectorScope(Scope):
    """A scope of a function that computes with vectors."""

    frame: int = 0
    """Depth of the body of the function or tile around it, which no vector enters from outside."""
    head: list[Operation] = field(default_factory=list)
    """Operations at the top of the body of a function or tile."""


class ScopedEmitter(Scopes[VectorScope]):
    """Emits operations into the open scopes, each distinct pure one once per scope."""

    def __init__(self, entry: Block) -> None:
        super().__init__(VectorScope(entry))
        self.location: LocationAttr = UNKNOWN_LOC
        self.origin: int | None = None
        """The depth of the block whose piece is being emitted; None for the innermost scope."""
        self.depths: dict[SSAValue, int] = dict.fromkeys(entry.args, 0)
        self.lane_of: dict[SSAValue, tuple[SSAValue, int]] = {}
        """Scalars that were extracted from a machine vector."""
        self._period: dict[SSAValue, int] = {}
        """The period of machine vectors whose lanes repeat."""
        self._constants: dict[object, SSAValue] = {}
        self._vectors: dict[tuple[Attribute, int], VectorType] = {}

    # Scopes.

    @property
    def frame(self) -> int:
        """The depth of the body of the function or tile, which vectors stay in."""
        return self.scopes[-1 if self.origin is None else self.origin].frame

    def open(self, block: Block, frame: bool = False) -> None:
        """Open a scope that fills `block`; a `frame` is isolated from above."""
        depth = len(self.scopes)
        inside = depth if frame else self.scopes[-1].frame
        self.scopes.append(VectorScope(block, depth, inside, conditional=True))
        for arg in block.args:
            self.depths[arg] = depth

    def close(self) -> Block:
        """End the innermost scope and return its block."""
        scope = self.scopes.pop()
        if scope.head:
            first = scope.block.first_op
            if first is None:
                scope.block.add_ops(scope.head)
            else:
                scope.block.insert_ops_before(scope.head, first)
        return scope.block

    # Operations.

    def emit(
        self,
        kind: type[Operation],
        operands: Sequence[SSAValue],
        results: Sequence[Attribute] = (),
        properties: Mapping[str, Attribute] | None = None,
        depth: int | None = None,
        regions: Sequence[Region] = (),
    ) -> Operation:
        """Append an operation to a scope, by default the innermost one."""
        if depth is None:
            depth = len(self.scopes) - 1
        op = created(kind, operands, results, properties or {}, {}, self.location, regions)
        self.scopes[depth].block.add_op(op)
        for result in op.results:
            self.depths[result] = depth
        return op

    def emit_head(
        self,
        kind: type[Operation],
        operands: Sequence[SSAValue],
        result: Attribute,
        properties: Mapping[str, Attribute],
        depth: int,
    ) -> SSAValue:
        """Put an operation at the top of a frame."""
        op = created(kind, operands, [result], properties, location=self.location)
        self.scopes[depth].head.append(op)
        self.depths[op.results[0]] = depth
        return op.results[0]

    def emit_after(
        self,
        value: SSAValue,
        kind: type[Operation],
        result: Attribute,
        properties: Mapping[str, Attribute],
    ) -> SSAValue:
        """Put an operation on a value at the top of the frame that has it, or right after it."""
        owner, depth = value.owner, self.depths[value]
        if not isinstance(owner, Operation) or owner in self.scopes[depth].head:
            return self.emit_head(kind, [value], result, properties, depth)
        op = kind.create(
            operands=[value], result_types=[result], properties=properties, location=owner.location
        )
        self.scopes[depth].block.insert_op_after(op, owner)
        self.depths[op.results[0]] = depth
        return op.results[0]

    def depth_of(self, values: Sequence[SSAValue]) -> int:
        """The depth of the innermost scope that values come from."""
        depths = self.depths
        return max([depths[value] for value in values], default=0)

    def pure(
        self,
        kind: type[Operation],
        operands: Sequence[SSAValue],
        result: Attribute,
        properties: Mapping[str, Attribute] | None = None,
    ) -> SSAValue:
        """The result of a pure operation in its outermost legal scope, emitted once there.

        Vectors stay in the frame: they are not passed to threads.
        """
        depth = self.home(kind, operands)
        if isinstance(result, VectorType):
            depth = max(depth, self.frame)
        extra = tuple(properties.values()) if properties else ()
        key = (kind, *operands, *extra, result)
        memo = self.scopes[depth].memo
        if key not in memo:
            op = self.emit(kind, operands, [result], properties, depth)
            memo[key] = op.results[0]
        return memo[key]

    def compare(self, predicate: str, left: SSAValue, right: SSAValue) -> SSAValue:
        """An i1 from two indices."""
        properties = {"predicate": _COMPARISONS[predicate]}
        return self.pure(upstream.CmpiOp, [left, right], i1, properties)

    # Types and constants.

    def machine(self, element: Attribute, width: int) -> Attribute:
        """The type of a machine vector; a width of 1 is a scalar."""
        if width == 1:
            return element
        key = (element, width)
        if key not in self._vectors:
            self._vectors[key] = VectorType(element, [width])
        return self._vectors[key]

    def _constant(self, key: object, make: IntegerAttr | FloatAttr | DenseIntOrFPElementsAttr):
        value = self.emit_head(arith.ConstantOp, [], make.get_type(), {"value": make}, 0)
        self._constants[key] = value
        return value

    def index(self, value: int) -> SSAValue:
        """A constant index."""
        return self._constants.get(value) or self._constant(value, _whole(value, INDEX))

    def scalar(self, attr: Attribute) -> SSAValue:
        """A constant of an `IntegerAttr` or a `FloatAttr`."""
        assert isinstance(attr, IntegerAttr | FloatAttr)
        key = (repr(attr.value.data), attr.type)
        return self._constants.get(key) or self._constant(key, attr)

    def splat(self, attr: Attribute, width: int) -> SSAValue:
        """A constant machine vector with equal lanes; a width of 1 gives the scalar."""
        assert isinstance(attr, IntegerAttr | FloatAttr)
        if width == 1:
            return self.scalar(attr)
        return self.lanes((attr,) * width)

    def lanes(self, attrs: tuple[IntegerAttr | FloatAttr, ...]) -> SSAValue:
        """A constant machine vector with these lanes."""
        values = tuple([attr.value.data for attr in attrs])
        element = attrs[0].type
        key = (repr(values), element)
        if found := self._constants.get(key):
            return found
        kind = self.machine(element, len(values))
        assert isinstance(kind, VectorType)
        if len({repr(v) for v in values}) == 1:
            values = values[:1]
        return self._constant(key, DenseIntOrFPElementsAttr.from_list(kind, values))

    def zero(self, element: Attribute, width: int) -> SSAValue:
        """A constant of zeros."""
        return self.splat(number(0, element), width)

    def known(self, value: SSAValue) -> Attribute | None:
        """The attribute of a scalar constant, None for other values."""
        owner = value.owner
        if isinstance(owner, arith.ConstantOp) and not isinstance(value.type, VectorType):
            return owner.value
        return None

    # Lanes of a machine vector.

    def broadcast(self, value: SSAValue, width: int) -> SSAValue:
        """A machine vector with equal lanes."""
        if width == 1:
            return value
        if (attr := self.known(value)) is not None:
            return self.splat(attr, width)
        if value in self.lane_of:
            source, lane = self.lane_of[value]
            period = self._period.get(source, width)
            return self.shuffle(source, source, [n - n % period + lane for n in range(width)])
        return self.pure(upstream.BroadcastOp, [value], self.machine(value.type, width))

    def repeat(self, value: SSAValue, width: int) -> SSAValue:
        """A machine vector in which the lanes of a shorter one repeat.

        Processors broadcast a lane of 128 bits to all lanes without a cross-lane shuffle.
        """
        kind = value.type
        assert isinstance(kind, VectorType)
        (period,) = kind.get_shape()
        result = self.shuffle(value, value, [n % period for n in range(width)])
        self._period[result] = period
        return result

    def shuffle(self, left: SSAValue, right: SSAValue, order: Sequence[int]) -> SSAValue:
        """A machine vector of lanes of two others; of one lane, a scalar."""
        kind = left.type
        assert isinstance(kind, VectorType)
        if len(order) == 1:
            return self.extract(left, order[0])
        if list(order) == list(range(kind.get_shape()[0])):
            return left
        result = self.machine(kind.element_type, len(order))
        mask = {"mask": DenseArrayBase.from_list(i64, list(order))}
        return self.pure(vector.ShuffleOp, [left, right], result, mask)

    def extract(self, value: SSAValue, lane: int) -> SSAValue:
        """One lane of a machine vector; a scalar is its own only lane."""
        kind = value.type
        if not isinstance(kind, VectorType):
            return value
        place = {"static_position": lane_number(lane)}
        found = self.pure(vector.ExtractOp, [value], kind.element_type, place)
        self.lane_of[found] = (value, lane)
        return found

    def drop_unused_lanes(self) -> None:
        """Remove extractions that were replaced by shuffles."""
        for value in self.lane_of:
            if not value.uses and isinstance(value.owner, Operation):
                value.owner.detach()
                value.owner.erase()

    @contextmanager
    def guarded(
        self, condition: SSAValue, otherwise: Sequence[SSAValue] = (), depth: int | None = None
    ) -> Iterator[list[SSAValue]]:
        """An `scf.if`, in the scope `depth`, around what is emitted within the context.

        Its results are the values appended to the list if the condition holds, else `otherwise`.
        After the context the list holds the results.
        """
        values: list[SSAValue] = []
        self.open(Block())
        yield values
        self.emit(scf.YieldOp, values)
        regions = [Region(self.close()), Region()]
        if otherwise:
            self.open(Block())
            self.emit(scf.YieldOp, otherwise)
            regions[1] = Region(self.close())
        types = [value.type for value in otherwise]
        values[:] = self.emit(scf.IfOp, [condition], types, depth=depth, regions=regions).results


def width_of(type: Attribute) -> int:
    """The lanes of a machine vector; a scalar is one."""
    return type.get_shape()[0] if isinstance(type, VectorType) else 1


def number(value: float, element: Attribute) -> IntegerAttr | FloatAttr:
    """A number as an attribute of an integer, index or float type."""
    if isinstance(element, IntegerType | IndexType):
        return _whole(int(value), element)
    return FloatAttr(value, cast(AnyFloat, element))


@bounded_cache
def _whole(value: int, element: IntegerType | IndexType) -> IntegerAttr:
    """A number as an attribute, cached."""
    return IntegerAttr(value, element)


@bounded_cache
def lane_number(lane: int) -> DenseArrayBase:
    """The number of a lane as `vector.extract` and `vector.insert` take it."""
    return DenseArrayBase.from_list(i64, [lane])
