"""The digest of a module: equal for modules that are the same in everything that can be observed.

It covers the names of operations and values, operands, types, attributes, regions and locations,
because decisions and messages have these too. Text would not do: printing rounds some floats.
"""

from __future__ import annotations

import functools
import hashlib
import struct
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, TypeAlias, cast

import numpy as np
from xdsl.ir import Attribute, Block, Data, Operation, ParametrizedAttribute, Region, SSAValue

from .packages import modules_of_plugins

Facts: TypeAlias = tuple[Any, ...]
"""A value as nested tuples of texts, numbers and bytes, with the names of types."""

_OWN = frozenset((__name__.partition(".")[0], "xdsl"))
"""The packages whose classes are the same for the same sources of the compiler."""


class OpaqueError(Exception):
    """Something whose contents are not known completely, so that it has no digest."""


def structure_digest(op: Operation, *, named: bool = True, without: Collection[str] = ()) -> str:
    """The digest of an operation and everything in it.

    Args:
        op: the operation.
        named: whether locations and the names of values count.
        without: names of properties and attributes of the operation that do not count.

    Raises:
        OpaqueError: if it contains something of another package, or of an unknown kind.
    """
    return _Structure(op, named, without).digest()


class _Structure:
    """An operation as a list of facts; attributes are numbered by their contents."""

    def __init__(self, op: Operation, named: bool, without: Collection[str]) -> None:
        self._root, self._named, self._without = op, named, without
        self._attributes: dict[Facts, int] = {}
        self._known: dict[int, tuple[Attribute, int]] = {}
        self._values: dict[SSAValue, int] = {}
        self._blocks: dict[Block, int] = {}
        for inner in op.walk():
            self._number(inner)
        self._facts = [*self._of_operation(op)]

    def digest(self) -> str:
        """The digest of all facts."""
        found = (list(self._attributes), self._facts)
        return hashlib.sha256(repr(found).encode("utf-8", "surrogatepass")).hexdigest()

    def _number(self, op: Operation) -> None:
        """Number the values that an operation defines, and its blocks."""
        for result in op.results:
            self._values[result] = len(self._values)
        for region in op.regions:
            for block in region.blocks:
                self._blocks[block] = len(self._blocks)
                for argument in block.args:
                    self._values[argument] = len(self._values)

    def _of_operation(self, op: Operation) -> Iterator[Facts]:
        yield (
            op.name,
            _class_name(type(op)),
            tuple([self._values.get(operand, -1) for operand in op.operands]),
            tuple([self._of_value(result) for result in op.results]),
            self._of_mapping(op.properties, op is self._root),
            self._of_mapping(op.attributes, op is self._root),
            tuple([self._blocks.get(block, -1) for block in op.successors]),
            self._of(op.location) if self._named else None,
            len(op.regions),
        )
        for region in op.regions:
            yield from self._of_region(region)

    def _of_region(self, region: Region) -> Iterator[Facts]:
        yield ("region", len(region.blocks))
        for block in region.blocks:
            located = block.args if self._named else ()
            places = tuple([self._of(argument.location) for argument in located])
            yield ("block", tuple([self._of_value(one) for one in block.args]), places)
            for op in block.ops:
                yield from self._of_operation(op)
            yield ("end",)

    def _of_value(self, value: SSAValue) -> Facts:
        return self._of(value.type), value.name_hint if self._named else None

    def _of_mapping(self, entries: Mapping[str, Attribute], is_root: bool) -> Facts:
        kept = entries.items()
        if is_root:
            kept = [(name, found) for name, found in kept if name not in self._without]
        return tuple([(name, self._of(attribute)) for name, attribute in kept])

    def _of(self, attribute: Attribute) -> int:
        """The number of an attribute."""
        # Found by identity first, for which it is kept alive: most are used many times.
        found = self._known.get(id(attribute))
        if found is None:
            facts = self._of_attribute(attribute)
            found = attribute, self._attributes.setdefault(facts, len(self._attributes))
            self._known[id(attribute)] = found
        return found[1]

    def _of_attribute(self, attribute: Attribute) -> Facts:
        name = _class_name(type(attribute))
        # Classes of attributes are abstract, for which `isinstance` would search all of them.
        if ParametrizedAttribute in type(attribute).__mro__:
            return (name, *map(self._of, cast(ParametrizedAttribute, attribute).parameters))
        return name, facts_of(cast(Data[Any], attribute).data, self._of)


def facts_of(value: Any, of_attribute: Callable[[Attribute], int] | None = None) -> Facts:
    """A value with its type, such that only an equal one has the same facts.

    Args:
        value: plain data, or a dataclass, a sequence, a set or a mapping of such.
        of_attribute: returns the number of an attribute in it.

    Raises:
        OpaqueError: if something in it is of another kind.
    """
    if value is None or type(value) in (bool, int, str, bytes):
        return type(value).__name__, value
    if isinstance(value, Enum):
        return _class_name(type(value)), value.name
    if type(value) is float:
        return "float", struct.pack(">d", value)
    if type(value) is complex:
        return "complex", struct.pack(">dd", value.real, value.imag)
    if isinstance(value, np.generic) and not value.dtype.hasobject:
        return "scalar", value.dtype.name, value.tobytes()
    if Attribute in type(value).__mro__ and of_attribute is not None:
        return "attribute", of_attribute(cast(Attribute, value))
    return _compound(value, lambda part: facts_of(part, of_attribute))


def _compound(value: Any, of: Callable[[Any], Facts]) -> Facts:
    if type(value) in (tuple, list):
        return (type(value).__name__, *map(of, value))
    if isinstance(value, (set, frozenset)):
        return ("set", *sorted(map(of, value), key=repr))
    if is_dataclass(value) and not isinstance(value, type):
        parts = [of(getattr(value, field.name)) for field in fields(value)]
        return (_class_name(type(value)), *parts)
    if isinstance(value, Mapping):
        return ("mapping", *[(of(key), of(part)) for key, part in value.items()])
    raise OpaqueError(type(value).__qualname__)


@functools.cache
def _class_name(kind: type) -> str:
    """The full name of a class of xDSL's, of ours, or of a plug-in.

    Raises:
        OpaqueError: if it is of another package, or the name means something else.
    """
    found: Any = sys.modules.get(kind.__module__)
    for part in kind.__qualname__.split("."):
        found = getattr(found, part, None)
    package = kind.__module__.partition(".")[0]
    if found is not kind or (package not in _OWN and package not in modules_of_plugins()):
        raise OpaqueError(kind.__qualname__)
    return f"{kind.__module__}:{kind.__qualname__}"
