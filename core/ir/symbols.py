"""Symbols: the names of functions and kernels, and their lookup in a fraction of xDSL's time.

xDSL's `SymbolTable.lookup_symbol` queries the traits of each operation of the table; in the
verifier of calls, that takes a tenth of the compile time of a large model.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection

from xdsl.dialects.builtin import StringAttr, SymbolRefAttr
from xdsl.ir import Operation
from xdsl.traits import SymbolOpInterface, SymbolTable


def symbol_of(op: Operation) -> str | None:
    """The name of a function, a kernel or another symbol; None for an operation without one."""
    name = op.properties.get("sym_name")
    return name.data if isinstance(name, StringAttr) else None


def free_symbol(name: str, taken: Collection[str]) -> str:
    """The name, with a number appended where it is taken: ``name_1``."""
    found = (f"{name}_{number}" if number else name for number in itertools.count())
    return next(symbol for symbol in found if symbol not in taken)


def find_symbol(near: Operation, name: str | StringAttr | SymbolRefAttr) -> Operation | None:
    """The operation that a name refers to in the nearest symbol table, `near` or one around it;
    None if there is none.

    Raises:
        ValueError: if there is no symbol table around it.
    """
    table: Operation | None = near
    while table is not None and not table.has_trait(SymbolTable):
        table = table.parent_op()
    if table is None:
        raise ValueError(f"{near.name} is in no symbol table")
    path = _path(name)
    found = _symbol_in(table, path[0])
    for part in path[1:]:
        if found is None or not found.has_trait(SymbolTable):
            return None
        found = _symbol_in(found, part)
    return found


def _path(name: str | StringAttr | SymbolRefAttr) -> tuple[str, ...]:
    if isinstance(name, str):
        return (name,)
    if isinstance(name, StringAttr):
        return (name.data,)
    return (name.root_reference.data, *(part.data for part in name.nested_references))


def _symbol_in(table: Operation, name: str) -> Operation | None:
    for op in table.regions[0].block.ops:
        given = op.properties.get("sym_name") or op.attributes.get("sym_name")
        named = isinstance(given, StringAttr) and given.data == name
        if named and op.get_trait(SymbolOpInterface) is not None:
            return op
    return None
