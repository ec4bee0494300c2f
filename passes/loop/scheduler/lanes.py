"""Nests whose iterations are vectorised as they are: elementwise operators, sparse products.

The loop that becomes the lanes is the innermost one along which every access goes to the next
element or stays where it is. Feature rows of a sparse product are carried over the entries of
a row as one block, so that they stay in registers. Where loads go to the next element along one
loop and stores along another, both become axes of a square, which is transposed in registers.
If none of these fits, loads may gather strided elements: strided windows, reshapes.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....dialects.loop.attrs import LoopKind
from ....dialects.loop.loops import bound_of
from ....dialects.loop.nests import perfect_nest
from ....dialects.loop.ops import ForOp, LoadOp, StoreOp
from .accesses import (
    Stride,
    accesses,
    cost,
    dependents,
    entries_of_a_row,
    entry_loops,
    is_expensive,
    lanes_for,
    power_of_two_up_to,
    stride,
)
from .cascades import cascade_sums, innermost
from .gathers import prefetch_columns
from .narrow import schedule_narrow_rows
from .schedule import Schedule

ROW_VECTORS = 8
"""Feature rows of at most this many vectors are accumulated over the entries as a whole."""
WIDE_VECTORS = 4
"""How many vectors of a wider row, or of a loop of cheap statements, run at a time."""
SQUARE = 16
"""The largest side of a square that is transposed in registers."""
WALKED_VECTORS = 8
"""How many vectors of a row are carried from row to row: more of each line and page are used."""
CHEAP = 12
"""Statements of at most this cost run on several vectors at a time."""


def lane_loop(nest: Sequence[ForOp], gathers: bool = False) -> ForOp | None:
    """The innermost of some perfectly nested loops that can become the lanes.

    Args:
        gathers: whether the elements of a load may be strided.
    """
    fits = set(Stride) if gathers else {Stride.UNIT, Stride.INVARIANT}
    for loop in reversed(nest):
        dependent = dependents(loop)
        strides = [(a, stride(a, loop.variable, dependent)) for a in accesses(loop)]
        if all(s == Stride.UNIT if isinstance(a, StoreOp) else s in fits for a, s in strides):
            return loop
    return None


def transposed_loops(nest: Sequence[ForOp]) -> tuple[ForOp, ForOp] | None:
    """A loop along which loads go to the next element, and the one along which stores do."""
    follows = {loop: dependents(loop) for loop in nest}

    def strides(loop: ForOp, kind: type[LoadOp | StoreOp]) -> list[Stride]:
        found = (a for a in accesses(nest[-1]) if isinstance(a, kind))
        return [stride(access, loop.variable, follows[loop]) for access in found]

    for columns in nest:
        if any(how != Stride.UNIT for how in strides(columns, StoreOp)):
            continue
        for rows in nest:
            if rows is not columns and Stride.UNIT in strides(rows, LoadOp):
                return rows, columns
    return None


def schedule_transpose(schedule: Schedule, nest: str) -> str | None:
    """Transpose squares where loads and stores are contiguous along different loops."""
    loops = perfect_nest(schedule.for_loop(nest))
    if any(op.regions for op in loops[-1].body.block.ops) or lane_loop(loops) is not None:
        return None
    found = transposed_loops(loops)
    if found is None:
        return None
    lanes = min(SQUARE, lanes_for(schedule.target, loops[0]))
    sizes = [schedule.extent(loop.loop_name.data) for loop in found]
    if lanes < 2 or any(size is not None and size < lanes // 2 for size in sizes):
        return None
    row, column = (loop.loop_name.data for loop in found)
    names = [loop.loop_name.data for loop in loops]
    order = [*(name for name in names if name not in (row, column)), row, column]
    if order != names:
        schedule.reorder(*order)
    rows = schedule.split(row, lanes, _tail(sizes[0], lanes))
    for inner, across in rows.nests(column):
        schedule.reorder(across, inner)
        for axis, along in schedule.split(across, lanes, _tail(sizes[1], lanes)).nests(inner):
            schedule.vectorize(along, axis)
    return f"squares of {lanes} x {lanes}"


def _tail(size: int | None, lanes: int) -> str:
    return "split" if size is None or size % lanes else "mask"


def schedule_gathers(schedule: Schedule, nest: str) -> str | None:
    """Vectorise a nest as `schedule_lanes` does, gathering strided elements.

    The loads cost as much as scalar ones, the arithmetic on them less.
    """
    return schedule_lanes(schedule, nest, gathers=True)


def schedule_lanes(schedule: Schedule, nest: str, gathers: bool = False) -> str | None:
    """Vectorise one of the loops of a nest; return what was done, None if nothing fits."""
    loops = perfect_nest(schedule.for_loop(nest))
    loop = lane_loop(loops, gathers)
    if loop is None:
        return None
    name, size = loop.loop_name.data, schedule.extent(loop.loop_name.data)
    if size is not None and size < 2:
        return None
    if reason := schedule.attempt(lambda: schedule_narrow_rows(schedule, name)):
        return reason
    loop = schedule.for_loop(name)
    lanes = lanes_for(schedule.target, loop)
    entries = entry_loops(loop)
    sums = max((len(op.results) for op in entries), default=1)
    limit = WIDE_VECTORS
    if entries:
        # The most values that a loop over entries accumulates for each of the lanes. One that does
        # not follow the lanes, such as the sum of a softmax, is a scalar.
        follows = dependents(loop)
        of_lane = max(sum(value in follows for value in op.results) for op in entries)
        # Half of the registers are accumulators, a power of two.
        limit = ROW_VECTORS
        if of_lane > 1:
            most = power_of_two_up_to(schedule.target.vector_registers // (2 * of_lane))
            limit = min(limit, most)
    expensive = is_expensive(loop) and not entries
    if expensive:
        vectors = _expensive_vectors(schedule.target.interleaved_vectors, size, lanes)
    else:
        vectors = _vectors(loop, size, lanes, bool(entries))
        vectors = min(vectors, limit) if entries else vectors
    vectors = schedule.knobs.vectors or vectors
    names, inside = [op.loop_name.data for op in entries], innermost(loop)
    if size is not None and size <= limit * lanes and (size < lanes or entries):
        schedule.vectorize(name)
        unroll_entries(schedule, names, -(-size // lanes) * sums)
        cascade_sums(schedule, inside)
        return f"rows of {size} elements are one block"
    whole = size is not None and size % (vectors * lanes) == 0
    cut_short = len(bound_of(loop)) > 1
    parts = schedule.split(name, vectors * lanes, "mask" if whole or cut_short else "split")
    for inner, *rows in parts.nests(*names, *inside):
        if expensive and size is None and inner != parts.inner:
            # A full chunk for the remainder would waste most of its lanes on a short row.
            inner = schedule.split(inner, lanes, "mask").inner
        schedule.vectorize(inner)
        unroll_entries(schedule, rows[: len(names)], vectors * sums)
        cascade_sums(schedule, rows[len(names) :])
    return f"vectors of {lanes} lanes, {vectors} at a time"


def _expensive_vectors(most: int, size: int | None, lanes: int) -> int:
    """How many vectors to interleave; a chunk of any number of vectors costs about the same."""
    if size is None:
        return most
    whole = -(-size // lanes)
    chunks = {n: -(-whole // n) for n in range(min(most, whole), 0, -1)}
    return min(chunks, key=lambda n: chunks[n] * (n + 1))


def _vectors(loop: ForOp, size: int | None, lanes: int, entries: bool) -> int:
    """How many vectors to process at a time."""
    inner = [op for op in loop.body.block.ops if isinstance(op, ForOp)]
    reduces = any(op.is_reduction and not op.over_entries for op in inner)
    if inner and all(map(_walks, inner)):
        return _whole_vectors(size, lanes, WALKED_VECTORS)
    if entries:
        # What an entry has for all lanes is computed again for each part of a row.
        most = ROW_VECTORS if is_expensive(loop) else WIDE_VECTORS
        return 1 if size is None else _whole_vectors(size, lanes, most)
    if is_expensive(loop) or not (reduces or cost_of_body(loop) <= CHEAP):
        return 1
    return _whole_vectors(size, lanes, WIDE_VECTORS)


def _whole_vectors(size: int | None, lanes: int, most: int) -> int:
    """How many vectors up to `most`, a power of two: if possible nothing is left of a row."""
    if size is None:
        return most
    vectors = most
    while vectors > 1 and size % (vectors * lanes):
        vectors //= 2
    return vectors if vectors > 1 else max(1, min(most, size // lanes))


def _walks(op: ForOp) -> bool:
    """Whether a loop carries values, cheaply, from one row to the next."""
    plain = not any(isinstance(inner, ForOp) for inner in op.body.block.ops)
    carries = op.kind.data == LoopKind.SERIAL and bool(op.results)
    return carries and plain and not is_expensive(op) and cost_of_body(op) <= CHEAP


def cost_of_body(loop: ForOp) -> int:
    """The cost of one iteration."""
    return sum(cost(op) for op in loop.body.block.ops)


def unroll_entries(schedule: Schedule, entries: Sequence[str], vectors: int) -> None:
    """Use several accumulators if one is a small block and rows are long enough."""
    most = 4 if vectors == 1 else 2 if vectors <= WIDE_VECTORS else 1
    for name in entries:
        prefetch_columns(schedule, name)
        loop = schedule.loop(name)
        factor = schedule.knobs.unroll or min(most, power_of_two_up_to(entries_of_a_row(loop) // 2))
        if factor > 1 and loop.is_joinable:
            schedule.unroll(name, factor)
