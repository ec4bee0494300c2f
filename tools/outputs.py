"""Names of files that commands write: each says what is in the file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..core.errors import InputError, explain
from ..core.pipelines.stages import IR_STAGES
from .models import ARTEFACT

_TEXTS = {"llvm-ir": (".ll",), "asm": (".s", ".S", ".asm")}
"""What the names of files with stages end with that are text for people."""


def check_output(option: str, path: Path, what: str, endings: Sequence[str]) -> None:
    """Check, before anything is computed, that a file can be written and that its name fits.

    Args:
        option: the option that names it.
        path: the file.
        what: what will be in it.
        endings: what its name may end with.

    Raises:
        InputError: if it cannot, or does not.
    """
    if path.suffix not in endings:
        fact, expected = f"the name does not fit {what}", f"one with {' or '.join(endings)}"
        raise InputError(explain(option, fact, expected=expected, got=str(path)))
    if path.is_dir():
        raise InputError(explain(option, f"cannot write {path}: Is a directory"))
    if not path.parent.is_dir():
        fact = f"cannot write {path}: the folder {path.parent} does not exist"
        raise InputError(explain(option, fact))


def check_folder(option: str, path: Path) -> None:
    """Check, before anything is computed, that a folder is none or can be written to.

    Raises:
        InputError: if it is a file.
    """
    if path.exists() and not path.is_dir():
        raise InputError(explain(option, f"{path} is a file, expected a folder"))


def check_compiled(path: Path, stage: str | None) -> None:
    """Check the name of what `stepwell compile` writes: a program, or a stage.

    Raises:
        InputError: see `check_output`.
    """
    if stage is None:
        check_output("--output", path, "a program", [ARTEFACT])
        return
    endings = (".mlir",) if stage in IR_STAGES else _TEXTS[stage]
    check_output("--output", path, f"stage {stage}", endings)
