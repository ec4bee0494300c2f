"""`compile`: lower a module stage by stage to an `Executable`."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.collector import without_collector
from ..core.errors import CompileError, explain
from ..core.ir.module import Module
from ..core.logs import logger
from ..core.target import Target
from ..driver.request import Request
from ..runtime.executable import Executable
from .cached import place_of
from .loading import restored

if TYPE_CHECKING:
    from ..core.ir.context import PassHook
    from ..dialects.loop.trace_text import Schedules
    from ..driver.compilation import Compilation, Observer

_LOG = logger("compile")


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
    copy_indices: bool = False,
    rounding: str | None = None,
    schedule: Schedules | None = None,
) -> Executable:
    """Compile a module to machine code, or take the program from the cache (`docs/cache.md`).

    Args:
        module: the module, from a frontend; it is not changed.
        target: "host", the name of a processor (see `core.target`), or a `Target`. Of a program for
            a processor that this one is not, stages can be looked at, and it can be saved; a call
            is an error.
        threads: the maximum number of threads of a call, up to 256; None for the value of the
            environment variable `STEPWELL_NUM_THREADS`, else the number of cores.
        opt_level: 0 (a scalar kernel for every operator) to 3.
        pipeline: the passes to run instead of those for `opt_level` and `threads`: those of
            `stepwell.pipeline()` with some of your own, a text as `stepwell pipeline` prints it, or
            the text of each stage by its name. See `docs/pipeline.md`.
        legalize: replacements by operator name: a `stepwell.kernel`, or a rule. A custom pipeline
            must then contain `graph-legalize`. See `docs/kernels-and-functions.md`.
        check: whether to run the module after each pass and compare its results with those before
            the pass, on generated inputs; or the inputs to run it on. See `docs/checking.md`.
        max_ulp: the limit for the error of a checked pass; None for a limit that allows sums to be
            reordered.
        records: the database of schedules that `tune` has found; None for that of
            `STEPWELL_TUNING`, or of the user, False for none. See `docs/scheduling.md`.
        hooks: objects that are notified before and after each pass, and may skip it. See
            `docs/driver.md`.
        verify_each: whether to verify the module after each pass. Otherwise it is verified at the
            end of all stages with `pipeline` or `check`, and else, if operators or rules of other
            packages take part, at the end of `optimized` and `kernels`.
        copy_indices: whether a call copies the indices of sparse matrices and of gathers before it
            checks them. By default it checks them in place, and nothing may write to them until it
            returns: a concurrent write can crash the process. See `docs/calls.md`.
        rounding: how rewrites may change the roundings of floats. "unseen", the default: freely
            where no comparison, rounding to integers, cast to integers or quantisation follows,
            elsewhere only if operators leave them unspecified (the order of a sum, the roundings
            inside a normalisation); "kept": not at all; "free": freely everywhere. The same holds
            for the rounding of f16 and bf16 that a fused kernel does not store. None for the
            attribute `graph.rounding` of the module. See `docs/canonical-forms.md`.
        schedule: the traces of kernels by their names, ``{"fused_dense": "split(j, 16); ..."}``, as
            text or as what `stepwell.schedule` returned; or such schedules, or a text like that of
            `stepwell compile --schedule`. Other kernels are scheduled as usual. See
            `docs/scheduling.md`.

    Raises:
        CompileError: if the module is invalid or contains something that cannot be compiled, or
            if the pipeline is malformed, stops short, or does not use `legalize`; if a step of a
            schedule is not legal, or there is no kernel of its name.
        InternalError: if a pass crashes, or produces invalid IR; the error names a reproducer file.
            See `docs/debugging.md`.
        TargetError: if the target is unknown, or `STEPWELL_NUM_THREADS` is not a number.
    """
    check_arguments("compile", module, hooks)
    traces = None
    if schedule is not None:
        # Not imported without a schedule, as a hit of the cache takes less.
        from ..dialects.loop.trace_text import traces_text

        traces = traces_text(schedule)
    request = Request(
        module,
        target,
        threads,
        opt_level,
        pipeline,
        legalize,
        records,
        copy_indices,
        rounding,
        traces,
    )
    return compiled(request, hooks, check, max_ulp, verify_each)


def check_arguments(subject: str, module: object, hooks: object) -> None:
    """Check that arguments are a module and hooks.

    Raises:
        CompileError: if they are not.
    """
    if not isinstance(module, Module):
        fact, hint = "not a module", "from_onnx, from_torch and from_mlir read models"
        got = type(module).__name__
        text = explain(subject, fact, expected="stepwell.Module", got=got, hint=hint)
        raise CompileError(text)
    if not isinstance(hooks, Sequence):
        expected, got = "a sequence of stepwell.PassHook", type(hooks).__name__
        raise CompileError(explain(subject, "wrong hooks", expected=expected, got=got))
    for hook in hooks:
        # Not imported without hooks, as a hit of the cache takes less.
        from ..core.ir.context import PassHook

        if not isinstance(hook, PassHook):
            got = type(hook).__name__
            error = explain(subject, "not a hook", expected="stepwell.PassHook", got=got)
            raise CompileError(error)


def compiled(
    request: Request,
    hooks: Sequence[PassHook] = (),
    check: bool | Sequence[object] = False,
    max_ulp: float | None = None,
    verify_each: bool = False,
) -> Executable:
    """The program of a request, compiled or from the cache; see `compile`.

    Raises:
        CompileError, InputError, InternalError, TargetError: see `compile`.
    """
    # Hooks see the passes run.
    plain = check is False and max_ulp is None and verify_each is False and not len(hooks)
    place = place_of(request) if plain else None
    begun, name = time.perf_counter(), request.module.name
    with without_collector():
        if place is not None and (known := place.program()) is not None:
            _LOG.info("%s: from the cache in %.3f s", name, time.perf_counter() - begun)
            return known
        from ..backends.llvm.machine import runs_here
        from ..diagnosis.inspection import inspected
        from ..diagnosis.reproducer import Reproducing
        from ..driver.compilation import Compilation
        from ..runtime.lowered import elsewhere

        found = Compilation.of(request)
        checker = _checker(found, check, max_ulp)
        # The checker comes first, and so runs last after a pass: other hooks do not measure it.
        observers = (*checker, *hooks, Reproducing())
        usual = request.pipeline is None and not checker
        verified = "pass" if verify_each else "kernels" if usual else "stage"
        found = replace(found, observers=observers, verify=verified)
        if not runs_here(found.target):
            place, found = None, replace(found, code=elsewhere)
        if place is None:
            exe, _ = found.executable(inspected, restored)
        else:
            exe = place.compiled(found)
        _LOG.info("%s: compiled in %.3f s", name, time.perf_counter() - begun)
        return exe


def _checker(
    compilation: Compilation, check: bool | Sequence[object], max_ulp: float | None
) -> Sequence[Observer]:
    """What checks the results of passes, if requested.

    Raises:
        CompileError: if the limit is invalid, or given without a check.
        InputError: if the inputs do not fit.
        MiscompilationError: if a pass changes results of a program with smaller sizes.
    """
    if isinstance(check, bool) and not check:
        if max_ulp is not None:
            raise CompileError(explain("compile", "max_ulp without check", expected="check=True"))
        return ()
    if not isinstance(check, bool | Sequence):
        expected, got = "True, False, or inputs", type(check).__name__
        raise CompileError(explain("compile", "wrong check", expected=expected, got=got))
    if max_ulp is not None and not max_ulp >= 0:
        raise CompileError(explain("compile", "wrong max_ulp", expected="0 or more", got=max_ulp))
    from ..diagnosis.checks import checker_of

    return (checker_of(compilation, None if isinstance(check, bool) else check, max_ulp),)
