"""Types of operands, and values of properties, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    ArrayOfConstraint,
    BoolAttr,
    DenseArrayBase,
    FloatAttr,
    FunctionType,
    IntegerAttr,
    StringAttr,
    SymbolNameConstraint,
    SymbolRefAttr,
    UnitAttr,
)
from xdsl.dialects.utils.enum_attribute import EnumAttribute
from xdsl.ir import Attribute
from xdsl.irdl import (
    AnyOf,
    AttrConstraint,
    BaseAttr,
    EqAttrConstraint,
    MessageConstraint,
    OptionalDef,
    ParamAttrConstraint,
    RangeLengthConstraint,
    RangeOf,
    VarConstraint,
    VariadicDef,
    VerificationContext,
)
from xdsl.utils.exceptions import VerifyException

from ...dialects.graph.attrs import TensorConstraint

_WORDS: dict[type[Attribute], str] = {
    AffineMapAttr: "affine map",
    ArrayAttr: "list",
    DenseArrayBase: "list of integers",
    FloatAttr: "number",
    FunctionType: "function type",
    IntegerAttr: "integer",
    StringAttr: "text",
    SymbolRefAttr: "symbol",
    UnitAttr: "present or not",
}


def value_type(definition: Any) -> str:
    """The types that an operand or a result may have, and how many there are."""
    words = _type(definition.constr)
    if isinstance(definition, OptionalDef):
        return f"{words}; optional"
    return f"{words}; any number" if isinstance(definition, VariadicDef) else words


def property_type(definition: Any) -> str:
    """The values that a property may have."""
    words = _attribute(definition.constr)
    return f"{words}; optional" if isinstance(definition, OptionalDef) else words


def element_types(elements: Sequence[Attribute]) -> str:
    """Element types, with families in short: f32, i8 to i64."""
    names = [str(element) for element in elements]
    for prefix in ("i", "ui"):
        family = [f"{prefix}{bits}" for bits in (8, 16, 32, 64)]
        if set(family) <= set(names):
            at = names.index(family[0])
            names = [name for name in names if name not in family]
            names.insert(at, f"{family[0]} to {family[-1]}")
    return ", ".join(names)


def _type(constraint: Any) -> str:
    if isinstance(constraint, RangeLengthConstraint):
        return _type(constraint.constraint)
    if isinstance(constraint, RangeOf):
        return _type(constraint.constr)
    if isinstance(constraint, VarConstraint):
        return _type(constraint.constraint)
    if isinstance(constraint, TensorConstraint):
        stored = {"dense": "", "sparse": "sparse ", "any": "dense or sparse "}[constraint.storage]
        return f"{stored}tensor of {element_types(constraint.elements)}"
    if isinstance(constraint, EqAttrConstraint):
        return f"`{constraint.attr}`"
    if isinstance(constraint, AnyOf):
        return " or ".join(map(_type, constraint.attr_constrs))
    if isinstance(constraint, BaseAttr):
        return f"`{constraint.attr.name.removeprefix('builtin.')}`"
    return "any type"


def _attribute(constraint: Any) -> str:
    if isinstance(constraint, AnyOf):
        return " or ".join(dict.fromkeys(map(_attribute, constraint.attr_constrs)))
    if isinstance(constraint, ArrayOfConstraint):
        return f"list of {_attribute(constraint.elem_range_constraint)}s"
    if isinstance(constraint, (MessageConstraint, RangeOf)):
        return _attribute(constraint.constr)
    if isinstance(constraint, ParamAttrConstraint):
        return "true or false" if _is_truth(constraint) else _named(constraint.base_attr)
    if isinstance(constraint, BaseAttr):
        return _named(constraint.attr)
    return "symbol" if isinstance(constraint, SymbolNameConstraint) else "any attribute"


def _is_truth(constraint: AttrConstraint) -> bool:
    try:
        constraint.verify(BoolAttr.from_bool(True), VerificationContext())
    except VerifyException:
        return False
    return True


def _named(kind: type[Attribute]) -> str:
    if issubclass(kind, EnumAttribute):
        return ", ".join(f"`{value}`" for value in kind.enum_type)
    return _WORDS.get(kind, f"`#{kind.name}`")
