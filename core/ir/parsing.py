"""Reading MLIR text: xDSL's lexer and parser with corrections.

Invalid text raises a `ParseError` or a `DiagnosticException`, nothing else. The nesting of brackets
is limited to keep Python's stack from overflowing, here and in later walks over the IR.

A splat with more than `LARGEST_LITERAL` elements is refused, because xDSL expands it.

MLIR prints a floating-point number that has no exact short decimal form, and an infinity or a
NaN, as its bits in hexadecimal. xDSL does so as well, and reads that back for a single number, but
takes it for an integer among the elements of a dense attribute: a vector of minus infinities became
a vector of 4286578688.
"""

from __future__ import annotations

import difflib
import math
import re
from bisect import bisect_right
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NoReturn

from xdsl.context import Context
from xdsl.dialects.builtin import (
    AnyDenseElement,
    AnyFloat,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IntegerAttr,
    ModuleOp,
    RankedStructure,
    i64,
)
from xdsl.ir import AttributeInvT, Operation, SSAValue
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.parser.generic_parser import ParserState
from xdsl.utils.exceptions import DiagnosticException, ParseError
from xdsl.utils.lexer import Input, Position, Span, Token
from xdsl.utils.mlir_lexer import MLIRLexer, MLIRToken, MLIRTokenKind, StringLiteral

from ..errors import first_line
from ..files.reading import STRING, ReadingError, too_deep
from ..files.versions import IR_TEXT, KEY, stated_in
from ..plugins import late_packages
from .provenance import placed

LARGEST_LITERAL = 1 << 26
"""The maximum number of elements of a dense attribute; larger arrays are weights."""

DEEPEST_TEXT = 64
"""The maximum nesting of brackets: the parser makes up to ten calls for each."""

_BRACKETS = re.compile(rf"{STRING}|//[^\n]*|->|>=|<=|[][(){{}}<>]")


_NUMBERS = re.compile(r"[%^]_\d")
"""Names like ``%_7``, of which xDSL takes the number off and keeps an empty hint, which no copy may
have."""


class LinearLexer(MLIRLexer):
    """xDSL's lexer in linear time, which reads what is UTF-8 as strings.

    xDSL's pattern of a string literal nests quantifiers: for a missing quote, it tries every split
    of the rest of the line, which takes minutes for 40 characters. The same pattern with possessive
    quantifiers accepts the same strings and never backtracks.

    A string with characters that are not ASCII is printed as the bytes of their UTF-8. xDSL reads
    these back as a literal of bytes, which is no string in names, attributes and locations.
    """

    _unescaped_characters_regex = re.compile(r'"(?:[^"\\\n\v\f]++|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*+"')

    def _lex_string_literal(self, start_pos: Position) -> MLIRToken:
        token = super()._lex_string_literal(start_pos)
        if token.kind is MLIRTokenKind.BYTES_LIT and _is_text(token.span):
            return Token(MLIRTokenKind.STRING_LIT, token.span)
        return token


def _is_text(literal: object) -> bool:
    """Whether the bytes of a literal are UTF-8."""
    assert isinstance(literal, StringLiteral)
    try:
        literal.bytes_contents.decode()
    except UnicodeDecodeError:
        return False
    return True


def _drop_empty_hints(module: ModuleOp) -> None:
    for op in module.walk():
        blocks = [block for region in op.regions for block in region.blocks]
        arguments = [argument for block in blocks for argument in block.args]
        for named in (*op.results, *blocks, *arguments):
            if named.name_hint == "":
                named.name_hint = None


def unknown_operation(ctx: Context, name: str) -> str:
    """What is wrong with the name of an operation, and the nearest names."""
    dialect, _, _ = name.partition(".")
    known = sorted(ctx.registered_dialect_names)
    fact = f"Operation {name} is not registered"
    if dialect not in known:
        if late := late_packages():
            return f"{fact}; {late}"
        near = difflib.get_close_matches(dialect, known, 3)
        return fact + (f"; nearest dialects: {', '.join(near)}" if near else "")
    loaded = ctx.get_optional_dialect(dialect)
    names = [op.name for op in loaded.operations] if loaded is not None else []
    near = difflib.get_close_matches(name, names, 3)
    return fact + (f"; nearest names: {', '.join(near)}" if near else "")


