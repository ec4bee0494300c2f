"""Element types, type constraints and attributes of the `graph` dialect."""

from __future__ import annotations

import re
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar, cast

from xdsl.dialects.builtin import (
    BFloat16Type,
    DenseArrayBase,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    NoneAttr,
    TensorType,
    bf16,
    f16,
    f32,
    f64,
    i1,
    i8,
    i16,
    i32,
    i64,
)
from xdsl.dialects.utils.enum_attribute import EnumAttribute
from xdsl.ir import Attribute
from xdsl.irdl import (
    AttrConstraint,
    EqAttrConstraint,
    IntConstraint,
    VerificationContext,
    irdl_attr_definition,
)
from xdsl.utils.exceptions import VerifyException

from ...core.choices import Choice
from ...core.dtypes import (
    LOW_BIT_FLOATS,
    LOW_BIT_INTEGERS,
    i2,
    i4,
    is_low_bit,
    ui2,
    ui4,
    ui8,
    ui16,
    ui32,
    ui64,
)
from ..sparse_tensor import is_sparse

PRIMITIVE = "graph.primitive"
"""The attribute of a function that is a group of operators, which becomes one kernel."""

_HALF = (f16, bf16)
_FLOATS = (BFloat16Type, Float16Type, Float32Type, Float64Type)
_FLOAT = (*_HALF, f32, f64)
_NUMERIC = (*_FLOAT, i8, i16, i32, i64, ui8, ui16, ui32, ui64)
_COMPUTABLE = (*_FLOAT, i1, i8, i16, i32, i64, ui8, ui16, ui32, ui64)
_ANY = (*_COMPUTABLE, *LOW_BIT_FLOATS, *LOW_BIT_INTEGERS)

_INTEGER = tuple(kind for kind in _COMPUTABLE if kind not in _FLOAT)

_NARROW = (i8, i16, ui8, ui16)

_COMPUTED: dict[Attribute, Attribute] = {
    f16: f32,
    bf16: f32,
    ui8: i32,
    ui16: i32,
    ui32: i64,
    ui64: i64,
}


def compute_type(element_type: Attribute) -> Attribute:
    """The type in which scalars of an element type are computed.

    That of f16 and bf16 is f32. Unsigned integers are computed in a signed type that has all of
    their values, so that one arithmetic serves all integers; a result keeps its low bits. There is
    none for ui64, which is computed in i64: what depends on the sign or the order of elements asks
    `is_reordered`.
    Low-bit types are not computed with: operators that move elements move their bits, as i8.
    """
    if is_low_bit(element_type):
        return i8
    return _COMPUTED.get(element_type, element_type)


def accumulator_type(element_type: Attribute) -> Attribute:
    """The element type of a sum of products: i32 for integers of 8 and 16 bits, else the same."""
    return i32 if element_type in _NARROW else element_type


def is_unsigned(element_type: Attribute) -> bool:
    """Whether the type is ui8, ui16, ui32 or ui64."""
    return element_type in (ui8, ui16, ui32, ui64)


def is_reordered(element_type: Attribute) -> bool:
    """Whether the order of elements is not that of their compute type: that of ui64 is i64."""
    return element_type == ui64


def is_float(element_type: Attribute) -> bool:
    """Whether the type is f16, bf16, f32 or f64."""
    return type(element_type) in _FLOATS


def is_half(element_type: Attribute) -> bool:
    """Whether the type is f16 or bf16, which are stored in 16 bits and computed in f32."""
    return element_type in _HALF


@dataclass(frozen=True)
class TensorConstraint(AttrConstraint[TensorType]):
    """A ranked tensor of some element types, stored in one of some ways."""

    elements: tuple[Attribute, ...]
    storage: Literal["dense", "sparse", "any"]

    def verify(self, attr: Attribute, constraint_context: VerificationContext) -> None:
        if (
            isinstance(attr, TensorType)
            and attr.element_type in self.elements
            and self._stores(attr)
        ):
            return
        what = {"dense": "a dense tensor", "sparse": "a sparse tensor", "any": "a tensor"}
        elements = ", ".join(map(str, self.elements))
        sparse = isinstance(attr, TensorType) and is_sparse(attr)
        hint = "; graph.to_dense makes one" if self.storage == "dense" and sparse else ""
        if isinstance(attr, TensorType) and is_low_bit(attr.element_type):
            hint = "; graph.cast converts from and to low-bit types"
        raise VerifyException(f"expected {what[self.storage]} of {elements}, got {attr}{hint}")

    def _stores(self, type: TensorType) -> bool:
        # SciPy has no matrices of bf16 and of low-bit types.
        element = type.element_type
        sparse = is_sparse(type) and element != bf16 and not is_low_bit(element)
        dense = isinstance(type.encoding, NoneAttr)
        return {"dense": dense, "sparse": sparse, "any": dense or sparse}[self.storage]

    def get_bases(self) -> set[type[Attribute]]:
        return {TensorType}

    def mapping_type_vars(
        self, type_var_mapping: Mapping[TypeVar, AttrConstraint | IntConstraint]
    ) -> AttrConstraint[TensorType]:
        return self


