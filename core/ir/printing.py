"""Printing modules as MLIR text, with attribute aliases.

An attribute whose Python property `alias` is a name prints as ``#name``, and the text begins with
the definition of the name: ``tensor<4x4xf32, #csr>`` instead of the whole encoding. xDSL reads
MLIR's aliases but does not write them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from io import StringIO

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.ir import Attribute, BlockArgument, Operation
from xdsl.printer import Printer
from xdsl.traits import ConstantLike

from ..files.versions import KEY, with_version
from .provenance import names, names_of
from .typed import is_splat


class AliasPrinter(Printer):
    """xDSL's printer, which also collects the aliases that it used."""

    def __init__(self, stream: StringIO, elide: int | None = None, **options: bool) -> None:
        """`options` are those of xDSL's printer."""
        super().__init__(stream=stream, **options)  # pyright: ignore[reportArgumentType]
        self.aliases: dict[Attribute, str] = {}
        self._elide = elide

    def print_attribute(self, attribute: Attribute) -> None:
        if self._elide is not None and _elements(attribute) > self._elide:
            assert isinstance(attribute, DenseIntOrFPElementsAttr)
            self.print_string("dense_resource<__elided__> : ")
            super().print_attribute(attribute.get_type())
            return
        if (
            isinstance(attribute, DenseIntOrFPElementsAttr)
            and len(attribute) > 0
            and not is_splat(attribute)
            and attribute.is_splat()
        ):
            # All elements are 0.0 or -0.0, some are either, and xDSL would print the first for all.
            self.print_string(f'dense<"0x{attribute.data.data.hex()}"> : ')
            super().print_attribute(attribute.get_type())
            return
        alias = getattr(attribute, "alias", None)
        if not isinstance(alias, str):
            super().print_attribute(attribute)
            return
        if attribute not in self.aliases:
            taken = self.aliases.values()
            count = sum(name.rstrip("0123456789_") == alias for name in taken)
            self.aliases[attribute] = f"{alias}_{count}" if count else alias
        self.print_string(f"#{self.aliases[attribute]}")


def _elements(attribute: Attribute) -> int:
    """The number of elements that a constant prints: one for a splat."""
    if not isinstance(attribute, DenseIntOrFPElementsAttr):
        return 0
    return 1 if is_splat(attribute) else len(attribute)


def module_text(
    op: Operation,
    *,
    locations: bool = False,
    elide: int | None = None,
    versioned: bool = False,
    **options: bool,
) -> str:
    """An operation as MLIR text that `from_mlir` reads, aliases first.

    Args:
        op: the operation.
        locations: whether to print locations.
        elide: constants of more elements than this are printed as `dense_resource<__elided__>`;
            such text cannot be parsed again.
        versioned: whether to state the version of the text, see `core.files.versions`.
        options: further options of xDSL's printer.
    """
    body = StringIO()
    printer = AliasPrinter(body, elide, print_debuginfo=locations, **options)
    printer.print_op(op)
    text = body.getvalue()
    if versioned and KEY not in op.attributes:
        text = with_version(text)
    return f"{aliases_text(printer.aliases)}{text}\n"


def aliases_text(aliases: Mapping[Attribute, str]) -> str:
    """The definitions of aliases, a line each."""
    text = StringIO()
    printer = Printer(stream=text)
    for attribute, name in aliases.items():
        printer.print_string(f"#{name} = ")
        printer.print_attribute(attribute)
        printer.print_string("\n")
    return text.getvalue()


def _arguments(op: Operation) -> tuple[BlockArgument, ...]:
    first = op.regions[0].blocks.first if op.regions else None
    return () if first is None else tuple(first.args)


class CountedLines(StringIO):
    """Text that counts its complete lines."""

    complete = 0

    def write(self, text: str, /) -> int:
        self.complete += text.count("\n")
        return super().write(text)


class _ListingPrinter(AliasPrinter):
    """Records the line on which each node of the model, and each input, first occurs.

    It prints just the ends of lines, and each attribute once, for its aliases.
    """

    def __init__(self, stream: CountedLines) -> None:
        super().__init__(stream)
        self.counted = stream
        self.operators: dict[str, int] = {}
        self.others: dict[str, int] = {}
        self._seen: set[Attribute] = set()

    def print_string(self, text: str, *, indent: int | None = None) -> None:
        if "\n" in text:
            super().print_string(text, indent=indent)

    def print_attribute(self, attribute: Attribute) -> None:
        if attribute not in self._seen:
            self._seen.add(attribute)
            super().print_attribute(attribute)

    def print_op(self, op: Operation) -> None:
        known = self.others if op.has_trait(ConstantLike) else self.operators
        for name in names(op):
            known.setdefault(name, self.counted.complete)
        for argument in _arguments(op):
            for name in names_of(argument.location):
                self.others.setdefault(name, self.counted.complete)
        super().print_op(op)


@dataclass(frozen=True)
class Listing:
    """The line of a module's text, counted from 1, on which each node of the model first occurs.

    That is the line of its first operator, or else of its first constant. `file` names the text.
    """

    file: str
    lines: Mapping[str, int]


def listing(op: Operation, file: str) -> Listing:
    """The listing of a module as `module_text` prints it."""
    printer = _ListingPrinter(CountedLines())
    printer.print_op(op)
    first = len(printer.aliases) + 1
    lines = printer.others | printer.operators
    return Listing(file, {name: line + first for name, line in lines.items()})
