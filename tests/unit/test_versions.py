"""What is written states its version; older ones are brought up, newer ones refused in one line."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stepwell as sw
from stepwell.core.files import versions
from stepwell.core.files.reading import ReadingError
from stepwell.core.files.versions import Format, stated_in
from stepwell.core.ir import parsing, weights
from stepwell.core.ir.weights import WeightStore
from stepwell.dialects.loop import trace_text
from stepwell.dialects.loop.nests import ScheduleError
from stepwell.dialects.loop.trace_text import Step, parse_traces
from stepwell.passes.loop.scheduler import records
from stepwell.passes.loop.scheduler.records import Record, read_records, write_records
from stepwell.tools import stepwell_opt

NEWER = "its version is newer than this Stepwell can read, expected 1, got 9; install a newer"
OLDER = "its version is older than this Stepwell can read, expected 1, got 0; an older Stepwell"
STATED = "stepwell.version = 1 : i64"


def module() -> sw.Module:
    b = sw.Builder("main")
    b.output(b.dense(b.input("x", (2, 3), "f32"), np.ones((4, 3), np.float32)), name="y")
    return b.module()


@pytest.fixture
def second(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """A function that puts a second version of a format into a module that uses it."""

    def install(place: Any, name: str, steps: Mapping[int, Any]) -> None:
        monkeypatch.setattr(place, name, Format(2, steps))

    return install


def test_steps_are_taken_in_order_from_the_version_that_is_stated() -> None:
    form = Format[str](3, {0: lambda t: f"{t}1", 1: lambda t: f"{t}2", 2: lambda t: f"{t}3"})
    assert [form.upgraded("", stated) for stated in range(4)] == ["123", "23", "3", ""]
    assert form.oldest == 0


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        (4, "its version is newer than this Stepwell can read, expected 2 to 3, got 4; install"),
        (1, "its version is older than this Stepwell can read, expected 2 to 3, got 1; an older"),
    ],
)
def test_no_way_up(stated: int, message: str) -> None:
    form = Format[str](3, {0: lambda t: t, 2: lambda t: t})
    with pytest.raises(ReadingError, match=message):
        form.upgraded("", stated)


class TestText:
    def test_a_module_is_written_with_its_version_and_read_without(self, tmp_path: Path) -> None:
        written = module()
        written.op.attributes["graph.rounding"] = parsing.IntegerAttr(1, 32)
        written.save(tmp_path / "m.mlir")
        text = (tmp_path / "m.mlir").read_text()
        assert text.startswith(f"builtin.module attributes {{{STATED}, graph.rounding = ")
        again = sw.from_mlir(tmp_path / "m.mlir")
        assert list(again.op.attributes) == ["graph.rounding"]
        assert again.text() == written.text()

    def test_each_stage_states_it(self) -> None:
        exe = sw.compile(module(), threads=1)
        for stage in exe.stages[:-2]:
            text = exe.ir(stage)
            assert stated_in(text) is not None, stage
            assert sw.from_mlir(text, exe.weights(stage)).text() == text

    def test_names_of_modules_are_met(self) -> None:
        text = '#a = 1\nbuiltin.module @"{ \\22" {\n}\n'
        named = sw.from_mlir(text.partition("\n")[2])
        assert named.text() == f'builtin.module @"{{ \\22" attributes {{{STATED}}} {{\n}}\n'

    @pytest.mark.parametrize(("stated", "message"), [("9", NEWER), ("0", OLDER)])
    @pytest.mark.parametrize("generic", [False, True])
    def test_other_versions_are_refused(self, stated: str, message: str, generic: bool) -> None:
        text = f"builtin.module attributes {{stepwell.version = {stated} : i64}} {{\n}}"
        if generic:
            text = f'"builtin.module"() ({{\n}}) {{stepwell.version = {stated} : i64}} : () -> ()'
        line = 2 if generic else 1
        with pytest.raises(
            sw.ImportModelError, match=rf"^text:{line}:\d+: stepwell.version: {message}"
        ):
            sw.from_mlir(text)

    def test_a_version_that_is_none_is_refused(self) -> None:
        for value in ("-1 : i64", '"1"', "unit"):
            text = f"builtin.module attributes {{stepwell.version = {value}}} {{\n}}"
            with pytest.raises(sw.ImportModelError, match=r"wrong stepwell\.version, expected 1 :"):
                sw.from_mlir(text)

    def test_what_only_looks_like_a_version_is_none(self) -> None:
        text = (
            '// stepwell.version = 9\nfunc.func @main() attributes {a = "stepwell.version = 9"} {\n'
        )
        assert stated_in(text) is None
        assert sw.from_mlir(f"{text}  func.return\n}}\n").op.ops

    def test_an_older_text_is_brought_up_before_it_is_parsed(
        self, second: Callable[..., None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        second(parsing, "IR_TEXT", {1: lambda text: text.replace("graph.max0", "graph.relu")})
        second(versions, "IR_TEXT", {})
        path = tmp_path / "m.mlir"
        body = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{\n {} \n}}"
        body = body.format(
            "%0 = graph.max0 %x : (tensor<4xf32>) -> tensor<4xf32>\n func.return %0 : tensor<4xf32>"
        )
        path.write_text(f"builtin.module attributes {{{STATED}}} {{\n{body}\n}}")
        assert "graph.relu" in sw.from_mlir(path).text()
        stepwell_opt.main([str(path)])
        assert "stepwell.version = 2 : i64" in capsys.readouterr().out


class TestRecords:
    FIRST = Record("k1", "x86-64-v4", 2, "split(i, 4)", 0.8, kept=True)

    def test_lines_state_their_version(self, tmp_path: Path) -> None:
        write_records(tmp_path / "r", [self.FIRST])
        assert json.loads((tmp_path / "r").read_text())["version"] == 3

    def test_those_without_one_are_of_the_first(self, tmp_path: Path) -> None:
        fields = json.loads(self.FIRST.line())
        del fields["version"]
        (tmp_path / "r").write_text(json.dumps(fields))
        assert read_records(tmp_path / "r").all() == [self.FIRST]

    def test_an_older_one_is_brought_up(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        (tmp_path / "r").write_text(self.FIRST.line())
        steps = {3: lambda fields: {**fields, "trace": "split(i, 8)"}}
        monkeypatch.setattr(records, "RECORD", Format(4, steps))
        assert read_records(tmp_path / "r").all() == [replace(self.FIRST, trace="split(i, 8)")]

    def test_the_second_version_has_no_predictions(self, tmp_path: Path) -> None:
        fields = {**json.loads(self.FIRST.line()), "version": 2}
        del fields["predicted"]
        (tmp_path / "r").write_text(json.dumps(fields))
        assert read_records(tmp_path / "r").all() == [self.FIRST]

    def test_traces_of_the_first_version_name_each_nest(self, tmp_path: Path) -> None:
        fields = {**json.loads(self.FIRST.line()), "version": 1}
        fields["trace"] = "split(i, 3, tail=cases); vectorize(i1, j1, cases=2)"
        (tmp_path / "r").write_text(json.dumps(fields))
        (record,) = read_records(tmp_path / "r").all()
        named = "split(i, 3, tail=cases); vectorize(i1, j1, i1t1, j1t1, i1t2, j1t2)"
        assert record.trace == named

    def test_a_trace_that_is_no_text_is_no_record(self, tmp_path: Path) -> None:
        fields = {**json.loads(self.FIRST.line()), "version": 1, "trace": 1}
        (tmp_path / "r").write_text(json.dumps(fields))
        with pytest.raises(sw.CompileError, match='"trace" is 1'):
            read_records(tmp_path / "r")

    @pytest.mark.parametrize(
        ("version", "message"),
        [
            ("9", rf"cannot read line 1 of .*/r: {NEWER.replace('1', '0 to 3')}"),
            ("true", '"version" is True'),
        ],
    )
    def test_others_are_refused(self, version: str, message: str, tmp_path: Path) -> None:
        line = self.FIRST.line().replace('"version": 3', f'"version": {version}')
        (tmp_path / "r").write_text(line)
        with pytest.raises(sw.CompileError, match=message):
            read_records(tmp_path / "r")


class TestTraces:
    def test_a_version_may_come_first(self) -> None:
        steps = parse_traces("split(i, 4); @a: vectorize(j)")
        for version in (1, 2):
            stated = f"version({version})"
            assert parse_traces(f"# mine\n{stated}; split(i, 4); @a: vectorize(j)") == steps
            assert parse_traces(f"{stated}\n@a: vectorize(j)") == {"a": steps["a"]}
            assert parse_traces(stated) == {}

    def test_older_steps_are_brought_up(self, second: Callable[..., None]) -> None:
        second(trace_text, "TRACE", {1: lambda text: text.replace("(i)", "(i, 4)")})
        assert parse_traces("version(1); a(i); @k: b(i)") == {
            None: [Step("a", ("i", 4))],
            "k": [Step("b", ("i", 4))],
        }
        assert parse_traces("a(i)") == parse_traces("version(2); a(i)")

    @pytest.mark.parametrize(
        ("split", "old", "new"),
        [
            ("i, 3, tail=cases", "vectorize(i1, j1, cases=2)", "i1, j1, i1t1, j1t1, i1t2, j1t2"),
            ("i, 2, cases, 3", "vectorize(i1, cases=3, suffix=tt)", "i1, i1tt1, i1tt3"),
            ("i, 2, tail=cases, cases=3", "prefetch(0, k, 64, cases=3)", "k kt1 kt3"),
            ("i, 3, cases", "prefetch(0, k, 64, 2, tt)", "k ktt1 ktt2"),
            ("i, 3, tail=mask", "vectorize(i1, j1)", "i1, j1"),
        ],
    )
    def test_nests_are_named_since_the_second_version(self, split: str, old: str, new: str) -> None:
        """There is none for as many rows as a whole chunk has."""
        named = f"vectorize({new})"
        if "prefetch" in old:
            named = "; ".join(f"prefetch(0, {loop}, 64)" for loop in new.split())
        before, after = f"split({split}); {old}; tiles(i)", f"split({split}); {named}; tiles(i)"
        assert parse_traces(f"version(1); {before}") == parse_traces(after)
        assert parse_traces(f"version(1); @a: {before}") == parse_traces(f"@a: {after}")

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("version(9); a(i)", f"trace: {NEWER.replace('1', '1 to 2')}"),
            ("version(0)", f"trace: {OLDER.replace('1', '1 to 2')}"),
            ("version(i)", r"trace: wrong version, expected version\(2\), got version\(i\)"),
            ("version(1, 1)", r"trace: wrong version, expected version\(2\), got version\(1, 1\)"),
        ],
    )
    def test_others_are_refused(self, text: str, message: str) -> None:
        with pytest.raises(ScheduleError, match=message):
            parse_traces(text, "file")


class TestWeights:
    def save(self, path: Path, version: str | None) -> None:
        from safetensors.numpy import save_file

        metadata = None if version is None else {"stepwell.version": version}
        save_file({"w": np.ones(3, np.float32)}, path, metadata)

    def test_they_state_their_version(self, tmp_path: Path) -> None:
        from safetensors import safe_open

        store = WeightStore()
        store.add("w", np.ones(3, np.float32))
        store.save(tmp_path / "w.safetensors")
        with safe_open(tmp_path / "w.safetensors", framework="np") as file:
            assert file.metadata() == {"stepwell.version": "1"}

    def test_those_of_other_tools_state_none(self, tmp_path: Path) -> None:
        self.save(tmp_path / "w.safetensors", None)
        assert list(WeightStore.load(tmp_path / "w.safetensors")) == ["w"]

    def test_older_ones_are_brought_up(self, second: Callable[..., None], tmp_path: Path) -> None:
        self.save(tmp_path / "w.safetensors", "1")
        second(weights, "WEIGHTS", {1: lambda arrays: {f"{n}_2": a for n, a in arrays.items()}})
        assert list(WeightStore.load(tmp_path / "w.safetensors")) == ["w_2"]

    @pytest.mark.parametrize(
        ("version", "message"),
        [("9", NEWER), ("0", OLDER), ("x", 'stepwell.version is not a number, got "x"')],
    )
    def test_others_are_refused(self, version: str, message: str, tmp_path: Path) -> None:
        path = tmp_path / "w.safetensors"
        self.save(path, version)
        expected = re.escape(f"weights: cannot read {path}: {message}")
        with pytest.raises(sw.ImportModelError, match=expected):
            WeightStore.load(path)
