"""Differences between two runs of a program, and where the first one appears."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from xdsl.ir import Operation

from ..core.distances import DIFFERENT, distance, scale, worst
from ..core.dtype_names import is_real
from ..core.errors import MiscompilationError, explain
from ..core.ir.context import Change
from ..core.ir.provenance import names
from ..core.ir.typed import function_around
from .traces import Contents, Key, Trace


@dataclass(frozen=True)
class Blame:
    """Where a difference first appears."""

    function: str | None = None
    operation: str | None = None
    nodes: tuple[str, ...] = ()
    call: int = 0
    """The number of the call of the function, from 1."""

    def __str__(self) -> str:
        where = [
            f"in @{self.function}" if self.function else "",
            f"at {self.operation}" if self.operation else "",
            f"of {', '.join(self.nodes)}" if self.nodes else "",
        ]
        return " ".join(filter(None, where)) or "in the program"


@dataclass(frozen=True)
class Tolerance:
    """How far a value may be from the expected one.

    Args:
        limit: the distance, in units in the last place.
        digits: the binary digits of the type of these units; None for the type of each value.
        grown: larger distances of some values; others may be as far as the farthest of them.
    """

    limit: float
    digits: int | None
    grown: Mapping[Key, float] = field(default_factory=dict[Key, float])

    def limit_of(self, key: Key) -> float:
        """The allowed distance of a value."""
        far = self.grown[key] if key in self.grown else max(self.grown.values(), default=0.0)
        return max(self.limit, far)

    def of(self, array: np.ndarray, key: Key) -> float:
        """The allowed distance of an array, in units of its type."""
        if not is_real(array.dtype):
            return 0.0
        return self.limit_of(key) * (1 if self.digits is None else scale(array.dtype, self.digits))

    def difference(
        self, change: Change, before: Trace, after: Trace, inputs: list[Any]
    ) -> MiscompilationError | None:
        """The error of a pass, if a value is further away than allowed."""
        for number, (got, want) in enumerate(zip(after.results, before.results, strict=True)):
            ulp, elements = distance(got, want)
            allowed = self.of(want, number)
            if ulp <= allowed:
                continue
            blame = self._blame(before, after)
            at = worst(got, want)
            fact = f"it changes result {number} by {ulp:.3g} ulp {blame}"
            if at is not None:
                fact += f", element {list(at)}"
            expected, value = (None, None) if at is None else (want[at], got[at])
            hint = f"the limit is {allowed:.3g} ulp"
            message = explain(change.pass_name, fact, expected=expected, got=value, hint=hint)
            moved = dataclasses.replace(change, ulp=ulp, elements=elements)
            return miscompilation(message, blame, moved, inputs, self._limit_at(blame, number))

        # Results may hide errors: a maximum, or a function that saturates, masks them.
        blame = self._blame_call(before, after)
        if blame is None:
            return None
        moved = dataclasses.replace(change, ulp=DIFFERENT)
        message = explain(change.pass_name, f"it changes values computed {blame}")
        return miscompilation(message, blame, moved, inputs, self._limit_at(blame, 0))

    def _limit_at(self, blame: Blame, number: int) -> float:
        """The limit for the call that is blamed, else for a result."""
        if blame.function is not None and blame.call:
            return self.limit_of((blame.function, blame.call))
        return self.limit_of(number)

    def _blame(self, before: Trace, after: Trace) -> Blame:
        """Where two runs first differ: in a function, or at an operator."""
        blame = self._blame_call(before, after)
        if blame is not None:
            return blame
        for key, (op, arrays) in after.operators.items():
            known = before.operators.get(key)
            if known is not None and self._differ(key, *map(_results, (arrays, known[1]))):
                return Blame(_function(op), op.name, key[0])
        return Blame()

    def _blame_call(self, before: Trace, after: Trace) -> Blame | None:
        """The first function that both runs call and that writes different data."""
        for key, (op, arrays) in after.calls.items():
            known = before.calls.get(key)
            if known is not None and self._differ(key, arrays, known[1]):
                name, time = key
                return Blame(name, None, names(op), time)
        return None

    def _differ(self, key: Key, got: Sequence[Contents], expected: Sequence[Contents]) -> bool:
        """Whether arrays differ; an address on one side is compared by bytes."""
        for one, other in zip(reversed(got), reversed(expected), strict=False):
            pair = alike(one, other)
            if pair is None:
                continue
            if pair[0].size != pair[1].size:
                return True
            if distance(*pair)[0] > self.of(pair[1], key):
                return True
        return False


def alike(one: Contents, other: Contents) -> tuple[np.ndarray, np.ndarray] | None:
    """Two arrays, flattened; bytes at an address are viewed as elements of the other array.

    Elements that neither call changed, which may be undefined, are those of the second one. None
    if both are untyped bytes, or if typed arrays differ in size.
    """
    kinds = one.values.dtype, other.values.dtype
    if kinds[0] != kinds[1] and np.uint8 in kinds:
        typed = (other if kinds[0] == np.uint8 else one).values
        one, other = (part.viewed(typed.dtype, typed.size) for part in (one, other))
    elif kinds[0] == np.uint8 or one.values.size != other.values.size:
        return None
    first, second = one.values.reshape(-1), other.values.reshape(-1)
    if first.size != second.size:
        return first, second
    changed = one.changed(first.size) | other.changed(first.size)
    return np.where(changed, first, second), second


def _results(arrays: Sequence[np.ndarray]) -> list[Contents]:
    return list(map(Contents, arrays))


def miscompilation(
    message: str, blame: Blame, change: Change, inputs: Sequence[Any], limit: float
) -> MiscompilationError:
    """The error of a pass that changes a value."""
    error = MiscompilationError(message)
    error.stage, error.pass_name, error.ulp = change.stage, change.pass_name, change.ulp
    error.function, error.operation, error.nodes = blame.function, blame.operation, blame.nodes
    error.inputs, error.call, error.limit = tuple(inputs), blame.call, limit
    return error


def _function(op: Operation) -> str | None:
    parent = function_around(op)
    return None if parent is None else parent.sym_name.data
