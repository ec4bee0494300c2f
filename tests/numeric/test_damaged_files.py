"""Files with damage: whatever a reader is given ends in a result or in one error of the project.

Each reader gets real files of its kind in which bytes are changed, left out, doubled or exchanged,
numbers become huge and brackets nest; text and models also with other operations that still parse.
It reads them in a process of its own that may take little more memory than it has; what it reads is
compiled and called. See `tests/fuzz/mutants.py`, which does this with any number of seeds.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import stepwell as sw

from ..fuzz import mutants
from ..fuzz.mutants import summary
from ..fuzz.readers import FILES, KINDS, MEMBERS, TEXTS, Kind

SEEDS = {"artefact": 300, "scheduled bytes": 10}
"""Of what has machine code in it, there is more to see, and long texts take long."""
DAMAGED = (*FILES, *MEMBERS, "graph bytes", "scheduled bytes", "convolution bytes")
CHANGED = ("graph operations", "shapes messages")
"""Kinds of which much is compiled."""


def read_all(name: str, folder: Path, seeds: range) -> mutants.Summary:
    found = summary(KINDS[name], folder, seeds)
    assert not found.found, "\n".join(found.found)
    assert found.cases == len(seeds)
    return found


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_file_ends_in_one_error(name: str, tmp_path: Path, all_tests: bool) -> None:
    read_all(name, tmp_path, range(SEEDS.get(name, 20) // (1 if all_tests else 5)))


@pytest.mark.parametrize("name", CHANGED)
def test_a_changed_program_ends_in_one_error(name: str, tmp_path: Path, all_tests: bool) -> None:
    read_all(name, tmp_path, range(3 if all_tests else 1))


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_many_damaged_files(name: str, tmp_path: Path) -> None:
    found = read_all(name, tmp_path, range(1000, 1000 + 60))
    if name in TEXTS and name.endswith(("operations", "tokens")):
        assert found.read > found.cases / 4, "a third to two thirds of the changed text parses"


# What is found is seen.


FIRST = np.random.default_rng(0).bytes(4)
"""The file of seed 0."""


def does(what: str, content: bytes, kept: list[bytes]) -> object:
    """What must not happen, with the file of seed 0."""
    if content != FIRST:
        return None
    match what:
        case "signal":
            # The trace of this fault would look like one of the tests.
            faulthandler.disable()
            return os.kill(os.getpid(), signal.SIGSEGV)
        case "foreign":
            return 1 // 0
        case "internal":
            raise sw.CompileError("internal error: a pass failed")
        case "memory":
            return np.ones(2 * mutants.MEMORY, np.uint8)
        case "hang":
            return time.sleep(60)
        case _:
            return kept.append(b"1" * (2 * mutants.GROWTH))


def faulty(what: str) -> Kind:
    kept: list[bytes] = []
    write = partial(Path.write_bytes, data=b"")
    return Kind(
        Path.read_bytes, write, "", lambda _, rng: rng.bytes(4), partial(does, what, kept=kept)
    )


FOUND = {
    "signal": "seed 0: signal 11, status",
    "foreign": "ZeroDivisionError",
    "internal": "seed 0: foreign, internal error",
    "memory": "MemoryError",
    "hang": "seed 0: hang",
    "growth": "seeds from 0: growth",
}


@pytest.mark.parametrize("what", FOUND)
def test_what_goes_wrong_is_found(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if what == "hang":
        monkeypatch.setattr(mutants, "PATIENCE", 1)
    found = summary(faulty(what), tmp_path, range(3))
    assert len(found.found) == 1
    assert FOUND[what] in found.found[0]
    assert found.cases == 3
