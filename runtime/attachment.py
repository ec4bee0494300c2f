"""How an executable gets its program: as one that compiled code calls, where there is such code."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .loaded import Loaded, Program
from .plan import plan_of
from .vectorcall import attach, fast_type

if TYPE_CHECKING:
    from ..backends.llvm.boundary.layout import Boundary
    from ..core.pipelines.decisions import Decision
    from .artefacts.reading import Artefact
    from .staircase import Staircase

    Decisions = Sequence[Decision] | Callable[[], Sequence[Decision]]


def instance(
    base: type[Any],
    program: Program,
    code: Boundary | None,
    staircase: Staircase | None = None,
    stages: Sequence[str] = (),
    decisions: Decisions = (),
    artefact: Artefact | None = None,
) -> Any:
    """An instance of `Executable`, or of its fast subtype if `code` can call the program.

    Args:
        base: `Executable`, which this module lies below.
        program, staircase, stages, decisions, artefact: what the instance consists of.
        code: the compiled boundary, if any.
    """
    loaded = load(base, program, code)
    kind = base if loaded.plan is None else fast_type(base)
    made = kind(loaded, staircase, stages, decisions, artefact)
    attach_code(made, loaded, code)
    return made


def load(base: type[Any], program: Program, code: Boundary | None) -> Loaded:
    """A program, with a plan if compiled code can call it."""
    if code is None:
        return Loaded(program)
    plan = plan_of(program.interface.signature, program.entry, base.__call__, base._fail_at)
    return Loaded(program, plan, ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(code.frame))


def attach_code(made: Any, loaded: Loaded, code: Boundary | None) -> None:
    """Let compiled code handle calls of an instance of a fast type, if there is a plan for it."""
    if code is not None and loaded.plan is not None:
        attach(made, loaded.plan.address, code.call)
