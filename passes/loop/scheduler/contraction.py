"""Sums of products: the register tile.

Some rows times some lanes are accumulated in registers over the whole of the reduction. The lanes
run along a loop that only one operand follows, the rows along a loop that only the other one
follows. Where both follow the lanes, as in a convolution of each channel by itself, a vector of one
is used for all rows of a tile. `register_tile.py` chooses how many rows and lanes. If one operand
follows the other's loop only in groups of iterations, such as channels those of the filters, the
rows are those of one group.

If the number of rows is unknown, there is a nest for each possible remainder. A tile of few rows is
as fast as a larger one, and needs fewer of these nests. One or two remaining rows would take nearly
as long as a whole tile, since they read the same panels: they run together with the last tile,
unless that spills. All tiles of a kernel add in one order, so that a row has the same bits in
whichever it is; only a batch that is smaller than a tile has more partial sums, in nests of its
own. Where a whole tile takes no longer than the call of a kernel, a masked one
computes any remainder: such products are small parts of larger programs, and nests for each
remainder would be most of the code.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from xdsl.ir import SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
)

from ....core.algebra.affine import dims_in
from ....core.instructions import Instruction
from ....core.ir.walks import operations_in
from ....dialects.bodies import depth_of
from ....dialects.loop.arguments import CONSTANT, PACKING
from ....dialects.loop.attrs import Combine
from ....dialects.loop.handles import Parts
from ....dialects.loop.loops import bound_of, enclosing, extent_of, loops_in
from ....dialects.loop.nests import ScheduleError, perfect_nest
from ....dialects.loop.ops import (
    ForOp,
    KernelOp,
    LoadOp,
    LocalOp,
    StoreOp,
)
from .accesses import (
    Stride,
    accesses,
    bytes_apart,
    dependents,
    lanes_for,
    stride,
    widest_bits,
)
from .cascades import cascade_sums
from .flat import fuse_rows
from .instructions import instructions_for
from .panels import (
    copy_panels,
    partly_kept,
    prefetch_next_panels,
    prefetch_operands,
    prefetch_panels,
    prefetch_rows,
    streamed,
)
from .register_tile import RegisterTile, choose_tile, partial_sums
from .schedule import Schedule
from .work import PANELS, ContractionWork, parallel_panels, parallel_rows, work_of

COPIED_OUT = 16
"""A reduction of at most this many steps into one vector is unrolled completely."""
KEPT_PART = 2
"""Panels of at most this fraction (1/n) of the second-level cache stay there."""
LOADED = 2
"""A product that loads one of its vectors takes as long as this many that load none."""
JOINED = 2
"""Up to this many remaining rows run together with the last tile if their number is unknown."""
SMALL_TILE = 2048
"""The most multiplications in a tile of which a masked one computes the remaining rows."""


@dataclass(frozen=True)
class Roles:
    """The roles of the loops of a contraction."""

    outer: tuple[str, ...]
    row: str | None
    lane: str
    reductions: tuple[str, ...]
    packed: tuple[int, ...]
    """Constant arguments that follow the lanes."""
    must_pack: bool
    """Whether one of them is not contiguous along the lanes unless packed."""
    sums: int = 1
    """How many sums are computed at once."""
    instruction: Instruction | None = None
    """What combines several steps of the innermost reduction."""
    group: str = ""
    """The loop over these steps, inside of the reductions."""
    by_lane: bool = False
    """Whether all factors follow the lanes, so that each product loads a vector of its own."""

    @property
    def products(self) -> int:
        """How many products take as long as those of a step for one lane."""
        return self.sums * (LOADED if self.by_lane else 1)

    def tensorize(self, schedule: Schedule, groups: Sequence[str]) -> None:
        """Compute the loop over the steps by the instruction, in each of the nests."""
        if self.instruction is not None:
            for group in groups:
                schedule.tensorize(group, self.instruction.name)


@dataclass(frozen=True)
class TiledRows:
    """Rows that have been cut into tiles."""

    tiles: str
    """The loop over them."""
    reductions: Sequence[str]
    """The innermost reduction of each nest."""


def roles_of(kernel: KernelOp, nest: Sequence[ForOp]) -> Roles | None:
    """The roles of the loops of a perfect nest, None if it is no contraction."""
    body = nest[-1].body.block
    reductions = list(loops_in(body))
    top = [op for op in reductions if op.parent is body]
    if len(top) != 1 or any(set(op.combines) != {Combine.ADD} for op in reductions):
        return None
    follows = {loop: dependents(loop) for loop in nest}
    factors = [op for op in accesses(top[0]) if isinstance(op, LoadOp)]
    for lane in reversed(nest):
        packed = constants_to_pack(kernel, lane, top[0], follows[lane])
        moving = [f for f in factors if not _stays(f, lane, follows[lane])]
        if packed is None or not moving:
            continue
        by_lane = len(moving) == len(factors)  # x[i, p + k, j] * w[i, k, j]
        # The innermost loop that the factors along the lanes do not follow, or some of them if they
        # are all, but the others do. One that runs several times is preferred: there are batches of
        # one row.
        found = list[ForOp]()
        for loop in reversed(nest):
            staying = [f for f in factors if _stays(f, loop, follows[loop])]
            kept = bool(staying) if by_lane else all(f in staying for f in moving)
            if loop is not lane and kept and len(staying) < len(factors):
                found.append(loop)
        if by_lane and not found:
            continue
        row = next((loop for loop in found if extent_of(loop) != 1), found[0] if found else None)
        return Roles(
            tuple(loop.loop_name.data for loop in nest if loop not in (lane, row)),
            row.loop_name.data if row is not None else None,
            lane.loop_name.data,
            tuple(r.loop_name.data for r in reductions),
            *packed,
            len(top[0].results),
            by_lane=by_lane,
        )
    return None


def _stays(access: LoadOp | StoreOp, loop: ForOp, dependent: set[SSAValue]) -> bool:
    return stride(access, loop.variable, dependent) == Stride.INVARIANT


def constants_to_pack(
    kernel: KernelOp, lane: ForOp, sum: ForOp, dependent: set[SSAValue]
) -> tuple[tuple[int, ...], bool] | None:
    """The constants that follow the lanes, and whether one jumps; None if others jump.

    Loads outside of the sum may be strided: a residual in another layout than the result.
    """
    args, repeated = list(kernel.inputs), set(accesses(sum))
    constants: dict[int, bool] = {}
    for access in accesses(lane):
        how = stride(access, lane.variable, dependent)
        if how == Stride.INVARIANT and not isinstance(access, StoreOp):
            continue
        number = args.index(access.buffer) if access.buffer in args else -1
        attrs = kernel.attrs_of(number) if number >= 0 else {}
        packable = CONSTANT in attrs and PACKING not in attrs
        if how != Stride.UNIT and (not packable or isinstance(access, StoreOp)):
            if access in repeated or isinstance(access, StoreOp):
                return None
            continue
        if packable and len(access.map.data.results) > 1:
            constants[number] = constants.get(number, False) or how != Stride.UNIT
    return tuple(constants), any(constants.values())


def tuned_tile(
    schedule: Schedule,
    lanes: int,
    rows: int | None,
    columns: int | None,
    apart: int | None,
    sums: int = 1,
    odd: bool = False,
    packed: bool = True,
) -> RegisterTile:
    """The register tile with the choices of tuning, and no more rows than there are."""
    knobs = schedule.knobs
    tile = choose_tile(schedule.target, lanes, rows, columns, apart, sums, odd, packed)
    height = tile.rows if knobs.rows is None else knobs.rows
    if rows is not None:
        height = min(height, max(1, rows))
    if knobs.vectors is not None:
        columns = knobs.vectors * tile.lanes
        tile = replace(tile, vectors=knobs.vectors, columns=columns, last=0)
    return replace(tile, rows=height)


def bytes_between_rows(schedule: Schedule, row: str | None) -> int | None:
    """The distance in bytes between the rows that a product reads, None if unknown."""
    if row is None:
        return None
    loop = schedule.for_loop(row)
    loads = [op for op in accesses(loop) if isinstance(op, LoadOp) and loop.variable in op.indices]
    return bytes_apart(loads[0], loop) if loads else None


def schedule_contraction(schedule: Schedule, nest: str) -> str | None:
    """Give a contraction its register tile; return which, None if the nest is no contraction."""
    if not _make_perfect(schedule, nest):
        return None
    split_groups(schedule, nest)
    nest = fuse_rows(schedule, nest) or nest
    roles = roles_of(schedule.kernel, perfect_nest(schedule.for_loop(nest)))
    if roles is None:
        return None
    columns = schedule.extent(roles.lane)
    rows = schedule.extent(roles.row) if roles.row is not None else 1
    if (columns is not None and columns < 2) or rows == 0:
        return None
    lanes = lanes_for(schedule.target, schedule.for_loop(nest))
    for row in instructions_for(schedule, roles.reductions[-1], roles.packed, lanes):
        chosen = replace(roles, instruction=row)
        if done := schedule.attempt(lambda roles=chosen: _schedule(schedule, nest, roles)):
            return f"{done}, by {row.name}"
    return _schedule(schedule, nest, roles)


def _schedule(schedule: Schedule, nest: str, roles: Roles) -> str:
    """Give a contraction of these roles its register tile."""
    columns = schedule.extent(roles.lane)
    rows = schedule.extent(roles.row) if roles.row is not None else 1
    lanes = lanes_for(schedule.target, schedule.for_loop(nest))
    apart = bytes_between_rows(schedule, roles.row)
    packed = bool(roles.packed)
    odd = roles.instruction is None and not (packed and roles.row is None)
    odd = odd and schedule.knobs.panels != "inside"
    tile = tuned_tile(schedule, lanes, rows, columns, apart, roles.sums, odd, packed)
    in_a_row = (roles.lane, *roles.reductions)
    work = work_of(schedule, in_a_row, roles.products, rows, roles.outer)
    panels = schedule.split(roles.lane, tile.columns, "mask")
    count = schedule.extent(panels.outer)
    outside = bool(tile.last) or not _are_kept(schedule, roles, columns, rows)
    outside = _order_panels(schedule, roles, panels, None if tile.last else count, outside)
    axes = [panels.inner]
    if roles.instruction is not None:
        steps = schedule.split(roles.reductions[-1], depth_of(roles.instruction))
        reductions = (*roles.reductions[:-1], steps.outer)
        roles = replace(roles, reductions=reductions, group=steps.inner)
    elif (several := _iterations_in_a_vector(schedule, roles, tile, lanes)) > 1:
        halves = schedule.split(roles.reductions[0], several)
        roles = replace(roles, reductions=(halves.outer, halves.inner))
        axes.insert(0, halves.inner)
    pack_panels(schedule, roles, panels.outer, panels.inner)
    if count == 1 and rows is None and not outside and not work.has_unit:
        # A single panel needs no loop in any of the nests for the cases of rows.
        schedule.drop_unit_loops()
    of_all = f"register tile of {tile.rows} x {tile.columns}"
    panel = panels.outer
    nests = [partial(_schedule_panels, schedule, roles, panel, axes, tile, work, outside)]
    if tile.last and columns is not None:
        last = tuned_tile(schedule, lanes, rows, tile.last, apart, roles.sums, True, packed)
        of_row = work.of_row * tile.last // columns
        of_last, peeled = replace(work, of_row=of_row), _peel(schedule, roles, panels, last)
        # Threads share a loop around both nests only if the larger one has none that is better.
        place = len(nests) if roles.outer else 0
        nests.insert(place, partial(_schedule_panels, schedule, *peeled, last, of_last, True))
        of_all += f" and {last.rows} x {last.columns}"
    for schedule_nest in nests:
        schedule_nest()
    return f"{of_all}, {roles.sums} at once" if roles.sums > 1 else of_all


def _peel(
    schedule: Schedule, roles: Roles, panels: Parts, tile: RegisterTile
) -> tuple[Roles, str, Sequence[str]]:
    """Give the last panel a nest of its own; return its roles, its loop and that over its lanes."""
    names = _names_in(schedule, panels.outer)
    _, last = schedule.split_border(panels.outer, 0, 1)
    new = dict(zip(names, _names_in(schedule, last), strict=True))
    of_panel = schedule.split(new[panels.inner], tile.columns, "mask")
    row = None if roles.row is None else new[roles.row]
    schedule.reorder(*(name for name in (last, of_panel.outer, row, of_panel.inner) if name))
    roles = replace(
        roles,
        row=row,
        reductions=tuple(new[name] for name in roles.reductions),
        group=new.get(roles.group, ""),
    )
    return roles, last, [of_panel.inner]


def _names_in(schedule: Schedule, name: str) -> list[str]:
    """The names of the loops in a loop."""
    return [loop.loop_name.data for loop in loops_in(schedule.loop(name).body.block)]


def _schedule_panels(
    schedule: Schedule,
    roles: Roles,
    panel: str,
    axes: Sequence[str],
    tile: RegisterTile,
    work: ContractionWork,
    outside: bool,
) -> None:
    """Give the nest of some panels its register tile, prefetches and threads.

    Args:
        panel: the loop over panels.
        axes: the loops that become lanes.
        outside: whether it is around that over rows.
    """
    rows = schedule.extent(roles.row) if roles.row is not None else 1
    parallel, streams, count = None, list[int](), schedule.extent(panel)
    if outside:
        streams = streamed(schedule, roles.packed, 1 if rows is None else rows // tile.rows)
    if outside and not work.is_small and (count is None or count >= PANELS):
        nest = [*roles.outer, panel]
        panel, parallel = parallel_panels(schedule, nest, work, count if streams else None)
    cut = _make_tile(schedule, roles, panel, axes, tile)
    if outside:
        copy_panels(schedule, panel, roles.reductions[-1], tile.columns)
    _prefetch(schedule, roles, cut, streams)
    order = "any"
    if outside and not streams and rows is not None and rows > tile.rows:
        prefetch_next_panels(schedule, cut.reductions, roles.packed)
    elif outside and not streams and (parts := partly_kept(schedule, roles.packed)):
        order = "alternating"
        if rows is not None:
            prefetch_panels(schedule, cut.reductions, parts)
    prefetch_operands(schedule, cut.reductions if rows is not None else cut.reductions[:1])
    cascade_sums(schedule, cut.reductions)
    if not work.is_small:
        # Parallelise a loop over panels, or without one the best loop over rows.
        if parallel is None:
            parallel = parallel_rows(schedule, roles.outer, cut.tiles, work, tile)
        if schedule.may_parallelise(parallel):
            schedule.tiles(parallel, order)


def split_groups(schedule: Schedule, nest: str) -> None:
    """Split loops of which a load follows only every n-th iteration, such as that over filters.

    Channels stay the same within a group of n filters, which can be rows then.
    """
    loops = perfect_nest(schedule.for_loop(nest))
    loads = [access for access in accesses(loops[-1]) if isinstance(access, LoadOp)]
    groups = {loop: {_iterations_alike(load, loop) for load in loads} - {None} for loop in loops}
    for loop, sizes in groups.items():
        size, of_group = extent_of(loop), sizes.pop() if len(sizes) == 1 else None
        if size is not None and of_group is not None and size % of_group == 0:
            schedule.split(loop.loop_name.data, of_group)


def _iterations_alike(load: LoadOp, loop: ForOp) -> int | None:
    """For how many iterations of a loop a load stays where it is; None if it moves in each."""
    if loop.variable not in load.indices:
        return None
    position, results = load.indices.index(loop.variable), load.map.data.results
    divisors: list[int] = []
    for part in (part for result in results for part in result.dfs()):
        match part:
            case AffineBinaryOpExpr(
                AffineBinaryOpKind.FloorDiv, AffineDimExpr(dim), AffineConstantExpr(divisor)
            ) if dim == position:
                divisors.append(divisor)
    uses = sum(dims_in(result).count(position) for result in results)
    return divisors[0] if len(divisors) == uses and len(set(divisors)) == 1 else None


def _make_perfect(schedule: Schedule, nest: str) -> bool:
    """Make the nest of a contraction perfect; return whether it is one."""
    inside = list(operations_in(schedule.for_loop(nest)))
    loops = [op for op in inside if isinstance(op, ForOp)]
    if any(isinstance(op, LocalOp) for op in inside) or any(op.over_entries for op in loops):
        return False
    if not any(op.is_reduction for op in loops):
        return False
    sink_all(schedule, nest)
    # Compute the sums of the nest in one loop, such as those of parts of a product.
    body = perfect_nest(schedule.for_loop(nest))[-1].body.block
    first, *others = [op.loop_name.data for op in body.ops if isinstance(op, ForOp)] or [""]
    for other in others:
        schedule.merge(first, other)
    return True


def _prefetch(schedule: Schedule, roles: Roles, cut: TiledRows, streams: Sequence[int]) -> None:
    """Prefetch what the tiles read."""
    if len(roles.reductions) == 1 and roles.row is not None:
        prefetch_rows(schedule, roles.reductions[0], roles.packed)
    prefetch_panels(schedule, cut.reductions, streams)


def _order_panels(
    schedule: Schedule, roles: Roles, panels: Parts, count: int | None, may: bool
) -> bool:
    """Place the loop over panels around that over rows, if it may be, or inside.

    Return whether it is around.
    """
    outside = may and (count is None or count >= PANELS)
    if schedule.knobs.panels is not None:
        outside = schedule.knobs.panels == "outside"
    inner = (panels.outer, roles.row, panels.inner)
    if not outside:
        inner = (roles.row, panels.outer, panels.inner)
    schedule.reorder(*roles.outer, *(name for name in inner if name is not None))
    return outside


def _are_kept(schedule: Schedule, roles: Roles, columns: int | None, rows: int | None) -> bool:
    """Whether the second-level cache keeps all panels, but not the rows that are multiplied.

    Each row is then read once, and the panels for each tile of rows. Few rows would leave threads
    without work, so that a number of rows that is not known counts as many for one thread only.
    """
    if roles.row is None or roles.outer or not roles.packed:
        return False
    sizes = [schedule.extent(name) for name in roles.reductions]
    known = [size for size in sizes if size is not None]
    if columns is None or len(known) < len(sizes) or (rows is None and schedule.threads > 1):
        return False
    item, cache = widest_bits(schedule.for_loop(roles.row)) // 8, schedule.target.l2_bytes
    row = math.prod(known) * item
    return (rows is None or rows * row > cache) and columns * roles.sums * row * KEPT_PART <= cache


def _iterations_in_a_vector(
    schedule: Schedule, roles: Roles, tile: RegisterTile, lanes: int
) -> int:
    """How many iterations of a reduction fill one vector if its lanes are few.

    A row of 7 columns fills half of a vector of 16: two iterations fill it.
    """
    if roles.row is not None or len(roles.reductions) != 1:
        return 1
    (name,) = roles.reductions
    size, several = schedule.extent(name), lanes // tile.columns
    return 1 if size is None or several < 2 or size % several or size < 4 * several else several


def sink_all(schedule: Schedule, nest: str) -> None:
    """Make a nest perfect if only statements are between its loops, such as a scale of each row."""
    while True:
        inner = perfect_nest(schedule.for_loop(nest))[-1]
        if not isinstance(inner.body.block.last_op, ForOp):
            return
        schedule.sink(inner.loop_name.data)


def _make_tile(
    schedule: Schedule, roles: Roles, panel: str, axes: Sequence[str], tile: RegisterTile
) -> TiledRows:
    """Turn the register tile into axes; without rows, `panel` stands for the loop over tiles."""
    if roles.row is not None:
        return cut_rows(schedule, roles, roles.row, axes[-1], tile)
    schedule.vectorize(*axes)
    roles.tensorize(schedule, [roles.group])
    name = _innermost(schedule, roles)
    _unroll(schedule, name, _factor(schedule, name, tile.in_a_row))
    return TiledRows(panel, roles.reductions[-1:])


def cut_rows(
    schedule: Schedule, roles: Roles, row: str, lane: str, tile: RegisterTile
) -> TiledRows:
    """Make tiles of rows and lanes, with smaller ones for the remaining rows."""
    rows, size = schedule.extent(row), tile.rows
    name = _innermost(schedule, roles)
    factors = {n: _factor(schedule, name, n * tile.in_a_row) for n in range(1, size + 1)}
    if rows is not None and (rows <= size or schedule.knobs.tail == "mask"):
        tiles, inner = row, row
        if rows > size:
            parts = schedule.split(row, size, "mask")
            tiles, inner = parts.outer, parts.inner
        schedule.vectorize(inner, lane)
        roles.tensorize(schedule, [roles.group])
        _unroll(schedule, name, factors[size])
        return TiledRows(tiles, roles.reductions[-1:])
    # A batch of unknown size is as fast as one of a known size: there is a tile for each rest.
    joined, alone, tail = 0, 0, "peel"
    if rows is None and size > 1:
        tail = "split" if _is_small(schedule, roles, row, tile) else "cases"
        if tail == "cases":
            joined = max(0, min(JOINED, tile.most - size, size - 1))
            waiting = [n for n in factors if n * tile.in_a_row < schedule.target.in_flight]
            alone = max((n for n in waiting if factors[n] != factors[size]), default=0)
    elif rows is not None and -rows % size > 1:
        tail = "even"  # instead of a small last tile, which waits for its panels
    parts = schedule.split(row, size, tail, size + joined if joined else 0, alone)
    schedule.vectorize(*itertools.chain(*parts.nests(lane)))
    roles.tensorize(schedule, parts.forwarded[roles.group])
    for number, (_, inside) in enumerate(parts.nests(name)):
        _unroll(schedule, inside, factors[number if 0 < number <= alone else size])
    return TiledRows(parts.outer, parts.forwarded[name])


def _is_small(schedule: Schedule, roles: Roles, row: str, tile: RegisterTile) -> bool:
    """Whether a masked tile computes the remaining rows."""
    steps = [schedule.extent(name) for name in roles.reductions if schedule.has(name)]
    known = [size for size in steps if size is not None]
    if len(known) < len(steps) or len(bound_of(schedule.loop(row))) > 1:
        return False
    return tile.rows * tile.columns * roles.sums * math.prod(known) <= SMALL_TILE


def _innermost(schedule: Schedule, roles: Roles) -> str:
    """The innermost reduction that is still a loop."""
    return [name for name in roles.reductions if schedule.has(name)][-1]


def _factor(schedule: Schedule, reduction: str, accumulators: int) -> int:
    """The number of partial sums in a tile with so many accumulators of a reduction."""
    size = schedule.extent(reduction)
    factor = partial_sums(schedule.target, accumulators)
    if size is not None and size <= COPIED_OUT and accumulators == 1:
        factor = size
    factor = factor if schedule.knobs.unroll is None else schedule.knobs.unroll
    return factor if size is None or size >= factor else 1


def _unroll(schedule: Schedule, reduction: str, factor: int) -> None:
    """Cut a reduction into partial sums where a tile has too few accumulators."""
    if factor > 1:
        schedule.unroll(reduction, factor)


def pack_panels(schedule: Schedule, roles: Roles, outer: str, inner: str) -> None:
    """Pack the constants that follow the lanes as panels, which are read contiguously."""
    for argument in roles.packed:
        used: set[SSAValue] = set()
        for use in schedule.kernel.inputs[argument].uses:
            used.update(use.operation.operands)
        names = [*roles.outer, *roles.reductions]
        if roles.row is not None:
            names.insert(0, roles.row)
        between = [n for n in names if _variable(schedule, n) in used]
        groups = [roles.group] if roles.instruction is not None else []
        # Parts of the lanes may be the iterations of loops around the nest.
        around = [loop for loop in enclosing(schedule.loop(outer)) if loop.variable in used]
        parts = [loop.loop_name.data for loop in reversed(around)]
        loops = [*(n for n in parts if n not in names), outer, *between, inner, *groups]
        packed = schedule.takes(schedule.pack, argument, *loops)
        if not packed and (roles.must_pack or groups):
            raise ScheduleError(f"argument {argument} cannot be packed")


def _variable(schedule: Schedule, name: str) -> SSAValue:
    return schedule.loop(name).variable
