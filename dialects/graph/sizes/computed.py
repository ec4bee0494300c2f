"""Sizes that the program computes: a scalar that holds one, and its upper bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import IntAttr, NoneAttr, StringAttr
from xdsl.ir import Attribute, Operation, ParametrizedAttribute, SSAValue
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from ....core.algebra.dims import Dim
from ....core.errors import explain

RESULT, ARGUMENT = "result", "argument"
"""What holds a size that a call computes or needs."""


OUT_OF_RANGE = "a size is out of range"
DIFFERS = "a size that is computed differs from the declared one"
"""What is wrong with the number that a scalar holds."""


@dataclass(frozen=True)
class ComputedSize:
    """A size that is known once `value` is: between 0 and `bound`.

    `op` is the operation that needs or computes it. The value is a scalar of i64 that holds the
    size; or a tensor of control flow with that size along `axis`. Without a bound, memory for what
    has this size is allocated once it is known.
    """

    value: SSAValue
    bound: Dim | None
    op: Operation
    axis: int | None = None


def bounds_of(sizes: Mapping[str, ComputedSize]) -> dict[str, Dim]:
    """The upper bounds of those sizes that have one."""
    return {name: size.bound for name, size in sizes.items() if size.bound is not None}


@irdl_attr_definition
class SizeAttr(ParametrizedAttribute):
    """A size that is computed: `#graph.size<"size.0" in result 1 at_most "4*n">`, on a call.

    It has the symbol for it in the `dims` of the call, the result or the argument (`in argument 0`)
    that holds it, and an upper bound in symbols of the function around the call. A size that an
    argument holds may have none: `#graph.size<"size.0" in argument 0>`.
    """

    name = "graph.size"

    symbol: StringAttr
    holder: StringAttr
    number: IntAttr
    bound: StringAttr | NoneAttr

    @staticmethod
    def of(symbol: str, size: ComputedSize) -> SizeAttr:
        """The attribute of the operation of a computed size."""
        values: list[SSAValue] = [*size.op.operands, *size.op.results]
        number, made = values.index(size.value), size.value in size.op.results
        number -= len(size.op.operands) if made else 0
        holder = StringAttr(RESULT if made else ARGUMENT)
        return SizeAttr(StringAttr(symbol), holder, IntAttr(number), _text(size.bound))

    @property
    def upper(self) -> Dim | None:
        """The upper bound; None if there is none."""
        return Dim.parse(self.bound.data) if isinstance(self.bound, StringAttr) else None

    @property
    def is_result(self) -> bool:
        """Whether a result holds the size, and not an argument."""
        return self.holder.data == RESULT

    def with_sizes(self, sizes: Mapping[str, Dim]) -> SizeAttr:
        """The same with others substituted for sizes in the upper bound."""
        bound = None if self.upper is None else self.upper.substitute(sizes)
        return SizeAttr(self.symbol, self.holder, self.number, _text(bound))

    def passed_as(self, number: int) -> SizeAttr:
        """The same for another number of the argument."""
        return SizeAttr(self.symbol, self.holder, IntAttr(number), self.bound)

    def scalar(self, op: Operation) -> SSAValue:
        """The scalar of an operation that holds the size."""
        return (op.results if self.is_result else op.operands)[self.number.data]

    def verify(self) -> None:
        for text in (self.symbol, self.bound):
            if isinstance(text, NoneAttr):
                continue
            try:
                Dim.parse(text.data)
            except ValueError as error:
                expected = 'a text such as "2*n"'
                raise VerifyException(
                    explain(f"#{self.name}", "wrong size", expected=expected, got=text)
                ) from error

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string_literal(self.symbol.data)
            printer.print_string(f" in {self.holder.data} {self.number.data}")
            if isinstance(self.bound, StringAttr):
                printer.print_string(" at_most ")
                printer.print_string_literal(self.bound.data)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            symbol = parser.parse_str_literal()
            parser.parse_keyword("in")
            holder = parser.expect(
                lambda: (
                    parser.parse_optional_keyword(RESULT) or parser.parse_optional_keyword(ARGUMENT)
                ),
                f"{RESULT} or {ARGUMENT} expected",
            )
            number = parser.parse_integer(allow_boolean=False, allow_negative=False)
            bounded = parser.parse_optional_keyword("at_most") is not None
            bound = StringAttr(parser.parse_str_literal()) if bounded else NoneAttr()
        return [StringAttr(symbol), StringAttr(holder), IntAttr(number), bound]


def _text(bound: Dim | None) -> StringAttr | NoneAttr:
    return NoneAttr() if bound is None else StringAttr(str(bound))
