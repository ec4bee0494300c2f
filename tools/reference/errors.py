"""The kinds of errors, from their docstrings."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

from ...core import errors
from .markdown import table


def kinds_of_errors() -> str:
    """A table of the errors that are raised on purpose, with what each of them is derived from."""
    return table(("error", "is a", "raised where"), _rows())


def _rows() -> Iterator[tuple[str, str, str]]:
    for name, kind in vars(errors).items():
        if inspect.isclass(kind) and issubclass(kind, errors.StepwellError):
            bases = ", ".join(f"`{base.__name__}`" for base in kind.__bases__)
            yield f"`{name}`", bases, inspect.getdoc(kind) or ""
