"""Panels of operands and the caches: they are copied dense, or prefetched."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import MemRefType, VectorType
from xdsl.ir import Attribute

from ....dialects.loop.arguments import CONSTANT
from ....dialects.loop.loops import enclosing, extent_of
from ....dialects.loop.nests import body_of
from ....dialects.loop.ops import ForOp, LoadOp
from ..steps.prefetch import bits_of, lines_of
from .accesses import accesses, bytes_apart, cost, estimated
from .schedule import Schedule

KEPT = 8
"""Weights larger than this many second-level caches are not cached when a call begins."""
FEW = 4
"""Panels that are read at most this many times are limited by memory latency."""
AHEAD = 8192
"""The prefetch distance of panels in bytes: as much as is read during a memory latency."""
STEPS_OF_HINT = 4
"""A hint for what a tile reads after its reduction is worth it beside this many of its steps."""
ROWS_IN_CACHE = 4
"""This many rows have to fit into the first-level cache to prefetch the next one."""


def copy_panels(schedule: Schedule, panels: str, reduction: str, columns: int) -> None:
    """Copy the panels of an operand passed by each call, if they are read repeatedly.

    An operand that fits into a cache is read in place.

    Args:
        panels: the loop over panels.
        reduction: the loop along their rows, of `columns` elements each.
    """
    if _reads(schedule, reduction, panels) <= FEW:
        return
    cache, steps = schedule.target.l2_bytes // 2, schedule.extent(reduction)
    for argument, buffer in enumerate(schedule.kernel.inputs):
        constant = CONSTANT in schedule.kernel.attrs_of(argument)
        kind = buffer.type
        if constant or not isinstance(kind, MemRefType) or not kind.has_static_shape():
            continue
        panel = None if steps is None else bytes_of(MemRefType(kind.element_type, [steps, columns]))
        if bytes_of(kind) > cache and panel is not None and panel <= cache:
            schedule.takes(schedule.stage, argument, panels)


def streamed(schedule: Schedule, arguments: Sequence[int], reads: int) -> list[int]:
    """The packed weights to prefetch: each call reads them from memory and waits for them.

    Args:
        arguments: the packed weights.
        reads: how often each panel is read; one that is read many times is in a cache anyway.
    """
    if reads > FEW:
        return []
    return _larger(schedule, arguments, KEPT * schedule.target.l2_bytes)


def _larger(schedule: Schedule, arguments: Sequence[int], size: int) -> list[int]:
    return [n for n in arguments if bytes_of(schedule.kernel.inputs[n].type) > size]


def prefetch_panels(
    schedule: Schedule, reductions: Sequence[str], arguments: Sequence[int], ahead: int = AHEAD
) -> None:
    """Prefetch packed weights in the loops along their rows."""
    for argument in arguments:
        for reduction in reductions:
            schedule.takes(schedule.prefetch, argument, reduction, ahead)


def prefetch_next_panels(
    schedule: Schedule, reductions: Sequence[str], arguments: Sequence[int]
) -> None:
    """Prefetch the next panel of weights that do not fit into the second-level cache.

    All tiles of rows read a panel. The first of them would wait for it.
    """
    large = _larger(schedule, arguments, schedule.target.l2_bytes)
    prefetch_panels(schedule, reductions, large, 0)


def partly_kept(schedule: Schedule, arguments: Sequence[int]) -> list[int]:
    """The packed weights, read once by each call, of which a cache may keep a part until the next.

    Calls that all begin with the first panel would find none of them in a cache that is smaller
    than the weights: the last panels have replaced the first ones.
    """
    return _larger(schedule, arguments, schedule.target.l2_bytes // 2)


def prefetch_rows(schedule: Schedule, reduction: str, packed: Sequence[int]) -> None:
    """Prefetch the next rows of an operand that does not fit into the second-level cache.

    Args:
        reduction: the loop along the rows.
        packed: arguments to leave out.
    """
    for argument, buffer in enumerate(schedule.kernel.inputs):
        kind = buffer.type
        if argument in packed or not isinstance(kind, MemRefType) or not kind.has_static_shape():
            continue
        if bytes_of(kind) > schedule.target.l2_bytes:
            schedule.takes(schedule.prefetch, argument, reduction, 0)


def prefetch_operands(schedule: Schedule, reductions: Sequence[str]) -> None:
    """Prefetch at the start of a tile what it reads after its reduction, such as a residual.

    Nothing else hides that latency: out-of-order execution does not reach beyond the reduction.

    Args:
        reductions: the innermost reduction of each nest.
    """
    for reduction in reductions:
        inner = schedule.loop(reduction)
        around = itertools.takewhile(lambda op: op.is_reduction, enclosing(inner))
        sums = [inner, *around]
        tile = next(enclosing(sums[-1]), None)
        steps = [extent_of(op) for op in sums]
        if tile is None or not tile.is_plain or None in steps:
            continue
        most = math.prod(cast(list[int], steps)) // STEPS_OF_HINT
        for argument, buffer in enumerate(schedule.kernel.inputs):
            kind = buffer.type
            if CONSTANT in schedule.kernel.attrs_of(argument) or not isinstance(kind, MemRefType):
                continue
            small = kind.has_static_shape() and bytes_of(kind) <= schedule.target.l1_bytes
            body = body_of(tile)
            loads = [op for op in body if isinstance(op, LoadOp) and op.buffer is buffer]
            if not small and loads and sum(map(lines_of, loads)) <= most:
                schedule.takes(schedule.prefetch, argument, tile.loop_name.data, 0)


def prefetch_next_rows(schedule: Schedule, rows: str) -> None:
    """Prefetch the next row of an argument whose rows are read several times, one after the other.

    The first loop that reads a row waits for memory. The most expensive loop that reads it again
    finds it in a cache and has time to prefetch the row after it.

    Args:
        rows: the loop over rows.
    """
    loop = schedule.for_loop(rows)
    passes = [op for op in body_of(loop) if isinstance(op, ForOp) and not op.over_entries]
    for argument, buffer in enumerate(schedule.kernel.inputs):
        reading = [op for op in passes if any(a.buffer is buffer for a in accesses(op))]
        again = [op for op in reading[1:] if op.is_plain]
        if not again:
            continue
        costliest = max(again, key=cost)
        access = next(a for a in accesses(costliest) if a.buffer is buffer)
        if not isinstance(access, LoadOp) or not isinstance(access.result.type, VectorType):
            continue
        ahead = bytes_apart(access, loop) or 0
        if 0 < ahead <= schedule.target.l1_bytes // ROWS_IN_CACHE:
            name = costliest.loop_name.data
            schedule.takes(schedule.prefetch, argument, name, ahead)


def _reads(schedule: Schedule, reduction: str, panels: str) -> int:
    """How often a reduction is repeated for the same panel."""
    around = enclosing(schedule.loop(reduction))
    inside = itertools.takewhile(lambda loop: loop.loop_name.data != panels, around)
    return estimated(map(extent_of, inside))


def bytes_of(kind: Attribute) -> int:
    assert isinstance(kind, MemRefType)
    return math.prod(kind.get_shape()) * bits_of(kind) // 8
