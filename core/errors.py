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

    `pass_name` is the name of the pass, `reproducer` the file that reproduces the defect, or None
    if it could not be written.
    """

    pass_name: str = ""
    reproducer: Path | None = None


class MiscompilationError(CompileError):
    """A check found that a pass changed the results of a program.

    `pass_name` and `stage` identify the pass. `ulp` is the error of the result (see `Change`),
    `limit` the allowed error (in the units of `core.pipelines.budgets`). `function`, `operation`
    and `nodes` locate the first difference, `call` is the number of the call of the function, from
    1, and `inputs` are the inputs of the program.
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


class EmulationError(StepwellError):
    """A kernel does what hardware does not report, or reports without saying where.

    `kind` is "race", "bounds", "alignment", "uninitialised", "barrier", "read-only", "division",
    "trap", "endless", or "stale": what a kernel takes was not copied to the device, or a result not
    back. `line` is the line of the instruction in the text, 0 if there is none, `source` the file
    and line that it was compiled from, if the text says, and `block` and `thread` are the
    coordinates of the thread.
    """

    kind: str
    line: int
    source: str | None
    block: tuple[int, int, int]
    thread: tuple[int, int, int]

    def __init__(
        self,
        message: str,
        kind: str = "",
        line: int = 0,
        source: str | None = None,
        block: tuple[int, int, int] = (0, 0, 0),
        thread: tuple[int, int, int] = (0, 0, 0),
    ) -> None:
        super().__init__(message)
        self.kind, self.line, self.source = kind, line, source
        self.block, self.thread = block, thread


class DeviceError(StepwellError):
    """A device cannot do what a call needs: memory, a launch, or a kernel that fails on it."""


class TargetError(StepwellError):
    """A target name is unknown, or the host cannot run code made for it."""


_SHOWN = 1000


def shortened(text: str) -> str:
    """A text of arbitrary length for a message: its first `_SHOWN` characters."""
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."


def first_line(error: BaseException) -> str:
    """The first nonempty line of an error of another library, which may append the IR or a text.

    An error without a message is called by its type.
    """
    lines = (line.strip() for line in str(error).splitlines())
    return shortened(next(filter(None, lines), type(error).__name__))


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """A number of things in words.

    >>> counted(1, "slot"), counted(2, "slot"), counted(0, "copy", "copies")
    ('1 slot', '2 slots', '0 copies')
    """
    return f"{number} {noun if number == 1 else plural or f'{noun}s'}"


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

    `subject` and `got` may be arbitrary texts, and are cut after `_SHOWN` characters.

    >>> explain("graph.dense", "inner dimensions differ", expected=784, got=768,
    ...         origin='node "fc1"')
    'graph.dense: inner dimensions differ, expected 784, got 768 (node "fc1")'
    """
    text = f"{shortened(subject)}: {fact}"
    if expected is not None:
        text += f", expected {expected}"
    if got is not None:
        text += f", got {shortened(str(got))}"
    if origin:
        text += f" ({origin})"
    if hint:
        text += f"; {hint}"
    return text


def without_compiler(subject: str, error: ModuleNotFoundError) -> CompileError:
    """The error for a use of the compiler where a module of it, or what it needs, is missing.

    >>> str(without_compiler("load", ModuleNotFoundError(name="xdsl")))
    'load: needs the package xdsl, which is not installed'
    """
    name, package = str(error.name), __name__.rpartition(".core.")[0]
    if not name.startswith(f"{package}."):
        return CompileError(explain(subject, f"needs the package {name}, which is not installed"))
    hint = "install stepwell in its place"
    return CompileError(explain(subject, "stepwell-runtime has no compiler", hint=hint))


def in_iteration(text: str, number: int | str, loop: str) -> str:
    """The message of an error in an iteration, counted from 0, of a loop.

    >>> in_iteration("ids: index out of range", 2, 'node "scan"')
    'ids: index out of range; iteration 2 of node "scan"'
    """
    return f"{text}; iteration {number} of {loop}"
