"""Transactions: a module is restored if the code that changes it raises."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from xdsl.dialects.builtin import ModuleOp

from ..building.creation import copied


@contextmanager
def all_or_nothing(module: ModuleOp) -> Iterator[None]:
    """Restore the operations of a module if the block that changes them raises."""
    before = copied(module)
    try:
        yield
    except BaseException:
        module.body.detach_block(module.body.block)
        module.body.add_block(before.body.detach_block(before.body.block))
        raise
