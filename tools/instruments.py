"""Reports of `stepwell-opt` and `stepwell compile` about passes: options, and their hooks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..core.errors import StepwellError, explain
from ..core.instrumentation.report import HookReport, write_json, write_text
from ..core.pipelines.decisions import Decision

if TYPE_CHECKING:
    from ..core.instrumentation.ir_printer import IRPrinter
    from ..core.instrumentation.ir_tree import IRTree
    from ..core.instrumentation.pass_statistics import PassStatistics
    from ..core.instrumentation.pass_timing import PassTiming
    from ..core.instrumentation.remarks import Remarks
    from ..core.ir.context import PassHook

ELIDED_ABOVE = 16
"""By default, constants with more elements are omitted from printed IR."""


def _option(help: str, metavar: str | None = None) -> Any:
    """A field for an option: a switch, or with `metavar` one that has a value."""
    default = False if metavar is None else None
    return field(default=default, metadata={"help": help, "metavar": metavar})


@dataclass(frozen=True)
class InstrumentOptions:
    """Reports about passes: the options of the command line, by name.

    A list is text with commas; None if an option is not given.
    """

    print_ir_before: str | None = _option("print the IR before these", "PASSES")
    print_ir_after: str | None = _option("print the IR after these", "PASSES")
    print_ir_before_all: bool = _option("print the IR before each pass")
    print_ir_after_all: bool = _option("print the IR after each pass")
    print_ir_after_change: bool = _option("print the IR after a pass only if that changed it")
    print_ir_after_failure: bool = _option("print the IR after a pass that fails")
    print_ir_diff: bool = _option("print a diff of the functions that a pass changed instead")
    elide_constants: str | None = _option(
        "omit constants with more elements from printed IR (else 16; none: print all)", "N"
    )
    print_ir_tree_dir: str | None = _option("write the IR after each pass into this folder", "DIR")
    timing: bool = _option("report where the time went")
    statistics: bool = _option("report what each pass counted: patterns, operations, decisions")
    remarks: str | None = _option(
        "report what passes decided, by node: passed, missed, analysis or all", "KINDS"
    )
    remarks_filter: str | None = _option(
        "only remarks whose pass, subject or node this matches", "REGEX"
    )
    json: bool = _option("report all of this as JSON, one object per line")


class Instruments:
    """The hooks that the options need, and their reports at the end.

    Args:
        options: the options of the command line.
        available: returns the names of all passes, if an option names some.
        on_remark: receives the selected decisions, instead of printing them.

    Raises:
        StepwellError: if an option names an unknown pass or kind, or a folder cannot be written.
    """

    def __init__(
        self,
        options: InstrumentOptions,
        available: Callable[[], Iterable[str]],
        on_remark: Callable[[Decision], None] | None = None,
    ) -> None:
        self._options, self._available = options, available
        self.report = write_json if options.json else write_text
        self._on_remark = on_remark
        self._elide = _limit(options.elide_constants)
        # The clock starts here.
        self._timing: PassTiming | None = None
        self._statistics: PassStatistics | None = None
        # Only load what the options need.
        if options.timing:
            from ..core.instrumentation.pass_timing import PassTiming

            self._timing = PassTiming()
        if options.statistics:
            from ..core.instrumentation.pass_statistics import PassStatistics

            self._statistics = PassStatistics()
        self._printer, self._remarks = self._make_printer(), self._make_remarks()
        self._tree = self._make_tree("")

    def hooks(self, part: int | None = None) -> list[PassHook]:
        """The hooks, with the one that measures time innermost.

        Args:
            part: the number of the part, if the input is split.
        """
        if part is not None:
            self._tree = self._make_tree(str(part))
        made = (self._remarks, self._printer, self._tree, self._statistics, self._timing)
        return [hook for hook in made if hook is not None]

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Measure something outside of a compilation."""
        if self._timing is None:
            yield
            return
        from ..core.ir.context import CompilerContext

        with CompilerContext(hooks=[self._timing]).phase(name):
            yield

    def finish(self) -> None:
        """Print the statistics and times."""
        reports: list[HookReport] = []
        if self._statistics is not None:
            reports.append(self._statistics.report())
        if self._timing is not None:
            reports.append(self._timing.report())
        for report in reports:
            self.report(report)

    # Only load what the options need.

    def _make_printer(self) -> IRPrinter | None:
        options = self._options
        before = self._passes("--print-ir-before", options.print_ir_before)
        after = self._passes("--print-ir-after", options.print_ir_after)
        if options.print_ir_before_all:
            before = "all"
        changes = options.print_ir_after_change or options.print_ir_diff
        if options.print_ir_after_all or (changes and not after):
            after = "all"
        if not (before or after or options.print_ir_after_failure):
            return None
        from ..core.instrumentation.ir_printer import IRPrinter

        return IRPrinter(
            self.report,
            before=before,
            after=after,
            after_change=options.print_ir_after_change,
            after_failure=options.print_ir_after_failure,
            diff=options.print_ir_diff,
            elide=self._elide,
        )

    def _make_tree(self, below: str) -> IRTree | None:
        folder = self._options.print_ir_tree_dir
        if folder is None:
            return None
        from ..core.instrumentation.ir_tree import IRTree

        elide = self._elide if self._options.elide_constants else None
        return IRTree(Path(folder, below), elide)

    def _make_remarks(self) -> Remarks | None:
        options = self._options
        if options.remarks is None and options.remarks_filter is None:
            return None
        from ..core.instrumentation.remarks import KINDS, Remark, Remarks

        kinds = _listed(options.remarks) or ["all"]
        if kinds == ["all"]:
            kinds = list(KINDS)
        for kind in kinds:
            if kind not in KINDS:
                expected = ", ".join(KINDS)
                fact = "unknown kind of remarks"
                raise StepwellError(explain("--remarks", fact, expected=expected, got=kind))
        try:
            only = re.compile(options.remarks_filter) if options.remarks_filter else None
        except re.error as error:
            fact = f"{options.remarks_filter!r} is not a regular expression: {error}"
            raise StepwellError(explain("--remarks-filter", fact)) from error
        report = self._on_remark or (lambda decision: self.report(Remark(decision)))
        return Remarks(report, kinds, only)

    def _passes(self, option: str, text: str | None) -> list[str] | Literal["all"]:
        names = _listed(text)
        if names:
            from ..core.pipelines.text import check_known

            check_known(names, set(self._available()), option)
        return names


def _listed(text: str | None) -> list[str]:
    return [part for part in (text or "").replace(" ", "").split(",") if part]


def _limit(text: str | None) -> int | None:
    """The number of elements above which a constant is omitted.

    Raises:
        StepwellError: if the text is not such a number.
    """
    if text is None:
        return ELIDED_ABOVE
    if text == "none":
        return None
    if not text.isdecimal():
        expected = "a number of elements, or none"
        raise StepwellError(
            explain("--elide-constants", "wrong limit", expected=expected, got=text)
        )
    return int(text)
