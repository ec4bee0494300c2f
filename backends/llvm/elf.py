"""Object files (ELF, x86-64) to images: sections are laid out, and references inside resolved.

The object is position independent code, or has 64 bits for each address, as LLVM compiles code for
its own process. Outside functions are called through stubs, which jump to the addresses in a table,
as the procedure linkage table of a shared library does, or by an address in the code.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from io import BytesIO
from typing import Any

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.enums import ENUM_RELOC_TYPE_x64 as TYPES
from elftools.elf.relocation import RelocationSection
from elftools.elf.sections import Section, Symbol, SymbolTableSection

from ...core.errors import CompileError, explain
from .images import PAGE, Image

_WRITABLE, _ALLOCATED, _THREAD_LOCAL = 0x1, 0x2, 0x400
_UNWINDING = ".eh_frame"
"""No exception propagates through compiled code."""
_CONSTANT_AT_LAST = ".data.rel.ro"
"""What begins the names of constants with addresses in them."""
_JUMP = b"\xff\x25"
"""`jmp *offset(%rip)`, before the 32-bit offset."""
_WORD = _STUB = 8
"""The bytes of an address, and of a stub: the jump, and padding."""

_CALL = TYPES["R_X86_64_PLT32"]
_NEAR = {_CALL: "<i", TYPES["R_X86_64_PC32"]: "<i", TYPES["R_X86_64_PC64"]: "<q"}
"""References relative to their own place, and their formats."""
_BY_TABLE = {TYPES["R_X86_64_GOTPCREL"], 41, 42}
"""References to the word of a table that holds an address, relative to their own place.

