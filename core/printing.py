"""Printing modules as MLIR text, with aliases for the attributes that offer one.

An attribute with a property `alias` that is a name prints as ``#name``, and the text begins
with what the name stands for: ``tensor<4x4xf32, #csr>`` instead of the whole encoding. That is
MLIR's own form; xDSL reads it but does not write it.
"""

from __future__ import annotations

from io import StringIO

from xdsl.ir import Attribute, Operation
from xdsl.printer import Printer


class AliasPrinter(Printer):
    """xDSL's printer, which in addition gathers the aliases that it used."""

    def __init__(self, stream: StringIO, **options: bool) -> None:
        """`options` are those of xDSL's printer."""
        super().__init__(stream=stream, **options)  # pyright: ignore[reportArgumentType]
        self.aliases: dict[Attribute, str] = {}

    def print_attribute(self, attribute: Attribute) -> None:
        alias = getattr(attribute, "alias", None)
        if not isinstance(alias, str):
            super().print_attribute(attribute)
            return
        if attribute not in self.aliases:
            taken = self.aliases.values()
            count = sum(name.rstrip("0123456789_") == alias for name in taken)
            self.aliases[attribute] = f"{alias}_{count}" if count else alias
        self.print_string(f"#{self.aliases[attribute]}")


def module_text(op: Operation, *, locations: bool = False, **options: bool) -> str:
    """An operation as MLIR text that `from_mlir` reads, aliases first.

    Args:
        op: what to print.
        locations: whether locations are printed.
        options: further options of xDSL's printer.
    """
    body = StringIO()
    printer = AliasPrinter(body, print_debuginfo=locations, **options)
    printer.print_op(op)
    head = StringIO()
    plain = Printer(stream=head)
    for attribute, name in printer.aliases.items():
        plain.print_string(f"#{name} = ")
        plain.print_attribute(attribute)
        plain.print_string("\n")
    return head.getvalue() + body.getvalue() + "\n"
