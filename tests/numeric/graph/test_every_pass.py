"""Each pass of the `graph` level, and all of them together, keep what random programs compute."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stepwell.core.module import Module
from stepwell.core.pipelines import pipeline
from stepwell.core.registry import own_passes

PASSES = [name for name in own_passes() if name.startswith("graph-")]

SETTINGS = settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@pytest.mark.parametrize("passes", [*PASSES, "canonicalize", "cse"])
@SETTINGS
@given(data=st.data())
def test_one_pass(
    passes: str, data: st.DataObject, programs: st.SearchStrategy[Any], assert_same: Callable
) -> None:
    case = data.draw(programs)
    assert_same(case.module, passes, *case.inputs)


@pytest.mark.parametrize("passes", PASSES)
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
    assert_same(case.module, f"{texts['optimized']},{texts['fused']}", *case.inputs)


@SETTINGS
@given(data=st.data())
def test_defusing_is_the_inverse_of_fusing(
    data: st.DataObject, programs: st.SearchStrategy[Any], transformed: Callable
) -> None:
    module: Module = data.draw(programs).module
    before, _ = transformed(module, "graph-defuse")
    after, _ = transformed(before, "graph-fuse-ops,graph-defuse")
    assert _text(after) == _text(before)


def _text(module: Module) -> str:
    """The text without the names of values, which are for the reader."""
    copy = module.clone()
    for op in copy.op.walk():
        for value in (*op.results, *(a for r in op.regions for b in r.blocks for a in b.args)):
            value.name_hint = None
    return copy.text()
