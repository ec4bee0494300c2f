"""Values as plain data that is equal for equal values only, of which keys are digests."""

from __future__ import annotations

import functools
import struct
import sys
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, TypeAlias

import numpy as np

from .packages import modules_of_plugins

Facts: TypeAlias = tuple[Any, ...]
"""A value as nested tuples of texts, numbers and bytes, with the names of types."""

_OWN = frozenset((__name__.partition(".")[0], "xdsl"))
"""The packages whose classes are the same for the same sources of the compiler."""


class OpaqueError(Exception):
    """Something whose contents are not known completely, so that it has no digest."""


def facts_of(value: Any, of_special: Callable[[Any], Facts | None] | None = None) -> Facts:
    """A value with its type, such that only an equal one has the same facts.

    Args:
        value: plain data, or a dataclass, a sequence, a set or a mapping of such.
        of_special: returns the facts of other values in it; None for a value that is such data.

    Raises:
        OpaqueError: if something in it is of another kind.
    """
    if value is None or type(value) in (bool, int, str, bytes):
        return type(value).__name__, value
    if isinstance(value, Enum):
        return class_name(type(value)), value.name
    if type(value) is float:
        return "float", struct.pack(">d", value)
    if type(value) is complex:
        return "complex", struct.pack(">dd", value.real, value.imag)
    if isinstance(value, np.generic) and not value.dtype.hasobject:
        return "scalar", value.dtype.name, value.tobytes()
    if of_special is not None and (found := of_special(value)) is not None:
        return found
    return _compound(value, lambda part: facts_of(part, of_special))


def _compound(value: Any, of: Callable[[Any], Facts]) -> Facts:
    if type(value) in (tuple, list):
        return (type(value).__name__, *map(of, value))
    if isinstance(value, (set, frozenset)):
        return ("set", *sorted(map(of, value), key=repr))
    if is_dataclass(value) and not isinstance(value, type):
        parts = [of(getattr(value, field.name)) for field in fields(value)]
        return (class_name(type(value)), *parts)
    if isinstance(value, Mapping):
        return ("mapping", *[(of(key), of(part)) for key, part in value.items()])
    raise OpaqueError(type(value).__qualname__)


@functools.cache
def class_name(kind: type) -> str:
    """The full name of a class of xDSL's, of ours, or of a plug-in.

    Raises:
        OpaqueError: if it is of another package, or the name means something else.
    """
    found: Any = sys.modules.get(kind.__module__)
    for part in kind.__qualname__.split("."):
        found = getattr(found, part, None)
    if found is not kind or not is_known(kind.__module__):
        raise OpaqueError(kind.__qualname__)
    return f"{kind.__module__}:{kind.__qualname__}"


def is_known(module: str) -> bool:
    """Whether what a Python module defines is the same for the same digest of the compiler."""
    package = module.partition(".")[0]
    return package in _OWN or package in modules_of_plugins()
