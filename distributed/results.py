"""Where the results of a run go: `.npy`, Parquet, or an array of the caller."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .errors import error, unwritten
from .parquet import write_parquet


@dataclass(frozen=True)
class Result:
    """Where a result goes: a path, or an array."""

    name: str
    path: Path | None
    array: np.ndarray | None

    def take(self, values: np.ndarray, file: Path) -> None:
        """Take over a result, which is the array in a `.npy` file.

        Raises:
            InputError: if an array has another shape or dtype, or a file cannot be written.
        """
        if self.array is not None:
            if self.array.shape != values.shape or self.array.dtype != values.dtype:
                expected = f"{values.dtype} {values.shape}"
                got = f"{self.array.dtype} {self.array.shape}"
                raise error(f'wrong array for result "{self.name}"', expected, got)
            self.array[...] = values
            return
        assert self.path is not None
        try:
            if self.path.suffix == ".npy":
                _move(file, self.path)
            else:
                write_parquet(self.path, self.name, values)
        except OSError as reason:
            raise unwritten(self.path, reason) from reason


def _move(file: Path, path: Path) -> None:
    """Move a file, which appears under its new name at once, to another disk too."""
    if file.parent.stat().st_dev == path.parent.stat().st_dev:
        os.replace(file, path)
        return
    partial = path.with_name(f".{path.name}.partial")
    try:
        shutil.copyfile(file, partial)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def result_of(name: str, out: Any) -> Result:
    """Where a result goes.

    Raises:
        InputError: if `out` is neither a path with a known suffix nor an array.
    """
    if isinstance(out, np.ndarray):
        return Result(name, None, out)
    if isinstance(out, str | os.PathLike):
        path = Path(out)
        if path.suffix in (".npy", ".parquet") and path.parent.is_dir():
            return Result(name, path, None)
        out = path
    expected = "a path of a .npy or .parquet file in a folder that exists, or an array"
    raise error(
        f'no place for result "{name}"',
        expected,
        out if isinstance(out, Path) else type(out).__name__,
    )
