"""The arena: the buffers in it, their lifetimes, and their views."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue
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
from .function import BufferFunction, Call, location_of
from .slots import ArenaPlan, Lifetime, plan_arena

ALIGNMENT = 64
"""Buffers in the arena begin at multiples of this many bytes: a cache line, a vector."""
LARGEST_ARENA = 1 << 62
"""The limit for bytes: sizes are signed and have 64 bits."""


@dataclass(frozen=True)
class _Buffer:
    """A buffer in the arena: of a result, or a copy of a part of an argument."""

    value: SSAValue
    part: int
    shape: Shape
    size: Dim

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
    body = list(function.source.body.block.ops)[:-1]
    end, step = len(body), {op: number for number, op in enumerate(body)}
    buffers = [
        _copy_of(function, arg, part) for arg in function.arguments for part in indices.get(arg, ())
    ]
    # No other buffer reuses their slots: kernels also compute with the padding of aligned rows, and
    # as floats, leftover small integers are subnormal, which is ten times slower.
    lifetimes = [Lifetime(copy.size, -1, end) for copy in buffers]
    places: dict[OpResult, int] = {}
    for op in body:
        for value in op.results if isinstance(op, Call) else ():
            if value in function.buffers:
                continue
            kind = tensor_type(value)
            if is_sparse(kind):
                raise refused(op, "a call cannot give a sparse result")
            shape = function.shapes.shape(value)
            size = product(shape) * byte_size(kind.element_type)
            over = tuple(places[v] for v in _overwritable(function, value) if v in places)
            places[value] = len(buffers)
            buffers.append(_Buffer(value, 0, shape, size))
            uses = [step.get(use.operation, end) for use in value.uses]
            lifetimes.append(Lifetime(size, step[op], max(uses, default=step[op]), over))
    return buffers, lifetimes


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
        assert isinstance(source, Operation)  # copies of arguments come first, and reuse no slot
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
        kind = buffer_types(tensor_type(value))[part]
        assert isinstance(kind, MemRefType)
        dims = [
            function.size(dim, owner)
            for dim, size in zip(buffer.shape, kind.get_shape(), strict=True)
            if size == DYNAMIC_INDEX
        ]
        made = memref.ViewOp(arena, offsets[slot], dims, kind)
        made.location = location_of(value)
        view = function.insert(made)
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
