"""Products of messages: a dense product for each stored entry of a row, combined over the row.

The columns of the product are lanes, some vectors at a time, and the factors of an entry are
computed one after the other where the product needs them. So nothing is stored for an entry. The
weights are packed as panels of these columns; the product has several partial sums, since one row
of lanes does not hide the latency of the multiplications.
"""

from __future__ import annotations

from ....dialects.loop.attrs import Combine
from ....dialects.loop.nests import perfect_nest
from ....dialects.loop.ops import ForOp
from .accesses import Stride, accesses, dependents, lanes_for, stride
from .contraction import Roles, constants_to_pack, pack_panels
from .lanes import schedule_lanes
from .register_tile import partial_sums
from .schedule import Schedule

VECTORS = 4
"""The most vectors of columns that are computed at a time."""
FEW_VECTORS = 2
"""Those of weights of which a wider panel would not stay in the first-level cache."""
IN_CACHE = 2 / 3
"""The part of that cache that a panel may take: each entry reads all of it."""


def schedule_message_products(schedule: Schedule, nest: str) -> str | None:
    """Make the columns of products of entries lanes; return so, None if a nest has none."""
    *outer, lane = perfect_nest(schedule.for_loop(nest))
    follows = dependents(lane)
    found = [p for p in map(_product_of, lane.body.block.ops) if p is not None]
    # The score of an entry, which all lanes read, is no product of the lanes.
    products = [(walk, product) for walk, product in found if product.results[0] in follows]
    if len(products) != 1:
        return None
    entries, product = products[0]
    packed = constants_to_pack(schedule.kernel, lane, product, follows)
    columns, lanes = schedule.extent(lane.loop_name.data), lanes_for(schedule.target, product)
    if packed is None or columns is None or columns < 2 or not _fits(entries, lane, product):
        return None
    names = [loop.loop_name.data for loop in outer]
    reduction = product.loop_name.data
    # How many vectors of columns a panel of the weights may have.
    size, target = schedule.extent(reduction), schedule.target
    row = VECTORS * target.vector_bits // 8
    fits = size is None or size * row <= target.l1_bytes * IN_CACHE
    vectors = min(VECTORS if fits else FEW_VECTORS, -(-columns // lanes))
    parts = schedule.split(lane.loop_name.data, vectors * lanes, "mask")
    roles = Roles(tuple(names), None, lane.loop_name.data, (reduction,), *packed)
    pack_panels(schedule, roles, parts.outer, parts.inner)
    schedule.vectorize(parts.inner)
    if fill := schedule.attempt(lambda: schedule.stage_terms(reduction)):
        schedule.attempt(lambda: schedule_lanes(schedule, fill))
    if (factor := partial_sums(schedule.target, vectors)) > 1:
        schedule.unroll(reduction, factor)
    return f"products of entries in {vectors} vectors of {lanes} lanes"


def _product_of(op: object) -> tuple[ForOp, ForOp] | None:
    """A reduction over the entries of a row, and the only loop in it, which is a sum."""
    if not isinstance(op, ForOp) or not op.over_entries:
        return None
    loops = [inner for inner in op.walk() if isinstance(inner, ForOp) and inner is not op]
    if len(loops) != 1 or not loops[0].is_reduction or set(loops[0].combines) != {Combine.ADD}:
        return None
    return op, loops[0]


def _fits(entries: ForOp, lane: ForOp, product: ForOp) -> bool:
    """Whether a factor stays along the lanes, and what is not in the product needs no packing."""
    follows, inside = dependents(lane), set(accesses(product))
    strides = {access: stride(access, lane.variable, follows) for access in accesses(entries)}
    others = {how for access, how in strides.items() if access not in inside}
    invariant = any(strides[access] == Stride.INVARIANT for access in inside)
    return invariant and others <= {Stride.INVARIANT, Stride.UNIT}
