"""Saved programs: weights that are stored once and replaced, and the number of threads."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stepwell as sw

from ..harness import cases, floats, same
from .test_artefacts import X, changed, in_a_process, members, network


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("weights") / "network.stepwell"
    network().save(path)
    return path


def bits(array: Any) -> list[bytes]:
    """The bits of an array, or of the three of a CSR matrix."""
    parts = [array] if isinstance(array, np.ndarray) else [array.indptr, array.indices, array.data]
    return [part.tobytes() for part in parts]


def test_weights_can_be_replaced(
    saved: Path, monkeypatch: pytest.MonkeyPatch, all_tests: bool
) -> None:
    """They are packed anew, and nothing is compiled."""
    exe = sw.load(saved)
    weights = network().weights("optimized")
    old = {name: weights[name] for name in weights}
    new = {name: array * np.float32(-0.5) for name, array in old.items()}
    with monkeypatch.context() as changed:
        changed.setattr("stepwell.driver.compilation.machine_code", None)
        exe.update(new)
        moved = exe(X)
        exe.update(old)
        same(exe(X), network()(X))
        exe.update(new)
    if all_tests:
        again = sw.load(saved, recompile=True)
        again.update(new)
        same(again(X), moved)
    exe.save(saved.with_name("updated.stepwell"))
    same(sw.load(saved.with_name("updated.stepwell"))(X), moved)
    same(sw.load(saved)(X), network()(X))


def test_weights_are_stored_once(saved: Path, tmp_path: Path) -> None:
    """Packed, as the code reads them; the IR has them again, bit for bit."""
    exe, path = network(), tmp_path / "program.stepwell"
    stored = json.loads(members(saved)["manifest.json"])["source"]["weights"]
    assert sum("packed" in entry for entry in stored) == 2
    assert not any(name.startswith("weights/") for name in members(saved))
    weights = exe.weights("optimized")
    again = sw.load(saved).weights("optimized")
    assert list(weights) == list(again)
    for name in weights:
        assert bits(weights[name]) == bits(again[name])
    # A program whose constants are not known to be made of its weights is compiled anew.
    exe.save(path)
    other = sw.load(changed(path, lambda m: m["programs"][0].update(renewable=False)))
    other.update({name: weights[name] * np.float32(0) for name in weights})
    same(other(X)[0], np.full((5, 8), 1 / 8, np.float32))


def test_several_threads_call_a_loaded_program(saved: Path) -> None:
    exe = sw.load(saved)
    inputs = [floats(n, 16) for n in range(40)]
    expected = [network()(x) for x in inputs]
    with ThreadPoolExecutor(4) as callers:
        for got, wanted in zip(callers.map(exe, inputs * 5), expected * 5, strict=True):
            same(got, wanted)


LIMITED = """
import os, sys
import numpy as np
import stepwell as sw
exe = sw.load(sys.argv[1])
before = len(os.listdir("/proc/self/task"))
y, _ = exe(np.load(sys.argv[2]))
np.save(sys.argv[3], y)
print(len(os.listdir("/proc/self/task")) - before)
"""


WAYS = [(way, stated) for way in ("image", "object") for stated in ("1", "2", "3")]


@pytest.mark.parametrize("way", cases(WAYS, [("image", "1")]), ids="-".join)
def test_the_environment_lowers_the_number_of_threads(
    way: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    form, stated = way
    path, x = tmp_path / "program.stepwell", floats(4000, 16)
    if form == "object":
        monkeypatch.setattr("stepwell.runtime.artefacts.writing._CODE", ("no system",))
    network().save(path)
    np.save(tmp_path / "x.npy", x)
    files = path, tmp_path / "x.npy", tmp_path / "y.npy"
    monkeypatch.setenv("STEPWELL_NUM_THREADS", stated)
    assert in_a_process(LIMITED, *files) == ("0" if stated == "1" else "1")
    same(np.load(files[2]), network()(x)[0])
    monkeypatch.setenv("STEPWELL_NUM_THREADS", "none")
    with pytest.raises(sw.TargetError, match="STEPWELL_NUM_THREADS: wrong number of threads"):
        sw.load(path)
