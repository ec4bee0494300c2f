"""Methods of `Builder` that make sparse matrices of edge lists."""

from __future__ import annotations

import numpy as np

from ..core.boundary.arrays import is_integer
from ..core.dtypes import ELEMENT_TYPES
from ..dialects.graph.ops.sources.constant import ConstantOp
from .diagnostics import input_error
from .parts import BuilderPart
from .values import Operand, Value


class EdgeLists(BuilderPart):
    """Sparse matrices whose entries are known at run time only."""

    def csr_from_edges(
        self,
        rows: Operand,
        columns: Operand,
        shape: tuple[int | Value, int | Value],
        values: Operand = None,
        dtype: str = "f32",
        name: str | None = None,
    ) -> tuple[Value, Value]:
        """The CSR matrix of an edge list, and the order of its entries.

        Entry k of the matrix is edge `order[k]` of the list. Edges of one row keep their order, and
        an edge that is there several times is several entries. ``b.gather(e, order, axis=0)``
        brings values of the edges, of shape [E, ...], into the order of the entries.

        Args:
            rows: the row of each edge, a vector of i32 or i64; a negative one counts from the back.
            columns: the column of each edge, a vector of the same length.
            shape: the numbers of rows and of columns: an integer, or a value whose first dimension
                has that size.
            values: the value of each edge, a vector of floats; by default all are 1.
            dtype: the element type of the matrix without `values`.
            name: the name of the model's node in messages; by default the caller's line.

        Raises:
            InputError: if the arguments do not fit.
        """
        if not isinstance(shape, tuple) or len(shape) != 2:
            raise input_error("csr_from_edges", "shape is not a pair", "(rows, columns)", shape)
        targets, sources = (self._nodes(size) for size in shape)
        parts = self.sort_edges(rows, columns, targets, sources, name=name)
        indptr, indices, order = parts
        if values is None:
            if dtype not in ELEMENT_TYPES:
                fact, known = "unknown element type", ", ".join(ELEMENT_TYPES)
                raise input_error("csr_from_edges", fact, known, dtype)
            values = self.cast(self.equal(order, order, name=name), dtype, name=name)
        else:
            values = self.gather(values, order, axis=0, name=name)
        return self.assemble(indptr, indices, values, sources, name=name), order

    def _nodes(self, size: int | Value) -> Value:
        """A value whose first dimension has a size."""
        if isinstance(size, Value):
            return size
        if not is_integer(size) or size < 0:
            expected = "a count, or a value with rows"
            raise input_error("csr_from_edges", "wrong number of rows or columns", expected, size)
        zeros = np.zeros(size, np.int8)
        return self._append(ConstantOp.literal(zeros)) if size else self.constant(zeros, "nodes")
