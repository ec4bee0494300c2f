"""The one place where xDSL is patched: wrappers around the walks of patterns.

Steps of passes are counted and limited, and passes are made to terminate, where xDSL applies
patterns. Passes of xDSL and of other packages make their own `PatternRewriteWalker`, so that
neither a subclass nor a driver loop of our own would see what they do. Outside of `walking` nothing
changes.

A test checks what is patched here against the version of xDSL that it was written for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeAlias

from xdsl.ir import Region
from xdsl.pattern_rewriter import PatternRewriteWalker

CHECKED_VERSION = "0.74"
"""The version of xDSL whose walker was read."""

Walk: TypeAlias = Callable[[PatternRewriteWalker, Region], bool]
"""`PatternRewriteWalker.rewrite_region`: rewrites a region, and says whether anything changed."""

_AROUND: ContextVar[tuple[Callable[[Walk], Walk], ...]] = ContextVar("around", default=())
"""The wrappers of walks, from the outside in. Each thread has its own."""


@contextmanager
def walking(around: Callable[[Walk], Walk]) -> Iterator[None]:
    """Wrap the walk of every walker; the wrapper gets the walk as it was."""
    token = _AROUND.set((*_AROUND.get(), around))
    try:
        yield
    finally:
        _AROUND.reset(token)


def _surrounded(whole: Walk) -> Walk:
    def rewrite_region(self: PatternRewriteWalker, region: Region) -> bool:
        walk = whole
        for around in reversed(_AROUND.get()):
            walk = around(walk)
        return walk(self, region)

    return rewrite_region


setattr(PatternRewriteWalker, "rewrite_region", _surrounded(PatternRewriteWalker.rewrite_region))  # noqa: B010
