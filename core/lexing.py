"""xDSL's lexer with corrections.

The pattern of a string literal nests quantifiers: for a missing quote, the lexer tries every split
of the rest of the line, which takes minutes for 40 characters. The same pattern with
possessive quantifiers accepts the same strings and never backtracks.

A string with characters that are not ASCII is printed as the bytes of their UTF-8. The lexer reads
these back as a literal of bytes, which is no string in names, attributes and locations.
"""

from __future__ import annotations

import re

from xdsl.utils.lexer import Position, Token
from xdsl.utils.mlir_lexer import MLIRLexer, MLIRToken, MLIRTokenKind, StringLiteral


class LinearLexer(MLIRLexer):
    """A lexer that takes linear time, and reads what is UTF-8 as strings."""

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
