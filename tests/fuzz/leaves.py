"""Random arrays for the inputs and constants of a program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array, random_array
from xdsl.ir import SSAValue

from stepwell.core.dtype_names import is_real
from stepwell.core.dtypes import dtype_of
from stepwell.dialects.graph.demands import IndexBound, OffsetBound, SizeOperand, demands
from stepwell.dialects.graph.interfaces import GraphOp

from .choices import Choices
from .operators import Kind

Array = Any
"""A NumPy array or a CSR matrix."""

SPECIAL = (0.0, -0.0, np.nan, np.inf, -np.inf, 1e-40, 1.0, -1.0, 3e38, 0.5)


class Leaves:
    """Makes arrays.

    Args:
        choices: what decides.
        special: whether floats may be NaN, infinite, denormal or large.
    """

    def __init__(self, choices: Choices, special: bool) -> None:
        self.choices, self.special = choices, special
        self.random = np.random.default_rng(choices.getrandbits(32))

    def array(self, kind: Kind, shape: Sequence[int]) -> Array:
        """An array whose elements do not depend on its use."""
        dtype = dtype_of(kind.element)
        if kind.sparse:
            density = self.choices.among(0.0, 0.3, 0.3, 0.6, 1.0)
            matrix = csr_array(random_array(tuple(shape), density=density, rng=self.random))
            # SciPy has no conversion to f16, but takes it.
            matrix.data = self._numbers(matrix.data.shape, dtype)
            return matrix
        return self._numbers(tuple(shape), dtype)

    def _numbers(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
        choices, random = self.choices, self.random
        if dtype == np.bool_:
            return random.integers(0, 2, shape).astype(np.bool_)
        if dtype.kind in "iu" or not is_real(dtype):
            if dtype.kind in "iu" and choices.chance(0.1):
                limits = np.iinfo(dtype)
                return random.integers(limits.min, limits.max, shape, dtype, endpoint=True)
            low = 0 if dtype.kind == "u" or choices.chance(0.6) else -4
            return random.integers(low, choices.among(3, 8), shape).astype(dtype)
        values = random.standard_normal(shape) * choices.among(1.0, 1.0, 0.1, 4.0)
        if choices.chance(0.3):
            values = np.abs(values) + choices.among(0.0, 0.5)
        if choices.chance(0.2):
            values = np.round(values * 2) / 2  # ties and zeros
        if self.special and choices.chance(0.7):
            edges = random.choice(SPECIAL, shape)
            values = np.where(random.random(shape) < 0.3, edges, values)
        with np.errstate(all="ignore"):
            return np.asarray(values).astype(dtype)

    def _offsets(self, count: int, last: int) -> np.ndarray:
        """Numbers that never decrease, from 0 up to the last one."""
        inner = np.sort(self.random.integers(0, last + 1, max(count - 2, 0)))
        return np.array([0, *inner, last][:count])

    def for_use(
        self,
        kind: Kind,
        shape: Sequence[int],
        value: SSAValue,
        op: GraphOp,
        shapes: Mapping[SSAValue, tuple[int, ...]],
    ) -> Array:
        """An array for an operand, inside of the bounds that the operator states for it.

        Args:
            kind: its type.
            shape: its sizes.
            value: the operand.
            op: the operator, which also may have other operands that are not known yet.
            shapes: the sizes of operands and results.
        """
        dtype = dtype_of(kind.element)
        for bound in demands(op, IndexBound):
            if bound.operand is value:
                size = shapes[bound.into][bound.dimension]
                low = -size if self.choices.chance(0.5) and dtype.kind == "i" else 0
                return self.random.integers(low, max(size, 1), tuple(shape)).astype(dtype)
        for bound in demands(op, OffsetBound):
            if bound.operand is value:
                count = int(np.prod(shape))
                return (
                    self._offsets(count, shapes[bound.into][bound.dimension])
                    .astype(dtype)
                    .reshape(shape)
                )
        if any(demand.operand is value for demand in demands(op, SizeOperand)):
            near = [n for operand in op.operands for n in shapes[operand]] or [2]
            size = self.choices.among(self.choices.choice(near), self.choices.randint(0, 3))
            return np.full(tuple(shape), size, dtype)
        if dtype.kind in "iu" and len(shape) == 1 and self.choices.chance(0.2):
            # Perhaps row pointers.
            last = self.choices.choice([n for operand in op.operands for n in shapes[operand]])
            return self._offsets(shape[0], last).astype(dtype)
        return self.array(kind, shape)
