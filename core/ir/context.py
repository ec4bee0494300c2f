"""The context of the passes of this project: xDSL's, with weights, a target and a log."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from xdsl.context import Context
from xdsl.dialect_interfaces.op_asm import OpAsmDialectInterface
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.ir import Dialect, Operation

from ..algebra.dims import Dim
from ..pipelines.decisions import Decision, RemarkKind
from ..target import Target
from .provenance import names, origin, origin_of, places
from .symbols import symbol_of
from .weights import WeightStore

if TYPE_CHECKING:
    from xdsl.passes import ModulePass


class NamedResources(OpAsmDialectInterface):
    """Resource names as they are written: a name is that of an array in a module's weight store.

    xDSL keeps them in one object for the whole process and renames repeated ones: the second module
    parsed would refer to the weight ``w0_0``.
    """

    def declare_resource(self, key: str) -> str:
        """Record that a resource of this name is used; return the same name."""
        self._blob_storage.setdefault(key, "")
        return key


def builtin_dialect() -> Dialect:
    """The builtin dialect with its own table of resources."""
    return Dialect(
        Builtin.name, list(Builtin.operations), list(Builtin.attributes), [NamedResources()]
    )


Verification = Literal["pass", "stage", "kernels", "never"]
"""When a module is verified: after each pass; at the end of each stage; at the end of the stages
`optimized` and `kernels` if others take part, see `pass_manager.is_extended`; never."""


@dataclass(frozen=True)
class Work:
    """The work of an operator in a kernel.

    Sizes are those of the operands of the kernel: ``x0.1`` is dimension 1 of the first one,
    ``x0.nnz`` the number of its stored entries. `flops` is counted as by `GraphOp.flops`, None if
    unknown; `bytes` counts the operands of the kernel that the operator reads and the results of
    the kernel that it writes. A kernel that users wrote is one operator without `nodes` and
    `bytes`: those are the ones of each call.
    """

    nodes: tuple[str, ...]
    flops: Dim | None
    bytes: Dim | None


@dataclass(frozen=True)
class Change:
    """The effect of a pass on the results of a program.

    `ulp` is the largest difference of an element, in units in the last place of the largest
    element of its result; `elements` counts the elements whose bits changed. `how` names the cause:
    "approximation" if functions were replaced by arithmetic, "fused multiply-add" if products and
    sums were joined, else "reassociation"; "" if nothing changed.
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

    def record(self) -> dict[str, Any]:
        """The change as a JSON object; an infinite `ulp` is null."""
        return {
            "report": "change",
            "stage": self.stage or None,
            "pass": self.pass_name,
            "ulp": self.ulp if math.isfinite(self.ulp) else None,
            "elements": self.elements,
            "how": self.how or None,
        }


class PassHook:
    """Is notified of each pass that a pipeline runs; an exception in it ends the pipeline.

    Subclasses override the notifications that they need. `ctx.step` is the pass with its options,
    `ctx.stage` the stage that it leads to, and `ctx.pending` are the passes after it.
    """

    def before_pass(self, ctx: CompilerContext, op: ModuleOp) -> bool | None:
        """Look at a module that the pass is about to change.

        Return False to skip the pass: hooks after this one are not called.
        """

    def pass_dropped(self, ctx: CompilerContext, op: ModuleOp) -> None:
        """Discard the pass: a later hook skipped it, or it was interrupted."""

    def after_pass(self, ctx: CompilerContext, op: ModuleOp) -> None:
        """Look at the module after the pass."""

    def pass_failed(self, ctx: CompilerContext, op: ModuleOp, error: Exception) -> None:
        """Look at the module after the pass, its verification or a hook raised `error`.

        The error then propagates; an exception of another package is its `__cause__`.
        """

    def before_phase(self, ctx: CompilerContext, phase: str) -> None:
        """Something other than a pass begins: "parse", "verify", "print", ..."""

    def after_phase(self, ctx: CompilerContext, phase: str) -> None:
        """It has ended, successfully or not."""


