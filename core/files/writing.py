"""Writing files, which appear complete or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def written(path: str | os.PathLike[str], *, synced: bool = False) -> Iterator[IO[bytes]]:
    """A file to write, which takes its place once the block has ended without an exception.

    What is there and is no regular file, such as a pipe or `/dev/null`, is written to in place.

    Args:
        path: the file.
        synced: whether its contents are on the disk before it takes its place.

    Raises:
        OSError: if it cannot be written.
    """
    if is_device(path):
        with open(path, "wb") as file:
            yield file
        return
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    # Opened with the permissions that the process gives new files.
    with open(temporary, "xb") as file:
        try:
            yield file
            file.flush()
            if synced:
                os.fsync(file.fileno())
            os.replace(temporary, target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def write_atomically(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file: a reader sees the old content or the whole new one; see `written`.

    Raises:
        OSError: if it cannot be written.
    """
    with written(path) as file:
        file.write(data)


def is_device(path: str | os.PathLike[str]) -> bool:
    """Whether there is something other than a regular file, such as a pipe or `/dev/null`.

    Raises:
        OSError: if it is a folder, or not a path.
    """
    try:
        mode = Path(path).stat().st_mode
    except FileNotFoundError:
        return False
    except (TypeError, ValueError) as error:
        raise OSError(errno.EINVAL, f"not a path ({error})") from error
    if stat.S_ISDIR(mode):
        raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
    return not stat.S_ISREG(mode)
