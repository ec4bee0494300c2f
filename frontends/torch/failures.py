"""Why torch cannot export a model: the line of the user, and what to write instead.

An export runs the Python of the model, so the traceback of an error leads to the module and to the
line. A size that becomes a number shows only after that; such an export is made once more, in which
sizes may become numbers, to see where they do.
"""

from __future__ import annotations

import contextlib
import dis
import importlib
import inspect
import io
import itertools
import linecache
import logging
import re
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from ...core.errors import ImportModelError, explain
from .library import library
from .places import is_of_user

_SIZES = "give sizes that follow from values as arguments, such as num_nodes, size or batch_size"
_NAMES_OF_SIZES = ("num_nodes", "size", "dim_size", "batch_size", "max_num_elements")
_CONDITION = (
    "torch.where chooses elements, torch.cond and torch._higher_order_ops.while_loop run code"
)
_LOOP = "scan and while_loop of torch._higher_order_ops are loops of any number of steps"
_NUMBER = "leave the dimension out of dynamic_shapes, or write the code for any size"
_ONE = "torch takes a size of 1 to be always 1: give an example with 2 or more"
_GRADIENT = "write the gradient (torch.autograd.grad) as a formula; torch exports few of them"
_NUMPY = "write it with operators of torch: what NumPy computes is not exported"
_RELATION = "Dim.DYNAMIC takes each size that fits, which a call checks"


_UNSEEN = re.compile(r"fake tensor in the exported program.*model attribute: ([\w.]+)\.\w+\.")
"""The message of torch for a tensor that was computed out of its sight, with its module's path."""


class _Log(logging.Filter):
    """Collects what torch logs in this thread, in the place of its handlers."""

    def __init__(self) -> None:
        super().__init__()
        self.thread = threading.get_ident()
        self.records: list[logging.LogRecord] = []

    def filter(self, record: logging.LogRecord) -> bool:
        if record.thread != self.thread or record.name.partition(".")[0] != "torch":
            return True
        if record not in self.records:
            self.records.append(record)
        return False


@contextlib.contextmanager
def quiet() -> Iterator[Callable[[], str]]:
    """Without the warnings and the log of torch, and what it prints where it fails.

    Yields:
        the text of the log and of what was printed, so far.
    """
    log, printed = _Log(), io.StringIO()
    names = [name for name in logging.root.manager.loggerDict if name.partition(".")[0] == "torch"]
    loggers = [logging.root, *map(logging.getLogger, names)]
    handlers = [handler for logger in loggers for handler in logger.handlers]

    def text() -> str:
        lines = [record.getMessage() for record in log.records]
        return "\n".join([*lines, printed.getvalue()]).strip()

    with warnings.catch_warnings(), contextlib.redirect_stderr(printed):
        warnings.simplefilter("ignore")
        for handler in handlers:
            handler.addFilter(log)
        try:
            yield text
        finally:
            for handler in handlers:
                handler.removeFilter(log)


@dataclass(frozen=True)
class SourcePlace:
    """Where an export fails: the path of the innermost module, and the line of the user."""

    module: str = ""
    file: str = ""
    line: int = 0
    is_condition: bool = False
    """Whether the line takes a tensor for true or false."""

    @property
    def text(self) -> str:
        """The text of the line."""
        return linecache.getline(self.file, self.line).strip()

    @property
    def is_loop(self) -> bool:
        """Whether the line is a loop over something."""
        return re.search(r"\bfor\b.*\bin\b", self.text) is not None

    def __str__(self) -> str:
        module = f'module "{self.module}"' if self.module else ""
        line = f"{Path(self.file).name}:{self.line}: {self.text}" if self.file else ""
        return ", ".join(part for part in (module, line) if part)


class Diagnosis(NamedTuple):
    """What is wrong, where, and what to do about it."""

    fact: str
    place: SourcePlace | None = None
    hint: str | None = None


