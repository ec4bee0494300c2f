"""Questions about the nests of a kernel: its loops by name, their sizes, what is inside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr, ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.utils.exceptions import PassFailedException

from ...core.errors import explain
from ...core.provenance import origin
from .linear import normalized, value_of, with_dims
from .ops import ForOp, KernelOp, ReduceEntriesOp, ReduceOp

Loop = ForOp | ReduceOp | ReduceEntriesOp
"""An operation that has a name and iterations."""


DEAR = frozenset(
    f"math.{name}"
    for name in ("erf", "exp", "exp2", "expm1", "log", "log10", "log1p", "log2", "powf", "tanh")
)
"""Functions that take some twenty instructions for each machine vector, one after the other."""


class ScheduleError(PassFailedException):
    """A step of a schedule is not legal; nothing has been changed."""


def refusal(
    step: str,
    kernel: KernelOp,
    loop: Loop | str,
    fact: str,
    expected: object = None,
    got: object = None,
    hint: str | None = None,
) -> ScheduleError:
    """The error of a primitive that refuses: names the kernel, the loop and the reason."""
    name = loop if isinstance(loop, str) else loop.loop_name.data
    where = origin(kernel) if isinstance(loop, str) else origin(loop) or origin(kernel)
    subject = f'{step}: loop "{name}" of @{kernel.sym_name.data}'
    text = explain(subject, fact, expected=expected, got=got, origin=where, hint=hint)
    return ScheduleError(text)


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
    raise ScheduleError(explain(step, "no such kernel", expected=names, got=f"@{name}"))


def loops_of(kernel: KernelOp) -> Iterator[Loop]:
    """The loops of a kernel, outer ones first."""
    return loops_in(kernel.body.block)


def loops_in(block: Block) -> Iterator[Loop]:
    """The loops in a block, outer ones first."""
    op = block.first_op
    while op is not None:
        if op.regions:
            if isinstance(op, Loop):
                yield op
            for region in op.regions:
                for inner in region.blocks:
                    yield from loops_in(inner)
        op = op.next_op


def loop_names(kernel: KernelOp) -> set[str]:
    """The names of the loops of a kernel."""
    return {loop.loop_name.data for loop in loops_of(kernel)}


def case_suffixes(kernel: KernelOp, loop: str, cases: int, suffix: str) -> list[str]:
    """What the names of loops end with in each nest of a split with the tail "cases".

    First comes "", for that of the chunks; there is none for as many iterations as a chunk has.
    """
    names = loop_names(kernel) if cases else set[str]()
    found = [f"{suffix}{number}" for number in range(1, cases + 1)]
    return ["", *(end for end in found if loop + end in names)]


def loops_by_name(kernel: KernelOp) -> dict[str, Loop]:
    """The loops of a kernel by their names."""
    found: dict[str, Loop] = {}
    for loop in loops_of(kernel):
        found.setdefault(loop.loop_name.data, loop)
    return found


def loop_named(step: str, kernel: KernelOp, name: str) -> Loop:
    """The loop called `name`.

    Raises:
        ScheduleError: if the kernel has no such loop.
    """
    return loops_named(step, kernel, [name])[0]


def loops_named(step: str, kernel: KernelOp, names: Sequence[str]) -> list[Loop]:
    """The loops of these names.

    Raises:
        ScheduleError: if the kernel lacks one of them.
    """
    loops = loops_by_name(kernel)
    for name in names:
        if name not in loops:
            raise _missing(step, kernel, name)
    return [loops[name] for name in names]


def _missing(step: str, kernel: KernelOp, name: str) -> ScheduleError:
    names = ", ".join(f'"{n.loop_name.data}"' for n in loops_of(kernel)) or "none"
    return ScheduleError(
        explain(
            step,
            f'no loop "{name}" in @{kernel.sym_name.data}',
            expected=names,
            origin=origin(kernel),
        )
    )


def constant_index(value: SSAValue) -> int | None:
    """The value of an index that is an `arith.constant`, None for any other."""
    owner = value.owner
    if not isinstance(owner, arith.ConstantOp) or not isinstance(value.type, IndexType):
        return None
    return owner.value.value.data if isinstance(owner.value, IntegerAttr) else None


def bound_of(loop: ForOp | ReduceOp) -> list[AffineExpr]:
    """The bounds of a loop, over its operands; constants among these are filled in."""
    constants = [constant_index(operand) for operand in loop.bounds]
    results = loop.bound.data.results
    if all(value is None for value in constants):
        return list(results)
    dims = [
        AffineExpr.dimension(number) if value is None else AffineExpr.constant(value)
        for number, value in enumerate(constants)
    ]
    return [normalized(with_dims(expr, dims)) for expr in results]


def extent_of(loop: Loop) -> int | None:
    """The number of iterations, None where it is not known at compile time."""
    if isinstance(loop, ReduceEntriesOp):
        return None
    numbers = [value_of(e) for e in bound_of(loop)]
    known = [n for n in numbers if n is not None]
    return max(0, min(known)) if len(known) == len(numbers) else None


def most_iterations(loop: Loop) -> int | None:
    """A number that the iterations never exceed, None where none is known."""
    if isinstance(loop, ReduceEntriesOp):
        return None
    known = [n for e in bound_of(loop) if (n := value_of(e)) is not None]
    return max(0, min(known)) if known else None


def enclosing(op: Operation) -> Iterator[Loop]:
    """The loops around an operation, inner ones first."""
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, KernelOp):
        if isinstance(parent, Loop):
            yield parent
        parent = parent.parent_op()


def body_of(loop: Loop) -> list[Operation]:
    """The operations of a loop's body."""
    return list(loop.body.block.ops)


def only_loop(block: Block) -> ForOp | None:
    """The loop that is all there is in a block, None for any other block."""
    op = block.first_op
    return op if isinstance(op, ForOp) and op.next_op is None else None


def perfect_nest(loop: ForOp) -> list[ForOp]:
    """The loop and the loops perfectly nested in it, outer ones first."""
    nest = [loop]
    while (inner := only_loop(nest[-1].body.block)) is not None:
        nest.append(inner)
    return nest
