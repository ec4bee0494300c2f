"""Sums of products: `dense` (a linear layer) and `matmul`."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import operand_def, opt_operand_def, result_def, traits_def

from .....core.algebra.dims import Dim, Shape, product
from .....core.ir.typed import dense_array
from ...attrs import NUMERIC_TENSOR, accumulator_type
from ...constructors import operator
from ...interfaces import (
    FusionKind,
    GraphOp,
    Indices,
    Nest,
    ShapeFacts,
    Sizes,
    element_type,
    rank,
    text,
    widened,
)
from ...kinds import Precision
from ...nests import scalars
from ...rearranging import BatchInterface
from ...traits import HalfPrecision
from ..elementwise.bases import broadcast_index

if TYPE_CHECKING:
    from ...interfaces import Array


def same_element_types(
    op: GraphOp, facts: ShapeFacts, operands: Sequence[SSAValue] | None = None
) -> None:
    """Require that all operands, or some of them, have the element type of the first one."""
    first, *others = op.operands if operands is None else operands
    expected = element_type(first)
    for operand in others:
        if element_type(operand) != expected:
            facts.fail("element types differ", expected, element_type(operand))


def summed_element_types(op: GraphOp, facts: ShapeFacts) -> None:
    """Require factors of one type, or of 8 and 16 bits, and a bias of the type of the sum."""
    x, w, *bias = map(element_type, op.operands)
    narrow = all(accumulator_type(kind) != kind for kind in (x, w))
    if x != w and not narrow:
        facts.fail("element types differ", x, w)
    for kind in bias:
        if kind != accumulator_type(x):
            facts.fail("element types differ", accumulator_type(x), kind)


def factor(nest: Nest, value: SSAValue, index: Indices) -> SSAValue:
    """An element of a factor in the type of the sum."""
    source = element_type(value)
    return scalars.convert(nest, nest.at(value, index), source, accumulator_type(source))


def factors(*arrays: Array) -> list[np.ndarray]:
    """Arrays in the types in which they are multiplied and summed."""
    dense = [widened(dense_array(array)) for array in arrays]
    return [a.astype(np.int32) if a.dtype.kind == "i" and a.itemsize < 4 else a for a in dense]


def flops_of_products(sizes: Sizes, result: SSAValue, summed: Shape) -> Dim:
    """A multiplication and an addition for each element of a result and of the summed axes."""
    return product(sizes.shape(result)) * product(summed) * 2


def dense_shape(x: Shape, w: Shape, bias: Sequence[Shape], facts: ShapeFacts) -> Shape:
    """The shape rule of a linear layer."""
    if len(x) < 1:
        facts.fail("x has no dimension", "rank >= 1", "rank 0")
    if len(w) != 2:
        facts.fail("w is not a matrix", "rank 2", f"rank {len(w)}")
    facts.equal(w[1], x[-1], "inner dimensions differ")
    for shape in bias:
        if len(shape) != 1:
            facts.fail("bias is not a vector", "rank 1", f"rank {len(shape)}")
        facts.equal(w[0], shape[0], "length of bias differs from the rows of w")
    return (*x[:-1], w[0])


def matmul_shape(a: Shape, b: Shape, facts: ShapeFacts) -> Shape:
    """The shape rule of a product of matrices."""
    for shape in (a, b):
        if len(shape) < 2:
            facts.fail("an operand is not a matrix", "rank >= 2", text(shape))
    facts.equal(a[-1], b[-2], "inner dimensions differ")
    return (*facts.broadcast(a[:-2], b[:-2]), a[-2], b[-1])


@operator()
class DenseOp(GraphOp, BatchInterface):
    """x W^T + bias, for x of shape [..., K], w of shape [N, K] and bias of shape [N].

    The sum starts at the bias. f16 is summed in f32. Integers of 8 and 16 bits, whose types may
    differ, are summed in i32, which is then the type of the bias and of the result.

    %y = graph.dense %x, %w, %b
        : (tensor<?x3xf32>, tensor<2x3xf32>, tensor<2xf32>) -> tensor<?x2xf32>
    """

    name = "graph.dense"
    FUSION: ClassVar[FusionKind] = FusionKind.CONTRACTION
    traits = traits_def(HalfPrecision(Precision.ALWAYS))

    x = operand_def(NUMERIC_TENSOR)
    w = operand_def(NUMERIC_TENSOR)
    bias = opt_operand_def(NUMERIC_TENSOR)
    result = result_def(NUMERIC_TENSOR)

    assembly_format = "$x `,` $w (`,` $bias^)? attr-dict `:` functional-type(operands, results)"

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        summed_element_types(self, facts)
        x, w, *bias = shapes
        return [dense_shape(x, w, bias, facts)]

    def infer_element_types(self) -> list[Attribute]:
        return [accumulator_type(element_type(self.x))]

    def may_batch(self, operands: Set[int]) -> bool:
        return operands == {0}

    def flops(self, sizes: Sizes) -> Dim:
        return flops_of_products(sizes, self.result, sizes.shape(self.x)[-1:])

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x, w, *bias = factors(*arrays)
        with np.errstate(all="ignore"):
            product = np.matmul(x, w.T)
            return self.stored(product + bias[0] if bias else product)

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        *row, column = index
        if self.bias is None:
            init = scalars.zero(nest, nest.compute_type(element_type(self.result)))
        else:
            init = nest.at(self.bias, index[-1:])

        def step(k: Indices, total: SSAValue) -> SSAValue:
            left = factor(nest, self.x, (*row, k[0]))
            return scalars.fma(nest, left, factor(nest, self.w, (column, k[0])), total)

        return nest.reduce([nest.extent(self.x, rank(self.x) - 1)], "add", init, step)


@operator()
class MatmulOp(GraphOp, BatchInterface):
    """The matrix product of the last two dimensions; the others are broadcast as in NumPy.

    Sums are those of `graph.dense`.

    %y = graph.matmul %a, %b : (tensor<2x4x3xf32>, tensor<3x2xf32>) -> tensor<2x4x2xf32>
    """

    name = "graph.matmul"
    FUSION: ClassVar[FusionKind] = FusionKind.CONTRACTION
    traits = traits_def(HalfPrecision(Precision.ALWAYS))

    a = operand_def(NUMERIC_TENSOR)
    b = operand_def(NUMERIC_TENSOR)
    result = result_def(NUMERIC_TENSOR)

    assembly_format = "$a `,` $b attr-dict `:` functional-type(operands, results)"

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        summed_element_types(self, facts)
        a, b = shapes
        return [matmul_shape(a, b, facts)]

    def infer_element_types(self) -> list[Attribute]:
        return [accumulator_type(element_type(self.a))]

    def may_batch(self, operands: Set[int]) -> bool:
        # Dimensions in front are broadcast from the back: the other factor has none for slices.
        return operands == {0} and rank(self.b) <= rank(self.a)

    def flops(self, sizes: Sizes) -> Dim:
        return flops_of_products(sizes, self.result, sizes.shape(self.a)[-1:])

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        a, b = factors(*arrays)
        with np.errstate(all="ignore"):
            return self.stored(np.matmul(a, b))

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        init = scalars.zero(nest, nest.compute_type(element_type(self.result)))
        *_, row, column = index
        left, right = (broadcast_index(value, index)[:-2] for value in (self.a, self.b))

        def step(k: Indices, total: SSAValue) -> SSAValue:
            element = factor(nest, self.a, (*left, row, k[0]))
            return scalars.fma(nest, element, factor(nest, self.b, (*right, k[0], column)), total)

        return nest.reduce([nest.extent(self.a, rank(self.a) - 1)], "add", init, step)
