"""Operators whose results are as long as the data says: `nonzero`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from xdsl.dialects.builtin import NoneAttr, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    result_def,
    traits_def,
    var_result_def,
)

from ...core.dims import Shape, product
from ...core.typed import dense_array
from . import scalars
from .attrs import DENSE_TENSOR, I64_TENSOR
from .demands import DemandInterface, SizeResult
from .interfaces import (
    FusionKind,
    GraphOp,
    Index,
    ShapeFacts,
    WritingNest,
    element_type,
    rank,
    set_result_types,
)
from .traits import Discontinuous

if TYPE_CHECKING:
    from .interfaces import Array


@irdl_op_definition
class NonzeroOp(GraphOp, DemandInterface):
    """The places of the elements of x that are not zero, in row-major order, and their number.

    There is one tensor of indices for each dimension of x, as `graph.gather_nd` takes them; all
    have the size that the last result holds. NaN is not zero, -0.0 is.

    %i, %j, %count = graph.nonzero %x
        : (tensor<4x5xf32>) -> (tensor<?xi64>, tensor<?xi64>, tensor<i64>)
    """

    name = "graph.nonzero"
    FUSION: ClassVar[FusionKind] = FusionKind.NEST
    traits = traits_def(Discontinuous())

    x = operand_def(DENSE_TENSOR)
    indices = var_result_def(I64_TENSOR)
    count = result_def(I64_TENSOR)

    assembly_format = "$x attr-dict `:` functional-type(operands, results)"

    def __init__(self, x: SSAValue | Operation, result_type: Attribute | None = None) -> None:
        placeholder, count = result_type or NoneAttr(), rank(SSAValue.get(x))
        types = [[placeholder] * count, placeholder]
        IRDLOperation.__init__(self, operands=[x], result_types=types)
        if result_type is None:
            set_result_types(self, self.infer_types())

    @property
    def demands(self) -> tuple[SizeResult, ...]:
        return (SizeResult(self.count),)

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        (x,) = shapes
        if not x or len(self.indices) != len(x):
            expected = "one for each dimension of x" if x else "an x with dimensions"
            facts.fail("wrong number of indices", expected, len(self.indices))
        size = facts.size(self.count, product(x))
        return [*[(size,)] * len(x), ()]

    def infer_element_types(self) -> list[Attribute]:
        return [i64] * len(self.results)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        indices = np.nonzero(dense_array(arrays[0]))
        return self.stored(*indices, np.array(len(indices[0])))

    def write(self, k: Any, *_: Any) -> None:
        nest: WritingNest = k.nest
        extents = [nest.extent(self.x, dim) for dim in range(rank(self.x))]
        kind = nest.compute_type(element_type(self.x))
        nothing, one = scalars.zero(nest, kind), nest.constant(1, i64)

        def step(index: Index, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            (count,) = carried
            # Without a branch: the next place overwrites that of a zero.
            for number, place in enumerate(index):
                own = scalars.from_index(nest, nest.value(place), i64)
                nest.update(number, (nest.index(count),), own)
            is_zero = scalars.equal(nest, nest.at(self.x, index), nothing)
            return [scalars.select(nest, is_zero, count, scalars.add(nest, count, one))]

        (count,) = _in_order(nest, extents, [nest.constant(0, i64)], step)
        nest.write(len(extents), (), count)


def _in_order(
    nest: WritingNest,
    extents: Sequence[AffineExpr],
    carried: Sequence[SSAValue],
    step: Callable[[Index, Sequence[SSAValue]], Sequence[SSAValue]],
    own: Index = (),
) -> Sequence[SSAValue]:
    """Run nested serial loops, which pass values on; returns the last ones."""
    if len(own) == len(extents):
        return step(own, carried)
    return nest.serial(
        extents[len(own)],
        carried,
        lambda place, values: _in_order(nest, extents, values, step, (*own, place)),
    )
