"""The sizes that operators and kernels demand of their operands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from ...core.algebra.dims import Dim, size_of_argument, size_of_result
from ...core.errors import InputError, explain
from ...core.ir.provenance import origin
from ...dialects.graph.demands import SizeBound, demands
from ...dialects.graph.interfaces import GraphOp
from ...dialects.graph.ops import CallDpsOp
from ...dialects.graph.sizes.shapes import sizes_of
from ...dialects.loop.arguments import (
    FITS,
    SizeCondition,
    comparison,
    size_conditions,
    texts_of,
)
from ...dialects.loop.ops import KernelOp
from ...dialects.sparse_tensor import is_sparse

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    Array = np.ndarray | csr_array


def check_sizes(op: GraphOp, operands: Sequence[Array]) -> None:
    """Check the sizes of the operands of an operator.

    Raises:
        InputError: if one is too small or too large.
    """
    given = dict(zip(op.operands, operands, strict=True))
    for bound in demands(op, SizeBound):
        size = sizes_of(given[bound.operand])[bound.dimension]
        for needed in bound.conditions(op, Dim.of(size)):
            _check(op, op.name, size, needed)


def check_sizes_of_call(call: CallDpsOp, kernel: KernelOp, operands: Sequence[Array]) -> None:
    """Check the sizes of the operands of a call by what its kernel demands.

    Raises:
        InputError: if one is too small or too large.
    """
    sizes = _sizes_of_arguments(call, operands)
    for position in range(len(kernel.inputs)):
        for needed in size_conditions(kernel, position):
            subject = needed.operator or f"kernel {kernel.sym_name.data}"
            _check(call, subject, needed.size.evaluate(sizes), needed)


def check_accesses_of_call(
    call: CallDpsOp, kernel: KernelOp, operands: Sequence[Array], results: Sequence[np.ndarray]
) -> None:
    """Check the conditions under which the accesses of a kernel are inside of their buffers.

    Raises:
        InputError: if one does not hold.
    """
    sizes = _sizes_of_arguments(call, operands)
    for number, array in enumerate(results):
        own = enumerate(array.shape)
        sizes |= {size_of_result(number, axis): size for axis, size in own}
    for text in texts_of(kernel, 0, FITS):
        left, right = (side.evaluate(sizes) for side in comparison(text))
        if left > right:
            subject, fact = f"kernel {kernel.sym_name.data}", "an access is outside of a buffer"
            got = f"{left} > {right}"
            raise InputError(explain(subject, fact, expected=text, got=got, origin=origin(call)))


def _sizes_of_arguments(call: CallDpsOp, operands: Sequence[Array]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for number, array in enumerate(operands):
        shape = sizes_of(array)
        sizes |= {size_of_argument(number, axis): size for axis, size in enumerate(shape)}
        if is_sparse(call.arguments[number].type):
            sizes[size_of_argument(number, "nnz")] = shape[-1]
        if array.dtype == np.int64 and not shape:
            sizes[size_of_argument(number, "value")] = int(cast(np.ndarray, array))
    return sizes


def _check(op: GraphOp, subject: str, size: int, needed: SizeCondition) -> None:
    if not needed.holds(size):
        expected, where = needed.expected(needed.limit), origin(op)
        raise InputError(explain(subject, needed.fact, expected=expected, got=size, origin=where))
