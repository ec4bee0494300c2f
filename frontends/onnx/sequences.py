"""Sequences and optional values as inputs: each of their tensors is an input of the program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import TypeProto, ValueInfoProto

from ..importing.diagnostics import Problem, UnsupportedNodeError
from ..importing.values import Value
from .diagnostics import broken

_F32 = np.dtype(np.float32)


class EmptyOptional(Value):
    """An optional value without an element."""


@dataclass
class Tensors:
    """Inputs that are tensors, and the shapes that are given for them.

    Attributes:
        infos: tensors, those of sequences and optional values in their places.
        shapes: the shapes by their names.
        of: the names of the tensors of each sequence and optional value; None for an optional value
            without an element, a name for one that is a tensor.
        problems: inputs that are not supported.
    """

    infos: list[ValueInfoProto] = field(default_factory=list)
    shapes: dict[str, Any] = field(default_factory=dict)
    of: dict[str, list[str] | str | None] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)


def tensors_of(infos: Sequence[ValueInfoProto], shapes: Mapping[str, Any]) -> Tensors:
    """The tensors of inputs, for the shapes that a caller gives.

    A sequence of n tensors needs n shapes, and an optional value the shape of its element, or None
    for no element. Tensor number k of a sequence is called ``<name>.<k>``.
    """
    found = Tensors(shapes=dict(shapes))
    for info in infos:
        kind, type = info.type.WhichOneof("value"), info.type
        if kind in ("sequence_type", "optional_type") and info.name not in shapes:
            noun = kind.removesuffix("_type")
            given = "[(2, 3), (4, 3)]" if noun == "sequence" else "None"
            reason = f"{noun} inputs are only supported where shapes says what they are"
            closest = f'shapes={{"{info.name}": {given}}}'
            found.problems.append(Problem(f'input "{info.name}"', None, reason, closest))
            continue
        if kind == "optional_type":
            type = type.optional_type.elem_type
            if shapes[info.name] is None:
                del found.shapes[info.name]
                found.of[info.name] = None
                continue
        if type.WhichOneof("value") == "sequence_type":
            _add_sequence(found, info.name, type.sequence_type.elem_type)
        elif kind == "optional_type":
            found.infos.append(ValueInfoProto(name=info.name, type=type))
            found.of[info.name] = info.name
        else:
            found.infos.append(info)
    return found


def _add_sequence(found: Tensors, name: str, element: TypeProto) -> None:
    given = found.shapes.pop(name)
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise broken(f'shapes: "{name}" needs a list of shapes', got=type(given).__name__)
    own = TypeProto()
    own.CopyFrom(element)
    for dim in own.tensor_type.shape.dim:
        # A size with a name is that of one tensor: those of others may differ.
        dim.ClearField("dim_param")
    names = [f"{name}.{number}" for number in range(len(given))]
    found.infos += [ValueInfoProto(name=part, type=own) for part in names]
    found.shapes |= dict(zip(names, given, strict=True))
    found.of[name] = names


def joined(names: list[str] | str | None, made: Mapping[str, Value]) -> Value | None:
    """A sequence or optional value of tensors; None where one of them is not supported."""
    if names is None:
        return EmptyOptional("", _F32, (), items=[])
    if isinstance(names, str):
        return made.get(names)
    items = [made[name] for name in names if name in made]
    if len(items) < len(names):
        return None
    return Value("", items[0].dtype if items else _F32, (), items=items)


def results_of(name: str, value: Value) -> list[tuple[str, Value]]:
    """A result by its name; of a sequence each tensor by its own."""
    if value.items is None:
        return [(name, value)]
    if not value.items:
        raise UnsupportedNodeError("a sequence or an optional without a tensor is no result")
    return [(f"{name}.{number}", item) for number, item in enumerate(value.items)]


def element_of(type: TypeProto) -> TypeProto:
    """The type of the tensors of a sequence or an optional value; that of a tensor itself."""
    kind = type.WhichOneof("value")
    if kind == "optional_type":
        return element_of(type.optional_type.elem_type)
    return element_of(type.sequence_type.elem_type) if kind == "sequence_type" else type
