"""Formulas on values of a model, written with NumPy: the operators that they mean are emitted.

A formula is a function of arrays such as ``np.floor((y + 0.5) / scale)``. Called with arrays it
computes numbers at import, called with a `FormulaTerm` it becomes operators that compute them in
each call, by NumPy's protocols for other kinds of arrays (NEP 13 and 18).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from ...core.algebra.dims import Dim
from ...dialects.graph import ops as graph
from ...dialects.graph.interfaces import GraphOp
from .elementwise import cast
from .nodes import ModelNode
from .values import Value

_F64 = np.dtype(np.float64)
_UFUNCS: dict[np.ufunc, type[GraphOp]] = {
    np.add: graph.AddOp,
    np.subtract: graph.SubOp,
    np.multiply: graph.MulOp,
    np.true_divide: graph.DivOp,
    np.maximum: graph.MaxOp,
    np.minimum: graph.MinOp,
    np.exp: graph.ExpOp,
    np.log: graph.LogOp,
    np.floor: graph.FloorOp,
    np.ceil: graph.CeilOp,
    np.rint: graph.RoundOp,
    np.absolute: graph.AbsOp,
    np.less: graph.LessOp,
    np.less_equal: graph.LessEqualOp,
    np.greater: graph.GreaterOp,
    np.greater_equal: graph.GreaterEqualOp,
    np.equal: graph.EqualOp,
    np.bitwise_or: graph.LogicalOrOp,
    np.bitwise_and: graph.LogicalAndOp,
}


class FormulaTerm(NDArrayOperatorsMixin):
    """A value of floats or bool in a formula, with broadcasting as NumPy has it.

    Numbers in a formula have the element type of its terms.

    >>> y = Term.of(node, node.known(np.arange(4)))   # doctest: +SKIP
    >>> np.floor(y / 2).value                         # doctest: +SKIP
    """

    def __init__(self, node: ModelNode, value: Value, dtype: np.dtype) -> None:
        self._node = node
        self._dtype = dtype
        self.value = value

    @classmethod
    def of(cls, node: ModelNode, number: Value | Dim, dtype: np.dtype = _F64) -> FormulaTerm:
        """A tensor of numbers, or a size."""
        value = node.number(number) if isinstance(number, Dim) else number
        return cls(node, cast(node, value, dtype), dtype)

    def as_type(self, dtype: type[np.generic]) -> Value:
        """The value with elements of another type."""
        return cast(self._node, self.value, np.dtype(dtype))

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if method != "__call__" or options or ufunc not in _UFUNCS:
            return NotImplemented
        return self._emit(_UFUNCS[ufunc], inputs)

    def __array_function__(
        self,
        function: Callable[..., Any],
        types: Sequence[type],
        inputs: Sequence[Any],
        options: dict[str, Any],
    ) -> Any:
        if function is not np.where or options:
            return NotImplemented
        return self._emit(graph.WhereOp, inputs)

    def _emit(self, build: type[GraphOp], inputs: Sequence[Any]) -> FormulaTerm:
        values = [x.value if isinstance(x, FormulaTerm) else self._known(x) for x in inputs]
        return FormulaTerm(self._node, self._node.apply(build, *values), self._dtype)

    def _known(self, number: Any) -> Value:
        array = np.asarray(number)
        return self._node.known(array if array.dtype.kind == "b" else array.astype(self._dtype))
