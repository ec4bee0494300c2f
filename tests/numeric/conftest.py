"""Fixtures of numeric tests."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from stepwell.core import cuda

from .stand_in import StandIn, built


@pytest.fixture(scope="session")
def stand_in_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("driver"))


@pytest.fixture
def driver(stand_in_library: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    """A stand-in in place of the driver; nothing is left on it after the test."""
    gc.collect()
    monkeypatch.setattr(cuda, "LIBRARY", str(stand_in_library))
    cuda.driver.cache_clear()
    made = StandIn(stand_in_library)
    yield made
    cuda.driver.cache_clear()
    gc.collect()
    assert (made.live, made.depth) == (0, 0)
