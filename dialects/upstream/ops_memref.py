"""Operations of `memref` that xDSL lacks or does not verify."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import memref as memref_dialect
from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, IntegerAttr, MemRefType, i1, i32
from xdsl.ir import Attribute
from xdsl.irdl import IRDLOperation, operand_def, prop_def, var_operand_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from ...core.ir.definitions import irdl_op_definition
from ...core.ir.typed import memref_type


class ReinterpretCastOp(memref_dialect.ReinterpretCastOp):
    """`%r = memref.reinterpret_cast %x to offset: [0], sizes: [%n, 4], strides: [4, 1] : ...`.

    xDSL's does not compare element types, nor offset and strides with the layout of the result.
    """

    name = "memref.reinterpret_cast"

    def verify_(self) -> None:
        super().verify_()
        source, result = memref_type(self.source), memref_type(self.result)
        if source.element_type != result.element_type:
            raise VerifyException(
                f"{self.name}: element types differ, expected {source.element_type}, "
                f"got {result.element_type}"
            )
        strides = result.get_strides()
        self._compare("offset", self.static_offsets.get_values(), [result.get_offset()])
        known = [None] * result.get_num_dims() if strides is None else strides
        self._compare("strides", self.static_strides.get_values(), known)

    def _compare(self, what: str, got: Sequence[int], expected: Sequence[int | None]) -> None:
        """Compare with the layout of the result, where None is a dynamic number."""
        pairs = zip(got, expected, strict=False)
        if len(got) != len(expected) or any(b is not None and a != b for a, b in pairs):
            raise VerifyException(
                f"{self.name}: {what} of another layout, "
                f"expected {_numbers(expected)}, got {_numbers(got)}"
            )


def _numbers(values: Sequence[int | None]) -> str:
    names = ("?" if value in (None, DYNAMIC_INDEX) else str(value) for value in values)
    return f"[{', '.join(names)}]"


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
