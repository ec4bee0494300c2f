"""The individual steps of passes, which `stepwell bisect` counts and bounds.

An action is the smallest change of a pass after which the module still means the same: one use of
a rewrite pattern, one operator that is folded, one step of a schedule, one kernel that is built.
The term is MLIR's. A pass that does not consist of xDSL's rewrite patterns checks before each:

    if not allowed("fold", op):
        continue

Outside of `counting` every action is allowed, and nothing is recorded.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from types import FrameType

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, Region
from xdsl.pattern_rewriter import (
    GreedyRewritePatternApplier,
    PatternRewriter,
    PatternRewriterListener,
    PatternRewriteWalker,
    RewritePattern,
)

from ..ir.patched import Walk, walking
from ..ir.provenance import names
from ..ir.symbols import symbol_of


@dataclass(frozen=True)
class Action:
    """One step of a pass: its name, the operation it was applied to, the function around that
    operation, and the nodes of the model that the operation computes."""

    name: str
    operation: str
    function: str | None = None
    nodes: tuple[str, ...] = ()

    def __str__(self) -> str:
        where = f" in @{self.function}" if self.function else ""
        nodes = f" of {', '.join(self.nodes)}" if self.nodes else ""
        return f'"{self.name}" on {self.operation}{where}{nodes}'


class ActionCounter:
    """The actions taken, at most `limit`.

    `begun` is a use of a pattern that did not end, such as one that raised.
    """

    def __init__(self, limit: int | None = None) -> None:
        self.limit = limit
        self.taken: list[Action] = []
        self.begun: Action | None = None
        self.refused = False
        """Whether the limit has prevented an action."""

    def more(self) -> bool:
        """Whether another action may be taken."""
        if self.limit is None or len(self.taken) < self.limit:
            return True
        self.refused = True
        return False

    def ended(self, changed: bool) -> None:
        """Record the end of a use, which counts if it changed something."""
        if changed and self.begun is not None:
            self.taken.append(self.begun)
        self.begun = None

    @property
    def last(self) -> Action | None:
        """The action that is in progress, or the last one."""
        return self.begun or (self.taken[-1] if self.taken else None)


_COUNTER: ContextVar[ActionCounter | None] = ContextVar("actions", default=None)


def allowed(name: str, op: Operation) -> bool:
    """Whether a pass may take a step; if so, it must take it.

    Args:
        name: the name of the step.
        op: the operation that it is applied to.
    """
    counter = _COUNTER.get()
    if counter is None:
        return True
    if not counter.more():
        return False
    counter.begun = _action(name, op)
    counter.ended(True)
    return True


def is_counting() -> bool:
    """Whether actions are counted: guards work that is only needed for counting."""
    return _COUNTER.get() is not None


def held_back() -> bool:
    """Whether a step was refused: the module may then be incompletely converted."""
    counter = _COUNTER.get()
    return counter is not None and counter.refused


@contextmanager
def counting(limit: int | None = None) -> Iterator[ActionCounter]:
    """Count the actions of the passes that run inside, and prevent those beyond a limit.

    Patterns are counted where xDSL applies them: see `patched`.
    """
    counter = ActionCounter(limit)
    with walking(partial(_counted, counter)):
        token = _COUNTER.set(counter)
        try:
            yield counter
        finally:
            _COUNTER.reset(token)


def _counted(counter: ActionCounter, whole: Walk) -> Walk:
    """`PatternRewriteWalker.rewrite_region`, with each use of its pattern as an action."""

    def rewrite_region(self: PatternRewriteWalker, region: Region) -> bool:
        pattern, sweep = self.pattern, self.post_walk_func
        self.pattern = _CountedPattern(pattern, counter)
        if sweep is not None:
            # The walker calls it after each walk, as an action.
            def swept(region: Region, listener: PatternRewriterListener) -> bool:
                parent = region.parent_op()
                if parent is None or not counter.more():
                    return False
                counter.begun = _action(sweep.__name__, parent)
                changed = sweep(region, listener)
                counter.ended(changed)
                return changed

            self.post_walk_func = swept
        try:
            return whole(self, region)
        finally:
            self.pattern, self.post_walk_func = pattern, sweep

    return rewrite_region


class _CountedPattern(RewritePattern):
    """A pattern, or all patterns of a walker, whose uses are actions."""

    def __init__(self, pattern: RewritePattern, counter: ActionCounter) -> None:
        self.pattern, self.counter = pattern, counter
        self._name: str | None = None

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /) -> None:
        """Apply the pattern if another action may be taken."""
        if not self.counter.more():
            return
        self._name = None
        # Listen for the first change, to identify which of many patterns is applied.
        for handlers in (
            rewriter.operation_insertion_handler,
            rewriter.operation_removal_handler,
            rewriter.operation_modification_handler,
        ):
            if self._changed not in handlers:
                handlers.append(self._changed)
        before = _action("", op)
        try:
            self.pattern.match_and_rewrite(op, rewriter)
        except Exception as error:
            frame, trace = None, error.__traceback__
            while trace is not None:
                frame, trace = trace.tb_frame, trace.tb_next
            self.counter.begun = _renamed(before, self._name or pattern_in(frame))
            raise
        if rewriter.has_done_action:
            self.counter.begun = _renamed(before, self._name or name_of(self.pattern))
            self.counter.ended(True)

    def _changed(self, op: Operation) -> None:
        frame = inspect.currentframe()
        if self._name is None and frame is not None:
            self._name = pattern_in(frame.f_back)


def pattern_in(frame: FrameType | None) -> str | None:
    """The name of the innermost pattern on the call stack of a frame."""
    while frame is not None:
        pattern = frame.f_locals.get("self")
        if isinstance(pattern, _CountedPattern):
            return None
        if isinstance(pattern, GreedyRewritePatternApplier):
            return "folding" if "folded" in frame.f_locals else "dead code elimination"
        if isinstance(pattern, RewritePattern):
            return name_of(pattern)
        frame = frame.f_back
    return None


def name_of(pattern: RewritePattern) -> str:
    """The name of a pattern: its own, or that of its class."""
    name = getattr(pattern, "name", None)
    return name if isinstance(name, str) else type(pattern).__name__


def _renamed(action: Action, name: str | None) -> Action:
    return Action(name or "a pattern", action.operation, action.function, action.nodes)


def _action(name: str, op: Operation) -> Action:
    return Action(name, op.name, function_of(op), names(op))


def function_of(op: Operation) -> str | None:
    """The name of the function or kernel that contains an operation, or is the operation."""
    found: Operation | None = op
    while found is not None and not isinstance(found, ModuleOp):
        if (symbol := symbol_of(found)) is not None:
            return symbol
        found = found.parent_op()
    return None
