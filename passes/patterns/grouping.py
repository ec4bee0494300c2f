"""Grouping: each match of a pattern becomes a primitive function, one kernel."""

from __future__ import annotations

import re
from collections.abc import Mapping

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from ...core.errors import CompileError, explain
from ...core.ir.context import decide
from ...core.ir.walks import blocks_in
from ...core.patterns.matching import described
from ...core.patterns.pattern import Match, Pattern
from ...dialects.graph.attrs import PRIMITIVE
from ...dialects.graph.demands import size_results
from ...dialects.graph.interfaces import GraphOp
from ...dialects.graph.nests.recording import Recorder
from ...dialects.graph.sizes.shapes import SymbolicShapes
from ..graph.fusion.outlining import Outliner, has_kernel
from .cutting import KernelPart, parts


def group_module(ctx: Context, op: ModuleOp, table: Mapping[str, Pattern]) -> int:
    """Outline each match of a pattern in place, as a function of the pattern's name.

    Matches of the same structure use one function. Earlier patterns take precedence, and
    each pattern matches later operators first. Functions that are already primitive are
    not changed.

    Args:
        ctx: the context of the pass.
        op: the module.
        table: patterns by the names of their functions.

    Returns:
        The number of groups.

    Raises:
        CompileError: if a name is invalid, or a matched operator cannot be in a kernel.
    """
    for name, pattern in table.items():
        if not isinstance(pattern, Pattern):
            got = type(pattern).__name__
            raise CompileError(
                explain(f'group "{name}"', "no pattern", expected="a pattern", got=got)
            )
        if not re.fullmatch(r"[A-Za-z_][\w$.]*", name):
            expected = "letters, digits and _"
            raise CompileError(explain(f'group "{name}"', "bad function name", expected=expected))
    outliner, count = Outliner(op), 0
    functions = [f for f in op.walk() if isinstance(f, func.FuncOp)]
    for function in functions:
        if PRIMITIVE in function.attributes or len(function.body.blocks) != 1:
            continue
        shapes, recorder = SymbolicShapes(function), Recorder()
        for name, pattern in table.items():
            for last in reversed([op for block in blocks_in(function) for op in block.ops]):
                # Operators outlined since are no longer in a block.
                match = pattern.match(last) if last.parent is not None else None
                if match is not None:
                    ops = _operators(match, name)
                    kept = {*match.roots, *(size for op in ops for size in size_results(op))}
                    results = [r for op in ops for r in op.results if r in kept]
                    for part in parts(ops, results, shapes, recorder):
                        _outline(ctx, outliner, match, part, name)
                    count += 1
    return count


def _operators(match: Match, name: str) -> list[GraphOp]:
    """The operators of a match.

    Raises:
        CompileError: if one of them cannot be in a kernel.
    """
    for op in match.ops:
        if not has_kernel(op):
            fact = f"{described(op)} cannot be in a kernel"
            hint = "it does not define its value at an index"
            raise CompileError(explain(f'group "{name}"', fact, hint=hint))
    return [op for op in match.ops if has_kernel(op)]


def _outline(
    ctx: Context, outliner: Outliner, match: Match, planned: KernelPart, name: str
) -> None:
    """Move the operators of one kernel into a function."""
    function = outliner.outline(planned.ops, planned.results, name)
    what = "one kernel for " + ", ".join(op.name for op in planned.ops)
    why = f'pattern "{match.pattern.name}" matches {match.origin}'
    decide(ctx, f"@{function.sym_name.data}", what, why)
    if planned.why is not None:
        what = f"the rest of what the pattern matches is not in @{function.sym_name.data}"
        decide(ctx, f"@{function.sym_name.data}", what, planned.why, kind="missed")
