"""What notebooks display of objects of this package: HTML, made by `report/display.py`.

It is loaded by name and on demand: `report` is above the modules of these objects.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from dataclasses import dataclass

from .errors import StepwellError, explain

_PACKAGE = __name__.rpartition(".core.")[0]


@dataclass(frozen=True)
class ScheduledKernel:
    """A kernel with the steps that scheduled it, as text."""

    kernel: str
    steps: Sequence[str]
    text: str


def displayed(value: object) -> str:
    """The HTML of an object."""
    return importlib.import_module(f"{_PACKAGE}.report.display").html_of(value)


def write_page(path: str | os.PathLike[str], text: str) -> None:
    """Write a page, which appears complete or not at all.

    Raises:
        StepwellError: if it cannot be written.
    """
    from .files.writing import write_atomically

    try:
        write_atomically(path, text.encode())
    except OSError as error:
        fact = f"cannot write {path}: {error.strerror}"
        raise StepwellError(explain("report", fact)) from error
