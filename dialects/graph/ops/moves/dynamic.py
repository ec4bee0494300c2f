"""Sizes as numbers, and operators whose shapes are operands: `dim`, `dynamic_reshape`,
`dynamic_broadcast`, `dynamic_slice`."""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import TensorType, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.irdl import (
    operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)

from .....core.algebra.dims import Dim, Shape, product
from .....core.ir.typed import dense_array
from ....loop.proofs.bounds import integer_constant
from ...attrs import I64_ARRAY, I64_TENSOR, STORED_TENSOR, ints
from ...axes import AxisOp
from ...constructors import operator
from ...demands import DemandInterface, SizeOperand
from ...interfaces import (
    FusionKind,
    GraphOp,
    Indices,
    Nest,
    ShapeFacts,
    declared_size,
    element_type,
    rank,
    text,
)
from ...nests import scalars
from ...positions import delinearize, linearize
from ...traits import KeepsNonnegative, NeverNegative
from ..elementwise.bases import broadcast_index

if TYPE_CHECKING:
    from ...interfaces import Array

_SIZE = TensorType(i64, [])


@operator(axis=0)
class DimOp(AxisOp):
    """The size of a dimension of x, as a number.

    %n = graph.dim %x axis = 0 : (tensor<?x4xf32>) -> tensor<i64>
    """

    name = "graph.dim"
    FUSION: ClassVar[FusionKind] = FusionKind.INJECTIVE
    traits = traits_def(NeverNegative())

    x = operand_def(STORED_TENSOR)
    result = result_def(I64_TENSOR)

    assembly_format = "$x `axis` `=` $axis attr-dict `:` functional-type(operands, results)"

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        return [()]

    def infer_element_types(self) -> list[Attribute]:
        return [i64]

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        return (np.array(dense_array(arrays[0]).shape[self.axis_from_front], np.int64),)

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        extent = nest.value(nest.extent(self.x, self.axis_from_front))
        return scalars.from_index(nest, extent, i64)


class _ShapedOp(GraphOp, DemandInterface, ABC):
    """An operator that is given the shape of its result: numbers, and scalars that hold sizes."""

    x = operand_def(STORED_TENSOR)
    sizes = var_operand_def(_SIZE)
    shape = prop_def(I64_ARRAY)
    result = result_def(STORED_TENSOR)

    assembly_format = (
        "$x `to` $sizes `shape` `=` $shape attr-dict `:` functional-type(operands, results)"
    )

    @property
    def demands(self) -> tuple[SizeOperand, ...]:
        return tuple(map(SizeOperand, self.sizes))

    def _scalars(self, facts: ShapeFacts) -> Iterator[SSAValue]:
        """The scalars for each -1 in `shape`, in order."""
        target = ints(self.shape)
        if any(n < -1 for n in target):
            facts.fail("not a shape", "sizes, and -1 for each operand", list(target))
        if target.count(-1) != len(self.sizes):
            facts.fail("wrong number of sizes", target.count(-1), len(self.sizes))
        return iter(self.sizes)

    def _numbers(self, arrays: Sequence[Array]) -> list[int]:
        """The shape in a call."""
        given = iter(arrays[1:])
        return [int(dense_array(next(given))) if n == -1 else n for n in ints(self.shape)]


@operator()
class DynamicReshapeOp(_ShapedOp):
    """The same elements, in row-major order, with a shape of which operands hold some sizes.

    In `shape` -1 is the size that the next operand holds. Sizes that do not have as many elements
    as x are an error of the call. One of several sizes has no upper bound of its own.

    %y = graph.dynamic_reshape %x to %n, %m shape = [-1, 4, -1]
        : (tensor<8xf32>, tensor<i64>, tensor<i64>) -> tensor<?x4x?xf32>
    """

    name = "graph.dynamic_reshape"
    FUSION: ClassVar[FusionKind] = FusionKind.INJECTIVE
    traits = traits_def(KeepsNonnegative())

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        total, given = product(shapes[0]), self._scalars(facts)
        target = ints(self.shape)
        known = product(tuple(Dim.of(n) for n in target if n != -1))
        single = target.count(-1) == 1 and known != 0
        rest = total.exact_div(known) if single else None
        most = rest or total if single else None
        sizes: list[Dim] = []
        for axis, n in enumerate(target):
            bound = declared_size(self.result, axis) or most
            sizes.append(Dim.of(n) if n != -1 else facts.size(next(given), bound))
        fact = f"elements of {text(shapes[0])} do not fit"
        if rest is not None:
            place = target.index(-1)
            sizes[place] = facts.equal(rest, sizes[place], fact)
        else:
            facts.equal(total, product(tuple(sizes)), fact)
        return [tuple(sizes)]

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        return (np.ascontiguousarray(dense_array(arrays[0])).reshape(self._numbers(arrays)),)

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        outer = [nest.extent(self.result, axis) for axis in range(len(index))]
        inner = [nest.extent(self.x, axis) for axis in range(rank(self.x))]
        return nest.at(self.x, tuple(delinearize(nest, linearize(nest, index, outer), inner)))


