"""The context in which passes of this project run: xDSL's, with weights, target and a log."""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.context import Context

from .target import Target
from .weights import WeightStore


@dataclass(frozen=True)
class Decision:
    """Something a pass decided: about what, what was done, why, and at which cost.

    `cost` is in the unit that its text names, such as ``"2.4 MFLOP"``.
    """

    subject: str
    what: str
    why: str
    cost: str | None = None

    def __str__(self) -> str:
        cost = f" [{self.cost}]" if self.cost else ""
        return f"{self.subject}: {self.what}, because {self.why}{cost}"


@dataclass
class CompilerContext(Context):
    """An xDSL context together with what a compilation knows beside the IR."""

    weights: WeightStore = field(default_factory=WeightStore)
    target: Target | None = None
    decisions: list[Decision] = field(default_factory=list)


def target_of(ctx: Context) -> Target:
    """The target of a context; this machine for a context that names none."""
    from .target import host

    target = getattr(ctx, "target", None)
    return target if isinstance(target, Target) else host()


def decide(ctx: Context, subject: str, what: str, why: str, cost: str | None = None) -> None:
    """Note a decision in the context; a plain xDSL context keeps none."""
    if isinstance(ctx, CompilerContext):
        ctx.decisions.append(Decision(subject, what, why, cost))
