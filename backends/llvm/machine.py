"""LLVM's description of a target, and whether this processor can run code for it."""

from __future__ import annotations

import functools
from typing import Any

import llvmlite.binding as llvm

from ...core.errors import TargetError, explain
from ...core.exclusive import exclusive
from ...core.processor import NEEDS
from ...core.target import Target, host


@functools.cache
def initialize() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    llvm.initialize_native_asmparser()


def machine(target: Target, *, jit: bool = False, level: int = 3) -> Any:
    """LLVM's target machine for a target.

    Args:
        target: the target of the code.
        jit: whether the code runs in this process.
        level: the optimisation level of code generation, 0 to 3.

    Raises:
        TargetError: if this build of LLVM does not know the triple.
    """
    initialize()
    try:
        found = llvm.Target.from_triple(target.triple)
    except RuntimeError as error:
        raise TargetError(
            explain("target", f"unknown triple: {error}", got=target.triple)
        ) from None
    return found.create_target_machine(
        cpu=target.cpu,
        features=target.features,
        opt=level,
        jit=jit,
        codemodel="jitdefault" if jit else "default",
        reloc="default" if jit else "pic",
    )


def runs_here(target: Target) -> bool:
    """Whether this processor has the features that code for `target` may use."""
    try:
        check_runs_here(target)
    except TargetError:
        return False
    return True


@exclusive
def check_runs_here(target: Target) -> None:
    """Check that this processor has the features that code for `target` may use.

    Raises:
        TargetError: naming the missing feature.
    """
    if target.name == "host":
        return
    here, wanted = llvm.get_process_triple().partition("-")[0], target.triple.partition("-")[0]
    if here != wanted:
        raise TargetError(explain(target.name, "cannot run here", expected=here, got=wanted))
    needed = NEEDS.get(target.cpu)
    if needed is None:
        if target.cpu == host().cpu:
            return
        raise TargetError(
            explain(target.name, "cannot run here", expected=target.cpu, got=host().cpu)
        )
    features = host().features.split(",")
    missing = [name for name in needed if f"+{name}" not in features]
    if missing:
        raise TargetError(
            explain(target.name, "cannot run here", expected=missing[0], got=host().cpu)
        )
