"""The arithmetic of a kernel that users wrote, counted from its loops."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import IndexType, IntegerType, TensorType
from xdsl.ir import Block, Operation, SSAValue

from ....core.algebra.dims import Dim, size_of_argument
from ...loop.ops import ForOp, KernelOp, StoreOp
from ...upstream.ops import RemfOp
from .sizes import KernelSizes, NoValueError

_FLOATS = (
    *(arith.AddfOp, arith.SubfOp, arith.MulfOp, arith.DivfOp, arith.NegfOp, RemfOp),
    *(arith.MaximumfOp, arith.MinimumfOp, arith.MaxnumfOp, arith.MinnumfOp),
)
_INTEGERS = (
    *(arith.AddiOp, arith.SubiOp, arith.MuliOp, arith.DivSIOp, arith.DivUIOp),
    *(arith.RemSIOp, arith.RemUIOp, arith.MaxSIOp, arith.MinSIOp, arith.MaxUIOp, arith.MinUIOp),
)
_FUNCTIONS = tuple(op for op in math.Math.operations if op is not math.FmaOp)


def kernel_flops(kernel: KernelOp, kinds: Sequence[TensorType]) -> Dim | None:
    """How many operations on numbers a kernel takes, as `GraphOp.flops` counts them.

    Arithmetic and functions of numbers count one each, a multiply-add two; comparisons, selections,
    casts and the arithmetic of indices do not count.

    Args:
        kernel: the kernel, before it is scheduled.
        kinds: the types of the tensors that a call of it passes.

    Returns:
        The number in sizes of the operands, ``x0.1`` or ``x0.nnz``; None where it depends on more.
    """
    try:
        return _of_block(kernel.body.block, KernelSizes(kernel, kinds), {})
    except NoValueError:
        return None


_Extents = dict[SSAValue, Dim]
"""The number of iterations of each loop around a block, by its variable."""


def _of_block(block: Block, sizes: KernelSizes, around: _Extents) -> Dim:
    """The operations of a block in all iterations of the loops around it."""
    once, total = sum(map(_of_operation, block.ops)), Dim.of(0)
    if once:
        total = Dim.of(once)
        for extent in around.values():
            total = total * extent
    for op in block.ops:
        if isinstance(op, ForOp):
            total = total + _of_block(op.body.block, sizes, _inside(op, sizes, around))
    return total


def _inside(loop: ForOp, sizes: KernelSizes, around: _Extents) -> _Extents:
    """The loops around the body of a loop.

    Over the rows of a matrix, the loops over the entries of a row have as many iterations together
    as the matrix has entries.
    """
    if not loop.over_entries:
        return {**around, loop.variable: sizes.extent(loop)}
    rows = [value for value in loop.bounds if value in around]
    pointers = loop.matrix[0]
    if len(rows) != 1 or pointers not in sizes.parts:
        raise NoValueError("the number of entries is not known")
    entries = Dim.symbol(size_of_argument(sizes.parts[pointers].operand, "nnz"))
    left = {value: extent for value, extent in around.items() if value is not rows[0]}
    return {**left, loop.variable: entries}


def _of_operation(op: Operation) -> int:
    if isinstance(op, math.FmaOp):
        return 2
    if isinstance(op, StoreOp):
        return int(bool(op.accumulates))
    if isinstance(op, _INTEGERS):
        kind = op.results[0].type
        return int(not isinstance(kind, IndexType) and kind != IntegerType(1))
    return int(isinstance(op, (*_FLOATS, *_FUNCTIONS)))
