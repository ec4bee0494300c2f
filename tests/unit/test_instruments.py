"""What `stepwell compile` and Python tell of passes; `stepwell-opt` has its lit tests."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, i32
from xdsl.passes import ModulePass

import stepwell as sw
from stepwell.core.instrumentation.ir_printer import IRPrinter
from stepwell.core.instrumentation.ir_tree import IRTree
from stepwell.core.instrumentation.pass_statistics import PassStatistics
from stepwell.core.instrumentation.pass_timing import PassTiming
from stepwell.core.pipelines.actions import is_counting
from stepwell.core.pipelines.pass_manager import run_steps
from stepwell.core.pipelines.stages import IR_STAGES
from stepwell.core.registry import make_context, passes
from stepwell.tools import main as command


@pytest.fixture
def model(tmp_path: Path) -> Path:
    b = sw.Builder("main")
    x = b.input("x", (3, 4), "f32")
    b.output(b.relu(b.dense(x, np.ones((5, 4), np.float32), name="fc"), name="act"), name="y")
    path = tmp_path / "m.mlir"
    b.module().save(path)
    return path


def compiled(args: list[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        command.main(["compile", *args])
    assert stop.value.code == 0


def told(args: list[str], capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """What the command tells as JSON."""
    compiled([*args, "--json"])
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


@pytest.mark.usefixtures("every_stage_verified")
def test_timing_has_stages_and_what_is_beside_them(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (report,) = told([str(model), "--timing"], capsys)
    rows = report["rows"]
    assert {row["stage"] for row in rows} == {None, *IR_STAGES[1:]}
    phases = [row["phase"] for row in rows if row["stage"] is None]
    assert phases == ["parse", "load passes", "codegen"]
    assert sum(row.get("phase") == "verify" for row in rows) == len(IR_STAGES) - 1
    assert all(row["seconds"] >= 0 for row in rows)
    assert sum(row["seconds"] for row in rows) <= report["seconds"]
    fused = next(row for row in rows if row.get("pass") == "graph-fuse-ops")
    assert fused["operations"]["before"] < fused["operations"]["after"]


def test_a_tree_of_stages(model: Path, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    compiled([str(model), "--emit", "loops", "--print-ir-tree-dir", str(tree)])
    files = sorted(str(path.relative_to(tree)) for path in tree.glob("**/*.mlir"))
    assert files[0] == "000_input.mlir"
    assert {os.path.dirname(name) for name in files} == {"", *IR_STAGES[1:-1]}
    numbers = sorted(int(os.path.basename(name)[:3]) for name in files)
    assert numbers == list(range(len(files))), "they go on from stage to stage"
    legalised, converted = sorted((tree / "loops").iterdir())
    assert "loop.load" in legalised.read_text()
    assert "memref.load" in converted.read_text()


def test_remarks_of_a_model_name_its_nodes(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reports = told([str(model), "--remarks", "passed", "--remarks-filter", "^act$"], capsys)
    assert reports
    assert all("act" in report["nodes"] for report in reports)
    assert {report["stage"] for report in reports} >= {"fused", "scheduled"}


def test_diffs_are_of_what_a_pass_changed(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reports = told([str(model), "--print-ir-diff"], capsys)
    passes = [report["pass"] for report in reports]
    assert "graph-fuse-ops" in passes
    assert "graph-dce" not in passes
    assert all(report["text"].startswith("--- ") for report in reports)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--print-ir-before", "cse,csee"], '--print-ir-before: unknown pass "csee"'),
        (["--remarks", "some"], "--remarks: unknown kind of remarks, expected passed, missed"),
        (["--elide-constants", "-1"], "--elide-constants: wrong limit"),
    ],
)
def test_wrong_options(
    model: Path, args: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        command.main(["compile", str(model), *args])
    assert stop.value.code == 1
    assert capsys.readouterr().err.startswith(f"stepwell: error: {message}")


def test_interrupted(
    model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("stepwell.passes.graph.cse.GraphCsePass.apply", interrupt)
    output = tmp_path / "out.mlir"
    output.write_text("as it was")
    with pytest.raises(SystemExit) as stop:
        command.main(["compile", str(model), "--emit", "loops", "-o", str(output)])
    assert stop.value.code == 130
    assert capsys.readouterr().err == "stepwell: interrupted\n"
    assert output.read_text() == "as it was"


def test_hooks_measure_and_count_in_python(model: Path) -> None:
    timing, statistics = PassTiming(), PassStatistics()
    sw.compile(sw.from_mlir(model), hooks=[statistics, timing], check=True)
    assert "codegen" in str(timing.report())
    counters = statistics.report().counters["fused", "graph-fuse-ops"]
    assert counters["operators fused with others"] == 2
    assert counters["decisions: passed"] == 1


def test_the_clock_of_a_pass_stands_still_while_it_is_verified(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    times = iter([0.0, 1.0, 4.0, 9.0, 16.0, 25.0])
    monkeypatch.setattr("time.perf_counter", lambda: next(times))
    timing, ctx, module = PassTiming(), make_context(), ModuleOp([])
    ctx.step = passes()["graph-fuse-ops"]()(max_ops=1)  # type: ignore[call-arg]
    timing.before_pass(ctx, module)
    timing.before_phase(ctx, "verify")
    timing.after_phase(ctx, "verify")
    timing.after_pass(ctx, module)
    report = timing.report()
    assert report.total == 25
    assert [(row.name, row.seconds) for row in report.rows] == [
        ("graph-fuse-ops{max-ops=1}", 10),
        ("verify", 5),
    ]
    last = str(report).splitlines()[-1]
    assert last.split() == ["10.0000", "s", "40.0", "%", "rest"]


def test_what_is_left_is_shown_however_wrong_it_is(tmp_path: Path) -> None:
    class Spoils(ModulePass):
        name = "spoils"

        def apply(self, ctx: Context, op: ModuleOp) -> None:
            function = func.FuncOp("f", ((i32,), ()))
            function.properties["function_type"] = i32
            op.body.block.add_op(function)

    dumps: list[Any] = []
    ctx = make_context()
    ctx.verify = "pass"
    ctx.hooks = [IRPrinter(dumps.append, after_failure=True), IRTree(tmp_path)]
    with pytest.raises(sw.CompileError, match="spoils: result does not verify"):
        run_steps(ctx, ModuleOp([]), [Spoils()])
    (dump,) = dumps
    assert '"func.func"() <{sym_name = "f", function_type = i32' in dump.text
    assert (tmp_path / "001_spoils.failed.mlir").read_text() == dump.text


def test_statistics_leave_rewriting_as_it_was(model: Path) -> None:
    class Fails(sw.PassHook):
        def __init__(self, at: str) -> None:
            self.at = at

        def before_pass(self, ctx: Any, op: Any) -> bool | None:
            return self.at != "left out" or ctx.pass_name != "graph-cse"

        def after_pass(self, ctx: Any, op: Any) -> None:
            if self.at == "raises" and ctx.pass_name == "graph-cse":
                raise sw.StepwellError("enough")

    sw.compile(sw.from_mlir(model), hooks=[PassStatistics(), Fails("left out")])
    assert not is_counting()
    with pytest.raises(sw.StepwellError, match="enough"):
        sw.compile(sw.from_mlir(model), hooks=[PassStatistics(), Fails("raises")])
    assert not is_counting()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(sw.StepwellError, match="Permission denied"):
        IRTree(tmp_path / "tree")


def test_a_folder_that_cannot_be(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = model / "tree"
    with pytest.raises(SystemExit):
        command.main(["compile", str(model), "--print-ir-tree-dir", str(folder)])
    expected = f"stepwell: error: IR tree: cannot write {folder}: Not a directory\n"
    assert capsys.readouterr().err == expected
