"""Where the results of a run go: `.npy`, Parquet, or an array of the caller."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import error, unwritten
from ..parquet import write_parquet


@dataclass(frozen=True)
class ResultPlace:
    """Where a result goes: a path, or an array."""

    name: str
    path: Path | None
    array: np.ndarray | None

    def take(self, values: np.ndarray, file: Path) -> None:
        """Take over a result, which is the array in a `.npy` file. The file stays.

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
                _name(file, self.path)
            else:
                write_parquet(self.path, self.name, values)
        except OSError as reason:
            raise unwritten(self.path, reason) from reason


def _name(file: Path, path: Path) -> None:
    """Let a file appear under another name at once, or a copy of it.

    The file stays under its own, too: a run that ends before all of its results are taken over
    takes them over again.
    """
    if path.exists() and path.samefile(file):
        return
    partial = path.with_name(f".{path.name}.partial")
    partial.unlink(missing_ok=True)
    try:
        if not _linked(file, partial):
            shutil.copyfile(file, partial)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def _linked(file: Path, path: Path) -> bool:
    """Give a file a second name, on the same disk, if its file system has links.

    Not a third one: two results are two files.
    """
    try:
        if file.stat().st_nlink > 1:
            return False
        os.link(file, path)
    except OSError:
        return False
    return True


def result_of(name: str, out: Any) -> ResultPlace:
    """Where a result goes.

    Raises:
        InputError: if `out` is neither a path with a known suffix nor an array.
    """
    if isinstance(out, np.ndarray):
        return ResultPlace(name, None, out)
    if isinstance(out, str | os.PathLike):
        path = Path(out)
        if path.suffix in (".npy", ".parquet") and path.parent.is_dir():
            return ResultPlace(name, path, None)
        out = path
    expected = "a path of a .npy or .parquet file in a folder that exists, or an array"
    raise error(
        f'no place for result "{name}"',
        expected,
        out if isinstance(out, Path) else type(out).__name__,
    )
