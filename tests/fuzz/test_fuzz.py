"""The fuzzer itself: what it makes, what it notices, and the cases that it found."""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stepwell as sw
from stepwell.dialects.graph.dialect import Graph
from stepwell.dialects.graph.ops import AddOp, ReluOp, YieldOp

from ..harness import cases
from . import comparing, corpus, record, running
from .choices import Choices
from .comparing import Comparison, Way, compare
from .operators import DERIVED, SQUARES, STRUCTURED, found_patterns, patterns_of
from .outcomes import DifferenceError
from .programs import Case, Program, random_case
from .running import case_of, check_graph
from .schedules import primitives, schedule
from .structures import random_structure

pytestmark = pytest.mark.usefixtures("every_stage_verified")

CASES = sorted(corpus.FOLDER.glob("*.mlir"))
LONG = ("attention-of-one-head",)


@pytest.mark.parametrize(
    "path",
    cases(CASES, [path for path in CASES if path.stem not in LONG]),
    ids=lambda path: path.stem,
)
def test_what_was_found_is_mended(path: Path) -> None:
    case, way = corpus.read(path)
    assert corpus.difference(case, way) is None


def test_every_operator_is_made() -> None:
    """An operator of the dialect that is in no program has too many conditions to be found."""
    assert {*DERIVED, *STRUCTURED, *SQUARES, YieldOp} == {*Graph.operations}
    missing = []
    for operator in DERIVED:
        programs = (Program(Choices(f"{operator.name} {n}")) for n in range(12))
        if not any(program.apply(operator) for program in programs):
            missing.append(operator.name)
    assert not missing


def test_structures_are_made() -> None:
    names = set[str]()
    for seed in range(30):
        program = Program(Choices(f"structure {seed}"))
        with suppress(sw.StepwellError):  # of a program that does not run
            program.step()
            for _ in range(3):
                random_structure(program)
        names |= {op.name for op in program.builder.take()}
        if names >= {op.name for op in STRUCTURED}:
            return
    raise AssertionError(f"in none: {sorted({op.name for op in STRUCTURED} - names)}")


def test_patterns_of_a_new_operator_are_searched_for() -> None:
    """The forms in the file are the faster way only."""
    assert found_patterns(AddOp)
    assert all(len(pattern) == 2 for pattern in patterns_of(AddOp))


def test_primitives_are_those_with_a_kernel() -> None:
    assert {"loop-split", "loop-vectorize", "loop-own"} <= primitives().keys()
    assert "loop-schedule" not in primitives()


@pytest.mark.parametrize("level", running.LEVELS)
def test_few_seeds(level: str, all_tests: bool) -> None:
    seeds = 8 if all_tests else 4
    kinds = [outcome.kind for n in range(seeds) if (outcome := running.LEVELS[level](n))]
    assert kinds.count("same") >= seeds * 3 // 4


@pytest.mark.slow
@pytest.mark.parametrize(("level", "last"), [("graph", 150), ("loop", 150), ("rt", 100)])
def test_more_seeds(level: str, last: int) -> None:
    summary, reached = running.run(level, 0, last)
    assert reached == last
    assert not summary.found


def test_a_seed_gives_one_program() -> None:
    one, other = random_case("graph 5"), random_case("graph 5")
    assert one is not None
    assert other is not None
    assert one.module.text() == other.module.text()


