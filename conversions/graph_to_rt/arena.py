"""The arena: the buffers in it, their lifetimes, and their views.

Memory for a size without an upper bound is added behind what is in use once the size is known. In a
region it is free at the end of it, so each iteration of a loop begins at the same place; a result
of a condition stays, and what follows is added behind it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects import arith, func, memref
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue
from xdsl.utils.exceptions import PassFailedException

from ...core.algebra.dims import Dim, Shape, product
from ...core.dtypes import byte_size
from ...core.errors import explain
from ...core.ir.provenance import fuse
from ...core.ir.refusal import refused
from ...core.ir.typed import memref_type, tensor_type
from ...core.pipelines.actions import allowed
from ...dialects.graph import ops as graph
from ...dialects.graph.buffers import buffer_types
from ...dialects.graph.rearranging import is_alias
from ...dialects.graph.views import joined_at
from ...dialects.rt import ops as rt
from ...dialects.rt.abi import ALIGNMENT, rounded_up
from ...dialects.sparse_tensor import is_sparse
from .carrying import Carrying, in_results
from .checks import check_product
from .function import BufferFunction, BufferPlace, Producer, location_of
from .slots import ArenaPlan, Lifetime, plan_arena

LARGEST_ARENA = 1 << 62
"""The limit for bytes: sizes are signed and have 64 bits."""


@dataclass(frozen=True)
class _ArenaBuffer:
    """A buffer in the arena: of a result, a copy of a part of an argument, or a spare one of a
    value that a loop carries on.

    Others are in it, each from a number of bytes on: what its value joins.
    """

    value: SSAValue
    part: int
    shape: Shape
    size: Dim
    spare: bool = False
    inside: Sequence[tuple[_ArenaBuffer, int]] = ()

    @property
    def source(self) -> Operation | BlockArgument:
        """The operation or argument that its location is taken from."""
        source = self.value if isinstance(self.value, BlockArgument) else self.value.owner
        assert isinstance(source, Operation | BlockArgument)
        return source


@dataclass(frozen=True)
class ArenaPart:
    """A part of the arena: its buffers, and their slots."""

    buffers: Sequence[_ArenaBuffer]
    plan: ArenaPlan

    @property
    def size(self) -> Dim:
        """An upper bound for its bytes, with aligned slots."""
        return sum(self.plan.slots, Dim.of(ALIGNMENT * len(self.plan.slots)))


class Arena:
    """The arena of a function: a part that is there from the start, then one for each size without
    an upper bound, which is added once that size is known.

    Args:
        function: the function, whose `buffers` and `places` are completed.
        indices: the buffers of arguments that are copied to the arena, by number.
    """

    def __init__(self, function: BufferFunction, indices: Mapping[SSAValue, Sequence[int]]) -> None:
        self.function = function
        unbounded = [name for name, s in function.shapes.computed.items() if s.bound is None]
        buffers, lifetimes = _needed(function, indices)
        parts = [_part_of(buffer, unbounded) for buffer in buffers]
        self.first, *others = (
            _planned(function, *_chosen(buffers, lifetimes, [n == part for n in parts]))
            for part in range(len(unbounded) + 1)
        )
        self._others = dict(zip(unbounded, others, strict=True))

    @property
    def parts(self) -> list[ArenaPart]:
        """The parts that are not empty."""
        return [part for part in (self.first, *self._others.values()) if part.buffers]

    def begin(self) -> None:
        """Emit the first part, the views of its buffers, and the copies of arguments."""
        if not self.first.buffers:
            return
        with self.function.standing_for(fuse(buffer.source for buffer in self.first.buffers)):
            owner = self.first.buffers[0].value.owner
            self._emit(self.first, owner if isinstance(owner, Operation) else self.function.source)

    def extend(self, name: str, op: Operation) -> None:
        """Emit the part for a size without an upper bound, which `op` needs and now is known."""
        part = self._others[name]
        if not part.buffers:
            return
        _refuse_begun(op)
        check_product(self.function, part.size, name, op)
        self._emit(part, op)

    def keep(self, value: SSAValue, buffer: SSAValue, end: graph.YieldOp) -> SSAValue:
        """Copy a value that a branch yields behind all that is in use; returns its offset."""
        function, shape = self.function, self.function.shapes.shape(value)
        _refuse_begun(end)
        offset = function.sizes.index(0) if function.arena_end is None else function.arena_end
        kind = memref_type(buffer)
        size = function.size(product(shape) * byte_size(kind.element_type), end)
        function.arena_end = function.insert(arith.AddiOp(offset, rounded_size(function, size)))
        place = BufferPlace(arena_up_to(function, function.arena_end), offset)
        function.append(memref.CopyOp(buffer, function.view_at(place, kind, shape, end)))
        return offset

    def take(self, op: graph.IfOp, offsets: Mapping[SSAValue, SSAValue], end: SSAValue) -> None:
        """Note where results are that the branch of a condition has kept, and where they end."""
        memory = arena_up_to(self.function, end)
        self.function.arena_end = end
        for result, offset in offsets.items():
            self.function.places[result] = BufferPlace(memory, offset)

    def _emit(self, part: ArenaPart, owner: Operation) -> None:
        arena, offsets = offsets_in_arena(self.function, part, owner)
        for buffer, slot in zip(part.buffers, part.plan.slot_of, strict=True):
            _make_view(self.function, buffer, BufferPlace(arena, offsets[slot]), owner)
            for inner, start in buffer.inside:
                begin = arith.AddiOp(offsets[slot], self.function.sizes.index(start))
                place = BufferPlace(arena, self.function.insert(begin))
                _make_view(self.function, inner, place, owner)


def _part_of(buffer: _ArenaBuffer, unbounded: Sequence[str]) -> int:
    """The number of the part for a buffer: that of the last size that it needs."""
    needed = (number for number, name in enumerate(unbounded, 1) if name in buffer.size.symbols)
    return max(needed, default=0)


def _chosen(
    buffers: Sequence[_ArenaBuffer], lifetimes: Sequence[Lifetime], is_chosen: Sequence[bool]
) -> tuple[list[_ArenaBuffer], list[Lifetime]]:
    """Some of the buffers with their lifetimes."""
    numbers = [number for number, chosen in enumerate(is_chosen) if chosen]
    place = {number: own for own, number in enumerate(numbers)}
    own = [lifetimes[number] for number in numbers]
    own = [replace(one, over=tuple(place[n] for n in one.over if n in place)) for one in own]
    return [buffers[number] for number in numbers], own


def _refuse_begun(op: Operation) -> None:
    """Refuse to add memory after a registered function: where the arena turns out to be too small,
    the call begins again."""
    if any(isinstance(before, graph.CallPackedOp) for before in _before(op)):
        fact = "a registered function is called before memory for a size can be allocated"
        raise refused(op, fact, expected="a size with an upper bound")


def _before(op: Operation) -> Iterator[Operation]:
    """The operations that may have run before one, of all in the function."""
    around: Operation | None = op
    while around is not None and not isinstance(around, func.FuncOp):
        if isinstance(around, graph.LoopOp):
            yield from around.walk()
        assert around.parent is not None
        for other in around.parent.ops:
            if other is around:
                break
            yield from other.walk()
        around = around.parent_op()


def _needed(
    function: BufferFunction, indices: Mapping[SSAValue, Sequence[int]]
) -> tuple[list[_ArenaBuffer], list[Lifetime]]:
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
        self, function: BufferFunction, buffers: list[_ArenaBuffer], lifetimes: list[Lifetime]
    ) -> None:
        self.function, self.buffers, self.lifetimes = function, buffers, lifetimes
        self.steps = _steps(function.source.body.block)
        self._bound: set[SSAValue] = set()
        self._places: dict[SSAValue, int] = {}
        self._joined = _joined(function.source.body.block)
        self._made: set[SSAValue] = set()

    def visit(self, block: Block) -> None:
        """Add the buffers of a block and of those in it."""
        for op in block.ops:
            if not isinstance(op, Producer):
                continue
            for value in op.results:
                known = value in self.function.buffers or value in self.function.places
                if isinstance(op, graph.IfOp):
                    known = known or self.function.is_placed_by_branch(op, value)
                if not known and value not in self._bound:
                    self._add_result(op, value)
            if isinstance(op, graph.IfOp):
                self._bound.update(in_results(self.function, op))
            if isinstance(op, graph.LoopOp):
                self._add_spares(op)
            for region in op.regions:
                self.visit(region.block)

    def _add_result(self, op: Operation, value: OpResult) -> None:
        if is_sparse(value.type):
            raise refused(op, "a call cannot give a sparse result")
        begin, end = self.steps[op]
        if value in self._joined:
            self._add_joined(value, begin)
            return
        over = _overwritable(self.function, value)
        uses = [self.steps[user][1] for user in _users(value)]
        places = tuple(self._places[v] for v in over if v in self._places)
        self._places[value] = len(self.buffers)
        self._add(self._buffer(value), begin, max(uses, default=end), places)

    def _add_joined(self, value: SSAValue, begin: int) -> None:
        """Add the buffer that a value is in, with all that is in it, unless it is there already."""
        whole, _ = self._joined[value]
        if whole in self._made:
            return
        self._made.add(whole)
        starts = {v: start for v, (other, start) in self._joined.items() if other is whole}
        last = max(self.steps[user][1] for v in (whole, *starts) for user in _users(v))
        inside = [(self._buffer(v), start) for v, start in starts.items()]
        self._add(replace(self._buffer(whole), inside=inside), begin, last)

    def _add_spares(self, op: graph.LoopOp) -> None:
        """Add the buffers through which what a loop carries on rotates, and that of its number."""
        carrying = Carrying.of(op)
        spares = {v: count - (v in carrying.ends) for v, count in carrying.spares.items()}
        if op.number.uses and op.number not in carrying.stacks:
            spares.setdefault(op.number, 1)
        for value, count in spares.items():
            for _ in range(count):
                self._add(replace(self._buffer(value), spare=True), *self.steps[op])
        self._bound.update((*carrying.stacks, *carrying.spares))

    def _add(self, buffer: _ArenaBuffer, first: int, last: int, over: tuple[int, ...] = ()) -> None:
        self.buffers.append(buffer)
        self.lifetimes.append(Lifetime(buffer.size, first, last, over))

    def _buffer(self, value: SSAValue) -> _ArenaBuffer:
        """The buffer of a value."""
        shape = self.function.shapes.shape(value)
        elements = self.function.shapes.at_most(product(shape))
        size = elements * byte_size(tensor_type(value).element_type)
        return _ArenaBuffer(value, 0, shape, size)


def _joined(block: Block) -> dict[SSAValue, tuple[SSAValue, int]]:
    """The values that are parts of the buffer of another one: which, and from which byte on."""
    found: dict[SSAValue, tuple[SSAValue, int]] = {}
    # What a join gives can be joined again, later.
    for op in reversed(list(block.ops)):
        if (places := joined_at(op)) is not None:
            whole, begin = found.get(op.results[0], (op.results[0], 0))
            found.update((x, (whole, begin + n)) for x, n in zip(op.operands, places, strict=True))
    return found


def _users(value: SSAValue) -> Iterator[Operation]:
    """The operations that use a value, or another one that is in its buffer."""
    for use in value.uses:
        yield use.operation
        if is_alias(use.operation):
            yield from _users(use.operation.results[0])


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


def _copy_of(function: BufferFunction, arg: SSAValue, part: int) -> _ArenaBuffer:
    """A buffer for a copy of one buffer of an argument."""
    shape = function.shapes.shape(arg)
    if is_sparse(arg.type):
        entries = function.shapes.nnz(arg)
        assert entries is not None
        shape = (entries if part else shape[0] + Dim.of(1),)
    element = memref_type(function.buffers[arg][part]).element_type
    return _ArenaBuffer(arg, part, shape, product(shape) * byte_size(element))


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
        users = (use.operation for use in operand.uses)
        if any(map(is_alias, users)):
            # The kernel may read it under another name.
            continue
        if kernel.may_overwrite(first + result.index).issuperset(places):
            yield operand


def _planned(
    function: BufferFunction, buffers: Sequence[_ArenaBuffer], lifetimes: Sequence[Lifetime]
) -> ArenaPart:
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
    return ArenaPart(buffers, plan)


def _make_view(
    function: BufferFunction, buffer: _ArenaBuffer, place: BufferPlace, owner: Operation
) -> None:
    """Emit the view of a buffer, or note its place where its size is not known yet."""
    value, part = buffer.value, buffer.part
    if function.shapes.is_computed(*buffer.shape) or function.may_be_negative(*buffer.shape):
        if buffer.spare:
            function.spare_places.setdefault(value, []).append(place)
        else:
            function.places[value] = place
        return
    kind = buffer_types(tensor_type(value))[part]
    with function.standing_for(location_of(value)):
        view = function.view_at(place, kind, buffer.shape, owner)
    if buffer.spare:
        function.spares.setdefault(value, []).append(view)
        return
    if isinstance(value, OpResult):
        function.buffers[value] = [view]
        return
    copy = memref.CopyOp(function.buffers[value][part], view)
    copy.location = location_of(value)
    function.append(copy)
    function.buffers[value][part] = view


def offsets_in_arena(
    function: BufferFunction, part: ArenaPart, owner: Operation
) -> tuple[SSAValue, list[SSAValue]]:
    """The arena, and the offsets of its slots, each after the one before.

    Guards of the tests replace this function, to have pages between slots.
    """
    sizes, static, plan, moving = function.sizes, 0, part.plan, function.arena_end
    # Regions check the sizes in them where they run.
    unchecked = {
        slot
        for buffer, slot in zip(part.buffers, plan.slot_of, strict=True)
        if function.may_be_negative(*map(function.shapes.at_most, buffer.shape))
    }

    def offset() -> SSAValue:
        if moving is None:
            return sizes.index(static)
        return function.insert(arith.AddiOp(moving, sizes.index(static))) if static else moving

    offsets: list[SSAValue] = []
    for number, size in enumerate(plan.slots):
        offsets.append(offset())
        if size.is_static:
            static += rounded_up(size.value)
            continue
        total = function.size(size, owner)
        if number in unchecked:
            total = function.insert(arith.MaxSIOp(total, sizes.index(0)))
        rounded = rounded_size(function, total)
        moving = rounded if moving is None else function.insert(arith.AddiOp(moving, rounded))
    function.arena_end = offset()
    return arena_up_to(function, function.arena_end), offsets


def arena_up_to(function: BufferFunction, end: SSAValue) -> SSAValue:
    """The arena up to an offset."""
    arena = function.insert(rt.ArenaOp(function.context, end, function.is_repeated))
    arena.name_hint = "arena"
    return arena


def rounded_size(function: BufferFunction, size: SSAValue) -> SSAValue:
    """A size in bytes, rounded up to the alignment."""
    index = function.sizes.index
    more = function.insert(arith.AddiOp(size, index(ALIGNMENT - 1)))
    lines = function.insert(arith.DivUIOp(more, index(ALIGNMENT)))
    return function.insert(arith.MuliOp(lines, index(ALIGNMENT)))
