"""Random programs for rules of conditions and loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .drawn import Drawing, draws


@draws("CaptureOfConstant", "UnusedCapture", "KnownBranch", "UnusedResult")
def condition(d: Drawing) -> None:
    kind, shape = d.kind("f32", "f16", "i8"), d.sizes(2)
    values = [d.input(kind, *shape), d.input(kind, *shape), d.constant(kind, *shape)]
    pred = d.either("i1")
    count = d.choices.among(1, 2, 3)
    made = d.b.cond(pred, _computed(d, values, count), _computed(d, values, count))
    _capture_more(d, made[0].ssa.owner, values)
    _some_results(d, made)


def _computed(d: Drawing, values: list[Any], count: int) -> Callable[[], tuple[Any, ...]]:
    """A function that computes so many results of some values."""

    def computed() -> tuple[Any, ...]:
        return tuple(_step(d, values) for _ in range(count))

    return computed


def _step(d: Drawing, values: list[Any]) -> Any:
    """One of the values, or an operator on them."""
    one, other = d.choices.choice(values), d.choices.choice(values)
    made = [lambda: d.b.max(one, other), lambda: one + other, lambda: d.b.neg(one), lambda: one]
    return d.choices.choice(made)()


def _capture_more(d: Drawing, op: Any, values: list[Any]) -> None:
    """Capture a value that is not used, or one that is captured already."""
    if d.choices.chance(0.5):
        return
    own = [op.captured(body)[0] for body in op.bodies if op.captures]
    value = op.captures[0] if own and d.choices.chance(0.5) else values[0].ssa
    for number, body in enumerate(op.bodies):
        argument = body.insert_arg(value.type, len(body.args))
        if own and value is op.captures[0]:
            own[number].replace_uses_with_if(argument, lambda use: use.index > 0)
    op.operands = [*op.operands, value]


def _some_results(d: Drawing, results: tuple[Any, ...]) -> None:
    for result in d.choices.some(results, len(results)):
        d.b.output(result)


@draws("KnownCount", "KnownCondition", "KnownIterations", "UnchangedCarry", "UnusedInLoop")
def loop(d: Drawing) -> None:
    b, kind = d.b, d.kind("f32", "f16", "i8")
    # What is carried has one type.
    shape = [d.choices.among(2, 3, 4), d.choices.among(2, 3)] if d.symbolic else d.sizes(2)
    made = d.input if d.symbolic else d.either
    carried = [made(kind, *shape) for _ in range(d.choices.among(1, 2, 3))]
    number = d.choices.among(-1, 0, 1, 1, 2, 3)
    condition = d.choices.among(
        None, None, lambda *_: b.constant(np.array(True)), lambda *_: b.constant(np.array(False))
    )

    def on(state: tuple[Any, ...]) -> tuple[Any, ...]:
        kept = [d.choices.among(value, start) for value, start in zip(state, carried, strict=True)]
        computed = [_step(d, [*state, carried[0]]) for _ in state]
        pairs = zip(kept, computed, strict=True)
        return tuple(d.choices.among(*pair) for pair in pairs)

    if d.choices.chance(0.3):
        rows = made(kind, d.choices.among(1, 1, 2), *shape)

        def body(state: tuple[Any, ...], row: Any) -> tuple[Any, Any]:
            return on(state), b.neg(row)

        last, stacked = b.scan(body, tuple(carried), rows)
        _some_results(d, (*last, stacked))
        return
    if d.choices.chance(0.3):
        count = b.constant(np.array(number))
    elif d.choices.chance(0.3):
        count = d.given(np.array(number), "i64")
    else:
        count = max(number, 0)
    last = b.loop(count, lambda _, *state: on(state), *carried, condition=condition)
    _some_results(d, last if isinstance(last, tuple) else (last,))
