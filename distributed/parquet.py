"""Edge lists in Parquet, read by `pyarrow`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .errors import damaged, error

Piece = tuple[np.ndarray, np.ndarray, np.ndarray | None]
_GROUP = 1 << 26
"""The bytes of rows that are written at a time."""


def read_parquet(path: Path, length: int) -> Callable[[], Iterator[Piece]]:
    """A function that reads the edges of a file, or of the files of a folder in order of names.

    It yields sources, targets and weights of `length` edges at a time. Columns are known by their
    order: sources, targets and, if there is a third one, weights.

    Raises:
        InputError: if `pyarrow` is not installed, or a file cannot be read.
    """
    parquet = _pyarrow_parquet()
    files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
    if not files:
        raise error(f"{path} has no .parquet file")

    def read() -> Iterator[Piece]:
        for file in files:
            yield from _edges(parquet, file, length)

    return read


def _pyarrow_parquet() -> Any:
    try:
        import pyarrow.parquet  # pyright: ignore[reportMissingImports]
    except ImportError as reason:
        raise error('.parquet needs pyarrow; pip install "stepwell[parquet]"') from reason
    return pyarrow.parquet


def _edges(parquet: Any, file: Path, length: int) -> Iterator[Piece]:
    # The errors of pyarrow derive from OSError and ValueError.
    try:
        source = parquet.ParquetFile(file, memory_map=True)
        names = source.schema_arrow.names[:3]
        if len(names) < 2:
            raise damaged(file, f"no columns of sources and targets, got {names}")
        for batch in source.iter_batches(batch_size=length, columns=names):
            columns = [column.to_numpy(zero_copy_only=False) for column in batch.columns]
            yield columns[0], columns[1], columns[2] if len(columns) > 2 else None
    except (OSError, ValueError) as reason:
        if isinstance(reason, type(error(""))):
            raise
        raise damaged(file, str(reason).partition("\n")[0]) from reason


def write_parquet(path: Path, name: str, values: np.ndarray) -> None:
    """Write an array of N rows as one column: numbers, or lists of a fixed length.

    The file appears once it is complete.

    Raises:
        InputError: if `pyarrow` is not installed.
        OSError: if the file cannot be written.
    """
    parquet = _pyarrow_parquet()
    import pyarrow  # pyright: ignore[reportMissingImports]

    width = int(np.prod(values.shape[1:]))
    element = pyarrow.from_numpy_dtype(values.dtype)
    kind = element if values.ndim == 1 else pyarrow.list_(element, width)
    schema = pyarrow.schema([(name, kind)])
    partial = path.with_name(f".{path.name}.partial")
    length = max(1, _GROUP // max(1, width * values.itemsize))
    try:
        with parquet.ParquetWriter(partial, schema) as writer:
            for first in range(0, len(values), length):
                flat = pyarrow.array(values[first : first + length].reshape(-1))
                if values.ndim > 1:
                    flat = pyarrow.FixedSizeListArray.from_arrays(flat, width)
                writer.write_table(pyarrow.Table.from_arrays([flat], schema=schema))
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
