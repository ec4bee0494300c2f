"""`sw.run_passes` and `Module.run`: some passes on a module, and its meaning at any stage."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

import stepwell as sw
from stepwell.api import running
from stepwell.core.ir.context import CompilerContext

X = np.arange(-6, 6, dtype=np.float32).reshape(3, 4)


def model() -> sw.Module:
    b = sw.Builder("main")
    x = b.input("x", (None, 4), "f32")
    b.output(b.softmax(b.relu(b.add(x, 1.0))), name="y")
    return b.module()


def test_every_step_runs() -> None:
    module = model()
    expected = module.run(X)
    text = str(module)
    for passes in (
        "graph-open-composites{late=true}, graph-fuse-ops",
        "convert-graph-to-loop",
        "loop-align-rows, loop-schedule",
        "convert-graph-to-rt",
        "loop-legalize-vectors, convert-loop-to-scf",
        "rt-outline-tiles, convert-math-to-arith, convert-scf-to-cf",
        "convert-rt-to-llvm{threads=1}, convert-to-llvm",
    ):
        before = module
        module = sw.run_passes(module, passes, target="x86-64-v3")
        assert module is not before
        np.testing.assert_allclose(module.run(X), expected, rtol=1e-6)
    assert str(model()) == text
    assert any(decision.pass_name == "graph-fuse-ops" for decision in module.decisions)
    np.testing.assert_allclose(sw.compile(module)(X), expected, rtol=1e-6)


@pytest.mark.parametrize("verify_each", [True, False])
def test_hooks_see_each_pass(verify_each: bool) -> None:
    class Seen(sw.PassHook):
        def __init__(self) -> None:
            self.names: list[str] = []

        def after_pass(self, ctx: CompilerContext, op: ModuleOp) -> None:
            self.names.append(ctx.pass_name)

    seen = Seen()
    sw.run_passes(model(), "graph-cse,graph-fuse-ops", hooks=[seen], verify_each=verify_each)
    assert seen.names == ["graph-cse", "graph-fuse-ops"]


class Crashes(ModulePass):
    name = "crashes"

    def apply(self, ctx: Any, op: ModuleOp) -> None:
        raise KeyError("gone")


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda m: sw.run_passes(m, "graph-fuze-ops"), sw.CompileError, 'unknown pass "graph-fuze'),
        (lambda m: sw.run_passes(m, "graph-cse{x=1}"), sw.CompileError, "graph-cse: bad options"),
        (lambda m: sw.run_passes(m, 3), sw.CompileError, "passes is not a text, expected str"),
        (lambda m: sw.run_passes("m", "graph-cse"), sw.CompileError, "run_passes: not a module"),
        (lambda m: sw.run_passes(m, "graph-cse", hooks=[3]), sw.CompileError, "not a hook"),
        (lambda m: sw.run_passes(m, "graph-cse", target="z80"), sw.TargetError, "z80"),
        (lambda m: sw.run_passes(m, "crashes"), sw.InternalError, "crashes: .*KeyError"),
        (lambda m: m.run(X, X), sw.InputError, "wrong number of inputs"),
        (lambda m: m.run(X[:, :2]), sw.InputError, "wrong shape"),
    ],
)
def test_messages(
    call: Callable[[Any], Any],
    error: type[Exception],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = running.available_passes() | {"crashes": lambda: Crashes}
    monkeypatch.setattr(running, "available_passes", lambda: known)
    with pytest.raises(error, match=message):
        call(model())
