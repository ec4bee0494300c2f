"""Reading an operand at an index that may be out of bounds.

The nest puts a reading in the outermost loop where its index is known to be in bounds, which may
be before the test that chooses between its value and another one. A reading is therefore made
harmless by its index, or by a loop that does not run, not by what is done with its value.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import arith
from xdsl.dialects.builtin import i1, i8
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineExpr

from ..combiners import COMBINERS
from ..interfaces import Indices, Nest
from . import scalars


def clamped(
    nest: Nest, place: AffineExpr, start: AffineExpr, extent: AffineConstantExpr
) -> AffineExpr:
    """`place` - `start`, kept inside of [0, extent), so that the operand can be read."""
    zero = nest.value(AffineExpr.constant(0))
    own = nest.insert(arith.SubiOp(nest.value(place), nest.value(start)))
    own = nest.insert(arith.MinSIOp(own, nest.value(AffineExpr.constant(extent.value - 1))))
    return nest.index(nest.insert(arith.MaxSIOp(own, zero)))


def is_inside(nest: Nest, place: AffineExpr, start: AffineExpr, extent: AffineExpr) -> SSAValue:
    """Whether `place` - `start` is inside of [0, extent)."""
    own = nest.insert(arith.SubiOp(nest.value(place), nest.value(start)))
    # As unsigned numbers, negative ones are larger than any size.
    return nest.insert(arith.CmpiOp(own, nest.value(extent), "ult"))


def guarded(
    nest: Nest, inside: SSAValue, read: Callable[[AffineExpr], SSAValue], element: Attribute
) -> SSAValue:
    """What `read` gives if `inside` holds, else the least number of the element type.

    An operand of unknown size may be empty, and then has no element that could be read
    instead: the reading is the body of a reduction that runs once or not at all. `read` is
    given its variable, which is 0. Added to an index that is wrong outside, it keeps rows of
    values at that index from being computed before the test.
    """
    none, once = nest.value(AffineExpr.constant(0)), nest.value(AffineExpr.constant(1))
    times = nest.index(scalars.select(nest, inside, once, none))
    type = nest.compute_type(element)
    # There is no maximum of i1.
    wide = i8 if type == i1 else type

    def step(k: Indices, least: SSAValue) -> SSAValue:
        return scalars.maximum(nest, least, scalars.convert(nest, read(k[0]), type, wide))

    least = COMBINERS["max"].init(nest, wide)
    return scalars.convert(nest, nest.reduce([times], "max", least, step), wide, type)
