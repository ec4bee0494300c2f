"""Locations as LLVM debug information: the node that an instruction comes from.

Debuggers and profilers see a node of the model as an inlined function: a subprogram with its name,
whose code is inlined into a kernel. So `gdb`, which LLVM's linker notifies of code in memory, and
`addr2line -i` name both, and a reader of the IR finds the name by following `!dbg`:

    %x = fadd float %a, %b, !dbg !7
    !7 = !DILocation(line: 4, scope: !5, inlinedAt: !6)
    !5 = distinct !DISubprogram(name: "fc1", line: 4, ...)
    !6 = distinct !DILocation(line: 4, scope: !3)         ; in the kernel
    !3 = distinct !DISubprogram(name: "fused_dense_relu", ...)

An instruction of several nodes belongs to one such function, named after all of them. Lines are
those of the text that the program was compiled from, see `core.ir.printing.Listing`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from xdsl.dialects import llvm
from xdsl.dialects.builtin import FileLineColLoc, LocationAttr

from ...core.ir.printing import Listing
from ...core.ir.provenance import leaves, names_of

_MOST_NAMES = 8
_DWARF, _VERSION = 4, 3


def scope_name(nodes: Sequence[str]) -> str:
    """The name of the function that represents the nodes of an instruction."""
    shown = ", ".join(nodes[:_MOST_NAMES])
    rest = len(nodes) - _MOST_NAMES
    return f"{shown} and {rest} more" if rest > 0 else shown


def place(location: LocationAttr, source: Listing) -> tuple[str, int]:
    """The file and line of the first node of a location; line 0 if unknown."""
    for leaf in leaves(location):
        if isinstance(leaf, FileLineColLoc):
            return leaf.filename.data, leaf.line.data
        for node in names_of(leaf):
            if node in source.lines:
                return source.file, source.lines[node]
    return source.file, 0


class DebugInfo:
    """The debug information of a module.

    Args:
        module: the llvmlite module, to which debug information is added on first use.
        source: the lines of nodes.
    """

    def __init__(self, module: ir.Module, source: Listing) -> None:
        self._module: Any = module
        self._source = source
        self._files: dict[str, Any] = {}
        self._nodes: dict[tuple[str, ...], Any] = {}
        self._type = self._add("DISubroutineType", {"types": self._module.add_metadata([None])})
        self._unit = self._begin()

    def function(self, op: llvm.FuncOp, function: Any) -> Callable[[LocationAttr], Any]:
        """Describe a function; return a translation of its locations to debug locations."""
        scope = self._subprogram(op.sym_name.data, op.location)
        function.set_metadata("dbg", scope)
        line = place(op.location, self._source)[1]
        # Code without a node gets the function's scope, because a call must have a location.
        plain = self._location(0, scope)
        inlined = self._add("DILocation", {"line": line, "scope": scope}, True)
        # Keyed by identity: the operations of a function have few location objects, and hashing
        # the long location of a fused kernel costs more than creating its metadata again.
        made: dict[int, tuple[LocationAttr, Any]] = {}

        def at(location: LocationAttr) -> Any:
            found = made.get(id(location))
            if found is None:
                found = made[id(location)] = location, self._inside(location, plain, inlined)
            return found[1]

        return at

    def _inside(self, location: LocationAttr, plain: Any, inlined: Any) -> Any:
        nodes = names_of(location)
        if not nodes:
            return plain
        if nodes not in self._nodes:
            self._nodes[nodes] = self._subprogram(scope_name(nodes), location)
        return self._location(place(location, self._source)[1], self._nodes[nodes], inlined)

    def _location(self, line: int, scope: Any, inlined: Any = None) -> Any:
        operands = {"line": line, "scope": scope}
        return self._add("DILocation", operands | ({"inlinedAt": inlined} if inlined else {}))

    def _subprogram(self, name: str, location: LocationAttr) -> Any:
        file, line = place(location, self._source)
        operands = {
            "name": name,
            "scope": self._file(file),
            "file": self._file(file),
            "line": line,
            "scopeLine": line,
            "type": self._type,
            "unit": self._unit,
            "spFlags": ir.DIToken("DISPFlagDefinition"),
        }
        return self._add("DISubprogram", operands, True)

    def _begin(self) -> Any:
        """The compile unit, and the flags that debug information requires."""
        operands = {
            "language": ir.DIToken("DW_LANG_C"),
            "file": self._file(self._source.file),
            "producer": "stepwell",
            "isOptimized": True,
            "emissionKind": ir.DIToken("LineTablesOnly"),
        }
        unit = self._add("DICompileUnit", operands, True)
        word = ir.IntType(32)
        for behaviour, key, value in (
            (7, "Dwarf Version", _DWARF),
            (2, "Debug Info Version", _VERSION),
        ):
            flag = [word(behaviour), ir.MetaDataString(self._module, key), word(value)]
            self._module.add_named_metadata("llvm.module.flags", flag)
        self._module.add_named_metadata("llvm.dbg.cu", unit)
        return unit

    def _file(self, name: str) -> Any:
        if name not in self._files:
            self._files[name] = self._add("DIFile", {"filename": name, "directory": "."})
        return self._files[name]

    def _add(self, kind: str, operands: dict[str, Any], distinct: bool = False) -> Any:
        return self._module.add_debug_info(kind, operands, is_distinct=distinct)


class LineInfo(DebugInfo):
    """Debug information in which an operation is on a line of a text, and nothing is inlined.

    Its location is that line: `FileLineColLoc`.
    """

    def function(self, op: llvm.FuncOp, function: Any) -> Callable[[LocationAttr], Any]:
        """Describe a function; return a translation of its locations to debug locations."""
        scope = self._subprogram(op.sym_name.data, op.location)
        function.set_metadata("dbg", scope)

        def at(location: LocationAttr) -> Any:
            return self._location(place(location, self._source)[1], scope)

        return at
