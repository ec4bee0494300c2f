"""Results of tuning: a text database of schedules, one JSON object per line.

Lines are sorted and independent, and each states its version: files can be merged by concatenation.
Of several lines about the same schedule, the best one counts.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ....core.errors import CompileError, explain
from ....core.files.reading import ReadingError, read_json, read_text
from ....core.files.versions import RECORD
from ....core.files.writing import write_atomically
from ....core.target import Target

_VERSION = "version"

VARIABLE = "STEPWELL_TUNING"
"""The environment variable with the path of the database; empty for none."""


@dataclass(frozen=True)
class Record:
    """A measured schedule of a kernel.

    `ratio` is the time of the program with this schedule over that with the default schedule, with
    interleaved runs; None if it did not run. `kept` marks schedules that also won the final
    comparison.
    """

    key: str
    """The structure of the kernel, see `structure_of`."""
    cpu: str
    threads: int
    trace: str
    ratio: float | None
    kept: bool = False
    kernel: str = ""
    """The name of the kernel, for readers."""
    seconds: float | None = None
    """The time of a call of the measured program."""
    predicted: float | None = None
    """The ratio that was predicted by the count of vector instructions; None if it is not known."""
    knobs: Mapping[str, Any] = field(default_factory=dict, hash=False)
    versions: Mapping[str, str] = field(default_factory=dict, hash=False)

    def line(self) -> str:
        """The record as JSON, with the version of its form."""
        fields = {**dataclasses.asdict(self), _VERSION: RECORD.version}
        return json.dumps(fields, sort_keys=True)


_Identity = tuple[str, str, int, str]


class Records:
    """The records of a database: the best one for each schedule."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self._records: dict[_Identity, Record] = {}
        self.add(records)

    def __len__(self) -> int:
        return len(self._records)

    def add(self, records: Iterable[Record]) -> None:
        """Add records; of two for the same schedule, the better one stays."""
        for record in records:
            known = self._records.get(_identity(record))
            if known is None or _rank(record) < _rank(known):
                self._records[_identity(record)] = record

    def replace(self, records: Iterable[Record]) -> None:
        """Add records, which replace older ones for the same schedule."""
        self._records |= {_identity(record): record for record in records}

    def all(self) -> list[Record]:
        """All records, in the order of their lines."""
        return sorted(self._records.values(), key=Record.line)

    def measured(self, key: str, cpu: str, threads: int) -> list[Record]:
        """The measurements of a kernel on a machine."""
        wanted = (key, cpu, threads)
        return [r for r in self.all() if (r.key, r.cpu, r.threads) == wanted]

    def schedules(self, target: Target, threads: int) -> dict[str, str]:
        """The best kept trace for each structure of a kernel."""
        found: dict[str, Record] = {}
        for record in self._records.values():
            if record.kept and (record.cpu, record.threads) == (target.cpu, threads):
                known = found.get(record.key)
                if known is None or _rank(record) < _rank(known):
                    found[record.key] = record
        return {key: record.trace for key, record in found.items()}


def _identity(record: Record) -> _Identity:
    return record.key, record.cpu, record.threads, record.trace


def _rank(record: Record) -> tuple[Any, ...]:
    ratio = float("inf") if record.ratio is None else record.ratio
    return not record.kept, ratio, record.line()


def default_path() -> Path | None:
    """The path of the database: `STEPWELL_TUNING`, else a file of the user; None for none.

    A user without a home, or with one of somebody else (as in many containers), has none.
    """
    text = os.environ.get(VARIABLE)
    if text is not None:
        return Path(text) if text else None
    data = os.environ.get("XDG_DATA_HOME") or _data_of_user()
    return None if data is None else Path(data) / "stepwell" / "tuning.jsonl"


def _data_of_user() -> Path | None:
    try:
        home = Path.home()
    except RuntimeError:
        return None
    is_closed = os.path.lexists(home) and not os.access(home, os.X_OK)
    return None if is_closed else home / ".local" / "share"


def read_records(path: Path) -> Records:
    """The records of a file; none if it does not exist.

    Raises:
        CompileError: if it cannot be read, naming the line that is not a record.
    """
    try:
        text = read_text(path)
    except ReadingError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return Records()
        raise CompileError(explain("tuning records", f"cannot read {path}: {error}")) from error
    lines = enumerate(text.splitlines(), 1)
    return Records(_record(path, number, line) for number, line in lines if line.strip())


def write_records(path: Path, records: Iterable[Record]) -> None:
    """Merge records into a file, where they replace older ones for the same schedule.

    Raises:
        CompileError: if the file holds other content or cannot be written; it is then unchanged.
    """
    merged = read_records(path)
    merged.replace(records)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, "".join(f"{record.line()}\n" for record in merged.all()).encode())
    except OSError as error:
        fact = f"cannot write {path}: {error.strerror}"
        raise CompileError(explain("tuning records", fact)) from error


_KINDS: dict[str, tuple[type, ...]] = {
    "key": (str,),
    "cpu": (str,),
    "threads": (int,),
    "trace": (str,),
    "ratio": (float, int, type(None)),
    "kept": (bool,),
    "kernel": (str,),
    "seconds": (float, int, type(None)),
    "predicted": (float, int, type(None)),
    "knobs": (dict,),
    "versions": (dict,),
}


def _record(path: Path, number: int, line: str) -> Record:
    """The record of a line.

    Raises:
        CompileError: if it is not a record.
    """
    try:
        fields = read_json(line)
    except ReadingError as error:
        raise _corrupt(path, number, f"it is {error}") from error
    if not isinstance(fields, dict):
        raise _corrupt(path, number, "it is not a JSON object")
    version = fields.pop(_VERSION, 0)
    if not isinstance(version, int) or isinstance(version, bool):
        raise _corrupt(path, number, f'"{_VERSION}" is {version!r}')
    try:
        fields = RECORD.upgraded(fields, version)
    except ReadingError as error:
        fact = f"cannot read line {number} of {path}: {error}"
        raise CompileError(explain("tuning records", fact)) from error
    for name, kinds in _KINDS.items():
        if name not in fields:
            raise _corrupt(path, number, f'"{name}" is missing')
        if not isinstance(fields[name], kinds):
            raise _corrupt(path, number, f'"{name}" is {fields[name]!r}')
    if strangers := sorted(fields.keys() - _KINDS.keys()):
        raise _corrupt(path, number, f'"{strangers[0]}" is not known')
    return Record(**fields)


def _corrupt(path: Path, number: int, reason: str) -> CompileError:
    fact = f"line {number} of {path} is not a record: {reason}"
    return CompileError(explain("tuning records", fact, hint="remove the line, or the file"))
