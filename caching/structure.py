"""The digest of a module: equal for modules that are the same in everything that can be observed.

It covers the names of operations and values, operands, types, attributes, regions and locations,
because decisions and messages have these too. Text would not do: printing rounds some floats.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping
from typing import Any, cast

import numpy as np
from xdsl.ir import Attribute, Block, Data, Operation, ParametrizedAttribute, Region, SSAValue

from ..core.files.digests import bytes_of, digests
from ..core.ir.module import Module
from ..core.ir.weights import WeightStore
from .facts import Facts, OpaqueError, class_name, facts_of


def module_digest(module: Module) -> str:
    """The digest of a module with its decisions and all elements of its weights.

    Raises:
        OpaqueError: as `structure_digest`; also for arrays of objects.
    """
    decisions, weights = facts_of(module.decisions), weights_facts(module.weights)
    found = structure_digest(module.op), decisions, weights
    return hashlib.sha256(repr(found).encode("utf-8", "surrogatepass")).hexdigest()


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
            class_name(type(op)),
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
        name = class_name(type(attribute))
        # Classes of attributes are abstract, for which `isinstance` would search all of them.
        if ParametrizedAttribute in type(attribute).__mro__:
            return (name, *map(self._of, cast(ParametrizedAttribute, attribute).parameters))
        return name, facts_of(cast(Data[Any], attribute).data, self._of_nested)

    def _of_nested(self, value: Any) -> Facts | None:
        """The facts of an attribute in the data of another one; None for other values."""
        if Attribute in type(value).__mro__:
            return "attribute", self._of(value)
        return None


def weights_facts(weights: WeightStore) -> Facts:
    """The names, the types and the elements of all arrays, in the order of the store."""
    kinds: list[Facts] = []
    parts: list[np.ndarray] = []
    for name in weights:
        array = weights[name]
        dense = isinstance(array, np.ndarray)
        own = [array] if dense else [array.indptr, array.indices, array.data]
        if any(part.dtype.hasobject for part in own):
            raise OpaqueError("an array of objects")
        types = tuple((part.dtype.name, part.dtype.str, part.shape) for part in own)
        kinds.append((name, type(array).__name__ if not dense else "", array.shape, types))
        parts += own
    return tuple(kinds), tuple(weights.names.items()), tuple(digests([*map(bytes_of, parts)]))