41 is R_X86_64_GOTPCRELX and 42 R_X86_64_REX_GOTPCRELX, which linkers may relax, and this one does
not.
"""
_ADDRESS = TYPES["R_X86_64_64"]


class LinkerError(CompileError):
    """Code needs a linker: it has a reference that is not position independent, or a variable of
    threads."""


def image_of(code: bytes) -> Image:
    """The image of an object file.

    Raises:
        CompileError: if it is not an object file for x86-64.
        LinkerError: if it needs a linker.
    """
    try:
        file = ELFFile(BytesIO(code))
        if file["e_machine"] != "EM_X86_64" or file["e_type"] != "ET_REL":
            raise _refusal("not an object file for x86-64", file["e_machine"])
        return _Layout(file).image()
    except ELFError as error:
        raise _refusal("not an object file", str(error)) from error


def _refusal(fact: str, got: object) -> CompileError:
    return CompileError(explain("machine code", fact, got=got))


def _needs_linker(got: str) -> LinkerError:
    return LinkerError(explain("machine code", "needs a linker", got=got))


class _Layout:
    """Sections of an object file, at their places in an image: code, table, stubs, data."""

    def __init__(self, file: ELFFile) -> None:
        self._sections: list[Section] = list(file.iter_sections())
        tables = [one for one in self._sections if isinstance(one, SymbolTableSection)]
        self._symbols: list[Symbol] = list(tables[0].iter_symbols()) if tables else []
        self._places: dict[int, int] = {}
        self._imports: dict[str, list[int]] = {}
        self._relative: list[int] = []
        self._words: dict[int, int] = {}
        self._stubs: dict[int, int] = {}
        end = self._lay_out(0, writable=False)
        self._free = _up(end, _STUB)
        most = len({found["r_info_sym"] for _, found in self._references()})
        self._executable = _up(self._free + most * (_WORD + _STUB), PAGE)
        self._memory = bytearray(self._lay_out(self._executable, writable=True))

    def image(self) -> Image:
        """The image, with all references inside resolved."""
        for number, place in self._places.items():
            section = self._sections[number]
            if section["sh_type"] != "SHT_NOBITS":
                self._memory[place : place + section["sh_size"]] = section.data()
        for place, found in self._references():
            self._resolve(place, found["r_info_type"], found["r_info_sym"], found["r_addend"])
        symbols = {
            symbol.name: self._place_of(number)
            for number, symbol in enumerate(self._symbols)
            if symbol["st_info"]["bind"] == "STB_GLOBAL" and symbol["st_shndx"] in self._places
        }
        imports = {name: tuple(places) for name, places in self._imports.items()}
        data = bytes(self._memory).rstrip(b"\0")
        relative = tuple(self._relative)
        return Image(data, len(self._memory), self._executable, symbols, imports, relative)

    def _lay_out(self, start: int, *, writable: bool) -> int:
        """Give places to the sections that are writable, or not; returns their end."""
        for number, section in enumerate(self._sections):
            flags = section["sh_flags"]
            is_written = bool(flags & _WRITABLE) and not section.name.startswith(_CONSTANT_AT_LAST)
            if not flags & _ALLOCATED or section.name == _UNWINDING or is_written is not writable:
                continue
            if flags & _THREAD_LOCAL or section["sh_addralign"] > PAGE:
                raise _needs_linker(f"section {section.name}")
            self._places[number] = _up(start, max(1, section["sh_addralign"]))
            start = self._places[number] + section["sh_size"]
        return start

    def _references(self) -> Iterator[tuple[int, Any]]:
        """The references in sections that have a place: where they are, and what to."""
        for section in self._sections:
            if isinstance(section, RelocationSection) and section["sh_info"] in self._places:
                start = self._places[section["sh_info"]]
                for found in section.iter_relocations():
                    yield start + found["r_offset"], found

    def _resolve(self, place: int, kind: int, number: int, addend: int) -> None:
        if kind in _BY_TABLE:
            self._store("<i", place, self._word(number) + addend - place)
        elif kind in _NEAR and not self._is_outside(number):
            self._store(_NEAR[kind], place, self._place_of(number) + addend - place)
        elif kind == _CALL:
            self._store("<i", place, self._stub(number) + addend - place)
        elif kind == _ADDRESS and not self._is_outside(number):
            self._store("<q", place, self._place_of(number) + addend)
            self._relative.append(place)
        elif kind == _ADDRESS and not addend:
            self._imports.setdefault(self._symbols[number].name, []).append(place)
        else:
            names = [name for name, value in TYPES.items() if value == kind]
            raise _needs_linker(f"{names[0] if names else kind} in it")

    def _store(self, form: str, place: int, value: int) -> None:
        struct.pack_into(form, self._memory, place, value)

    def _is_outside(self, number: int) -> bool:
        return self._symbols[number]["st_shndx"] == "SHN_UNDEF"

    def _place_of(self, number: int) -> int:
        """The place of a symbol of the object file."""
        symbol = self._symbols[number]
        if symbol["st_shndx"] not in self._places:
            raise _needs_linker(f"symbol {symbol.name}")
        return self._places[symbol["st_shndx"]] + symbol["st_value"]

    def _word(self, number: int) -> int:
        """The word of the table with the address of a symbol."""
        if number not in self._words:
            place = self._words[number] = self._take(_WORD)
            if self._is_outside(number):
                self._imports.setdefault(self._symbols[number].name, []).append(place)
            else:
                self._store("<q", place, self._place_of(number))
                self._relative.append(place)
        return self._words[number]

    def _stub(self, number: int) -> int:
        """The code that jumps to an outside function."""
        if number not in self._stubs:
            word, place = self._word(number), self._take(_STUB)
            self._memory[place : place + len(_JUMP)] = _JUMP
            self._store("<i", place + len(_JUMP), word - (place + len(_JUMP) + 4))
            self._stubs[number] = place
        return self._stubs[number]

    def _take(self, size: int) -> int:
        """The place of so many bytes behind the code."""
        place, self._free = self._free, self._free + size
        return place


def _up(number: int, step: int) -> int:
    """The next multiple of a step."""
    return -(-number // step) * step
