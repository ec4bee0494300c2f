"""Random schedules: primitives of loops with random options, wherever they are legal."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Mapping
from typing import Any

from xdsl.dialects.builtin import ModuleOp

import stepwell as sw
from stepwell.core.ir.context import CompilerContext, target_of
from stepwell.core.ir.walks import is_same
from stepwell.core.pipelines.staircase import run_passes
from stepwell.core.registry import own_passes
from stepwell.dialects.loop.nests import loop_names, loops_of
from stepwell.dialects.loop.ops import KernelOp
from stepwell.passes.loop.steps.split import TAILS
from stepwell.passes.loop.steps.tiles import ORDERS

from .choices import Choices
from .outcomes import DifferenceError

MOST_LOOPS = 40
"""Copies of copies are not worth their time."""
TRIES = 4
"""For each primitive that is to be legal."""
OF_THE_HOST = ("loop-vectorize", "loop-prefetch", "loop-prefetch-entries")
"""The primitives whose kernels a device does not take."""
_TEXTS = {"tail": TAILS, "order": tuple(ORDERS)}
"""The texts of options that are no names of loops."""


@functools.cache
def primitives() -> dict[str, tuple[dataclasses.Field[Any], ...]]:
    """The passes that transform one kernel, and their options."""
    found = {}
    for name, load in own_passes().items():
        if name.startswith("loop-"):
            options = dataclasses.fields(load())
            if any(option.name == "kernel" for option in options):
                found[name] = options
    return found


def schedule(
    choices: Choices, ctx: CompilerContext, module: ModuleOp, steps: int, first: str = ""
) -> tuple[ModuleOp, list[str]]:
    """A copy of a module after random primitives on its kernels, and those that were legal.

    A primitive also counts as refused where the test of dependences, which has to prove what it
    leaves, no longer can.

    Args:
        choices: what decides.
        ctx: the context of the primitives.
        module: the module.
        steps: how many primitives.
        first: a primitive with options, which comes before them.

    Raises:
        DifferenceError: if a primitive that is refused changes the module.
    """
    applied: list[str] = []
    module = module.clone()
    # Splitting makes the loops that the others are for.
    names = [*primitives(), *["loop-split"] * 4, *["loop-vectorize"] * 3]
    if target_of(ctx).device is not None:
        names = [name for name in names if name not in OF_THE_HOST]
    if first:
        run_passes(ctx, module, first)
        applied.append(first)
        steps += 1
    for _ in range(TRIES * steps):
        kernels = [op for op in module.ops if isinstance(op, KernelOp) and loop_names(op)]
        kernels = [kernel for kernel in kernels if len(list(loops_of(kernel))) < MOST_LOOPS]
        if not kernels or len(applied) == steps:
            break
        kernel = choices.choice(kernels)
        name = choices.choice(names)
        text = f"{name}{{{' '.join(_option(choices, o, kernel) for o in primitives()[name])}}}"
        module = _after(ctx, module, text, applied)
    return module, applied


def schedule_whole(
    choices: Choices, ctx: CompilerContext, module: ModuleOp, applied: list[str]
) -> ModuleOp:
    """A module after a random pass on all of its kernels, which is added to those applied."""
    return _after(ctx, module, choices.choice(_whole()), applied)


def _after(ctx: CompilerContext, module: ModuleOp, text: str, applied: list[str]) -> ModuleOp:
    """A module after a pass, if it is legal, which is then added to those applied.

    Raises:
        DifferenceError: if it is refused, and changes the module.
    """
    before, ctx.applied = module.clone(), {}
    refusal = _refusal(ctx, module, text)
    if refusal is None:
        applied.append(text)
    elif "may depend on one another" in refusal:
        return before
    elif not is_same(before, module):
        raise DifferenceError(f"{text} is refused, and changes the kernel: {refusal}")
    return module


@functools.cache
def _whole() -> tuple[str, ...]:
    """The passes that transform all kernels of a module, and leave kernels."""
    loop = (name for name in own_passes() if name.startswith("loop-"))
    return tuple(name for name in loop if name not in primitives())


@functools.cache
def _conversions() -> tuple[str, ...]:
    """The conversions of one dialect each that do together what `convert-to-llvm` does."""
    names = [name for name in own_passes() if re.fullmatch("convert-.+-to-llvm", name)]
    return tuple(name for name in names if name != "convert-rt-to-llvm")


def lowering(choices: Choices, texts: Mapping[str, str]) -> dict[str, str]:
    """The passes of all stages, now and then with the conversions to LLVM one by one."""
    if not choices.chance(0.2):
        return dict(texts)
    each = choices.sample(_conversions(), len(_conversions()))
    whole = texts["llvm"].removesuffix("convert-to-llvm")
    return {**texts, "llvm": whole + ",".join(each)}


def _refusal(ctx: CompilerContext, module: ModuleOp, text: str) -> str | None:
    """Run a primitive; returns why it is refused, None where it is not."""
    try:
        run_passes(ctx, module, text)
    except sw.InternalError:
        raise
    except sw.CompileError as error:
        return str(error)
    return None


def _option(choices: Choices, option: dataclasses.Field[Any], kernel: KernelOp) -> str:
    """An option of a primitive with a random value."""
    if option.name == "kernel":
        return f"kernel={kernel.sym_name.data}"
    names = sorted(loop_names(kernel))
    if option.name in _TEXTS:
        return f"{option.name}={choices.choice(_TEXTS[option.name])}"
    match str(option.type).partition(" ")[0]:
        case "int":
            usual = option.default if option.default != 1 else 2
            value: object = choices.among(usual, usual, usual, 1, 2, 3, 4, 8, 16)
        case "str":
            value = choices.choice(names)
        case _:
            value = ",".join(choices.some(names, choices.among(1, 1, 2, 3)))
    return f"{option.name}={value}"
