"""Emits arithmetic on scalars and vectors of floats, operation by operation.

The formulas of `polynomials.py` and `doubles.py` are written in it: `e.fma(a, b, c)` appends one
operation and returns its value.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence

from xdsl.dialects import arith, math, scf
from xdsl.dialects.builtin import (
    UNKNOWN_LOC,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IntegerAttr,
    LocationAttr,
    VectorType,
    f32,
    f64,
    i1,
    i16,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.utils.type import get_element_type_or_self

from ...core.building.creation import created
from ...core.instructions import FMA, SCALE
from ...core.target import Target
from ...dialects import x86vector
from ...dialects.upstream import ops as upstream

_NO_FAST_MATH: dict[str, Attribute] = {"fastmath": arith.FastMathFlagsAttr("none")}
_NO_OVERFLOW: dict[str, Attribute] = {"overflowFlags": arith.IntegerOverflowAttr("none")}
_PREDICATES: dict[str, dict[str, Attribute]] = {
    name: {"predicate": IntegerAttr(number, 64), **_NO_FAST_MATH}
    for number, name in enumerate(arith.CMPF_COMPARISON_OPERATIONS)
}


class Arithmetic:
    """Emits arithmetic on scalars or vectors of one shape, in one function.

    Operations are collected in a list until `take`, constants in `hoisted`, one for each value.
    Types and attributes are cached and operations built with `create`: building an operation takes
    about as long as a thousand of its executions.
    """

    def __init__(self, type: Attribute, target: Target):
        self.type = type
        self.can_scale = target.has(SCALE) and type == x86vector.LANES
        self.can_fuse = target.has(FMA)
        self.f32 = upstream.with_element_type(type, f32)
        self.f64 = upstream.with_element_type(type, f64)
        self.i1 = upstream.with_element_type(type, i1)
        self.i32 = upstream.with_element_type(type, i32)
        self.i64 = upstream.with_element_type(type, i64)
        self.location: LocationAttr = UNKNOWN_LOC
        self.hoisted: list[Operation] = []
        self._constants: dict[tuple[float, int], SSAValue] = {}
        self._ops: list[Operation] = []

    def in_f64(self) -> Arithmetic:
        """The same place with f64 as `type`: what it emits is taken here."""
        wide = copy.copy(self)
        wide.type, wide.can_scale = self.f64, False
        return wide

    def take(self) -> list[Operation]:
        """The operations emitted since the last call."""
        ops, self._ops = self._ops, []
        return ops

    def _emit(
        self,
        kind: type[Operation],
        operands: Sequence[SSAValue],
        result: Attribute,
        properties: dict[str, Attribute],
    ) -> SSAValue:
        op = created(kind, operands, (result,), properties, location=self.location)
        self._ops.append(op)
        return op.results[0]

    def constant(self, value: float, type: Attribute | None = None) -> SSAValue:
        """A number in every lane, by default of `type`."""
        type = self.type if type is None else type
        key = value, id(type)
        found = self._constants.get(key)
        if found is None:
            op = arith.ConstantOp.create(
                result_types=(type,), properties={"value": _attribute(value, type)}
            )
            self.hoisted.append(op)
            found = self._constants[key] = op.results[0]
        return found

    def bits(self, value: int) -> SSAValue:
        """An i32 constant."""
        return self.constant(value, self.i32)

    def wide_bits(self, value: int) -> SSAValue:
        """An i64 constant."""
        return self.constant(value, self.i64)

    def double(self, value: float) -> SSAValue:
        """An f64 constant."""
        return self.constant(value, self.f64)

    def add(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """a + b."""
        return self._emit(arith.AddfOp, (a, b), a.type, _NO_FAST_MATH)

    def sub(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """a - b."""
        return self._emit(arith.SubfOp, (a, b), a.type, _NO_FAST_MATH)

    def mul(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """a * b."""
        return self._emit(arith.MulfOp, (a, b), a.type, _NO_FAST_MATH)

    def div(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """a / b."""
        return self._emit(arith.DivfOp, (a, b), a.type, _NO_FAST_MATH)

    def fma(self, a: SSAValue, b: SSAValue, c: SSAValue) -> SSAValue:
        """a * b + c, rounded once."""
        return self._emit(math.FmaOp, (a, b, c), a.type, _NO_FAST_MATH)

    def scale(self, a: SSAValue, n: SSAValue) -> SSAValue:
        """a * 2^n for an integral n, rounded once; only where `can_scale`."""
        every, nearest = self.constant(-1, i16), self.constant(4, i32)
        return self._emit(x86vector.Avx512MaskScalefOp, (a, a, n, every, nearest), a.type, {})

    def minimum(self, x: SSAValue, high: SSAValue) -> SSAValue:
        """The smaller one; NaN if one of them is."""
        return self._emit(arith.MinimumfOp, (x, high), x.type, _NO_FAST_MATH)

    def maximum(self, x: SSAValue, low: SSAValue) -> SSAValue:
        """The larger one; NaN if one of them is."""
        return self._emit(arith.MaximumfOp, (x, low), x.type, _NO_FAST_MATH)

    def clamp(self, x: SSAValue, low: SSAValue, high: SSAValue) -> SSAValue:
        """x between two numbers; NaN stays NaN."""
        return self.maximum(self.minimum(x, high), low)

    def unary(self, kind: type[Operation], x: SSAValue) -> SSAValue:
        """An operation of `math` that is one instruction."""
        return self._emit(kind, (x,), x.type, _NO_FAST_MATH)

    def copysign(self, magnitude: SSAValue, sign: SSAValue) -> SSAValue:
        """|magnitude| with the sign bit of `sign`."""
        return self._emit(math.CopySignOp, (magnitude, sign), sign.type, _NO_FAST_MATH)

    def cast(self, kind: type[Operation], x: SSAValue, type: Attribute) -> SSAValue:
        """A conversion or a bitcast to another type."""
        return self._emit(kind, (x,), type, {})

    def bitcast(self, x: SSAValue, type: Attribute) -> SSAValue:
        """The same bits as another type."""
        return self.cast(arith.BitcastOp, x, type)

    def integer(self, kind: type[Operation], a: SSAValue, b: SSAValue) -> SSAValue:
        """An integer operation: AndIOp, OrIOp, ShRUIOp."""
        return self._emit(kind, (a, b), a.type, {})

    def wrapping(self, kind: type[Operation], a: SSAValue, b: SSAValue) -> SSAValue:
        """An integer operation that wraps around: AddiOp, SubiOp, ShLIOp."""
        return self._emit(kind, (a, b), a.type, _NO_OVERFLOW)

    def compare(self, predicate: str, a: SSAValue, b: SSAValue) -> SSAValue:
        """A comparison of floats, by the name of `arith.cmpf`."""
        return self._emit(upstream.CmpfOp, (a, b), self.i1, _PREDICATES[predicate])

    def select(self, condition: SSAValue, a: SSAValue, b: SSAValue) -> SSAValue:
        """a where the condition holds, else b."""
        return self._emit(upstream.SelectOp, (condition, a, b), a.type, {})

    def unless_all(
        self, condition: SSAValue, value: SSAValue, otherwise: Callable[[], SSAValue]
    ) -> SSAValue:
        """A value where a condition holds in all lanes, else another one, computed in a branch."""
        if isinstance(condition.type, VectorType):
            reduction = upstream.ReductionOp(condition, "and")
            reduction.location = self.location
            self._ops.append(reduction)
            condition = reduction.dest
        around, self._ops = self._ops, []
        computed = otherwise()
        branches = [[scf.YieldOp(value)], [*self._ops, scf.YieldOp(computed)]]
        regions = [Region(Block(ops)) for ops in branches]
        op = created(scf.IfOp, (condition,), (value.type,), {}, {}, self.location, regions)
        self._ops = [*around, op]
        return op.results[0]

    def polynomial(
        self, x: SSAValue, coefficients: Sequence[float], type: Attribute | None = None
    ) -> SSAValue:
        """c[0] + c[1] x + c[2] x^2 + ... by Horner's rule; the type as for `constant`."""
        result = self.constant(coefficients[-1], type)
        for coefficient in reversed(coefficients[:-1]):
            result = self.fma(result, x, self.constant(coefficient, type))
        return result


def _attribute(value: float, type: Attribute) -> Attribute:
    if isinstance(type, VectorType):
        return DenseIntOrFPElementsAttr.from_list(type, [value])
    if isinstance(value, int):
        return IntegerAttr(value, get_element_type_or_self(type))  # type: ignore[arg-type]
    return FloatAttr(value, type)  # type: ignore[arg-type]
