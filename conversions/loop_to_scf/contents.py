"""Store forwarding: the known contents of local buffers.

A load at constant indices from a `loop.local` that was filled with whole vectors becomes lanes of
the vectors that were stored. A buffer that is then never read is removed.
"""

from __future__ import annotations

from xdsl.dialects import memref, vector
from xdsl.ir import Operation, SSAValue

from .scopes import ScopedEmitter

_STORES = (memref.StoreOp, vector.StoreOp, vector.MaskedStoreOp)


class LocalContents:
    """The elements of local buffers, as lanes of values in scope."""

    def __init__(self, emitter: ScopedEmitter) -> None:
        self.emitter = emitter
        self._known: dict[SSAValue, dict[int, tuple[SSAValue, int]]] = {}

    def track(self, buffer: SSAValue) -> None:
        """Track the stores to a buffer without aliases."""
        self._known[buffer] = {}

    def tracks(self, buffer: SSAValue) -> bool:
        """Whether a buffer is tracked."""
        return buffer in self._known

    def forget(self, buffer: SSAValue) -> None:
        """Record that the contents of a buffer are unknown."""
        if buffer in self._known:
            self._known[buffer] = {}

    def write(self, buffer: SSAValue, first: int | None, value: SSAValue, count: int) -> None:
        """Record a store of `count` lanes from the element `first`, None if that is unknown."""
        if first is None:
            self.forget(buffer)
            return
        for lane in range(count):
            self._known[buffer][first + lane] = (value, lane)

    def read(self, buffer: SSAValue, first: int | None, width: int) -> SSAValue | None:
        """`width` elements from `first`, None if they have to be loaded."""
        if first is None:
            return None
        known = self._known[buffer]
        found = [known[n] for n in range(first, first + width) if n in known]
        if len(found) < width or len({value for value, _ in found}) > 1:
            return None
        value = found[0][0]
        lanes = [lane for _, lane in found]
        if width == 1:
            return self.emitter.extract(value, lanes[0])
        return self.emitter.shuffle(value, value, lanes)

    def drop_unread(self) -> None:
        """Remove buffers that are never read."""
        for buffer in self._known:
            uses = [use.operation for use in buffer.uses]
            views = [op for op in uses if isinstance(op, memref.CollapseShapeOp)]
            users = uses + [use.operation for view in views for use in view.results[0].uses]
            stores = [op for op in users if isinstance(op, _STORES)]
            if len(stores) + len(views) == len(users):
                for op in (*stores, *views, buffer.owner):
                    assert isinstance(op, Operation)
                    op.detach()
                    op.erase()
