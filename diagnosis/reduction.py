"""`reduce`: a small module that fails like a large one.

Candidates are made by the transformations of `shrinking`, at many places at once and then at fewer
(delta debugging), as long as one of them is smaller, valid, and fails in the same way.
"""

from __future__ import annotations

import dataclasses
import os
import shlex
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Operation
from xdsl.traits import ConstantLike

from ..core.errors import CompileError, InputError, StepwellError, explain
from ..core.ir.module import Module
from ..core.ir.public_function import specs_of
from ..core.target import Target
from ..driver.request import Request
from .bisection import Bisection, first_failure, reproducer_of
from .checking import Checker
from .failures import Failure, FailureKind
from .reproducer import Reproducer
from .route import Route
from .shrinking import KEEPING_INPUTS, SHRINKINGS, Shrinking, tidied

Test = Callable[[Module], bool]


@dataclass(frozen=True)
class Reduction:
    """A small module that fails.

    `operations` and `operations_before` count its operations and those of the original,
    `candidates` the modules that were tried. `blame` is the failure of the small one if the passes
    are the test.
    """

    module: Module
    operations: int
    operations_before: int
    candidates: int
    blame: Bisection | None = None
    reproducer: Reproducer | None = None

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the module, as a reproducer where the passes are the test.

        Raises:
            StepwellError: if the folder cannot be written.
        """
        if self.reproducer is not None:
            return self.reproducer.save(path)
        self.module.save(path)
        return Path(path)

    def __str__(self) -> str:
        counts = f"{self.operations_before} operations to {self.operations}"
        head = f"reduced {counts} by {self.candidates} candidates"
        return head if self.blame is None else f"{head}\n{self.blame}"


def reduce(
    module: Module,
    inputs: Sequence[object] | None = None,
    *,
    test: Test | None = None,
    target: str | Target = "host",
    threads: int | None = None,
    opt_level: int = 3,
    pipeline: str | Mapping[str, str] | None = None,
    legalize: Mapping[str, Any] | None = None,
    max_ulp: float | None = None,
    seconds: float | None = None,
) -> Reduction:
    """Shrink a module to a small one that still fails.

    Args:
        module: the module that fails; it is not changed.
        inputs: the inputs to run it on, in which case the program keeps its inputs; None to make
            up inputs for each candidate.
        test: whether a valid module still fails; None to look for the failure that `bisect` finds,
            of the same kind and pass.
        target: see `stepwell.compile`, also for the next four.
        threads: see there.
        opt_level: see there.
        pipeline: see `bisect`.
        legalize: see there.
        max_ulp: see there.
        seconds: a time limit, after which the smallest module so far is returned; None for no
            limit.

    Raises:
        CompileError: if the arguments do not fit each other, or the module does not fail.
        InputError: if the inputs do not fit.
    """
    request = Request(module, target, threads, opt_level, pipeline, legalize)
    return reduced(request, inputs, test, max_ulp, seconds)


def reduced(
    request: Request,
    inputs: Sequence[object] | None,
    test: Test | None,
    max_ulp: float | None,
    seconds: float | None,
) -> Reduction:
    """The result of `reduce` for a request.

    Raises:
        CompileError, InputError: see `reduce`.
    """
    module = request.module
    if test is None:
        route = Route.of(request)
        found = first_failure(route, inputs, max_ulp, may_shrink=inputs is None)
        if found is None:
            hint = "pass a test that says what fails"
            raise CompileError(explain("reduce", "nothing fails", hint=hint))
        failing, module = found.failing, found.route.module
        test = SameFailure(found.route, failing.number, failing.failure, inputs, max_ulp)
    elif not test(module.clone()):
        raise CompileError(explain("reduce", "the test does not fail the original module"))
    ways = SHRINKINGS if inputs is None else KEEPING_INPUTS
    reducer = Reducer(test, ways, inputs is not None, seconds)
    small = reducer.reduce(module)
    result = Reduction(small, _count(small), _count(module), reducer.candidates)
    if not isinstance(test, SameFailure):
        return result
    again = first_failure(test.route.of_module(small), inputs, max_ulp, may_shrink=False)
    if again is None:
        return result
    return dataclasses.replace(
        result,
        blame=again.blamed(max_ulp),
        reproducer=reproducer_of(again.route, again.failing, max_ulp, from_the_start=True),
    )


class SameFailure:
    """Whether a module makes the same pass fail in the same way."""

    def __init__(
        self,
        route: Route,
        number: int,
        failed: Failure,
        inputs: Sequence[object] | None,
        max_ulp: float | None,
    ) -> None:
        self.route, self._number, self._failure = route, number, failed
        self._inputs, self._max_ulp = inputs, max_ulp

    def __call__(self, module: Module) -> bool:
        """Run the passes; only the one to blame is checked."""
        route = self.route.of_module(module)
        try:
            checker = None
            if self._failure.kind is FailureKind.RESULT:
                checker = Checker(module, self._inputs, self._max_ulp)
        except StepwellError:
            return False
        return route.fails_at(self._number, checker) == self._failure


class Command:
    """A test by a command: a module fails if the command, given its file, does (exit status not 0).

    Args:
        command: the command line, to which the name of the file is appended.
        timeout: seconds after which a run does not count as a failure.

    Raises:
        InputError: if it is empty or malformed; when it is called, if there is no such command.
    """

    def __init__(self, command: str, timeout: float = 60) -> None:
        try:
            self._words, self._timeout = shlex.split(command), timeout
        except ValueError as error:
            fact = f"malformed command: {str(error).lower()}"
            raise InputError(explain("--test", fact, got=command)) from error
        if not self._words:
            raise InputError(explain("--test", "no command"))

    def __call__(self, module: Module) -> bool:
        """Run the command in a folder of its own."""
        with tempfile.TemporaryDirectory(prefix="stepwell-reduce-") as folder:
            path = Path(folder) / "candidate.mlir"
            module.save(path)
            try:
                done = subprocess.run(
                    [*self._words, str(path)],
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    timeout=self._timeout,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                return False
            except OSError as error:
                fact = f"cannot run {self._words[0]}: {error.strerror}"
                raise InputError(explain("--test", fact)) from error
        return done.returncode != 0


class Reducer:
    """Delta debugging on one module."""

    def __init__(
        self, test: Test, ways: Sequence[Shrinking], keep_inputs: bool, seconds: float | None
    ) -> None:
        self._test, self._ways, self._keep_inputs = test, ways, keep_inputs
        self._end = None if seconds is None else time.monotonic() + seconds
        self.candidates = 0

    def reduce(self, module: Module) -> Module:
        """The smallest module that can be found."""
        current = module.clone()
        tidied(current, self._keep_inputs)
        if not self._fails(current):
            current = module.clone()
        while True:
            before = _cost(current)
            for way in self._ways:
                current = self._by(way, current)
            if _cost(current) == before or self._is_late():
                return current

    def _by(self, way: Shrinking, current: Module) -> Module:
        """Apply one transformation: at all places, at halves of them, and so on."""
        places = way.places(current)
        size = places
        while size and not self._is_late():
            start = 0
            while start < places and not self._is_late():
                candidate = current.clone()
                if self._is_smaller(way, candidate, range(start, start + size), _cost(current)):
                    current = candidate
                    places = way.places(current)
                else:
                    start += size
            size //= 2
        return current

    def _is_smaller(
        self, way: Shrinking, candidate: Module, chosen: range, cost: tuple[int, ...]
    ) -> bool:
        try:
            way.shrink(candidate, chosen)
            tidied(candidate, self._keep_inputs)
            candidate.verify()
            specs_of(candidate.main)
        except Exception:
            # An arbitrary change may be invalid, and crash the code that handles it.
            return False
        return _cost(candidate) < cost and self._fails(candidate)

    def _fails(self, candidate: Module) -> bool:
        self.candidates += 1
        return self._test(candidate.clone())

    def _is_late(self) -> bool:
        return self._end is not None and time.monotonic() > self._end


def _count(module: Module) -> int:
    """The operations of a module that have no regions."""
    return sum(not isinstance(op, ModuleOp) and not op.regions for op in module.op.walk())


def _cost(module: Module) -> tuple[int, ...]:
    """The size of a module: operations first, then values between them, then sizes."""
    ops = list(module.op.walk())
    values = [value for op in ops for value in op.results]
    values += [v for op in ops for region in op.regions for b in region.blocks for v in b.args]
    makers = [operand.owner for op in ops for operand in op.operands]
    computed = [o for o in makers if isinstance(o, Operation) and not o.has_trait(ConstantLike)]
    shapes = [value.type.get_shape() for value in values if isinstance(value.type, TensorType)]
    sizes = sum(n for shape in shapes for n in shape if n > 0)
    return len(ops), len(computed), sizes, sum(module.weights[key].size for key in module.weights)
