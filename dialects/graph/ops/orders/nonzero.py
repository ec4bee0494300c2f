"""Operators whose results are as long as the data says: `nonzero`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from xdsl.dialects.builtin import NoneAttr, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import IRDLOperation, operand_def, result_def, traits_def, var_result_def

from .....core.algebra.dims import Shape, product
from .....core.ir.definitions import irdl_op_definition
from .....core.ir.typed import dense_array
from ...attrs import DENSE_TENSOR, I64_TENSOR
from ...demands import DemandInterface, SizeResult
from ...interfaces import FusionKind, GraphOp, ShapeFacts, rank, set_result_types
from ...nests.body import KernelBody
from ...nests.buffers import Buffer, Scalar
from ...traits import Discontinuous

if TYPE_CHECKING:
    from ...interfaces import Array


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

    def write(self, k: KernelBody, x: Buffer, indices: tuple[Buffer, ...], count: Buffer) -> None:
        def step(*given: Any) -> tuple[Scalar]:
            *index, number = given
            # Without a branch: the next place overwrites that of a zero.
            for places, place in zip(indices, index, strict=True):
                places.update(number, k.cast(place, i64))
            is_zero = k.equal(x[tuple(index)], 0)
            return (k.where(is_zero, number, number + 1),)

        (total,) = k.carry(x.shape, [k.scalar(0, i64)], step)
        count[()] = total
