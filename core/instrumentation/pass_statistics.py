"""Statistics of passes: their own counters, and those common to all passes."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from ..ir.context import CompilerContext, PassHook
from ..pipelines.actions import ActionCounter, counting


@dataclass(frozen=True)
class StatisticsReport:
    """The nonzero counters of passes, by stage and pass in the order of runs."""

    counters: dict[tuple[str, str], Counter[str]]

    def __str__(self) -> str:
        lines = ["statistics"]
        for (stage, name), counter in self.counters.items():
            lines.append(f"{name}{f' (stage {stage})' if stage else ''}")
            lines += [f"  {number:8} {what}" for what, number in counter.items()]
        return "\n".join(lines)

    def record(self) -> dict[str, Any]:
        """The report as JSON."""
        passes = [
            {"stage": stage or None, "pass": name, "counters": dict(counter)}
            for (stage, name), counter in self.counters.items()
        ]
        return {"report": "statistics", "passes": passes}


class PassStatistics(PassHook):
    """Counts the operations that passes create and erase, their decisions, and uses of patterns.

    Actions of passes without patterns count as uses; see `core.pipelines.actions`. The counters
    that passes keep with `core.ir.context.count` are added.
    """

    def __init__(self) -> None:
        self._counters: dict[tuple[str, str], Counter[str]] = {}
        self._before: set[Operation] = set()
        self._decisions, self._declared = 0, Counter[tuple[str, str, str]]()
        self._actions, self._counting = ActionCounter(), ExitStack()

    def report(self) -> StatisticsReport:
        """The counters so far."""
        return StatisticsReport(self._counters)

    def before_pass(self, ctx: CompilerContext, op: ModuleOp) -> None:
        """Record the operations, and start counting patterns."""
        self._before, self._decisions = set(op.walk()), len(ctx.decisions)
        self._declared = Counter(ctx.statistics)
        self._actions = self._counting.enter_context(counting())

    def pass_dropped(self, ctx: CompilerContext, op: ModuleOp) -> None:
        """Stop counting, and discard the counts."""
        self._counting.close()

    def after_pass(self, ctx: CompilerContext, op: ModuleOp) -> None:
        """Count created and erased operations."""
        self._counting.close()
        counter, after = Counter[str](), set(op.walk())
        counter["operations created"] = len(after - self._before)
        counter["operations erased"] = len(self._before - after)
        for decision in ctx.decisions[self._decisions :]:
            counter[f"decisions: {decision.kind}"] += 1
        for (_, _, what), number in (ctx.statistics - self._declared).items():
            counter[what] += number
        for name, number in Counter(action.name for action in self._actions.taken).items():
            counter[f"action {name}"] += number
        if +counter:
            self._counters.setdefault((ctx.stage, ctx.pass_name), Counter()).update(+counter)
        self._before = set()

    def pass_failed(self, ctx: CompilerContext, op: ModuleOp, error: Exception) -> None:
        """Stop counting."""
        self._counting.close()
