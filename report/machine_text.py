"""LLVM IR and assembly whose lines are marked with what they come from.

The operations of stage `llvm` are lines of a text, which LLVM carries to its instructions as debug
locations, and to the assembly as `.loc`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects import llvm
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, ModuleOp, StringAttr

from ..backends.llvm import jit
from ..backends.llvm.debug import LineInfo
from ..backends.llvm.translate import translate
from ..core.ir.printing import Listing
from ..core.target import Target
from .marking import Marks

_FILE = "llvm.mlir"
_DEFINE = re.compile(r'^define .*?@"?([^"(]+)"?\(')
_DEBUG = re.compile(r",? !dbg !(\d+)")
_LOCATION = re.compile(r"^!(\d+) = (?:distinct )?!DILocation\(.*?\bline: (\d+)")
_LOC = re.compile(r"^\s+\.loc\s+\d+\s+(\d+)")
_LABEL = re.compile(r'^"?([^\s":]+)"?:')
_END = re.compile(r"^\.?Lfunc_end")
_HIDDEN = re.compile(r"^(?:\s+\.|\.?Ltmp|\.?Lfunc_begin|\s*[#;/]+ (?:%bb|@|--))")
"""Lines of assembly that are no instructions and no targets of jumps."""


@dataclass
class MachineText:
    """The lines of a function, and the number of the mark of each."""

    name: str
    lines: list[str]
    marks: list[int]

    def add(self, line: str, mark: int) -> None:
        """Append a line."""
        self.lines.append(line)
        self.marks.append(mark)


def machine_texts(
    module: ModuleOp, target: Target, marks: Marks
) -> tuple[list[MachineText], list[MachineText]]:
    """The LLVM IR from which machine code is generated, and the assembly, function by function.

    The locations of the module, of stage `llvm`, are replaced.

    Raises:
        CompileError: if the module cannot be translated.
    """
    known = [0]
    for number, op in enumerate(module.walk(), 1):
        known.append(marks.number(marks.of(op)))
        op.location = FileLineColLoc(StringAttr(_FILE), IntAttr(number), IntAttr(0))
    names = {op.sym_name.data for op in module.ops if isinstance(op, llvm.FuncOp)}
    effort = jit.effort_of(module)
    source = str(translate(module, target, Listing(_FILE, {}), LineInfo))
    ir = jit.optimized_ir(source, target, effort)
    assembly = jit.assembly(source, target, effort)
    return list(_of_ir(ir, known)), list(_of_assembly(assembly, known, names))


def _of_ir(text: str, marks: Sequence[int]) -> Iterator[MachineText]:
    """The functions of LLVM IR, without their debug locations."""
    lines = text.splitlines()
    found = [match for match in map(_LOCATION.match, lines) if match is not None]
    places = {match[1]: int(match[2]) for match in found}
    function: MachineText | None = None
    for line in lines:
        if (begun := _DEFINE.match(line)) is not None:
            function = MachineText(begun[1], [], [])
        if function is None:
            continue
        debug = None if begun is not None else _DEBUG.search(line)
        place = 0 if debug is None else places.get(debug[1], 0)
        function.add(_DEBUG.sub("", line), marks[place])
        if line == "}":
            yield function
            function = None


def _of_assembly(text: str, marks: Sequence[int], names: Collection[str]) -> Iterator[MachineText]:
    """The functions of assembly: their instructions and the targets of jumps."""
    function: MachineText | None = None
    place = 0
    for line in text.splitlines():
        label = _LABEL.match(line)
        # Mach-O puts an underscore before names.
        name = (
            None
            if label is None
            else next((n for n in (label[1], label[1].removeprefix("_")) if n in names), None)
        )
        if name is not None:
            function, place = MachineText(name, [f"{name}:"], [0]), 0
        elif function is None:
            continue
        elif _END.match(line):
            yield function
            function = None
        elif (at := _LOC.match(line)) is not None:
            place = int(at[1])
        elif line.strip() and not _HIDDEN.match(line):
            function.add(line.expandtabs(8), 0 if label is not None else marks[place])
