"""Sums of products: `dense` (a linear layer) and `matmul`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, cast

import numpy as np
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_operand_def, result_def

from ...core.dims import Dim, Shape, product
from . import scalars
from .attrs import NUMERIC_TENSOR
from .interfaces import (
    FusionKind,
    GraphOp,
    Index,
    Nest,
    ShapeFacts,
    Sizes,
    element_type,
    rank,
    text,
    widened,
)
from .ops_binary import broadcast_index

if TYPE_CHECKING:
    from .interfaces import Array


def same_element_types(op: GraphOp, facts: ShapeFacts) -> None:
    """Demand that all operands have the element type of the first one."""
    expected = element_type(op.operands[0])
    for operand in op.operands[1:]:
        if element_type(operand) != expected:
            facts.fail("element types differ", expected, element_type(operand))


@irdl_op_definition
class DenseOp(GraphOp):
    """x W^T + bias, for x of shape [..., K], w of shape [N, K] and bias of shape [N].

    The sum starts at the bias. f16 is summed up in f32.

    %y = graph.dense %x, %w, %b
        : (tensor<?x784xf32>, tensor<128x784xf32>, tensor<128xf32>) -> tensor<?x128xf32>
    """

    name = "graph.dense"
    FUSION: ClassVar[FusionKind] = FusionKind.CONTRACTION

    x = operand_def(NUMERIC_TENSOR)
    w = operand_def(NUMERIC_TENSOR)
    bias = opt_operand_def(NUMERIC_TENSOR)
    result = result_def(NUMERIC_TENSOR)

    assembly_format = "$x `,` $w (`,` $bias^)? attr-dict `:` functional-type(operands, results)"

    def __init__(
        self,
        x: SSAValue | Operation,
        w: SSAValue | Operation,
        bias: SSAValue | Operation | None = None,
        result_type: Attribute | None = None,
    ) -> None:
        super().__init__(operands=[x, w, bias], result_type=result_type)

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        same_element_types(self, facts)
        x, w, *bias = shapes
        if len(x) < 1:
            facts.fail("x has no dimension", "rank >= 1", "rank 0")
        if len(w) != 2:
            facts.fail("w is not a matrix", "rank 2", f"rank {len(w)}")
        facts.equal(w[1], x[-1], "inner dimensions differ")
        if bias and len(bias[0]) != 1:
            facts.fail("bias is not a vector", "rank 1", f"rank {len(bias[0])}")
        if bias:
            facts.equal(w[0], bias[0][0], "length of bias differs from the rows of w")
        return [(*x[:-1], w[0])]

    def flops(self, sizes: Sizes) -> Dim:
        return product(sizes.shape(self.result)) * sizes.shape(self.x)[-1] * 2

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x, w, *bias = (widened(cast(np.ndarray, array)) for array in arrays)
        with np.errstate(all="ignore"):
            product = np.matmul(x, w.T)
            return self.stored(product + bias[0] if bias else product)

    def value_at(self, nest: Nest, index: Index, result: int = 0) -> SSAValue:
        *row, column = index
        init = self._initial(nest, index)
        last = rank(self.x) - 1

        def step(k: Index, total: SSAValue) -> SSAValue:
            x = nest.at(self.x, (*row, k[0]))
            return scalars.fma(nest, x, nest.at(self.w, (column, k[0])), total)

        return nest.reduce([nest.extent(self.x, last)], "add", init, step)

    def _initial(self, nest: Nest, index: Index) -> SSAValue:
        if self.bias is not None:
            return nest.at(self.bias, index[-1:])
        return scalars.zero(nest, nest.compute_type(element_type(self.x)))


@irdl_op_definition
class MatmulOp(GraphOp):
    """The matrix product of the last two dimensions; the others are broadcast as in NumPy.

    %y = graph.matmul %a, %b : (tensor<8x4x3xf32>, tensor<3x5xf32>) -> tensor<8x4x5xf32>
    """

    name = "graph.matmul"
    FUSION: ClassVar[FusionKind] = FusionKind.CONTRACTION

    a = operand_def(NUMERIC_TENSOR)
    b = operand_def(NUMERIC_TENSOR)
    result = result_def(NUMERIC_TENSOR)

    assembly_format = "$a `,` $b attr-dict `:` functional-type(operands, results)"

    def __init__(
        self,
        a: SSAValue | Operation,
        b: SSAValue | Operation,
        result_type: Attribute | None = None,
    ) -> None:
        super().__init__(operands=[a, b], result_type=result_type)

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        same_element_types(self, facts)
        a, b = shapes
        for shape in shapes:
            if len(shape) < 2:
                facts.fail("an operand is not a matrix", "rank >= 2", text(shape))
        facts.equal(a[-1], b[-2], "inner dimensions differ")
        return [(*facts.broadcast(a[:-2], b[:-2]), a[-2], b[-1])]

    def flops(self, sizes: Sizes) -> Dim:
        return product(sizes.shape(self.result)) * sizes.shape(self.a)[-1] * 2

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        a, b = (widened(cast(np.ndarray, array)) for array in arrays)
        with np.errstate(all="ignore"):
            return self.stored(np.matmul(a, b))

    def value_at(self, nest: Nest, index: Index, result: int = 0) -> SSAValue:
        *batch, row, column = index
        left = broadcast_index(self.a, (*batch, row, column))[:-2]
        right = broadcast_index(self.b, (*batch, row, column))[:-2]
        init = scalars.zero(nest, nest.compute_type(element_type(self.a)))

        def step(k: Index, total: SSAValue) -> SSAValue:
            a = nest.at(self.a, (*left, row, k[0]))
            return scalars.fma(nest, a, nest.at(self.b, (*right, k[0], column)), total)

        return nest.reduce([nest.extent(self.a, rank(self.a) - 1)], "add", init, step)