SINGLE_TENSOR = TensorConstraint((f16, f32), "dense")
"""A dense tensor of f16 or f32: quantised values, and scales."""
QUANTIZED_TENSOR = TensorConstraint(_NARROW, "dense")
"""A dense tensor of i8, i16, ui8 or ui16."""
LINEAR_TENSOR = TensorConstraint((*_NARROW, *LOW_BIT_INTEGERS), "dense")
"""A dense tensor of integers of up to 16 bits."""
LINEAR_OR_I32_TENSOR = TensorConstraint((*_NARROW, *LOW_BIT_INTEGERS, i32), "dense")
"""A dense tensor of integers of up to 16 bits, or of i32."""
BYTE_TENSOR = TensorConstraint((i8, ui8), "dense")
"""A dense tensor of i8 or ui8."""
I32_TENSOR = TensorConstraint((i32,), "dense")
"""A dense tensor of i32."""
FLOAT_TENSOR = TensorConstraint(_FLOAT, "dense")
"""A dense tensor of f16, bf16, f32 or f64."""
I64_TENSOR = TensorConstraint((i64,), "dense")
"""A dense tensor of i64."""
INDEX_TENSOR = TensorConstraint((i32, i64), "dense")
"""A dense tensor of i32 or i64."""
NUMERIC_TENSOR = TensorConstraint(_NUMERIC, "dense")
"""A dense tensor of a float type, i8 to i64 or ui8 to ui64."""
INTEGER_TENSOR = TensorConstraint(_INTEGER, "dense")
"""A dense tensor of i1, or of signed or unsigned integers."""
SHIFTED_TENSOR = TensorConstraint(tuple(kind for kind in _INTEGER if kind != i1), "dense")
"""A dense tensor of signed or unsigned integers."""
TRUTH_TENSOR = TensorConstraint((i1,), "dense")
"""A dense tensor of i1."""
DENSE_TENSOR = TensorConstraint(_COMPUTABLE, "dense")
"""A dense tensor of any element type that is computed with."""
STORED_TENSOR = TensorConstraint(_ANY, "dense")
"""A dense tensor of any element type, low-bit types included: for what only moves elements."""
SPARSE_TENSOR = TensorConstraint((f16, f32, f64), "sparse")
"""A sparse tensor of f16, f32 or f64."""
ANY_TENSOR = TensorConstraint(_ANY, "any")
"""A dense or sparse tensor of any element type."""

I64_ARRAY = DenseArrayBase.constr(EqAttrConstraint(i64))
"""An array of i64, printed as [0, 1]."""


ChoiceT = TypeVar("ChoiceT", bound=Choice)


def _attribute(choice: type[ChoiceT]) -> type[EnumAttribute[ChoiceT]]:
    """The attribute that holds a word of a choice: that of `ReduceKind` is `graph.reduce_kind`."""
    name = re.sub(r"\B(?=[A-Z])", "_", choice.__name__).lower()
    body = {"name": f"graph.{name}", "__doc__": choice.__doc__, "__module__": __name__}
    bases = (EnumAttribute[choice],)
    made = types.new_class(f"{choice.__name__}Attr", bases, exec_body=lambda own: own.update(body))
    return irdl_attr_definition(made)


class ReduceKind(Choice):
    """The kind of a `graph.reduce`: ``sum``, ``mean``, ``max``, ``maxnum``, ``min`` or ``prod``."""

    SUM = "sum"
    MEAN = "mean"
    MAX = "max"
    MAXNUM = "maxnum"
    MIN = "min"
    PROD = "prod"


