"""Text form of loops, and of affine maps applied to index values: ``(d0)[s0] -> (d0 + s0)(%i)``.

xDSL's declarative format has no affine maps outside of attributes, and its affine
subscripts (``%x[%i * 4]``) no symbols, which here are the axes of a block.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import AffineMapAttr, IndexType
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr, AffineMap
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.parser.affine_parser import AffineParser
from xdsl.printer import Printer

from ...core.algebra.affine import dims_in, with_dims
from .attrs import Combine

INDEX = IndexType()


def parse_applied_map(parser: Parser) -> tuple[AffineMapAttr, list[UnresolvedOperand]]:
    """Read a map and the operands it is applied to; operands are resolved by the caller."""
    reader = AffineParser(parser._parser_state)  # pyright: ignore[reportPrivateUsage]
    map = reader.parse_affine_map()
    operands = parser.parse_comma_separated_list(
        parser.Delimiter.PAREN, parser.parse_unresolved_operand
    )
    if len(operands) != map.num_dims:
        parser.raise_error(f"map has {map.num_dims} dimensions, but {len(operands)} operands")
    return AffineMapAttr(map), operands


def print_applied_map(printer: Printer, map: AffineMapAttr, operands: Sequence[SSAValue]) -> None:
    """Write a map and the operands it is applied to."""
    printer.print_string(f"{map.data}(")
    printer.print_list(operands, printer.print_ssa_value)
    printer.print_string(")")


def parse_bound(parser: Parser) -> tuple[AffineMapAttr, list[SSAValue]]:
    """Read an upper bound: ``128``, ``%n`` or ``min (d0) -> (12, d0 - 4)(%n)``."""
    number = parser.parse_optional_integer(allow_boolean=False, allow_negative=False)
    if number is not None:
        return AffineMapAttr(AffineMap.constant_map(number)), []
    operand = parser.parse_optional_unresolved_operand()
    if operand is not None:
        return AffineMapAttr(AffineMap.identity(1)), [parser.resolve_operand(operand, INDEX)]
    parser.parse_keyword("min")
    map, operands = parse_applied_map(parser)
    return map, [parser.resolve_operand(o, INDEX) for o in operands]


def print_bound(printer: Printer, map: AffineMapAttr, operands: Sequence[SSAValue]) -> None:
    """Write an upper bound in its shortest form."""
    results = map.data.results
    if len(results) == 1 and isinstance(results[0], AffineConstantExpr):
        printer.print_int(results[0].value)
    elif results == (AffineDimExpr(0),) and len(operands) == 1:
        printer.print_ssa_value(operands[0])
    else:
        printer.print_string("min ")
        print_applied_map(printer, map, operands)


def parse_row(
    parser: Parser,
) -> tuple[list[UnresolvedOperand], AffineMapAttr, list[SSAValue]]:
    """Read a row of a matrix: ``of %indptr, %indices row (d0) -> (d0)(%i)``."""
    parser.parse_keyword("of")
    arrays = [parser.parse_unresolved_operand()]
    parser.parse_punctuation(",")
    arrays.append(parser.parse_unresolved_operand())
    parser.parse_keyword("row")
    row, operands = parse_applied_map(parser)
    return arrays, row, [parser.resolve_operand(o, INDEX) for o in operands]


def print_row(
    printer: Printer, matrix: Sequence[SSAValue], row: AffineMapAttr, operands: Sequence[SSAValue]
) -> None:
    """Write a row of a matrix."""
    printer.print_string(" of ")
    printer.print_list(matrix, printer.print_ssa_value)
    printer.print_string(" row ")
    print_applied_map(printer, row, operands)


def parse_carried(
    parser: Parser,
) -> tuple[list[Parser.Argument], list[SSAValue], list[Combine]]:
    """Read the carried values of a loop, if any: ``carry(%acc = %b : f32 add, %h = %z : f32)``."""
    arguments: list[Parser.Argument] = []
    inits: list[SSAValue] = []
    combines: list[Combine] = []

    def carried() -> None:
        argument = parser.parse_argument(expect_type=False)
        parser.parse_punctuation("=")
        init = parser.parse_unresolved_operand()
        parser.parse_punctuation(":")
        kind = parser.parse_type()
        arguments.append(argument.resolve(kind))
        inits.append(parser.resolve_operand(init, kind))
        combine = parser.parse_optional_str_enum(Combine)
        if combine is not None:
            combines.append(combine)

    if parser.parse_optional_keyword("carry"):
        parser.parse_comma_separated_list(parser.Delimiter.PAREN, carried)
    return arguments, inits, combines


def print_carried(
    printer: Printer,
    carried: Sequence[SSAValue],
    inits: Sequence[SSAValue],
    combines: Sequence[Combine],
) -> None:
    """Write the carried values of a loop, with the combiners of a reduction."""

    def one(number: int) -> None:
        printer.print_ssa_value(carried[number])
        printer.print_string(" = ")
        printer.print_ssa_value(inits[number])
        printer.print_string(" : ")
        printer.print_attribute(inits[number].type)
        if number < len(combines):
            printer.print_string(f" {combines[number]}")

    printer.print_string("carry(")
    printer.print_list(range(len(carried)), one)
    printer.print_string(") ")


def compress(
    exprs: Sequence[AffineExpr], operands: Sequence[SSAValue], num_symbols: int = 0
) -> tuple[AffineMap, list[SSAValue]]:
    """The map of `exprs` over just those operands that they use, each operand once.

    Args:
        exprs: expressions whose dimension `i` stands for `operands[i]`.
        operands: index values, some of which may be unused.
        num_symbols: how many symbols (axes) the map has; they keep their numbers.
    """
    unique: dict[SSAValue, AffineExpr] = {}
    dims: dict[int, AffineExpr] = {}
    for expr in exprs:
        for position in dims_in(expr):
            operand = operands[position]
            if operand not in unique:
                unique[operand] = AffineExpr.dimension(len(unique))
            dims[position] = unique[operand]
    results = tuple(with_dims(expr, dims) for expr in exprs)
    return AffineMap(len(unique), num_symbols, results), list(unique)
