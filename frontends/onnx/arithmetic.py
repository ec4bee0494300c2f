"""Arithmetic of scalars that shapes, starts and ends are computed from at run time."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.dims import Dim
from ...core.dtype_names import dtype_named
from ...dialects.graph import ops as graph
from ...dialects.graph.dialect import Graph
from ..importing.dtypes import element_type
from ..importing.nodes import Builds
from ..importing.values import Value
from .nodes import Node

Number = Value | Dim | int | float
"""A scalar, a size, or a number."""

_OPERATORS: dict[str, Builds] = {op.name.partition(".")[2]: op for op in Graph.operations}


class Arithmetic:
    """The operators of the graph dialect on scalars, by name, for a node of the model."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def __getattr__(self, name: str) -> Callable[..., Value]:
        """The operator called `name`."""
        return functools.partial(self._apply, _OPERATORS[name])

    def cast(self, x: Number, dtype: str) -> Value:
        """A number as one of the element type of this name."""
        kind = dtype_named(dtype)
        return self.converted(self.value(x, kind), kind)

    def converted(self, x: Value, dtype: np.dtype) -> Value:
        """A value as one of another element type."""
        return (
            x if x.dtype == dtype else self._node.emit(graph.CastOp, x, target=element_type(dtype))
        )

    def value(self, x: Number, dtype: np.dtype) -> Value:
        """A number as a scalar, which has this element type unless it is one."""
        if isinstance(x, Value):
            return x
        return self._node.number(x) if isinstance(x, Dim) else self._node.known(np.array(x, dtype))

    def _apply(self, operator: Builds, *operands: Number, **attributes: Any) -> Value:
        kinds = [v.dtype for v in operands if isinstance(v, Value) and v.dtype.kind != "b"]
        dtype = kinds[0] if kinds else np.dtype(np.int64)
        return self._node.emit(operator, *(self.value(v, dtype) for v in operands), **attributes)
