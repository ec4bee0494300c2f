"""Running passes: each with its hooks, its verification, and one wording of what goes wrong."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import DiagnosticException

from .context import CompilerContext, PassHook, decide
from .dominance import verify_dominance
from .errors import CompileError, StepwellError
from .fixpoint import bounded_rewrites

OPEN_STAGES = ("optimized", "fused", "kernels")
"""The stages whose operations come from outside as well: from the rules, operators and kernels of
plug-ins and users. What is below them is made of these by schedules and conversions alone, and
LLVM verifies what they end in."""


def run_steps(
    ctx: CompilerContext, op: ModuleOp, steps: Sequence[ModulePass], stage: str = ""
) -> None:
    """Run passes on a module in place, verifying it as often as the context says.

    Decisions of the passes are noted with the name of the pass and that of the stage. Hooks are
    told in their order before a pass and in the reverse one after it: the last is next to it.

    Raises:
        CompileError: if a pass refuses, or leaves what does not verify; its message names the
            pass and the operation.
    """
    ctx.stage, ctx.pending = stage, [*steps, *ctx.pending]
    for step in steps:
        ctx.step, ctx.pass_name = ctx.pending.pop(0), step.name
        if not _begins(ctx, op):
            continue
        ctx.applied.setdefault(stage, []).append(step)
        try:
            _apply(ctx, op, step)
            if ctx.verify == "pass":
                _verify(ctx, op)
            for hook in reversed(ctx.hooks):
                hook.after_pass(ctx, op)
        except Exception as error:
            # Whatever it is, it goes on: hooks may tell what the module looks like.
            _tell_failure(ctx, op, error)
            raise
        except BaseException:
            # An interrupt says nothing of the pass.
            _drop(ctx, op, ctx.hooks)
            raise
    if ctx.verify == "stage" or (ctx.verify == "kernels" and stage in OPEN_STAGES):
        try:
            _verify(ctx, op)
        except CompileError as error:
            _tell_failure(ctx, op, error)
            raise


def _begins(ctx: CompilerContext, op: ModuleOp) -> bool:
    """Tell hooks that a pass begins; False if one of them leaves it out."""
    told: list[PassHook] = []
    for hook in ctx.hooks:
        try:
            begins = hook.before_pass(ctx, op) is not False
        except BaseException:
            _drop(ctx, op, told)
            raise
        if not begins:
            _drop(ctx, op, told)
            decide(ctx, "pipeline", "leaves the pass out", "a hook says so", kind="missed")
            return False
        told.append(hook)
    return True


def _drop(ctx: CompilerContext, op: ModuleOp, hooks: Sequence[PassHook]) -> None:
    for hook in reversed(hooks):
        hook.pass_dropped(ctx, op)


def _apply(ctx: CompilerContext, op: ModuleOp, step: ModulePass) -> None:
    try:
        with bounded_rewrites(step.name):
            step.apply(ctx, op)
    except StepwellError:
        raise
    except DiagnosticException as error:
        message = first_line(error)
        named = message.startswith(f"{step.name}: ")
        raise CompileError(message if named else f"{step.name}: {message}") from error


def _verify(ctx: CompilerContext, op: ModuleOp) -> None:
    try:
        with ctx.phase("verify"):
            if ctx.verify == "pass":
                # At each stage of a compilation it would be a fortieth of its time.
                verify_dominance(op)
            op.verify()
    except DiagnosticException as error:
        subject = ctx.pass_name or "module"
        if ctx.verify != "pass" and len(ctx.applied.get(ctx.stage, ())) > 1:
            subject = ",".join(map(str, ctx.applied[ctx.stage]))
        raise CompileError(f"{subject}: result does not verify: {first_line(error)}") from error


def _tell_failure(ctx: CompilerContext, op: ModuleOp, error: Exception) -> None:
    for hook in reversed(ctx.hooks):
        try:
            hook.pass_failed(ctx, op, error)
        except Exception as other:
            # What users are told is what went wrong first.
            error.add_note(f"{type(hook).__name__} failed as well: {other}")


def first_line(error: Exception) -> str:
    """The first line of a message that says something; those of xDSL show the IR below it."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
