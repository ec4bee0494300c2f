"""Fixtures of numeric tests."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from xdsl.ir import Operation

from stepwell.conversions.loop_to_scf import tiles
from stepwell.core import cuda
from stepwell.dialects.loop.ops import ForOp

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


@pytest.fixture
def forget_barrier(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Lets the conversion of blocks of threads forget the barrier of a number."""
    derived = tiles.barriers

    def forget(missing: int) -> None:
        def forgetful(blocks: ForOp) -> set[Operation]:
            found = derived(blocks)
            kept = [op for op in blocks.walk() if op in found]
            return {op for number, op in enumerate(kept) if number != missing}

        monkeypatch.setattr(tiles, "barriers", forgetful)

    return forget
