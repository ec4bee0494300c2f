"""The folder of the compile cache: who may write there, what is written, and what is removed."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

import pytest

import stepwell as sw
from stepwell.caching import folder as folders
from stepwell.caching.folder import Folder, folder_of_user
from stepwell.caching.memory import FolderMemory


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    made = Folder(tmp_path / "caches" / "stepwell", limit=1000)
    assert made.trouble(make=True) is None
    return made


def writer(content: bytes) -> Callable[[IO[bytes]], object]:
    return lambda file: file.write(content)


def content(folder: Folder, name: str) -> bytes:
    with folder.read(name) as file:
        return file.read()


def age(folder: Folder, name: str, seconds: float) -> None:
    """Let a file be as if it had been used some time ago."""
    then = time.time() - seconds
    os.utime(folder.path / name, (then, then))


def test_what_is_kept_is_read_by_its_user_only(folder: Folder) -> None:
    folder.keep("a", writer(b"one"))
    folder.keep("a", writer(b"two"))
    assert content(folder, "a") == b"two"
    assert [(entry.name, entry.size) for entry in folder.entries()] == [("a", 3)]
    assert folder.path.stat().st_mode & 0o777 == 0o700
    assert (folder.path / "a").stat().st_mode & 0o777 == 0o600
    with pytest.raises(FileNotFoundError), folder.read("b"):
        pass


def test_uses_are_counted(folder: Folder) -> None:
    assert folder.uses() == 0
    for _ in range(3):
        folder.count_use()
    assert (folder.uses(), folder.entries()) == (3, [])
    folder.clear()
    assert folder.uses() == 0


@pytest.mark.parametrize(
    ("spoil", "fact"),
    [
        (lambda path, patch: path.chmod(0o770), "others may write to it"),
        (lambda path, patch: path.chmod(0o702), "others may write to it"),
        (
            lambda path, patch: patch.setattr(os, "geteuid", lambda: os.getuid() + 1),
            "it belongs to another user",
        ),
    ],
)
def test_a_folder_of_others_is_not_used(
    folder: Folder,
    spoil: Callable[[Path, pytest.MonkeyPatch], None],
    fact: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder.keep("a", writer(b"one"))
    spoil(folder.path, monkeypatch)
    assert folder.trouble() == folder.trouble(make=True) == fact
    for action in (
        lambda: content(folder, "a"),
        lambda: folder.keep("b", writer(b"two")),
        folder.count_use,
        folder.clear,
        folder.entries,
    ):
        with pytest.raises(folders.UnsafeError, match=fact):
            action()
    assert [path.name for path in folder.path.iterdir()] == ["a"]


@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_a_file_of_others_is_not_used(folder: Folder, mode: int) -> None:
    folder.keep("a", writer(b"one"))
    (folder.path / "a").chmod(mode)
    with pytest.raises(folders.UnsafeError, match="others may write to it"):
        content(folder, "a")


def test_links_and_other_kinds_of_files_are_not_followed(folder: Folder, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_bytes(b"other code")
    (folder.path / "link").symlink_to(tmp_path / "elsewhere")
    (folder.path / "uses").symlink_to(tmp_path / "elsewhere")
    (folder.path / "inside").mkdir()
    for name in ("link", "inside"):
        with pytest.raises(OSError, match=r"symbolic links|regular file|Is a directory"):
            content(folder, name)
    with pytest.raises(OSError, match="symbolic links"):
        folder.count_use()
    folder.clear()
    assert (tmp_path / "elsewhere").read_bytes() == b"other code"


def test_what_is_no_folder_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        assert Folder(path).trouble(make=True) in ("File exists", "Not a directory")
    assert Folder(tmp_path / "none").trouble() == "No such file or directory"


def test_a_folder_that_is_read_only_is_read(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.keep("a", writer(b"one"))
    whole = os.open

    def refusing(path: str, flags: int, *rest: int, **options: int) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return whole(path, flags, *rest, **options)

    def refused(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(os, "open", refusing)
    monkeypatch.setattr(os, "utime", refused)
    assert folder.trouble(make=True) is None
    assert content(folder, "a") == b"one"
    with pytest.raises(OSError, match="Read-only"):
        folder.keep("b", writer(b"two"))


FULL = """
import resource, signal, sys
from pathlib import Path
from stepwell.caching.folder import Folder
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    Folder(Path(sys.argv[1])).keep("a", lambda file: file.write(bytes(100_000)))
except OSError as error:
    print(error.strerror)
"""


def test_a_full_disk_leaves_what_was_there(folder: Folder) -> None:
    folder.keep("a", writer(b"old"))
    command = [sys.executable, "-c", FULL, str(folder.path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "File too large\n"
    assert content(folder, "a") == b"old"
    assert [path.name for path in folder.path.iterdir()] == ["a"]


KILLED = """
import os, signal, sys
from pathlib import Path
from stepwell.caching.folder import Folder

