"""xDSL's lexer without its exponential time on a string that is not closed.

The pattern of a string literal repeats a repetition, so that one missing quote makes the
lexer try every way to split the rest of the line: a line of 40 characters takes minutes. The
same pattern with possessive quantifiers accepts the same strings and never goes back.
"""

from __future__ import annotations

import re

from xdsl.utils.mlir_lexer import MLIRLexer


class LinearLexer(MLIRLexer):
    """A lexer that takes linear time."""

    _unescaped_characters_regex = re.compile(r'"(?:[^"\\\n\v\f]++|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*+"')
