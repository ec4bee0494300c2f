"""Arguments in dictionaries and sequences, as models take them: `model(x_dict, edge_index_dict)`.

The inputs of a program are arrays; those that are parts of an argument of the model know their
place in it, see `ValueSpec`. A call takes either form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from ..errors import InputError, explain
from .specs import Key, ValueSpec

Parts: TypeAlias = "dict[Key, int | Parts]"
"""What an argument consists of: the number of an input for each key, or parts again."""


def flattened(
    specs: Sequence[ValueSpec], inputs: Sequence[object], named: Mapping[str, object] = {}
) -> list[object] | None:
    """The arguments of a call in the order of the inputs; None where each is one array.

    Arguments by position come in the order of the model, but a dictionary is for the first argument
    that has a key of it: features may come before the graph, or behind it.

    Raises:
        InputError: if arguments or keys are missing, unknown, or given twice.
    """
    if not any(spec.path for spec in specs):
        return None
    model = _parts(specs)
    if len(inputs) == 1 and not named and isinstance(inputs[0], Mapping):
        keys = set(inputs[0])
        if keys <= {spec.name for spec in specs}:
            return None
        if keys <= model.keys():
            inputs, named = (), inputs[0]
    if len(inputs) + len(named) == len(specs) != len(model):
        return None
    # The argument of the model that each argument by position is.
    free, given = list(model), dict[Key, object]()
    for argument in inputs:
        if not free:
            expected = f"at most {len(model)} ({', '.join(map(str, model))})"
            raise _error("wrong number of arguments", expected, len(inputs))
        given_keys = argument.keys() if isinstance(argument, Mapping) else ()
        fits = (
            chosen
            for chosen in free
            if isinstance(model[chosen], dict) and model[chosen].keys() & given_keys
        )
        chosen = next(fits, free[0])
        free.remove(chosen)
        given[chosen] = argument
    nested = {name for name, parts in model.items() if isinstance(parts, dict)}
    if not any(_is_container(given[name]) for name in nested & given.keys()) and not (
        nested & named.keys()
    ):
        return None
    for name, value in named.items():
        if name not in model:
            raise _error("unknown argument", ", ".join(map(str, model)), f'"{name}"')
        if name in given:
            raise _error(f'argument "{name}" is given by position and by name')
        given[name] = value
    found = dict[int, object]()
    for name, parts in model.items():
        if name not in given:
            raise _error(f'argument "{name}" is missing', got=_listed(given) or "none")
        if isinstance(parts, dict):
            _read(parts, given[name], f'argument "{name}"', found)
        else:
            found[parts] = given[name]
    return [found[number] for number in range(len(specs))]


def _parts(specs: Sequence[ValueSpec]) -> dict[Key, Any]:
    """The arguments of the model, in order."""
    model: Parts = {}
    for number, spec in enumerate(specs):
        *around, last = spec.path or (spec.name,)
        parts: Any = model
        for key in around:
            parts = parts.setdefault(key, {})
        parts[last] = number
    return model


def _read(parts: Mapping[Key, Any], value: object, where: str, found: dict[int, object]) -> None:
    """Collect the inputs, by their numbers, from an argument or a part of one."""
    if not _is_container(value):
        fact, expected = f"{where} is not a dictionary or a sequence", f"parts {_listed(parts)}"
        raise _error(fact, expected, type(value).__name__)
    items = value.items() if isinstance(value, Mapping) else enumerate(value)  # type: ignore[arg-type]
    given: dict[Any, object] = dict(items)
    unknown = [key for key in given if key not in parts]
    missing = [key for key in parts if key not in given]
    if unknown:
        raise _error(f"{where} has an unknown part", _listed(parts), _shown(unknown[0]))
    if missing:
        raise _error(f"{where} lacks {_shown(missing[0])}", None, _listed(given) or "nothing")
    for key, inner in parts.items():
        if isinstance(inner, dict):
            _read(inner, given[key], f"argument {_shown(key)}", found)
        else:
            found[inner] = given[key]


def _is_container(value: object) -> bool:
    return isinstance(value, (Mapping, list, tuple))


def _listed(keys: Mapping[Any, object]) -> str:
    return ", ".join(map(_shown, keys))


def _shown(key: object) -> str:
    return f'"{key}"' if isinstance(key, str) else str(key)


def _error(fact: str, expected: object = None, got: object = None) -> InputError:
    return InputError(explain("call", fact, expected=expected, got=got))
