"""Attributes of functions with the names of sizes, and pairs of sizes that must agree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr
from xdsl.ir import Attribute

from ....core.algebra.dims import Dim
from ....core.errors import explain
from ....core.ir.public_function import DIMS, NNZ, Program
from ....core.ir.refusal import InvalidProgram

EQUAL = "graph.equal"
"""Attribute of a function: pairs of sizes that must agree, known from its original operators."""


def equal_sizes(function: Program) -> list[tuple[Dim, Dim]]:
    """The pairs of sizes that the attribute `graph.equal` of a function holds.

    Raises:
        VerifyException: if it holds something else.
    """
    attr = function.attributes.get(EQUAL, ArrayAttr[Attribute]([]))
    pairs: list[tuple[Dim, Dim]] = []
    try:
        for pair in cast(ArrayAttr[ArrayAttr[StringAttr]], attr):
            left, right = (Dim.parse(text.data) for text in pair)
            pairs.append((left, right))
    except (TypeError, AttributeError, ValueError) as error:
        subject = f"{function.name} @{function.sym_name.data}"
        raise InvalidProgram(
            explain(subject, f"wrong {EQUAL}", expected="pairs of sizes", got=attr)
        ) from error
    return pairs


def equal_attribute(pairs: Iterable[tuple[Dim, Dim]]) -> ArrayAttr[ArrayAttr[StringAttr]]:
    """What `equal_sizes` reads."""
    return ArrayAttr([ArrayAttr([StringAttr(str(dim)) for dim in pair]) for pair in pairs])


def argument_attributes(function: func.FuncOp, number: int) -> Mapping[str, Attribute]:
    """The attributes of an argument of a function."""
    if function.arg_attrs is None:
        return {}
    return cast(DictionaryAttr, function.arg_attrs.data[number]).data


def argument_names(function: func.FuncOp) -> list[str]:
    """The symbols that the attributes of the arguments of a function name."""
    count = len(function.function_type.inputs)
    return [
        text
        for number in range(count)
        for text in _named_symbols(argument_attributes(function, number))
    ]


def _named_symbols(attributes: Mapping[str, Attribute]) -> list[str]:
    dims, nnz = attributes.get(DIMS), attributes.get(NNZ)
    texts = dims.data if isinstance(dims, ArrayAttr) else ()
    names = [a.data for a in texts if isinstance(a, StringAttr)]
    return [*names, nnz.data] if isinstance(nnz, StringAttr) else names
