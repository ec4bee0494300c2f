"""Executables of programs that were compiled, loaded from a file, or found in the compile cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .attachment import instance
from .executable import Executable
from .loaded import Program
from .vectorcall import boundary, offer

if TYPE_CHECKING:
    from .artefacts.reading import Artefact
    from .attachment import Decisions
    from .staircase import Staircase


def executable(
    program: Program,
    staircase: Staircase | None = None,
    stages: Sequence[str] = (),
    decisions: Decisions = (),
) -> Executable:
    """An `Executable`, called by compiled code if objects have the expected layout."""
    return instance(Executable, program, boundary(Executable), staircase, stages, decisions)


def loaded_executable(artefact: Artefact, staircase: Staircase) -> Executable:
    """The program of an artefact.

    It is called by compiled code if the artefact has that for the layout of objects here.

    Raises:
        ImportModelError: if the artefact is damaged.
        TargetError: if this machine cannot run the program.
    """
    shipped, program = artefact.boundary(), artefact.program()
    code = None if shipped is None else offer(Executable, *shipped)
    stages, decisions = artefact.stages, artefact.decisions
    return instance(Executable, program, code, staircase, stages, decisions, artefact)


def cached_executable(entry: Artefact, staircase: Staircase) -> Executable:
    """The program of an entry of the compile cache: as if it had been compiled now.

    Raises:
        ImportModelError, TargetError: see `loaded_executable`.
    """
    shipped, program = entry.boundary(), entry.program()
    code = boundary(Executable) if shipped is None else offer(Executable, *shipped)
    return instance(Executable, program, code, staircase, entry.stages, entry.decisions)
