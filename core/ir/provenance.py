"""Where an operation comes from: names of model nodes, carried as locations.

A frontend gives each operation the location of its node (`loc("fc1")`). An operation made
from several others has their fused location, each name once and in order. One of the body of a
composite operator is located as an inlined call is, at the operator:
`loc(callsite("graph.softmax" at "probabilities"))`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

from xdsl.dialects.builtin import (
    UNKNOWN_LOC,
    ArrayAttr,
    CallSiteLoc,
    FileLineColLoc,
    FusedLoc,
    IntAttr,
    LocationAttr,
    NameLoc,
    NoneAttr,
    StringAttr,
    UnknownLoc,
)
from xdsl.ir import Attribute, BlockArgument, Operation


def named(name: str) -> NameLoc:
    """The location of the model node called `name`."""
    return NameLoc(StringAttr(name), NoneAttr())


def leaves(location: Attribute) -> Sequence[LocationAttr]:
    """The known locations that a location consists of."""
    # Attributes derive from an ABC, for which isinstance is slow.
    if type(location) is FusedLoc:
        parts = cast(ArrayAttr[Attribute], location.locations).data
        return [leaf for part in parts for leaf in leaves(part)]
    if type(location) is CallSiteLoc:
        return leaves(location.caller)
    return () if type(location) is UnknownLoc else (cast(LocationAttr, location),)


def names(op: Operation) -> tuple[str, ...]:
    """The names of the model nodes that `op` computes; a source line as ``file:line``."""
    return names_of(op.location)


def names_of(location: LocationAttr) -> tuple[str, ...]:
    """The names of the model nodes in a location; a source line as ``file:line``."""
    result: list[str] = []
    for leaf in leaves(location):
        if type(leaf) is NameLoc:
            result.append(leaf.desc.data)
        elif type(leaf) is FileLineColLoc:
            result.append(f"{leaf.filename.data}:{leaf.line.data}")
    return tuple(dict.fromkeys(result))


def inlined(callee: str, location: LocationAttr) -> LocationAttr:
    """The location of what is inlined for an operator, which keeps its own if it was inlined."""
    return location if inlined_for(location) else CallSiteLoc(named(callee), location)


def inlined_for(location: LocationAttr) -> str | None:
    """The operator that an operation with such a location was inlined for."""
    if type(location) is not CallSiteLoc:
        return None
    return cast(NameLoc, location.callee).desc.data


def placed(location: LocationAttr, file: str, line: int, column: int) -> LocationAttr:
    """A location with the operation's position in a file; an existing one is kept."""
    place = FileLineColLoc(StringAttr(file), IntAttr(line), IntAttr(column))
    if isinstance(location, UnknownLoc):
        return place
    if isinstance(location, NameLoc) and isinstance(location.location, UnknownLoc | NoneAttr):
        return NameLoc(location.desc, place)
    return location


def places(op: Operation) -> tuple[str, ...]:
    """The positions in files that `op` comes from, as ``file:line:column``."""
    result: list[str] = []
    for leaf in leaves(op.location):
        inner = leaf.location if isinstance(leaf, NameLoc) else leaf
        if isinstance(inner, FileLineColLoc):
            result.append(f"{inner.filename.data}:{inner.line.data}:{inner.column.data}")
    return tuple(dict.fromkeys(result))


def origin(op: Operation) -> str | None:
    """The model nodes of `op` as in an error message, such as ``node "fc1"``; None if none."""
    return origin_of([op])


def origin_of(ops: Iterable[Operation]) -> str | None:
    """The model nodes of some operations, each once, such as ``nodes "fc1", "fc2"``."""
    found = list(dict.fromkeys(name for op in ops for name in names(op)))
    if not found:
        return None
    noun = "node" if len(found) == 1 else "nodes"
    return f"{noun} " + ", ".join(f'"{name}"' for name in found)


def fuse(ops: Iterable[Operation | BlockArgument]) -> LocationAttr:
    """The location of an operation that replaces all of `ops`, which may include arguments."""
    locations = list(dict.fromkeys(op.location for op in ops))
    if len(locations) == 1:
        return locations[0]
    parts = list(dict.fromkeys(leaf for location in locations for leaf in leaves(location)))
    if not parts:
        return UNKNOWN_LOC
    if len(parts) == 1:
        return parts[0]
    return FusedLoc(ArrayAttr(parts), NoneAttr())


def locate(op: Operation, location: LocationAttr) -> None:
    """Set the location of an operation, and of those in it, where unknown."""
    for inner in op.walk():
        if isinstance(inner.location, UnknownLoc):
            inner.location = location
