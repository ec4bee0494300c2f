"""Object files (ELF, x86-64) to images: sections are laid out, and references inside resolved.

The object is position independent code, or has 64 bits for each address, as LLVM compiles code for
its own process. Outside functions are called through stubs, which jump to the addresses in a table,
as the procedure linkage table of a shared library does, or by an address in the code.

The layout of the file is that of the System V ABI and its supplement for AMD64. Only what an image
needs is read.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from ...core.errors import CompileError, explain
from .images import PAGE, Image

_MAGIC = b"\x7fELF\x02\x01"
"""The first bytes of a file of 64 bits, with the low byte of a number first."""
_RELOCATABLE, _X86_64 = 1, 62
_SYMBOLS, _RELOCATIONS, _NO_BITS = 2, 4, 8
"""Types of sections: the symbol table, references with addends, and zeros that are not stored."""
_UNDEFINED, _GLOBAL = 0, 1
_WRITABLE, _ALLOCATED, _THREAD_LOCAL = 0x1, 0x2, 0x400
_UNWINDING = ".eh_frame"
"""No exception propagates through compiled code."""
_CONSTANT_AT_LAST = ".data.rel.ro"
"""What begins the names of constants with addresses in them."""
_JUMP = b"\xff\x25"
"""`jmp *offset(%rip)`, before the 32-bit offset."""
_WORD = _STUB = 8
"""The bytes of an address, and of a stub: the jump, and padding."""

_CALL, _PC32, _PC64 = 4, 2, 24
_NEAR = {_CALL: "<i", _PC32: "<i", _PC64: "<q"}
"""References relative to their own place, and their formats."""
_BY_TABLE = {9, 41, 42}
"""References to the word of a table that holds an address, relative to their own place.

