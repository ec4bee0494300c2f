"""`Compilation`: a module, and everything that decides how it is lowered.

Compiling, printing a stage, running one, profiling, checking and bisecting are the same lowering
with different observers.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from xdsl.dialects.builtin import StringAttr

from .core import pipelines
from .core.context import CompilerContext, PassHook, Verification
from .core.errors import CompileError, StepwellError, explain
from .core.exactness import ROUNDING_ATTRIBUTE, Rounding
from .core.module import Module
from .core.printing import Listing, listing
from .core.records import default_path, read_records
from .core.registry import make_context
from .core.target import Target, default_threads, named
from .core.weights import WeightStore
from .dialects.graph.signature import arguments_of
from .dialects.program import named_weights
from .dialects.stages import stage_of
from .runtime.executable import Executable, Program, Staircase, executable
from .runtime.interface import Interface, checked_signature, interface_of, is_on_buffers


class Observer(PassHook):
    """A hook that also sees whole compilations: how one fails, and what it produces."""

    def failed(
        self, error: Exception, ctx: CompilerContext, compilation: Compilation
    ) -> StepwellError | None:
        """The error to raise instead of one that passes raised; None where it stays."""

    def generation_failed(
        self, error: Exception, ctx: CompilerContext, compilation: Compilation, work: Module
    ) -> StepwellError | None:
        """The same for code generation from a module at stage `llvm`."""

    def compiled(self, exe: Executable, work: Module, target: Target) -> None:
        """Look at a program, and at the module of stage `llvm` that it was made from."""


@dataclass(frozen=True)
class Compilation:
    """A module, the target, the passes and their observers.

    Every method lowers a new copy of the module.

    Args:
        module: what is lowered.
        target: the machine that passes look at.
        passes: the pass list of each stage after that of the module.
        legalize: the table of `graph-legalize`.
        schedules: the traces that tuning has found, by the structure of a kernel.
        observers: hooks that are notified of each pass, the last one innermost; see `Observer`.
        verify: when the module is verified.
    """

    module: Module
    target: Target
    passes: Mapping[str, str]
    legalize: Mapping[str, Any] = field(default_factory=dict[str, Any])
    schedules: Mapping[str, str] = field(default_factory=dict[str, str])
    observers: Sequence[PassHook] = ()
    verify: Verification = "stage"

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
    ) -> Compilation:
        """The compilation of a module, which may change afterwards; see `stepwell.compile`.

        Raises:
            CompileError: if the module is not valid, or the arguments do not fit each other.
            TargetError: if the target is unknown.
        """
        chosen = target if isinstance(target, Target) else named(target)
        start = stage_of(module.op)
        passes = passes_of(pipeline, start, opt_level, chosen, threads, copy_indices)
        begun = module if rounding is None else _with_rounding(module, rounding)
        begun.verify()
        if is_on_buffers(module.program):
            checked_signature(module.program)
        else:
            arguments_of(module.program)
        table = {} if legalize is None else table_for(legalize, start, passes)
        schedules = _schedules(records, chosen, threads)
        return Compilation(begun.clone(), chosen, passes, table, schedules, tuple(observers))

    @cached_property
    def start(self) -> str:
        """The stage that the module is at."""
        return stage_of(self.module.op)

    @cached_property
    def listing(self) -> Listing:
        """The lines of the module's text that belong to each node of the model."""
        name = self.module.program.sym_name.data
        return listing(self.module.op, f"{name}.{self.start}.mlir")

    def begin(self) -> tuple[Module, CompilerContext]:
        """A copy of the module, and a context for its passes."""
        work = self.module.clone()
        ctx = make_context(work.weights, self.target)
        ctx.legalize, ctx.schedules, ctx.verify = self.legalize, self.schedules, self.verify
        ctx.hooks += self.observers
        return work, ctx

    def descend(self, work: Module, ctx: CompilerContext) -> Iterator[str]:
        """Lower what `begin` returns in place, and yield each stage that it reaches."""
        try:
            for stage, _ in pipelines.walk_stages(ctx, work.op, self.passes, self.start):
                yield stage
        except Exception as error:
            for observer in self._observers:
                if (raised := observer.failed(error, ctx, self)) is not None:
                    raise raised from error
            raise

    @property
    def _observers(self) -> list[Observer]:
        return [observer for observer in self.observers if isinstance(observer, Observer)]

    def at(self, stage: str) -> Module:
        """The module at a stage that is IR.

        Raises:
            CompileError: if the compilation has no such stage.
        """
        pipelines.check_stage(stage)
        work, ctx = self.begin()
        if stage in self.descend(work, ctx):
            return work
        raise CompileError(explain("stage", f'"{stage}" is before', got=f'"{self.start}"'))

    def text(self, stage: str) -> str:
        """The text of a stage.

        Raises:
            CompileError: if the compilation has no such stage.
        """
        if stage not in pipelines.TEXT_STAGES:
            return self.at(stage).text()
        from .backends.llvm import jit

        work = self.at("llvm")
        if stage == "llvm-ir":
            return jit.llvm_ir(work.op, self.target, self.listing)
        ir = jit.llvm_ir(work.op, self.target)
        return jit.assembly(ir, self.target, jit.effort_of(work.op))

    def weights(self, stage: str) -> WeightStore:
        """The arrays that the text of a stage names; for the last stages those of `llvm`.

        Raises:
            CompileError: if the compilation has no such stage.
        """
        work = self.at("llvm" if stage in pipelines.TEXT_STAGES else stage)
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
        return interpreted(work.op, interface_of(work))(*inputs)

    def executable(self, staircase: Callable[[Compilation], Staircase]) -> Executable:
        """Machine code that can be called.

        Args:
            staircase: makes what shows the stages of the program from the compilation with the
                passes that have run and no observers.

        Raises:
            CompileError: if a pass refuses.
        """
        work, ctx = self.begin()
        for _ in self.descend(work, ctx):
            pass
        with ctx.phase("codegen"):
            interface, program = self._generate(ctx, work)
        later = pipelines.IR_STAGES[pipelines.IR_STAGES.index(self.start) + 1 :]
        applied = {stage: ",".join(map(str, ctx.applied.get(stage, ()))) for stage in later}
        again = staircase(replace(self, passes=applied, observers=(), verify="stage"))
        stages = pipelines.STAGES[pipelines.STAGES.index(self.start) :]
        exe = executable(interface.signature, program, again, stages, ctx.decisions)
        for observer in self._observers:
            observer.compiled(exe, work, self.target)
        return exe

    def _generate(self, ctx: CompilerContext, work: Module) -> tuple[Interface, Program]:
        try:
            interface = interface_of(work)
            return interface, machine_code(work, self.target, interface, self.listing)
        except Exception as error:
            for observer in self._observers:
                if (raised := observer.generation_failed(error, ctx, self, work)) is not None:
                    raise raised from error
            raise


