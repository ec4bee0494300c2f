"""What passes state of how far they move results."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from stepwell.core.pipelines.budgets import (
    APPROXIMATION,
    EXACT,
    ROUNDING,
    SUMS,
    Budget,
    budget_of,
    together,
)
from stepwell.core.pipelines.nested import NestedPass
from stepwell.core.registry import own_passes


@pytest.mark.parametrize("name", own_passes())
def test_every_pass_states_its_budget(name: str) -> None:
    kind = own_passes()[name]()
    assert isinstance(vars(kind).get("budget"), Budget), f"{name} states no budget"
    assert budget_of(kind()) == vars(kind)["budget"]


@dataclass(frozen=True)
class SilentPass(ModulePass):
    name = "silent"

    def apply(self, ctx: Context, op: ModuleOp) -> None: ...


@dataclass(frozen=True)
class RoundingPass(SilentPass):
    name = "rounding"
    budget = ROUNDING


def test_what_is_not_stated() -> None:
    assert budget_of(SilentPass()) == EXACT
    assert budget_of(None) == EXACT
    assert budget_of(NestedPass(("func.func",), RoundingPass())) == ROUNDING


def test_sums_may_lose_more_the_longer_they_are() -> None:
    assert SUMS.of(100, 24) == 4 + 2 * 10
    assert ROUNDING.of(100, 24) == 4
    assert EXACT.of(10**6, 8) == 0


def test_types_of_few_digits_lose_a_quarter_of_them() -> None:
    assert (SUMS.of(10**6, 8), SUMS.of(10**6, 11)) == (4, 8)
    assert SUMS.of(10**6, 53) == SUMS.of(10**6, 24) == 2004


def test_passes_one_after_the_other() -> None:
    assert together([ROUNDING, APPROXIMATION]) == Budget(12)
    assert together([ROUNDING, SUMS]) == Budget(8, sums=True)
