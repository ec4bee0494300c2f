"""`compile`: lower a module stage by stage to an `Executable`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .compilation import Compilation
from .core.collector import without_collector
from .core.context import PassHook
from .core.errors import CompileError, explain
from .core.module import Module
from .core.target import Target, named
from .diagnosis.inspection import Inspection
from .diagnosis.reproducer import Reproducing
from .loading import restored
from .runtime.executable import Executable

if TYPE_CHECKING:
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
    copy_indices: bool = False,
    rounding: str | None = None,
) -> Executable:
    """Compile a module to machine code.

    Args:
        module: the module, from a frontend; it is not changed.
        target: "host", the name of a processor (see `core.target`), or a `Target`.
        threads: the maximum number of threads of a call; None for the value of the environment
            variable `STEPWELL_NUM_THREADS`, else the number of cores.
        opt_level: 0 (a scalar kernel for every operator) to 3.
        pipeline: the passes to run instead of those for `opt_level` and `threads`: a text as
            `stepwell pipeline` prints it, or the text of each stage by its name. See
            `docs/pipeline.md`.
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
            inside a normalisation); "kept": not at all; "free": freely everywhere. None for the
            attribute `graph.rounding` of the module. See `docs/canonical-forms.md`.

    Raises:
        CompileError: if the module is invalid or contains something that cannot be compiled, or
            if the pipeline is malformed, stops short, or does not use `legalize`.
        InternalError: if a pass crashes, or produces invalid IR; the error names a reproducer file.
            See `docs/debugging.md`.
        TargetError: if the target is unknown, this machine cannot run code for it
            (`stepwell compile --emit asm` still prints the code), or `STEPWELL_NUM_THREADS` is not
            a number.
    """
    if not isinstance(module, Module):
        got = type(module).__name__
        raise CompileError(explain("compile", "not a module", expected="stepwell.Module", got=got))
    from .backends.llvm.machine import check_runs_here

    chosen = target if isinstance(target, Target) else named(target)
    check_runs_here(chosen)
    with without_collector():
        found = Compilation.of(
            module,
            chosen,
            threads,
            opt_level,
            pipeline,
            legalize,
            records,
            copy_indices=copy_indices,
            rounding=rounding,
        )
        # The checker comes first, and so runs last after a pass: other hooks do not measure it.
        checker = _checker(found.module, check, max_ulp)
        observers = (*checker, *_checked_hooks(hooks), Reproducing())
        usual = pipeline is None and not checker
        verified = "pass" if verify_each else "kernels" if usual else "stage"
        return replace(found, observers=observers, verify=verified).executable(
            partial(Inspection, restored=restored)
        )


def _checker(
    module: Module, check: bool | Sequence[object], max_ulp: float | None
) -> Sequence[Checker]:
    """The checker that runs the module after each pass, if requested.

    Raises:
        CompileError: if the limit is invalid, or given without a check.
        InputError: if the inputs do not fit.
    """
    if isinstance(check, bool) and not check:
        if max_ulp is not None:
            raise CompileError(explain("compile", "max_ulp without check", expected="check=True"))
        return ()
    if max_ulp is not None and not max_ulp >= 0:
        raise CompileError(explain("compile", "wrong max_ulp", expected="0 or more", got=max_ulp))
    from .diagnosis.checking import Checker

    return (Checker(module, None if isinstance(check, bool) else check, max_ulp),)


def _checked_hooks(hooks: Sequence[PassHook]) -> Sequence[PassHook]:
    """The hooks, after a check of their types.

    Raises:
        CompileError: if one is not a hook.
    """
    for hook in hooks:
        if not isinstance(hook, PassHook):
            got = type(hook).__name__
            error = explain("compile", "not a hook", expected="stepwell.PassHook", got=got)
            raise CompileError(error)
    return hooks