def write(file):
    file.write(bytes(100_000))
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)

Folder(Path(sys.argv[1])).keep("a", write)
"""


def test_a_process_that_is_killed_while_it_writes_leaves_no_entry(folder: Folder) -> None:
    command = [sys.executable, "-c", KILLED, str(folder.path)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    (left,) = folder.path.iterdir()
    assert left.name.startswith(".new-")
    assert folder.entries() == []
    # It may belong to a process that is still writing, so only an old one is removed.
    folder.keep("b", writer(b"two"))
    assert left.exists()
    age(folder, left.name, 7200)
    folder.keep("b", writer(b"two"))
    assert [path.name for path in folder.path.iterdir()] == ["b"]


def test_an_exception_leaves_nothing(folder: Folder) -> None:
    def write(file: IO[bytes]) -> None:
        file.write(b"half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        folder.keep("a", write)
    assert list(folder.path.iterdir()) == []


def test_the_oldest_ones_go_first(folder: Folder) -> None:
    for number, name in enumerate("abcd"):
        folder.keep(name, writer(bytes(240)))
        age(folder, name, 100 - number)
    content(folder, "a")  # Now "b" is the one that was used the longest time ago.
    folder.keep("e", writer(bytes(240)))
    assert {entry.name for entry in folder.entries()} == {"a", "c", "d", "e"}
    folder.keep("f", writer(bytes(700)))
    assert {entry.name for entry in folder.entries()} == {"e", "f"}


def test_what_exceeds_the_limit_alone_is_not_kept(folder: Folder) -> None:
    folder.keep("a", writer(bytes(900)))
    with pytest.raises(OSError, match="too large"):
        folder.keep("b", writer(bytes(1001)))
    assert [path.name for path in folder.path.iterdir()] == ["a"]


WORK = """
import sys
from pathlib import Path
from stepwell.caching.folder import Folder

folder, seed = Folder(Path(sys.argv[1]), limit=40_000), int(sys.argv[2])
for number in range(300):
    name = str((seed + 7 * number) % 13)
    try:
        with folder.read(name) as file:
            found = file.read()
    except FileNotFoundError:
        folder.keep(name, lambda file: file.write(name.encode() * 5000))
    else:
        assert found == name.encode() * 5000
    folder.count_use()
    if number % 100 == 99:
        folder.clear()
"""
"""Writes and reads entries, which are their own names many times."""


def test_processes_share_a_folder(folder: Folder) -> None:
    commands = [[sys.executable, "-c", WORK, str(folder.path), str(seed)] for seed in range(3)]
    workers = [subprocess.Popen(command) for command in commands]
    assert [worker.wait() for worker in workers] == [0, 0, 0]
    assert not [path for path in folder.path.iterdir() if path.name.startswith(".new-")]
    assert sum(entry.size for entry in folder.entries()) <= 40_000 + 3 * 10_000


def test_the_environment_names_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for text in ("off", "OFF ", "0", ""):
        monkeypatch.setenv("STEPWELL_CACHE", text)
        assert folder_of_user() is None
    monkeypatch.setenv("STEPWELL_CACHE", str(tmp_path / "own"))
    monkeypatch.setenv("STEPWELL_CACHE_MB", "3")
    assert folder_of_user() == Folder(tmp_path / "own", 3 << 20)
    monkeypatch.delenv("STEPWELL_CACHE")
    monkeypatch.setenv("STEPWELL_CACHE_MB", " ")
    assert folder_of_user() == Folder(tmp_path / "stepwell", folders.LIMIT)
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert folder_of_user() == Folder(tmp_path / ".cache" / "stepwell", folders.LIMIT)
    monkeypatch.setattr(os, "supports_dir_fd", set())
    assert folder_of_user() is None


def test_a_wrong_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPWELL_CACHE", "some")
    monkeypatch.setenv("STEPWELL_CACHE_MB", "1 GB")
    match = "STEPWELL_CACHE_MB: wrong size, expected a number of megabytes, got '1 GB'"
    with pytest.raises(sw.StepwellError, match=match):
        folder_of_user()


def test_texts_are_remembered_until_they_are_damaged(folder: Folder) -> None:
    memory = FolderMemory(folder)
    assert memory.recall("a") is None
    memory.remember("a", "text")
    assert memory.recall("a") == "text"
    path = folder.path / "a"
    whole = path.read_bytes()
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        assert memory.recall("a") is None
        path.write_bytes(whole[:place])
        assert memory.recall("a") is None
    folder.path.chmod(0o777)
    memory.remember("b", "text")
    assert memory.recall("b") is None
