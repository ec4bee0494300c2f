"""The order of the default pipeline is the one that passes state, and only that.

`Order:` in the docstring of a pass says which passes are before or after it, each with the reason.
Neighbours that say nothing about each other can be exchanged.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser
from xdsl.passes import ModulePass

from stepwell.core.ir.weights import WeightStore
from stepwell.core.pipelines import staircase as pipelines
from stepwell.core.pipelines.pass_manager import run_steps
from stepwell.core.pipelines.text import parse_passes
from stepwell.core.registry import make_context, passes
from stepwell.core.target import named

from ..harness import cases

LIT = Path(__file__).parents[1] / "lit" / "passes" / "graph"
FILES = sorted(path.stem for path in LIT.glob("*.mlir"))
USUAL = ["canonicalize-ops", "open-composites", "raise-quantized", "unroll-loops"]
"""Files with programs that an exchange of neighbours changes."""

_SECTION = re.compile(r"^Order: (.*?)(?=^\S|\Z)", re.MULTILINE | re.DOTALL)
_PLACE = re.compile(
    r"(before|after|preceded by|followed by) `([\w-]+)`(?: and `([\w-]+)`)?"
    r"(?: with `([\w-]+)` between)?, \S.*"
)


@dataclass(frozen=True)
class Place:
    """Where a pass has to be, beside another one."""

    name: str
    relation: str
    other: str
    between: str | None

    def holds(self, names: Sequence[str]) -> bool:
        """Whether a pipeline with both has them in this order."""
        own, others = ([n for n, name in enumerate(names) if name == one] for one in self.pair)
        middle = [n for n, name in enumerate(names) if name == self.between]
        match self.relation:
            case "before":
                kept = own[-1] < others[0]
                return kept and (not self.between or any(own[-1] < n < others[0] for n in middle))
            case "after":
                return others[-1] < own[0]
            case "preceded by":
                return others[0] < own[0]
            case _:
                return own[-1] < others[-1]

    @property
    def pair(self) -> tuple[str, str]:
        """The names of both."""
        return self.name, self.other


def places(name: str) -> Iterator[Place]:
    """The orders that a pass states."""
    for section in _SECTION.findall(inspect.getdoc(passes()[name]()) or ""):
        for part in " ".join(section.split()).removesuffix(".").split("; "):
            found = _PLACE.fullmatch(part)
            assert found, f"{name}: cannot read {part!r}"
            for other in filter(None, (found[2], found[3])):
                yield Place(name, found[1], other, found[4])


def steps(level: int) -> list[ModulePass]:
    """The passes of all stages."""
    texts = pipelines.own_pipeline(level).values()
    return [step for text in texts for step in parse_passes(text, passes())]


def misplaced(names: Sequence[str]) -> list[Place]:
    """The stated orders that a pipeline does not have."""
    stated = [place for name in dict.fromkeys(names) for place in places(name)]
    return [p for p in stated if p.other in names and not p.holds(names)]


@pytest.mark.parametrize("level", pipelines.OPT_LEVELS)
def test_passes_are_where_they_have_to_be(level: int) -> None:
    assert misplaced([step.name for step in steps(level)]) == []


def test_passes_name_passes_of_the_default_pipeline() -> None:
    known = {step.name for step in steps(3)}
    stated = [place for name in known for place in places(name)]
    assert len(stated) > 30
    assert {place.other for place in stated} <= known


@pytest.mark.parametrize(
    ("moved", "behind", "relation"),
    [
        ("graph-raise-quantized", "graph-fold-constant", "before"),
        ("graph-canonicalize-cast", "graph-raise-quantized", "after"),
        ("graph-sparsify-constant", "graph-open-composites", "preceded by"),
        ("graph-combine-parallel-dense", "graph-dce", "followed by"),
    ],
)
def test_a_pass_in_a_wrong_place_is_found(moved: str, behind: str, relation: str) -> None:
    names = [step.name for step in steps(3) if step.name != moved]
    names.insert(names.index(behind) + 1, moved)
    assert (moved, relation) in {(place.name, place.relation) for place in misplaced(names)}


def test_what_has_to_be_between_is_found() -> None:
    names = [step.name for step in steps(3)]
    del names[names.index("graph-combine-parallel-conv2d") + 1]
    (place,) = misplaced(names)
    assert place.between == "graph-fold-constant"


def run(module: ModuleOp, weights: WeightStore, chosen: Sequence[ModulePass]) -> str:
    """The text of a module after some passes."""
    ctx = make_context(weights, named("x86-64-v4"))
    ctx.verify = "never"
    run_steps(ctx, module, chosen, "optimized")
    return str(module)


@pytest.mark.parametrize("file", cases(FILES, USUAL))
def test_neighbours_that_state_nothing_can_be_exchanged(file: str) -> None:
    chosen = parse_passes(pipelines.own_pipeline(3)["optimized"], passes())
    stated = {frozenset(p.pair) for name in {s.name for s in chosen} for p in places(name)}
    for text in (LIT / f"{file}.mlir").read_text().split("// -----"):
        before = Parser(make_context(), text).parse_module()
        stores, modules = [WeightStore()], [before]
        for step in chosen:
            stores.append(stores[-1].copy())
            modules.append(modules[-1].clone())
            run(modules[-1], stores[-1], [step])
        texts = [str(module) for module in modules]
        for n, (one, other) in enumerate(pairwise(chosen)):
            if {one.name, other.name} in stated or one.name == other.name:
                continue
            if texts[n] == texts[n + 1] == texts[n + 2]:
                continue  # neither of them changes it, in any order
            module, weights = modules[n].clone(), stores[n].copy()
            if run(module, weights, [other, one]) == texts[n + 2]:
                continue
            exchanged = run(module, weights, chosen[n + 2 :])
            assert exchanged == texts[-1], f"{one.name} has to be before {other.name}"
