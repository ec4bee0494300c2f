"""Tuning never ends worse, survives what it measures, and goes on where it was stopped."""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import StringAttr

import stepwell as sw
from stepwell.core.errors import CompileError, StepwellError
from stepwell.core.pipelines.staircase import pipeline
from stepwell.core.progress import ProgressStep, followed
from stepwell.core.target import Target, host
from stepwell.dialects.loop.ops import KernelOp
from stepwell.dialects.loop.trace import structure_of
from stepwell.driver.compilation import Compilation
from stepwell.driver.request import Request
from stepwell.frontends import gnn
from stepwell.passes.loop.scheduler.records import Record, read_records, write_records
from stepwell.tools.main import main
from stepwell.tuning import search
from stepwell.tuning.measuring import Bench
from stepwell.tuning.search import Progress, tune
from stepwell.tuning.worker import WorkerProcess

from ..harness import close, floats, package

package("optuna")

W = floats(48, 40)


def dense() -> sw.Module:
    b = sw.Builder("main")
    b.output(b.relu(b.dense(b.input("x", (30, 40), "f32"), W)), name="y")
    return b.module()


def is_dense(exe: sw.Executable) -> None:
    x = floats(30, 40)
    close(exe(x), dense().run_reference(x), 1e-4)


PLANTED = """
    import json, os, sys, time
    print(json.dumps({"ready": True}), flush=True)
    asked = open(sys.argv[1], "a")
    for line in sys.stdin:
        question = json.loads(line)
        asked.write(line)
        asked.flush()
        text = " ".join(question["traces"].values())
        if "split(i, 7," in text:
            os.abort()
        if "split(i, 8," in text:
            time.sleep(60)
        ratio = RATIO
        if question["seconds"] > 0.5:
            ratio = FINAL
        found = {"ratio": ratio, "noise": 0.001, "seconds": ratio, "base": 1.0}
        print(json.dumps(found), flush=True)
"""
FIVE = '0.5 if "split(i, 5," in text else 1.02'


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Path]:
    """Puts a process in the place of that which measures: ratios are what is written here.

    Schedules with chunks of 7 rows end it, with chunks of 8 rows it never answers. It gives the
    path of what it was asked.
    """

    def plant(ratio: str, final: str = "ratio") -> Path:
        asked = tmp_path / "asked"
        text = textwrap.dedent(PLANTED).replace("RATIO", ratio).replace("FINAL", final)
        command = [sys.executable, "-c", text, str(asked)]
        monkeypatch.setattr(search, "worker_command", lambda folder: command)
        return asked

    return plant


def test_the_best_is_kept_and_used(planted, tmp_path) -> None:
    path = tmp_path / "tuning.jsonl"
    planted(FIVE)
    steps = list[ProgressStep]()
    with followed(steps.append):
        tuned = tune(dense(), 6, threads=1, records=path, timeout_s=0.5)
    assert steps[-1].note == f"{tuned.tried} schedules, best 0.50"
    assert (steps[-1].total, 0 < steps[-1].done < 30) == (6, True)
    (record,) = tuned.kept
    assert "split(i, 5," in record.trace
    assert (record.ratio, tuned.ratio, tuned.stopped) == (0.5, 0.5, False)
    assert tuned.failed >= 2, "a crash and a hang cost one candidate each"
    assert tuned.tried > tuned.failed + 3, "the search goes on after that"
    stored = read_records(path).all()
    assert [r for r in stored if r.kept] == [record]
    assert {r.ratio for r in stored if "split(i, 7," in r.trace} == {None}
    assert record.seconds == 0.5
    assert all(r.predicted is not None and 0 < r.predicted < 99 for r in stored)
    assert len({r.predicted for r in stored}) > 5

    exe = sw.compile(dense(), threads=1, records=path)
    (decision,) = [d for d in exe.decisions if d.pass_name == "loop-schedule"]
    assert (decision.what, decision.why) == (record.trace, "tuning found it faster")
    assert record.trace in exe.ir("scheduled")
    is_dense(exe)
    for plain in (
        Compilation.of(Request(dense(), threads=1)),
        Compilation.of(Request(dense(), threads=2, records=path)),
    ):
        assert record.trace not in plain.text("scheduled")


@pytest.mark.slow
def test_luck_is_not_kept(planted, tmp_path) -> None:
    """Fast at first and no better than the default in the end: nothing is kept."""
    path = tmp_path / "tuning.jsonl"
    planted(FIVE, final="0.995")
    tuned = tune(dense(), 6, threads=1, records=path, timeout_s=0.5)
    assert (tuned.kept, tuned.ratio) == ((), 1.0)
    assert not [r for r in read_records(path).all() if r.kept]


