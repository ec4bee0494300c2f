"""`bisect`: which pass breaks a program, and which single step of that pass.

The passes run one after the other, and the first one that fails is to blame. It is then rerun from
the module before it, each time with only the first n of its actions (see `core.pipelines.actions`),
until there is an n that fails while n - 1 does not.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from ..core.errors import InputError, MiscompilationError, StepwellError, explain
from ..core.ir.module import Module
from ..core.ir.provenance import origin
from ..core.pipelines.actions import Action
from ..core.pipelines.pass_text import pass_text
from ..core.registry import make_context
from ..core.target import Target
from ..driver.compilation import CODE_GENERATION
from ..driver.request import Request
from .checking import Checker
from .checks import LargeProgram
from .failures import Failure, FailureKind
from .full_size import FullSize
from .reproducer import Reproducer, reproducer_at
from .route import Attempt, Failing, Route
from .smaller import Smaller, named_sizes

if TYPE_CHECKING:
    import os
    from pathlib import Path


@dataclass(frozen=True)
class Bisection:
    """The pass, and its action, to blame for a failure.

    `number` is the position of the pass among all `passes`, from 1; `action` is the step to blame,
    number `action_number` of `actions`, or None if no single step is. `ir_before` and `ir_after`
    are the module around that step, or around the whole pass. `otherwise` is the failure without
    that step, None if there is none. `function`, `operation` and `nodes` say where a wrong result
    first appears; in a kernel, `statement` writes the first wrong element after the pass,
    `statement_before` wrote it before the pass. If the program has smaller sizes than the original,
    `sizes` are these by the original ones.
    """

    failure: Failure
    stage: str
    pass_text: str
    number: int
    passes: int
    reproducer: Reproducer
    action: Action | None = None
    action_number: int = 0
    actions: int = 0
    otherwise: Failure | None = None
    ir_before: str = ""
    ir_after: str = ""
    function: str | None = None
    operation: str | None = None
    nodes: tuple[str, ...] = ()
    statement: str | None = None
    statement_before: str | None = None
    sizes: Mapping[int, int] = field(default_factory=dict[int, int])

    @property
    def pass_name(self) -> str:
        """The pass to blame."""
        return self.failure.pass_name

    def diff(self) -> str:
        """The change by the step, or by the pass, as a line diff; empty for a crash."""
        if not self.ir_after:
            return ""
        before, after = self.ir_before.splitlines(), self.ir_after.splitlines()
        lines = difflib.unified_diff(before, after, "before", "after", lineterm="", n=2)
        return "\n".join(lines)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write a reproducer file.

        Raises:
            StepwellError: if the folder cannot be written.
        """
        return self.reproducer.save(path)

    def __str__(self) -> str:
        place = f" ({self.stage})" if self.stage else ""
        lines = [
            self.failure.message,
            f"pass {self.number} of {self.passes}: {self.pass_text}{place}",
        ]
        if self.action is not None:
            lines.append(f"action {self.action_number} of {self.actions}: {self.action}")
        elif self.actions:
            lines.append(f"none of its {self.actions} actions: the rest of the pass")
        if self.statement_before is not None:
            lines.append(f"was written by: {self.statement_before}")
        if self.statement is not None:
            lines.append(f"is written by: {self.statement}")
        if self.sizes:
            lines.append(named_sizes(self.sizes))
        if self.otherwise is not None:
            lines.append(f"without it: {self.otherwise.message}")
        return "\n".join(lines)


def bisect(
    module: Module,
    inputs: Sequence[object] | None = None,
    *,
    target: str | Target = "host",
    threads: int | None = None,
    opt_level: int = 3,
    pipeline: str | Mapping[str, str] | None = None,
    legalize: Mapping[str, Any] | None = None,
    max_ulp: float | None = None,
    expected: Sequence[np.ndarray] | None = None,
) -> Bisection | None:
    """Find the pass, and the single step of it, that breaks a program.

    Args:
        module: the program; it is not changed.
        inputs: the inputs to run it on; None for made-up ones.
        target: see `stepwell.compile`, also for the next four. A textual pipeline may also stop
            short of machine code.
        threads: see there.
        opt_level: see there.
        pipeline: see there.
        legalize: see there.
        max_ulp: see there.
        expected: the correct results; None if `module` returns them.

    Returns:
        The pass and action to blame for the first crash or invalid module, otherwise for the
        first wrong result or refusal; None if nothing fails.

    Raises:
        CompileError: if the arguments do not fit each other, or the module is not valid.
        InputError: if the inputs or the results do not fit.
        MiscompilationError: if the module itself does not return the expected results.
    """
    request = Request(module, target, threads, opt_level, pipeline, legalize)
    return bisected(request, inputs, max_ulp, expected)


def bisected(
    request: Request,
    inputs: Sequence[object] | None,
    max_ulp: float | None,
    expected: Sequence[np.ndarray] | None = None,
) -> Bisection | None:
    """The finding of `bisect` for a request.

    Raises:
        CompileError, InputError, MiscompilationError: see `bisect`.
    """
    route = Route.of(request)
    if expected is not None and inputs is None:
        raise InputError(explain("bisect", "results without inputs", expected="both"))
    found = first_failure(route, inputs, max_ulp, expected)
    return None if found is None else found.blamed(max_ulp)


@dataclass(frozen=True)
class FirstFailure:
    """The first pass that fails on a module, or on a smaller one instead."""

    route: Route
    failing: Failing
    small: Smaller | None = None

    def blamed(self, max_ulp: float | None) -> Bisection:
        """The action to blame, with everything known about it."""
        found = blamed(self.route, self.failing, max_ulp)
        return found if self.small is None else dataclasses.replace(found, sizes=self.small.sizes)


