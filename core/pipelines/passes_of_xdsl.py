"""Passes of xDSL raise Python's own exceptions for what users write: here they become errors.

Such a pass asserts that a file exists, and decodes and parses it without its name. Options whose
names end in `-file` name files of text.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager

from xdsl.passes import ModulePass
from xdsl.utils.exceptions import InterpretationError, ParseError, PassFailedException

from ..errors import explain, first_line
from ..files.reading import ReadingError, read_text

_FILE = "_file"


@contextmanager
def failures_worded(step: ModulePass) -> Iterator[None]:
    """Turn exceptions of a pass of xDSL that the user can cause into errors that name the file.

    Raises:
        PassFailedException: if a file that an option names is not text, or the pass cannot use it.
    """
    inner = getattr(step, "step", step)  # of a `NestedPass`
    if type(inner).__module__.partition(".")[0] != "xdsl":
        yield
        return
    file = _file_of(inner, step.name)
    try:
        yield
    except ParseError as error:
        where = error.span.get_location()
        place = f"{file or where.file}:{where.line}:{where.col}"
        fact = f"cannot read {place}: {' '.join(error.msg.split())}"
        raise PassFailedException(explain(step.name, fact)) from error
    except (ValueError, AssertionError, InterpretationError) as error:
        if file is None and isinstance(error, AssertionError):
            raise
        about = "" if file is None else f"cannot use {file}: "
        raise PassFailedException(explain(step.name, f"{about}{first_line(error)}")) from error


def _file_of(step: ModulePass, name: str) -> str | None:
    """The file that an option of a pass names, which is read here once."""
    for field in dataclasses.fields(step):
        path = getattr(step, field.name) if field.name.endswith(_FILE) else None
        if path is None:
            continue
        try:
            read_text(path)
        except ReadingError as error:
            option = field.name.replace("_", "-")
            fact = f"{option}: cannot read {path}: {error}"
            raise PassFailedException(explain(name, fact)) from error
        return path
    return None
