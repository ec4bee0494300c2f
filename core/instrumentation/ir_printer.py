"""Printing the IR before and after passes."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Literal

from xdsl.dialects.builtin import ModuleOp

from ..ir.context import CompilerContext, PassHook
from ..ir.printing import module_text
from ..pipelines.pass_text import pass_text
from .ir_text import changed, difference, text_of_wrong, texts_by_symbol
from .report import Reporter


@dataclass(frozen=True)
class Dump:
    """The IR before or after a pass; `elided` if constants are elided from the text.

    With `diff`, `text` is a diff of the functions that the pass changed.
    """

    when: Literal["before", "after", "failed"]
    step: str
    stage: str
    text: str
    diff: bool
    elided: bool

    def __str__(self) -> str:
        when = {"before": "Before", "after": "After", "failed": "After failure of"}[self.when]
        head = f"IR Diff {when}" if self.diff else f"IR Dump {when}"
        notes = [f"stage {self.stage}"] if self.stage else []
        notes += ["constants elided"] if self.elided else []
        note = f" ({', '.join(notes)})" if notes else ""
        return f"// -----// {head} {self.step}{note} //----- //\n{self.text.rstrip()}\n"

    def record(self) -> dict[str, Any]:
        """The dump as JSON."""
        return {
            "report": "ir",
            "when": self.when,
            "stage": self.stage or None,
            "pass": self.step,
            "diff": self.diff,
            "elided": self.elided,
            "text": self.text,
        }


class IRPrinter(PassHook):
    """Prints a module before and after passes.

    Args:
        report: called with each `Dump`.
        before: the passes before which to print, by name, or "all".
        after: the passes after which to print, by name, or "all".
        after_change: whether to print only after passes that change the module.
        after_failure: whether to print when a pass fails.
        diff: whether to print a diff of the changed functions after a pass.
        elide: constants of more elements are elided; None prints all.
    """

    def __init__(
        self,
        report: Reporter,
        *,
        before: Collection[str] | Literal["all"] = (),
        after: Collection[str] | Literal["all"] = (),
        after_change: bool = False,
        after_failure: bool = False,
        diff: bool = False,
        elide: int | None = None,
    ) -> None:
        self._report, self._before, self._after = report, before, after
        self._after_change, self._after_failure = after_change, after_failure
        self._diff, self._elide = diff, elide
        self._compares = diff or after_change
        self._texts: dict[str, str] = {}
        self._shown: dict[str, str] = {}

    def before_pass(self, ctx: CompilerContext, op: ModuleOp) -> None:
        """Print the module, and keep its text for the comparison."""
        if _is_in(ctx, self._before):
            self._print(ctx, "before", self._text(op))
        if self._compares and _is_in(ctx, self._after):
            self._texts = texts_by_symbol(op)
            self._shown = texts_by_symbol(op, self._elide) if self._diff else {}

    def after_pass(self, ctx: CompilerContext, op: ModuleOp) -> None:
        """Print the module, or its changes."""
        if not _is_in(ctx, self._after):
            return
        names = changed(self._texts, texts_by_symbol(op)) if self._compares else []
        if self._compares and not names:
            return
        if not self._diff:
            self._print(ctx, "after", self._text(op))
            return
        shown = texts_by_symbol(op, self._elide)
        parts = [difference(n, self._shown.get(n), shown.get(n)) for n in names]
        self._print(ctx, "after", "\n".join(filter(None, parts)), diff=True)

    def pass_failed(self, ctx: CompilerContext, op: ModuleOp, error: Exception) -> None:
        """Print the module as the failed pass left it."""
        if self._after_failure:
            self._print(ctx, "failed", text_of_wrong(op, self._elide))

    def _text(self, op: ModuleOp) -> str:
        return module_text(op, elide=self._elide)

    def _print(
        self,
        ctx: CompilerContext,
        when: Literal["before", "after", "failed"],
        text: str,
        diff: bool = False,
    ) -> None:
        elided = "dense_resource<__elided__>" in text
        assert ctx.step is not None
        self._report(Dump(when, pass_text(ctx.step), ctx.stage, text, diff, elided))


def _is_in(ctx: CompilerContext, names: Collection[str]) -> bool:
    """Whether the current pass is among `names`, also if nested in an operation."""
    if names == "all":
        return True
    nested = getattr(ctx.step, "step", None)
    return ctx.pass_name in names or getattr(nested, "name", None) in names
