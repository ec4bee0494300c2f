"""The time of passes, and of phases outside of them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from ..ir.context import CompilerContext, PassHook
from ..pipelines.pass_text import pass_text


@dataclass
class TimingRow:
    """The time of a pass in a stage, or of a phase; `before` and `after` count operations."""

    stage: str
    name: str
    is_pass: bool
    seconds: float = 0.0
    before: int = 0
    after: int = 0


@dataclass(frozen=True)
class _Line:
    """A line of the text; `counts` is whether operations were counted."""

    name: str
    seconds: float
    depth: int = 0
    counts: bool = False
    before: int = 0
    after: int = 0


@dataclass(frozen=True)
class TimingReport:
    """Where the time went, by stage and pass."""

    total: float
    rows: tuple[TimingRow, ...]

    def __str__(self) -> str:
        lines = [f"execution time: {self.total:.4f} s", f"{'time':>11}  {'share':>7}  operations"]
        for line in self._tree():
            share = f"{100 * line.seconds / self.total:.1f} %"
            operations = f"{line.before} -> {line.after}" if line.counts else ""
            name = "  " * line.depth + line.name
            lines.append(f"{line.seconds:9.4f} s  {share:>7}  {operations:16}{name}")
        return "\n".join(lines)

    def record(self) -> dict[str, Any]:
        """The report as JSON."""
        rows = [
            {
                "stage": row.stage or None,
                "pass" if row.is_pass else "phase": row.name,
                "seconds": row.seconds,
                "share": row.seconds / self.total,
            }
            | ({"operations": {"before": row.before, "after": row.after}} if row.is_pass else {})
            for row in self.rows
        ]
        return {"report": "timing", "seconds": self.total, "rows": rows}

    def _tree(self) -> Iterator[_Line]:
        seen: set[str] = set()
        for row in self.rows:
            if not row.is_pass and not row.stage:
                yield _Line(row.name, row.seconds)
            elif row.stage not in seen:
                seen.add(row.stage)
                yield from self._branch(row.stage)
        yield _Line("rest", self.total - sum(row.seconds for row in self.rows))

    def _branch(self, stage: str) -> Iterator[_Line]:
        """The lines of a stage and its passes, or those of passes outside of all stages."""
        rows = [row for row in self.rows if row.stage == stage and (row.is_pass or stage)]
        passes = [row for row in rows if row.is_pass]
        seconds = sum(row.seconds for row in rows)
        before, after = (passes[0].before, passes[-1].after) if passes else (0, 0)
        yield _Line(stage or "passes", seconds, 0, bool(passes), before, after)
        for row in rows:
            yield _Line(row.name, row.seconds, 1, row.is_pass, row.before, row.after)


class PassTiming(PassHook):
    """Measures each pass, its verification, and other phases that the context announces.

    The time of hooks before this one counts as rest. Repeated runs, as by `--split-input-file`, are
    added up.
    """

    def __init__(self) -> None:
        self._start = time.perf_counter()
        self._rows: dict[tuple[object, ...], TimingRow] = {}
        self._open: list[tuple[TimingRow, float]] = []

    def report(self) -> TimingReport:
        """The measurements so far."""
        return TimingReport(time.perf_counter() - self._start, tuple(self._rows.values()))

    def before_pass(self, ctx: CompilerContext, op: ModuleOp) -> None:
        """Start the clock of a pass."""
        assert ctx.step is not None
        row = self._row(
            (ctx.stage, len(ctx.pending)), TimingRow(ctx.stage, pass_text(ctx.step), True)
        )
        row.before += _operations(op)
        self._begin(row)

    def pass_dropped(self, ctx: CompilerContext, op: ModuleOp) -> None:
        """Discard the measurement."""
        self._rows.pop((ctx.stage, len(ctx.pending)), None)
        self._open.pop()

    def after_pass(self, ctx: CompilerContext, op: ModuleOp) -> None:
        """Stop the clock of a pass."""
        self._end().after += _operations(op)

    def pass_failed(self, ctx: CompilerContext, op: ModuleOp, error: Exception) -> None:
        """Stop the clock; it is not running if a hook or the end of a stage failed."""
        if self._open:
            self._end().after += _operations(op)

    def before_phase(self, ctx: CompilerContext, phase: str) -> None:
        """Start the clock of a phase, and pause that of a pass around it."""
        stage = ctx.stage if phase == "verify" else ""
        self._begin(self._row((stage, phase), TimingRow(stage, phase, False)))

    def after_phase(self, ctx: CompilerContext, phase: str) -> None:
        """Stop the clock of a phase."""
        self._end()

    def _row(self, key: tuple[object, ...], row: TimingRow) -> TimingRow:
        return self._rows.setdefault(key, row)

    def _begin(self, row: TimingRow) -> None:
        self._open.append((row, time.perf_counter()))

    def _end(self) -> TimingRow:
        row, since = self._open.pop()
        seconds = time.perf_counter() - since
        row.seconds += seconds
        if self._open:
            self._open[-1][0].seconds -= seconds
        return row


def _operations(op: ModuleOp) -> int:
    return sum(1 for _ in op.walk())
