"""Products with sparse matrices that a model takes."""

from __future__ import annotations

from ...importing.shapes import reshaped, unsqueezed
from ...importing.values import Value
from ..nodes import Node
from ..registry import converts

_KINDS = {"sum": "sum", "mean": "mean", "amax": "max", "amin": "min"}


@converts("stepwell.sparse_mm.default")
def sparse_product(node: Node, a: Value, x: Value, reduce: str) -> Value:
    """The sum, mean or extremum of each row's products; 0 for a row without entries."""
    if reduce not in _KINDS:
        raise node.unsupported(f'reduce="{reduce}"', ", ".join(_KINDS))
    columns = x if x.rank == 2 else unsqueezed(node, x, [1])
    if reduce == "sum":
        y = node.spmm(a, columns)
    else:
        entries = node.entries(a)
        y = node.aggregate(a, columns, entries, kind=_KINDS[reduce])
    return y if x.rank == 2 else reshaped(node, y, y.shape[:1])
