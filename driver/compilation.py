"""`Compilation`: a module, and everything that determines how it is lowered.

Compiling, printing a stage, running one, profiling, checking and bisecting are the same lowering
with different observers.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from ..core.boundary.new_weights import replaced
from ..core.errors import CompileError, StepwellError, explain
from ..core.ir.context import CompilerContext, PassHook, Verification
from ..core.ir.module import Module
from ..core.ir.printing import Listing, listing
from ..core.ir.weights import WeightStore
from ..core.logs import logger
from ..core.pipelines import staircase as pipelines
from ..core.pipelines.exactness import with_rounding
from ..core.pipelines.pass_manager import run_steps
from ..core.pipelines.pass_text import pass_text
from ..core.pipelines.stages import (
    DEVICE_STAGES,
    IR_STAGES,
    check_stage,
    stages_after,
    stages_from,
)
from ..core.pipelines.text import parse_passes
from ..core.progress import report
from ..core.registry import make_context
from ..core.registry import passes as available_passes
from ..core.target import Target, default_threads, named
from ..dialects.foreign import check_dialects
from ..dialects.program import check_interface, constants_in, named_weights
from ..dialects.stages import stage_of
from ..passes.loop.scheduler.records import default_path, read_records
from ..runtime.constants import renewed
from ..runtime.executable import Executable, executable
from ..runtime.loaded import Program
from ..runtime.lowered import Generated, Source, generated, machine_code
from ..runtime.staircase import Origin, Staircase
from ..runtime.vectorcall import boundary
from .request import Request

_DECIDED = "optimized"
"""The stage after which no pass of this package looks at the elements of weights."""

_LOG = logger("passes")

CODE_GENERATION = "code generation"
"""`CompilerContext.pass_name` during code generation."""


class Observer(PassHook):
    """A hook that also observes whole compilations: their failures and their results."""

    def failed(
        self, error: Exception, ctx: CompilerContext, compilation: Compilation
    ) -> StepwellError | None:
        """The error to raise instead of one of passes or code generation; None to keep it.

        The context holds the name of the pass that failed, or `CODE_GENERATION`.
        """

    def compiled(self, exe: Executable, compilation: Compilation) -> None:
        """Look at a program, and at its compilation with the passes that have run."""


@dataclass(frozen=True)
class Compilation:
    """A settled request, and the observers of its passes.

    Every method lowers a new copy of the module.

    Args:
        request: the settled request.
        observers: hooks notified of each pass, the last one innermost; see `Observer`.
        verify: when to verify the module.
        code: makes machine code of stage `llvm`; None for one object file with the lines of nodes.
        form: a digest of the module at stage `optimized`; None before it was reached.
    """

    request: Request
    observers: Sequence[PassHook] = ()
    verify: Verification = "stage"
    code: Callable[[Module, Target], Program] | None = None
    form: str | None = None

    @staticmethod
    def of(request: Request, observers: Sequence[PassHook] = ()) -> Compilation:
        """The compilation of a request, which is settled for a copy of its module.

        Raises:
            CompileError: if the module is invalid, or the arguments contradict each other.
            TargetError: if the target is unknown.
        """
        module = request.module
        module.verify()
        found = Compilation(settled(request, stage_of(module.op)), tuple(observers))
        check_dialects(module.op, found.passes)
        check_interface(module.program)
        return found

    @property
    def module(self) -> Module:
        """The module to lower."""
        return self.request.module

    @property
    def target(self) -> Target:
        """The target of passes and code generation."""
        return named(self.request.target)

    @property
    def passes(self) -> Mapping[str, str]:
        """The passes that lead to each stage."""
        return self.request.passes

    @cached_property
    def start(self) -> str:
        """The stage of the module."""
        return stage_of(self.module.op)

    @cached_property
    def listing(self) -> Listing:
        """The line of each node of the model in the text of the module."""
        name = self.module.program.sym_name.data
        return listing(self.module.op, f"{name}.{self.start}.mlir")

    def begin(self) -> tuple[Module, CompilerContext]:
        """A copy of the module, and a context for its passes."""
        work = self.module.clone()
        ctx = make_context(work.weights, self.target)
        ctx.legalize, ctx.schedules = self.request.legalize or {}, self.request.schedules or {}
        ctx.verify = self.verify
        ctx.hooks += self.observers
        ctx.decisions += work.decisions
        return work, ctx

    def descend(self, work: Module, ctx: CompilerContext) -> Iterator[str]:
        """Lower the module that `begin` returned in place, and yield each stage reached."""
        stages = stages_after(self.start)
        with self._observed(ctx):
            # All texts are read before a pass runs.
            with ctx.phase("load passes"):
                steps = {s: parse_passes(self.passes[s], available_passes()) for s in stages}
            yield self.start
            for number, stage in enumerate(stages, 1):
                ctx.pending = [step for later in stages[number:] for step in steps[later]]
                run_steps(ctx, work.op, steps[stage], stage)
                yield stage

    @property
    def _observers(self) -> list[Observer]:
        return [observer for observer in self.observers if isinstance(observer, Observer)]

    def as_run(self, ctx: CompilerContext) -> Compilation:
        """This compilation with the passes that have run in a context, and no observers."""
        applied = {
            stage: ",".join(map(pass_text, ctx.applied.get(stage, ())))
            for stage in stages_after(self.start)
        }
        return replace(self.running(applied), observers=(), verify="stage", code=None)

    def running(self, passes: Mapping[str, str]) -> Compilation:
        """This compilation with other passes."""
        return replace(self, request=replace(self.request, pipeline=passes))

    def on(self, target: Target) -> Compilation:
        """This compilation for another target."""
        return replace(self, request=self.request.on(target))

    def of_module(self, module: Module) -> Compilation:
        """This compilation of another module at the same stage."""
        return replace(self, request=replace(self.request, module=module))

    def at(self, stage: str) -> Module:
        """The module at a stage that is IR.

        Raises:
            CompileError: if the compilation has no such stage.
        """
        check_stage(stage)
        work, ctx = self.begin()
        if stage in self.descend(work, ctx):
            return work
        raise CompileError(explain("stage", f'"{stage}" is before', got=f'"{self.start}"'))

    def unscheduled(self) -> Module:
        """The module as `loop-schedule` takes it.

        Raises:
            CompileError: if the passes schedule nothing.
        """
        stage, passes = pipelines.until_schedules(self.passes)
        return self.running(passes).at(stage)

    def text(self, stage: str) -> str:
        """The text of a stage.

        Raises:
            CompileError: if the compilation has no such stage.
        """
        if check_stage(stage) in IR_STAGES:
            return self.at(stage).text()
        from ..backends.llvm import jit

        work = self.at("llvm")
        if stage in DEVICE_STAGES:
            from ..backends.llvm.device import device_code

            return device_code(work.op, self.target, self.listing).text
        if stage == "llvm-ir":
            return jit.llvm_ir(work.op, self.target, self.listing)
        ir = jit.llvm_ir(work.op, self.target)
        return jit.assembly(ir, self.target, jit.effort_of(work.op))

    def weights(self, stage: str) -> WeightStore:
        """The arrays that the text of a stage names; for text stages, those of `llvm`.

        Raises:
            CompileError: if the compilation has no such stage.
        """
        work = self.at(stage if check_stage(stage) in IR_STAGES else "llvm")
        return work.weights.only(named_weights(work.op))

    def run(self, stage: str, inputs: Sequence[object]) -> Any:
        """The results of a stage that is IR, interpreted.

        Raises:
            CompileError: if the compilation has no such stage, or it makes an invalid access.
            InputError: if the inputs do not fit.
        """
        return self.at(stage).run(*inputs)

    def executable(
        self,
        inspect: Callable[[Compilation], Staircase],
        restored: Callable[[bytes], Executable] | None = None,
    ) -> tuple[Executable, Compilation]:
        """Machine code that can be called, and this compilation with the passes that have run.

        Args:
            inspect: makes the stages that users see of a compilation.
            restored: makes an executable of one that was pickled.

        Raises:
            CompileError: if a pass refuses the module.
        """
        work, ctx = self.begin()
        form = None
        for stage in self.descend(work, ctx):
            form = _form_of(work) if stage == _DECIDED else form
        program = self._machine_code(work, ctx)
        again, decisions = replace(self.as_run(ctx), form=form), tuple(ctx.decisions)
        stages = stages_from(self.start)
        if self.target.device is not None:
            stages += DEVICE_STAGES
        origin = Origin(partial(inspect, again), lambda: decisions, stages, restored)
        exe = executable(program, boundary(Executable), origin)
        for observer in self._observers:
            observer.compiled(exe, again)
        return exe, again

    def generated(self, target: str | None) -> Generated:
        """The LLVM IR of the program for a target, by default its own.

        Raises:
            CompileError: if a pass refuses the module for this target.
            TargetError: if it is unknown.
        """
        wanted = self if target is None else self.on(named(target))
        work, ctx = wanted.begin()
        for _ in wanted.descend(work, ctx):
            pass
        return generated(work, wanted.target)

    def source(self) -> Source:
        """The IR of which the program can be compiled again: stage `optimized`, or a later one."""
        later = IR_STAGES.index(self.start) > IR_STAGES.index(_DECIDED)
        stage = self.start if later else _DECIDED
        work = self.at(stage)
        store, recipe = work.weights.only(named_weights(work.op)), self.request.recipe(stage)
        return Source(work.text(locations=True), store, recipe)

    def updated(self, program: Program, given: Mapping[str, object]) -> tuple[Program, Compilation]:
        """The program with new weights, and its compilation.

        The passes that look at the elements of weights run again. If they decide as before, the
        code is that of the old program.

        Args:
            program: the result of this compilation.
            given: arrays by the names that callers know.

        Raises:
            InputError: if names, shapes or dtypes differ from those of the module.
            CompileError: if a pass refuses the module with these weights.
        """
        new = self.of_module(Module(self.module.op, replaced(self.module.weights, given)))
        work, ctx = new.begin()
        form = None
        for stage in new.descend(work, ctx):
            if stage != _DECIDED:
                continue
            form = _form_of(work)
            if form == self.form and self._decides_early:
                constants = constants_in(program.interface.packing)
                arrays = renewed(constants, program.constants, work.weights)
                return replace(program, constants=arrays), new
        found = new._machine_code(work, ctx)
        return found, replace(new.as_run(ctx), form=form)

    def known(self) -> Compilation:
        """This compilation of a module at stage `optimized`, of which code was made before."""
        return replace(self, form=_form_of(self.module))

    @property
    def _decides_early(self) -> bool:
        """Whether no pass after stage `optimized` looks at the elements of weights."""
        later = stages_after(_DECIDED)
        usual = pipelines.passes_in({stage: pipelines.own_pipeline()[stage] for stage in later})
        return usual >= pipelines.passes_in({stage: self.passes.get(stage, "") for stage in later})

    def _machine_code(self, work: Module, ctx: CompilerContext) -> Program:
        """The code of the module at stage `llvm`."""
        ctx.stage, ctx.pass_name = "asm", CODE_GENERATION
        done = sum(map(len, ctx.applied.values()))
        report(CODE_GENERATION, done, done + 1)
        _LOG.debug(CODE_GENERATION, extra={"done": done, "left": 1})
        with self._observed(ctx), ctx.phase("codegen"):
            if self.code is not None:
                return self.code(work, self.target)
            return machine_code(work, self.target, self.listing)

    @contextmanager
    def _observed(self, ctx: CompilerContext) -> Iterator[None]:
        """Let observers replace an exception."""
        try:
            yield
        except Exception as error:
            for observer in self._observers:
                if (raised := observer.failed(error, ctx, self)) is not None:
                    raise raised from error
            raise


def settled(request: Request, start: str) -> Request:
    """The settled request for a copy of the module, which is at a stage.

    Raises:
        CompileError: if the arguments contradict each other.
        TargetError: if the target is unknown.
    """
    target, passes = named(request.target), passes_of(request, start)
    if request.schedule:
        left = {stage: text for stage, text in passes.items() if stage in stages_after(start)}
        passes = pipelines.with_traces(left, request.schedule)
    table = _table_of(request, start, passes)
    schedules = _recorded(request, target) if request.schedules is None else request.schedules
    module, rounding = request.module, request.rounding
    begun = module.clone() if rounding is None else with_rounding(module, rounding)
    return Request(begun, target, pipeline=passes, legalize=table, schedules=schedules)


def passes_of(request: Request, start: str) -> Mapping[str, str]:
    """The passes of each stage after `start`.

    Raises:
        CompileError: if the arguments contradict each other, or the pipeline stops short.
    """
    pipeline, threads = request.pipeline, request.threads
    if pipeline is None:
        target = named(request.target)
        count = default_threads(target) if threads is None else threads
        found = pipelines.pipeline(request.opt_level, count, request.copy_indices)
        if target.device is not None and not found["scheduled"]:
            # Without a schedule, no loop is on the device.
            found["scheduled"] = "loop-schedule"
        return found
    if request.copy_indices:
        fact = "the pipeline determines whether indices are copied"
        expected = "convert-graph-to-rt{copy-indices=true} in it instead of copy_indices"
        raise CompileError(explain("compile", fact, expected=expected))
    if isinstance(pipeline, str):
        pipeline = pipelines.split_pipeline(pipeline, start)
    if threads is not None and (own := pipelines.threads_of(pipeline)) != {threads}:
        fact, got = "the pipeline has another number of threads", ", ".join(map(str, sorted(own)))
        raise CompileError(explain("compile", fact, expected=threads, got=got))
    stages = stages_after(start)
    missing = [stage for stage in stages if stage not in pipeline]
    if missing:
        fact = f'the pipeline lacks stage "{missing[0]}"'
        raise CompileError(explain("compile", fact, expected=f"a text for {', '.join(stages)}"))
    return pipeline


def _table_of(request: Request, start: str, passes: Mapping[str, str]) -> Mapping[str, Any] | None:
    """A copy of the table for `graph-legalize`, if there is one.

    Raises:
        CompileError: if it is not a mapping, the module is past the stage where operators are
            replaced, or the pipeline lacks the pass.
    """
    legalize = request.legalize
    if legalize is None:
        return None
    if not isinstance(legalize, Mapping):
        fact, expected = "legalize is not a mapping", "a mapping from names of operators"
        got = type(legalize).__name__
        raise CompileError(explain("compile", fact, expected=expected, got=got))
    if start != "graph":
        fact, expected = "operators are replaced before they are grouped", 'stage "graph"'
        got = f'stage "{start}"'
        raise CompileError(explain("compile", fact, expected=expected, got=got))
    if legalize and "graph-legalize" not in pipelines.passes_in(passes):
        fact, expected = "the pipeline does not use legalize", "graph-legalize in it"
        raise CompileError(explain("compile", fact, expected=expected))
    return dict(legalize)


def _recorded(request: Request, target: Target) -> Mapping[str, str]:
    """The traces that tuning has found for a machine, by kernel structure.

    Raises:
        CompileError: if there is no such database, or it is corrupt.
    """
    records, threads = request.records, request.threads
    path = default_path() if records is None or records is True else records
    if path is None or isinstance(path, bool):
        return {}
    if not isinstance(path, str | os.PathLike):
        fact, expected, got = "not a path", "a path, True or False", type(path).__name__
        raise CompileError(explain("tuning records", fact, expected=expected, got=got))
    if records is not None and records is not True and not Path(path).exists():
        raise CompileError(explain("tuning records", "no such file", got=path))
    found = read_records(Path(path))
    if not found:
        return {}
    return found.schedules(target, default_threads(target) if threads is None else threads)


def _form_of(module: Module) -> str:
    """A digest of the text of a module, which has the names of weights but not their elements."""
    return hashlib.sha256(module.text().encode()).hexdigest()