ReduceKindAttr = _attribute(ReduceKind)


class ScatterKind(Choice):
    """The kind of a `graph.scatter_nd`: ``none``, ``add``, ``mul``, ``max`` or ``min``."""

    NONE = "none"
    ADD = "add"
    MUL = "mul"
    MAX = "max"
    MIN = "min"


ScatterKindAttr = _attribute(ScatterKind)


class PadMode(Choice):
    """The mode of a `graph.pad`: ``constant``, ``edge``, ``reflect`` or ``wrap``."""

    CONSTANT = "constant"
    EDGE = "edge"
    REFLECT = "reflect"
    WRAP = "wrap"


PadModeAttr = _attribute(PadMode)


class NormalizeKind(Choice):
    """The kind of a `graph.normalize`: ``symmetric`` or ``row``."""

    SYMMETRIC = "symmetric"
    ROW = "row"


NormalizeKindAttr = _attribute(NormalizeKind)


class SddmmKind(Choice):
    """The kind of a `graph.sddmm`: ``dot``, ``add``, ``sub`` or ``mul``."""

    DOT = "dot"
    ADD = "add"
    SUB = "sub"
    MUL = "mul"


SddmmKindAttr = _attribute(SddmmKind)


class AggregateKind(Choice):
    """How messages combine: ``sum``, ``mean``, ``max``, ``min``, ``prod``, ``var``, ``std``.

    ``softmax`` is the sum with weights that are the softmax of scores.
    """

    SUM = "sum"
    MEAN = "mean"
    MAX = "max"
    MIN = "min"
    PROD = "prod"
    VAR = "var"
    STD = "std"
    SOFTMAX = "softmax"


AggregateKindAttr = _attribute(AggregateKind)


class Approximation(Choice):
    """The formula of a `graph.gelu`: ``none`` is the exact one."""

    NONE = "none"
    TANH = "tanh"


ApproximationAttr = _attribute(Approximation)


def i64_array(values: Sequence[int]) -> DenseArrayBase[IntegerType]:
    """The attribute of a list of integers."""
    return DenseArrayBase.from_list(i64, list(values))


def ints(array: DenseArrayBase) -> tuple[int, ...]:
    """The integers of an `i64_array`."""
    return cast(DenseArrayBase[IntegerType], array).get_values()


def i64_attr(value: int) -> IntegerAttr[IntegerType]:
    """The attribute of one integer."""
    return IntegerAttr(value, i64)


NUMBER: AttrConstraint = (
    FloatAttr.constr(f64) | IntegerAttr.constr(i64) | IntegerAttr.constr(EqAttrConstraint(ui64))
)
"""An element that is given in the text: an f64, or an i64; a ui64 where it is too large for that.
"""


def number_attr(value: float | int) -> FloatAttr | IntegerAttr:
    """The attribute of one element."""
    if isinstance(value, int):
        return IntegerAttr(value, ui64 if value >= 1 << 63 else i64)
    return FloatAttr(value, f64)


_HOLDS: dict[Attribute, tuple[Attribute, ...]] = {
    f16: (f32, f64),
    bf16: (f32, f64),
    f32: (f64,),
    i1: (i8, i16, i32, i64, ui8, ui16, ui32, ui64, f16, bf16, f32, f64),
    i8: (i16, i32, i64, f16, bf16, f32, f64),
    i16: (i32, i64, f32, f64),
    i32: (i64, f64),
    ui8: (ui16, ui32, ui64, i16, i32, i64, f16, bf16, f32, f64),
    ui16: (ui32, ui64, i32, i64, f32, f64),
    ui32: (ui64, i64, f64),
    i2: (i4, i8, i16, i32, i64, f16, bf16, f32, f64),
    i4: (i8, i16, i32, i64, f16, bf16, f32, f64),
    ui2: (ui4, ui8, ui16, ui32, ui64, i4, i8, i16, i32, i64, f16, bf16, f32, f64),
    ui4: (ui8, ui16, ui32, ui64, i8, i16, i32, i64, f16, bf16, f32, f64),
}
"""Types that hold all values of a type, so that casting to them and back changes nothing."""


def holds_all_values(wide: Attribute, narrow: Attribute) -> bool:
    """Whether an element type has all values of another one, so that a cast to it loses none."""
    return wide in _HOLDS.get(narrow, ())
