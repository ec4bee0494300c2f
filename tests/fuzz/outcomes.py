"""What becomes of a random module."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from stepwell.core.ir.context import CompilerContext, PassHook


class DifferenceError(Exception):
    """A program gives other results than the reference, or an error that is not the caller's."""


@dataclass
class Counts(PassHook):
    """A hook that skips a pass, and counts those that run, and operations by name.

    Of the operations of one name, those of the module with the most of them count.
    """

    skipped: str = ""
    passes: Counter[str] = field(default_factory=Counter)
    operations: Counter[str] = field(default_factory=Counter)

    def occur(self, op: Operation) -> None:
        """Count the operations inside of a module or kernel, and itself."""
        self.operations |= Counter(inner.name for inner in op.walk())

    def before_pass(self, ctx: CompilerContext, op: ModuleOp) -> bool:
        """Whether the pass runs."""
        return ctx.pass_name != self.skipped

    def after_pass(self, ctx: CompilerContext, op: ModuleOp) -> None:
        """Count the pass, and the operations that it leaves."""
        self.passes[ctx.pass_name] += 1
        self.occur(op)


@dataclass(frozen=True)
class Outcome:
    """What became of a program: `same`, `refused` by the compiler, or `unmeasured`."""

    kind: str
    passes: Counter[str]
    operations: Counter[str]
    refusal: str = ""
    """Why the compiler refuses it."""
