"""Readout: reduce the features of all nodes of a graph to one row.

Each is torch-geometric's ``global_..._pool``. For a batch of graphs, `batch` holds the index of the
graph of each node, as a constant of the layer or an argument of the program (`BatchSpec`); without
it, all nodes belong to one graph.
"""

from __future__ import annotations

import numpy as np

from ...core.boundary.arrays import refuse_mask
from ..builder import Value
from .context import Context
from .layers import Layer
from .weights import array_of, error, require_dense, whole


class _Pool(Layer):
    """Combine the rows of the nodes of each graph, by `kind`."""

    kind = ""

    def __init__(self, batch: np.ndarray | None = None, size: int | None = None) -> None:
        """Create the layer.

        Args:
            batch: the index of the graph of each node, of shape (N,); None for the batch that the
                program takes, or for one graph.
            size: the number of graphs; by default the largest index in `batch` plus one.

        Raises:
            InputError: if `batch` is not a vector of integers from 0 to size - 1.
        """
        # A tuple, because arrays in the fields of a layer are its weights.
        self.batch = None if batch is None else tuple(_numbers(type(self).__name__, batch))
        largest = max(self.batch, default=-1) if self.batch is not None else 0
        self.size = largest + 1 if size is None else whole(type(self).__name__, "size", size, 0)
        if largest >= self.size:
            fact = "batch is out of range"
            raise error(type(self).__name__, fact, f"0 to {self.size - 1}", largest)

    def emit(self, context: Context, x: Value, name: str) -> Value:
        subject = type(self).__name__
        require_dense(subject, f'layer "{name}"', x)
        b = context.builder
        if self.batch is None and context.batch is not None:
            return b.aggregate(context.batch.members, x, kind=self.kind)
        if self.batch is None:
            return b.reduce(x, self.kind, [0], True)
        if x.shape[0] not in (None, len(self.batch)):
            raise error(
                subject, "batch does not have one index per node", x.shape[0], len(self.batch)
            )
        from scipy.sparse import csr_array

        nodes = np.arange(len(self.batch))
        ones = np.ones(len(self.batch), np.float32)
        members = csr_array((ones, (self.batch, nodes)), shape=(self.size, len(nodes)))
        return b.aggregate(b.constant(members, f"{name}.batch", x.dtype), x, kind=self.kind)


class GlobalAddPool(_Pool):
    """The sum of the rows of each graph."""

    kind = "sum"


class GlobalMeanPool(_Pool):
    """The mean of the rows of each graph; 0 for a graph without nodes in a batch."""

    kind = "mean"


class GlobalMaxPool(_Pool):
    """The largest of the rows of each graph; 0 for a graph without nodes in a batch."""

    kind = "max"


def _numbers(subject: str, batch: np.ndarray) -> list[int]:
    refuse_mask(subject, batch)
    array = array_of(subject, "batch", batch)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        got = f"{array.dtype} of shape {array.shape}"
        raise error(subject, "batch is not a vector of integers", "one index per node", got)
    if array.size and int(array.min()) < 0:
        raise error(subject, "batch is out of range", "0 or more", int(array.min()))
    return [int(number) for number in array]
