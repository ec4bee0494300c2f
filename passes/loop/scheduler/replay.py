"""Replaying a trace: the steps that its text names, taken on a kernel."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.rewriter import Rewriter

from ....core.building.creation import copied
from ....core.errors import explain
from ....core.files.reading import LARGEST_LIST, ReadingError, read_text
from ....core.pipelines.actions import allowed
from ....dialects.loop.nests import Consumed, ScheduleError, kernel_named
from ....dialects.loop.ops import KernelOp
from ....dialects.loop.trace_text import Step, StepArgument, parse_traces
from ...primitive import Primitive, is_list
from .primitives import PRIMITIVES

Traces = Mapping[str | None, Sequence[Step]]
"""The steps for each kernel, by its name; for the only one by None."""


def read_traces(text: str | None, file: str | None) -> Traces:
    """Traces, which are given as a text or as the file of one.

    Raises:
        ScheduleError: if the file cannot be read, both are given, or the text is malformed.
    """
    if file is None:
        return parse_traces(text or "")
    if text is not None:
        raise ScheduleError(explain("trace", "is given as text and as a file", expected="one"))
    try:
        return parse_traces(read_text(file, LARGEST_LIST), file)
    except ReadingError as error:
        raise ScheduleError(explain("trace", f"cannot read {file}: {error}")) from error


def replay_all(module: ModuleOp, traces: Traces) -> list[KernelOp]:
    """Apply the steps of traces to the kernels of a module; return the results.

    Raises:
        ScheduleError: if one is for no kernel of the module, or does not fit; the module stays as
            it was.
    """
    kernels = {kernel_named("trace", module, name): steps for name, steps in traces.items()}
    if len(kernels) < len(traces):
        raise ScheduleError(explain("trace", "the only kernel has two traces"))
    made = {kernel: taken(kernel, steps) for kernel, steps in kernels.items()}
    for old, new in made.items():
        Rewriter.replace_op(old, new, [])
    return list(made.values())


def replay(kernel: KernelOp, trace: str) -> KernelOp:
    """Take the steps of a trace on a kernel, and put the result in its place.

    Args:
        kernel: the kernel that the trace was taken on, or one of the same structure.
        trace: the text, as `loop.schedule` has it.

    Raises:
        ScheduleError: naming the step that is malformed, unknown or not legal; the kernel stays
            as it was.
    """
    steps = parse_traces(trace)
    if len(steps) > 1 or (steps and None not in steps):
        names = ", ".join(f"@{name}" for name in steps if name is not None)
        fact = "it is for kernels that it names"
        raise ScheduleError(explain("trace", fact, expected="steps only", got=names))
    new = taken(kernel, steps.get(None, []))
    if kernel.parent is not None:
        Rewriter.replace_op(kernel, new, [])
    return new


def taken(kernel: KernelOp, steps: Sequence[Step]) -> KernelOp:
    """A kernel in no module: this one, which stays as it is, after the steps.

    Raises:
        ScheduleError: naming the first step that is unknown or not legal.
    """
    new = copied(kernel)
    for number, step in enumerate(steps, 1):
        if not allowed(str(step), new):
            break
        try:
            new = take(new, step)
        except ScheduleError as error:
            subject = f"trace for @{kernel.sym_name.data}: step {number}, {step}"
            raise ScheduleError(f"{subject}: {error}") from error
    return new


def take(kernel: Consumed, step: Step) -> KernelOp:
    """Take a step on a kernel.

    Raises:
        ScheduleError: if it is unknown or not legal.
    """
    primitive = PRIMITIVES.get(step.name)
    if primitive is None:
        near = difflib.get_close_matches(step.name, PRIMITIVES, 1)
        hint = f"did you mean {near[0]}" if near else f"there are {', '.join(PRIMITIVES)}"
        raise ScheduleError(explain(step.name, "no such primitive", hint=hint))
    return primitive.function(kernel, **_bound(step, primitive))


def _bound(step: Step, primitive: Primitive) -> dict[str, object]:
    """The arguments of a step by the parameters they are for.

    Raises:
        ScheduleError: if there is one too many, one is missing, or one is of another kind.
    """
    given, named = list(step.arguments), dict(step.named)
    bound: dict[str, object] = {}
    for parameter in primitive.parameters:
        kind = parameter.annotation
        if is_list(parameter):
            bound[parameter.name] = [
                _checked(step, parameter.name, "str", value) for value in given
            ]
            given = []
        elif given:
            bound[parameter.name] = _checked(step, parameter.name, kind, given.pop(0))
        elif parameter.name in named:
            value = named.pop(parameter.name)
            bound[parameter.name] = _checked(step, parameter.name, kind, value)
        elif parameter.default is parameter.empty:
            raise _misused(step, f"{parameter.name} is missing", primitive)
    if given or named:
        raise _misused(step, f"{[*given, *named][0]} is one argument too many", primitive)
    return bound


def _checked(step: Step, name: str, kind: str, value: StepArgument) -> StepArgument:
    wanted = int if kind.startswith("int") else str
    if not isinstance(value, wanted):
        expected = "a number" if wanted is int else "a name"
        raise ScheduleError(explain(step.name, f"wrong {name}", expected=expected, got=value))
    return value


def _misused(step: Step, fact: str, primitive: Primitive) -> ScheduleError:
    names = ", ".join(parameter.name for parameter in primitive.parameters)
    return ScheduleError(explain(step.name, fact, expected=f"{step.name}({names})"))