@pytest.mark.slow
def test_it_goes_on_where_it_was_stopped(planted, tmp_path) -> None:
    path = tmp_path / "tuning.jsonl"
    asked = planted(FIVE)

    def interrupt(step: Progress) -> None:
        if step.tried == 4:
            raise KeyboardInterrupt

    stopped = tune(dense(), 6, threads=1, records=path, timeout_s=0.5, progress=interrupt)
    assert (stopped.stopped, stopped.tried, stopped.kept) == (True, 4, ())
    assert len(read_records(path)) == 4
    before = {line for line in asked.read_text().splitlines() if '"seconds": 0.15' in line}
    asked.unlink()
    tuned = tune(dense(), 6, threads=1, records=path, timeout_s=0.5)
    after = [line for line in asked.read_text().splitlines() if '"seconds": 0.15' in line]
    assert not before & set(after), "what is recorded was measured again"
    assert len(after) == len(set(after)) == tuned.tried
    assert [("split(i, 5," in r.trace, r.ratio) for r in tuned.kept] == [(True, 0.5)]


def test_what_was_found_survives_an_interrupt(planted, tmp_path) -> None:
    path = tmp_path / "tuning.jsonl"
    planted(FIVE)

    def interrupt(step: Progress) -> None:
        if step.best < 1:
            raise KeyboardInterrupt

    tuned = tune(dense(), 6, threads=1, records=path, timeout_s=0.5, progress=interrupt)
    assert tuned.stopped
    assert [r.ratio for r in tuned.kept] == [0.5]


def test_a_worker_that_dies_or_hangs_is_started_again() -> None:
    text = """
        import json, os, sys, time
        print(json.dumps({"ready": 1}), flush=True)
        for line in sys.stdin:
            what = json.loads(line)["do"]
            {"die": os.abort, "hang": lambda: time.sleep(60), "go": lambda: 0}[what]()
            print(json.dumps({"did": what}), flush=True)
    """
    with WorkerProcess([sys.executable, "-c", textwrap.dedent(text)], 1.0) as worker:
        assert worker.ask({"do": "go"}) == {"did": "go"}
        assert "the process died" in worker.ask({"do": "die"})["error"]
        assert worker.ask({"do": "go"}) == {"did": "go"}
        assert worker.ask({"do": "hang"}) == {"error": "no answer within 1 s"}
        assert worker.ask({"do": "go"}) == {"did": "go"}
        process = worker.process
    assert process is not None
    assert process.poll() is not None


@pytest.mark.slow
def test_a_short_search_of_a_real_kernel(tmp_path) -> None:
    """Measured on this machine: whatever it finds, the program computes the same, no slower."""
    path, steps = tmp_path / "tuning.jsonl", list[Progress]()
    # Time enough to start on a machine that is busy.
    tuned = tune(dense(), 20, threads=1, records=path, progress=steps.append)
    assert tuned.tried == len(steps) > 0
    assert tuned.failed == 0
    assert tuned.ratio <= 1
    assert len(read_records(path)) >= tuned.tried
    is_dense(sw.compile(dense(), threads=1, records=path))


def test_a_module_that_does_not_run_is_one_error(tmp_path) -> None:
    inputs = [np.zeros((3, 4), np.float32)]
    with pytest.raises(CompileError, match=r"^tune: the program does not run: .*x.*shape"):
        tune(dense(), 1, records=tmp_path / "tuning.jsonl", inputs=inputs)


def test_schedules_are_measured_for_the_given_target(monkeypatch) -> None:
    targets: list[Target] = []

    def command(folder: str) -> list[str]:
        targets.append(Bench.of_folder(Path(folder)).target)
        raise KeyboardInterrupt

    monkeypatch.setattr(search, "worker_command", command)
    given = replace(host(), vector_registers=8)
    with pytest.raises(KeyboardInterrupt):
        tune(dense(), target=given)
    assert targets == [given]


def test_a_reshape_between_kernels_is_measured(monkeypatch) -> None:
    b = sw.Builder("main")
    y = b.relu(b.conv(b.input("x", (2, 3, 6, 6)), np.ones((4, 3, 3, 3), np.float32)))
    b.output(b.dense(b.reshape(y, (2, 64)), np.ones((10, 64), np.float32)))
    got: list[np.ndarray] = []

    def command(folder: str) -> list[str]:
        bench = Bench.of_folder(Path(folder))
        got.append(bench.program({})(*bench.inputs))
        raise KeyboardInterrupt

    monkeypatch.setattr(search, "worker_command", command)
    with pytest.raises(KeyboardInterrupt):
        tune(b.module(), inputs=[np.ones((2, 3, 6, 6), np.float32)])
    np.testing.assert_array_equal(got[0], np.full((2, 10), 27 * 64, np.float32))


def test_a_schedule_with_other_results_is_not_timed() -> None:
    x = np.ones((30, 40), np.float32)
    bench = Bench(dense(), [x], {}, host())
    right, wrong = {"k": "split(i, 2)"}, {"k": "split(i, 3)"}
    for traces, factor in (({}, 1.0), (right, 1.0001), (wrong, 1.01)):
        bench.programs[json.dumps(traces)] = lambda x, factor=factor: factor * x
    assert bench.compared({}, wrong, 0.01) == {"error": "the results differ"}
    assert "ratio" in bench.compared({}, right, 0.01)