@operator()
class DynamicBroadcastOp(_ShapedOp):
    """x repeated along dimensions of size 1 and along new leading ones, up to sizes of operands.

    In `shape` -1 is the size that the next operand holds. A dimension of x that is not 1 has the
    size of the result: another one is an error of the call.

    %y = graph.dynamic_broadcast %x to %n shape = [-1, 3]
        : (tensor<3xf32>, tensor<i64>) -> tensor<?x3xf32>
    """

    name = "graph.dynamic_broadcast"
    FUSION: ClassVar[FusionKind] = FusionKind.BROADCAST
    traits = traits_def(KeepsNonnegative())

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        x, given = shapes[0], self._scalars(facts)
        target = ints(self.shape)
        new = len(target) - len(x)
        if new < 0:
            facts.fail(
                f"{text(x)} does not broadcast", "a shape of at least its rank", list(target)
            )
        own = [*[Dim.of(1)] * new, *x]
        sizes: list[Dim] = []
        for axis, (n, d) in enumerate(zip(target, own, strict=True)):
            bound = declared_size(self.result, axis) or (None if d == 1 else d)
            size = Dim.of(n) if n != -1 else facts.size(next(given), bound)
            fact = f"{text(x)} does not broadcast"
            sizes.append(size if d == 1 else facts.equal(d, size, fact))
        return [tuple(sizes)]

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x, sizes = dense_array(arrays[0]), self._numbers(arrays)
        return (np.ascontiguousarray(np.broadcast_to(x, sizes)).reshape(sizes),)

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        return nest.at(self.x, broadcast_index(self.x, index[len(index) - rank(self.x) :]))


@operator(axis=0)
class DynamicSliceOp(AxisOp, DemandInterface):
    """`count` elements of an axis of x: at start, start + step, ...

    There are at most as many as the axis has, which is checked. A place outside of the axis means
    its nearest end; with a step of 1 the first one is moved so that none is outside.

    %y = graph.dynamic_slice %x from %start by %step take %count axis = 0
        : (tensor<?x4xf32>, tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?x4xf32>
    """

    name = "graph.dynamic_slice"
    FUSION: ClassVar[FusionKind] = FusionKind.INJECTIVE
    traits = traits_def(KeepsNonnegative())

    x = operand_def(STORED_TENSOR)
    start = operand_def(_SIZE)
    step = operand_def(_SIZE)
    count = operand_def(_SIZE)
    result = result_def(STORED_TENSOR)

    assembly_format = (
        "$x `from` $start `by` $step `take` $count `axis` `=` $axis attr-dict `:` "
        "functional-type(operands, results)"
    )

    @property
    def demands(self) -> tuple[SizeOperand, ...]:
        return (SizeOperand(self.count),)

    def infer_element_types(self) -> list[Attribute]:
        return [element_type(self.x)]

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        x, axis = shapes[0], self.axis_from_front
        return [(*x[:axis], facts.size(self.count, x[axis]), *x[axis + 1 :])]

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x = dense_array(arrays[0])
        start, step, count = (int(dense_array(number)) for number in arrays[1:])
        axis = self.axis_from_front
        if step == 1:
            start = max(0, min(start, x.shape[axis] - count))
        places = start + np.arange(count) * step
        return (np.take(x, np.clip(places, 0, max(x.shape[axis] - 1, 0)), axis=axis),)

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        axis = self.axis_from_front
        start, step = (nest.at(operand, ()) for operand in (self.start, self.step))
        start, size = scalars.to_index(nest, start), nest.extent(self.x, axis)
        # There are no more elements than the axis has: all can follow the first one.
        first = _clamped(nest, start, nest.value(size - nest.extent(self.result, axis)))
        if (known := integer_constant(step)) == 1:
            place = nest.index(first) + index[axis]
        else:
            if known is None:
                is_one = scalars.equal(nest, step, nest.constant(1, i64))
                start = scalars.select(nest, is_one, first, start)
            own = scalars.mul(nest, nest.value(index[axis]), scalars.to_index(nest, step))
            own = scalars.add(nest, start, own)
            place = nest.index(_clamped(nest, own, nest.value(size + -1)))
        return nest.at(self.x, (*index[:axis], place, *index[axis + 1 :]))


def _clamped(nest: Nest, place: SSAValue, high: SSAValue) -> SSAValue:
    """A place inside of [0, high]; 0 for an empty axis, of which nothing is read."""
    low = nest.value(AffineExpr.constant(0))
    return nest.insert(arith.MaxSIOp(nest.insert(arith.MinSIOp(place, high)), low))
