"""LLVM's pass managers and pass builders, none of which is left behind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import llvmlite.binding as llvm
from llvmlite.binding.newpassmanagers import NewPassManager

from ...core.target import Target
from .machine import machine


@contextmanager
def freed(manager: Any) -> Iterator[Any]:
    """A pass manager, which is freed at the end.

    llvmlite does not: its classes inherit a method for it that does nothing, before the one that
    does.
    """
    try:
        yield manager
    finally:
        NewPassManager._dispose(manager)
        manager.detach()


def pass_builder(target: Target, level: int) -> Any:
    """The pass builder for a target and an optimisation level from 0 to 3.

    It is made once, because llvmlite does not free all of it; one thread at a time may use it.
    """
    key = target.triple, target.cpu, target.features, level
    if key not in _BUILDERS:
        tuning = llvm.create_pipeline_tuning_options(speed_level=level)
        _BUILDERS[key] = llvm.create_pass_builder(machine(target), tuning)
    return _BUILDERS[key]


_BUILDERS: dict[tuple[str, str, str, int], Any] = {}
