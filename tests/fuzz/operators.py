"""Random operators of the `graph` dialect, from what their classes declare.

A call of an operator's constructor is made up from its signature and from the constraints of its
operands and properties, and accepted if the operator verifies. No operator is listed here: a new
one is found as soon as the dialect has it.
"""

from __future__ import annotations

import functools
import inspect
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from xdsl.dialects.builtin import NoneAttr, TensorType
from xdsl.dialects.utils.enum_attribute import EnumAttribute
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.irdl import BaseAttr, OptOperandDef, RangeConstraint, VarOperandDef, VerificationContext
from xdsl.utils.exceptions import VerifyException

from stepwell.core.dtypes import ELEMENT_TYPES
from stepwell.core.ir.typed import tensor_type
from stepwell.dialects.graph.dialect import Graph
from stepwell.dialects.graph.interfaces import GraphOp
from stepwell.dialects.graph.ops import (
    CallDpsOp,
    CallPackedOp,
    ConstantOp,
    IfOp,
    LoopOp,
    WinogradConvOp,
)
from stepwell.dialects.sparse_tensor import csr

from .choices import Choices

STRUCTURED = (ConstantOp, CallDpsOp, CallPackedOp, IfOp, LoopOp)
"""Operators with a name, a kernel or regions, which `programs` makes."""
SQUARES = (WinogradConvOp,)
"""Operators whose sizes are squares and products of others: `tests/numeric/test_winograd.py`."""

DERIVED: tuple[type[GraphOp], ...] = tuple(
    op for op in Graph.operations if issubclass(op, GraphOp) and op not in (*STRUCTURED, *SQUARES)
)

_MOST_PATTERNS, _CLIMBS, _STEPS = 8, 16, 1000
_MOST_RANK = 4
PATTERNS = Path(__file__).with_name("patterns.txt")
"""What `found_patterns` finds for each operator."""


@dataclass(frozen=True)
class Kind:
    """A tensor type without sizes."""

    element: Attribute
    rank: int
    sparse: bool = False

    def type(self, sizes: Sequence[int]) -> TensorType:
        """The type with these sizes."""
        return TensorType(self.element, sizes, csr() if self.sparse else NoneAttr())


Sizes = tuple[tuple[int, ...], ...]
"""Sizes for each operand of an operator."""

Pattern = tuple[tuple[Kind, ...] | None, ...]
"""The kinds of the tensors for each operand of an operator; None for one that is left out."""


@dataclass(frozen=True)
class Operand:
    """An operand of an operator: the tensors that it may be."""

    name: str
    kinds: tuple[Kind, ...]
    optional: bool
    variadic: bool

    def random(self, choices: Choices, like: Sequence[Kind]) -> tuple[Kind, ...] | None:
        """A random form of it, preferably with element types that there are already."""
        if self.optional and choices.chance(0.5):
            return None
        count = choices.randint(0 if choices.chance(0.2) else 1, 3) if self.variadic else 1
        if not count:
            return ()
        kinds = self.kinds
        if like and choices.chance(0.8):
            elements = {kind.element for kind in like}
            kinds = [k for k in kinds if k.element in elements] or kinds
        rank = choices.among(0, 0, 1, 1, 1, 2, 2, 3, 3, 4)
        fitting = [k for k in kinds if k.rank == rank] or kinds
        usual = [k for k in fitting if str(k.element) == "f32"]
        first = choices.choice(usual if usual and choices.chance(0.4) else fitting)
        return (first,) * count


@dataclass(frozen=True)
class Signature:
    """How to call the constructor of an operator."""

    operands: tuple[Operand, ...]
    others: tuple[tuple[str, str, tuple[Any, ...]], ...]
    """The name of each other argument, its annotation, and the texts that it may be."""


@functools.cache
def _every() -> tuple[tuple[Kind, TensorType], ...]:
    """All kinds, each with a type."""
    kinds = (
        Kind(element, rank, sparse)
        for element in ELEMENT_TYPES.values()
        for rank in range(_MOST_RANK + 1)
        for sparse in ((False, True) if rank == 2 else (False,))
    )
    return tuple((kind, kind.type([2] * kind.rank)) for kind in kinds)


@functools.cache
def _kinds(constraint: RangeConstraint) -> tuple[Kind, ...]:
    return tuple(kind for kind, type in _every() if _admits(constraint, type))


def _admits(constraint: RangeConstraint, attr: Attribute) -> bool:
    try:
        constraint.verify((attr,), VerificationContext())
    except VerifyException:
        return False
    return True


