"""How the loads and stores of a nest move with its loops, and what a nest costs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from enum import Enum

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AnyFloat,
    IntegerAttr,
    IntegerType,
    i1,
)
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineExpr

from ....core.algebra.affine import coefficient, polynomial
from ....core.algebra.affine import variable as atom_of
from ....core.algebra.expressions import ZERO, joined, variables
from ....core.algebra.polynomials import Polynomial
from ....core.ir.typed import memref_type
from ....core.ir.walks import operations_in
from ....core.target import Target
from ....dialects.loop.loops import enclosing, extent_of
from ....dialects.loop.nests import EXPENSIVE
from ....dialects.loop.ops import (
    ENTRIES,
    ForOp,
    KernelOp,
    LoadOp,
    StoreOp,
    YieldOp,
    block_shape,
    element_type,
)
from ..steps.prefetch import bits_of

UNKNOWN_EXTENT = 64
"""The assumed size of a loop if it is unknown."""
UNKNOWN_ENTRIES = 8
"""The assumed number of entries of a row: graphs have few."""

_EXPENSIVE_COST = 20


class Stride(Enum):
    """How an access moves when a loop variable grows by one."""

    INVARIANT = "stays where it is"
    UNIT = "goes to the next element"
    OTHER = "jumps"


def accesses(op: Operation) -> Iterator[LoadOp | StoreOp]:
    """The loads and stores in an operation."""
    for inner in operations_in(op):
        if isinstance(inner, LoadOp | StoreOp):
            yield inner


def dependents(loop: ForOp) -> set[SSAValue]:
    """The values in a loop that depend on its variable, the variable included.

    Of what a loop in it carries, those that begin with such a value, or accumulate one.
    """
    found: set[SSAValue] = {loop.variable, loop.column} if loop.over_entries else {loop.variable}
    before = 0
    while len(found) > before:
        before = len(found)
        for op in operations_in(loop.body):
            if any(operand in found for operand in op.operands):
                found.update(_followers(op, found))
    return found


def _followers(op: Operation, found: set[SSAValue]) -> Iterator[SSAValue]:
    """The values that depend on those found among the operands of an operation."""
    around = op.parent_op() if isinstance(op, YieldOp) else op
    if not isinstance(around, ForOp):
        yield from op.results
        return
    given = around.yielded if isinstance(op, YieldOp) else around.inits
    every = any(operand in found for operand in (*around.bounds, *around.matrix))
    for value, carried, result in zip(given, around.carried, around.results, strict=True):
        if every or value in found:
            yield from (carried, result)


def stride(access: LoadOp | StoreOp, variable: SSAValue, dependent: set[SSAValue]) -> Stride:
    """How an access moves with a loop variable.

    Args:
        dependent: the values that depend on the variable: an index that was computed from it
            may go anywhere.
    """
    operands = list(access.indices)
    if not any(operand in dependent for operand in operands):
        return Stride.INVARIANT
    if any(operand in dependent and operand is not variable for operand in operands):
        return Stride.OTHER
    dims = [AffineExpr.dimension(n) for n, o in enumerate(operands) if o is variable]
    factors = [sum(_factor(result, dim) for dim in dims) for result in access.map.data.results]
    if all(factor == 0 for factor in factors):
        return Stride.INVARIANT
    sizes = list(memref_type(access.buffer).get_shape())
    while len(sizes) > 1 and sizes[-1] == 1:
        sizes.pop()  # the next element is along the dimension before it
    last = len(sizes) - 1
    if factors[last] == 1 and not any(factors[:last] + factors[last + 1 :]):
        return Stride.UNIT
    is_cut = any(math.isnan(factor) for factor in factors)
    return Stride.UNIT if is_cut and elements_apart(access, variable) == 1 else Stride.OTHER


# p * n * (e floordiv n) + p * (e mod n) == p * e
def elements_apart(access: LoadOp | StoreOp, variable: SSAValue) -> int | None:
    """How many elements an access moves when a loop variable grows by one, None if unknown."""
    operands, shape = list(access.indices), memref_type(access.buffer).get_shape()
    if operands.count(variable) != 1:
        return None
    own, number = atom_of(AffineExpr.dimension(operands.index(variable))), ZERO
    for axis, result in enumerate(access.map.data.results):
        index, below = polynomial(result), shape[axis + 1 :]
        if own in variables(index):
            if DYNAMIC_INDEX in below:
                return None
            number += index * math.prod(below)
    number = joined(number)
    factor = number.coefficient(own)
    return None if own in variables(number - Polynomial.atom(own) * factor) else factor


def are_vectors(access: LoadOp | StoreOp, variable: SSAValue, lanes: int) -> bool:
    """Whether an access goes along a loop variable from vector to vector of its buffer."""
    operands, shape = list(access.indices), memref_type(access.buffer).get_shape()
    if elements_apart(access, variable) != 1 or DYNAMIC_INDEX in shape[1:]:
        return False
    number = ZERO
    for axis, result in enumerate(access.map.data.results):
        number += polynomial(result) * math.prod(shape[axis + 1 :])
    own = Polynomial.atom(atom_of(AffineExpr.dimension(operands.index(variable))))
    return all(factor % lanes == 0 for _, factor in (joined(number) - own).terms)


def bytes_apart(access: LoadOp | StoreOp, loop: ForOp) -> int | None:
    """How many bytes an access moves in each iteration of a loop, None if unknown."""
    bits, elements = bits_of(memref_type(access.buffer)), elements_apart(access, loop.variable)
    return elements * bits // 8 if bits and elements is not None else None


def _factor(expr: AffineExpr, dim: AffineExpr) -> float:
    factor = coefficient(expr, dim)
    return float("nan") if factor is None else factor


def widest_bits(op: Operation) -> int:
    """The width of the widest number that is read, written or computed in an operation."""
    # Many values have the same type object, and its identity is cheaper to compare than its fields.
    kinds: dict[int, Attribute] = {}
    for inner in operations_in(op):
        values = inner.results if inner.regions else (*inner.operands, *inner.results)
        for value in values:
            kinds[id(value.type)] = value.type
    elements = map(element_type, kinds.values())
    numbers = [k for k in elements if isinstance(k, AnyFloat | IntegerType) and k != i1]
    return max((8, *(kind.bitwidth for kind in numbers)))


def lanes_for(target: Target, op: Operation) -> int:
    """The lanes of a machine vector for the numbers in an operation."""
    return target.lanes(widest_bits(op))


def is_expensive(op: Operation) -> bool:
    """Whether an operation computes functions that take many instructions."""
    return any(type(inner) in EXPENSIVE for inner in operations_in(op))


def cost(op: Operation) -> int:
    """An estimate of the scalar instructions of an operation, regions included."""
    if isinstance(op, ForOp):
        body = sum(cost(inner) for inner in op.body.block.ops)
        if op.over_entries:
            return entries_of_a_row(op) * body
        size = extent_of(op)
        return (UNKNOWN_EXTENT if size is None else size) * body
    types = [value.type for value in (*op.results, *op.operands)]
    lanes = max((math.prod(block_shape(kind)) for kind in types), default=1)
    return lanes * (_EXPENSIVE_COST if type(op) in EXPENSIVE else 1)


def estimated(sizes: Iterable[int | None], least: int = 0) -> int:
    """The product of the sizes of loops, of which some may be unknown, each `least` or more."""
    return math.prod(UNKNOWN_EXTENT if size is None else max(least, size) for size in sizes)


def repetitions(op: Operation, loop: ForOp) -> int:
    """How often an operation runs in an iteration of a loop around it."""
    inside = itertools.takewhile(lambda around: around is not loop, enclosing(op))
    return estimated(map(extent_of, inside))


def entry_loops(op: Operation) -> list[ForOp]:
    """The loops over the entries of rows in an operation."""
    return [inner for inner in operations_in(op) if isinstance(inner, ForOp) and inner.over_entries]


def entries_of_a_row(loop: ForOp) -> int:
    """How many entries a row has on average, at least 1."""
    rows, known = memref_type(loop.matrix[0]).get_shape()[0] - 1, stored_entries(loop)
    return UNKNOWN_ENTRIES if known is None or rows < 1 else max(1, round(known / rows))


def stored_entries(loop: ForOp) -> int | None:
    """How many entries the matrix of a loop over entries has, if that is fixed."""
    indices = loop.matrix[1]
    owner = indices.owner
    kernel = owner.parent_op() if isinstance(owner, Block) else None
    if isinstance(indices, BlockArgument) and isinstance(kernel, KernelOp):
        known = kernel.attrs_of(indices.index).get(ENTRIES)
        if isinstance(known, IntegerAttr):
            return known.value.data
    return None


def power_of_two_up_to(count: int) -> int:
    """The largest power of two that is not above `count`, at least 1."""
    return 1 << max(0, count.bit_length() - 1)


def power_of_two_from(count: int) -> int:
    """The smallest power of two that is not below `count`."""
    return 1 << max(0, count - 1).bit_length()