def diagnosis(error: Exception) -> Diagnosis:
    """What an error of torch says in one line, with its suggestion."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    fact = lines[0] if lines else type(error).__name__
    if fact.endswith(":"):
        fact = " ".join(lines[:2])
    return Diagnosis(fact, hint=_suggestion(lines))


@contextlib.contextmanager
def explained(what: str, diagnose: Callable[[Exception], Diagnosis] = diagnosis) -> Iterator[None]:
    """Errors of torch in one line, with the whole of it as the cause and the log as a note."""
    with quiet() as log:
        try:
            yield
        except Exception as error:  # torch raises errors of many classes, and so does the model
            printed = log()
            fact, place, hint = diagnose(error)
            fact, origin = f"torch cannot {what}: {fact}", str(place or "")
            raised = ImportModelError(explain("from_torch", fact, origin=origin, hint=hint))
            if printed:
                raised.add_note(f"torch has logged:\n{printed}")
            raise raised from error


def diagnosis_of_export(
    error: Exception, model: Any, export: Callable[[Any], Any], dynamic_shapes: Any
) -> Diagnosis:
    """The same of the export of a module, with the place in it.

    Args:
        error: the error.
        model: the module that is exported.
        export: the export, with other dynamic shapes.
        dynamic_shapes: those that the error is about.
    """
    found = diagnosis(error)._replace(place=place_of_error(error, model))
    if is_data_dependent(error):
        if found.place is not None and found.place.is_condition:
            return found._replace(fact="a branch depends on elements of tensors", hint=_CONDITION)
        hint = _LOOP if found.place is not None and found.place.is_loop else _sizes(model, found)
        return found._replace(fact=found.fact.partition(" (unhinted")[0], hint=hint)
    if re.search(r"specialized due to hint of [01] |^ *\w+ = [01]$", str(error), re.MULTILINE):
        return found._replace(hint=_ONE)
    unseen = _UNSEEN.search(str(error))
    if unseen is not None:
        place = SourcePlace(unseen[1])
        return Diagnosis("a tensor is computed where the export does not see it", place, _GRADIENT)
    if ".numpy()" in found.fact:
        return found._replace(hint=_NUMPY)
    if not is_constraint_violation(error):
        return found
    for name, (size, place) in specialised(export, dynamic_shapes, model).items():
        fact = f"{name} is to be dynamic, but becomes the number {size}"
        return Diagnosis(fact, place, _LOOP if place.is_loop else _NUMBER)
    fact = found.fact.partition("! ")[0]
    return found._replace(fact=fact, hint=f"{found.hint}; {_RELATION}" if found.hint else _RELATION)


def _sizes(model: Any, found: Diagnosis) -> str:
    """The hint for a size that follows from values: the arguments that the module has for it."""
    parts = dict(model.named_modules())
    part = None if found.place is None else parts.get(found.place.module)
    if part is None or not type(part).__module__.startswith("torch_geometric."):
        return _SIZES
    known = inspect.signature(part.forward).parameters
    names = [name for name in _NAMES_OF_SIZES if name in known]
    if not names:
        return _SIZES
    return f"call {type(part).__name__} with {', '.join(f'{name}=...' for name in names)}"


def place_of(frames: Sequence[tuple[FrameType, int, int]], model: Any) -> SourcePlace:
    """The place that frames lead to, outermost first, with their lines and instructions."""
    names = {id(part): name for name, part in model.named_modules()}
    torch = str(Path(library().__file__).parent)
    module, at, is_condition = "", ("", 0), False
    for frame, line, instruction in frames:
        module = names.get(id(frame.f_locals.get("self")), module)
        file = frame.f_code.co_filename
        if is_of_user(file):
            at = file, line
        if not file.startswith((torch, "<")):
            is_condition = _is_condition(frame, instruction)
    return SourcePlace(module, *at, is_condition)


def place_of_error(error: BaseException, model: Any) -> SourcePlace:
    """The place in the traceback of an error."""
    frames: list[tuple[FrameType, int, int]] = []
    trace = error.__traceback__
    while trace is not None:
        frames.append((trace.tb_frame, trace.tb_lineno, trace.tb_lasti))
        trace = trace.tb_next
    return place_of(frames, model)


def _is_condition(frame: FrameType, instruction: int) -> bool:
    """Whether an instruction of a frame decides on a branch, as `if`, `while` and `and` do."""
    found = next((i for i in dis.get_instructions(frame.f_code) if i.offset == instruction), None)
    name = "" if found is None else found.opname
    return "JUMP" in name or name in ("TO_BOOL", "UNARY_NOT")


def is_data_dependent(error: BaseException) -> bool:
    """Whether Python needs the value of an element."""
    symbols = importlib.import_module("torch.fx.experimental.symbolic_shapes")
    return isinstance(error, symbols.GuardOnDataDependentSymNode)


def is_constraint_violation(error: BaseException) -> bool:
    """Whether the program does not hold for all sizes that are to be dynamic."""
    kind = getattr(getattr(error, "error_type", None), "name", None)
    return kind == "CONSTRAINT_VIOLATION"


class _Specialisations(logging.Handler):
    """The sizes of inputs that become numbers in this thread, and where: torch traces each."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model, self.thread = model, threading.get_ident()
        self.found: dict[str, tuple[int, SourcePlace]] = {}

    def emit(self, record: logging.LogRecord) -> None:
        facts = getattr(record, "metadata", {}).get("symbolic_shape_specialization")
        if facts is None or record.thread != self.thread or not facts["value"].isdigit():
            return
        stack = [(f, line, f.f_lasti) for f, line in traceback.walk_stack(sys._getframe())]
        place = place_of(stack[::-1], self.model)
        for source in facts["sources"][:1]:
            self.found.setdefault(_dimension(source), (int(facts["value"]), place))


