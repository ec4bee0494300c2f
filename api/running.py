"""`run_passes`: a module after some passes."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.errors import CompileError, explain
from ..core.ir.context import PassHook
from ..core.ir.module import Module
from ..core.pipelines.pass_manager import run_steps
from ..core.pipelines.text import parse_passes
from ..core.registry import make_context
from ..core.registry import passes as available_passes
from ..core.target import Target, named
from ..diagnosis.reproducer import defects_named
from .compiler import check_arguments


def run_passes(
    module: Module,
    passes: str,
    *,
    target: str | Target = "host",
    hooks: Sequence[PassHook] = (),
    verify_each: bool = True,
) -> Module:
    """A module after passes, as `stepwell-opt` runs them.

        fused = sw.run_passes(module, "graph-simplify, graph-fuse-ops{max-ops=2}")
        y = fused.run(x)

    Its `decisions` are those of the passes, too.

    Args:
        module: a module at any stage; it is not changed.
        passes: their names and options, separated by commas; see `docs/pipeline.md`.
        target: the processor that they schedule and lower for; see `compile`.
        hooks: objects that are notified before and after each pass; see `docs/driver.md`.
        verify_each: whether to verify the module after each pass, and not only after the last one.

    Raises:
        CompileError: if the module is invalid, the text is malformed or names what is unknown, or a
            pass refuses the module.
        InternalError: if a pass crashes.
        TargetError: if the target is unknown.
    """
    check_arguments("run_passes", module, hooks)
    if not isinstance(passes, str):
        got = type(passes).__name__
        raise CompileError(explain("run_passes", "passes is not a text", expected="str", got=got))
    steps = parse_passes(passes, available_passes())
    module.verify()
    result = module.clone()
    ctx = make_context(result.weights, named(target))
    ctx.hooks += hooks
    ctx.verify = "pass" if verify_each else "stage"
    with defects_named(ctx):
        run_steps(ctx, result.op, steps)
    result.decisions = (*result.decisions, *ctx.decisions)
    return result
