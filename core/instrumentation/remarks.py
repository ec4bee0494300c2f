"""Decisions of passes as remarks: passed, missed, or analysis."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from ..ir.context import CompilerContext, PassHook
from ..pipelines.decisions import Decision
from ..pipelines.explanation import record

KINDS = ("passed", "missed", "analysis")


@dataclass(frozen=True)
class Remark:
    """A decision, reported as it was taken."""

    decision: Decision

    def __str__(self) -> str:
        decision = self.decision
        where = f"{decision.places[0]}: " if decision.places else ""
        passed = f"{decision.pass_name}: " if decision.pass_name else ""
        return f"{where}remark ({decision.kind}): {passed}{decision}"

    def record(self) -> dict[str, Any]:
        """The remark as JSON: the decision as `Executable.explain` gives it."""
        return {"report": "remark"} | record(self.decision)


class Remarks(PassHook):
    """Reports the decisions of each pass after it has ended, successfully or not.

    Args:
        report: called with each selected decision.
        kinds: the kinds to report: "passed", "missed" and "analysis"; see `Decision`.
        only: a pattern to search in the name of the pass, the subject and the nodes; None for all.
    """

    def __init__(
        self,
        report: Callable[[Decision], None],
        kinds: Collection[str] = KINDS,
        only: re.Pattern[str] | None = None,
    ) -> None:
        self._report, self._kinds, self._only = report, kinds, only
        self._known = 0

    def before_pass(self, ctx: CompilerContext, op: ModuleOp) -> None:
        """Record the decisions so far."""
        self._known = len(ctx.decisions)

    def after_pass(self, ctx: CompilerContext, op: ModuleOp) -> None:
        """Report new decisions."""
        for decision in ctx.decisions[self._known :]:
            texts = (decision.pass_name, decision.subject, *decision.nodes)
            wanted = self._only is None or any(map(self._only.search, texts))
            if decision.kind in self._kinds and wanted:
                self._report(decision)
        self._known = len(ctx.decisions)

    def pass_failed(self, ctx: CompilerContext, op: ModuleOp, error: Exception) -> None:
        """Report the decisions before the failure."""
        self.after_pass(ctx, op)
