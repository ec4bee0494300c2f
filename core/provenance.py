"""Where an operation comes from: names of model nodes, carried as locations.

A frontend gives each operation the location of its node (`loc("fc1")`). An operation made
from several others has their fused location, each name once and in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import cast

from xdsl.dialects.builtin import (
    UNKNOWN_LOC,
    ArrayAttr,
    FileLineColLoc,
    FusedLoc,
    LocationAttr,
    NameLoc,
    NoneAttr,
    StringAttr,
    UnknownLoc,
)
from xdsl.ir import Attribute, Operation


def named(name: str) -> NameLoc:
    """The location of the model node called `name`."""
    return NameLoc(StringAttr(name), NoneAttr())


def _leaves(location: Attribute) -> Iterator[LocationAttr]:
    if isinstance(location, FusedLoc):
        for part in cast(ArrayAttr[Attribute], location.locations):
            yield from _leaves(part)
    elif not isinstance(location, UnknownLoc):
        yield cast(LocationAttr, location)


def names(op: Operation) -> tuple[str, ...]:
    """The names of the model nodes that `op` stands for; a source line as ``file:line``."""
    result: list[str] = []
    for leaf in _leaves(op.location):
        if isinstance(leaf, NameLoc):
            result.append(leaf.desc.data)
        elif isinstance(leaf, FileLineColLoc):
            result.append(f"{leaf.filename.data}:{leaf.line.data}")
    return tuple(dict.fromkeys(result))


def origin(op: Operation) -> str | None:
    """The names of `op` as an error message gives them, or None: ``node "fc1"``."""
    found = names(op)
    if not found:
        return None
    noun = "node" if len(found) == 1 else "nodes"
    return f"{noun} " + ", ".join(f'"{name}"' for name in found)


def fuse(ops: Iterable[Operation]) -> LocationAttr:
    """The location of an operation that stands for all of `ops`."""
    leaves = list(dict.fromkeys(leaf for op in ops for leaf in _leaves(op.location)))
    if not leaves:
        return UNKNOWN_LOC
    if len(leaves) == 1:
        return leaves[0]
    return FusedLoc(ArrayAttr(leaves), NoneAttr())
