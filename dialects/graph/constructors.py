"""Constructors that follow from the operands, the properties and the defaults of an operator."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from xdsl.dialects.builtin import FloatAttr, IntegerAttr, StringAttr, UnitAttr, f64, i1, i64
from xdsl.dialects.utils.enum_attribute import EnumAttribute
from xdsl.ir import Attribute
from xdsl.irdl import AttrConstraint, BaseAttr, OperandDef, OptionalDef, VariadicDef

from ...core.ir.definitions import irdl_op_definition
from .attrs import I64_ARRAY, i64_array, i64_attr
from .interfaces import GraphOp

OperatorT = TypeVar("OperatorT", bound=GraphOp)
Conversion = Callable[[Any], Attribute | None]

_CONVERSIONS: dict[AttrConstraint, tuple[str, Conversion]] = {
    IntegerAttr.constr(i64): ("int", i64_attr),
    IntegerAttr.constr(i1): ("bool", lambda value: IntegerAttr(int(value), i1)),
    FloatAttr.constr(f64): ("float", lambda number: FloatAttr(number, f64)),
    I64_ARRAY: ("Sequence[int]", i64_array),
    BaseAttr(UnitAttr): ("bool", lambda given: UnitAttr() if given else None),
    BaseAttr(StringAttr): ("str", StringAttr),
}
"""How a property with a constraint is given in Python: the type, and the attribute of a value."""


def operator(**defaults: Any) -> Callable[[type[OperatorT]], type[OperatorT]]:
    """Define an operator: `irdl_op_definition`, with a constructor that takes values in Python.

    It takes the operands and properties that have no default, those that have one, None for an
    optional operand, and `result_type`. Type checkers know it as a method of builders, and from
    `ops/__init__.pyi`. An operator has a constructor of its own where a default depends on its
    operands.

    Args:
        defaults: those of properties, in the order of the parameters. An optional property that has
            none is not a parameter. An optional operand or a list may be among them.

    Raises:
        TypeError: if there is no such property or operand.
    """

    def define(cls: type[OperatorT]) -> type[OperatorT]:
        made = irdl_op_definition(cls)
        made.__init__ = constructor(made, defaults)
        return made

    return define


def constructor(cls: type[GraphOp], defaults: dict[str, Any]) -> Callable[..., None]:
    """The constructor of a defined operator: see `operator`."""
    definition = cls.get_irdl_definition()
    operands, declared = dict(definition.operands), definition.properties
    properties = [name for name, kind in definition.accessor_names.values() if kind == "property"]
    varied = [name for name, kind in operands.items() if isinstance(kind, VariadicDef)]
    if not defaults.keys() <= {*properties, *varied}:
        fact = f"expected defaults of {properties}, got {list(defaults)}"
        raise TypeError(f"{cls.__name__}: {fact}")
    conversions = {
        name: _conversion(declared[name].constr)
        for name in properties
        if name in defaults or not isinstance(declared[name], OptionalDef)
    }
    types = {
        "self": "GraphOp",
        **{name: _operand_type(kind) for name, kind in operands.items()},
        **{name: type for name, (type, _) in conversions.items()},
        "result_type": "Attribute",
    }
    absent = {name: None for name in varied if isinstance(operands[name], OptionalDef)}
    first = {name: value for name, value in absent.items() if name not in defaults}
    defaults = {**first, **defaults, "result_type": None}
    names = [*(name for name in types if name not in defaults), *defaults]
    signature = inspect.Signature([_parameter(name, types[name], defaults) for name in names])

    def constructor(*args: Any, **kwargs: Any) -> None:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        values = bound.arguments
        GraphOp.__init__(
            values["self"],
            operands=[values[name] for name in operands],
            properties={
                name: None if values[name] is None else convert(values[name])
                for name, (_, convert) in conversions.items()
            },
            result_type=values["result_type"],
        )

    constructor.__signature__ = signature  # type: ignore[attr-defined]
    return constructor


def _operand_type(kind: OperandDef) -> str:
    one = "SSAValue | Operation"
    is_list = isinstance(kind, VariadicDef) and not isinstance(kind, OptionalDef)
    return f"Sequence[{one}]" if is_list else one


def _parameter(name: str, type: str, defaults: dict[str, Any]) -> inspect.Parameter:
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    default = defaults.get(name, inspect.Parameter.empty)
    annotation = f"{type} | None" if default is None else type
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


def _conversion(constraint: AttrConstraint) -> tuple[str, Conversion]:
    if isinstance(constraint, BaseAttr) and issubclass(constraint.attr, EnumAttribute):
        attribute = constraint.attr
        return "str", lambda word: attribute(attribute.enum_type(word))
    return _CONVERSIONS[constraint]
