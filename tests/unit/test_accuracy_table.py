"""`benchmarks/accuracy.py` has every operator with an approximation or a sum, and sees errors."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepwell.dialects.graph.dialect import Graph

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def accuracy() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        return importlib.import_module("accuracy")


def test_every_operator_has_a_case_or_is_exact(accuracy: Any) -> None:
    measured = set[str]()
    for case in accuracy.CASES.values():
        module = accuracy.module_of(case, case.types[0])
        measured |= {op.name for op in module.op.walk() if op.name.startswith("graph.")}
    plain = {f"graph.{name}" for line in accuracy.WITHOUT_A_CASE.values() for name in line.split()}
    names = {op.name for op in Graph.operations}
    assert plain <= names
    # Those without a case stand beside others, in programs of several operators.
    assert measured | plain == names, names - measured - plain
    assert "graph.requantize" in measured


def test_errors_are_in_units_of_the_exact_result(accuracy: Any) -> None:
    exact = np.array([1, 3, 2.0**-130, np.inf, np.nan, 1e39], np.longdouble)
    with np.errstate(over="ignore"):
        right = exact.astype(np.float32)
    assert accuracy.error_of(right, exact, exact).largest == 0
    wrong = right.copy()
    wrong[1] = np.nextafter(wrong[1], np.float32(9))
    wrong[2] += np.float32(3 * 2.0**-149)
    error = accuracy.error_of(wrong, exact, exact)
    assert error.largest == 3
    assert error.mean == pytest.approx((1 + 3) / 6)
    wrong[3] = 0
    assert accuracy.error_of(wrong, exact, exact).largest == np.inf


def test_a_case_is_measured(accuracy: Any) -> None:
    errors = accuracy.measure(accuracy.CASES["exp"], "f32")
    assert 0.5 <= errors["stepwell"].largest < 2
    assert errors["numpy"].largest >= 0.5