def test_a_wrong_operator_is_noticed_and_reduced(monkeypatch: pytest.MonkeyPatch) -> None:
    b = sw.Builder("main")
    x = b.input("x", ("n", 3), "f32")
    b.output(b.exp(b.relu(b.mul(x, 2.0))))
    case = Case(b.module(), [np.ones((2, 3), np.float32)], False)
    compare(case, Way())

    def reference(self: ReluOp, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        return self.stored(np.maximum(arrays[0], 0) * np.float32(1.001))

    monkeypatch.setattr(ReluOp, "reference", reference)
    with pytest.raises(DifferenceError, match=r"machine code: result 0 is .* ulp off, limit"):
        compare(case, Way())
    small = corpus.reduced(case, Way(), 20)
    assert [op.name for op in small.module.main.body.block.ops] == ["graph.relu", "func.return"]


@pytest.mark.parametrize("is_used", [False, True])
def test_a_call_compares_the_sizes_that_results_depend_on(is_used: bool) -> None:
    b = sw.Builder("main")
    x, y, n = b.input("x", ("n",), "f32"), b.input("y", ("m",), "f32"), b.input("n", (), "i64")
    total = b.reduce(x + y, "sum", axes=[0])
    zero, one, two = np.zeros(1, np.float32), np.ones(1, np.float32), np.ones(2, np.float32)

    def step(_: Any, h: Any) -> Any:
        following = h + total
        return following if is_used else h

    b.output(b.loop(n, step, zero))
    compared = Comparison(Case(b.module(), [two, two, np.array(3)], False), Way())
    with pytest.raises(DifferenceError) if is_used else nullcontext():
        assert compared.same("results", [two, one, np.array(3)], lambda _: (zero,)) == "same"


@pytest.mark.slow
def test_what_a_run_draws_is_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The primitives of a seed are those of a run, of `--save`, and of the file."""
    drawn = list[list[Any]]()

    def watched(choices: Choices, *args: Any) -> Any:
        found = schedule(choices, *args)
        drawn.append([choices.getrandbits(64), *found[1]])
        return found

    monkeypatch.setattr(comparing, "schedule", watched)
    seed = next(n for n in range(99) if Way.random(f"way {n}", False).primitives)
    case, way = case_of(seed)
    check_graph(seed)
    corpus.difference(case, way)
    corpus.write(tmp_path / "case.mlir", case, way, "nothing")
    corpus.difference(*corpus.read(tmp_path / "case.mlir"))
    first, *others = drawn
    assert others == [first, first]


def test_cases_are_text(tmp_path: Path) -> None:
    b = sw.Builder("main")
    a, x = b.input("a", sw.SparseSpec((2, 2), "f32")), b.input("x", (2,), "bf16")
    b.output(b.to_dense(a))
    b.output(x)
    inputs = [corpus.csr_array(np.eye(2, dtype=np.float32)), np.array([1, np.nan])]
    inputs[1] = inputs[1].astype(x.ssa.type and np.dtype("bfloat16"))
    path = tmp_path / "case.mlir"
    corpus.write(path, Case(b.module(), inputs, True), Way(rounding="kept"), "nothing")
    case, way = corpus.read(path)
    assert way == Way(rounding="kept")
    assert case.special
    assert corpus.difference(case, way) is None


@pytest.mark.parametrize(
    ("code", "message"),
    [("import os; os.abort()", "dies: -6"), ("import time; time.sleep(60)", "takes over 1 s")],
)
def test_a_process_that_dies_is_a_difference(
    monkeypatch: pytest.MonkeyPatch, code: str, message: str
) -> None:
    begin = f"print({json.dumps(json.dumps({'begin': 7}))}, flush=True)"
    monkeypatch.setattr(running, "COMMAND", (sys.executable, "-c", f"{begin}; {code}"))
    monkeypatch.setattr(running, "SECONDS", 1)
    summary, reached = running.run("rt", 7, 8)
    assert summary.found == [(7, message)]
    assert reached == 8


def test_the_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "PATH", tmp_path / "record.json")
    found = record.Record.read()
    summary = running.Summary()
    summary.add({"kind": "same", "seed": 0, "passes": {"cse": 2}, "operations": {"graph.add": 1}})
    summary.add({"kind": "different", "seed": 1, "text": "1 ulp"})
    for first in (0, 2):
        found.add("graph", first, first + 2, summary)
    found.write()
    again = record.Record.read()
    assert again.next_seed("graph") == 4
    assert again.ranges == {"graph": [[0, 4]]}
    assert again.kinds == {"graph": {"different": 2, "same": 2}}
    assert (again.passes, again.operations) == ({"cse": 4}, {"graph.add": 2})
    assert again.rare().items() >= {"graph.add": 2, "rt.clock": 0, "loop-own": 0}.items()
    again.passes["loop-own"] = again.operations["rt.clock"] = 100
    assert not again.rare().keys() & {"loop-own", "rt.clock"}
