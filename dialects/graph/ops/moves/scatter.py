"""Operators that write elements to places that are computed: scatters."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, cast

import numpy as np
from xdsl.dialects.builtin import i1
from xdsl.irdl import operand_def, prop_def, result_def, var_operand_def

from .....core.algebra.dims import Dim, Shape, product
from .....core.dtypes import is_low_bit
from ...attrs import INDEX_TENSOR, STORED_TENSOR, ScatterKind, ScatterKindAttr
from ...axes import AxisOp
from ...combiners import COMBINERS
from ...constructors import operator
from ...demands import DemandInterface, IndexBound
from ...interfaces import FusionKind, GraphOp, ShapeFacts, Sizes, element_type, rank
from ...nests.body import KernelBody
from ...nests.buffers import Buffer, Index, Scalar
from .gather import check_beside, places_beside, places_nd, shape_of_places

if TYPE_CHECKING:
    from ...interfaces import Array


class ScatterOp(GraphOp, ABC):
    """Common code of scatters: x with some elements replaced by, or joined with, updates.

    Where several updates have one place they are taken in order: the last one replaces the
    others, and sums have the roundings of that order.
    """

    FUSION: ClassVar[FusionKind] = FusionKind.NEST
    UPDATES: ClassVar[int]
    """The number of the operand with the updates."""

    kind = prop_def(ScatterKindAttr)
    result = result_def(STORED_TENSOR)

    @property
    def combine(self) -> str | None:
        """How an update joins what is there; None where it takes its place."""
        return None if self.kind.data == ScatterKind.NONE else self.kind.data.value

    def flops(self, sizes: Sizes) -> Dim | None:
        """One operation for each update that joins an element."""
        joined = product(sizes.shape(self.operands[self.UPDATES]))
        return Dim.of(0) if self.combine is None else joined

    def check_elements(self, facts: ShapeFacts) -> None:
        """Require updates of the element type of x, and numbers where they are combined."""
        expected, got = map(element_type, (self.operands[0], self.operands[self.UPDATES]))
        if expected != got:
            facts.fail("element types differ", expected, got)
        if self.combine is not None and expected == i1:
            facts.fail("truth values cannot be combined", "none", self.combine)
        if self.combine is not None and is_low_bit(expected):
            facts.fail(f"elements of {expected} cannot be combined", "none", self.combine)

    def join(self, result: Buffer, place: tuple[Index, ...], update: Scalar) -> None:
        """Let an update replace the element at a place, or join it."""
        if self.combine is None:
            result.update(place, update)
        else:
            result.accumulate(place, update, self.combine)

    def scattered(
        self, x: np.ndarray, places: tuple[np.ndarray, ...], updates: np.ndarray
    ) -> np.ndarray:
        """x after the updates at some places, in their order."""
        found = np.array(x)
        if self.combine is None:
            found[places] = updates
        else:
            with np.errstate(all="ignore"):
                COMBINERS[self.combine].ufunc.at(found, places, updates)
        return found


@operator(axis=0, kind="none")
class ScatterElementsOp(ScatterOp, AxisOp, DemandInterface):
    """x with each update at the place of its index along one axis, and its own along the others.

    `y[indices[i, j], j] = updates[i, j]` for axis 0, and y is x elsewhere. Indices are those of
    `graph.gather_elements`.

    %y = graph.scatter_elements add %x, %i, %u axis = 0
        : (tensor<5x2xf32>, tensor<3x2xi64>, tensor<3x2xf32>) -> tensor<5x2xf32>
    """

    name = "graph.scatter_elements"
    UPDATES: ClassVar[int] = 2

    x = operand_def(STORED_TENSOR)
    indices = operand_def(INDEX_TENSOR)
    updates = operand_def(STORED_TENSOR)

    assembly_format = (
        "$kind $x `,` $indices `,` $updates `axis` `=` $axis attr-dict `:` "
        "functional-type(operands, results)"
    )

    @property
    def demands(self) -> tuple[IndexBound, ...]:
        return (IndexBound(self.indices, self.x, self.axis_from_front),)

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        x, indices, updates = shapes
        self.check_elements(facts)
        check_beside(x, indices, self.axis_from_front, facts)
        if len(updates) != len(indices):
            facts.fail("updates and indices differ in rank", len(indices), len(updates))
        for update, index in zip(updates, indices, strict=True):
            facts.equal(index, update, "updates and indices differ in shape")
        return [x]

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x, indices, updates = cast(tuple[np.ndarray, ...], arrays)
        places = places_beside(self, x, indices, self.axis_from_front)
        return (self.scattered(x, places, updates),)

    def write(
        self, k: KernelBody, x: Buffer, indices: Buffer, updates: Buffer, result: Buffer
    ) -> None:
        axis, shape = self.axis_from_front, indices.shape
        result.fill(lambda *index: x[index])
        with (
            k.loops(shape[:axis]) as before,
            k.serial(shape[axis]) as place,
            k.loops(shape[axis + 1 :]) as after,
        ):
            own = (*before, place, *after)
            target = k.place(indices[own], x.shape[axis])
            self.join(result, (*before, target, *after), updates[own])


@operator(kind="none")
class ScatterNdOp(ScatterOp, DemandInterface):
    """x with updates at places with an index for each of its first dimensions.

    There is one tensor of indices for each of these dimensions, all of one shape; the updates
    have that shape, then the other dimensions of x. Indices are those of `graph.gather_nd`.

    %y = graph.scatter_nd add %x, %u at %i
        : (tensor<5x2xf32>, tensor<3x2xf32>, tensor<3xi64>) -> tensor<5x2xf32>
    """

    name = "graph.scatter_nd"
    UPDATES: ClassVar[int] = 1

    x = operand_def(STORED_TENSOR)
    updates = operand_def(STORED_TENSOR)
    indices = var_operand_def(INDEX_TENSOR)

    assembly_format = (
        "$kind $x `,` $updates `at` $indices attr-dict `:` functional-type(operands, results)"
    )

    @property
    def demands(self) -> tuple[IndexBound, ...]:
        return tuple(IndexBound(own, self.x, axis) for axis, own in enumerate(self.indices))

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        x, updates, *indices = shapes
        self.check_elements(facts)
        expected = (*shape_of_places(x, indices, facts), *x[len(indices) :])
        if len(updates) != len(expected):
            facts.fail("updates have the wrong rank", len(expected), len(updates))
        for size, update in zip(expected, updates, strict=True):
            facts.equal(size, update, "updates have the wrong shape")
        return [x]

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x, updates, *indices = cast(tuple[np.ndarray, ...], arrays)
        return (self.scattered(x, places_nd(self, x, indices), updates),)

    def write(
        self,
        k: KernelBody,
        x: Buffer,
        updates: Buffer,
        indices: tuple[Buffer, ...],
        result: Buffer,
    ) -> None:
        outer = rank(self.indices[0])
        result.fill(lambda *index: x[index])
        with k.serial(updates.shape[:outer]) as own:
            places = [k.place(one[own], x.shape[axis]) for axis, one in enumerate(indices)]
            with k.loops(updates.shape[outer:]) as rest:
                self.join(result, (*places, *rest), updates[(*own, *rest)])
