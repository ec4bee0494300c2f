"""Sizes that are no sums of products of others, such as ``n // 2`` and ``min(n, 3)``.

They are computed at run time, as scalars of i64.
"""

from __future__ import annotations

import functools
from typing import Any

from ...core.algebra.dims import Dim
from ...dialects.graph import ops as graph
from ...dialects.graph.interfaces import GraphOp
from ..importing.elementwise import floor_quotient, modulo
from ..importing.nodes import ModelNode
from ..importing.values import Value
from .sizes import TorchSizes

_FOLDS: dict[str, type[GraphOp]] = {
    "Add": graph.AddOp,
    "Mul": graph.MulOp,
    "Min": graph.MinOp,
    "Max": graph.MaxOp,
}
_PAIRS = {"FloorDiv": floor_quotient, "Mod": modulo, "PythonMod": modulo}


def computed_size(node: ModelNode, sizes: TorchSizes, expression: Any) -> Dim:
    """The size that an expression of sympy stands for.

    Raises:
        UnsupportedNodeError: if it has an unknown symbol or function.
    """
    size = node.size_of(_evaluated(node, sizes, expression))
    sizes.name(str(expression), size)
    return size


def _evaluated(node: ModelNode, sizes: TorchSizes, expression: Any) -> Value:
    """The value of an expression as a scalar."""
    if (known := sizes.dim(expression)) is not None:
        return node.number(known)
    name = type(expression).__name__
    if name not in (*_FOLDS, *_PAIRS):
        raise node.unsupported(f"size {expression}", "sums, products, quotients, min and max")
    parts = [_evaluated(node, sizes, part) for part in expression.args]
    if name in _PAIRS:
        return _PAIRS[name](node, *parts)
    return functools.reduce(lambda a, b: node.apply(_FOLDS[name], a, b), parts)
