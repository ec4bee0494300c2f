"""Texts of operations whose lines are marked with what they come from.

The operators of the model get numbers, and so do the operations of stage `scheduled`: they are
added to locations. Passes and conversions keep locations, so that each operation of a later stage,
down to the instructions, leads back to operators, and to operations of that stage.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from xdsl.dialects.builtin import (
    ArrayAttr,
    FileLineColLoc,
    FusedLoc,
    IntAttr,
    LocationAttr,
    ModuleOp,
    NameLoc,
    NoneAttr,
    StringAttr,
)
from xdsl.ir import Operation

from ..core.ir.printing import AliasPrinter, CountedLines, aliases_text
from ..core.ir.provenance import leaves, names_of
from ..core.ir.symbols import symbol_of
from .document import Mark

ELIDED = 16
"""Constants of more elements than this are elided."""

WHOLE = (0,)
"""The origins of a line that stands for a function as a whole."""

_ORIGIN = "<stepwell report>"
"""The file in the locations of numbered operations."""


class Marks:
    """The marks of lines, each with a number."""

    def __init__(self) -> None:
        self._marks: dict[Mark, int] = {Mark((), ()): 0}
        self._known: dict[int, tuple[LocationAttr, Mark]] = {}

    @property
    def all(self) -> tuple[Mark, ...]:
        """The marks, in the order of their numbers."""
        return tuple(self._marks)

    def of(self, op: Operation) -> Mark:
        """The mark of an operation."""
        # Operations have few location objects, and to look at a fused one takes long.
        found = self._known.get(id(op.location))
        if found is None:
            found = self._known[id(op.location)] = op.location, _mark(op.location)
        return found[1]

    def of_all(self, ops: Iterable[Operation]) -> Mark:
        """The mark of a line that stands for several operations."""
        marks = [self.of(op) for op in ops]
        return Mark(
            tuple(dict.fromkeys(node for mark in marks for node in mark.nodes)),
            tuple(dict.fromkeys(origin for mark in marks for origin in mark.origins)),
        )

    def number(self, mark: Mark) -> int:
        """The number of a mark."""
        return self._marks.setdefault(mark, len(self._marks))


def _mark(location: LocationAttr) -> Mark:
    places = [place for leaf in leaves(location) if (place := _place(leaf)) is not None]
    nodes = dict.fromkeys(place.column.data - 1 for place in places if place.column.data)
    return Mark(tuple(nodes), tuple(dict.fromkeys(p.line.data for p in places if p.line.data)))


def _place(leaf: LocationAttr) -> FileLineColLoc | None:
    """The numbers in a location: that of an operation of stage `scheduled` as its line, and that of
    a node as its column; 0 for none."""
    inner = leaf.location if isinstance(leaf, NameLoc) else leaf
    if isinstance(inner, FileLineColLoc) and inner.filename.data == _ORIGIN:
        return inner
    return None


def _numbered(line: int, column: int) -> FileLineColLoc:
    return FileLineColLoc(StringAttr(_ORIGIN), IntAttr(line), IntAttr(column))


def is_name(node: str) -> bool:
    """Whether a text is the name of a node, and not the number of an operation."""
    return not node.startswith(_ORIGIN)


def number_nodes(module: ModuleOp, by_operator: bool) -> tuple[str, ...]:
    """Add a number to the location of each operator of the model; return their names.

    Args:
        module: the module.
        by_operator: whether operators of the same node have different numbers.
    """
    known: dict[tuple[str, Operation | None], int] = {}
    for op in module.walk():
        if op.parent_op() in (None, module):
            continue
        named = [names_of(leaf)[0] for leaf in leaves(op.location) if names_of(leaf)]
        parts: list[LocationAttr] = []
        for name in named:
            number = known.setdefault((name, op if by_operator else None), len(known) + 1)
            parts.append(NameLoc(StringAttr(name), _numbered(0, number)))
        if parts:
            op.location = _fused(parts)
    return tuple(name for name, _ in known)


def number_operations(kernels: Iterable[Operation]) -> None:
    """Add a number to the location of each operation in kernels."""
    for number, op in enumerate((inner for kernel in kernels for inner in kernel.walk()), 1):
        parts: list[LocationAttr] = []
        for leaf in leaves(op.location):
            place, found = _place(leaf), names_of(leaf)
            here = _numbered(number, 0 if place is None else place.column.data)
            parts.append(NameLoc(StringAttr(found[0]), here) if found else here)
        op.location = _fused(parts) if parts else _numbered(number, 0)


def _fused(parts: list[LocationAttr]) -> LocationAttr:
    return parts[0] if len(parts) == 1 else FusedLoc(ArrayAttr(parts), NoneAttr())


class _MarkingPrinter(AliasPrinter):
    """Records the line on which each operation begins."""

    def __init__(self, stream: CountedLines) -> None:
        super().__init__(stream, ELIDED)
        self.counted = stream
        self.begun: list[tuple[int, Operation]] = []

    def print_op(self, op: Operation) -> None:
        self.begun.append((self.counted.complete, op))
        super().print_op(op)


@dataclass(frozen=True)
class Printed:
    """The text of a function, as `module_text` prints it, and the line on which each operation
    begins."""

    text: str
    begun: tuple[tuple[int, Operation], ...]

    def line(self, number: int) -> str:
        """A line of the text, without its indent."""
        return self.text.split("\n", number + 1)[number].strip()

    def marks(self, function: Operation, marks: Marks) -> tuple[int, ...]:
        """The number of the mark of each line; that of the function stands for all of its nodes."""
        lines = [0] * self.text.count("\n")
        for line, op in _innermost(self.begun):
            mark = marks.of(op)
            whole = op is function and bool(mark.nodes)
            lines[line] = marks.number(Mark(mark.nodes, WHOLE) if whole else mark)
        return tuple(lines)


def printed(op: Operation) -> Printed:
    """The text of a function."""
    body = CountedLines()
    printer = _MarkingPrinter(body)
    printer.print_op(op)
    head = aliases_text(printer.aliases)
    before = head.count("\n")
    begun = tuple((before + line, inner) for line, inner in printer.begun)
    return Printed(f"{head}{body.getvalue()}\n", begun)


def _innermost(begun: Iterable[tuple[int, Operation]]) -> Iterator[tuple[int, Operation]]:
    """The operation that each line is about: the first of those that begin on it."""
    seen: set[int] = set()
    for line, op in begun:
        if line not in seen:
            seen.add(line)
            yield line, op


def symbol(op: Operation) -> str:
    """The name of a function or kernel."""
    return symbol_of(op) or op.name
