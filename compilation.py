"""`Compilation`: a module, and everything that determines how it is lowered.

Compiling, printing a stage, running one, profiling, checking and bisecting are the same lowering
with different observers.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from .core import pipelines
from .core.context import CompilerContext, PassHook, Verification
from .core.errors import CompileError, StepwellError, explain
from .core.exactness import with_rounding
from .core.logs import logger
from .core.module import Module
from .core.new_weights import replaced
from .core.pass_text import pass_text
from .core.printing import Listing, listing
from .core.progress import report
from .core.records import default_path, read_records
from .core.registry import make_context
from .core.stages import IR_STAGES, STAGES, TEXT_STAGES, check_stage
from .core.target import Target, default_threads, named
from .core.weights import WeightStore
from .dialects.foreign import check_dialects
from .dialects.program import (
    Constant,
    check_interface,
    is_on_buffers,
    named_weights,
    needs_of,
)
from .dialects.stages import stage_of
from .runtime.constants import renewed
from .runtime.executable import Executable
from .runtime.loaded import Program
from .runtime.lowered import lowered
from .runtime.machine_code import Generated, Source, generated, machine_code
from .runtime.making import executable
from .runtime.staircase import Staircase

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
    """A module, the target, the passes and their observers.

    Every method lowers a new copy of the module.

    Args:
        module: the module to lower.
        target: the target of passes and code generation.
        passes: the pass list of each stage after that of the module.
        legalize: the table of `graph-legalize`.
        schedules: the traces that tuning has found, by kernel structure.
        observers: hooks notified of each pass, the last one innermost; see `Observer`.
        verify: when to verify the module.
        code: makes machine code of stage `llvm`; None for one object file with the lines of nodes.
        form: a digest of the module at stage `optimized`; None before it was reached.
        constants: the constants that its machine code takes; empty before there is code.
    """

    module: Module
    target: Target
    passes: Mapping[str, str]
    legalize: Mapping[str, Any] = field(default_factory=dict[str, Any])
    schedules: Mapping[str, str] = field(default_factory=dict[str, str])
    observers: Sequence[PassHook] = ()
    verify: Verification = "stage"
    code: Callable[[Module, Target], Program] | None = None
    form: str | None = None
    constants: tuple[Constant, ...] = ()

    @staticmethod
    def of(
        module: Module,
        target: str | Target = "host",
        threads: int | None = None,
        opt_level: int = 3,
        pipeline: str | Mapping[str, str] | None = None,
        legalize: Mapping[str, Any] | None = None,
        records: str | Path | bool | None = False,
        observers: Sequence[PassHook] = (),
        copy_indices: bool = False,
        rounding: str | None = None,
        schedule: str | None = None,
    ) -> Compilation:
        """The compilation of a copy of a module; see `stepwell.compile`.

        The schedule is text, ``@kernel: steps @other: steps``.

        Raises:
            CompileError: if the module is invalid, or the arguments contradict each other.
            TargetError: if the target is unknown.
        """
        chosen = target if isinstance(target, Target) else named(target)
        module.verify()
        start = stage_of(module.op)
        passes = passes_of(pipeline, start, opt_level, chosen, threads, copy_indices)
        check_dialects(module.op, passes)
        check_interface(module.program)
        if schedule:
            later = IR_STAGES[IR_STAGES.index(start) + 1 :]
            left = {stage: text for stage, text in passes.items() if stage in later}
            passes = pipelines.with_traces(left, schedule)
        table = {} if legalize is None else table_for(legalize, start, passes)
        schedules = _schedules(records, chosen, threads)
        begun = module.clone() if rounding is None else with_rounding(module, rounding)
        return Compilation(begun, chosen, passes, table, schedules, tuple(observers))

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
        ctx.legalize, ctx.schedules, ctx.verify = self.legalize, self.schedules, self.verify
        ctx.hooks += self.observers
        ctx.decisions += work.decisions
        return work, ctx

    def descend(self, work: Module, ctx: CompilerContext) -> Iterator[str]:
        """Lower the module that `begin` returned in place, and yield each stage reached."""
        with self._observed(ctx):
            for stage, _ in pipelines.walk_stages(ctx, work.op, self.passes, self.start):
                yield stage

    @property
    def _observers(self) -> list[Observer]:
        return [observer for observer in self.observers if isinstance(observer, Observer)]

    def as_run(self, ctx: CompilerContext) -> Compilation:
        """This compilation with the passes that have run in a context, and no observers."""
        later = IR_STAGES[IR_STAGES.index(self.start) + 1 :]
        applied = {stage: ",".join(map(pass_text, ctx.applied.get(stage, ()))) for stage in later}
        return replace(self, passes=applied, observers=(), verify="stage", code=None)

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
        return replace(self, passes=passes).at(stage)

    def text(self, stage: str) -> str:
        """The text of a stage.

        Raises:
            CompileError: if the compilation has no such stage.
        """
        if stage not in TEXT_STAGES:
            return self.at(stage).text()
        from .backends.llvm import jit

        work = self.at("llvm")
        if stage == "llvm-ir":
            return jit.llvm_ir(work.op, self.target, self.listing)
        ir = jit.llvm_ir(work.op, self.target)
        return jit.assembly(ir, self.target, jit.effort_of(work.op))

    def weights(self, stage: str) -> WeightStore:
        """The arrays that the text of a stage names; for text stages, those of `llvm`.

        Raises:
            CompileError: if the compilation has no such stage.
        """
        work = self.at("llvm" if stage in TEXT_STAGES else stage)
        return work.weights.only(named_weights(work.op))

    def run(self, stage: str, inputs: Sequence[object]) -> Any:
        """The results of a stage that is IR, interpreted.

        Raises:
            CompileError: if the compilation has no such stage, or it makes an invalid access.
            InputError: if the inputs do not fit.
        """
        from .runtime.interpreted import interpreted

        work = self.at(stage)
        if not is_on_buffers(work.program):
            return work.run_reference(*inputs)
        return interpreted(work.op, lowered(work))(*inputs)

    def executable(self, staircase: Callable[[Compilation], Staircase]) -> Executable:
        """Machine code that can be called.

        Args:
            staircase: returns the `Staircase` of a compilation, which has the passes that have run
                and no observers.

        Raises:
            CompileError: if a pass refuses the module.
        """
        work, ctx = self.begin()
        form = None
        for stage in self.descend(work, ctx):
            form = _form_of(work) if stage == _DECIDED else form
        program = self._machine_code(work, ctx)
        again = self._done(work, ctx, form)
        stages = STAGES[STAGES.index(self.start) :]
        exe = executable(program, staircase(again), stages, ctx.decisions)
        for observer in self._observers:
            observer.compiled(exe, again)
        return exe

    def generated(self, target: Target | None = None) -> Generated:
        """The LLVM IR of the program for a target, by default its own.

        Raises:
            CompileError: if a pass refuses the module.
        """
        own = target is None or target == self.target
        # Schedules were found by measuring on one target.
        wanted = self if own or target is None else replace(self, target=target, schedules={})
        work, ctx = wanted.begin()
        for _ in wanted.descend(work, ctx):
            pass
        return generated(work, wanted.target)

    def source(self) -> Source:
        """The IR of which the program can be compiled again: stage `optimized`, or a later one."""
        later = IR_STAGES.index(self.start) > IR_STAGES.index(_DECIDED)
        stage = self.start if later else _DECIDED
        work = self.at(stage)
        store, recipe = work.weights.only(named_weights(work.op)), self.recipe(stage)
        return Source(work.text(locations=True), store, recipe)

    def recipe(self, stage: str) -> Mapping[str, Any]:
        """The arguments of this compilation as values of JSON, for the module at a stage."""
        target = {name: getattr(self.target, name) for name in Target.__dataclass_fields__}
        return {
            "stage": stage,
            "passes": dict(self.passes),
            "schedules": dict(self.schedules),
            "target": {name: value for name, value in target.items() if name != "legalize"},
        }

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
        module = Module(self.module.op, replaced(self.module.weights, given))
        new = replace(self, module=module)
        work, ctx = new.begin()
        form = None
        for stage in new.descend(work, ctx):
            if stage != _DECIDED:
                continue
            form = _form_of(work)
            if form == self.form and self._decides_early:
                arrays = renewed(self.constants, program.constants, work.weights)
                return replace(program, constants=arrays), new
        found = new._machine_code(work, ctx)
        return found, new._done(work, ctx, form)

    def known(self, constants: Sequence[Constant]) -> Compilation:
        """This compilation of a module at stage `optimized`, whose code takes these constants."""
        return replace(self, form=_form_of(self.module), constants=tuple(constants))

    def _done(self, work: Module, ctx: CompilerContext, form: str | None) -> Compilation:
        """This compilation, with what is known once its code is made."""
        constants = needs_of(work.op, work.program).constants
        return replace(self.as_run(ctx), form=form, constants=constants)

    @property
    def _decides_early(self) -> bool:
        """Whether no pass after stage `optimized` looks at the elements of weights."""
        later = IR_STAGES[IR_STAGES.index(_DECIDED) + 1 :]
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


def _form_of(module: Module) -> str:
    """A digest of the text of a module, which has the names of weights but not their elements."""
    return hashlib.sha256(module.text().encode()).hexdigest()


def passes_of(
    pipeline: str | Mapping[str, str] | None,
    start: str,
    opt_level: int,
    target: Target,
    threads: int | None,
    copy_indices: bool = False,
) -> Mapping[str, str]:
    """The passes of each stage after `start`, for these arguments of `compile`.

    Raises:
        CompileError: if the arguments contradict each other, or the pipeline stops short.
    """
    if pipeline is None:
        count = default_threads(target) if threads is None else threads
        return pipelines.pipeline(opt_level, count, copy_indices)
    if copy_indices:
        fact = "the pipeline determines whether indices are copied"
        expected = "convert-graph-to-rt{copy-indices=true} in it instead of copy_indices"
        raise CompileError(explain("compile", fact, expected=expected))
    if isinstance(pipeline, str):
        pipeline = pipelines.split_pipeline(pipeline, start)
    if threads is not None and (own := pipelines.threads_of(pipeline)) != {threads}:
        fact, got = "the pipeline has another number of threads", ", ".join(map(str, sorted(own)))
        raise CompileError(explain("compile", fact, expected=threads, got=got))
    stages = IR_STAGES[IR_STAGES.index(start) + 1 :]
    missing = [stage for stage in stages if stage not in pipeline]
    if missing:
        fact = f'the pipeline lacks stage "{missing[0]}"'
        raise CompileError(explain("compile", fact, expected=f"a text for {', '.join(stages)}"))
    return pipeline


def _schedules(
    records: str | Path | bool | None, target: Target, threads: int | None
) -> Mapping[str, str]:
    """The traces that tuning has found for a machine, by kernel structure.

    Raises:
        CompileError: if there is no such database, or it is corrupt.
    """
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


def table_for(
    legalize: Mapping[str, Any], start: str, passes: Mapping[str, str]
) -> Mapping[str, Any]:
    """A copy of a table for `graph-legalize`.

    Raises:
        CompileError: if it is not a mapping, the module is past the stage where operators are
            replaced, or the pipeline lacks the pass.
    """
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
