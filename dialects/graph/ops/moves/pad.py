"""`pad`: a tensor with more elements around it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

import numpy as np
from xdsl.dialects import arith
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineExpr
from xdsl.irdl import prop_def, traits_def
from xdsl.pattern_rewriter import RewritePattern

from .....core.algebra.dims import Dim, Shape
from .....core.ir.definitions import irdl_op_definition
from .....core.ir.typed import dense_array, owned
from .....core.pipelines.exactness import EXACT
from ...attrs import I64_ARRAY, PadMode, PadModeAttr, i64_array, ints
from ...interfaces import Indices, Nest, ShapeFacts
from ...nests.guards import clamped
from ...rearranging import FrameInterface
from ...remapped_axes import BlockableInterface, HoldsNumbers, TransposableInterface
from ...rules import rule
from .padding import PaddingOp, value_property

if TYPE_CHECKING:
    from ...interfaces import Array


@irdl_op_definition
class PadOp(PaddingOp, TransposableInterface, BlockableInterface, FrameInterface):
    """x with `low` elements before and `high` elements after it in every dimension.

    They are `value` in the mode `constant`. The mode `edge` repeats the first and the last
    element, `reflect` mirrors x at them without repeating them, and `wrap` continues at the
    other side; these three need a static size in each dimension that they pad.

    %y = graph.pad constant %x low = [0, 1] high = [0, 2] value = 0.0 : f64
        : (tensor<?x3xf32>) -> tensor<?x6xf32>
    """

    name = "graph.pad"
    traits = traits_def(HoldsNumbers(("low", "high"), neutral=0))

    mode = prop_def(PadModeAttr)
    low = prop_def(I64_ARRAY)
    high = prop_def(I64_ARRAY)

    assembly_format = (
        "$mode $x `low` `=` $low `high` `=` $high `value` `=` $value attr-dict `:` "
        "functional-type(operands, results)"
    )

    def __init__(
        self,
        x: SSAValue | Operation,
        low: Sequence[int],
        high: Sequence[int],
        value: float | int = 0,
        mode: str = "constant",
        result_type: Attribute | None = None,
    ) -> None:
        properties: dict[str, Attribute | None] = {
            "mode": PadModeAttr(PadMode(mode)),
            "low": i64_array(low),
            "high": i64_array(high),
            "value": value_property(x, value),
        }
        super().__init__(operands=[x], properties=properties, result_type=result_type)

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        return (pad_nothing, pad_twice)

    @property
    def margins(self) -> list[tuple[int, int]]:
        """The number of elements before and after x in each dimension."""
        return list(zip(ints(self.low), ints(self.high), strict=True))

    @property
    def has_constant_frame(self) -> bool:
        return self.mode.data == PadMode.CONSTANT

    def result_index(self, nest: Nest, index: Indices) -> Indices:
        return tuple(place + low for place, (low, _) in zip(index, self.margins, strict=True))

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        (x,) = shapes
        for what, array in (("low", self.low), ("high", self.high)):
            numbers = ints(array)
            if len(numbers) != len(x) or any(n < 0 for n in numbers):
                expected = f"{len(x)} numbers of 0 or more"
                facts.fail(f"{what} does not fit x", expected, list(numbers))
        self.check_value(facts)
        axes = enumerate(zip(x, self.margins, strict=True))
        return [tuple(self._size(axis, dim, *margin, facts) for axis, (dim, margin) in axes)]

    def _size(self, axis: int, dim: Dim, low: int, high: int, facts: ShapeFacts) -> Dim:
        mode = self.mode.data
        if mode == PadMode.CONSTANT or (low, high) == (0, 0):
            return dim + low + high
        if not dim.is_static:
            fact = f"axis {axis} has a symbolic size and can only be padded with a constant"
            facts.fail(fact, "constant", mode)
        if mode == PadMode.REFLECT and max(low, high) >= dim.value:
            fact = f"axis {axis} is too short to be mirrored"
            facts.fail(fact, f"more than {max(low, high)}", dim)
        if dim.value == 0:
            facts.fail(f"axis {axis} is empty and can only be padded with a constant", got=mode)
        return dim + low + high

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x = dense_array(arrays[0])
        if not self.margins:
            return (x,)
        if self.mode.data == PadMode.CONSTANT:
            return (self.padded(x, self.margins),)
        mode = {PadMode.EDGE: "edge", PadMode.REFLECT: "reflect", PadMode.WRAP: "wrap"}
        return (np.pad(x, self.margins, mode=mode[self.mode.data]),)  # type: ignore[call-overload]

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        if self.mode.data == PadMode.CONSTANT:
            axes = enumerate(self.margins)
            starts = {axis: AffineExpr.constant(m[0]) for axis, m in axes if m != (0, 0)}
            return self.padded_at(nest, index, starts)
        own = list(index)
        for axis, margin in enumerate(self.margins):
            if margin != (0, 0):
                own[axis] = self._inner(nest, index[axis], nest.extent(self.x, axis), margin[0])
        return nest.at(self.x, tuple(own))

    def _inner(self, nest: Nest, place: AffineExpr, extent: AffineExpr, low: int) -> AffineExpr:
        """The position in x of the element at `place` of the result; `extent` is constant."""
        size = cast(AffineConstantExpr, extent).value
        if self.mode.data == PadMode.WRAP:
            return (place + -low % size) % size
        if self.mode.data == PadMode.EDGE:
            return clamped(nest, place, AffineExpr.constant(low), AffineConstantExpr(size))
        # min(p, 2 * (size - 1) - p) mirrors at the end, max(p, -p) at the beginning.
        own = nest.value(place + -low)
        mirrored = nest.value(place * -1 + low)
        own = nest.insert(arith.MaxSIOp(own, mirrored))
        end = nest.value(AffineExpr.constant(2 * (size - 1)))
        return nest.index(nest.insert(arith.MinSIOp(own, nest.insert(arith.SubiOp(end, own)))))


@rule("pad(x, low, high) == x  if no padding is added", EXACT)
def pad_nothing(low: tuple[int, ...], high: tuple[int, ...]) -> bool:
    return not any(low) and not any(high)


@rule("pad(t := pad(x)) == pad(x, low, high, number)  with one constant", EXACT)
def pad_twice(op: PadOp, t: SSAValue) -> Mapping[str, object] | None:
    inner = owned(t, PadOp)
    if op.mode.data != PadMode.CONSTANT or inner.mode != op.mode:
        return None
    # 0.0 == -0.0, but they are different numbers.
    if repr(inner.number) != repr(op.number):
        return None
    low, high = (
        [a + b for a, b in zip(ints(first), ints(second), strict=True)]
        for first, second in ((inner.low, op.low), (inner.high, op.high))
    )
    return {"low": low, "high": high, "number": op.number}