@dataclass
class CompilerContext(Context):
    """An xDSL context with the state of a compilation apart from the IR."""

    weights: WeightStore = field(default_factory=WeightStore)
    target: Target | None = None
    decisions: list[Decision] = field(default_factory=list)
    legalize: Mapping[str, Any] = field(default_factory=dict)
    """Rules of `graph-legalize` by operator name, tried before its own."""
    schedules: Mapping[str, str] = field(default_factory=dict)
    """The traces that tuning has found, by the structure of the kernel (`structure_of`)."""
    work: dict[str, tuple[Work, ...]] = field(default_factory=dict[str, tuple[Work, ...]])
    """The work of the operators of each kernel made of operators, by kernel name."""
    hooks: list[PassHook] = field(default_factory=list)
    verify: Verification = "stage"
    """When a module is verified."""
    stage: str = ""
    """The stage that passes lead to, "" outside of the staircase."""
    pass_name: str = ""
    """The name of the pass that is running, or that ran last."""
    step: ModulePass | None = None
    """That pass itself, with its options."""
    pending: list[ModulePass] = field(default_factory=list["ModulePass"])
    """The passes that run after it, including those of later stages."""
    applied: dict[str, list[ModulePass]] = field(default_factory=dict[str, list["ModulePass"]])
    """The passes that have run, or started to, by stage."""

    statistics: Counter[tuple[str, str, str]] = field(default_factory=Counter[tuple[str, str, str]])
    """The counters of passes, by stage, pass and name; see `count`."""

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Notify hooks of work outside of passes."""
        for hook in self.hooks:
            hook.before_phase(self, name)
        try:
            yield
        finally:
            for hook in reversed(self.hooks):
                hook.after_phase(self, name)


def known_to(ctx: Context) -> CompilerContext:
    """The context as a `CompilerContext`; an empty one for a plain xDSL context."""
    return ctx if isinstance(ctx, CompilerContext) else CompilerContext()


def index_bits_of(ctx: Context) -> int:
    """The width of an index on the target of a context; 64 without a target."""
    target = known_to(ctx).target
    return 64 if target is None else target.index_bits


def target_of(ctx: Context) -> Target:
    """The target of a context; this machine if it has none."""
    from ..target import host

    return known_to(ctx).target or host()


def weights_of(ctx: Context) -> WeightStore:
    """The weight store of a context; an empty one for a plain xDSL context."""
    return known_to(ctx).weights


def decide(
    ctx: Context,
    subject: str | Operation | Sequence[Operation],
    what: str,
    why: str,
    cost: str | None = None,
    kind: RemarkKind = "passed",
) -> None:
    """Record a decision in the context; a plain xDSL context keeps none.

    Args:
        ctx: the context that keeps it.
        subject: its subject. Operations are named after their nodes, functions and kernels by
            their symbols.
        what: the change that was, or was not, made.
        why: the reason.
        cost: the cost or saving, with its unit.
        kind: see `Decision`.
    """
    if not isinstance(ctx, CompilerContext):
        return
    if isinstance(subject, Operation):
        subject = [subject]
    about = () if isinstance(subject, str) else tuple(subject)
    if isinstance(subject, str):
        words = subject
    elif all(called(op) == origin(op) for op in about):
        # All are named after nodes: each node once.
        words = origin_of(about) or ""
    else:
        words = ", ".join(dict.fromkeys(map(called, about)))
    nodes = tuple(dict.fromkeys(name for op in about for name in names(op)))
    where = tuple(dict.fromkeys(place for op in about for place in places(op)))
    decision = Decision(words, what, why, cost, nodes, ctx.stage, ctx.pass_name, kind, where)
    ctx.decisions.append(decision)


def count(ctx: Context, what: str, number: int = 1) -> None:
    """Add to a counter of the running pass; `stepwell-opt --statistics` shows the counters.

    Args:
        ctx: the context that keeps it; a plain xDSL context keeps none.
        what: the name of the counter, such as "bytes folded".
        number: the number to add.
    """
    if isinstance(ctx, CompilerContext):
        ctx.statistics[ctx.stage, ctx.pass_name, what] += number


def called(op: Operation) -> str:
    """The name of an operation for users: its symbol, its nodes, or its own name."""
    symbol = symbol_of(op)
    return origin(op) or op.name if symbol is None else f"@{symbol}"
