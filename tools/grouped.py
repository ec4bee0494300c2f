"""Commands that take options together, as one dataclass."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Any, get_type_hints


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command an option for each field of those of its parameters that are dataclasses."""
    own = inspect.signature(command, eval_str=True)
    groups = {
        p.name: p.annotation
        for p in own.parameters.values()
        if isinstance(p.annotation, type) and dataclasses.is_dataclass(p.annotation)
    }
    parameters: list[inspect.Parameter] = []
    for parameter in own.parameters.values():
        parameters += _fields(parameter.annotation) if parameter.name in groups else [parameter]

    def run(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{p.name: given.pop(p.name) for p in _fields(group)})
        command(**given)

    return with_parameters(functools.wraps(command)(run), parameters)


def with_parameters(
    command: Callable[..., None], parameters: list[inspect.Parameter]
) -> Callable[..., None]:
    """Declare the parameters that a command takes, all of them by name."""
    declared = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in parameters]
    command.__signature__ = inspect.Signature(declared)  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in declared}
    return command


def _fields(group: type[Any]) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=field.default,
            annotation=hints[field.name],
        )
        for field in dataclasses.fields(group)
    ]
