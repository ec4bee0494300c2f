"""How elements are combined by reductions, cumulative operators and scatters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.ir import Attribute, SSAValue

from ...core.dtypes import element_type_of
from ..loop.attrs import Combine
from ..loop.combiners import UFUNC, neutral_value
from .attrs import ReduceKind, compute_type, is_reordered
from .buffers import storage_type
from .nests import scalars
from .nests.nest import Scalars


@dataclass(frozen=True)
class Combiner:
    """A function of two elements, on scalars and on arrays."""

    combine: Combine
    step: Callable[[Scalars, SSAValue, SSAValue], SSAValue]

    @property
    def name(self) -> str:
        """What `Nest.reduce` and `WritingNest.update` call it."""
        return self.combine.value

    @property
    def ufunc(self) -> np.ufunc:
        """The function on arrays."""
        return UFUNC[self.combine]

    def init(self, nest: Scalars, type: Attribute) -> SSAValue:
        """What a reduction of scalars of a type starts from: 0, 1, or the least or largest one."""
        return scalars.number(nest, neutral_value(self.combine, type), type)

    def key(self, nest: Scalars, x: SSAValue, kind: Attribute) -> SSAValue:
        """A scalar of an element type as what is combined, and the other way round."""
        return scalars.ordered(nest, x, kind) if self._compares else x

    def joined(self, nest: Scalars, a: SSAValue, b: SSAValue, kind: Attribute) -> SSAValue:
        """Two scalars of an element type combined."""
        found = self.step(nest, self.key(nest, a, kind), self.key(nest, b, kind))
        return self.key(nest, found, kind)

    def works_on(self, kind: Attribute) -> bool:
        """Whether elements are combined as they are stored."""
        same = storage_type(kind) == compute_type(kind)
        return same and not (self._compares and is_reordered(kind))

    @property
    def _compares(self) -> bool:
        return self.combine in (Combine.MAX, Combine.MAXNUM, Combine.MIN)

    def first(self, dtype: np.dtype) -> float | int:
        """The same of an array in a type in which scalars are computed."""
        if dtype.kind == "u" and self._compares:
            limits = np.iinfo(dtype)
            return int(limits.max if self.combine == Combine.MIN else limits.min)
        return neutral_value(self.combine, element_type_of(dtype))

    def reduced(self, x: np.ndarray, axes: Sequence[int], keepdims: bool = False) -> np.ndarray:
        """The elements of such an array combined along some axes."""
        # NumPy has no maximum and no minimum of nothing.
        start = {} if self.ufunc.identity is not None else {"initial": self.first(x.dtype)}
        flags: dict[str, Any] = {"dtype": x.dtype, "keepdims": keepdims, **start}
        return np.asarray(self.ufunc.reduce(x, tuple(axes), **flags))


_ADD = Combiner(Combine.ADD, scalars.add)
_MUL = Combiner(Combine.MUL, scalars.mul)
_MAX = Combiner(Combine.MAX, scalars.maximum)
_MAXNUM = Combiner(Combine.MAXNUM, lambda nest, total, x: scalars.maxnum(nest, x, total))
_MIN = Combiner(Combine.MIN, scalars.minimum)

COMBINERS = {combiner.name: combiner for combiner in (_ADD, _MUL, _MAX, _MIN)}
"""The combiners by their names."""
COMBINER_OF = {
    ReduceKind.SUM: _ADD,
    ReduceKind.MEAN: _ADD,
    ReduceKind.PROD: _MUL,
    ReduceKind.MAX: _MAX,
    ReduceKind.MAXNUM: _MAXNUM,
    ReduceKind.MIN: _MIN,
}
"""How the elements of a reduction are combined; a mean is a sum first."""
