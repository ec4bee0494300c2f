"""The prefetch of `memref`, which xDSL lacks."""

from __future__ import annotations

from xdsl.dialects.builtin import IndexType, IntegerAttr, MemRefType, i1, i32
from xdsl.ir import Attribute
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, prop_def, var_operand_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from ...core.typed import memref_type


@irdl_op_definition
class PrefetchOp(IRDLOperation):
    """`memref.prefetch %x[%i, %j], read, locality<3>, data : memref<400x400xf32>`, a hint.

    The locality ranges from 0, read once, to 3, keep in the nearest cache.
    """

    name = "memref.prefetch"

    memref = operand_def(MemRefType)
    indices = var_operand_def(IndexType())
    is_write = prop_def(IntegerAttr, prop_name="isWrite")
    locality = prop_def(IntegerAttr, prop_name="localityHint")
    is_data = prop_def(IntegerAttr, prop_name="isDataCache")

    def verify_(self) -> None:
        rank = memref_type(self.memref).get_num_dims()
        if len(self.indices) != rank:
            raise VerifyException(
                f"{self.name}: wrong number of indices, expected {rank}, got {len(self.indices)}"
            )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.memref)
        with printer.in_square_brackets():
            printer.print_list(self.indices, printer.print_ssa_value)
        how = "write" if self.is_write.value.data else "read"
        where = "data" if self.is_data.value.data else "instr"
        printer.print_string(f", {how}, locality<{self.locality.value.data}>, {where}")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.memref.type)

    @classmethod
    def parse(cls, parser: Parser) -> PrefetchOp:
        memref = parser.parse_unresolved_operand()
        indices = parser.parse_comma_separated_list(
            parser.Delimiter.SQUARE, parser.parse_unresolved_operand
        )
        parser.parse_punctuation(",")
        how = parser.expect(lambda: _one_of(parser, "read", "write"), "read or write")
        parser.parse_punctuation(",")
        parser.parse_keyword("locality")
        with parser.in_angle_brackets():
            locality = parser.parse_integer()
        parser.parse_punctuation(",")
        where = parser.expect(lambda: _one_of(parser, "data", "instr"), "data or instr")
        attrs = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        source = parser.resolve_operand(memref, parser.parse_type())
        places = [parser.resolve_operand(index, IndexType()) for index in indices]
        op = cls.create(
            operands=[source, *places],
            properties=prefetch_properties(how == "write", locality, where == "data"),
        )
        op.attributes |= attrs
        return op


def _one_of(parser: Parser, *keywords: str) -> str | None:
    found = (word for word in keywords if parser.parse_optional_keyword(word) is not None)
    return next(found, None)


def prefetch_properties(is_write: bool, locality: int, is_data: bool) -> dict[str, Attribute]:
    """The properties of a `memref.prefetch`."""
    return {
        "isWrite": IntegerAttr(int(is_write), i1),
        "localityHint": IntegerAttr(locality, i32),
        "isDataCache": IntegerAttr(int(is_data), i1),
    }
