"""The order in which a call gives the arguments of a program: by position, and by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .errors import InputError, explain
from .specs import ValueSpec


def in_order(
    specs: Sequence[ValueSpec], inputs: Sequence[object], named: Mapping[str, object]
) -> list[object]:
    """The arguments of a call in the order of the inputs: first those given by position.

    Raises:
        InputError: if a name is unknown, an input is given twice, or one is missing.
    """
    names = [spec.name for spec in specs]
    for name in named:
        if name not in names:
            expected = ", ".join(names) or "none"
            raise InputError(explain("call", "unknown input", expected=expected, got=f'"{name}"'))
        if name in names[: len(inputs)]:
            raise InputError(explain("call", f'input "{name}" is given by position and by name'))
    missing = [name for name in names[len(inputs) :] if name not in named]
    if missing:
        given = ", ".join([*names[: len(inputs)], *named]) or "none"
        raise InputError(explain("call", f'input "{missing[0]}" is missing', got=given))
    return [*inputs, *(named[name] for name in names[len(inputs) :])]
