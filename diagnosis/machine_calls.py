"""What the machine code of each function of a program writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..core.ir.module import Module
from ..core.target import Target
from ..runtime.interpreted import interpreted
from ..runtime.lowered import lowered
from .traces import CallTracer, Trace, results_of

Natives = Mapping[str, Callable[..., Any]]


def natives_of(module: Module, target: Target) -> Natives:
    """The machine code of all functions of a module at stage `llvm` but the public one."""
    from ..backends.llvm.native import native_functions

    found = native_functions(module.op, target)
    public = lowered(module).name
    return {name: call for name, call in found.items() if name != public}


def called_alone(
    module: Module,
    target: Target,
    inputs: Sequence[Any],
    natives: Natives | None = None,
    known: Trace | None = None,
) -> Trace:
    """A run of machine code for all functions but the public one, which is interpreted.

    Args:
        module: the program at stage `llvm`.
        target: what to make machine code for.
        inputs: the inputs of the program.
        natives: the machine code, if there is some already.
        known: see `CallTracer`.
    """
    trace = Trace()
    code = natives_of(module, target) if natives is None else natives
    program = interpreted(module.op, lowered(module), [CallTracer(trace, known)], code)
    trace.results = results_of(program, inputs)
    return trace