def kernel_keys(module: sw.Module) -> list[str]:
    kernels = Compilation(Request(module, host(), pipeline=pipeline())).at("kernels")
    return [structure_of(op) for op in kernels.op.ops if isinstance(op, KernelOp)]


@pytest.mark.parametrize("trace", ["vectorize(nowhere)", "fly(i)", "split(i", "@k: tiles(i)"])
def test_a_record_that_does_not_fit_is_left_out(tmp_path, trace) -> None:
    path = tmp_path / "tuning.jsonl"
    (key,) = kernel_keys(dense())
    write_records(path, [Record(key, host().cpu, 1, trace, 0.5, kept=True)])
    exe = sw.compile(dense(), threads=1, records=path)
    decisions = [d for d in exe.decisions if d.pass_name == "loop-schedule"]
    assert decisions[0].what == "the default schedule"
    assert decisions[0].why.startswith("the tuned one does not fit: trace")
    assert exe.ir("scheduled") == Compilation.of(Request(dense(), threads=1)).text("scheduled")


def test_names_are_no_part_of_a_structure() -> None:
    b = sw.Builder("another")
    b.output(b.relu(b.dense(b.input("features", (30, 40), "f32"), W + 1)), name="logits")
    assert kernel_keys(b.module()) == kernel_keys(dense())
    c = sw.Builder("main")
    c.output(c.relu(c.dense(c.input("x", (31, 40), "f32"), W)), name="y")
    assert kernel_keys(c.module()) != kernel_keys(dense())


def test_work_of_kernels_of_one_structure_is_their_sum() -> None:
    module = Compilation.of(Request(dense(), host(), 1, 3)).at("kernels")
    (one,) = search._kernels_of(module, host())
    for name in ("second", "third"):
        copy = one.op.clone()
        copy.sym_name = StringAttr(name)
        module.op.body.block.add_op(copy)
    (three,) = search._kernels_of(module, host())
    assert three.names == (*one.names, "second", "third")
    assert three.work == 3 * one.work


def test_records_are_of_kernels_as_they_are_scheduled(tmp_path) -> None:
    """Rows that `loop-align-rows` makes longer are part of the structure of a kernel."""
    first, second = (gnn.GCNConv(np.ones(shape, np.float32)) for shape in ((8, 24), (24, 12)))
    features = sw.TensorSpec((None, 8), "f32")
    network = gnn.Sequential(first, gnn.ReLU(), second)
    module = network.to_module(gnn.GraphSpec(), features=features)
    compilation = Compilation.of(Request(module, host(), 1))
    kernels = search._kernels_of(compilation.unscheduled(), host())
    assert len(kernels) > 2
    path = tmp_path / "tuning.jsonl"
    write_records(path, [Record(k.key, host().cpu, 1, k.default, 0.5, kept=True) for k in kernels])
    exe = sw.compile(module, threads=1, records=path)
    assert "loop-align-rows" in exe.explain()
    why = {d.why for d in exe.decisions if d.pass_name == "loop-schedule"}
    assert why == {"tuning found it faster"}


def test_what_cannot_be_tuned(monkeypatch, tmp_path) -> None:
    path = tmp_path / "tuning.jsonl"
    with pytest.raises(CompileError, match=r"^tune: wrong budget, expected above 0, got 0$"):
        tune(dense(), 0, records=path)
    with pytest.raises(CompileError, match=r"^tune: wrong timeout, expected above 0, got -1$"):
        tune(dense(), 1, records=path, timeout_s=-1)
    with pytest.raises(CompileError, match=r"^tune: nothing is scheduled, expected an earlier "):
        tune(dense(), 1, records=path, opt_level=0)
    with pytest.raises(sw.TargetError, match=r"rv64gcv: cannot run here"):
        tune(dense(), 1, records=path, target="rv64gcv")
    path.write_text("no record\n")
    with pytest.raises(CompileError, match=r"tuning records: line 1 of .* is not a record"):
        tune(dense(), 1, records=path)
    assert path.read_text() == "no record\n"
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(StepwellError, match=r"tune: optuna is not installed; pip install 'step"):
        tune(dense(), 1, records=path)


def test_the_command(planted, tmp_path, capsys) -> None:
    planted('0.5 if "split(" in text else 1.02')
    model, path = tmp_path / "m.mlir", tmp_path / "tuning.jsonl"
    dense().save(model)
    options = ["--budget", "2", "--threads", "1", "--timeout", "0.5", "--records", str(path)]
    with pytest.raises(SystemExit) as ended:
        main(["tune", str(model), *options])
    assert not ended.value.code
    printed = capsys.readouterr().out
    assert "fused_dense_relu" in printed
    assert f"a call takes 0.50 of the time; recorded in {path}" in printed.replace("\n", "")
    assert any(json.loads(line)["kept"] for line in path.read_text().splitlines())
