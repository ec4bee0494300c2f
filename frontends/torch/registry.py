"""Conversions by overload of an operator of torch: one small function each.

    @converts("aten._softmax.default")
    def softmax(node: Node, x: Value, dim: int, half_to_float: bool) -> Value: ...

A function has the parameters of the operator's schema, with its defaults: tensors and sizes come as
values, everything else as in the exported program. Where memory is laid out (device, layout,
memory_format, pin_memory) has no meaning here and is left out. The files of the folder `ops`
one are imported when a model is first read; other packages register operators of their own
libraries with the same decorator.
"""

from __future__ import annotations

import difflib
import functools
import importlib
import pkgutil
from collections.abc import Callable
from typing import Any

from ...core.plugins import load_importers
from . import ops

Conversion = Callable[..., Any]
"""From a node and its arguments to a `Value`, or to a list with one for each result."""

_CONVERSIONS: dict[str, Conversion] = {}


def converts(*targets: str) -> Callable[[Conversion], Conversion]:
    """Register the conversion of operators, such as ``aten.relu.default``."""

    def register(conversion: Conversion) -> Conversion:
        _CONVERSIONS.update(dict.fromkeys(targets, conversion))
        return conversion

    return register


@functools.cache
def load_conversions() -> None:
    """Import the files that register conversions."""
    for file in sorted(file.name for file in pkgutil.iter_modules(ops.__path__)):
        importlib.import_module(f"{ops.__name__}.{file}")
    load_importers("torch")


def conversion(target: str) -> Conversion | None:
    """The conversion of an operator, or None."""
    return _CONVERSIONS.get(target)


def supported() -> list[str]:
    """The operators that can be converted, sorted."""
    return sorted(_CONVERSIONS)


def closest(target: str) -> str | None:
    """The supported operator whose name is closest."""
    names: dict[str, str] = {}
    for known in supported():
        names.setdefault(known.split(".")[1], known)
    name = target.split(".")[1] if target.count(".") else target
    near = difflib.get_close_matches(name, names, 1)
    return names[near[0]] if near else None
