"""Operators that read elements at places that are computed: gathers."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, cast

import numpy as np
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.irdl import operand_def, result_def, var_operand_def

from .....core.algebra.dims import Shape
from .....core.boundary.indices import explained_index, outside
from .....core.errors import InputError
from .....core.ir.provenance import origin
from ...attrs import INDEX_TENSOR, STORED_TENSOR
from ...axes import AxisOp
from ...constructors import operator
from ...demands import DemandInterface, IndexBound
from ...interfaces import FusionKind, GraphOp, Indices, Nest, ShapeFacts, rank
from ...positions import from_start
from ...remapped_axes import BlockableInterface

if TYPE_CHECKING:
    from ...interfaces import Array


def place_of(
    nest: Nest, indices: SSAValue, index: Indices, source: SSAValue, axis: int
) -> AffineExpr:
    """The place along an axis of `source` that an element of `indices` means.

    A negative one counts from the back.
    """
    return from_start(nest, nest.at(indices, index), nest.extent(source, axis))


def checked_places(op: GraphOp, indices: np.ndarray, extent: int) -> np.ndarray:
    """Indices as places from 0 on.

    Raises:
        InputError: if one is not in [-extent, extent).
    """
    fault = outside(indices, extent)
    if fault is not None:
        raise InputError(f"{origin(op) or op.name}: {explained_index(*fault)}")
    return np.where(indices < 0, indices + extent, indices)


class AlongAxisOp(AxisOp, DemandInterface, ABC):
    """Common code of gathers along one axis."""

    FUSION: ClassVar[FusionKind] = FusionKind.INJECTIVE

    x = operand_def(STORED_TENSOR)
    indices = operand_def(INDEX_TENSOR)
    result = result_def(STORED_TENSOR)

    assembly_format = (
        "$x `,` $indices `axis` `=` $axis attr-dict `:` functional-type(operands, results)"
    )

    @property
    def demands(self) -> tuple[IndexBound, ...]:
        return (IndexBound(self.indices, self.x, self.axis_from_front),)


@operator(axis=0)
class GatherOp(AlongAxisOp, BlockableInterface):
    """Slices of x at indices along one axis; a negative index counts from the back.

    The shape of `indices` replaces the axis. An index out of range is an error.

    %y = graph.gather %x, %i axis = 0 : (tensor<10x4xf32>, tensor<?xi64>) -> tensor<?x4xf32>
    """

    name = "graph.gather"

    @property
    def in_blocks(self) -> Sequence[SSAValue]:
        return [self.x]

    def on_blocks(self, axis: int, size: int) -> dict[str, Attribute] | None:
        # Indices in front of the blocks would move them in the result.
        return super().on_blocks(axis, size) if axis < self.axis_from_front else None

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        x, indices = shapes
        axis = self.axis_from_front
        return [(*x[:axis], *indices, *x[axis + 1 :])]

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x, indices = cast(tuple[np.ndarray, np.ndarray], arrays)
        axis = self.axis_from_front
        return self.stored(np.take(x, checked_places(self, indices, x.shape[axis]), axis=axis))

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        axis, count = self.axis_from_front, rank(self.indices)
        place = place_of(nest, self.indices, index[axis : axis + count], self.x, axis)
        return nest.at(self.x, (*index[:axis], place, *index[axis + count :]))


@operator(axis=0)
class GatherElementsOp(AlongAxisOp):
    """For each index the element at that place along one axis, and at its own along the others.

    `y[i, j] = x[indices[i, j], j]` for axis 0. A negative index counts from the back, one out of
    range is an error. Other axes of `indices` are at most as long as those of x; where the size
    of one is symbolic, they are equally long.

    %y = graph.gather_elements %x, %i axis = 0
        : (tensor<10x4xf32>, tensor<3x4xi64>) -> tensor<3x4xf32>
    """

    name = "graph.gather_elements"

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        x, indices = shapes
        check_beside(x, indices, self.axis_from_front, facts)
        return [indices]

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x, indices = cast(tuple[np.ndarray, np.ndarray], arrays)
        return (x[places_beside(self, x, indices, self.axis_from_front)],)

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        axis = self.axis_from_front
        place = place_of(nest, self.indices, index, self.x, axis)
        return nest.at(self.x, (*index[:axis], place, *index[axis + 1 :]))


def places_beside(
    op: GraphOp, x: np.ndarray, indices: np.ndarray, axis: int
) -> tuple[np.ndarray, ...]:
    """The places that indices along one axis mean, with their own along the others."""
    own = np.indices(indices.shape, sparse=True)
    along = checked_places(op, indices, x.shape[axis])
    return tuple(along if dim == axis else place for dim, place in enumerate(own))


def check_beside(x: Shape, indices: Shape, axis: int, facts: ShapeFacts) -> None:
    """Check that `indices`, with a place along an axis of x, is nowhere else beyond x."""
    if len(indices) != len(x):
        facts.fail("the ranks differ", len(x), len(indices))
    for dim, (size, count) in enumerate(zip(x, indices, strict=True)):
        if dim == axis or (size.is_static and count.is_static and count.value <= size.value):
            continue
        facts.equal(size, count, f"more indices than elements in dimension {dim}")


@operator()
class GatherNdOp(GraphOp, DemandInterface):
    """Elements or slices of x at places with an index for each of its first dimensions.

    There is one tensor of indices for each of these dimensions, all of one shape; it replaces
    them. A negative index counts from the back, one out of range is an error.

    %y = graph.gather_nd %x at %i, %j
        : (tensor<3x4x2xf32>, tensor<3xi64>, tensor<3xi64>) -> tensor<3x2xf32>
    """

    name = "graph.gather_nd"
    FUSION: ClassVar[FusionKind] = FusionKind.INJECTIVE

    x = operand_def(STORED_TENSOR)
    indices = var_operand_def(INDEX_TENSOR)
    result = result_def(STORED_TENSOR)

    assembly_format = "$x `at` $indices attr-dict `:` functional-type(operands, results)"

    @property
    def demands(self) -> tuple[IndexBound, ...]:
        return tuple(IndexBound(own, self.x, axis) for axis, own in enumerate(self.indices))

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        x, *indices = shapes
        return [(*shape_of_places(x, indices, facts), *x[len(indices) :])]

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x, *indices = cast(tuple[np.ndarray, ...], arrays)
        return self.stored(x[places_nd(self, x, indices)])

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        count = rank(self.indices[0])
        places = [
            place_of(nest, indices, index[:count], self.x, axis)
            for axis, indices in enumerate(self.indices)
        ]
        return nest.at(self.x, (*places, *index[count:]))


def shape_of_places(x: Shape, indices: Sequence[Shape], facts: ShapeFacts) -> Shape:
    """The common shape of the indices of the first dimensions of x."""
    if not 1 <= len(indices) <= len(x):
        facts.fail("wrong number of indices", f"1 to {len(x)}", len(indices))
    first, *others = indices
    for other in others:
        if len(other) != len(first):
            facts.fail("the indices have different ranks", len(first), len(other))
        pairs = zip(first, other, strict=True)
        first = tuple(facts.equal(a, b, "the indices have different shapes") for a, b in pairs)
    return first


def places_nd(op: GraphOp, x: np.ndarray, indices: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    """The indices of the first dimensions of x, from 0 on; see `checked_places`."""
    sizes = zip(indices, x.shape, strict=False)
    return tuple(checked_places(op, own, extent) for own, extent in sizes)
