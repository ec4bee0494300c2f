"""Queries about the nests of a kernel: its loops by name, their sizes and bodies."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Sequence
from typing import Annotated, TypeAlias

from xdsl.dialects import math
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import Rewriter

from ...core.errors import explain
from ...core.ir.provenance import origin
from ..upstream.ops import RemfOp
from .attrs import LoopKind
from .loops import loops_in
from .ops import ForOp, KernelOp
from .trace_text import ScheduleError

EXPENSIVE: frozenset[type[Operation]] = frozenset(
    (
        *(math.ErfOp, math.ExpOp, math.Exp2Op, math.ExpM1Op, math.PowFOp, math.TanhOp),
        *(math.AcosOp, math.AsinOp, math.AtanOp, math.SinhOp, math.CoshOp),
        *(math.AcoshOp, math.AsinhOp, math.AtanhOp, math.CosOp, math.SinOp, math.TanOp),
        *(math.LogOp, math.Log10Op, math.Log1pOp, math.Log2Op),
        RemfOp,
    )
)
"""Functions that take some twenty instructions for each machine vector, one after the other."""


MOST = 2**31 - 1
"""The largest number that a primitive takes: sums of it and a size fit into 64 bits."""

MOST_COPIES = 4096
"""The most copies of a body that a primitive makes."""

MOST_LANES = 1 << 16
"""The most lanes of a block."""

Consumed: TypeAlias = Annotated[KernelOp, "consumed"]
"""The kernel that a primitive takes.

A primitive that returns has consumed it: what it returns has parts of it and, in a module, takes
its place. One that refuses has left it as it was. Clone a kernel that is still needed.
"""


def put_in_place(new: KernelOp, old: KernelOp) -> KernelOp:
    """The first kernel, in the place of the other one where that is in a module."""
    if old.parent is not None:
        Rewriter.replace_op(old, new, [])
    return new


def refusal(
    step: str,
    kernel: KernelOp,
    subject: ForOp | int,
    fact: str,
    expected: object = None,
    got: object = None,
    hint: str | None = None,
) -> ScheduleError:
    """The error of a primitive that refuses a loop, or an argument by its number."""
    where = origin(kernel)
    if isinstance(subject, int):
        name = f"argument {subject}"
    else:
        name, where = f'loop "{subject.loop_name.data}"', origin(subject) or where
    text = f"{step}: {name} of @{kernel.sym_name.data}"
    return ScheduleError(explain(text, fact, expected=expected, got=got, origin=where, hint=hint))


def check_number(
    step: str,
    kernel: KernelOp,
    loop: ForOp,
    what: str,
    number: int,
    most: int = MOST,
    least: int = 1,
) -> None:
    """Check a number that a primitive is given for a loop.

    Raises:
        ScheduleError: if it is too small or too large.
    """
    if number < least:
        raise refusal(step, kernel, loop, f"wrong {what}", f"at least {least}", number)
    if number > most:
        raise refusal(step, kernel, loop, f"wrong {what}", f"at most {most}", number)


def input_numbered(step: str, kernel: KernelOp, number: int) -> SSAValue:
    """The input of a kernel with a number.

    Raises:
        ScheduleError: if the kernel has no such input.
    """
    count = len(kernel.inputs)
    if not 0 <= number < count:
        raise refusal(step, kernel, number, "no such input", f"0 <= number < {count}", number)
    return kernel.inputs[number]


def kernel_named(step: str, module: ModuleOp, name: str | None) -> KernelOp:
    """The kernel of a module called `name`; without a name its only kernel.

    Raises:
        ScheduleError: if there is none, or more than one to choose from.
    """
    kernels = [op for op in module.ops if isinstance(op, KernelOp)]
    names = ", ".join(f"@{k.sym_name.data}" for k in kernels) or "none"
    found = [k for k in kernels if name is None or k.sym_name.data == name]
    if len(found) == 1:
        return found[0]
    if name is None:
        fact = "which kernel is meant is not said" if kernels else "the module has no kernel"
        raise ScheduleError(explain(step, fact, expected="one of " + names if kernels else None))
    near = difflib.get_close_matches(name, [k.sym_name.data for k in kernels], 1)
    hint = f"did you mean @{near[0]}" if near else None
    raise ScheduleError(explain(step, "no such kernel", expected=names, got=f"@{name}", hint=hint))


def loops_of(kernel: KernelOp) -> Iterator[ForOp]:
    """The loops of a kernel, outer ones first."""
    return loops_in(kernel.body.block)


def loop_names(kernel: KernelOp) -> set[str]:
    """The names of the loops of a kernel."""
    return {loop.loop_name.data for loop in loops_of(kernel)}


def loops_by_name(kernel: KernelOp) -> dict[str, ForOp]:
    """The loops of a kernel by their names."""
    return {loop.loop_name.data: loop for loop in loops_of(kernel)}


def loop_named(step: str, kernel: KernelOp, name: str) -> ForOp:
    """The loop called `name`.

    Raises:
        ScheduleError: if the kernel has no such loop.
    """
    return loops_named(step, kernel, [name])[0]


def loops_named(step: str, kernel: KernelOp, names: Sequence[str]) -> list[ForOp]:
    """The loops of these names.

    Raises:
        ScheduleError: if the kernel lacks one of them.
    """
    loops, missing = dict[str, ForOp](), set(names)
    for loop in loops_of(kernel):
        if not missing:
            break
        if (name := loop.loop_name.data) in missing:
            loops[name] = loop
            missing.remove(name)
    for name in names:
        if name in missing:
            known = ", ".join(f'"{n.loop_name.data}"' for n in loops_of(kernel)) or "none"
            raise ScheduleError(
                explain(
                    step,
                    f'no loop "{name}" in @{kernel.sym_name.data}',
                    expected=known,
                    origin=origin(kernel),
                )
            )
    return [loops[name] for name in names]


def plain_loop(
    step: str, kernel: KernelOp, name: str, kinds: Collection[LoopKind] = tuple(LoopKind)
) -> ForOp:
    """The loop called `name`, which is over a bound, of one of some kinds, and carries nothing.

    Raises:
        ScheduleError: if the kernel has no such loop, or it is another one.
    """
    loop = loop_named(step, kernel, name)
    if loop.results:
        fact = "it carries values from one iteration to the next"
        raise refusal(step, kernel, loop, fact, "a loop that carries nothing", loop.kind.data)
    if loop.over_entries:
        raise refusal(step, kernel, loop, "rows differ in length", "a loop over a bound")
    if loop.kind.data not in kinds:
        raise refusal(step, kernel, loop, "wrong kind", " or ".join(kinds), loop.kind.data)
    return loop


def body_of(loop: ForOp) -> list[Operation]:
    """The operations of a loop's body."""
    return list(loop.body.block.ops)


def only_loop(block: Block) -> ForOp | None:
    """The plain loop that is all there is in a block, None for any other block."""
    op = block.first_op
    return op if isinstance(op, ForOp) and op.next_op is None and op.is_plain else None


def perfect_nest(loop: ForOp) -> list[ForOp]:
    """The loop and the loops perfectly nested in it, outer ones first."""
    nest = [loop]
    while (inner := only_loop(nest[-1].body.block)) is not None:
        nest.append(inner)
    return nest
