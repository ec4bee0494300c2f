"""Operators that take or join ranges of tensors: slice, concat."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, cast

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.interfaces import HasCanonicalizationPatternsInterface
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineExpr
from xdsl.irdl import operand_def, prop_def, result_def, traits_def, var_operand_def
from xdsl.pattern_rewriter import RewritePattern

from .....core.algebra.dims import Dim, Shape
from .....core.ir.definitions import irdl_op_definition
from .....core.ir.typed import dense_array
from .....core.pipelines.exactness import EXACT
from ...attrs import I64_ARRAY, STORED_TENSOR, i64_array, ints
from ...axes import AxisOp
from ...constructors import operator
from ...interfaces import FusionKind, GraphOp, Indices, Nest, ShapeFacts, element_type, tensor_type
from ...nests import scalars
from ...nests.guards import clamped, guarded, is_inside
from ...rearranging import AliasInterface
from ...remapped_axes import BlockableInterface, HoldsNumbers, TransposableInterface
from ...rules import rule
from ...traits import KeepsNonnegative
from ..products.contraction import same_element_types

if TYPE_CHECKING:
    from ...interfaces import Array

WHOLE_END = (1 << 63) - 1
"""The end of a slice that takes all of an axis of unknown size."""


@irdl_op_definition
class SliceOp(
    GraphOp,
    AliasInterface,
    TransposableInterface,
    BlockableInterface,
    HasCanonicalizationPatternsInterface,
):
    """Elements start, start + step, ... up to but excluding end of every axis.

    There is an entry for each axis, already clamped to its size; with a negative step, a slice
    down to the first element ends at -1. A symbolic axis can only be taken whole, from 0 to
    9223372036854775807 by 1.

    %y = graph.slice %x starts = [1, 9] ends = [4, -1] steps = [1, -3]
        : (tensor<4x10xf32>) -> tensor<3x4xf32>
    """

    name = "graph.slice"
    FUSION: ClassVar[FusionKind] = FusionKind.INJECTIVE
    traits = traits_def(KeepsNonnegative(), HoldsNumbers(("starts", "ends", "steps"), neutral=0))

    x = operand_def(STORED_TENSOR)
    starts = prop_def(I64_ARRAY)
    ends = prop_def(I64_ARRAY)
    steps = prop_def(I64_ARRAY)
    result = result_def(STORED_TENSOR)

    assembly_format = (
        "$x `starts` `=` $starts `ends` `=` $ends `steps` `=` $steps attr-dict `:` "
        "functional-type(operands, results)"
    )

    def __init__(
        self,
        x: SSAValue | Operation,
        starts: Sequence[int],
        ends: Sequence[int],
        steps: Sequence[int] | None = None,
        result_type: Attribute | None = None,
    ) -> None:
        properties: dict[str, Attribute | None] = {
            "starts": i64_array(starts),
            "ends": i64_array(ends),
            "steps": i64_array(steps if steps is not None else [1] * len(starts)),
        }
        super().__init__(operands=[x], properties=properties, result_type=result_type)

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        return (slice_nothing,)

    @property
    def bounds(self) -> list[tuple[int, int, int]]:
        """Start, end and step of each axis."""
        return list(zip(ints(self.starts), ints(self.ends), ints(self.steps), strict=True))

    @property
    def is_alias(self) -> bool:
        """Whether this is one row: one index of the first axis, and all of the others."""
        return self.row is not None

    @property
    def row(self) -> int | None:
        """The index of the first axis whose elements these are; None where there are others."""
        sizes, bounds = tensor_type(self.x).get_shape(), self.bounds
        if not bounds or bounds[0][1:] != (bounds[0][0] + 1, 1):
            return None
        rest = zip(bounds[1:], sizes[1:], strict=True)
        whole = all(bound in ((0, WHOLE_END, 1), (0, size, 1)) for bound, size in rest)
        return bounds[0][0] if whole and 0 <= bounds[0][0] < sizes[0] else None

    def on_blocks(self, axis: int, size: int) -> dict[str, Attribute] | None:
        # A slice of whole blocks is one of blocks.
        bounds = list(self.bounds)
        start, end, step = bounds[axis]
        is_whole = end == WHOLE_END
        if step != 1 or start % size or (end % size and not is_whole):
            return None
        bounds[axis] = (start // size, end if is_whole else end // size, step)
        columns = zip(*bounds, (0, size, 1), strict=True)
        names = ("starts", "ends", "steps")
        return {name: i64_array(own) for name, own in zip(names, columns, strict=True)}

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        (x,) = shapes
        for what, array in (("starts", self.starts), ("ends", self.ends), ("steps", self.steps)):
            if len(ints(array)) != len(x):
                facts.fail(f"wrong number of {what}", len(x), len(ints(array)))
        pairs = enumerate(zip(x, self.bounds, strict=True))
        return [tuple(self._size(axis, d, *bounds, facts) for axis, (d, bounds) in pairs)]

    def _size(self, axis: int, dim: Dim, start: int, end: int, step: int, facts: ShapeFacts) -> Dim:
        if step == 0:
            facts.fail(f"step of axis {axis} is 0", "a step that is not 0")
        if (start, end, step) == (0, WHOLE_END, 1):
            return dim
        if not dim.is_static:
            fact = f"axis {axis} has a symbolic size and can only be taken whole"
            facts.fail(fact, f"[0, {WHOLE_END}, 1]", [start, end, step])
        low, high = (0, dim.value) if step > 0 else (-1, dim.value - 1)
        if not (low <= start <= high and low <= end <= high):
            fact = f"bounds of axis {axis} are not clamped to its size"
            facts.fail(fact, f"{low} <= start, end <= {high}", [start, end])
        return Dim.of(len(range(start, end, step)))

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x = dense_array(arrays[0])
        slices = tuple(
            slice(start if start >= 0 else None, None if end < 0 else end, step)
            if start >= 0
            else slice(0, 0)
            for start, end, step in self.bounds
        )
        return (np.array(x[slices], order="C"),)

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        triples = zip(index, self.bounds, strict=True)
        return nest.at(self.x, tuple(i * step + start for i, (start, _, step) in triples))


@operator()
class ConcatOp(
    AxisOp,
    AliasInterface,
    TransposableInterface,
    BlockableInterface,
    HasCanonicalizationPatternsInterface,
):
    """The operands one after the other along one axis.

    %y = graph.concat %a, %b axis = 1 : (tensor<4x3xf32>, tensor<4x2xf32>) -> tensor<4x5xf32>
    """

    name = "graph.concat"
    FUSION: ClassVar[FusionKind] = FusionKind.INJECTIVE
    traits = traits_def(KeepsNonnegative())

    inputs = var_operand_def(STORED_TENSOR)
    result = result_def(STORED_TENSOR)

    assembly_format = "$inputs `axis` `=` $axis attr-dict `:` functional-type(operands, results)"

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        return (concat_one,)

    @property
    def is_alias(self) -> bool:
        return False

    @property
    def offsets(self) -> Sequence[int] | None:
        axis, sizes = self.axis_from_front, [tensor_type(x).get_shape() for x in self.inputs]
        if any(DYNAMIC_INDEX in own or set(own[:axis]) - {1} for own in sizes):
            return None
        return [0, *itertools.accumulate(map(math.prod, sizes[:-1]))][: len(sizes)]

    def on_blocks(self, axis: int, size: int) -> dict[str, Attribute] | None:
        # The sizes along the axis are whole blocks, so that these follow each other, too.
        return self.canonical_properties()

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        if not shapes:
            facts.fail("nothing to concatenate", "1 operand or more", 0)
        same_element_types(self, facts)
        first, *others = shapes
        axis = self.axis_from_front
        result = list(first)
        for shape in others:
            if len(shape) != len(first):
                facts.fail("ranks differ", len(first), len(shape))
            for i, dim in enumerate(shape):
                known = result[i]
                result[i] = (
                    known + dim
                    if i == axis
                    else facts.equal(known, dim, f"sizes of axis {i} differ")
                )
        return [tuple(result)]

    def infer_element_types(self) -> list[Attribute]:
        if not self.operands:
            return [element_type(self.result)]
        return super().infer_element_types()

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        return (np.concatenate(cast(list[np.ndarray], arrays), axis=self.axis_from_front),)

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        axis = self.axis_from_front
        value: SSAValue | None = None
        start = AffineExpr.constant(0)
        place = nest.value(index[axis])
        for operand in self.inputs:
            extent = nest.extent(operand, axis)
            if isinstance(extent, AffineConstantExpr) and extent.value == 0:
                continue
            element = self._element(nest, operand, index, start)
            if value is None:
                value = element
            else:
                before = scalars.less(nest, place, nest.value(start))
                value = scalars.select(nest, before, value, element)
            start = start + extent
        if value is None:
            return scalars.zero(nest, nest.compute_type(element_type(self.result)))
        return value

    def _element(
        self, nest: Nest, operand: SSAValue, index: Indices, start: AffineExpr
    ) -> SSAValue:
        """The element of an operand that begins at `start`; arbitrary outside of it."""
        axis = self.axis_from_front
        extent = nest.extent(operand, axis)

        def read(own: AffineExpr) -> SSAValue:
            return nest.at(operand, (*index[:axis], own, *index[axis + 1 :]))

        if isinstance(extent, AffineConstantExpr):
            return read(clamped(nest, index[axis], start, extent))
        inside = is_inside(nest, index[axis], start, extent)
        own = nest.index(nest.insert(arith.SubiOp(nest.value(index[axis]), nest.value(start))))
        return guarded(nest, inside, lambda zero: read(own + zero), element_type(operand))


@rule("slice(x) == x  where every axis is taken whole", EXACT)
def slice_nothing(op: SliceOp) -> bool:
    return all((start, step) == (0, 1) for start, _, step in op.bounds)


@rule("concat([x]) == x", EXACT)
def concat_one() -> None: ...
