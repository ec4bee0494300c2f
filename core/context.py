"""The context in which passes of this project run: xDSL's, with weights, target and a log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation

from .provenance import names, origin
from .target import Target
from .weights import WeightStore


@dataclass(frozen=True)
class Decision:
    """Something a pass decided: about what, what was done, why, and at which cost.

    `cost` is in the unit that its text names, such as ``"2.4 MFLOP"``. `nodes` are the nodes of
    the model that it is about, `stage` and `pass_name` where it was taken ("" where passes run
    outside of a pipeline, or outside of the staircase).
    """

    subject: str
    what: str
    why: str
    cost: str | None = None
    nodes: tuple[str, ...] = ()
    stage: str = ""
    pass_name: str = ""

    def __str__(self) -> str:
        cost = f" [{self.cost}]" if self.cost else ""
        return f"{self.subject}: {self.what}, because {self.why}{cost}"


@dataclass(frozen=True)
class Change:
    """What a pass did to the results of a program.

    `ulp` is the largest difference of an element, in units in the last place of the largest
    element of its result; `elements` is how many of all are no longer the same bits. `how` says
    what such a difference comes from: "approximation" where functions were replaced by
    arithmetic, "fused multiply-add" where products and sums were joined, else "reassociation";
    "" where there is none.
    """

    stage: str
    pass_name: str
    ulp: float
    elements: int
    how: str

    def __str__(self) -> str:
        if not self.elements:
            return f"{self.pass_name}: same bits"
        return f"{self.pass_name}: {self.ulp:.3g} ulp, {self.elements} elements, {self.how}"


class PassHook(Protocol):
    """Is told of each pass that a pipeline runs; what it raises ends the pipeline."""

    def before_pass(self, ctx: CompilerContext, op: ModuleOp) -> None:
        """Look at a module that the pass `ctx.pass_name` of `ctx.stage` is about to change."""
        ...

    def after_pass(self, ctx: CompilerContext, op: ModuleOp) -> None:
        """Look at what became of it."""
        ...


@dataclass
class CompilerContext(Context):
    """An xDSL context together with what a compilation knows beside the IR."""

    weights: WeightStore = field(default_factory=WeightStore)
    target: Target | None = None
    decisions: list[Decision] = field(default_factory=list)
    legalize: Mapping[str, Any] = field(default_factory=dict)
    """What `graph-legalize` does with operators, by name, before what it does by itself."""
    stage: str = ""
    pass_name: str = ""
    hooks: list[PassHook] = field(default_factory=list)


def target_of(ctx: Context) -> Target:
    """The target of a context; this machine for a context that names none."""
    from .target import host

    target = getattr(ctx, "target", None)
    return target if isinstance(target, Target) else host()


def decide(
    ctx: Context,
    subject: str | Operation | Sequence[Operation],
    what: str,
    why: str,
    cost: str | None = None,
) -> None:
    """Note a decision in the context; a plain xDSL context keeps none.

    Args:
        ctx: where it is kept.
        subject: what it is about. Operations go by the names of their nodes, a function or
            kernel by its own.
        what: what was done, or was not.
        why: the reason.
        cost: what it costs or saves, with the unit.
    """
    if not isinstance(ctx, CompilerContext):
        return
    if isinstance(subject, Operation):
        subject = [subject]
    about = () if isinstance(subject, str) else tuple(subject)
    words = subject if isinstance(subject, str) else ", ".join(dict.fromkeys(map(_called, about)))
    nodes = tuple(dict.fromkeys(name for op in about for name in names(op)))
    ctx.decisions.append(Decision(words, what, why, cost, nodes, ctx.stage, ctx.pass_name))


def _called(op: Operation) -> str:
    """What a decision calls an operation."""
    symbol = op.properties.get("sym_name")
    if isinstance(symbol, StringAttr):
        return f"@{symbol.data}"
    return origin(op) or op.name
