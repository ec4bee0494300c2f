"""The errors of partitions."""

from __future__ import annotations

import os
from pathlib import Path

from ..core.errors import InputError, explain


def error(fact: str, expected: object = None, got: object = None) -> InputError:
    """The error of an argument, or of a graph."""
    return InputError(explain("partition", fact, expected=expected, got=got))


def damaged(path: str | os.PathLike[str], fact: object) -> InputError:
    """The error of a file that cannot be used."""
    return error(f"cannot read {Path(path)}: {fact}")


def unwritten(folder: str | os.PathLike[str], reason: OSError) -> InputError:
    """The error of a folder that cannot be written, or whose disk is full."""
    return error(f"cannot write {Path(folder)}: {reason.strerror or reason}")
