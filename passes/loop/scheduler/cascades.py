"""Sums of many terms: an accumulator adds up a limited number, and then goes to a total.

A long row of entries has larger chunks, 64 at most, since totals are rounded as often as there are
chunks.

The totals of a register tile do not fit into registers beside its accumulators. They are read and
written once for each chunk of a sum, which takes about as long as two of its terms.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import SSAValue

from ....dialects.loop.attrs import Combine
from ....dialects.loop.loops import enclosing, extent_of, loops_in
from ....dialects.loop.ops import ForOp, element_type
from .accesses import entry_loops, stored_entries
from .schedule import Schedule

TERMS = 256
"""The most terms that an accumulator adds up one after the other."""
ENTRIES = 128
"""The terms of a chunk of the entries of a row at least: fewer, as a row has one accumulator."""
FEWEST_TERMS = 64
"""The terms of an iteration of the outermost loop with which it is a chunk anyway."""


def cascade_sums(schedule: Schedule, reductions: Sequence[str]) -> None:
    """Make cascades of long sums of floats.

    Args:
        reductions: the innermost reduction of each nest, after the steps that need the whole of it.
    """
    for name in [name for name in reductions if schedule.has(name)]:
        inner = schedule.loop(name)
        sums = [inner, *itertools.takewhile(_is_rounded, enclosing(inner))]
        if _is_rounded(inner) and (found := _chunks(sums)):
            schedule.cascade(*found)


def cascade_entries(schedule: Schedule) -> None:
    """Make cascades of the sums of floats over the entries of rows: any row may be a long one."""
    for loop in entry_loops(schedule.kernel):
        pairs = zip(loop.combines, loop.carried, strict=True)
        adds_floats = any(c == Combine.ADD and _is_float(value) for c, value in pairs)
        entries, chunk = stored_entries(loop), ENTRIES * loop.at_once
        may_be_long = entries is None or entries > chunk
        if loop.is_joinable and loop.chunk is None and adds_floats and may_be_long:
            schedule.cascade(loop.loop_name.data, chunk)


def _is_float(value: SSAValue) -> bool:
    return isinstance(element_type(value.type), AnyFloat)


def innermost(loop: ForOp) -> list[str]:
    """The loops in a loop that have no loops in them."""
    inside = loops_in(loop.body.block)
    return [op.loop_name.data for op in inside if not any(loops_in(op.body.block))]


def _chunks(loops: Sequence[ForOp]) -> tuple[str, int] | None:
    """The one of nested reductions to cut into chunks, and the iterations of a chunk.

    None for a short sum.
    """
    terms = inside = 1
    for loop in loops:
        size, at_once = extent_of(loop), loop.at_once
        most = TERMS // terms * at_once
        if size is None or size > most:
            return loop.loop_name.data, _chunk(size, most, at_once)
        inside, terms = terms, terms * max(1, -(-size // at_once))
    if inside >= FEWEST_TERMS and terms > inside:
        return loops[-1].loop_name.data, 1
    return None


def _is_rounded(loop: ForOp) -> bool:
    """Whether a loop over a bound is a sum whose order shows in its result."""
    floats = all(map(_is_float, loop.carried))
    return floats and not loop.over_entries and set(loop.combines) == {Combine.ADD}


def _chunk(size: int | None, most: int, at_once: int) -> int:
    """The iterations of a chunk: chunks of one size, or at least of about one size."""
    if size is None or most <= at_once:
        return max(1, most)
    sizes = range(most // at_once * at_once, most // 2, -at_once)
    even = -(-size // -(-size // most))
    return next((f for f in sizes if size % f == 0), -(-even // at_once) * at_once)
