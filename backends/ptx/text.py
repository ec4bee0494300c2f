"""The text of PTX modules: kernels, their parameters, variables and instructions."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from ...core.errors import InputError, UnsupportedError, explain, shortened

_BITS = re.compile(r"[bfsu](8|16|32|64)|bf16|pred")


def bits_of(kind: str) -> int:
    """The width of a type without its dot, such as "f32"; a predicate has 1 bit.

    Raises:
        UnsupportedError: if it is packed, or has another width.
    """
    if not _BITS.fullmatch(kind):
        raise UnsupportedError(explain("PTX", "unknown type", got=f".{kind}"))
    return 1 if kind == "pred" else int(kind.lstrip("bfsu"))


@dataclass(frozen=True)
class PtxVariable:
    """A variable in a state space, or a parameter, and its position in it, in bytes."""

    name: str
    space: str
    size: int
    offset: int
    initial: bytes | None = None


@dataclass(frozen=True)
class PtxInstruction:
    """One instruction.

    Attributes:
        name: the first word of the opcode, such as "ld".
        modifiers: the other words: ("global", "v4", "f32").
        operands: their texts; braces and brackets included.
        guard: the predicate under which it is executed, and whether it is negated.
        line: its line in the text, from 1.
        source: the file and line of ``.loc``, if there is one.
    """

    name: str
    modifiers: tuple[str, ...]
    operands: tuple[str, ...]
    guard: tuple[str, bool] | None
    line: int
    source: str | None

    @property
    def kind(self) -> str:
        """The type of the operation: its last modifier."""
        return self.modifiers[-1] if self.modifiers else ""

    @property
    def opcode(self) -> str:
        """The whole opcode."""
        return ".".join((self.name, *self.modifiers))

    def __str__(self) -> str:
        guard = f"@{'!' * self.guard[1]}{self.guard[0]} " if self.guard else ""
        return f"{guard}{self.opcode} {', '.join(self.operands)}".rstrip()

    @property
    def origin(self) -> str:
        """Where it stands, for a message."""
        place = f"line {self.line}: {self}"
        return place if self.source is None else f"{self.source}; {place}"


@dataclass
class PtxKernel:
    """A function of a module that is launched (``.entry``).

    Attributes:
        name: its name.
        parameters: in their order, with offsets in a buffer of all.
        variables: those of the module and its own, by name.
        registers: the widths of registers by name, for numbered ones by the name before the number.
        code: its instructions.
        labels: the numbers of the instructions that labels precede.
        threads: the most threads of a block (``.maxntid``), if it is stated.
    """

    name: str
    parameters: tuple[PtxVariable, ...]
    variables: dict[str, PtxVariable]
    registers: dict[str, int] = field(default_factory=dict[str, int])
    code: list[PtxInstruction] = field(default_factory=list[PtxInstruction])
    labels: dict[str, int] = field(default_factory=dict[str, int])
    threads: int | None = None

    def width(self, register: str) -> int:
        """The width of a register in bits.

        Raises:
            InputError: if it is not declared.
        """
        known = self.registers.get(register) or self.registers.get(register.rstrip("0123456789"))
        if known is None:
            raise InputError(explain("PTX", "undeclared register", got=register))
        return known

    @functools.cached_property
    def named(self) -> Counter[str]:
        """How often the instructions name each register."""
        found = Counter[str]()
        for op in self.code:
            found.update(_REGISTER.findall(" ".join(op.operands)))
            found.update([op.guard[0]] if op.guard else [])
        return found

    def bytes_in(self, space: str) -> int:
        """The bytes of a state space that its variables take."""
        ends = [v.offset + v.size for v in self.variables.values() if v.space == space]
        return max(ends, default=0)


_REGISTER = re.compile(r"%[\w$]+")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_ENTRY = re.compile(
    r"\.(entry|func)\b[^({;]*?([\w$.]+)\s*(\([^)]*\))?\s*((?:\.\w+[^{;]*)?)\s*([{;])"
)
_VARIABLE = re.compile(
    r"(?<!\w)\.(global|const|shared|local|param)\b((?:\s*\.\w+(?:\s+\d+)?)*)\s*\.([bfsu]\d+)"
    r"((?:\s*\.(?:ptr|global|shared|const|local|align\s+\d+))*)\s+([\w$.]+)((?:\[\d*\])*)"
    r"(?:\s*=\s*(\{[^}]*\}|[^;,]+))?"
)
_STATEMENT = re.compile(
    r"\s*(?:(?P<note>\.(?:loc|file)\b[^\n]*)|(?P<label>[\w$]+)\s*:(?!:)|(?P<brace>[{}])"
    r"|(?P<statement>[^;]+);)"
)
_INSTRUCTION = re.compile(r"(?:@(!?)([\w%$]+)\s+)?([\w.:]+)\s*(.*)", re.DOTALL)
_OPERAND = re.compile(r"(?:\{[^}]*\}|\[[^\]]*\]|[^,{\[])+")
_REGISTERS = re.compile(r"\.reg\s+\.(\w+)\s+(.*)", re.DOTALL)
_LOC = re.compile(r"\.loc\s+(\d+)\s+(\d+)")
_FILE = re.compile(r'\.file\s+(\d+)\s+"([^"]*)"')
_THREADS = re.compile(r"\.(?:maxntid|reqntid)\s+(\d+)(?:\s*,\s*(\d+))?(?:\s*,\s*(\d+))?")


def read_ptx(text: str) -> dict[str, PtxKernel]:
    """The kernels of a module by name.

    Raises:
        InputError: if it is not PTX.
        UnsupportedError: if it uses what is not known.
    """
    text = _COMMENT.sub(_blank, text)
    if not re.search(r"\.version\s+\d", text):
        raise InputError(explain("PTX", "no .version, as every module has", got=text.strip()[:40]))
    bodies = list(_bodies(text))
    outside = text
    for _, start, end in bodies:
        outside = outside[:start] + " " * (end - start) + outside[end:]
    shared = _variables(_ENTRY.sub("", outside), ("global", "const", "shared"), {})
    files = dict(_FILE.findall(text))
    found: dict[str, PtxKernel] = {}
    for head, start, end in bodies:
        if head[1] == "entry":
            found[head[2]] = _kernel(head, text, start, end, dict(shared), files)
    if not found:
        raise InputError(explain("PTX", "there is no kernel", expected=".entry"))
    return found


def _blank(comment: re.Match[str]) -> str:
    """Spaces for a comment: lines keep their numbers."""
    return re.sub(r"[^\n]", " ", comment[0])


def _bodies(text: str) -> Iterator[tuple[re.Match[str], int, int]]:
    """Each function with a body: its head, and where its text begins and ends."""
    for head in _ENTRY.finditer(text):
        if head[5] == ";":
            continue
        depth, at = 1, head.end()
        for brace in re.finditer(r"[{}]", text[head.end() :]):
            depth += 1 if brace[0] == "{" else -1
            if not depth:
                at = head.end() + brace.start()
                break
        if depth:
            raise InputError(explain("PTX", "a body does not end", got=head[2]))
        yield head, head.end(), at


def _kernel(
    head: re.Match[str],
    text: str,
    start: int,
    end: int,
    variables: dict[str, PtxVariable],
    files: dict[str, str],
) -> PtxKernel:
    """The kernel of a head and a body, which is part of the text."""
    parameters = _variables(head[3] or "", ("param",), {})
    kernel = PtxKernel(head[2], tuple(parameters.values()), variables)
    if threads := _THREADS.search(head[4] or ""):
        kernel.threads = 1
        for number in filter(None, threads.groups()):
            kernel.threads *= int(number)
    _variables(text[start:end], ("shared", "local"), variables)
    at, line, source = start, text.count("\n", 0, start) + 1, None
    while at < end and (found := _STATEMENT.match(text, at, end)):
        line += text.count("\n", at, found.end())
        at = found.end()
        if found["label"]:
            kernel.labels[found["label"]] = len(kernel.code)
        elif found["note"]:
            if loc := _LOC.match(found["note"]):
                # Line 0 is that of code without a line.
                file = files.get(loc[1], f"file {loc[1]}").removeprefix("./")
                source = None if loc[2] == "0" else f"{file}:{loc[2]}"
        elif found["statement"]:
            statement = " ".join(found["statement"].split())
            if not statement.startswith("."):
                kernel.code.append(_instruction(statement, line, source))
            elif registers := _REGISTERS.match(statement):
                _declare(kernel, registers)
    if text[at:end].strip():
        raise InputError(explain("PTX", f"cannot read line {line}", got=text[at:end].strip()))
    return kernel


def _declare(kernel: PtxKernel, found: re.Match[str]) -> None:
    """Add the registers of a declaration: names, or prefixes with a count."""
    bits = bits_of(found[1])
    for name in found[2].split(","):
        kernel.registers[re.sub(r"<\d+>", "", name.strip())] = bits


def _instruction(statement: str, line: int, source: str | None) -> PtxInstruction:
    found = _INSTRUCTION.fullmatch(statement)
    if found is None:
        got = shortened(statement)
        raise InputError(explain("PTX", f"cannot read line {line}", got=got))
    name, *modifiers = found[3].replace("::", "_").split(".")
    operands = tuple(operand.strip() for operand in _OPERAND.findall(found[4]))
    guard = (found[2], found[1] == "!") if found[2] else None
    return PtxInstruction(name, tuple(modifiers), operands, guard, line, source)


def _variables(
    text: str, spaces: tuple[str, ...], known: dict[str, PtxVariable]
) -> dict[str, PtxVariable]:
    """Add the variables of some state spaces that a text declares to those that are known.

    Without an array's first size (``.extern .shared``), its size is that of a launch: 0 here.
    """
    ends = dict.fromkeys(spaces, 0)
    for variable in known.values():
        if variable.space in ends:
            ends[variable.space] = max(ends[variable.space], variable.offset + variable.size)
    for found in _VARIABLE.finditer(text):
        space, before, kind, after, name, sizes, initial = found.groups()
        if space not in spaces:
            continue
        item = bits_of(kind) // 8
        count = 1
        for size in re.findall(r"\[(\d*)\]", sizes):
            count *= int(size or 0)
        align = re.search(r"\.align\s+(\d+)", before) or re.search(r"\.align\s+(\d+)", after)
        # `.align` after `.ptr` is that of the memory pointed to.
        unit = int(align[1]) if align and ".ptr" not in after else item
        offset = -(-ends[space] // unit) * unit
        known[name] = PtxVariable(
            name, space, item * count, offset, _initial(initial, kind, item * count)
        )
        ends[space] = offset + item * count
    return known


def _initial(text: str | None, kind: str, size: int) -> bytes | None:
    """The bytes of an initialiser, padded with zeros."""
    if text is None:
        return None
    values = [number(part.strip(), kind) for part in text.strip("{} \n").split(",")]
    width = bits_of(kind) // 8
    data = b"".join(value.to_bytes(width, "little") for value in values)
    return data.ljust(size, b"\0")


def number(text: str, kind: str) -> int:
    """The bits of a constant of a type.

    Raises:
        InputError: if it is none.
    """
    import numpy as np

    bits = bits_of(kind)
    try:
        if text[:2].lower() in ("0f", "0d"):
            return int(text[2:], 16)
        if re.fullmatch(r"-?\d+\.\d*(?:[eE][-+]?\d+)?", text):
            dtype = np.dtype(f"f{bits // 8}")
            return int(np.array(float(text), dtype).view(f"u{bits // 8}"))
        digits = text.rstrip("U")
        sign = -1 if digits.startswith("-") else 1
        digits = digits.lstrip("+-")
        octal = len(digits) > 1 and digits[0] == "0" and digits.isdigit()
        return sign * int(digits, 8 if octal else 0) % (1 << max(bits, 8))
    except ValueError:
        raise InputError(explain("PTX", "not a constant", got=text)) from None
