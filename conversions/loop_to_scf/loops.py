"""Loops: `scf.for` with accumulators, unrolled iterations, and conditions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects import scf, vector
from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import Block, Region, SSAValue
from xdsl.ir.affine import AffineMap

from ...core.algebra.expressions import ZERO, Affine
from ...core.building.arithmetic import INDEX
from ...core.ir.typed import float_type
from ...dialects.loop import ops as loop
from ...dialects.loop.attrs import Combine, LoopKind
from ...dialects.loop.proofs.levels import thread_nest
from ...dialects.upstream import ops as upstream
from .blocks import join, neutral
from .indices import fixed
from .memory import copy_async
from .scopes import width_of
from .searches import entry
from .state import State, StateTable, refuse
from .tiles import convert_tiles

LOOPS = StateTable()

_TOGETHER_BITS = 128
"""The maximum width of a load of scalars that are each broadcast to a vector: a lane of a 128-bit
vector is cheap to broadcast everywhere."""
_UNROLLED_ACCUMULATORS = 4
"""Accumulators of a completely unrolled reduction, to hide the latency of an addition."""
_CHUNKS = 64
"""About the most chunks of a row of entries, since totals are rounded once for each."""


@LOOPS.on(loop.YieldOp)
def _yield(op: loop.YieldOp, state: State) -> None:
    """Nothing: the loop reads what it yields."""


@LOOPS.on(loop.ForOp)
def _for(op: loop.ForOp, state: State) -> None:
    """Unrolled iterations, a range of tiles, a condition, or one or two loops."""
    lower, bounds, kind = ZERO, state.bound(op), op.kind.data
    if op.over_entries:
        indptr, (row,) = op.matrix[0], bounds
        lower, bounds = entry(state, indptr, row), [entry(state, indptr, row + 1)]
    upper = state.indices.least(bounds)
    known, at_once = (upper - lower).number, op.at_once
    if kind == LoopKind.ASYNC and copy_async(op, state):
        return
    if kind in (LoopKind.UNROLL, LoopKind.ASYNC):
        if known is None:
            fact = f'loop "{op.loop_name.data}" cannot be unrolled'
            refuse(op, fact, "a constant bound", "none")
        at_once = known
    few = known is not None and known <= at_once and not kind.is_on_device
    if op.is_plain and not few:
        threads = kind == LoopKind.THREADS and not thread_nest(op)
        if kind.is_distributed and (threads or not state.emitter.frame):
            convert_tiles(op, state)
            return
        if known is None and state.indices.ranges.of(upper)[1] == 1:
            _at_most_once(op, state, bounds)
            return
    parts = state.all_parts(op.inits)
    if op.chunk is not None:
        state.whole(op.results, _in_chunks(op, state, lower, upper, op.chunk, parts))
        return
    state.whole(op.results, _iterated(op, state, lower, bounds, upper, at_once, parts))


# min(1, n) > 0  ==  n > 0
def _at_most_once(op: loop.ForOp, state: State, bounds: Sequence[Affine]) -> None:
    """A loop of at most one iteration is its body under a condition."""
    emit, indices = state.emitter, state.indices
    with state.inside(op):
        unknown = indices.least([bound for bound in bounds if bound.number is None])
        with emit.guarded(emit.compare("slt", emit.index(0), indices.value(unknown))):
            indices.assume_below(ZERO, bounds)
            state.values[op.variable] = ZERO
            state.convert(op.body.block.ops)
            emit.location = op.location


def _loop(
    op: loop.ForOp,
    state: State,
    lower: Affine,
    upper: Affine,
    step: Affine,
    carried: Sequence[Sequence[SSAValue]],
    fill: Callable[[Affine, list[list[SSAValue]]], Sequence[Sequence[SSAValue]]],
) -> list[list[SSAValue]]:
    """An `scf.for` that carries groups of values; `fill` emits an iteration and returns its own."""
    emit, indices, location = state.emitter, state.indices, state.emitter.location
    flat = [value for group in carried for value in group]
    types = [value.type for value in flat]
    ends = [indices.value(end) for end in (lower, upper, step)]
    block = Block(arg_types=[INDEX, *types])
    block.args[0].name_hint = op.variable.name_hint
    with state.inside(op):
        emit.open(block)
        top = indices.ranges.of(upper)[1]
        high = top - 1 if top is not None else None
        variable = indices.atom(block.args[0], indices.ranges.is_nonnegative(lower), high)
        new = fill(variable, _grouped(block.args[1:], carried))
        emit.location = location
        emit.emit(scf.YieldOp, [value for group in new for value in group])
        emit.close()
    new_op = emit.emit(scf.ForOp, [*ends, *flat], types, regions=[Region(block)])
    return _grouped(new_op.results, carried)


def _iteration(
    op: loop.ForOp,
    state: State,
    variable: Affine,
    parts: Sequence[SSAValue],
    loaded: Mapping[loop.LoadOp, SSAValue] | None = None,
) -> list[SSAValue]:
    """Emit one iteration: from the parts of its carried values, those of its yielded ones.

    Args:
        op: the loop.
        state: the state of the conversion.
        variable: the loop variable.
        parts: the parts of the carried values.
        loaded: loads in the body that are done already, with their results.
    """
    done = loaded or {}
    state.values |= {load.result: value for load, value in done.items()}
    state.values[op.variable] = variable
    if op.over_entries:
        state.values[op.column] = entry(state, op.matrix[1], variable)
    state.whole(op.carried, parts)
    state.convert([inner for inner in op.body.block.ops if inner not in done])
    return state.all_parts(op.yielded)


def _iterated(
    op: loop.ForOp,
    state: State,
    lower: Affine,
    bounds: Sequence[Affine],
    upper: Affine,
    at_once: int,
    parts: list[SSAValue],
) -> list[SSAValue]:
    """Emit all iterations, up to the least of the bounds.

    Args:
        op: the loop.
        state: the state of the conversion.
        lower: the first iteration.
        bounds: the bounds.
        upper: the least of them.
        at_once: how many iterations run at a time.
        parts: the parts of the carried values of the first iteration.

    Returns:
        Those after the last one.
    """
    known = (upper - lower).number
    if known is not None and known <= at_once:
        # Unrolled completely, with a few independent chains of accumulators.
        chains = max(1, min(known, _UNROLLED_ACCUMULATORS, at_once))
        groups = _accumulators(op, state, parts, chains)
        for number in range(known):
            chain = number % chains
            groups[chain] = _iteration(op, state, lower + number, groups[chain])
        return _joined(op, state, groups)

    def several(position: Affine, groups: list[list[SSAValue]]) -> list[list[SSAValue]]:
        if at_once == 1:
            state.indices.assume_below(position, bounds)
        together = _loaded_together(op, state, position, len(groups))
        return [
            _iteration(op, state, position + number, group, loaded)
            for number, (group, loaded) in enumerate(zip(groups, together, strict=True))
        ]

    if at_once == 1:
        return _loop(op, state, lower, upper, fixed(1), [parts], several)[0]
    full = lower + _whole_steps(op, state, upper - lower, at_once)
    groups = _accumulators(op, state, parts, at_once)
    groups = _loop(op, state, lower, full, fixed(at_once), groups, several)
    if known is not None:
        for number in range(known % at_once):
            groups[number] = _iteration(op, state, full + number, groups[number])
        return _joined(op, state, groups)
    return _loop(op, state, full, upper, fixed(1), [_joined(op, state, groups)], several)[0]


def _in_chunks(
    op: loop.ForOp,
    state: State,
    lower: Affine,
    upper: Affine,
    count: int,
    parts: list[SSAValue],
) -> list[SSAValue]:
    """Emit chunks of at least `count` iterations; each starts from neutral values, and is joined to
    totals.

    Takes and returns the parts of the carried values, as `_iterated`.
    """
    share = _whole_steps(op, state, upper - lower, _CHUNKS * op.at_once)
    step = state.indices.greatest([fixed(count), state.indices.divide(share, _CHUNKS)])

    def chunk(first: Affine, totals: list[list[SSAValue]]) -> list[list[SSAValue]]:
        end = state.indices.least([first + step, upper])
        _, fresh = _accumulators(op, state, parts, 2)
        sums = _iterated(op, state, first, [end], end, op.at_once, fresh)
        return [_joined(op, state, [*totals, sums])]

    return _loop(op, state, lower, upper, step, [parts], chunk)[0]


def _whole_steps(op: loop.ForOp, state: State, count: Affine, at_once: int) -> Affine:
    """The largest multiple of `at_once` up to `count`."""
    indices = state.indices
    if count.number is not None:
        return fixed(count.number // at_once * at_once)
    if op.over_entries or indices.ranges.is_nonnegative(count):
        # The number of entries of a row is nonnegative.
        count = indices.atom(indices.value(count), nonnegative=True)
    else:
        count = indices.greatest([count, ZERO])
    return indices.divide(count, at_once) * at_once


def _loaded_together(
    op: loop.ForOp, state: State, position: Affine, count: int
) -> list[dict[loop.LoadOp, SSAValue]]:
    """Load scalars of neighbouring entries that are broadcast: one vector load reads several.

    A broadcast from memory occupies a load port for as long as the load of a vector.

    Returns:
        For each of `count` iterations its loads that are done, with their results.
    """
    found: list[dict[loop.LoadOp, SSAValue]] = [{} for _ in range(count)]
    if not op.over_entries:
        return found
    emit, buffers = state.emitter, state.buffers
    for load in op.body.block.ops:
        if not isinstance(load, loop.LoadOp) or not _is_stretched(load, op):
            continue
        element = load.result.type
        several = _TOGETHER_BITS // float_type(element).bitwidth
        layouts = [state.layout(use.operation.results[0].type) for use in load.result.uses]
        widths = [part.width for layout in layouts for part in layout.chunks]
        if count % several or min(widths) < several:
            continue
        for first in range(0, count, several):
            operands = buffers.operands(state.scalar(load.buffer), (position + first,), False)
            kind = emit.machine(element, several)
            (loaded,) = emit.emit(vector.LoadOp, operands, [kind]).results
            lanes = emit.repeat(loaded, max(widths))
            for number in range(several):
                found[first + number][load] = emit.extract(lanes, number)
    return found


def _is_stretched(load: loop.LoadOp, entries: loop.ForOp) -> bool:
    """Whether a load reads a number of an entry that is only broadcast."""
    kind = load.result.type
    return (
        isinstance(kind, AnyFloat)
        and kind.bitwidth in (32, 64)
        and list(load.indices) == [entries.variable]
        and load.map.data == AffineMap.identity(1)
        and bool(load.result.uses)
        and all(isinstance(use.operation, upstream.BroadcastOp) for use in load.result.uses)
    )


def _combines(op: loop.ForOp, state: State) -> list[Combine]:
    """The combiner of each part of the accumulators of a reduction."""
    parts = [len(state.parts(init)) for init in op.inits]
    return [c for c, count in zip(op.combines, parts, strict=True) for _ in range(count)]


def _accumulators(
    op: loop.ForOp, state: State, first: list[SSAValue], count: int
) -> list[list[SSAValue]]:
    """The initial values, then groups of neutral values."""
    if count < 2 or not first:
        return [first] * count
    other: list[SSAValue] = []
    for value, combine in zip(first, _combines(op, state), strict=True):
        attr = neutral(combine, loop.element_type(value.type))
        other.append(state.emitter.splat(attr, width_of(value.type)))
    return [first, *([other] * (count - 1))]


def _joined(op: loop.ForOp, state: State, groups: Sequence[list[SSAValue]]) -> list[SSAValue]:
    """The accumulators of several groups, joined."""
    if len(groups) == 1 or not groups[0]:
        return groups[0]
    parts = zip(_combines(op, state), zip(*groups, strict=True), strict=True)
    return [join(state.emitter, combine, several, accumulated=True) for combine, several in parts]


def _grouped(flat: Sequence[SSAValue], like: Sequence[Sequence[SSAValue]]) -> list[list[SSAValue]]:
    """Values in groups as long as those of `like`."""
    values = iter(flat)
    return [[next(values) for _ in group] for group in like]