def specialised(
    export: Callable[..., Any], dynamic_shapes: Any, model: Any
) -> Mapping[str, tuple[int, SourcePlace]]:
    """The sizes of inputs that an export makes numbers, and where it does.

    Args:
        export: the export, with other dynamic shapes.
        dynamic_shapes: those it failed with.
        model: the module that is exported.
    """
    automatic = _automatic(dynamic_shapes, library().export.Dim.AUTO)
    trace, handler = logging.getLogger("torch.__trace"), _Specialisations(model)
    trace.addHandler(handler)
    try:
        with contextlib.suppress(Exception):  # it has failed before
            export(automatic)
    finally:
        trace.removeHandler(handler)
    return handler.found


def _dimension(source: str) -> str:
    """The words for a source of torch, such as ``L['x'].size()[0]``."""
    names = re.findall(r"\['?(\w+)'?\]", source)
    return f'dimension {names[-1]} of "{"_".join(names[:-1])}"' if len(names) > 1 else source


def _automatic(shapes: Any, size: Any) -> Any:
    """Dynamic shapes in which each size that is given may become a number."""
    if isinstance(shapes, Mapping):
        return {key: _automatic(part, size) for key, part in shapes.items()}
    if isinstance(shapes, (tuple, list)):
        return type(shapes)(_automatic(part, size) for part in shapes)
    return shapes if shapes is None or isinstance(shapes, int) else size


def _suggestion(lines: Sequence[str]) -> str | None:
    """What torch suggests in an error: the fixes of a `Dim`, or its first hint."""
    start = next((i for i, line in enumerate(lines) if line.startswith("Suggested fix")), None)
    # They are definitions, such as n = Dim('n', min=4).
    fixes = (
        []
        if start is None
        else list(itertools.takewhile(re.compile(r"\w+ = ").match, lines[start + 1 :]))
    )
    hint = next((line for line in lines if line.startswith("Hint: ")), None)
    if not fixes and hint is None:
        return None
    return f"torch suggests {', '.join(fixes) if fixes else (hint or '').removeprefix('Hint: ')}"
