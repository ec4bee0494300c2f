"""The database of tuned schedules: a text that merges, and that says what is wrong in it."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path

import pytest

import stepwell as sw
from stepwell.core.errors import CompileError
from stepwell.core.target import named
from stepwell.passes.loop.scheduler.records import (
    Record,
    Records,
    default_path,
    read_records,
    write_records,
)

V4 = named("x86-64-v4")
FIRST = Record("k1", "x86-64-v4", 2, "split(i, 4)", 0.8, kept=True, kernel="dense")


def other(**fields: object) -> Record:
    return dataclasses.replace(FIRST, **fields)


def test_a_file_is_sorted_lines_of_json(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "tuning.jsonl"
    records = [other(key="k2"), FIRST, other(trace="tiles(i)", ratio=None, kept=False)]
    write_records(path, records)
    lines = path.read_text().splitlines()
    assert lines == sorted(lines)
    assert [json.loads(line)["key"] for line in lines].count("k1") == 2
    assert read_records(path).all() == sorted(records, key=Record.line)
    assert list(path.parent.iterdir()) == [path]


def test_merging_is_writing_one_file_after_the_other(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a", "b")]
    write_records(paths[0], [FIRST, other(key="k2", ratio=0.5)])
    write_records(paths[1], [other(ratio=0.7), other(key="k2", ratio=0.9)])
    texts = [path.read_text() for path in paths]
    merged = tmp_path / "merged"
    for text in ("".join(texts), "".join(reversed(texts))):
        merged.write_text(text)
        assert {(r.key, r.ratio) for r in read_records(merged).all()} == {("k1", 0.7), ("k2", 0.5)}


def test_what_is_newer_takes_the_place_of_what_is_older(tmp_path: Path) -> None:
    path = tmp_path / "tuning.jsonl"
    write_records(path, [FIRST, other(key="k2")])
    write_records(path, [other(ratio=1.1, kept=False)])
    assert read_records(path).schedules(V4, 2) == {"k2": "split(i, 4)"}


def test_the_best_kept_schedule_of_this_machine_is_used() -> None:
    records = Records(
        [
            FIRST,
            other(trace="split(i, 8)", ratio=0.7),
            other(trace="split(i, 2)", ratio=0.1, kept=False),
            other(trace="split(i, 3)", ratio=0.1, threads=1),
            other(trace="split(i, 5)", ratio=0.1, cpu="znver5"),
        ]
    )
    assert records.schedules(V4, 2) == {"k1": "split(i, 8)"}
    assert records.schedules(V4, 1) == {"k1": "split(i, 3)"}
    assert records.schedules(V4, 4) == {}


CORRUPT = {
    "{": "it is not JSON",
    "[" * 100_000: "it is nested too deeply, expected at most 32 brackets",
    '{"knobs": ' * 40: "it is nested too deeply, expected at most 32 brackets",
    "[1]": "it is not a JSON object",
    "{}": '"key" is missing',
    FIRST.line().replace('"threads": 2', '"threads": "2"'): "\"threads\" is '2'",
    FIRST.line().replace('"kept": true', '"kept": 1'): '"kept" is 1',
    FIRST.line().replace('"ratio": 0.8', '"ratio": "fast"'): "\"ratio\" is 'fast'",
    FIRST.line().replace("{", '{"answer": 42, ', 1): '"answer" is not known',
}


@pytest.mark.parametrize("line", CORRUPT)
def test_a_corrupt_line_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "tuning.jsonl"
    text = f"{FIRST.line()}\n\n{line}\n"
    path.write_text(text)
    message = f"tuning records: line 3 of {path} is not a record: {CORRUPT[line]}; remove the line"
    for action in (
        lambda: read_records(path),
        lambda: write_records(path, [other(key="k2")]),
        lambda: sw.compile(module(), records=path),
    ):
        with pytest.raises(CompileError) as caught:
            action()
        assert message in str(caught.value)
    assert path.read_text() == text


def module() -> sw.Module:
    b = sw.Builder("main")
    b.output(b.relu(b.input("x", (40, 33), "f32")), name="y")
    return b.module()


def test_files_that_cannot_be_read_or_written(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(CompileError, match=r"tuning records: cannot read .*binary: not a text"):
        read_records(tmp_path / "binary")
    with pytest.raises(CompileError, match=r"cannot read .*: Is a directory"):
        sw.compile(module(), records=tmp_path)
    with pytest.raises(CompileError, match=r"cannot write .*nowhere"):
        write_records(Path("/proc/nowhere/tuning.jsonl"), [FIRST])
    with pytest.raises(CompileError, match=r"tuning records: no such file, got .*none.jsonl"):
        sw.compile(module(), records=tmp_path / "none.jsonl")


def test_where_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("STEPWELL_TUNING", str(tmp_path / "mine"))
    assert default_path() == tmp_path / "mine"
    monkeypatch.setenv("STEPWELL_TUNING", "")
    assert default_path() is None
    monkeypatch.delenv("STEPWELL_TUNING")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert default_path() == tmp_path / "stepwell" / "tuning.jsonl"
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_path() == tmp_path / ".local" / "share" / "stepwell" / "tuning.jsonl"


def test_a_user_without_a_home_has_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("STEPWELL_TUNING", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    with monkeypatch.context() as patch:
        patch.setattr(os, "access", lambda path, mode: Path(path) != tmp_path)
        assert default_path() is None

    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    assert default_path() is None
    assert sw.compile(module(), threads=1).inputs
