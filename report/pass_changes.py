"""What each pass changed, as diffs of functions."""

from __future__ import annotations

import time

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from ..core.instrumentation.ir_text import changed, difference, window
from ..core.ir.context import CompilerContext, PassHook
from .document import PassDiff, PassRun
from .marking import Printed, printed, symbol

LONGEST = 400
"""Changes that extend over more lines than this are not compared line by line."""

_BUDGET = 4_000_000
"""The number of characters of all diffs: after them, lines are only counted."""


class PassChanges(PassHook):
    """Records which functions each pass changed, and how."""

    def __init__(self) -> None:
        self.runs: list[PassRun] = []
        self.printed: dict[Operation, Printed] = {}
        """The functions after the last pass."""
        self._texts: dict[str, str] | None = None
        self._begun = 0.0
        self._left = _BUDGET

    def before_pass(self, ctx: CompilerContext, op: ModuleOp) -> None:
        """Keep the texts of functions, unless they are those after the pass before."""
        if self._texts is None:
            self._print(op)
        self._begun = time.perf_counter()

    def pass_dropped(self, ctx: CompilerContext, op: ModuleOp) -> None:
        """Forget the texts: somebody else may change the module."""
        self._texts = None

    def after_pass(self, ctx: CompilerContext, op: ModuleOp) -> None:
        """Compare the texts."""
        seconds = time.perf_counter() - self._begun
        before = self._texts or {}
        after = self._print(op)
        found = [self._difference(n, before.get(n), after.get(n)) for n in changed(before, after)]
        self.runs.append(PassRun(ctx.stage, ctx.pass_name, seconds, tuple(found)))

    def _print(self, op: ModuleOp) -> dict[str, str]:
        self.printed = {function: printed(function) for function in op.ops}
        self._texts = {symbol(function): one.text for function, one in self.printed.items()}
        return self._texts

    def _difference(self, name: str, before: str | None, after: str | None) -> PassDiff:
        old, new = ("" if text is None else text for text in (before, after))
        spans = window(old.splitlines(), new.splitlines())
        removed, added = (span.stop - span.start for span in spans)
        if max(removed, added) > LONGEST:
            return PassDiff(name, removed, added, "")
        text = difference(name, before, after)
        lines = text.splitlines()[2:]
        removed, added = (sum(line.startswith(sign) for line in lines) for sign in "-+")
        self._left -= len(text)
        return PassDiff(name, removed, added, text if self._left > 0 else "")
