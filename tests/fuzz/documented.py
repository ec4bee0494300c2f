"""The kernels in the documentation of primitives: each is one to which its primitive applies."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir import BlockArgument, SSAValue

from stepwell.backends.reference.numbers import dtype_of
from stepwell.core.ir.typed import memref_type
from stepwell.dialects.loop.ops import ForOp, KernelOp

from ..numeric.loop.conftest import parse
from ..unit.test_house_documented_ir import examples
from .schedules import primitives


@functools.cache
def documented() -> tuple[tuple[str, str], ...]:
    """The text of each kernel, and its primitive with the options of the documentation."""
    return tuple(
        (example.before, f"{name}{{kernel={parse(example.before).sym_name.data} {options}}}")
        for name in primitives()
        for example in examples(name)
        if (options := example.options)
    )


def arguments(kernel: KernelOp, random: np.random.Generator) -> list[np.ndarray]:
    """Arrays with which no access of a kernel is out of bounds.

    Integers are indices: they are below each known size, or the rows of a matrix.
    """
    args = kernel.body.block.args
    sizes = [n for arg in args for n in memref_type(arg).get_shape() if n != DYNAMIC_INDEX]
    least, most = min(sizes), max(sizes) + 1
    known = _matrices(kernel, random, most)
    return [known[arg] if arg in known else _array(arg, random, least, most) for arg in args]


def _matrices(
    kernel: KernelOp, random: np.random.Generator, rows: int
) -> dict[SSAValue, np.ndarray]:
    """The row pointers and the columns that loops over entries walk."""
    found: dict[SSAValue, np.ndarray] = {}
    for loop in kernel.walk():
        if isinstance(loop, ForOp) and loop.over_entries:
            pointers, columns = loop.matrix
            count = _shape(pointers, rows)[0] - 1
            offsets = np.concatenate([[0], np.cumsum(random.integers(0, 4, count))])
            entries = random.integers(0, rows, int(offsets[-1]))
            for value, array in ((pointers, offsets), (columns, entries)):
                found[value] = array.astype(dtype_of(memref_type(value).element_type))
    return found


def _array(arg: BlockArgument, random: np.random.Generator, least: int, most: int) -> np.ndarray:
    dtype, shape = dtype_of(memref_type(arg).element_type), _shape(arg, most)
    if dtype.kind in "iu":
        return np.asarray(random.integers(0, least, shape), dtype)
    # Positive, because sums of up to a thousand terms would cancel.
    return np.asarray(np.abs(random.standard_normal(shape)), dtype)


def _shape(value: SSAValue, unknown: int) -> Sequence[int]:
    return [unknown if n == DYNAMIC_INDEX else n for n in memref_type(value).get_shape()]
