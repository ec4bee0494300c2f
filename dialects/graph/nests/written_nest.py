"""The loops of a kernel that is written statement by statement: nothing leaves its place."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from xdsl.ir import Block, Operation, SSAValue

from ....core.building.arithmetic import INDEX
from ...loop.attrs import LoopKind
from .loop_nest import NAMES, LoopFrame, LoopNest


class WrittenNest(LoopNest):
    """Loops in which each operation stays where its author wrote it."""

    def home_of(self, frames: frozenset[LoopFrame] | set[LoopFrame]) -> LoopFrame:
        return self.scopes[-1]

    def insert(self, op: Operation) -> SSAValue:
        """Place an operation at the end of the innermost loop."""
        self._place(op, self.scopes[-1])
        return op.results[0]

    def _may_be_left(self, op: Operation) -> list[LoopFrame]:
        return []

    def _letter(self, kind: LoopKind) -> str:
        """Reductions are called k, other loops after their depth."""
        return "k" if kind == LoopKind.REDUCTION else NAMES[min(self.here, len(NAMES) - 1)]

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Loops that are opened within the context, and left by an exception, are not there."""
        depth = self.here
        try:
            yield
        except BaseException:
            self._drop(depth)
            raise

    @contextmanager
    def scrap(self) -> Iterator[SSAValue]:
        """The variable of a loop whose body is thrown away at the end of the context."""
        depth, used = self.here, dict(self._used)
        body = Block(arg_types=[INDEX])
        self.scopes.append(LoopFrame(body, depth + 1))
        try:
            yield body.args[0]
        finally:
            self._drop(depth)
            self._used = used

    def _drop(self, depth: int) -> None:
        """Throw away what is in the loops after the outermost `depth`."""
        for frame in reversed(self.scopes[depth + 1 :]):
            (frame.block.parent_op() or frame.block).drop_all_references()
        del self.scopes[depth + 1 :]
