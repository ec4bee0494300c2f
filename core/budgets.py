"""How far a pass may move what a program computes: part of what the pass promises.

A pass states it beside its name, as `budget = SUMS`. One that states nothing promises the same
bits (`EXACT`), whoever wrote it. `docs/checking.md` tells how it is compared.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.passes import ModulePass

from .nested_pass import NestedPass


@dataclass(frozen=True)
class Budget:
    """By how much each value that an operator computes may move, if it is real.

    The unit is that in the last place of the largest element (see `core.context.Change`), in the
    narrowest type that the program stores before or after the pass.
    """

    ulp: float
    """The units where no sum is longer than one term."""
    sums: bool = False
    """Whether sums may be in another order: what is lost in one grows with its length."""

    def of(self, terms: int, digits: int) -> float:
        """The budget in a program whose longest sum has so many terms.

        Rounding errors of n terms add up as a random walk does, to some sqrt(n) units, and twice
        that is rare. (N. Higham and T. Mary, A New Approach to Probabilistic Rounding Error
        Analysis, 2019.) A type of few digits has at most a quarter of them to lose, because
        sums are kept in a wider one.

        Args:
            terms: the length of the longest sum.
            digits: the binary digits of the narrowest type.
        """
        ulp = self.ulp + (2 * math.sqrt(terms) if self.sums else 0)
        return min(ulp, 2.0 ** (digits // 2 - 2)) if digits < 24 else ulp


EXACT = Budget(0)
"""The same bits: operations are moved, merged, or written in another way."""
ROUNDING = Budget(4)
"""Another place or number of roundings: constants put together, a product joined with a sum."""
SUMS = Budget(4, sums=True)
"""Another order of sums, with what `ROUNDING` covers."""
APPROXIMATION = Budget(8)
"""Functions by other means: ours are off by 3.4 ulp at most, libraries by about 1."""
STORAGE = Budget(4)
"""Values stored in a narrower type, whose unit it is: operands, weights and results are rounded."""


def budget_of(step: ModulePass | None) -> Budget:
    """What a pass states; that of a nested one is its own."""
    if isinstance(step, NestedPass):
        return budget_of(step.step)
    stated = getattr(type(step), "budget", EXACT)
    return stated if isinstance(stated, Budget) else EXACT


def together(budgets: Sequence[Budget]) -> Budget:
    """The budget of passes that run one after the other."""
    return Budget(sum(budget.ulp for budget in budgets), any(budget.sums for budget in budgets))
