"""The errors that the public API raises, and their uniform wording."""

from __future__ import annotations

from pathlib import Path
from typing import Any


class StepwellError(Exception):
    """Base class of every error that Stepwell raises on purpose."""


class InputError(StepwellError, ValueError):
    """An argument of a call is wrong: shape, dtype, rank, layout, index range, count."""


class ImportModelError(StepwellError):
    """A model file, a model object or MLIR text cannot be imported."""


class CompileError(StepwellError):
    """A module cannot be compiled."""


class UnsupportedError(CompileError):
    """Something valid that this version cannot compile."""


class InternalError(CompileError):
    """A defect of the compiler: a pass crashed, or produced invalid IR.

    `pass_name` is that of the pass, `reproducer` the file that shows it, or None if none could be
    written.
    """

    pass_name: str = ""
    reproducer: Path | None = None


class MiscompilationError(CompileError):
    """A check found that a pass changed the results of a program.

    `pass_name` and `stage` are those of the pass, `ulp` is how far a result was moved (see
    `Change`) and `limit` how far it might have been (in the units of `core.budgets`),
    `function`, `operation` and `nodes` say where the difference shows first, `call` in which call
    of the function, from 1, and `inputs` are what the program was run on.
    """

    stage: str
    pass_name: str
    ulp: float
    limit: float
    function: str | None
    call: int
    operation: str | None
    nodes: tuple[str, ...]
    inputs: tuple[Any, ...]


class TargetError(StepwellError):
    """A target name is unknown, or the host cannot run code made for it."""


_SHOWN = 1000


def explain(
    subject: str,
    fact: str,
    *,
    expected: object = None,
    got: object = None,
    origin: str | None = None,
    hint: str | None = None,
) -> str:
    """Word an error: ``<subject>: <fact>, expected <x>, got <y> (<origin>); <hint>``.

    Of what was got, which may be anybody's text, the first `_SHOWN` characters are shown.

    >>> explain("graph.dense", "inner dimensions differ", expected=784, got=768,
    ...         origin='node "fc1"')
    'graph.dense: inner dimensions differ, expected 784, got 768 (node "fc1")'
    """
    text = f"{subject}: {fact}"
    if expected is not None:
        text += f", expected {expected}"
    if got is not None:
        given = str(got)
        text += f", got {given if len(given) <= _SHOWN else given[:_SHOWN] + '...'}"
    if origin:
        text += f" ({origin})"
    if hint:
        text += f"; {hint}"
    return text
