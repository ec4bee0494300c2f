"""Schedules of users: each step is checked at once, and what they make computes the same."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import stepwell as sw
from stepwell.core.errors import CompileError
from stepwell.passes.loop.scheduler.primitives import PRIMITIVES
from stepwell.passes.loop.scheduler.records import read_records
from stepwell.tools.main import main
from stepwell.tuning import kernel_schedule
from stepwell.tuning.steps import Steps

from ..harness import close, floats

W = floats(19, 23)
X = floats(13, 23)
NAME = "fused_dense_relu"


def two_kernels() -> sw.Module:
    b = sw.Builder("main")
    x = b.input("x", (13, 23), "f32")
    h = b.relu(b.dense(x, W))
    b.output(h, name="h")
    b.output(b.cumulative(h, "sum"), name="y")
    return b.module()


@pytest.fixture(scope="module")
def module() -> sw.Module:
    return two_kernels()


def run(*arguments: str) -> None:
    with suppress(SystemExit):
        main(arguments)


def as_unscheduled(exe: sw.Executable, module: sw.Module) -> None:
    # Sums of 23 products and of 19 of these, in another order.
    close(exe(X), module.run_reference(X), 1e-4)


def test_steps_from_none(module: sw.Module) -> None:
    s = sw.schedule(module, NAME, start="none", threads=1)
    assert (s.kernel, s.steps, s.trace) == (NAME, [], "")
    assert s.loops[:2] == ["i", "j"]
    assert s.split("j", 8, tail="mask") is s
    s.vectorize("j1")
    assert s.trace == "split(j, 8, tail=mask); vectorize(j1)"
    assert "vector<8xf32>" in s.ir()
    exe = sw.compile(module, threads=1, schedule=s)
    assert f'loop.schedule = "{s.trace}"' in exe.ir("scheduled")
    (reason,) = [d.why for d in exe.decisions if d.what == s.trace]
    assert reason == "its trace is given"
    as_unscheduled(exe, module)
    assert sw.schedule(module, "fused_cumulative", threads=1).trace in exe.ir("scheduled")


def test_the_default_is_edited(module: sw.Module) -> None:
    s = sw.schedule(module, "@" + NAME, threads=1, target="x86-64-v3")
    default = s.steps
    assert s.trace in sw.compile(module, threads=1, target="x86-64-v3").ir("scheduled")
    with pytest.raises(CompileError, match=r'place \d+, .*: loop-\w+: no loop "'):
        s.replace(0, "split(i, 3)")
    assert s.steps == default
    s.remove().undo()
    assert s.steps == default
    s.remove()
    assert s.steps == default[:-1]
    s.insert(len(s.steps), default[-1])
    assert s.steps == default
    as_unscheduled(sw.compile(module, threads=1, target="x86-64-v3", schedule=[s]), module)


def test_a_step_that_is_not_legal_changes_nothing(module: sw.Module) -> None:
    s = sw.schedule(module, NAME, start="none", threads=1).split("j", 8)
    before = s.trace, s.ir()
    for wrong, message in (
        (lambda: s.split("z", 8), 'place 1, split(z, 8): loop-split: no loop "z" in'),
        (lambda: s.split("i", 0), "wrong factor, expected at least 1, got 0"),
        (lambda: s.take("split(i, 2); vectorize(k)"), "place 2, vectorize(k): loop-vectorize: "),
        (lambda: s.take("splitt(i, 2)"), "splitt: no such primitive; did you mean split"),
        (lambda: s.split("i", 1.5), "trace: cannot read split(i, 1.5), expected "),
        (lambda: s.split("i"), "split: factor is missing, expected split(loop, factor, tail"),
        (lambda: s.replace(7, "split(i, 2)"), "no place 7 among the steps of @fused_dense_relu"),
        (lambda: s.replace(0, "split(i, 2)").take("split(j0, 2)"), 'no loop "j0"'),
        (lambda: s.take("@other: split(i, 2)"), "steps of a kernel, expected steps only, got"),
        (lambda: s.undo().undo().undo(), "nothing of @fused_dense_relu can be undone"),
    ):
        with pytest.raises(CompileError) as caught:
            wrong()
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)
        if 'no loop "j0"' in message:
            s.undo()
        if "undone" not in message:
            assert (s.trace, s.ir()) == before
    with pytest.raises(AttributeError, match='schedule: no step "fus"; nearest: fuse'):
        getattr(s, NAME[:3])


def test_steps_whose_result_is_not_proved_are_refused(module: sw.Module) -> None:
    s = sw.schedule(module, NAME, start="none", threads=1).split("i", 6, tail="mask")
    before = s.ir()
    message = r'place 1, split\(i1, 4, tail=cases\): loop.for: iterations of loop "i0" may depend'
    with pytest.raises(CompileError, match=message):
        s.split("i1", 4, tail="cases")
    assert s.ir() == before
    s.undo().split("i", 2).reorder("i1", "i0")
    as_unscheduled(sw.compile(module, threads=1, schedule=s), module)


@pytest.mark.parametrize("step", ["loop=i factor=3 tail=mask", "loop=j factor=5"])
def test_the_default_continues_what_was_begun(module: sw.Module, step: str) -> None:
    begun = f"loop-split{{kernel={NAME} {step}}}"
    pipeline = sw.pipeline(threads=1).before("loop-schedule", begun)
    as_unscheduled(sw.compile(module, pipeline=pipeline), module)


def test_what_is_asked_of_a_schedule(module: sw.Module) -> None:
    with pytest.raises(CompileError, match=r"no such kernel, .*got @fused_dens; did you mean @fus"):
        sw.schedule(module, "fused_dens", threads=1)
    with pytest.raises(CompileError, match='unknown start, expected "default" or "none", got all'):
        sw.schedule(module, NAME, start="all")
    with pytest.raises(CompileError, match=r"^schedule: nothing is scheduled, expected an earlier"):
        sw.schedule(module, NAME, opt_level=0)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"fused_dens": ""},
            "no such kernel, expected @fused_dense_relu, @fused_cumulative, got @",
        ),
        ({"fused dense": ""}, "schedule: not the name of a kernel, expected a name, got 'fused d"),
        ({NAME: 3}, "schedule: wrong trace of @fused_dense_relu, expected text or a schedule"),
        ({NAME: "@a: split(i, 2)"}, "wrong trace of @fused_dense_relu, expected steps only, got"),
        ({NAME: "split(i"}, "trace: cannot read step 1, expected name(arguments); ..., got"),
        ({NAME: "split(z, 2)"}, 'step 1, split(z, 2): loop-split: no loop "z"'),
        ("split(i, 2)", "which kernel is meant is not said, expected one of @fused_dense_relu, "),
        (7, "schedule: not a schedule, expected text, a schedule, or traces by the names of"),
    ],
)
def test_schedules_that_do_not_fit(given: object, message: str, module: sw.Module) -> None:
    with pytest.raises(CompileError) as caught:
        sw.compile(module, threads=1, schedule=given)  # type: ignore[arg-type]
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_schedules_beside_other_arguments(module: sw.Module, all_tests: bool) -> None:
    given = {NAME: "split(j, 4)"}
    with pytest.raises(CompileError, match=r"^schedule: nothing is scheduled, expected an earlier"):
        sw.compile(module, opt_level=0, schedule=given)
    passes = sw.pipeline(threads=1).replace("loop-schedule", "loop-schedule{trace-file=a}")
    with pytest.raises(CompileError, match=r"the pipeline has a schedule: loop-schedule.trace-fil"):
        sw.compile(module, pipeline=passes, schedule=given)
    s = sw.schedule(module, NAME, threads=1)
    with pytest.raises(CompileError, match=r"^schedule: @fused_dense_relu has two$"):
        sw.compile(module, threads=1, schedule=[s, s])
    ways = [(2, None), (None, sw.pipeline(threads=2)), (None, sw.pipeline())]
    for threads, pipeline in ways if all_tests else ways[:2]:
        exe = sw.compile(module, threads=threads, pipeline=pipeline, schedule=given)
        assert "split(j, 4, tail=peel)" in exe.ir("scheduled")
        as_unscheduled(exe, module)
    again = sw.compile(sw.from_mlir(exe.ir("kernels"), exe.weights("kernels")), schedule=given)
    as_unscheduled(again, module)
    with pytest.raises(CompileError, match=r"^schedule: nothing is scheduled, expected an earlier"):
        sw.compile(sw.from_mlir(exe.ir("scheduled"), exe.weights("scheduled")), schedule=given)


def test_it_is_timed_and_recorded(
    module: sw.Module, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "tuning.jsonl"
    s = sw.schedule(module, NAME, start="none", threads=1).split("j", 4)
    with pytest.raises(CompileError, match=r"not been timed as it is now, expected time\(\) first"):
        s.record(path)
    timed = s.time(seconds=0.01)
    assert timed.seconds > 0
    assert timed.ratio == pytest.approx(timed.seconds / timed.default)
    assert " us a call, " in str(timed)
    assert s.record(path) == path
    (record,) = read_records(path).all()
    assert (record.trace, record.kept, record.kernel) == (s.trace, True, NAME)
    assert record.predicted is not None
    assert record.predicted > 1, "scalars in place of vectors"
    exe = sw.compile(module, threads=1, records=path)
    assert f'"{s.trace}"' in exe.ir("scheduled")
    s.split("i", 2)
    with pytest.raises(CompileError, match="not been timed as it is now"):
        s.record(path)
    monkeypatch.setenv("STEPWELL_TUNING", "")
    with pytest.raises(CompileError, match="there is no database, expected STEPWELL_TUNING, or"):
        s.record()
    monkeypatch.setattr(kernel_schedule.Bench, "compared", lambda *_: {"error": "wrong"})
    with pytest.raises(
        sw.MiscompilationError, match=r"^schedule of @fused_dense_relu: the results"
    ):
        s.time(X)


def test_it_is_shown(module: sw.Module) -> None:
    s = sw.schedule(module, NAME, start="none", threads=1)
    assert str(s) == "@fused_dense_relu\n  no steps"
    s.split("j", 4)
    assert str(s) == "@fused_dense_relu\n  0  split(j, 4, tail=peel)"
    assert repr(s) == f"<schedule of @fused_dense_relu: {s.trace}>"
    page = s._repr_html_()
    assert "<li><code>split(j, 4, tail=peel)</code></li>" in page
    assert "loop.for &quot;j1&quot;" in page
    assert "%" in s._repr_markdown_().partition("```mlir\n")[2]


def test_each_primitive_is_a_method(module: sw.Module) -> None:
    s = sw.schedule(module, NAME, start="none", threads=1)
    assert {*PRIMITIVES} <= {*dir(s)}
    assert s.split.__doc__ == PRIMITIVES["split"].function.__doc__
    with pytest.raises(NotImplementedError):
        Steps().take("split(i, 2)")


def test_the_command_takes_a_file(
    module: sw.Module, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, file = tmp_path / "m.mlir", tmp_path / "schedule.txt"
    module.save(model)
    file.write_text(f"# mine\n@{NAME}: split(j, 4);\n  split(i, 2)\n")
    given = ["--schedule", str(file), "--threads", "1"]
    run("compile", str(model), "--emit", "scheduled", *given)
    shown = re.findall(r'loop.schedule = "(.*?)"', capsys.readouterr().out)
    assert shown[0] == "split(j, 4, tail=peel); split(i, 2, tail=peel)"
    np.save(tmp_path / "x.npy", X)
    run("run", str(model), "-i", str(tmp_path / "x.npy"), *given)
    assert "h 13x19 float32" in capsys.readouterr().out
    run("compile", str(model), "--schedule", str(tmp_path / "none.txt"))
    assert "stepwell: error: --schedule: cannot read " in capsys.readouterr().err
    run("bisect", str(model), "--passes", "cse", *given)
    assert "--passes: is given together with --schedule" in capsys.readouterr().err
