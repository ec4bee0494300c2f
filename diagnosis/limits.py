"""How far the values of a program may move: budgets of passes as limits."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from ..core.errors import MiscompilationError
from ..core.ir.context import Change
from ..core.ir.module import Module
from ..core.pipelines.budgets import Budget
from .differences import Tolerance
from .growth import digits_of, growth, longest_sum
from .traces import Key, Trace


class ValueLimits:
    """The limits for the values of a program.

    Args:
        module: the program before the first pass.
        max_ulp: the limit for all passes; None for their budgets.
    """

    def __init__(self, module: Module, max_ulp: float | None) -> None:
        self._module, self._max_ulp = module.clone(), max_ulp
        self._operators = self._module
        self._digits = digits_of(module.op)
        self._growths: dict[tuple[float, int], tuple[list[Any], Mapping[Key, float]]] = {}
        """The last inputs for a limit and a number of digits, and how far it grows on them."""

    def narrow(self, op: ModuleOp) -> None:
        """Take note of the types of the program after a pass: the narrowest one counts."""
        self._digits = min(self._digits, digits_of(op))

    def follow(self, module: Module) -> None:
        """Take the operators that the program has now, after a pass that is right.

        Operators into which one is decomposed may magnify errors where that one does not: the sum
        of differences from a mean is nothing but error.
        """
        self._operators = module
        self._growths.clear()

    def compare(
        self,
        change: Change,
        before: Trace,
        after: Trace,
        inputs: list[Any],
        budget: Budget,
        passes: int = 1,
    ) -> None:
        """Compare two runs.

        Args:
            change: the pass, or what else is between the runs.
            before: the run before it.
            after: the run after it.
            inputs: the inputs of both.
            budget: how far values may move.
            passes: how many passes there are between the runs.

        Raises:
            MiscompilationError: if a value is further away than the budget allows.
        """
        error: MiscompilationError | None = None
        for tolerance in self._tolerances(inputs, budget, passes):
            error = tolerance.difference(change, before, after, inputs)
            if error is None:
                return
        if error is not None:
            raise error

    def _tolerances(self, inputs: list[Any], budget: Budget, passes: int) -> Iterator[Tolerance]:
        """What a budget allows: for one operator, then as magnified by the whole program."""
        if self._max_ulp is not None:
            yield self.tolerance(self._max_ulp * passes)
            return
        terms = longest_sum(self._module, inputs) if budget.sums else 1
        limit = budget.of(terms, self._digits)
        yield self.tolerance(limit)
        if limit:
            yield replace(self.tolerance(limit), grown=self._growth(inputs, limit))

    def _growth(self, inputs: list[Any], limit: float) -> Mapping[Key, float]:
        """How far a limit grows in the program: as for the last inputs, where they are the same."""
        key = limit, self._digits
        known, found = self._growths.get(key, ([], {}))
        if len(known) != len(inputs) or any(map(operator.is_not, known, inputs)):
            found = growth(self._operators, inputs, limit, self._digits)
            self._growths[key] = [*inputs], found
        return found

    def tolerance(self, limit: float) -> Tolerance:
        """A limit in units of the narrowest type of the program; a given one, of each value."""
        return Tolerance(limit, None if self._max_ulp is not None else self._digits)
