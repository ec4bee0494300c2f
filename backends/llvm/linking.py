"""Parts of the run time in files of LLVM IR (`.ll`), which are linked with generated code.

Each file declares all functions that it does not define, and so is a module that LLVM's tools read.
Values that only Python knows (layouts of objects, constants of Python modules) come from small
generated functions, which are inlined.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir

PTR = ir.PointerType()
_BYTE, _WORD = ir.IntType(8), ir.IntType(64)

FRAMES = Path(__file__).with_name("frames.ll")
"""The list of the frames of a program."""


class Definitions:
    """Functions that the files declare and that are inlined: constants, entries, fields."""

    def __init__(self) -> None:
        self.module = ir.Module()

    def number(self, name: str, value: int, bits: int = 64) -> None:
        """A function without arguments that returns a number."""
        kind = ir.IntType(bits)
        builder, _ = self.function(name, kind)
        builder.ret(ir.Constant(kind, value))

    def table(
        self, name: str, entries: Sequence[str], fields: Mapping[str, str] | None = None
    ) -> None:
        """A table, to be filled in when the code is loaded, and a function for each entry.

        Args:
            name: the name of the table.
            entries: the names of functions without arguments, which return addresses.
            fields: for entries that are offsets, the name of a function that loads an address from
                there after an address.
        """
        kind = ir.ArrayType(_WORD, len(entries))
        table: Any = ir.GlobalVariable(self.module, kind, name)
        table.initializer = ir.Constant(kind, None)
        for number, entry in enumerate(entries):
            field = (fields or {}).get(entry)
            builder, given = self.function(field or entry, PTR, *[PTR] * bool(field))
            value = builder.load(_at(builder, table, 8 * number), typ=_WORD if field else PTR)
            if field:
                value = builder.load(builder.gep(*given, [value], source_etype=_BYTE), typ=PTR)
            builder.ret(value)

    def place(self, name: str, offset: int) -> None:
        """A function that adds an offset in bytes to an address."""
        builder, (base,) = self.function(name, PTR, PTR)
        builder.ret(_at(builder, base, offset))

    def field(self, name: str, offset: int, kind: ir.Type = _WORD) -> None:
        """A function that loads from an offset in bytes after an address."""
        builder, (base,) = self.function(name, kind, PTR)
        builder.ret(builder.load(_at(builder, base, offset), typ=kind))

    def function(self, name: str, result: ir.Type, *arguments: ir.Type) -> tuple[Any, Any]:
        """Create a function with an empty body; return its builder and its arguments."""
        function = ir.Function(self.module, ir.FunctionType(result, arguments), name)
        function.attributes.add("alwaysinline")
        function.attributes.add("nounwind")
        return ir.IRBuilder(function.append_basic_block()), function.args


def _at(builder: ir.IRBuilder, base: Any, offset: int) -> Any:
    return builder.gep(base, [ir.Constant(_WORD, offset)], source_etype=_BYTE)


def linked(
    files: Iterable[Path],
    definitions: Definitions,
    exported: Iterable[str],
    target_machine: Any,
    others: Iterable[Any] = (),
    cpu: str | None = None,
) -> Any:
    """One module for a target, from files, definitions and other modules, which it consumes.

    Only exported symbols are visible. Files and definitions are compiled for a processor `cpu`,
    by LLVM's name, if there is one.
    """
    whole = parsed_for(cpu, str(definitions.module))
    for file in files:
        whole.link_in(parsed_for(cpu, file.read_text()))
    for other in others:
        whole.link_in(other)
    visible = set(exported)
    for function in whole.functions:
        if not function.is_declaration and function.name not in visible:
            function.linkage = llvm.Linkage.internal
    for variable in whole.global_variables:
        if not variable.is_declaration and variable.name not in visible:
            variable.linkage = llvm.Linkage.internal
    whole.triple = target_machine.triple
    whole.data_layout = str(target_machine.target_data)
    whole.verify()
    return whole


def parsed_for(cpu: str | None, text: str) -> Any:
    """The module of a text, whose functions are compiled for a processor instead of that of the
    target machine if there is one."""
    return llvm.parse_assembly(text if cpu is None else compiled_for(text, cpu))


def compiled_for(text: str, cpu: str, features: str = "") -> str:
    """LLVM IR whose functions are compiled for a processor, and features beside its own."""
    attributes = f'"target-cpu"="{cpu}" "target-features"="{features}"'
    return re.sub(r"^(define .*?)(\s*\{)$", rf"\1 {attributes}\2", text, flags=re.MULTILINE)