@functools.cache
def signature_of(operator: type[GraphOp]) -> Signature:
    """The arguments of an operator's constructor."""
    definition = operator.get_irdl_definition()
    operands = {
        name: Operand(
            name,
            _kinds(one.constr),
            isinstance(one, OptOperandDef),
            isinstance(one, VarOperandDef) and not isinstance(one, OptOperandDef),
        )
        for name, one in definition.operands
    }
    texts = {
        name: _texts(getattr(one.constr, "base_attr", None) or one.constr)
        for name, one in definition.properties.items()
    }
    parameters = list(inspect.signature(operator.__init__).parameters.values())[1:]
    named = [p for p in parameters if p.kind is not p.VAR_KEYWORD and p.name != "result_type"]
    return Signature(
        tuple(operands[p.name] for p in named if p.name in operands),
        tuple(
            (p.name, str(p.annotation), texts.get(p.name, ()))
            for p in named
            if p.name not in operands
        ),
    )


def _texts(constraint: Any) -> tuple[str, ...]:
    """The cases of a property that is an enumeration."""
    attr = constraint.attr if isinstance(constraint, BaseAttr) else constraint
    if isinstance(attr, type) and issubclass(attr, EnumAttribute):
        return tuple(attr.enum_type)
    return ()


@dataclass(frozen=True, order=True)
class Refusal:
    """The check that refuses an operator: how far it is from the first one.

    That is said by the lines of the functions that lead to it and, for the checks of one loop, by
    the number of calls before it, if they are counted.
    """

    lines: tuple[int, ...]
    calls: int = 0

    @staticmethod
    def of(error: BaseException, calls: int = 0) -> Refusal:
        """The place where an error was raised."""
        return Refusal(tuple(line for _, line in traceback.walk_tb(error.__traceback__)), calls)


class _Calls:
    """Counts the calls of functions of Python while it is active."""

    def __enter__(self) -> _Calls:
        self.count = 0
        sys.setprofile(self._event)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _event(self, frame: Any, event: str, _: object) -> None:
        self.count += event == "c_call" and frame.f_code.co_name == "infer_shapes"


@functools.cache
def patterns_of(operator: type[GraphOp]) -> tuple[Pattern, ...]:
    """Some forms of operands with which an operator verifies: those in a file, else new ones."""
    return _stored().get(operator.name) or found_patterns(operator)


@functools.cache
def _stored() -> dict[str, tuple[Pattern, ...]]:
    found: dict[str, list[Pattern]] = {}
    for line in PATTERNS.read_text().splitlines() if PATTERNS.exists() else ():
        name, *forms = line.split(" ")
        found.setdefault(name, []).append(tuple(map(_form_of, forms)))
    return {name: tuple(patterns) for name, patterns in found.items()}


def write_patterns() -> None:
    """Search for the patterns of all operators, and store them."""
    lines = [
        " ".join([operator.name, *map(_text_of, pattern)])
        for operator in DERIVED
        for pattern in found_patterns(operator)
    ]
    PATTERNS.write_text("\n".join(lines) + "\n")


def _text_of(form: tuple[Kind, ...] | None) -> str:
    if form is None:
        return "-"
    return "[" + ",".join(f"{k.rank}{'s' if k.sparse else 'x'}{k.element}" for k in form) + "]"


def _form_of(text: str) -> tuple[Kind, ...] | None:
    if text == "-":
        return None
    parts = [part for part in text[1:-1].split(",") if part]
    return tuple(Kind(ELEMENT_TYPES[p[2:]], int(p[0]), p[1] == "s") for p in parts)


def found_patterns(operator: type[GraphOp]) -> tuple[Pattern, ...]:
    """Some forms of operands with which an operator verifies.

    They are found by changing one operand at a time. An operator checks one fact after another, so
    a change is kept if the check that fails is the same, or a later one. Most sizes are equal,
    because most operators demand that some are.
    """
    choices, found = Choices(operator.name), dict[Pattern, None]()
    for _ in range(_CLIMBS):
        pattern = _climbed(operator, choices)
        if pattern is not None:
            found[pattern] = None
            if len(found) == _MOST_PATTERNS:
                break
    return tuple(found)


def _climbed(operator: type[GraphOp], choices: Choices) -> Pattern | None:
    operands = signature_of(operator).operands
    pattern = _random_pattern(choices, operands)
    sizes, seed, reached = ((2,) * _MOST_RANK,) * len(operands), 0, Refusal(())
    for _ in range(_STEPS):
        attempt, given, properties = pattern, sizes, seed
        match choices.among("operand", "operand", "operand", "sizes", "properties"):
            case "operand" if operands:
                attempt = _changed(pattern, choices, operands)
            case "sizes" if operands:
                given = _resized(sizes, choices)
            case _:
                properties = choices.getrandbits(32)
        with _Calls() as calls:
            values = _arguments(attempt, given)
            near = sorted({n for own in given for n in own}) or [2]
            found = made(operator, values, Choices(str(properties)), near)
        if not isinstance(found, Refusal):
            return attempt
        found = replace(found, calls=calls.count)
        if found >= reached:
            pattern, sizes, seed, reached = attempt, given, properties, found
    return None


def _resized(sizes: Sizes, choices: Choices) -> Sizes:
    """Sizes of which one is another."""
    place, axis = choices.randrange(len(sizes)), choices.randrange(_MOST_RANK)
    own = list(sizes[place])
    own[axis] = choices.randint(1, 4)
    return (*sizes[:place], tuple(own), *sizes[place + 1 :])


