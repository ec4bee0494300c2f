"""The results of a graph of torch: tensors with the strides that torch expects, and numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .dtypes import BFLOAT16
from .library import library

_ANY_STRIDES = "stepwell_any_strides"


@dataclass(frozen=True)
class ProgramResult:
    """A result that a compiled program computes.

    Attributes:
        order: the dimensions of torch's tensor from the largest stride to the smallest, in which
            the program stores it; None if in order.
        is_number: whether it is a number of Python that follows from sizes, not a tensor.
        dtype: the element type.
    """

    order: tuple[int, ...] | None
    is_number: bool
    dtype: np.dtype

    @property
    def maker(self) -> Callable[[np.ndarray], Any]:
        """The function that makes torch's result of an array, without a copy."""
        if self.is_number:
            return float if self.dtype.kind == "f" else int
        make = _bfloat16 if self.dtype == BFLOAT16 else library().from_numpy
        if self.order is None:
            return make
        back = [self.order.index(i) for i in range(len(self.order))]
        return lambda array: make(array).permute(back)


def order_of(fx: Any) -> tuple[int, ...] | None:
    """The dimensions of a result from the largest stride to the smallest; None if in order."""
    if _ANY_STRIDES in fx.meta:
        return None
    hints = [_hint(stride) for stride in fx.meta["val"].stride()]
    strides = [hint for hint in hints if hint is not None]
    if len(strides) < len(hints):
        return None
    order = tuple(sorted(range(len(strides)), key=lambda i: -strides[i]))
    return None if order == tuple(range(len(order))) else order


def allow_any_strides(nodes: Sequence[Any]) -> None:
    """Mark results of a graph that may have other strides, unless the graph reads them itself.

    Autograd takes gradients with any strides, and brings them into those of the parameter.
    """
    for node in nodes:
        if hasattr(node, "meta") and len(node.users) == 1:
            node.meta[_ANY_STRIDES] = True


def results_of(graph: Any) -> list[Any]:
    """The nodes of the results of a graph; None or a number for a constant."""
    found = graph.output_node().args[0]
    return list(found) if isinstance(found, (tuple, list)) else [found]


def _hint(size: Any) -> int | None:
    """The number that torch has traced a size with; None if it has none."""
    return size if isinstance(size, int) else size.node.hint


def _bfloat16(array: np.ndarray) -> Any:
    return library().from_numpy(array.view(np.int16)).view(library().bfloat16)