def _with_rounding(module: Module, rounding: str) -> Module:
    """A copy of a module that says what its rewrites may do to roundings.

    Raises:
        CompileError: if `Rounding` has no such value.
    """
    known = [kind.value for kind in Rounding]
    if rounding not in known:
        fact, expected = "unknown rounding", ", ".join(known)
        raise CompileError(explain("compile", fact, expected=expected, got=f'"{rounding}"'))
    copy = module.clone()
    copy.op.attributes[ROUNDING_ATTRIBUTE] = StringAttr(rounding)
    return copy


def passes_of(
    pipeline: str | Mapping[str, str] | None,
    start: str,
    opt_level: int,
    target: Target,
    threads: int | None,
    copy_indices: bool = False,
) -> Mapping[str, str]:
    """The passes of each stage after `start`, for `compile` with these arguments.

    Raises:
        CompileError: if the arguments contradict each other, or the pipeline stops short.
    """
    if pipeline is None:
        count = default_threads(target) if threads is None else threads
        return pipelines.pipeline(opt_level, count, copy_indices)
    if copy_indices:
        fact = "the pipeline says itself whether indices are copied"
        expected = "convert-graph-to-rt{copy-indices=true} in it, and no copy_indices beside it"
        raise CompileError(explain("compile", fact, expected=expected))
    if threads is not None:
        fact = "the pipeline says itself for how many threads it compiles"
        expected = f"convert-rt-to-llvm{{threads={threads}}} in it, and no threads beside it"
        raise CompileError(explain("compile", fact, expected=expected))
    if isinstance(pipeline, str):
        return pipelines.split_pipeline(pipeline, start)
    stages = pipelines.IR_STAGES[pipelines.IR_STAGES.index(start) + 1 :]
    missing = [stage for stage in stages if stage not in pipeline]
    if missing:
        fact = f'the pipeline lacks stage "{missing[0]}"'
        raise CompileError(explain("compile", fact, expected=f"a text for {', '.join(stages)}"))
    return pipeline


def machine_code(
    work: Module, target: Target, interface: Interface, source: Listing | None = None
) -> Program:
    """The machine code of a module at stage `llvm`, and its signature."""
    from .backends.llvm.boundary.code import ENTRY
    from .backends.llvm.jit import compile_module

    code = compile_module(work.op, target, public=interface.name, source=source)
    tables = interface.constants, interface.functions, interface.messages
    return Program(code.address(ENTRY), *tables, code)


def _schedules(
    records: str | Path | bool | None, target: Target, threads: int | None
) -> Mapping[str, str]:
    """The traces that tuning has found for a machine, by the structure of a kernel.

    Raises:
        CompileError: if there is no such database, or it is corrupt.
    """
    path = default_path() if records is None or records is True else records
    if path is None or isinstance(path, bool):
        return {}
    if records is not None and records is not True and not Path(path).exists():
        raise CompileError(explain("tuning records", "no such file", got=path))
    found = read_records(Path(path))
    if not found:
        return {}
    return found.schedules(target, default_threads(target) if threads is None else threads)


def table_for(
    legalize: Mapping[str, Any], start: str, passes: Mapping[str, str]
) -> Mapping[str, Any]:
    """A table for `graph-legalize`, as it is now.

    Raises:
        CompileError: if it is no such table, the module is past the stage where operators are
            replaced, or the pipeline does not replace them.
    """
    if not isinstance(legalize, Mapping):
        fact, expected = "legalize is no table", "a mapping from names of operators"
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


@contextmanager
def without_collector() -> Iterator[None]:
    """Hold the garbage collector off: with a large heap it adds some 100 ms at random."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
