"""`pad`: a tensor with more elements around it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, cast

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.interfaces import HasCanonicalizationPatternsInterface
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineExpr
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from ...core.dims import Dim, Shape
from ...core.dtypes import LOW_BIT_FLOATS, dtype_of, integer_range, is_low_bit
from ...core.exactness import Exactness
from ...core.typed import dense_array, integer_type
from . import scalars
from .attrs import (
    I64_ARRAY,
    NUMBER,
    STORED_TENSOR,
    PadMode,
    PadModeAttr,
    i64_array,
    ints,
    is_float,
    number_attr,
)
from .guards import clamped, guarded, is_inside
from .interfaces import FusionKind, GraphOp, Index, Nest, ShapeFacts, element_type
from .rewrites import forward, replace_by

if TYPE_CHECKING:
    from .interfaces import Array


@irdl_op_definition
class PadOp(GraphOp, HasCanonicalizationPatternsInterface):
    """x with `low` elements before and `high` elements after it in every dimension.

    They are `value` in the mode `constant`. The mode `edge` repeats the first and the last
    element, `reflect` mirrors x at them without repeating them, and `wrap` continues at the
    other side; these three need a static size in each dimension that they pad.
    `value` is an f64, or an i64 for integers and truth values, or a ui64 for larger ones.

    %y = graph.pad constant %x low = [0, 1] high = [0, 2] value = 0.0 : f64
        : (tensor<?x3xf32>) -> tensor<?x6xf32>
    """

    name = "graph.pad"
    FUSION: ClassVar[FusionKind] = FusionKind.INJECTIVE

    mode = prop_def(PadModeAttr)
    low = prop_def(I64_ARRAY)
    high = prop_def(I64_ARRAY)
    value = prop_def(NUMBER)
    x = operand_def(STORED_TENSOR)
    result = result_def(STORED_TENSOR)

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
        real = _is_float(element_type(SSAValue.get(x)))
        properties: dict[str, Attribute | None] = {
            "mode": PadModeAttr(PadMode(mode)),
            "low": i64_array(low),
            "high": i64_array(high),
            "value": number_attr(float(value) if real else int(value)),
        }
        super().__init__(operands=[x], properties=properties, result_type=result_type)

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        return (PadNothing(), PadTwice())

    @property
    def margins(self) -> list[tuple[int, int]]:
        """The number of elements before and after x in each dimension."""
        return list(zip(ints(self.low), ints(self.high), strict=True))

    @property
    def number(self) -> float | int:
        """`value`, which is a float for floats and an integer for the others."""
        return cast("FloatAttr | IntegerAttr", self.value).value.data

    def on_blocks(self, axis: int, size: int) -> dict[str, Attribute] | None:
        if self.margins[axis] != (0, 0):
            return None
        return {"low": i64_array([*ints(self.low), 0]), "high": i64_array([*ints(self.high), 0])}

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        (x,) = shapes
        for what, array in (("low", self.low), ("high", self.high)):
            numbers = ints(array)
            if len(numbers) != len(x) or any(n < 0 for n in numbers):
                expected = f"{len(x)} numbers of 0 or more"
                facts.fail(f"{what} does not fit x", expected, list(numbers))
        self._check_value(facts)
        axes = enumerate(zip(x, self.margins, strict=True))
        return [tuple(self._size(axis, dim, *margin, facts) for axis, (dim, margin) in axes)]

    def _check_value(self, facts: ShapeFacts) -> None:
        element = element_type(self.x)
        if _is_float(element) != isinstance(self.value, FloatAttr):
            expected = "an f64" if _is_float(element) else "an i64"
            facts.fail(f"value has the wrong type for {element}", expected, self.value)
        if _is_float(element):
            return
        limits = integer_range(integer_type(element))
        if not limits[0] <= self.number <= limits[1]:
            fact = f"value does not fit {element}"
            facts.fail(fact, f"{limits[0]} to {limits[1]}", self.number)

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
            with np.errstate(over="ignore"):
                fill = np.array(self.number).astype(x.dtype)
            return (np.pad(x, self.margins, mode="constant", constant_values=fill),)
        mode = {PadMode.EDGE: "edge", PadMode.REFLECT: "reflect", PadMode.WRAP: "wrap"}
        return (np.pad(x, self.margins, mode=mode[self.mode.data]),)  # type: ignore[call-overload]

    def value_at(self, nest: Nest, index: Index, result: int = 0) -> SSAValue:
        if self.mode.data == PadMode.CONSTANT:
            return self._constant_at(nest, index)
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

    def _constant_at(self, nest: Nest, index: Index) -> SSAValue:
        element = element_type(self.x)
        fill = scalars.literal(nest, self._fill(), element)
        padded = [axis for axis, margin in enumerate(self.margins) if margin != (0, 0)]
        extents = [nest.extent(self.x, axis) for axis in range(len(index))]
        if any(isinstance(e, AffineConstantExpr) and e.value == 0 for e in extents):
            return fill
        inside: SSAValue | None = None
        own, unknown = list(index), []
        for axis in padded:
            low = self.margins[axis][0]
            start = AffineExpr.constant(low)
            here = is_inside(nest, index[axis], start, extents[axis])
            inside = here if inside is None else nest.insert(arith.AndIOp(inside, here))
            if isinstance(extent := extents[axis], AffineConstantExpr):
                own[axis] = clamped(nest, index[axis], start, extent)
            else:
                own[axis] = index[axis] + -low
                unknown.append(axis)
        if inside is None:
            return nest.at(self.x, index)
        return scalars.select(nest, inside, self._read(nest, own, unknown, inside), fill)

    def _read(
        self, nest: Nest, own: Sequence[AffineExpr], unknown: Sequence[int], inside: SSAValue
    ) -> SSAValue:
        """The element of x at `own`, whose `unknown` parts are in bounds only if `inside`."""
        if not unknown:
            return nest.at(self.x, tuple(own))

        def read(zero: AffineExpr) -> SSAValue:
            return nest.at(
                self.x, tuple(e + zero if i in unknown else e for i, e in enumerate(own))
            )

        return guarded(nest, inside, read, element_type(self.x))

    def _fill(self) -> float | int:
        """`value` as it is stored: rounded to the element type, in which it may be infinite."""
        element = element_type(self.x)
        if is_low_bit(element):
            return self.number
        with np.errstate(over="ignore"):
            return np.array(self.number).astype(dtype_of(element)).item()


def _is_float(element: Attribute) -> bool:
    return is_float(element) or element in LOW_BIT_FLOATS


@Exactness.EXACT
class PadNothing(RewritePattern):
    # pad(x) == x  if no padding is added
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: PadOp, rewriter: PatternRewriter) -> None:
        if not any(ints(op.low)) and not any(ints(op.high)):
            forward(op, op.x, rewriter)


@Exactness.EXACT
class PadTwice(RewritePattern):
    # pad(pad(x, p), q) == pad(x, p + q)  with one constant
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: PadOp, rewriter: PatternRewriter) -> None:
        inner = op.x.owner
        if not isinstance(inner, PadOp):
            return
        if op.mode.data != PadMode.CONSTANT or inner.mode != op.mode:
            return
        # 0.0 == -0.0, but they are different numbers.
        if repr(inner.number) != repr(op.number):
            return
        low, high = (
            [a + b for a, b in zip(ints(first), ints(second), strict=True)]
            for first, second in ((inner.low, op.low), (inner.high, op.high))
        )
        new = PadOp(inner.x, low, high, op.number)
        replace_by(op, new, (inner, op), rewriter)
