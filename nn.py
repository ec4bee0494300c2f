"""Modules of torch that multiply by sparse matrices: `SparseMatrix` and `SparseLinear`.

`torch.compile` takes no sparse tensors. A `SparseMatrix` has its entries in dense tensors, and its
product is written with operators of torch, so that it runs with and without a compiler, and has
gradients. With ``backend="stepwell"`` the positions of entries are constants, and sorted once:
by rows for the product, and by columns for its gradient.

It imports torch (`pip install 'stepwell[torch]'`).
"""

from __future__ import annotations

import math
from typing import Any, NoReturn

import numpy as np

from .core.errors import InputError, explain
from .frontends.torch.library import library

torch = library()


class SparseMatrix(torch.nn.Module):
    """A matrix of which only some entries are stored: ``matrix(x)`` is its product with x.

    The positions of the entries are buffers; `values` is a buffer too, or a parameter if it needs a
    gradient. Entries at the same position are summed.

    Args:
        rows: the row of each entry, int64 of shape [E].
        columns: the column of each entry, int64 of shape [E].
        values: the entries, floats of shape [E]; None for ones.
        shape: the numbers of rows and columns.

    Raises:
        InputError: if the tensors do not fit together, or a position is outside of the shape.
    """

    def __init__(self, rows: Any, columns: Any, values: Any, shape: tuple[int, int]) -> None:
        super().__init__()
        if values is None:
            values = torch.ones(len(rows))
        _check(rows, columns, values, shape)
        self.shape = torch.Size(shape)
        self.register_buffer("rows", rows)
        self.register_buffer("columns", columns)
        if isinstance(values, torch.nn.Parameter):
            self.values = values
        else:
            self.register_buffer("values", values)

    @staticmethod
    def of(matrix: Any) -> SparseMatrix:
        """The entries of a sparse tensor of torch (COO or CSR), or of a matrix of SciPy.

        Raises:
            InputError: if it is neither.
        """
        if hasattr(matrix, "tocoo"):
            coo = matrix.tocoo()
            parts = (np.asarray(coo.row, np.int64), np.asarray(coo.col, np.int64), coo.data)
            rows, columns, values = (torch.from_numpy(np.ascontiguousarray(x)) for x in parts)
            return SparseMatrix(rows, columns, values, coo.shape)
        if not isinstance(matrix, torch.Tensor) or matrix.layout == torch.strided:
            expected = "a sparse tensor of torch or a matrix of SciPy"
            _refuse("wrong matrix", expected, type(matrix).__name__)
        coo = matrix.to_sparse_coo().coalesce()
        rows, columns = coo.indices()
        return SparseMatrix(rows.clone(), columns.clone(), coo.values().clone(), coo.shape)

    @property
    def dtype(self) -> Any:
        """The element type."""
        return self.values.dtype

    def size(self, dim: int | None = None) -> Any:
        """The shape, or the size of a dimension."""
        return self.shape if dim is None else self.shape[dim]

    def forward(self, x: Any, values: Any = None) -> Any:
        """The product with a dense matrix [columns, F], of shape [rows, F].

        `values`, [E], take the place of those of the matrix.
        """
        factors = self.values if values is None else values
        read = x.index_select(0, self.columns) * factors.unsqueeze(1)
        return read.new_zeros(self.shape[0], x.shape[1]).index_add(0, self.rows, read)

    def extra_repr(self) -> str:
        return f"{tuple(self.shape)}, entries={len(self.rows)}"


def _check(rows: Any, columns: Any, values: Any, shape: Any) -> None:
    for name, given in (("rows", rows), ("columns", columns), ("values", values)):
        if not isinstance(given, torch.Tensor):
            _refuse(f"{name} is no tensor", "a tensor", type(given).__name__)
        if given.shape != (len(rows),):
            _refuse(f"{name} has the wrong shape", [len(rows)], list(given.shape))
    if not values.is_floating_point():
        _refuse("values are no floats", "floats", values.dtype)
    for name, given, size in (("rows", rows, shape[0]), ("columns", columns, shape[1])):
        if given.dtype != torch.int64:
            _refuse(f"{name} has the wrong dtype", torch.int64, given.dtype)
        outside = given[(given < 0) | (given >= size)]
        if len(outside):
            fact = f"an element of {name} is out of range"
            _refuse(fact, f"0 to {size - 1}", int(outside[0]))


def _refuse(fact: str, expected: object, got: object, subject: str = "SparseMatrix") -> NoReturn:
    raise InputError(explain(subject, fact, expected=expected, got=got))


class SparseLinear(torch.nn.Module):
    """``x @ weight.T + bias`` for a `SparseMatrix` x of shape [N, in_features].

    It takes the place of a `torch.nn.Linear`, such as ``conv.lin`` of a layer of torch-geometric.

    Args:
        in_features: columns of the matrix.
        out_features: columns of the result.
        bias: whether a bias is added.
        dropout: the probability with which an entry of x is zero during training.
    """

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.dropout = dropout
        self.weight = torch.nn.Parameter(torch.empty(out_features, in_features))
        self.bias = torch.nn.Parameter(torch.empty(out_features)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weights as Glorot and Bengio (2010) do, and set the bias to zero."""
        bound = math.sqrt(6 / (self.in_features + self.out_features))
        torch.nn.init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            torch.nn.init.zeros_(self.bias)

    def forward(self, x: SparseMatrix) -> Any:
        """The result, of shape [N, out_features]."""
        if not isinstance(x, SparseMatrix):
            got = type(x).__name__
            _refuse("wrong features", "a SparseMatrix", got, subject="SparseLinear")
        values = torch.nn.functional.dropout(x.values, self.dropout, self.training)
        y = x(self.weight.t(), values)
        return y if self.bias is None else y + self.bias

    def extra_repr(self) -> str:
        flags = f"bias={self.bias is not None}, dropout={self.dropout}"
        return f"{self.in_features}, {self.out_features}, {flags}"
