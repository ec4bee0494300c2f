"""Rewrites of the graph take in operators that the core does not know, by what they say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, cast

import numpy as np
import pytest
import scipy.sparse as sp
from xdsl.dialects import math
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineExpr
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def, traits_def

import stepwell as sw
from stepwell.core.algebra.dims import Shape
from stepwell.core.pipelines.staircase import run_passes
from stepwell.core.registry import make_context
from stepwell.core.target import named
from stepwell.dialects.graph.attrs import (
    DENSE_TENSOR,
    FLOAT_TENSOR,
    I64_ARRAY,
    SPARSE_TENSOR,
    i64_array,
    ints,
)
from stepwell.dialects.graph.interfaces import (
    FusionKind,
    GraphOp,
    Indices,
    Nest,
    ShapeFacts,
    element_type,
)
from stepwell.dialects.graph.nests import scalars
from stepwell.dialects.graph.nests.guards import clamped
from stepwell.dialects.graph.ops import MulOp
from stepwell.dialects.graph.remapped_axes import BlockableInterface
from stepwell.dialects.graph.traits import Homogeneous, OrderStatisticInterface


class Same(GraphOp):
    """The base of operators whose result has the type of the operand."""

    x = operand_def(DENSE_TENSOR)
    result = result_def(DENSE_TENSOR)

    def __init__(self, x: SSAValue, result_type: Attribute | None = None, **given: Any) -> None:
        super().__init__(operands=[x], properties=given, result_type=result_type)

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        return [shapes[0]]


class Flip(Same):
    """The elements along the last axis, the last one first."""

    FUSION: ClassVar[FusionKind] = FusionKind.INJECTIVE

    def reference(self, *arrays: Any) -> tuple[np.ndarray, ...]:
        return (np.flip(arrays[0], axis=-1).copy(),)

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        *rest, last = index
        return nest.at(self.x, (*rest, last * -1 + nest.extent(self.x, len(rest)) - 1))


@irdl_op_definition
class FlipOp(Flip):
    name = "outside.flip"


@irdl_op_definition
class FirstTwiceOp(Flip):
    """The first element along the last axis in all places: elements are read several times."""

    name = "outside.first_twice"

    def reference(self, *arrays: Any) -> tuple[np.ndarray, ...]:
        return (np.repeat(arrays[0][..., :1], arrays[0].shape[-1], axis=-1),)

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        return nest.at(self.x, (*index[:-1], AffineExpr.constant(0)))


@irdl_op_definition
class NegatedOp(Flip):
    """The elements along the last axis, the last one first, and negated."""

    name = "outside.negated"

    def reference(self, *arrays: Any) -> tuple[np.ndarray, ...]:
        return (-np.flip(arrays[0], axis=-1),)

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        zero = scalars.zero(nest, nest.compute_type(element_type(self.x)))
        return scalars.sub(nest, zero, super().value_at(nest, index))


@irdl_op_definition
class FloatFlipOp(Flip):
    """The same of floats alone."""

    name = "outside.float_flip"

    x = operand_def(FLOAT_TENSOR)
    result = result_def(FLOAT_TENSOR)


@irdl_op_definition
class RunningMaxOp(Same, OrderStatisticInterface):
    """The larger of each element along the last axis and the one before it."""

    name = "outside.running_max"
    FUSION: ClassVar[FusionKind] = FusionKind.REDUCTION

    @property
    def is_order_statistic(self) -> bool:
        return True

    def reference(self, *arrays: Any) -> tuple[np.ndarray, ...]:
        (x,) = arrays
        return (np.maximum(x, np.concatenate([x[..., :1], x[..., :-1]], axis=-1)),)

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        *rest, last = index
        size = cast(AffineConstantExpr, nest.extent(self.x, len(rest)))
        before = clamped(nest, last, AffineExpr.constant(1), size)
        return scalars.maximum(nest, nest.at(self.x, (*rest, before)), nest.at(self.x, index))


@irdl_op_definition
class MirrorOp(Same, BlockableInterface):
    """The elements along some axes, the last one first."""

    name = "outside.mirror"
    FUSION: ClassVar[FusionKind] = FusionKind.INJECTIVE

    axes = prop_def(I64_ARRAY)

    def on_blocks(self, axis: int, size: int) -> dict[str, Attribute] | None:
        return None if axis in ints(self.axes) else {}

    def reference(self, *arrays: Any) -> tuple[np.ndarray, ...]:
        return (np.flip(arrays[0], axis=ints(self.axes)).copy(),)

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        own = list(index)
        for axis in ints(self.axes):
            own[axis] = own[axis] * -1 + nest.extent(self.x, axis) - 1
        return nest.at(self.x, tuple(own))


class Steeper(Same):
    """x, and 3 x for negative x."""

    FUSION: ClassVar[FusionKind] = FusionKind.ELEMENTWISE

    def reference(self, *arrays: Any) -> tuple[np.ndarray, ...]:
        return self.stored(np.minimum(arrays[0], 3 * arrays[0]))

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        x = nest.at(self.x, index)
        three = nest.constant(3.0, x.type)
        return scalars.minimum(nest, x, scalars.mul(nest, three, x))


@irdl_op_definition
class SteeperOp(Steeper):
    name = "outside.steeper"
    traits = traits_def(Homogeneous())


@irdl_op_definition
class UnstatedOp(Steeper):
    """The same, of an operator that says nothing of scales."""

    name = "outside.unstated"


class Rows(GraphOp):
    """The largest of x in the columns of the entries of each row; 0 where there is none."""

    FUSION: ClassVar[FusionKind] = FusionKind.REDUCTION

    a = operand_def(SPARSE_TENSOR)
    x = operand_def(FLOAT_TENSOR)
    result = result_def(FLOAT_TENSOR)

    def __init__(self, a: SSAValue, x: SSAValue, result_type: Attribute | None = None) -> None:
        super().__init__(operands=[a, x], result_type=result_type)

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        return [(shapes[0][0],)]

    def infer_element_types(self) -> list[Attribute]:
        return [element_type(self.x)]

    def reference(self, *arrays: Any) -> tuple[np.ndarray, ...]:
        a, x = arrays
        rows = [x[a.indices[s:e]] for s, e in zip(a.indptr[:-1], a.indptr[1:], strict=True)]
        found = [self.of_row(n, row.max(initial=0)) for n, row in enumerate(rows)]
        return self.stored(np.array(found))

    def of_row(self, number: int, largest: float) -> float:
        return largest

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        zero = scalars.zero(nest, nest.compute_type(element_type(self.x)))

        def step(position: AffineExpr, column: AffineExpr, most: SSAValue) -> SSAValue:
            return scalars.maximum(nest, most, nest.at(self.x, (column,)))

        return nest.pattern(self.a, index[0], "max", zero, step)


@irdl_op_definition
class RowsOp(Rows):
    name = "outside.rows"


@irdl_op_definition
class NumberedRowsOp(Rows):
    """The same and the number of the row, which is another one in a part of the matrix."""

    name = "outside.numbered_rows"

    def of_row(self, number: int, largest: float) -> float:
        return number + largest

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        value = super().value_at(nest, index)
        number = scalars.from_index(nest, nest.value(index[0]), value.type)
        return scalars.add(nest, value, number)


@irdl_op_definition
class ScaledRowsOp(Rows):
    """The same times x at the row: another element in a part of the matrix."""

    name = "outside.scaled_rows"

    def reference(self, *arrays: Any) -> tuple[np.ndarray, ...]:
        (found,) = super().reference(*arrays)
        return (found * arrays[1][: len(found)],)

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        return scalars.mul(nest, super().value_at(nest, index), nest.at(self.x, index))


@irdl_op_definition
class CountedRowsOp(Rows):
    """The same times the number of rows."""

    name = "outside.counted_rows"

    def reference(self, *arrays: Any) -> tuple[np.ndarray, ...]:
        (found,) = super().reference(*arrays)
        return (found * np.float32(len(found)),)

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        value = super().value_at(nest, index)
        rows = nest.value(nest.extent(self.a, 0))
        return scalars.mul(nest, value, scalars.from_index(nest, rows, value.type))


@irdl_op_definition
class SquareRowsOp(Rows):
    """The same of a square matrix, which a part of one need not be."""

    name = "outside.square_rows"

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        return [(facts.equal(*shapes[0], "a is not square"),)]


@irdl_op_definition
class SquaredOp(Same):
    """The square of x: it keeps 0."""

    name = "outside.squared"
    FUSION: ClassVar[FusionKind] = FusionKind.ELEMENTWISE

    def reference(self, *arrays: Any) -> tuple[np.ndarray, ...]:
        return self.stored(arrays[0] * arrays[0])

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        x = nest.at(self.x, index)
        return scalars.mul(nest, x, x)


@irdl_op_definition
class CosineOp(Same):
    """The cosine of x: it makes 1 of 0."""

    name = "outside.cosine"
    FUSION: ClassVar[FusionKind] = FusionKind.ELEMENTWISE

    def reference(self, *arrays: Any) -> tuple[np.ndarray, ...]:
        return self.stored(np.cos(arrays[0]))

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        return nest.insert(math.CosOp(nest.at(self.x, index)))


def lines_of(b: sw.Builder, passes: str, operator: type[GraphOp]) -> list[str]:
    """The lines with an operator after some passes."""
    module = b.module()
    run_passes(make_context(module.weights, named("x86-64-v4")), module.op, passes)
    module.op.verify()
    return [line for line in str(module.op).splitlines() if operator.name in line]


def agrees(b: sw.Builder, *arrays: np.ndarray | sp.csr_array) -> None:
    """Compare a compiled program with the references of its operators, rounding aside."""
    module = b.module()
    exe = sw.compile(module, threads=1)
    np.testing.assert_allclose(exe(*arrays), module.run_reference(*arrays), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("operator", "moves"),
    [
        (FlipOp, True),
        (RunningMaxOp, True),
        (FirstTwiceOp, False),
        (NegatedOp, False),
        (FloatFlipOp, False),
    ],
)
@pytest.mark.parametrize("along", [False, True])
def test_what_moves_or_chooses_elements_does_so_to_integers(
    operator: type[Same], moves: bool, along: bool
) -> None:
    b = sw.Builder("main")
    x = b.input("x", (3, 7), "i8")
    scale = np.array([0.5, 2.0, 0.25], np.float32) if along else np.float32(0.5)
    zero = np.array([3, -1, 0], np.int8) if along else np.int8(3)
    floats = b.dequantize(x, scale, zero, 0 if along else None)
    b.output(b.apply(operator, floats), name="y")
    (line,) = lines_of(b, "graph-raise-quantized", operator)
    assert line.rstrip().endswith("tensor<3x7xi8>") == moves
    agrees(b, np.random.default_rng(1).integers(-128, 128, (3, 7)).astype(np.int8))


def test_integers_of_weights_are_known_behind_operators() -> None:
    b = sw.Builder("main")
    x = b.input("x", ("n", 2), "ui8")
    w = b.apply(FlipOp, b.constant(np.array([[1, 3], [2, 4]], np.int8)))
    one, zero = np.float32(0.5), np.int8(0)
    b.output(b.quantized_dense(x, one, np.uint8(9), w, one, zero, one, np.uint8(0)), name="y")
    module = b.module()
    passes = "graph-open-composites,graph-raise-quantized"
    run_passes(make_context(module.weights), module.op, passes)
    # 9 times the sums of the weights is subtracted by a bias.
    assert "dense<[-36, -54]>" in str(module.op)
    agrees(b, np.arange(6, dtype=np.uint8).reshape(3, 2))


@pytest.mark.parametrize(("axes", "blocked"), [([2, 3], True), ([1], False)])
def test_operators_say_how_they_work_on_blocks_of_channels(axes: list[int], blocked: bool) -> None:
    b = sw.Builder("main")
    x = b.input("x", (1, 64, 10, 9))
    weights = np.random.default_rng(1).standard_normal((2, 64, 64, 3, 3)).astype(np.float32) / 24
    inner = b.apply(MirrorOp, b.conv(x, weights[0]), axes=i64_array(axes))
    b.output(b.conv(inner, weights[1]), name="y")
    (line,) = lines_of(b, "graph-alter-op-layout", MirrorOp)
    assert ("tensor<1x2x8x7x32xf32>" in line) == blocked
    agrees(b, np.random.default_rng(1).standard_normal((1, 64, 10, 9)).astype(np.float32))


@pytest.mark.parametrize("operator", [SteeperOp, UnstatedOp])
@pytest.mark.parametrize("after", [False, True])
def test_scales_pass_homogeneous_operators(operator: type[Steeper], after: bool) -> None:
    b = sw.Builder("main")
    x = b.input("x", (4, 3))
    weights = b.constant(np.arange(6, dtype=np.float32).reshape(2, 3) - 2)
    scale = np.array([2.0, 0.5, 4.0], np.float32)
    if after:
        b.output(b.mul(b.apply(operator, b.dense(x, weights)), scale[:2]), name="y")
    else:
        b.output(b.dense(b.apply(operator, b.mul(x, scale)), weights), name="y")
    passes = "graph-fold-scale-axis,graph-fold-constant"
    products = [line for line in lines_of(b, passes, MulOp) if "tensor<4x" in line]
    assert len(products) == (0 if operator.has_trait(Homogeneous) else 1)
    agrees(b, np.random.default_rng(1).standard_normal((4, 3)).astype(np.float32))


@pytest.mark.parametrize(("operator", "sparse"), [(SquaredOp, True), (CosineOp, False)])
def test_a_sparse_constant_stays_sparse_behind_operators_that_keep_zero(
    operator: type[Same], sparse: bool
) -> None:
    b = sw.Builder("main")
    weights = np.zeros((64, 512), np.float32)
    weights[3, 5], weights[9, 0] = -2.0, 3.0
    x = b.input("x", (512, 8))
    b.output(b.matmul(b.apply(operator, b.constant(weights)), x), name="y")
    (line,) = lines_of(b, "graph-sparsify-constant", operator)
    assert ("tensor<64x512xf32>" not in line) == sparse
    agrees(b, np.random.default_rng(1).standard_normal((512, 8)).astype(np.float32))


@pytest.mark.parametrize(
    ("operator", "slices"),
    [
        (RowsOp, True),
        (NumberedRowsOp, False),
        (ScaledRowsOp, False),
        (CountedRowsOp, False),
        (SquareRowsOp, False),
    ],
)
def test_rows_of_a_result_are_computed_instead_of_a_part_of_the_matrix(
    operator: type[Rows], slices: bool
) -> None:
    b = sw.Builder("main")
    a = b.input("a", sw.SparseSpec((6, 5)))
    x = b.input("x", (5,))
    b.output(b.apply(operator, b.slice_rows(a, 0, 5), x), name="y")
    (line,) = lines_of(b, "graph-decompose-sparse", operator)
    assert ("tensor<6xf32>" in line) == slices
    if not slices:
        return  # no kernel can compute it
    rng = np.random.default_rng(1)
    matrix = sp.random_array((6, 5), density=0.4, format="csr", dtype=np.float32, rng=rng)
    agrees(b, sp.csr_array(matrix), rng.random(5, np.float32))
