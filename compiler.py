"""`compile`: a module goes down the staircase and comes out as an `Executable`."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .core import pipelines
from .core.context import CompilerContext, PassHook
from .core.errors import CompileError, UnsupportedError, explain
from .core.module import Module, specs_of
from .core.records import default_path, read_records
from .core.registry import make_context
from .core.target import Target, default_threads, named
from .diagnosis.reproducer import code_defects_told, defects_told
from .runtime.executable import Executable, Program, executable
from .runtime.interface import Interface, checked_signature, interface_of
from .staircase import Staircase, effort_for, stage_of

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from .backends.llvm.jit import Effort
    from .core.printing import Listing
    from .diagnosis.checking import Checker


def compile(
    module: Module,
    target: str | Target = "host",
    threads: int | None = None,
    opt_level: int = 3,
    pipeline: str | Mapping[str, str] | None = None,
    legalize: Mapping[str, Any] | None = None,
    check: bool | Sequence[object] = False,
    max_ulp: float | None = None,
    hooks: Sequence[PassHook] = (),
    records: str | Path | bool | None = None,
    verify_each: bool = False,
) -> Executable:
    """Compile a module to machine code.

    Args:
        module: what a frontend made; it is not changed.
        target: "host", the name of a processor (see `core.target`), or a `Target`.
        threads: how many threads a call may use; None for what the environment says in
            `STEPWELL_NUM_THREADS`, else as many as there are cores.
        opt_level: 0 (every operator a scalar kernel of its own) to 3.
        pipeline: the passes to run instead of those that `opt_level` and `threads` call for: the
            text that `stepwell pipeline` prints, as edited, or the text of each stage by its
            name. See `docs/pipeline.md`.
        legalize: for the names of operators what is put in their place: a `stepwell.kernel`, or
            a rule. A pipeline of one's own has to have `graph-legalize` then. See
            `docs/kernels-and-functions.md`.
        check: whether the module is run after each pass and compared with what it was, on inputs
            that are made up, or on these. See `docs/checking.md`.
        max_ulp: how far a checked pass may move a result; None for a limit that other orders of
            sums keep to.
        records: the database of schedules that `tune` has found; None for that of
            `STEPWELL_TUNING`, or of the user, False for none. See `docs/scheduling.md`.
        hooks: what is told of each pass, before and after it, and may leave it out. See
            `docs/driver.md`.
        verify_each: whether the module is verified after each pass, and not at the end of each
            stage only.

    Raises:
        CompileError: if the module is not valid or has something that cannot be compiled, or
            if the pipeline is malformed, stops short, or does not use `legalize`.
        InternalError: if a pass crashes, or makes what is not valid; the error names a file that
            shows it. See `docs/debugging.md`.
        TargetError: if the target is unknown or this machine cannot run code for it (which
            `stepwell compile --emit asm` shows all the same), or `STEPWELL_NUM_THREADS` is no
            number.
    """
    if not isinstance(module, Module):
        got = type(module).__name__
        raise CompileError(explain("compile", "no module", expected="stepwell.Module", got=got))
    from .backends.llvm.machine import check_runs_here

    chosen = target if isinstance(target, Target) else named(target)
    start = stage_of(module.op)
    if start == "llvm":
        raise UnsupportedError(
            explain(
                "compile",
                "the llvm dialect does not say what its tensors are",
                expected='a module of stage "loops" or before',
                got=f'stage "{start}"',
                hint="save the module at an earlier stage, or translate it by mlir-translate",
            )
        )
    check_runs_here(chosen)
    passes = passes_of(pipeline, start, opt_level, chosen, threads)
    module.verify()
    if start in ("buffers", "loops"):
        checked_signature(module.main)
    else:
        specs_of(module.main)
    work = module.clone()
    ctx = make_context(work.weights, chosen)
    if legalize is not None:
        ctx.legalize = table_for(legalize, start, passes)
    ctx.schedules = _schedules(records, chosen, threads)
    ctx.hooks += _checked_hooks(hooks)
    ctx.verify = "pass" if verify_each else "stage"
    checker = _checker(module, check, max_ulp)
    if checker is not None:
        # The first hook is the last after a pass: what the others measure is without it.
        ctx.hooks.insert(0, checker)
    with _without_collector(), defects_told(ctx, module, start):
        interface, effort = _descend(ctx, work, passes, start)
    stages = pipelines.STAGES[pipelines.STAGES.index(start) :]
    applied = {stage: ",".join(map(str, ctx.applied.get(stage, ()))) for stage in passes}
    staircase = Staircase(module, chosen, applied, start, ctx.legalize, schedules=ctx.schedules)
    told = code_defects_told(ctx, staircase, applied["llvm"])
    with _without_collector(), told, ctx.phase("codegen"):
        program = machine_code(work.op, chosen, interface, effort, staircase.listing())
    exe = executable(interface.signature, program, staircase, stages, ctx.decisions)
    if checker is not None:
        checker.finish(exe, lambda: (work.op, natives(work.op, chosen, effort)))
        exe.changes = tuple(checker.changes)
    return exe


def passes_of(
    pipeline: str | Mapping[str, str] | None,
    start: str,
    opt_level: int,
    target: Target,
    threads: int | None,
) -> Mapping[str, str]:
    """The passes of each stage after `start`, for `compile` with these arguments.

    Raises:
        CompileError: if the arguments contradict each other, or the pipeline stops short.
    """
    if pipeline is None:
        count = default_threads(target) if threads is None else threads
        return pipelines.pipeline(opt_level, count)
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


def _descend(
    ctx: CompilerContext, module: Module, passes: Mapping[str, str], start: str
) -> tuple[Interface, Effort]:
    """Take a module down to the LLVM dialect; gives what it is called with, and LLVM's part."""
    stages = pipelines.walk_stages(ctx, module.op, passes, start)
    op = next(op for stage, op in stages if stage == "loops")
    interface, effort = interface_of(Module(op, ctx.weights)), effort_for(op)
    for _ in stages:
        pass
    return interface, effort