def _random_pattern(choices: Choices, operands: Sequence[Operand]) -> Pattern:
    forms: list[tuple[Kind, ...] | None] = []
    scalars = choices.chance(0.5)
    for operand in operands:
        form = operand.random(choices, [kind for form in forms for kind in form or ()])
        flat = [kind for kind in operand.kinds if kind.rank == 0]
        if scalars and form and flat:
            form = (choices.choice(flat),) * len(form)
        forms.append(form)
    return tuple(forms)


def _arguments(pattern: Pattern, sizes: Sizes) -> Values:
    pairs = zip(pattern, sizes, strict=True)
    return [None if form is None else [_value(kind, own) for kind in form] for form, own in pairs]


def _value(kind: Kind, sizes: tuple[int, ...]) -> SSAValue:
    return Block(arg_types=[kind.type(sizes[: kind.rank])]).args[0]


def _changed(pattern: Pattern, choices: Choices, operands: Sequence[Operand]) -> Pattern:
    """A pattern with another form, another rank or another element type of one operand."""
    place = choices.randrange(len(operands))
    form, kinds = pattern[place], operands[place].kinds
    others = [kind for n, form in enumerate(pattern) if n != place for kind in form or ()]
    if form and choices.chance(0.8):
        kind, elements = form[0], {other.element for other in others}
        if choices.chance(0.6):
            near = [k for k in kinds if k.element == kind.element and k != kind]
        else:
            near = [k for k in kinds if k.rank == kind.rank and k.element in elements]
        form = (choices.choice(near or [kind]),) * len(form)
    else:
        form = operands[place].random(choices, others)
    return (*pattern[:place], form, *pattern[place + 1 :])


Values = Sequence[Sequence[SSAValue] | None]


def made(
    operator: type[GraphOp], values: Values, choices: Choices, sizes: Sequence[int]
) -> tuple[GraphOp, dict[str, Any]] | Refusal:
    """An operator on these operands with random properties, and these; or where it is refused.

    Args:
        operator: its class.
        values: the values of each of its operands.
        choices: what decides.
        sizes: sizes that occur among those of the operands.
    """
    signature = signature_of(operator)
    arguments: dict[str, Any] = {}
    for operand, given in zip(signature.operands, values, strict=True):
        arguments[operand.name] = None if given is None else list(given)
        if given and not operand.variadic:
            arguments[operand.name] = given[0]
    first = next((given[0] for given in values if given), None)
    rank = 0 if first is None else tensor_type(first).get_num_dims()
    length = choices.among(rank, rank, rank, max(rank - 2, 0), 1, 2, rank + 1)
    others: dict[str, Any] = {}
    for name, annotation, texts in signature.others:
        others[name] = random_property(choices, annotation, texts, rank, length, sizes)
    try:
        op = operator(**arguments, **others)
        op.verify()
    except VerifyException as error:
        return Refusal.of(error)
    return op, others


def random_property(
    choices: Choices,
    annotation: str,
    texts: Sequence[str],
    rank: int,
    length: int,
    sizes: Sequence[int],
) -> Any:
    """A value for an argument that is no tensor, by its annotation."""
    if annotation.endswith("| None") and choices.chance(0.5):
        return None
    match annotation.removesuffix(" | None"):
        case "bool":
            return choices.chance(0.5)
        case "str":
            return choices.choice(texts) if texts else "fuzz"
        case "int":
            axis = choices.randrange(-rank, rank) if rank else 0
            return choices.among(axis, axis, choices.choice(sizes), choices.randint(-1, 4))
        case "Sequence[int]":
            return _integers(choices, rank, length, sizes)
        case "Attribute":
            return choices.choice(list(ELEMENT_TYPES.values()))
        case "float" | "float | int":
            return choices.among(1.0, 0.0, 0.5, -1.0, 2.0, 1e-5, -0.25, 0.01)
    raise TypeError(f"no random argument for a parameter of type {annotation}")


def _integers(choices: Choices, rank: int, length: int, sizes: Sequence[int]) -> list[int]:
    """Integers: an order of dimensions, some dimensions, small steps, or sizes."""
    dimensions = list(range(rank))
    match choices.among("order", "steps", "steps", "steps", "sizes", "dimensions"):
        case "order":
            return choices.sample(dimensions, rank)
        case "dimensions":
            chosen = choices.some(dimensions, 2) if rank else []
            return [d - rank if choices.chance(0.2) else d for d in chosen]
        case "sizes":
            found = [choices.choice(sizes) for _ in range(length)]
            if found and choices.chance(0.4):
                found[choices.randrange(length)] = choices.among(-1, -1, 0)
            return found
    low = 0 if choices.chance(0.7) else -2
    return [choices.among(1, 1, 1, low, 2, choices.randint(low, 3)) for _ in range(length)]
