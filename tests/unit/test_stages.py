"""The stage that a module states: who writes it, and what is refused."""

from __future__ import annotations

import re

import numpy as np
import pytest

import stepwell as sw
from stepwell.core.pipelines.stages import IR_STAGES
from stepwell.core.pipelines.staircase import pipeline, run_passes
from stepwell.core.registry import make_context
from stepwell.dialects.stages import STAGE, reach, stage_of
from stepwell.driver.compilation import Compilation
from stepwell.driver.request import Request

W = np.arange(12, dtype=np.float32).reshape(3, 4)


def model() -> sw.Module:
    b = sw.Builder("main")
    b.output(b.relu(b.dense(b.input("x", (2, 4)), W)), name="y")
    return b.module()


def at(stage: str, level: int = 3) -> sw.Module:
    return Compilation.of(Request(model(), threads=1, opt_level=level)).at(stage)


def after(module: sw.Module, passes: str) -> sw.Module:
    run_passes(make_context(module.weights), module.op, passes)
    return module


def stated(module: sw.Module) -> str | None:
    found = re.search(rf'{STAGE} = "(\w+)"', module.text())
    return None if found is None else found[1]


def test_conversions_write_it() -> None:
    for stage in IR_STAGES:
        module = at(stage)
        early = stage in ("graph", "optimized")
        assert stated(module) == (None if early else stage)
        assert stage_of(module.op) == ("graph" if early else stage)


def test_without_a_schedule_it_stays() -> None:
    """At level 0 no pass schedules, and a later compilation may."""
    assert stated(at("scheduled", 0)) == "kernels"


@pytest.mark.parametrize("passes", ["loop-drop-unit-loops", "loop-split{loop=i factor=2}"])
def test_steps_of_a_schedule_write_it(passes: str) -> None:
    assert stated(after(at("kernels"), passes)) == "scheduled"


def test_passes_back_to_operators_remove_it() -> None:
    module = after(at("fused"), "graph-defuse")
    assert stated(module) is None
    assert stage_of(module.op) == "graph"


def test_a_schedule_says_nothing_of_a_module_that_has_operators() -> None:
    module = at("kernels")
    del module.op.attributes[STAGE]
    assert stated(after(module, "loop-schedule")) is None


def test_text_without_it_is_at_the_stage_of_its_contents() -> None:
    for stage in IR_STAGES[2:]:
        module = at(stage)
        del module.op.attributes[STAGE]
        # Kernels would be grouped and scheduled again, which changes none that were.
        assert stage_of(module.op) == ("optimized" if stage == "fused" else stage)


WRONG = [
    ("graph", "lops", 'unknown stage, expected graph, .*, got "lops"$'),
    ("optimized", "kernels", 'graph.dense is of another stage, expected "graph" to "fused", got'),
    ("fused", "scheduled", 'func.func is of another stage, expected "graph" to "fused", got'),
    ("kernels", "buffers", 'func.func is .*, expected "graph" to "scheduled", got "buffers"'),
    ("buffers", "loops", 'loop.kernel is .*, expected "graph" to "buffers", got "loops"'),
    ("loops", "kernels", 'func.func is .*, expected "buffers" to "loops", got "kernels"'),
    ("llvm", "loops", 'llvm.func is .*, expected "llvm", got "loops".*; without the attribute'),
]


@pytest.mark.parametrize(("stage", "claimed", "message"), WRONG)
def test_what_is_of_another_stage_is_refused(stage: str, claimed: str, message: str) -> None:
    module = at(stage)
    reach(module.op, claimed)
    with pytest.raises(sw.ImportModelError, match=f"^text: {STAGE}: {message}"):
        sw.from_mlir(module.text(), weights=module.weights)
    with pytest.raises(sw.CompileError, match=f"^{STAGE}: {message}"):
        sw.compile(module, threads=1)


def test_passes_of_a_stage_that_was_reached_do_not_run() -> None:
    module = at("fused")
    texts = pipeline() | {"optimized": "no-such-pass", "fused": "no-such-pass"}
    exe = sw.compile(module, threads=1, pipeline=texts)
    assert exe.stages[0] == "fused"
