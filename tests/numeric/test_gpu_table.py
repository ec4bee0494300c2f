"""`benchmarks/gpu.py` compares results before it times anything, and needs a GPU for times."""

from __future__ import annotations

import importlib
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from stepwell.core import cuda

from .stand_in import StandIn

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
SMALL = "product 20"


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module, with a small case."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    found = importlib.import_module("gpu")
    monkeypatch.setitem(found.CASES, SMALL, partial(found.matmul, 20))
    found.made.cache_clear()
    found.compiled.cache_clear()
    return found


def test_times_of_kernels_follow_results(table: Any, driver: StandIn) -> None:
    case = table.CASES[SMALL]
    assert float(table.compared(SMALL, case)["difference to the host"]) < 1e-6
    row = table.timed(SMALL, case, repeat=1)
    assert row.keys() >= {"kernels", "call", "rate"}
    table.compiled.cache_clear()


def test_a_wrong_result_ends_it(
    table: Any, driver: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "TOLERANCE", -1.0)
    with pytest.raises(SystemExit, match=r"^product 20: .* of the largest element away from the"):
        table.compared(SMALL, table.CASES[SMALL])
    table.compiled.cache_clear()


def test_no_gpu_is_one_sentence(table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "LIBRARY", "libno-driver.so")
    cuda.driver.cache_clear()
    with pytest.raises(SystemExit, match=r"^target: NVIDIA's driver is not installed[^\n]*$"):
        table.compared(SMALL, table.CASES[SMALL])
    with pytest.raises(table.LeftOutError, match="times of an emulator say nothing"):
        table.timed(SMALL, table.CASES[SMALL], target="cuda:sm_90,emulated")
