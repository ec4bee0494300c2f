"""The arena: the buffers in it, their lifetimes, and their views."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, memref
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue
from xdsl.utils.exceptions import PassFailedException

from ...core.actions import allowed
from ...core.dims import Dim, Shape, product
from ...core.dtypes import byte_size
from ...core.errors import explain
from ...core.provenance import fuse
from ...core.refusal import refused
from ...core.typed import memref_type, tensor_type
from ...dialects.graph import ops as graph
from ...dialects.graph.buffers import buffer_types
from ...dialects.rt import ops as rt
from ...dialects.sparse_tensor import is_sparse
from .carrying import Carrying, in_results
from .function import BufferFunction, Place, Producer, location_of
from .slots import ArenaPlan, Lifetime, plan_arena

ALIGNMENT = 64
"""Buffers in the arena begin at multiples of this many bytes: a cache line, a vector."""
LARGEST_ARENA = 1 << 62
"""The limit for bytes: sizes are signed and have 64 bits."""


@dataclass(frozen=True)
class _Buffer:
    """A buffer in the arena: of a result, a copy of a part of an argument, or a spare one of a
    value that a loop carries on."""

    value: SSAValue
    part: int
    shape: Shape
    size: Dim
    spare: bool = False

    @property
    def source(self) -> Operation | BlockArgument:
        """The operation or argument that its location is taken from."""
        source = self.value if isinstance(self.value, BlockArgument) else self.value.owner
        assert isinstance(source, Operation | BlockArgument)
        return source


def total_size(plan: ArenaPlan) -> Dim:
    """An upper bound for the bytes of an arena with aligned slots."""
    return sum(plan.slots, Dim.of(ALIGNMENT * len(plan.slots)))


def allocate(function: BufferFunction, indices: Mapping[SSAValue, Sequence[int]]) -> ArenaPlan:
    """Create the buffers of results of calls that the function does not return.

    Args:
        function: the function, whose `buffers` are completed.
        indices: the buffers of arguments that are copied to the arena, by number.
    """
    buffers, lifetimes = _needed(function, indices)
    plan = _planned(function, buffers, lifetimes)
    if buffers:
        with function.standing_for(fuse(buffer.source for buffer in buffers)):
            _make_views(function, buffers, plan)
    return plan


def _needed(
    function: BufferFunction, indices: Mapping[SSAValue, Sequence[int]]
) -> tuple[list[_Buffer], list[Lifetime]]:
    """The buffers of the arena and their lifetimes."""
    end = sum(1 for _ in function.source.body.walk())
    buffers = [
        _copy_of(function, arg, part) for arg in function.arguments for part in indices.get(arg, ())
    ]
    # No other buffer reuses their slots: kernels also compute with the padding of aligned rows, and
    # as floats, leftover small integers are subnormal, which is ten times slower.
    lifetimes = [Lifetime(copy.size, -1, end) for copy in buffers]
    needs = _Needs(function, buffers, lifetimes)
    needs.visit(function.source.body.block)
    return buffers, lifetimes


class _Needs:
    """Collects the buffers that operations need, in the order of their first steps."""

    def __init__(
        self, function: BufferFunction, buffers: list[_Buffer], lifetimes: list[Lifetime]
    ) -> None:
        self.function, self.buffers, self.lifetimes = function, buffers, lifetimes
        self.steps = _steps(function.source.body.block)
        self._bound: set[SSAValue] = set()
        self._places: dict[SSAValue, int] = {}

    def visit(self, block: Block) -> None:
        """Add the buffers of a block and of those in it."""
        for op in block.ops:
            if not isinstance(op, Producer):
                continue
            for value in op.results:
                known = value in self.function.buffers or value in self.function.places
                if not known and value not in self._bound:
                    self._add_result(op, value)
            if isinstance(op, graph.IfOp):
                self._bound.update(in_results(op))
            if isinstance(op, graph.LoopOp):
                self._add_spares(op)
            for region in op.regions:
                self.visit(region.block)

    def _add_result(self, op: Operation, value: OpResult) -> None:
        if is_sparse(value.type):
            raise refused(op, "a call cannot give a sparse result")
        over = _overwritable(self.function, value)
        begin, _ = self.steps[op]
        uses = [self.steps[user][1] for user in _users(value)]
        places = tuple(self._places[v] for v in over if v in self._places)
        self._places[value] = len(self.buffers)
        self._add(value, begin, max(uses, default=self.steps[op][1]), places)

    def _add_spares(self, op: graph.LoopOp) -> None:
        """Add the buffers through which what a loop carries on rotates, and that of its number."""
        carrying = Carrying.of(op)
        spares = {v: count - (v in carrying.ends) for v, count in carrying.spares.items()}
        if op.number.uses and op.number not in carrying.stacks:
            spares.setdefault(op.number, 1)
        for value, count in spares.items():
            for _ in range(count):
                self._add(value, *self.steps[op], spare=True)
        self._bound.update((*carrying.stacks, *carrying.spares))

    def _add(
        self,
        value: SSAValue,
        first: int,
        last: int,
        over: tuple[int, ...] = (),
        spare: bool = False,
    ) -> None:
        shape = self.function.shapes.shape(value)
        elements = self.function.shapes.at_most(product(shape))
        size = elements * byte_size(tensor_type(value).element_type)
        self.buffers.append(_Buffer(value, 0, shape, size, spare))
        self.lifetimes.append(Lifetime(size, first, last, over))


def _users(value: SSAValue) -> Iterator[Operation]:
    """The operations that use a value, or a matrix that it is a part of."""
    for use in value.uses:
        yield use.operation
        if isinstance(use.operation, graph.AssembleOp):
            yield from _users(use.operation.result)


def _steps(block: Block) -> dict[Operation, tuple[int, int]]:
    """The first and last step of each operation of a block and of those in it."""
    steps: dict[Operation, tuple[int, int]] = {}

    def number(block: Block, step: int) -> int:
        for op in block.ops:
            first = step
            for region in op.regions:
                step = number(region.block, step + 1)
            steps[op] = first, step
            step += 1
        return step

    number(block, 0)
    return steps


def _copy_of(function: BufferFunction, arg: SSAValue, part: int) -> _Buffer:
    """A buffer for a copy of one buffer of an argument."""
    shape = function.shapes.shape(arg)
    if is_sparse(arg.type):
        entries = function.shapes.nnz(arg)
        assert entries is not None
        shape = (entries if part else shape[0] + Dim.of(1),)
    element = memref_type(function.buffers[arg][part]).element_type
    return _Buffer(arg, part, shape, product(shape) * byte_size(element))


def _overwritable(function: BufferFunction, result: OpResult) -> Iterator[OpResult]:
    """The operands of a call whose buffers its kernel may overwrite with a result."""
    call = result.owner
    if not isinstance(call, graph.CallDpsOp):
        return
    kernel, shapes = function.kernel(call), function.shapes
    positions: dict[SSAValue, list[int]] = {}
    *numbers, first = call.places
    for operand, number in zip(call.arguments, numbers, strict=True):
        positions.setdefault(operand, []).append(number)
    for operand, places in positions.items():
        if not isinstance(operand, OpResult) or shapes.shape(operand) != shapes.shape(result):
            continue
        if kernel.may_overwrite(first + result.index).issuperset(places):
            yield operand


def _planned(
    function: BufferFunction, buffers: Sequence[_Buffer], lifetimes: Sequence[Lifetime]
) -> ArenaPlan:
    def may_share(number: int) -> bool:
        source = buffers[number].source
        if isinstance(source, BlockArgument):  # the number of an iteration
            source = function.source
        return allowed("share a slot", source)

    plan = plan_arena(lifetimes, may_share)
    size = sum(slot.value for slot in plan.slots if slot.is_static)
    if size > LARGEST_ARENA:
        fact = f"buffers of {size} bytes are needed at a time"
        raise PassFailedException(explain(function.source.name, fact, expected="less"))
    return plan


def _make_views(function: BufferFunction, buffers: Sequence[_Buffer], plan: ArenaPlan) -> None:
    """Emit the arena, the views of buffers, and the copies of arguments."""
    owner = buffers[0].value.owner
    owner = owner if isinstance(owner, Operation) else function.source
    arena, offsets = _arena(function, plan, owner)
    for buffer, slot in zip(buffers, plan.slot_of, strict=True):
        value, part = buffer.value, buffer.part
        place = Place(arena, offsets[slot])
        if function.shapes.is_computed(*buffer.shape):
            if buffer.spare:
                function.spare_places.setdefault(value, []).append(place)
            else:
                function.places[value] = place
            continue
        kind = buffer_types(tensor_type(value))[part]
        with function.standing_for(location_of(value)):
            view = function.view_at(place, kind, buffer.shape, owner)
        if buffer.spare:
            function.spares.setdefault(value, []).append(view)
            continue
        if isinstance(value, OpResult):
            function.buffers[value] = [view]
            continue
        copy = memref.CopyOp(function.buffers[value][part], view)
        copy.location = location_of(value)
        function.append(copy)
        function.buffers[value][part] = view


def _arena(
    function: BufferFunction, plan: ArenaPlan, owner: Operation
) -> tuple[SSAValue, list[SSAValue]]:
    """The arena, and the offsets of its slots."""
    sizes, static = function.sizes, 0
    moving: SSAValue | None = None

    def offset() -> SSAValue:
        if moving is None:
            return sizes.index(static)
        return function.insert(arith.AddiOp(moving, sizes.index(static))) if static else moving

    offsets: list[SSAValue] = []
    for size in plan.slots:
        offsets.append(offset())
        if size.is_static:
            static += -(-size.value // ALIGNMENT) * ALIGNMENT
            continue
        rounded = _rounded(function, function.size(size, owner))
        moving = rounded if moving is None else function.insert(arith.AddiOp(moving, rounded))
    arena = function.insert(rt.ArenaOp(function.context, offset()))
    arena.name_hint = "arena"
    return arena, offsets


def _rounded(function: BufferFunction, size: SSAValue) -> SSAValue:
    """A size in bytes, rounded up to the alignment."""
    index = function.sizes.index
    more = function.insert(arith.AddiOp(size, index(ALIGNMENT - 1)))
    lines = function.insert(arith.DivUIOp(more, index(ALIGNMENT)))
    return function.insert(arith.MuliOp(lines, index(ALIGNMENT)))
