"""Errors in a model under construction, with their locations in the user's program."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from xdsl.dialects.builtin import FileLineColLoc, IntAttr, LocationAttr, NameLoc, StringAttr
from xdsl.ir import Operation

from ..core.errors import InputError, explain
from ..dialects.graph import op_builder

_FOLDERS = {os.path.dirname(file) for file in (__file__, op_builder.__file__)}
"""Of the builder and of the methods that are operators."""


def input_error(
    subject: str,
    fact: str,
    expected: object = None,
    got: object = None,
    *,
    hint: str | None = None,
) -> InputError:
    """An error of a call by the user, in uniform wording."""
    return InputError(explain(subject, fact, expected=expected, got=got, hint=hint))


def caller_location() -> LocationAttr:
    """The current line of the user's program: the innermost one outside the builder."""
    frame = sys._getframe(1)
    while frame.f_back is not None and os.path.dirname(frame.f_code.co_filename) in _FOLDERS:
        frame = frame.f_back
    file = StringAttr(_file_name(frame.f_code.co_filename))
    return FileLineColLoc(file, IntAttr(frame.f_lineno), IntAttr(1))


def _file_name(path: str) -> str:
    """The name of a file of the user's program; of a cell of a notebook its prompt, ``In[3]``."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is not None and hasattr(shell.compile, "format_code_name"):
        cell = shell.compile.format_code_name(path)
        if cell is not None:
            return cell[1]
    return Path(path).name


def reworded(error: Exception, operator: type[Operation], location: LocationAttr) -> InputError:
    """The error of an operator, as one line with its location in the model."""
    if isinstance(error, InputError):
        return error
    text = " ".join(str(error).partition("\n\n")[0].split())
    text = text.removeprefix("Operation does not verify: ")
    if not text.startswith(operator.name):
        text = f"{operator.name}: {text}"
    where = ""
    if isinstance(location, FileLineColLoc):
        where = f'node "{location.filename.data}:{location.line.data}"'
    elif isinstance(location, NameLoc):
        where = f'node "{location.desc.data}"'
    return InputError(text if where in text else f"{text} ({where})")
