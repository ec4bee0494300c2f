"""Hooks are called around each pass, may skip it, and see the IR that a failing one leaves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects import func, test
from xdsl.dialects.builtin import ModuleOp, i32
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import PassFailedException

import stepwell as sw
from stepwell.core import plugins
from stepwell.core.ir.context import CompilerContext, PassHook
from stepwell.core.pipelines.pass_manager import run_steps
from stepwell.core.pipelines.staircase import pipeline, pipeline_text
from stepwell.core.registry import make_context
from stepwell.dialects.graph import ops as graph
from stepwell.tools import stepwell_opt


class Told(PassHook):
    """Appends its events to a list that several hooks use."""

    def __init__(self, log: list[str], name: str = "", veto: str | None = None) -> None:
        self.log, self.name, self.veto = log, name, veto

    def before_pass(self, ctx: CompilerContext, op: ModuleOp) -> bool | None:
        self.log.append(f"{self.name}before {ctx.pass_name}, {len(ctx.pending)} to come")
        return ctx.pass_name != self.veto

    def pass_dropped(self, ctx: CompilerContext, op: ModuleOp) -> None:
        self.log.append(f"{self.name}left out {ctx.pass_name}")

    def after_pass(self, ctx: CompilerContext, op: ModuleOp) -> None:
        self.log.append(f"{self.name}after {ctx.pass_name}")

    def pass_failed(self, ctx: CompilerContext, op: ModuleOp, error: Exception) -> None:
        self.log.append(f"{self.name}failed {ctx.pass_name}: {error}")

    def before_phase(self, ctx: CompilerContext, phase: str) -> None:
        self.log.append(f"{self.name}{phase}")

    def after_phase(self, ctx: CompilerContext, phase: str) -> None:
        self.log.append(f"{self.name}{phase} done")


@dataclass(frozen=True)
class Adds(ModulePass):
    """Puts in an operation; `sound` says whether the module is still valid then."""

    name = "adds"
    sound: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.sound:
            op.body.block.add_op(test.TestOp())
        else:
            op.body.block.add_op(func.ReturnOp(test.TestOp(result_types=[i32]).res[0]))


class Refuses(ModulePass):
    name = "refuses"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        raise PassFailedException("no such luck")


class Crashes(ModulePass):
    name = "crashes"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        raise KeyError("inside")


def run(*steps: ModulePass, verify: Any = "stage", veto: str | None = None) -> list[str]:
    log: list[str] = []
    ctx = make_context()
    ctx.hooks, ctx.verify = [Told(log, "1 "), Told(log, "2 ", veto)], verify
    try:
        run_steps(ctx, ModuleOp([]), steps, "some")
    except Exception as error:
        log.append(f"raised {type(error).__name__}")
    log += map(str, ctx.decisions)
    return log


def test_the_last_hook_is_next_to_the_pass() -> None:
    assert run(Adds(), Adds()) == [
        "1 before adds, 1 to come",
        "2 before adds, 1 to come",
        "2 after adds",
        "1 after adds",
        "1 before adds, 0 to come",
        "2 before adds, 0 to come",
        "2 after adds",
        "1 after adds",
        "1 verify",
        "2 verify",
        "2 verify done",
        "1 verify done",
    ]


def test_verification_after_each_pass_or_never() -> None:
    assert run(Adds(), verify="pass")[2:7] == [
        "1 verify",
        "2 verify",
        "2 verify done",
        "1 verify done",
        "2 after adds",
    ]
    assert not [line for line in run(Adds(), verify="never") if "verif" in line]


def test_a_veto_leaves_a_pass_out() -> None:
    assert run(Refuses(), verify="never", veto="refuses") == [
        "1 before refuses, 0 to come",
        "2 before refuses, 0 to come",
        "1 left out refuses",
        "pipeline: skips the pass, because a hook requested it",
    ]


@pytest.mark.parametrize(
    ("step", "verify", "message", "raised"),
    [
        (Refuses(), "stage", "failed refuses: refuses: no such luck", "CompileError"),
        (Crashes(), "stage", "failed crashes: 'inside'", "KeyError"),
        (Adds(sound=False), "pass", "failed adds: adds: result does not verify: ", "CompileError"),
        (Adds(sound=False), "stage", "failed adds: adds: result does not verify: ", "CompileError"),
    ],
)
def test_hooks_are_told_of_failures(
    step: ModulePass, verify: str, message: str, raised: str
) -> None:
    log = run(step, Adds(), verify=verify) if verify == "pass" else run(step, verify=verify)
    assert log[-3].startswith(f"2 {message}")
    assert log[-2].startswith(f"1 {message}")
    assert log[-1] == f"raised {raised}"


@pytest.fixture
def module() -> sw.Module:
    b = sw.Builder("main")
    x = b.input("x", (3, 4), "f32")
    b.output(b.relu(b.relu(x)), name="y")
    return b.module()


def test_compile_tells_hooks(module: sw.Module) -> None:
    log: list[str] = []
    exe = sw.compile(module, hooks=[Told(log)])
    assert "after convert-graph-to-loop" in log
    assert log[:2] == ["load passes", "load passes done"]
    assert log[2].startswith("before graph-open-composites, ")
    assert log[-2:] == ["codegen", "codegen done"]
    assert "before convert-to-llvm, 0 to come" in log
    assert np.array_equal(exe(np.full((3, 4), -1.0, np.float32)), np.zeros((3, 4), np.float32))


def test_hooks_are_a_sequence(module: sw.Module) -> None:
    for hooks in (PassHook(), iter([PassHook()]), None):
        message = r"^compile: wrong hooks, expected a sequence of stepwell\.PassHook, got \w+$"
        with pytest.raises(sw.CompileError, match=message):
            sw.compile(module, hooks=hooks)  # type: ignore[arg-type]


class Interrupted(ModulePass):
    name = "interrupted"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        raise KeyboardInterrupt


def test_hooks_let_go_of_a_pass_that_is_interrupted() -> None:
    log: list[str] = []
    ctx = make_context()
    ctx.hooks = [Told(log, "1 "), Told(log, "2 ")]
    with pytest.raises(KeyboardInterrupt):
        run_steps(ctx, ModuleOp([]), [Interrupted()])
    assert log[2:] == ["2 left out interrupted", "1 left out interrupted"]


class Breaks(PassHook):
    """A hook that is wrong itself."""

    def __init__(self, at: str) -> None:
        self.at = at

    def before_pass(self, ctx: CompilerContext, op: ModuleOp) -> None:
        if self.at == "before":
            raise ValueError("broken")

    def pass_failed(self, ctx: CompilerContext, op: ModuleOp, error: Exception) -> None:
        raise ValueError("broken")


def test_hooks_let_go_of_a_pass_before_which_another_raises() -> None:
    log: list[str] = []
    ctx = make_context()
    ctx.hooks = [Told(log), Breaks("before"), Told(log)]
    with pytest.raises(ValueError, match="broken"):
        run_steps(ctx, ModuleOp([]), [Adds()])
    assert log == ["before adds, 0 to come", "left out adds"]


def test_what_a_pass_says_goes_on_whatever_hooks_do() -> None:
    log: list[str] = []
    ctx = make_context()
    ctx.hooks = [Told(log), Breaks("failed")]
    with pytest.raises(sw.CompileError, match="no such luck") as caught:
        run_steps(ctx, ModuleOp([]), [Refuses()])
    assert caught.value.__notes__ == ["Breaks failed as well: broken"]
    assert log[-1] == "failed refuses: refuses: no such luck"


@pytest.mark.usefixtures("usual_verification")
def test_compile_verifies_each_pass_on_request(module: sw.Module) -> None:
    logs: dict[bool, list[str]] = {False: [], True: []}
    for verify_each, log in logs.items():
        sw.compile(module, hooks=[Told(log)], verify_each=verify_each)
    passes = sum(line.startswith("after ") for line in logs[True])
    assert logs[True].count("verify done") == passes
    assert logs[False].count("verify done") == 0, "LLVM verifies the result"
    usual, log = pipeline_text(pipeline()), list[str]()
    sw.compile(module, hooks=[Told(log)], pipeline=usual)
    assert log.count("verify done") == 7, "once for each stage"
    sw.compile(module, hooks=[Told(log)], check=True)
    assert log.count("verify done") == 14, "the same"


class OtherOp(graph.ReluOp):
    """An operator of another package."""


@pytest.mark.usefixtures("usual_verification")
@pytest.mark.parametrize("extension", ["operator", "rule", "plug-in"])
def test_compile_verifies_what_others_take_part_in(
    extension: str, module: sw.Module, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, table = list[str](), dict[str, object]()
    if extension == "operator":
        for relu in [op for op in module.op.walk() if isinstance(op, graph.ReluOp)]:
            Rewriter.replace_op(relu, OtherOp(*relu.operands))
    elif extension == "rule":
        table["graph.tanh"] = lambda op: None
    else:
        monkeypatch.setattr(plugins, "has_plugins", lambda: True)
    sw.compile(module, hooks=[Told(log)], legalize=table)
    assert log.count("verify done") == 2, "the stages that plug-ins take part in"


def test_a_pass_that_is_left_out_of_a_program_is_left_out_of_its_stages(module: sw.Module) -> None:
    exe = sw.compile(module, hooks=[Told([], veto="loop-schedule")])
    assert exe.ir("scheduled") == exe.ir("kernels")
    (left,) = [d for d in exe.decisions if d.pass_name == "loop-schedule"]
    assert str(left) == "pipeline: skips the pass, because a hook requested it"


def test_only_hooks_are_hooks(module: sw.Module) -> None:
    message = "compile: not a hook, expected stepwell.PassHook, got str"
    with pytest.raises(sw.CompileError, match=message):
        sw.compile(module, hooks=["print"])


def test_a_wrong_pass_of_a_late_stage_is_found_before_any_runs(module: sw.Module) -> None:
    log: list[str] = []
    texts = {"llvm": "no-such-pass"}
    from stepwell.core.pipelines.staircase import pipeline

    with pytest.raises(sw.CompileError, match="unknown pass"):
        sw.compile(module, pipeline=pipeline() | texts, hooks=[Told(log)])
    assert log == ["load passes", "load passes done"]


def test_the_driver_runs_the_same_hooks(capsys: pytest.CaptureFixture[str], tmp_path: Any) -> None:
    source = tmp_path / "m.mlir"
    source.write_text("func.func @f() { func.return }")
    stepwell_opt.main([str(source), "--check", "-p", "cse,canonicalize"])
    assert capsys.readouterr().err.splitlines() == ["cse: same bits", "canonicalize: same bits"]
