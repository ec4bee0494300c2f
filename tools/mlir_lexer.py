"""Colours for the text of MLIR, wherever Pygments makes them: the documentation, notebooks.

Pygments finds the lexer by the entry point `pygments.lexers`, as ```mlir in Markdown.
"""

from __future__ import annotations

from typing import ClassVar

from pygments.lexer import RegexLexer, bygroups
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Text

_NAME = r"[A-Za-z_][\w$.-]*"


class MlirLexer(RegexLexer):
    """Operations, values, symbols, types and attributes of any dialect."""

    name = "MLIR"
    aliases: ClassVar = ["mlir"]
    filenames: ClassVar = ["*.mlir"]
    mimetypes: ClassVar = ["text/x-mlir"]
    url = "https://mlir.llvm.org/docs/LangRef/"

    tokens: ClassVar = {
        "root": [
            (r"\s+", Text),
            (r"//.*$", Comment.Single),
            (r'"(?:\\.|[^"\\])*"', String),
            (r"%[\w$.-]+(?:#\d+)?", Name.Variable),
            (rf"@(?:{_NAME}|\"[^\"]*\")", Name.Function),
            (r"\^[\w$.-]+", Name.Label),
            (rf"[#!]{_NAME}", Name.Attribute),
            (r"(?:tensor|memref|vector)(?=<)", Keyword.Type),
            (r"(?:[su]?i|bf|f)\d+\b|index\b|none\b", Keyword.Type),
            # Sizes before an element type, as in 4x?x8xf32.
            (r"(\d+|\?)(x)(?=\d|\?|[a-z])", bygroups(Number.Integer, Punctuation)),
            (r"\.\.\.", Comment),
            (r"-?\d+\.\d*(?:[eE][-+]?\d+)?", Number.Float),
            (r"0x[0-9a-fA-F]+|-?\d+", Number.Integer),
            (r"[a-z_]\w*(?:\.[\w$]+)+", Keyword),
            (r"(?:true|false|attributes|loc|to|floordiv|ceildiv|mod)\b", Keyword.Constant),
            (_NAME, Name),
            (r"->|==|>=|<=|[-+*=]", Operator),
            (r".", Punctuation),
        ],
    }
