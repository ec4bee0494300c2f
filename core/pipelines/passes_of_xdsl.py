"""Passes of xDSL raise Python's own exceptions for what users write: here they become errors.

Such a pass asserts that a file exists, and decodes and parses it without its name. Options whose
names end in `-file` name files of text. One that applies patterns does nothing where it finds none.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import InterpretationError, ParseError, PassFailedException

from ..errors import explain, first_line
from ..files.reading import ReadingError, read_text
from ..ir.symbols import symbol_of

_FILE = "_file"
_APPLIES = {
    "apply-pdl": ("pdl.pattern", None),
    "apply-eqsat-pdl": ("pdl.pattern", None),
    "apply-pdl-interp": ("pdl_interp.func", "matcher"),
    "apply-eqsat-pdl-interp": ("pdl_interp.func", "matcher"),
}
"""The operation that holds what a pass applies, and its name, if it is found by that."""


@contextmanager
def failures_worded(ctx: Context, op: ModuleOp, step: ModulePass) -> Iterator[None]:
    """Turn exceptions of a pass of xDSL that the user can cause into errors that name the file.

    Raises:
        PassFailedException: if a file that an option names is not text, or the pass cannot use it,
            or there is nothing that the pass could apply.
    """
    inner = getattr(step, "step", step)  # of a `NestedPass`
    if type(inner).__module__.partition(".")[0] != "xdsl":
        yield
        return
    file, text = _file_of(inner, step.name)
    try:
        if inner.name in _APPLIES:
            _check_applies(step, op if text is None else Parser(ctx, text).parse_module(), file)
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


def _check_applies(step: ModulePass, given: ModuleOp, file: str | None) -> None:
    """Demand that a module has what a pass applies."""
    kind, name = _APPLIES[getattr(step, "step", step).name]
    if any(op.name == kind and name in (None, symbol_of(op)) for op in given.walk()):
        return
    wanted = kind if name is None else f"{kind} @{name}"
    fact = f"no patterns in {'the module' if file is None else file}"
    raise PassFailedException(explain(step.name, fact, expected=wanted, got="none"))


def _file_of(step: ModulePass, name: str) -> tuple[str, str] | tuple[None, None]:
    """The file that an option of a pass names, and its text."""
    for field in dataclasses.fields(step):
        path = getattr(step, field.name) if field.name.endswith(_FILE) else None
        if path is None:
            continue
        try:
            return path, read_text(path)
        except ReadingError as error:
            option = field.name.replace("_", "-")
            fact = f"{option}: cannot read {path}: {error}"
            raise PassFailedException(explain(name, fact)) from error
    return None, None
