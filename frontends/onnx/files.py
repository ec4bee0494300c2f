"""The files of a model: itself, and external data, elements of tensors in files beside it.

This imports no ONNX: a file that is known is not parsed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from ...core.files.reading import ReadingError, check_size, memory, opened, read_bytes, size_of
from .diagnostics import broken

_LARGEST_FILE = (1 << 31) - 1  # a protobuf message cannot be larger


def read_model(path: Path) -> bytes:
    """The contents of the file of a model.

    Raises:
        ImportModelError: if it cannot be read.
    """
    try:
        return read_bytes(path, _LARGEST_FILE)
    except ReadingError as error:
        hint = "keep the weights as external data" if "too large" in str(error) else None
        raise broken(f"cannot read {path}: {error}", hint=hint) from error


class Piece(NamedTuple):
    """A part of a file: its path below the folder of the model, and bytes."""

    location: str
    offset: int
    length: int


class ExternalData:
    """The files beside a model.

    Args:
        folder: the folder of the model; None if it has none.
        pieces: what is known of them, and not read again.

    Attributes:
        pieces: what was read so far.
    """

    def __init__(self, folder: Path | None, pieces: Mapping[Piece, bytes] | None = None) -> None:
        self._folder = folder
        self.pieces = dict(pieces or {})
        self._known = {piece.location for piece in self.pieces}
        self._files: dict[str, Path] = {}

    def check(self, location: str, subject: str) -> None:
        """Check that there is a file, and that it is inside of the folder.

        Raises:
            ImportModelError: if not; it names the subject.
        """
        if location not in self._known and location not in self._files:
            self._files[location] = _inside(location, self._folder, subject)

    def read(self, piece: Piece, subject: str) -> bytes:
        """A part of a file.

        Raises:
            ImportModelError: if it cannot be read, or is longer than the file or the memory of the
                machine; it names the subject.
        """
        if (known := self.pieces.get(piece)) is not None:
            return known
        location, offset, length = piece
        self.check(location, subject)
        try:
            with opened(self._files[location]) as file:
                size = size_of(file)
                if offset + length > size:
                    raise broken(
                        f'external data "{location}" is too short',
                        subject=subject,
                        expected=f"{offset + length} bytes",
                        got=size,
                    )
                check_size(length, memory())
                file.seek(offset)
                raw = file.read(length)
        except ReadingError as error:
            fact = f'cannot read external data "{location}": {error}'
            raise broken(fact, subject=subject) from error
        self.pieces[piece] = raw
        return raw


def _inside(location: str, folder: Path | None, subject: str) -> Path:
    """The file at `location`, which must be in the model's folder after links are resolved."""
    if folder is None:
        raise broken(
            "external data without a folder", subject=subject, hint="give the path of the model"
        )
    named = Path(location)
    root = folder.resolve()
    try:
        path = (root / named).resolve()
        outside = named.is_absolute() or ".." in named.parts or not path.is_relative_to(root)
        readable = not outside and path.is_file() and os.access(path, os.R_OK)
    except (OSError, ValueError, RuntimeError) as error:
        raise broken(f"external data: bad location: {error}", subject=subject) from error
    if outside:
        raise broken(
            "external data is outside the model's folder", subject=subject, got=f'"{location}"'
        )
    if not readable:
        raise broken(f'external data "{location}" is not a readable file', subject=subject)
    return path
