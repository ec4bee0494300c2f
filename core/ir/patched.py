"""The only place where xDSL is patched: wrappers around pattern walks.

Actions are counted and limited, and passes are made to terminate, where xDSL applies patterns.
Passes of xDSL and of other packages create their own `PatternRewriteWalker`, which neither a
subclass nor a driver loop of our own could observe. Outside of `walking` nothing changes.

A test compares the patched code with that of the versions of xDSL that the patch was written for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeAlias

from xdsl.ir import Region
from xdsl.pattern_rewriter import PatternRewriteWalker

CHECKED_VERSIONS = ("0.74", "0.75")
"""The versions of xDSL whose patched code was read."""

Walk: TypeAlias = Callable[[PatternRewriteWalker, Region], bool]
"""`PatternRewriteWalker.rewrite_region`: rewrites a region, and returns whether it changed."""

_AROUND: ContextVar[tuple[Callable[[Walk], Walk], ...]] = ContextVar("around", default=())
"""The wrappers of walks, from the outside in. Each thread has its own."""


@contextmanager
def walking(around: Callable[[Walk], Walk]) -> Iterator[None]:
    """Wrap the walk of every walker; `around` maps the original walk to the wrapped one."""
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
