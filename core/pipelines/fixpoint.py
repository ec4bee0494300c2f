"""Rewriting by the patterns of all passes, in any package: it ends, and keeps locations.

xDSL's `PatternRewriteWalker` applies patterns until none matches. While a pass of a pipeline runs,
the number of rewrites is limited, well above the needs of any terminating set of patterns so far;
exceeding the limit is an error that names the operation and the pattern. An operation that a
pattern inserts without a location gets that of the operation to which the pattern is applied.
"""

from __future__ import annotations

import inspect
from contextlib import AbstractContextManager

from xdsl.dialects.builtin import LocationAttr, UnknownLoc
from xdsl.ir import Operation, Region
from xdsl.pattern_rewriter import PatternRewriter, PatternRewriteWalker, RewritePattern
from xdsl.utils.exceptions import PassFailedException

from ..errors import explain
from ..ir.patched import Walk, walking
from ..ir.provenance import locate, origin
from ..ir.walks import operations_in
from .actions import pattern_in

REWRITES_PER_OPERATION = 64
"""The limit of rewrites per operation of a region."""
FEWEST_REWRITES = 1000
"""The least limit of rewrites, for small regions."""


class _Bounded(RewritePattern):
    """The pattern, or all patterns, of a walker, limited to `most` rewrites."""

    def __init__(self, pattern: RewritePattern, name: str, most: int) -> None:
        self.pattern, self.pass_name, self.most = pattern, name, most
        self.count = 0
        self.last: str | None = None
        self.error: PassFailedException | None = None
        self.location: LocationAttr = UnknownLoc()
        """That of the operation to which the pattern is applied."""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /) -> None:
        """Apply the pattern.

        Raises:
            PassFailedException: if it has been applied too often.
        """
        if self.count >= self.most and self._changed not in rewriter.operation_removal_handler:
            rewriter.operation_insertion_handler.append(self._changed)
            rewriter.operation_removal_handler.append(self._changed)
            rewriter.operation_modification_handler.append(self._changed)
        if self._inserted not in rewriter.operation_insertion_handler:
            rewriter.operation_insertion_handler.append(self._inserted)
        self.location = op.location
        self.pattern.match_and_rewrite(op, rewriter)
        if not rewriter.has_done_action:
            return
        self.count += 1
        if self.count > self.most:
            what = f'"{self.last}"' if self.last is not None else "a pattern"
            fact = f"{what} is still being applied to {op.name} after {self.most} rewrites"
            where, hint = origin(op), "patterns undo each other"
            self.error = PassFailedException(
                explain(self.pass_name, fact, expected="an end", origin=where, hint=hint)
            )
            raise self.error

    def _inserted(self, op: Operation) -> None:
        locate(op, self.location)

    def _changed(self, op: Operation) -> None:
        """Identify the pattern being applied once there are too many rewrites."""
        frame = inspect.currentframe()
        if self.last is None and frame is not None:
            self.last = pattern_in(frame.f_back)


def bounded_rewrites(name: str) -> AbstractContextManager[None]:
    """Bound each pattern walk of the pass called `name` within the context."""

    def bounding(whole: Walk) -> Walk:
        def rewrite_region(self: PatternRewriteWalker, region: Region) -> bool:
            if isinstance(self.pattern, _Bounded):
                return whole(self, region)
            count = sum(1 for _ in operations_in(region))
            most = max(FEWEST_REWRITES, REWRITES_PER_OPERATION * count)
            pattern, bounded = self.pattern, _Bounded(self.pattern, name, most)
            self.pattern = bounded
            try:
                return whole(self, region)
            except Exception:
                if bounded.error is not None:
                    # The walker adds the module to the errors of patterns.
                    raise bounded.error from None
                raise
            finally:
                self.pattern = pattern

        return rewrite_region

    return walking(bounding)
