"""How far a pass may move the results of a program: part of its contract.

A pass states its budget beside its name, as `budget = SUMS`. A pass without one, also from another
package, promises the same bits (`EXACT`). `docs/checking.md` describes the comparison.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.passes import ModulePass

from .nested import NestedPass


@dataclass(frozen=True)
class Budget:
    """How far each real value that an operator computes may move.

    The unit is one in the last place of the largest element (see `core.ir.context.Change`), in the
    narrowest type that the program stores before or after the pass.
    """

    ulp: float
    """The number of units for a program without sums."""
    sums: bool = False
    """Whether sums may be reordered: the error then grows with their length."""

    def of(self, terms: int, digits: int) -> float:
        """The number of units for a program, by the length of its longest sum.

        Rounding errors of n terms accumulate like a random walk, to about sqrt(n) units; twice that
        is rare. (N. Higham and T. Mary, A New Approach to Probabilistic Rounding Error Analysis,
        2019.) A narrow type loses at most digits / 2 - 2 digits, because sums are accumulated in a
        wider one.

        Args:
            terms: the length of the longest sum.
            digits: the binary digits of the narrowest type.
        """
        ulp = self.ulp + (2 * math.sqrt(terms) if self.sums else 0)
        return min(ulp, 2.0 ** (digits // 2 - 2)) if digits < 24 else ulp


EXACT = Budget(0)
"""The same bits: operations are moved, merged, or rewritten exactly."""
ROUNDING = Budget(4)
"""Different roundings: constants are combined, a product is contracted with a sum."""
SUMS = Budget(4, sums=True)
"""Sums are reordered, in addition to `ROUNDING`."""
APPROXIMATION = Budget(8)
"""Functions are approximated: ours are off by 3.4 ulp at most, libraries by about 1."""
STORAGE = Budget(4)
"""Operands, weights and results are rounded to a narrower type, whose units count."""


def budget_of(step: ModulePass | None) -> Budget:
    """The budget of a pass; a nested pass has that of the pass inside."""
    if isinstance(step, NestedPass):
        return budget_of(step.step)
    stated = getattr(type(step), "budget", EXACT)
    return stated if isinstance(stated, Budget) else EXACT


def together(budgets: Sequence[Budget]) -> Budget:
    """The budget of passes that run one after the other."""
    return Budget(sum(budget.ulp for budget in budgets), any(budget.sums for budget in budgets))
