"""xDSL's lexer without its exponential time on unterminated strings.

The pattern of a string literal nests quantifiers: for a missing quote, the lexer tries every split
of the rest of the line, which takes minutes for 40 characters. The same pattern with
possessive quantifiers accepts the same strings and never backtracks.
"""

from __future__ import annotations

import re

from xdsl.utils.mlir_lexer import MLIRLexer


class LinearLexer(MLIRLexer):
    """A lexer that takes linear time."""

    _unescaped_characters_regex = re.compile(r'"(?:[^"\\\n\v\f]++|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*+"')
