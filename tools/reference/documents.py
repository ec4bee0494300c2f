"""Docstrings of operations: prose, and lines of IR."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from typing import Any

from .markdown import code


@dataclass(frozen=True)
class Document:
    """What the docstring of an operation says.

    `summary` is its first paragraph, `prose` all of it as Markdown, `examples` its blocks of IR.
    """

    summary: str
    prose: str
    examples: tuple[str, ...]


def document_of(documented: Any) -> Document:
    """The docstring of an operation or attribute.

    Paragraphs that begin with the operation itself, or with its results, are IR, as are blocks
    marked so.
    """
    text = inspect.cleandoc(documented.__doc__ or "")
    begins = re.compile(rf"(?:%[^=]+ = )?{re.escape(documented.name)}\b")
    paragraphs, examples = list[str](), list[str]()
    # Empty lines separate paragraphs; a fenced block is one.
    parts = list[str]()
    for part in re.split(r"(^```.*?^```$)", text, flags=re.DOTALL | re.MULTILINE):
        parts += [part] if part.startswith("```") else re.split(r"\n\s*\n", part)
    for paragraph in (part.strip("\n") for part in parts if part.strip()):
        fenced = re.fullmatch(r"```mlir\n(.*?)```", paragraph, re.DOTALL)
        if fenced or begins.match(paragraph):
            ir = fenced[1].rstrip() if fenced else paragraph
            examples.append(ir)
            paragraphs.append(code(ir, "mlir"))
        else:
            paragraphs.append(paragraph)
    return Document(" ".join(paragraphs[0].split()), "\n\n".join(paragraphs), tuple(examples))