def machine_code(
    op: ModuleOp,
    target: Target,
    interface: Interface,
    effort: Effort,
    source: Listing | None = None,
) -> Program:
    """The machine code of a module of the LLVM dialect, with what it is called with."""
    from .backends.llvm.boundary.code import ENTRY
    from .backends.llvm.jit import compile_module

    code = compile_module(op, target, effort, interface.name, source)
    tables = interface.constants, interface.functions, interface.messages
    return Program(code.address(ENTRY), *tables, code)


def natives(op: ModuleOp, target: Target, effort: Effort) -> dict[str, Any]:
    """The machine code of each function of a module of the LLVM dialect by itself."""
    from .backends.llvm.native import native_functions

    return native_functions(op, target, effort)


def _checker(
    module: Module, check: bool | Sequence[object], max_ulp: float | None
) -> Checker | None:
    """What runs the module after each pass, if it is to be run.

    Raises:
        CompileError: if the limit is none, or there is a limit and no check.
        InputError: if the inputs do not fit.
    """
    if isinstance(check, bool) and not check:
        if max_ulp is not None:
            raise CompileError(explain("compile", "max_ulp without check", expected="check=True"))
        return None
    if max_ulp is not None and not max_ulp >= 0:
        raise CompileError(explain("compile", "wrong max_ulp", expected="0 or more", got=max_ulp))
    from .diagnosis.checking import Checker

    return Checker(module, None if isinstance(check, bool) else check, max_ulp)


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


def _checked_hooks(hooks: Sequence[PassHook]) -> Sequence[PassHook]:
    """The hooks, as they are now.

    Raises:
        CompileError: if one is none.
    """
    for hook in hooks:
        if not isinstance(hook, PassHook):
            got = type(hook).__name__
            raise CompileError(explain("compile", "no hook", expected="stepwell.PassHook", got=got))
    return hooks


def table_for(
    legalize: Mapping[str, Any], start: str, passes: Mapping[str, str]
) -> Mapping[str, Any]:
    """A table for `graph-legalize`, as it is now.

    Raises:
        CompileError: if it is none, the module is past the stage where operators are replaced, or
            the pipeline does not replace them.
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
def _without_collector() -> Iterator[None]:
    """Hold the garbage collector off: with a large heap it adds some 100 ms at random."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