9 is R_X86_64_GOTPCREL, 41 R_X86_64_GOTPCRELX and 42 R_X86_64_REX_GOTPCRELX, which linkers may
relax, and this one does not.
"""
_ADDRESS = 1


class LinkerError(CompileError):
    """Code needs a linker: it has a reference that is not position independent, or a variable of
    threads."""


def image_of(code: bytes) -> Image:
    """The image of an object file.

    Raises:
        CompileError: if it is not an object file for x86-64.
        LinkerError: if it needs a linker.
    """
    if not code.startswith(_MAGIC):
        raise _refusal("not an object file", code[: len(_MAGIC)])
    try:
        return _Layout(code).image()
    except (struct.error, IndexError) as error:
        raise _refusal("not an object file", str(error)) from error


def _refusal(fact: str, got: object) -> CompileError:
    return CompileError(explain("machine code", fact, got=got))


def _needs_linker(got: str) -> LinkerError:
    return LinkerError(explain("machine code", "needs a linker", got=got))


class _Section(NamedTuple):
    """The header of a section, in the order of the file."""

    name: int
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry_size: int


class _Symbol(NamedTuple):
    """An entry of the symbol table, in the order of the file."""

    name: int
    info: int
    other: int
    section: int
    value: int
    size: int


class _Reference(NamedTuple):
    """A relocation: its place in a section, what it refers to and how, and what is added."""

    offset: int
    info: int
    addend: int

    @property
    def symbol(self) -> int:
        return self.info >> 32

    @property
    def type(self) -> int:
        return self.info & 0xFFFFFFFF


class _Layout:
    """Sections of an object file, at their places in an image: code, table, stubs, data."""

    def __init__(self, code: bytes) -> None:
        self._code = code
        kind, machine, start, count, names = struct.unpack_from("<16x2H20xQ12x2H", code)
        if (kind, machine) != (_RELOCATABLE, _X86_64):
            raise _refusal("not an object file for x86-64", machine)
        headers = struct.iter_unpack("<2I4Q2I2Q", code[start : start + 64 * count])
        self._sections = [_Section(*header) for header in headers]
        self._names = self._sections[names]
        self._symbols: list[_Symbol] = []
        for section in self._sections:
            if section.type == _SYMBOLS:
                entries = struct.iter_unpack("<I2BH2Q", self._content(section))
                self._symbols = [_Symbol(*entry) for entry in entries]
                self._symbol_names = self._sections[section.link]
        self._places: dict[int, int] = {}
        self._imports: dict[str, list[int]] = {}
        self._relative: list[int] = []
        self._words: dict[int, int] = {}
        self._stubs: dict[int, int] = {}
        end = self._lay_out(0, writable=False)
        self._free = _up(end, _STUB)
        most = len({found.symbol for _, found in self._references()})
        self._executable = _up(self._free + most * (_WORD + _STUB), PAGE)
        self._memory = bytearray(self._lay_out(self._executable, writable=True))

    def image(self) -> Image:
        """The image, with all references inside resolved."""
        for number, place in self._places.items():
            section = self._sections[number]
            if section.type != _NO_BITS:
                self._memory[place : place + section.size] = self._content(section)
        for place, found in self._references():
            self._resolve(place, found.type, found.symbol, found.addend)
        symbols = {
            self._name_of(number): self._place_of(number)
            for number, symbol in enumerate(self._symbols)
            if symbol.info >> 4 == _GLOBAL and symbol.section in self._places
        }
        imports = {name: tuple(places) for name, places in self._imports.items()}
        data = bytes(self._memory).rstrip(b"\0")
        relative = tuple(self._relative)
        return Image(data, len(self._memory), self._executable, symbols, imports, relative)

    def _content(self, section: _Section) -> bytes:
        return self._code[section.offset : section.offset + section.size]

    def _text(self, table: _Section, offset: int) -> str:
        """The name at a place of a table of names."""
        start = table.offset + offset
        return self._code[start : self._code.index(b"\0", start)].decode()

    def _name_of(self, number: int) -> str:
        """The name of a symbol."""
        return self._text(self._symbol_names, self._symbols[number].name)

    def _lay_out(self, start: int, *, writable: bool) -> int:
        """Give places to the sections that are writable, or not; returns their end."""
        for number, section in enumerate(self._sections):
            flags, name = section.flags, self._text(self._names, section.name)
            is_written = bool(flags & _WRITABLE) and not name.startswith(_CONSTANT_AT_LAST)
            if not flags & _ALLOCATED or name == _UNWINDING or is_written is not writable:
                continue
            if flags & _THREAD_LOCAL or section.alignment > PAGE:
                raise _needs_linker(f"section {name}")
            self._places[number] = _up(start, max(1, section.alignment))
            start = self._places[number] + section.size
        return start

    def _references(self) -> Iterator[tuple[int, _Reference]]:
        """The references in sections that have a place: where they are, and what to."""
        for section in self._sections:
            if section.type == _RELOCATIONS and section.info in self._places:
                start = self._places[section.info]
                for entry in struct.iter_unpack("<2Qq", self._content(section)):
                    found = _Reference(*entry)
                    yield start + found.offset, found

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
            self._imports.setdefault(self._name_of(number), []).append(place)
        else:
            raise _needs_linker(f"a relocation of type {kind} in it")

    def _store(self, form: str, place: int, value: int) -> None:
        struct.pack_into(form, self._memory, place, value)

    def _is_outside(self, number: int) -> bool:
        return self._symbols[number].section == _UNDEFINED

    def _place_of(self, number: int) -> int:
        """The place of a symbol of the object file."""
        symbol = self._symbols[number]
        if symbol.section not in self._places:
            raise _needs_linker(f"symbol {self._name_of(number)}")
        return self._places[symbol.section] + symbol.value

    def _word(self, number: int) -> int:
        """The word of the table with the address of a symbol."""
        if number not in self._words:
            place = self._words[number] = self._take(_WORD)
            if self._is_outside(number):
                self._imports.setdefault(self._name_of(number), []).append(place)
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
