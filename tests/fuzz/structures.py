"""Random conditions and loops, whose bodies are made like programs."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

import stepwell as sw
from stepwell.core.dtype_names import is_real
from stepwell.core.dtypes import dtype_of, element_type_of
from stepwell.frontends.values import Value

from .operators import Kind

if TYPE_CHECKING:
    from .programs import Held, Program

TRUTH = Kind(element_type_of(np.dtype(np.bool_)), 0)


@sw.kernel
def doubled(k: Any, x: Any, y: Any) -> None:
    """2 x, as a kernel of the user."""
    with k.loops(*y.shape) as loops:
        place = loops if isinstance(loops, tuple) else (loops,)
        y[place] = x[place] + x[place]


NEGATED = "fuzz.negated"
"""The name of a registered function."""


@sw.register_function(NEGATED)
def negated(x: np.ndarray, y: np.ndarray) -> None:
    """-x, as a function of the user."""
    np.negative(x, out=y)


def random_structure(program: Program) -> None:
    """Append a condition, a loop, a scan or a call."""
    known = [h for h in program.values if _is_carried(h)]
    if not known or program.in_region:
        program.step()
        return
    held = program.choices.choice(known)
    make = program.choices.among(_condition, _condition, _loop, _loop, _scan, _call_kernel, _call)
    try:
        results = make(program, held)
    except sw.InputError:
        return
    for value in results:
        array = _evaluated(program, value)
        if array is not None:
            program.values.append(program.held(value, array, not is_real(array.dtype)))


def _is_carried(held: Held) -> bool:
    kind = held.kind
    floats = is_real(dtype_of(kind.element))
    return not kind.sparse and floats and None not in held.value.shape and held.array.size > 0


def _condition(program: Program, held: Held) -> list[Value]:
    flags = [h for h in program.values if h.kind == TRUTH and h.exact]
    flag = program.choices.choice(flags) if flags else program.scalar(TRUTH)
    branches = [_body(program, held, False) for _ in range(2)]
    return [program.builder.cond(flag.value, *branches, held.value)]


def _loop(program: Program, held: Held) -> list[Value]:
    choices = program.choices
    count: Any = choices.randint(0, 3)
    if choices.chance(0.4):
        count = program.scalar(Kind(element_type_of(np.dtype(np.int64)), 0)).value
        count = program.builder.clip(count, 0, 3)
    step = _body(program, held, True)
    limit = 3 if isinstance(count, Value) else None
    return [program.builder.loop(count, lambda _, x: step(x), held.value, limit=limit)]


def _scan(program: Program, held: Held) -> list[Value]:
    choices, builder = program.choices, program.builder
    if held.array.ndim == 0:
        return []
    row = program.held(held.value, held.array[0], False)
    step = _body(program, row, True)

    def body(carried: Value, own: Value) -> tuple[Value, Value]:
        following = builder.max(builder.mul(carried, 0.5), step(own))
        return following, builder.add(following, own)

    first = builder.constant(np.zeros(held.shape[1:], held.array.dtype))
    last, stacked = builder.scan(body, first, held.value, reverse=choices.chance(0.4))
    return [last, stacked]


def _call_kernel(program: Program, held: Held) -> list[Value]:
    spec = sw.TensorSpec(held.shape, str(held.kind.element))
    return [program.builder.call_kernel(doubled, held.value, results=spec)]


def _call(program: Program, held: Held) -> list[Value]:
    spec = sw.TensorSpec(held.shape, str(held.kind.element))
    return [program.builder.call_packed(NEGATED, held.value, results=spec)]


def _body(program: Program, held: Held, repeats: bool) -> Callable[[Value], Value]:
    """A function that appends some operators, and returns a value like the given one."""

    def body(value: Value) -> Value:
        outer = program.values, program.in_region, program.in_loop
        own = program.held(value, held.array, False)
        program.values = [*outer[0], own]
        program.in_region, program.in_loop = True, repeats
        last = own
        for _ in range(program.choices.randint(0, 3)):
            found = program.step()
            if found is not None and found.kind == own.kind and found.shape == own.shape:
                last = found
        program.values, program.in_region, program.in_loop = outer
        # What a loop carries must not grow.
        return program.builder.tanh(last.value) if repeats else last.value

    return body


def _evaluated(program: Program, value: Value) -> Any:
    """The elements of a value; None where they are not welcome in the program."""
    builder = program.builder
    outputs, builder._outputs = builder._outputs, []
    builder.output(value)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = builder.module().run_reference(*program.inputs)
    builder._outputs = outputs
    return result if program.is_welcome(result) else None
