"""Conversions between element types: of values, and of bits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, cast

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import FixedBitwidthType, TensorType, f8E8M0FNU, i1
from xdsl.interfaces import HasCanonicalizationPatternsInterface
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import operand_def, result_def, traits_def
from xdsl.pattern_rewriter import RewritePattern

from .....core.algebra.dims import Shape
from .....core.dtype_names import is_real
from .....core.dtypes import LOW_BIT_INTEGERS, dtype_of, is_low_bit
from .....core.ir.definitions import irdl_op_definition
from .....core.ir.typed import dense_array, tensor_type
from .....core.pipelines.exactness import EXACT
from ...attrs import STORED_TENSOR, holds_all_values
from ...buffers import storage_type
from ...interfaces import FusionKind, GraphOp, Indices, Nest, ShapeFacts, element_type, widened
from ...nests import low_bits, scalars
from ...rules import rule
from ...traits import Discontinuous

if TYPE_CHECKING:
    from ...interfaces import Array


class _ElementTypeOp(GraphOp, HasCanonicalizationPatternsInterface):
    """A tensor of the same shape with elements of another type."""

    FUSION: ClassVar[FusionKind] = FusionKind.ELEMENTWISE

    x = operand_def(STORED_TENSOR)
    result = result_def(STORED_TENSOR)

    assembly_format = "$x attr-dict `:` functional-type(operands, results)"

    def __init__(self, x: SSAValue | Operation, target: Attribute) -> None:
        """The tensor with elements of type `target`."""
        source = tensor_type(SSAValue.get(x))
        super().__init__(operands=[x], result_type=TensorType(target, source.get_shape()))

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        return [shapes[0]]

    def infer_element_types(self) -> list[Attribute]:
        return [element_type(self.result)]


@irdl_op_definition
class CastOp(_ElementTypeOp):
    """The elements in another type.

    Floats are truncated toward zero to integers, integers keep their low bits, and i1 is
    true for all that is not 0. A float outside the range of i32 (of i64, if the target is that,
    ui32 or ui64) and NaN become its smallest integer first, as on x86. For ui64, 2 ** 63 is
    subtracted from numbers that are not less than it, and added to their integers.

    A low-bit float is the one nearest to the number in f32, ties to even. What is beyond the
    largest one by half of a unit or more becomes an infinity, NaN where there is none, and the
    largest one where there is neither, which is also where NaN becomes 0. A tie of f8E8M0FNU is
    the larger one, and what is nearest to none of its powers of two is NaN, as are 0 and negative
    numbers.

    %y = graph.cast %x : (tensor<4x3xi64>) -> tensor<4x3xf32>
    """

    name = "graph.cast"

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        return (cast_to_same, cast_wider_and_back)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x, kind = dense_array(arrays[0]), element_type(self.result)
        if is_low_bit(element_type(self.x)):
            wide = dtype_of(low_bits.wide_type(element_type(self.x)))
            x = x.astype(wide)
        target = dtype_of(kind)
        with np.errstate(all="ignore"):
            if is_low_bit(kind):
                return (_to_low_bits(x, kind),)
            if is_real(x.dtype) and target.kind in "iu":
                x = _float_to_integer(widened(x), target)
            return (x.astype(target),)

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        value = nest.at(self.x, index)
        return scalars.convert(nest, value, element_type(self.x), element_type(self.result))


@irdl_op_definition
class BitcastOp(_ElementTypeOp):
    """The bits of the elements as those of a type of the same width.

    A truth value is a byte: 0 or 1, and true for every byte that is not 0.

    %y = graph.bitcast %x : (tensor<4x3xf32>) -> tensor<4x3xi32>
    """

    name = "graph.bitcast"
    traits = traits_def(Discontinuous())

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        return (bitcast_to_same, bitcast_twice)

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        source, target = map(_width, (element_type(self.x), element_type(self.result)))
        if source != target:
            facts.fail("widths of the element types differ", f"{source} bits", f"{target} bits")
        return [shapes[0]]

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x, target = np.ascontiguousarray(dense_array(arrays[0])), element_type(self.result)
        if target == i1:
            return (x.view(np.uint8).reshape(x.shape) != 0,)
        return (x.view(dtype_of(target)).reshape(arrays[0].shape),)

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        source, target = element_type(self.x), element_type(self.result)
        bits = scalars.stored(nest, nest.at(self.x, index), source)
        if bits.type != storage_type(target):
            bits = nest.insert(arith.BitcastOp(bits, storage_type(target)))
        return scalars.computed(nest, bits, target)


def _width(element: Attribute) -> int:
    return 8 if element == i1 else cast(FixedBitwidthType, element).bitwidth


def _to_low_bits(x: np.ndarray, kind: Attribute) -> np.ndarray:
    target = dtype_of(kind)
    if kind in LOW_BIT_INTEGERS:
        x = _float_to_integer(widened(x), np.dtype(np.int8)) if is_real(x.dtype) else x
        return x.astype(np.int32).astype(target)
    x = x.astype(np.float32)
    if kind == f8E8M0FNU:
        fraction, exponent = np.frexp(x.astype(np.float64))
        code = exponent + 126 + (fraction >= 0.75)
        fits = np.isfinite(x) & (x > 0) & (code >= 0) & (code < 255)
        return np.where(fits, code, 255).astype(np.uint8).view(target)
    has_nan = np.isnan(np.array(np.nan).astype(target).astype(np.float32))
    return (x if has_nan else np.where(np.isnan(x), np.float32(0), x)).astype(target)


def _float_to_integer(x: np.ndarray, target: np.dtype) -> np.ndarray:
    """Floats as integers, of which a type keeps the low bits."""
    if target != np.uint64:
        return _truncated(x, np.int64 if target in (np.int64, np.uint32) else np.int32)
    is_large = x >= 2.0**63
    integer = _truncated(np.where(is_large, x - x.dtype.type(2.0**63), x), np.int64)
    return np.where(is_large, integer ^ np.iinfo(np.int64).min, integer)


def _truncated(x: np.ndarray, wide: type[np.signedinteger]) -> np.ndarray:
    limits = np.iinfo(wide)
    inside = (x >= float(limits.min)) & (x < -float(limits.min))
    return np.where(inside, np.where(inside, x, 0).astype(wide), limits.min)


@rule("bitcast(x) == x  for x of that type", EXACT)
def bitcast_to_same() -> None: ...


@rule("bitcast(t := bitcast(x)) == bitcast(x, target)  where the type between is not i1", EXACT)
def bitcast_twice(op: BitcastOp, t: SSAValue) -> Mapping[str, Attribute] | None:
    return {"target": element_type(op.result)} if element_type(t) != i1 else None


@rule("cast(x) == x  for x of that type", EXACT)
def cast_to_same() -> None: ...


@rule("cast(t := cast(x)) == x  where the type between holds all values of x", EXACT)
def cast_wider_and_back(x: SSAValue, t: SSAValue) -> bool:
    return holds_all_values(element_type(t), element_type(x))
