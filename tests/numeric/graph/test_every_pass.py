"""Each pass of the `graph` level, and all of them together, keep what random programs compute."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import stepwell as sw
from stepwell.core.ir.module import Module
from stepwell.core.pipelines.staircase import pipeline
from stepwell.core.registry import own_passes

from ...harness import cases, close, is_quick, same

pytestmark = pytest.mark.usefixtures("every_stage_verified")

PASSES = [name for name in own_passes() if name.startswith("graph-")]
ROUNDING = ("graph-to-mixed-precision",)
"""Passes whose purpose is another result: they have tests of their own."""

SETTINGS = settings(
    max_examples=3 if is_quick() else settings().max_examples * 40 // 100,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

FEW = settings(SETTINGS, max_examples=settings().max_examples * 15 // 100)
"""Where each example is compiled."""


@pytest.mark.parametrize(
    "passes", [*(p for p in PASSES if p not in ROUNDING), "canonicalize", "cse"]
)
@SETTINGS
@given(data=st.data())
def test_one_pass(
    passes: str,
    data: st.DataObject,
    programs: st.SearchStrategy[Any],
    assert_same: Callable,
    transformed: Callable,
) -> None:
    """It keeps what a program computes, and a second run changes nothing."""
    case = data.draw(programs)
    once = assert_same(case.module, passes, *case.inputs, tolerance=case.tolerance)
    if passes in PASSES:
        twice, _ = transformed(once, passes)
        assert str(twice) == str(once)


BESIDE = ["", "graph-fold-constant", "graph-fuse-ops", "pipeline"]


@pytest.mark.parametrize("passes", cases(BESIDE, ["graph-fuse-ops", "pipeline"]))
@pytest.mark.parametrize(
    ("kind", "about"),
    [
        ("quantized", "graph-raise-quantized"),
        ("standardized", "graph-open-composites"),
        ("normalized", "graph-open-composites"),
        ("convolution", "graph-alter-op-layout"),
        ("attention", "graph-order-contractions"),
    ],
)
@SETTINGS
@given(data=st.data())
def test_much_of_one_kind(
    kind: str,
    about: str,
    passes: str,
    data: st.DataObject,
    programs_with: Callable[[str], st.SearchStrategy[Any]],
    assert_same: Callable,
) -> None:
    """Programs with what a pass is about, and with others before and after it."""
    case, texts = data.draw(programs_with(kind)), pipeline(1)
    steps = [texts["optimized"], texts["fused"]] if passes == "pipeline" else [about, passes]
    text = ",".join(step for step in steps if step)
    assert_same(case.module, text, *case.inputs, tolerance=case.tolerance)


@pytest.mark.parametrize("passes", ROUNDING)
@SETTINGS
@given(data=st.data())
def test_a_second_run_changes_nothing(
    passes: str, data: st.DataObject, programs: st.SearchStrategy[Any], transformed: Callable
) -> None:
    once, _ = transformed(data.draw(programs).module, passes)
    twice, _ = transformed(once, passes)
    assert str(twice) == str(once)


@pytest.mark.parametrize("level", [0, 1])
@SETTINGS
@given(data=st.data())
def test_the_pipeline(
    level: int, data: st.DataObject, programs: st.SearchStrategy[Any], assert_same: Callable
) -> None:
    case, texts = data.draw(programs), pipeline(level)
    passes = f"{texts['optimized']},{texts['fused']}"
    assert_same(case.module, passes, *case.inputs, tolerance=case.tolerance)


@SETTINGS
@given(data=st.data())
def test_defusing_is_the_inverse_of_fusing(
    data: st.DataObject, programs: st.SearchStrategy[Any], transformed: Callable
) -> None:
    module: Module = data.draw(programs).module
    before, _ = transformed(module, "graph-defuse")
    after, _ = transformed(before, "graph-fuse-ops,graph-defuse")
    assert _text(after) == _text(before)


@pytest.mark.parametrize("passes", ["graph-defuse", "graph-fuse-ops"])
@SETTINGS
@given(data=st.data())
def test_text_is_read_back(
    passes: str,
    data: st.DataObject,
    programs: st.SearchStrategy[Any],
    transformed: Callable,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    case = data.draw(programs)
    module, _ = transformed(case.module, passes)
    path = tmp_path_factory.mktemp("text") / "m.mlir"
    module.save(path)
    again = sw.from_mlir(path)
    assert str(again) == str(module)
    want, have = (m.run_reference(*case.inputs) for m in (module, again))
    same(have, want)


@pytest.mark.parametrize("kind", ["", "quantized", "standardized"])
@FEW
@given(data=st.data())
def test_compiled_programs(
    kind: str,
    data: st.DataObject,
    programs: st.SearchStrategy[Any],
    programs_with: Callable[[str], st.SearchStrategy[Any]],
) -> None:
    """All passes, then machine code."""
    case = data.draw(programs_with(kind) if kind else programs)
    exe = sw.compile(case.module, threads=1)
    want = case.module.run_reference(*case.inputs)
    close(exe(*case.inputs), want, case.tolerance, scaled=True)


def _text(module: Module) -> str:
    """The text without the names of values, which are for the reader."""
    copy = module.clone()
    for op in copy.op.walk():
        for value in (*op.results, *(a for r in op.regions for b in r.blocks for a in b.args)):
            value.name_hint = None
    return copy.text()
