"""The passes of a module, run one after the other to the first that fails, or each alone."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ..core.errors import CompileError, explain
from ..core.ir.context import CompilerContext
from ..core.ir.module import Module
from ..core.pipelines.actions import ActionCounter, counting
from ..core.pipelines.pass_manager import run_steps
from ..core.pipelines.stages import stages_after
from ..core.pipelines.text import parse_passes
from ..core.registry import make_context, passes
from ..core.target import Target, named
from ..dialects.stages import stage_of
from ..driver.compilation import CODE_GENERATION, Compilation, Observer, passes_of, settled
from ..driver.request import Request
from ..runtime.executable import Executable
from ..runtime.loaded import Loaded
from ..runtime.lowered import machine_code
from .checking import Checker
from .failures import Failure, FailureKind, failure


@dataclass
class Failing:
    """A pass that fails, and the module before it; `checker` has the results of that module."""

    number: int
    before: Module
    failure: Failure
    checker: Checker | None
    error: Exception | None = None


@dataclass
class Route:
    """The passes of a module, to be run repeatedly."""

    compilation: Compilation
    steps: list[tuple[str, ModulePass]]
    complete: bool
    """Whether the passes end in machine code."""

    @property
    def module(self) -> Module:
        """The module before the first pass."""
        return self.compilation.module

    @property
    def target(self) -> Target:
        """The machine that the passes compile for."""
        return self.compilation.target

    @staticmethod
    def of(request: Request) -> Route:
        """The passes that `compile` would run, or those of a text that stops short of code.

        Raises:
            CompileError: if the arguments do not fit each other, or the module is not valid.
        """
        module, pipeline = request.module, request.pipeline
        if not isinstance(module, Module):
            got = type(module).__name__
            error = explain("bisect", "not a module", expected="stepwell.Module", got=got)
            raise CompileError(error)
        target = named(request.target)
        module.verify()
        start, available = stage_of(module.op), passes()
        try:
            passes_of(request, start)
        except CompileError:
            if not isinstance(pipeline, str) or request.threads is not None:
                raise
            steps = [("", step) for step in parse_passes(pipeline, available)]
            table = dict(request.legalize or {})
            short = Request(module, target, pipeline={"": pipeline}, legalize=table)
            return Route(Compilation(short), steps, False)
        compilation = Compilation(settled(request, start))
        stages, texts = stages_after(start), compilation.passes
        steps = [(s, p) for s in stages for p in parse_passes(texts[s], available)]
        return Route(compilation, steps, True)

    def of_module(self, module: Module) -> Route:
        """The same passes for another module at the same stage."""
        return dataclasses.replace(self, compilation=self.compilation.of_module(module))

    def context(self, before: Module, number: int) -> CompilerContext:
        """A context for the pass of this number."""
        ctx = make_context(before.weights, self.target)
        ctx.legalize, ctx.verify = self.compilation.request.legalize or {}, "pass"
        stage, step = self.steps[number]
        ctx.stage, ctx.pass_name = stage, step.name
        return ctx

    def reached(self, number: int) -> str:
        """The stage that the module before a pass has reached."""
        start = self.compilation.start if self.complete else ""
        done = dict.fromkeys(stage for stage, _ in self.steps[:number])
        now = self.steps[number][0] if number < len(self.steps) else ""
        return next((stage for stage in reversed(done) if stage != now), start)

    def descend(self, checker: Observer | None) -> Failing | None:
        """Run the passes to the first that fails.

        The module is verified after each; a checker compares its results instead, once a descent
        without one has verified it.
        """
        work = self.module.clone()
        for number, (stage, step) in enumerate(self.steps):
            before = work.clone()
            ctx = self.context(work, number)
            if checker is not None:
                ctx.verify = "never"
                ctx.hooks.append(checker)
            try:
                run_steps(ctx, work.op, [step], stage)
                if checker is None:
                    work.verify_order()
            except Exception as error:
                # Any exception is a failure to report.
                found = failure(error, step.name)
                return Failing(number, before, found, _single_passes(checker), error)
        return self._generate(work, checker) if self.complete else None

    def _generate(self, work: Module, checker: Observer | None) -> Failing | None:
        """Make machine code, and run that."""
        try:
            program = machine_code(work, self.target)
            if checker is not None:
                checker.compiled(Executable(Loaded(program)), self.compilation)
        except Exception as error:
            found = failure(error, CODE_GENERATION)
            return Failing(len(self.steps), work, found, _single_passes(checker), error)
        return None

    def fails_at(self, number: int, checker: Checker | None) -> Failure | None:
        """How the pass with this number fails if those before it do not; only it is checked."""
        work = self.module.clone()
        try:
            for before, (stage, step) in enumerate(self.steps[:number]):
                ctx = self.context(work, before)
                ctx.verify = "never"
                run_steps(ctx, work.op, [step], stage)
            if checker is not None:
                checker.start_over(work)
        except Exception:
            # Another pass fails, or in another way.
            return None
        if number == len(self.steps):
            generated = self._generate(work, checker)
            return None if generated is None else generated.failure
        failing = Failing(number, work, Failure(FailureKind.CRASH, "", "", ""), checker)
        return self.attempt(failing, None).failure

    def attempt(self, failing: Failing, limit: int | None) -> Attempt:
        """Run the failing pass with only the first actions."""
        work = failing.before.clone()
        ctx = self.context(work, failing.number)
        stage, step = self.steps[failing.number]
        with counting(limit) as counter:
            try:
                run_steps(ctx, work.op, [step], stage)
                work.verify_order()
                if failing.checker is not None:
                    failing.checker.compare(ctx, work.op)
            except Exception as error:
                return Attempt(work.op, counter, failure(error, step.name))
        return Attempt(work.op, counter, None)


def _single_passes(observer: Observer | None) -> Checker | None:
    """What compares the results of single passes, if the observer does."""
    return observer if isinstance(observer, Checker) else None


@dataclass
class Attempt:
    """A module after some of the actions of a pass, and the failure if there is one."""

    op: ModuleOp
    counter: ActionCounter
    failure: Failure | None
