"""`irdl_op_definition` for the operations of this project: formats are read when first used.

xDSL reads the assembly format of an operation when its class is defined, which takes longer than
the rest of the definition. The compilation of a model from Python or ONNX uses no format.
"""

from __future__ import annotations

from functools import cache
from typing import TypeVar

from xdsl.ir import Operation
from xdsl.irdl import IRDLOperation
from xdsl.irdl import irdl_op_definition as defined_at_once
from xdsl.irdl.declarative_assembly_format import FormatProgram
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import ParseError, PyRDLOpDefinitionError

OpT = TypeVar("OpT", bound=IRDLOperation)


def irdl_op_definition(cls: type[OpT]) -> type[OpT]:
    """Define an operation, as xDSL's decorator of this name does.

    Raises:
        PyRDLOpDefinitionError: if the definition is wrong, but for its format: see `give_format`.
    """
    text = cls.assembly_format
    by_format = cls.print == Operation.print and cls.parse.__func__ == Operation.parse.__func__
    if text is None or not by_format:  # xDSL refuses a format beside methods
        return defined_at_once(cls)
    cls.assembly_format = None
    made = defined_at_once(cls)
    give_format(made, text)
    return made


def give_format(cls: type[IRDLOperation], text: str) -> None:
    """Give a defined operation its assembly format.

    Where the format is wrong, parsing or printing an operation raises a `PyRDLOpDefinitionError`.
    """
    definition = cls.get_irdl_definition()
    cls.assembly_format = definition.assembly_format = text

    @cache
    def program() -> FormatProgram:
        try:
            return FormatProgram.from_str(text, definition)
        except ParseError as error:
            fact = f"{definition.name}: error in the assembly format: {error}"
            raise PyRDLOpDefinitionError(fact) from error

    @classmethod
    def parse(cls: type[OpT], parser: Parser) -> OpT:
        return program().parse(parser, cls)

    def print(self: IRDLOperation, printer: Printer) -> None:
        program().print(printer, self)

    setattr(cls, "parse", parse)  # noqa: B010
    setattr(cls, "print", print)  # noqa: B010