def first_failure(
    route: Route,
    inputs: Sequence[object] | None,
    max_ulp: float | None,
    expected: Sequence[np.ndarray] | None = None,
    may_shrink: bool = True,
) -> FirstFailure | None:
    """The first pass that fails, if one does; arguments are those of `bisect`.

    Of a large program, a smaller one is tried first if `may_shrink`.
    """
    large = None
    if may_shrink and route.complete and expected is None:
        large = LargeProgram.of(route.module, inputs)
    if large is None:
        failing = _descended(route, lambda: Checker(route.module, inputs, max_ulp, expected))
        return None if failing is None else FirstFailure(route, failing)
    small, module = route.of_module(large.small.module), large.small.module
    failing = _descended(small, lambda: Checker(module, None, max_ulp))
    if failing is not None and failing.failure.kind is not FailureKind.REFUSAL:
        return FirstFailure(small, failing, large.small)
    failing = _descended(route, lambda: FullSize(route.module, large.samples, max_ulp))
    return None if failing is None else FirstFailure(route, failing)


def _descended(route: Route, checker: Callable[[], Checker | FullSize]) -> Failing | None:
    """The first pass that crashes or makes the module invalid, else the first wrong result."""
    # Crashes and invalid modules are found without running the program.
    found = route.descend(None)
    if found is not None and found.failure.kind is not FailureKind.REFUSAL:
        return found
    observer = checker()
    wrong = route.descend(observer)
    if isinstance(observer, FullSize) and (closer := observer.checker()) is not None:
        wrong = route.descend(closer) or wrong
    return wrong or found


def blamed(route: Route, failing: Failing, max_ulp: float | None) -> Bisection:
    """The action to blame, with everything known about it."""
    number, error = failing.number, failing.error
    found = Bisection(
        failing.failure,
        "asm" if number == len(route.steps) else route.steps[number][0],
        CODE_GENERATION if number == len(route.steps) else pass_text(route.steps[number][1]),
        number + 1,
        len(route.steps) + route.complete,
        reproducer_of(route, failing, max_ulp),
    )
    if isinstance(error, MiscompilationError):
        found = dataclasses.replace(
            found, function=error.function, operation=error.operation, nodes=error.nodes
        )
    if number == len(route.steps):
        return found
    return _with_action(route, failing, found)


def _with_statements(failing: Failing, after: Attempt, found: Bisection) -> Bisection:
    """Add the statements that write the first wrong element of a kernel."""
    error = failing.error
    if failing.checker is None or not isinstance(error, MiscompilationError):
        return found
    try:
        module = Module(after.op, failing.before.weights)
        pair = failing.checker.statements(error, failing.before, module)
    except StepwellError:
        return found  # it no longer runs
    before, now = (None if op is None else _line(op) for op in pair)
    return dataclasses.replace(found, statement_before=before, statement=now)


def _line(op: Operation) -> str:
    """An operation in one line, with its origin."""
    text = " ".join(str(op).split())
    where = origin(op)
    return f"{text} ({where})" if where else text


def _with_action(route: Route, failing: Failing, found: Bisection) -> Bisection:
    checker, error = failing.checker, failing.error
    if checker is not None and isinstance(error, MiscompilationError):
        failing = dataclasses.replace(failing, checker=checker.focused(error))
    whole = route.attempt(failing, None)
    count = len(whole.counter.taken) + (whole.counter.begun is not None)
    ends = {
        "actions": len(whole.counter.taken),
        "ir_before": failing.before.text(),
        "ir_after": "" if failing.failure.kind is FailureKind.CRASH else _text(whole.op),
    }
    found = dataclasses.replace(found, **ends)
    if whole.failure != failing.failure:
        return found
    found = _with_statements(failing, whole, found)
    if not count:
        return found
    good, bad = route.attempt(failing, 0), whole
    if good.failure == failing.failure:
        return found
    low, high = 0, count
    while high - low > 1:
        middle = (low + high) // 2
        tried = route.attempt(failing, middle)
        if tried.failure == failing.failure:
            high, bad = middle, tried
        else:
            low, good = middle, tried
    action = bad.counter.last
    notes = {**found.reproducer.notes, "action": f"{high}: {action}"}
    return dataclasses.replace(
        found,
        action=action,
        action_number=high,
        actions=max(found.actions, high),
        otherwise=good.failure,
        ir_before=_text(good.op),
        ir_after="" if failing.failure.kind is FailureKind.CRASH else _text(bad.op),
        reproducer=dataclasses.replace(found.reproducer, notes=notes),
    )


def _text(op: ModuleOp) -> str:
    try:
        return Module(op).text()
    except Exception:
        # IR that a pass has made invalid may not be printable.
        return ""


def reproducer_of(
    route: Route, failing: Failing, max_ulp: float | None, from_the_start: bool = False
) -> Reproducer:
    """The reproducer of a failure, with the module before the pass or before all passes."""
    number, before = failing.number, failing.before
    generates = number == len(route.steps)
    if from_the_start:
        number, before = 0, route.module
    rest = [step for _, step in route.steps[number:]]
    ctx = make_context(before.weights, route.target)
    ctx.legalize = route.compilation.request.legalize or {}
    result = reproducer_at(ctx, before, rest, route.reached(number))
    result = dataclasses.replace(result, failure=failing.failure.message, machine_code=generates)
    if isinstance(failing.error, MiscompilationError):
        arrays = failing.error.inputs
        result = dataclasses.replace(result, inputs=arrays, max_ulp=max_ulp)
    return result