_HEX = ("0x", "0X")
_NO_OPERATION = "Could not parse entire input!"
"""The message of xDSL for text in which an operation is missing."""
_UNDEFINED = "values used but not defined"
"""The message of xDSL at the end of text in which a value is missing."""


class _Element(Parser._TensorLiteralElement):  # pyright: ignore[reportPrivateUsage]
    """An element of a dense attribute, before its type is known."""

    def to_type(self, parser: Any, type: Any) -> Any:
        """The element as a Python number; hexadecimal digits are the bits of a float."""
        if not isinstance(type, AnyFloat) or self.span.text[:2] not in _HEX:
            return super().to_type(parser, type)
        bits = int(self.span.text, 16)
        if bits >> (8 * type.size):
            parser.raise_error(f"hexadecimal number is too large for {type}", self.span)
        return type.unpack(bits.to_bytes(type.size, "little"), 1)[0]


class MlirParser(Parser):
    """A parser of MLIR text, which also keeps the parts of the text besides the module.

    `external_resources` are those of the metadata at the end of the text, by name. After
    `keep_places`, `places` has the position of each operation in the text, as ``file:line:column``,
    an operation without a location in a file has it as its location, as with `mlir-opt`, and
    `failed_place` is where the innermost operation begins that could not be created: line, column.
    """

    failed_place: tuple[int, int] | None = None
    places: Mapping[Operation, str] = MappingProxyType({})
    external_resources: Mapping[str, Mapping[str, str | bool]] = MappingProxyType({})
    _line_starts: list[int] | None = None
    _line_offset = 0

    _TensorLiteralElement = _Element

    def __init__(self, ctx: Context, input: str, name: str = "<unknown>") -> None:
        # The parser reads its first token at once: start over with this lexer.
        super().__init__(ctx, "", name)
        self._first_uses = dict[str, Span[str]]()
        self._parser_state = ParserState(LinearLexer(Input(input, name)))

    def parse_module(self, allow_implicit_module: bool = True) -> ModuleOp:
        """The module of the text; text of an older version is upgraded first.

        Raises:
            ParseError: if the text is malformed, or states an unsupported version.
            DiagnosticException: if an operation or an attribute cannot be created.
        """
        place = too_deep(_BRACKETS, self._current_token.span.input.content, DEEPEST_TEXT)
        if place is not None:
            fact = f"nested too deeply, expected at most {DEEPEST_TEXT} brackets"
            self.raise_error(fact, place, place + 1)
        stated = self._bring_up()
        try:
            module = super().parse_module(allow_implicit_module)
            if KEY in module.attributes:
                if not stated:
                    self.raise_error(f"wrong {KEY}, expected {IR_TEXT.version} : i64")
                module.attributes[KEY] = IntegerAttr(IR_TEXT.version, i64)
            if _NUMBERS.search(self._current_token.span.input.content):
                _drop_empty_hints(module)
            return module
        except ParseError as error:
            if error.msg == _NO_OPERATION:
                error.msg = "expected an operation"
            elif error.msg.startswith(_UNDEFINED):
                name = next(iter(self.forward_ssa_references))
                self.raise_error(f"%{name} is used but not defined", self._first_uses[name])
            raise
        except DiagnosticException:
            raise
        except RecursionError as error:
            self._refuse("nested too deeply", error)
        except OverflowError as error:
            self._refuse("a number is too large for its type", error)
        except Exception as error:
            # Parts of xDSL raise Python's own exceptions on unexpected text (KeyError,
            # AssertionError, TypeError, ...).
            self._refuse(f"cannot parse: {first_line(error)}", error)

    def parse_optional_builtin_int_or_float_attr(self) -> IntegerAttr | FloatAttr | None:
        """A number with its type, if there is one; digits of a number that is too large for a
        float are an error, as in a dense attribute, and not infinity."""
        digits = self._current_token.text
        found = super().parse_optional_builtin_int_or_float_attr()
        if isinstance(found, FloatAttr) and math.isinf(found.value.data) and digits[:2] not in _HEX:
            raise OverflowError(f"{digits} as {found.type}")
        return found

    def _bring_up(self) -> bool:
        """Upgrade text that states an older version; return whether it states a version."""
        input = self._current_token.span.input
        stated = stated_in(input.content)
        if stated is None:
            return False
        try:
            text = IR_TEXT.upgraded(input.content, int(stated["version"]))
        except ReadingError as error:
            self.raise_error(f"{KEY}: {error}", stated.start("version"), stated.end("version"))
        if text != input.content:
            self._parser_state = ParserState(LinearLexer(Input(text, input.name)))
        return True

    def _refuse(self, fact: str, error: Exception) -> NoReturn:
        """Refuse the text at the current token, because of an exception of xDSL."""
        raise ParseError(self._current_token.span, fact) from error

    def keep_places(self, line_offset: int = 0) -> None:
        """Keep the positions of operations, in a text after `line_offset` other lines."""
        text = self._current_token.span.input.content
        self.places = {}
        self._line_starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self._line_offset = line_offset

    def resolve_operand(
        self, operand: UnresolvedOperand, type: AttributeInvT
    ) -> SSAValue[AttributeInvT]:
        """The value of an operand, whose place is kept until it is defined."""
        name = operand.operand_name
        if name not in self.ssa_values and name not in self.forward_ssa_references:
            self._first_uses[name] = operand.span
        return super().resolve_operand(operand, type)

    def parse_operation(self) -> Operation:
        """An operation, with its position if positions are kept."""
        if self._line_starts is None:
            return super().parse_operation()
        span = self._current_token.span
        before = bisect_right(self._line_starts, span.start)
        line, column = before + self._line_offset, span.start - self._line_starts[before - 1] + 1
        try:
            op = super().parse_operation()
        except DiagnosticException:
            self.failed_place = self.failed_place or (line, column)
            raise
        assert isinstance(self.places, dict)
        self.places[op] = f"{span.input.name}:{line}:{column}"
        op.location = placed(op.location, span.input.name, line, column)
        return op

    def _get_op_by_name(self, name: str) -> type[Operation]:
        """The class of an operation.

        Raises:
            ParseError: if there is none, with the nearest names.
        """
        found = self.ctx.get_optional_op(name, dialect_stack=self._parser_state.dialect_stack)
        if found is None:
            end = self._current_token.span.start
            content = self._current_token.span.input.content
            start = max(content.rfind(name, 0, end), 0)
            self.raise_error(unknown_operation(self.ctx, name), start, start + len(name))
        return found

    def parse_dense_int_or_fp_elements_attr(
        self, type: RankedStructure[AnyDenseElement] | None
    ) -> DenseIntOrFPElementsAttr:
        """An attribute ``dense<...>``; unless given, its type follows in the text."""
        if type is not None:
            self._check_size(type, self.pos)
        return super().parse_dense_int_or_fp_elements_attr(type)

    def _parse_dense_literal_type(self) -> RankedStructure[AnyDenseElement]:
        start = self.pos
        type = super()._parse_dense_literal_type()
        self._check_size(type, start)
        return type

    def _parse_external_resources(self) -> None:
        groups = self.parse_comma_separated_list(self.Delimiter.BRACES, self._parse_external_group)
        self.external_resources = {**self.external_resources, **dict(groups)}

    def _parse_external_group(self) -> tuple[str, Mapping[str, str | bool]]:
        name = self.parse_identifier()
        self.parse_punctuation(":")
        braces = self.Delimiter.BRACES
        return name, dict(self.parse_comma_separated_list(braces, self._parse_external_entry))

    def _parse_external_entry(self) -> tuple[str, str | bool]:
        name = self.parse_identifier()
        self.parse_punctuation(":")
        value = self.parse_optional_boolean()
        return name, self.parse_str_literal() if value is None else value

    def _check_size(self, type: RankedStructure[AnyDenseElement], start: int) -> None:
        count = math.prod(type.get_shape())
        if count > LARGEST_LITERAL:
            expected = f"{LARGEST_LITERAL} elements or fewer"
            fact = f"the literal is too large, expected {expected}, got {count}"
            self.raise_error(fact, start, start + 1)
