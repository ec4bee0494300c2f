"""The `graph` dialect: a model as pure operators on dense and sparse tensors.

Why upstream is not enough: `linalg` and `tosa` have no operator-level sparse algebra, no
symbolic sizes with names, and no operator that carries its shape rule, its NumPy meaning and
its value at an index. Frontends lower into it; `convert-graph-to-loop` turns each primitive
function into a kernel of the `loop` dialect, and `convert-graph-to-rt` the main function into
calls on buffers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from xdsl.ir import Attribute, Dialect, Operation

from . import ops

DefinedT = TypeVar("DefinedT", Operation, Attribute)


def _definitions(kind: type[DefinedT], values: Iterable[object]) -> list[type[DefinedT]]:
    """The classes of the dialect among values."""
    # `issubclass` of an abstract class would look through all of its subclasses.
    found = (value for value in values if isinstance(value, type) and kind in value.__mro__)
    return [value for value in found if getattr(value, "name", "").startswith("graph.")]


def _attributes() -> list[type[Attribute]]:
    """The attributes that the files of operators define or import."""
    values = (value for module in ops.modules() for value in vars(module).values())
    return sorted({*_definitions(Attribute, values)}, key=lambda attribute: attribute.name)


Graph = Dialect(
    "graph",
    _definitions(Operation, ops.operators().values()),
    _attributes(),
)
