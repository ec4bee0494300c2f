"""Running passes: each with its hooks, its verification, and uniform errors."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import DiagnosticException

from ..errors import CompileError, StepwellError, first_line
from ..ir.context import CompilerContext, PassHook, decide
from ..ir.dominance import verify_dominance
from ..ir.refusal import FaultyOperator
from ..ir.walks import operations_in
from ..logs import logger
from ..progress import report
from .fixpoint import bounded_rewrites
from .pass_text import pass_text
from .passes_of_xdsl import failures_worded

OPEN_STAGES = ("optimized", "kernels")
"""The stages whose operations may come from rules, operators and kernels of plug-ins and users.
`fused` only moves operations into functions; after `kernels` only schedules and conversions run,
and LLVM verifies the end result."""

_LOG = logger("passes")

_KNOWN = (__name__.partition(".")[0], "xdsl")
"""The packages whose operators and rules are tested with this one."""


def run_steps(
    ctx: CompilerContext, op: ModuleOp, steps: Sequence[ModulePass], stage: str = ""
) -> None:
    """Run passes on a module in place; `ctx.verify` determines when it is verified.

    Decisions of the passes are recorded with the names of pass and stage. Hooks are notified in
    order before a pass and in reverse order after it: the last one is innermost.

    Raises:
        CompileError: if a pass refuses the module, or its result does not verify; the message
            names the pass and the operation.
    """
    ctx.stage, ctx.pending = stage, [*steps, *ctx.pending]
    is_open = ctx.verify == "kernels" and stage in OPEN_STAGES and is_extended(ctx, op)
    for step in steps:
        ctx.step, ctx.pass_name = ctx.pending.pop(0), step.name
        # The numbers of passes before and after it.
        done, left = sum(map(len, ctx.applied.values())), len(ctx.pending) + 1
        name = ctx.stage or "passes"
        report(f"{name}: {ctx.pass_name}", done, done + left)
        if _LOG.isEnabledFor(logging.DEBUG):
            _LOG.debug("%s: %s", name, pass_text(step), extra={"done": done, "left": left})
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
            # Any exception propagates: hooks may first look at the module.
            _report_failure(ctx, op, error)
            raise
        except BaseException:
            # An interrupt is not a failure of the pass.
            _drop(ctx, op, ctx.hooks)
            raise
    if ctx.verify == "stage" or is_open:
        try:
            _verify(ctx, op)
        except CompileError as error:
            _report_failure(ctx, op, error)
            raise


def is_extended(ctx: CompilerContext, op: ModuleOp) -> bool:
    """Whether plug-ins are installed, or a module has operators or rules of other packages."""
    from ..plugins import has_plugins

    return bool(ctx.legalize or has_plugins()) or any(
        type(inner).__module__.partition(".")[0] not in _KNOWN for inner in operations_in(op)
    )


def _begins(ctx: CompilerContext, op: ModuleOp) -> bool:
    """Notify hooks that a pass begins; return False if one of them skips it."""
    notified: list[PassHook] = []
    for hook in ctx.hooks:
        try:
            begins = hook.before_pass(ctx, op) is not False
        except BaseException:
            _drop(ctx, op, notified)
            raise
        if not begins:
            _drop(ctx, op, notified)
            decide(ctx, "pipeline", "skips the pass", "a hook requested it", kind="missed")
            return False
        notified.append(hook)
    return True


def _drop(ctx: CompilerContext, op: ModuleOp, hooks: Sequence[PassHook]) -> None:
    for hook in reversed(hooks):
        hook.pass_dropped(ctx, op)


def _apply(ctx: CompilerContext, op: ModuleOp, step: ModulePass) -> None:
    try:
        with failures_worded(ctx, op, step), bounded_rewrites(step.name):
            step.apply(ctx, op)
    except StepwellError:
        raise
    except DiagnosticException as error:
        message = first_line(error)
        named = isinstance(error, FaultyOperator) or message.startswith(f"{step.name}: ")
        raise CompileError(message if named else f"{step.name}: {message}") from error


def _verify(ctx: CompilerContext, op: ModuleOp) -> None:
    try:
        with ctx.phase("verify"):
            if ctx.verify == "pass":
                # At each stage this would take 1/40 of the compile time.
                verify_dominance(op)
            op.verify()
    except DiagnosticException as error:
        subject = ctx.pass_name or "module"
        if ctx.verify != "pass" and len(ctx.applied.get(ctx.stage, ())) > 1:
            subject = ",".join(map(pass_text, ctx.applied[ctx.stage]))
        raise CompileError(f"{subject}: result does not verify: {first_line(error)}") from error


def _report_failure(ctx: CompilerContext, op: ModuleOp, error: Exception) -> None:
    for hook in reversed(ctx.hooks):
        try:
            hook.pass_failed(ctx, op, error)
        except Exception as other:
            # Users see the first error.
            error.add_note(f"{type(hook).__name__} failed as well: {other}")
