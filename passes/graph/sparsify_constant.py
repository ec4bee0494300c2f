"""Turn constant factors that are mostly zeros into sparse matrices where that is faster."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, TensorType, f32, f64
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ...core.ir.context import decide, weights_of
from ...core.ir.provenance import fuse
from ...core.ir.typed import owned
from ...core.ir.weights import WeightStore
from ...core.pipelines.actions import allowed
from ...core.pipelines.budgets import SUMS
from ...core.pipelines.exactness import Exactness
from ...dialects.graph import ops as graph
from ...dialects.graph.attrs import PRIMITIVE
from ...dialects.graph.interfaces import GraphOp, element_type, rank, set_result_types
from ...dialects.graph.known import elements_of, sizes_of
from ...dialects.graph.ops.sparse.sparse_forms import keeps_zero, sparse_form
from ...dialects.sparse_tensor import csr
from .rules.permission import Permission

_Product = graph.DenseOp | graph.MatmulOp

# Picoseconds on one core with vectors of 512 bits; docs/rationale/0015-sparse-or-dense.md says how
# they were measured.
_MULTIPLY_ADD = 10
_WEIGHT = 50
_ENTRY = 600
_ENTRY_COLUMN = 40
_ROW = 10_000
_MOVED = 1_000


def dense_cost(rows: int, inner: int, columns: int) -> int:
    """The time of the dense product with a matrix of rows x inner, in picoseconds.

    With few columns loading the matrix from memory dominates.
    """
    return rows * inner * max(columns * _MULTIPLY_ADD, _WEIGHT)


def sparse_cost(rows: int, inner: int, columns: int, entries: int, moved: bool) -> int:
    """The time of the sparse product; `moved` if both dense matrices are transposed for it."""
    product = entries * (_ENTRY + _ENTRY_COLUMN * columns) + rows * _ROW
    return product + (columns * (rows + inner) * _MOVED if moved else 0)


@dataclass(frozen=True)
class Candidate:
    """A product, a constant, and the operators between them, each with the index of the operand.

    `on_left` says whether the constant is the left factor, the only one that can be sparse. One on
    the right becomes it by ``x w^T == (w x^T)^T``.
    """

    product: _Product
    constant: graph.ConstantOp
    way: tuple[tuple[GraphOp, int], ...]
    on_left: bool

    @property
    def columns(self) -> int:
        """The columns of the dense matrix that the sparse one is multiplied by; -1 if unknown."""
        return sizes_of(self.product.result)[1 if self.on_left else 0]

    @property
    def upright(self) -> bool:
        """Whether the sparse matrix is the constant and not its transpose."""
        return self.on_left or isinstance(self.product, graph.DenseOp)


def _candidates(op: Operation) -> Iterator[Candidate]:
    if not isinstance(op, _Product) or rank(op.result) != 2 or rank(op.operands[0]) != 2:
        return
    for position, value in enumerate(op.operands[:2]):
        way: list[tuple[GraphOp, int]] = []
        while position == 0 and value.has_one_use() and (place := _place(value.owner)) is not None:
            step = owned(value, GraphOp)
            way.append((step, place))
            value = step.operands[place]
        constant = value.owner
        floats = rank(value) == 2 and element_type(value) in (f32, f64)
        if isinstance(constant, graph.ConstantOp) and floats:
            yield Candidate(op, constant, tuple(way), position == 0)


def _place(op: Operation | Block) -> int | None:
    """The index of the operand of `op` that, if it is sparse, makes the result sparse."""
    if isinstance(op, graph.MulOp | graph.DivOp):
        return next((n for n, v in enumerate(op.operands) if v.type == op.result.type), None)
    keeps = isinstance(op, graph.SliceOp) or (isinstance(op, GraphOp) and keeps_zero(op))
    return 0 if keeps else None


def _on_left(candidate: Candidate, sparse: SSAValue) -> list[GraphOp]:
    """The product with a sparse left matrix; empty if an operator has no sparse form."""
    new: list[GraphOp] = []
    value = sparse
    for op, place in (*reversed(candidate.way), (candidate.product, 0)):
        operands = list(op.operands)
        operands[place] = value
        made = sparse_form(op, operands)
        if made is None:
            for part in reversed(new):
                part.erase()
            return []
        new += made
        value = made[-1].results[0]
    return new


def _on_right(product: _Product, sparse: SSAValue) -> list[GraphOp]:
    """The product with a sparse matrix whose transpose is the right one."""
    # x w^T + b == (w x^T + b)^T  for a column b
    moved = graph.TransposeOp(product.operands[0], [1, 0])
    new: list[GraphOp] = [moved, graph.SpmmOp(sparse, moved)]
    if isinstance(product, graph.DenseOp) and product.bias is not None:
        column = graph.ReshapeOp(product.bias, [-1, 1])
        new += [column, graph.AddOp(new[-1], column)]
    return [*new, graph.TransposeOp(new[-1], [1, 0])]


@dataclass
class Sparsifier:
    """Rewrites products; a constant has one sparse copy, however many products use it."""

    ctx: Context
    permission: Permission
    assumed_size: int
    weights: WeightStore
    copies: dict[tuple[Operation, bool], SSAValue] = field(default_factory=dict)

    def visit(self, candidate: Candidate) -> bool:
        """Replace the product by a sparse one, if there is one and it is faster."""
        elements = elements_of(candidate.constant.result, self.weights)
        if elements is None or not elements.size:
            return False
        entries = int(np.count_nonzero(elements))
        pays, cost = self._compare(candidate, elements.shape, entries)
        key = candidate.constant.key or "constant"
        name = f'"{key}" has {entries} of {elements.size} elements'
        if not pays:
            if entries * 2 < elements.size:
                what = f"{name} and stays dense"
                why = "that is faster"
                decide(self.ctx, candidate.product, what, why, cost, kind="missed")
            return False
        if not self.permission.allows(Exactness.SPECIAL, candidate.product):
            why = "an operator after it would expose the value of 0 * NaN"
            decide(self.ctx, candidate.product, f"{name} and stays dense", why, cost, kind="missed")
            return False
        if not allowed("sparsify", candidate.product):
            return False
        sparse = self._copy(candidate, elements)
        new = (
            _on_left(candidate, sparse)
            if candidate.on_left
            else _on_right(candidate.product, sparse)
        )
        if not new:
            return False
        what = f"{name} and becomes a sparse matrix"
        decide(self.ctx, candidate.product, what, "that is faster", cost)
        parts = [op for op, _ in candidate.way]
        location = fuse([candidate.constant, *reversed(parts), candidate.product])
        for op in new:
            op.location = location
        set_result_types(new[-1], [candidate.product.result.type])
        Rewriter.replace_op(candidate.product, new)
        for part in parts:
            Rewriter.erase_op(part)
        return True

    def _compare(
        self, candidate: Candidate, shape: tuple[int, ...], entries: int
    ) -> tuple[bool, str]:
        """Whether the sparse product is faster, and both times as text."""
        rows, inner = shape if candidate.upright else shape[::-1]
        known, pays, cost = candidate.columns, True, ""
        for size in [known] if known >= 0 else [1, self.assumed_size]:
            dense = dense_cost(rows, inner, size)
            sparse = sparse_cost(rows, inner, size, entries, not candidate.on_left)
            pays = pays and sparse < dense
            cost = f"sparse {_time(sparse)}, dense {_time(dense)}, for {size} columns"
        return pays, cost

    def _copy(self, candidate: Candidate, elements: np.ndarray) -> SSAValue:
        """The sparse constant for a dense one."""
        from scipy.sparse import csr_array

        constant = candidate.constant
        known = constant, candidate.upright
        if known not in self.copies:
            matrix = csr_array(elements if candidate.upright else elements.T)
            matrix.indptr = matrix.indptr.astype(np.int32)
            matrix.indices = matrix.indices.astype(np.int32)
            key = self.weights.add(f"{constant.key or 'constant'}.sparse", matrix)
            kind = TensorType(element_type(constant.result), matrix.shape, csr())
            copy = graph.ConstantOp.resource(key, kind, int(matrix.nnz))
            copy.location = constant.location
            copy.result.name_hint = constant.result.name_hint
            Rewriter.insert_op(copy, InsertPoint.after(constant))
            self.copies[known] = copy.result
        return self.copies[known]


def _time(picoseconds: int) -> str:
    return f"{picoseconds / 1e6:.3g} us"


@Exactness.SPECIAL
@dataclass(frozen=True)
class GraphSparsifyConstantPass(ModulePass):
    """Multiply by a constant that is mostly zeros as a sparse matrix, where that is faster.

    Such constants are features, dense adjacency matrices, and pruned weights. Scales of rows and
    columns, slices of rows and operators that keep 0 between a constant on the left and its
    product apply to the stored elements. The choice follows from the sizes and the number of
    elements that are not 0 (`docs/rationale/0015-sparse-or-dense.md`); if a size is unknown, the
    sparse product must be faster both for 1 and for `assumed_size`.

    Before:

    ```mlir
    func.func @main(%x: tensor<512x8xf32>) -> tensor<64x8xf32> {
      %a = graph.constant dense<0.0> : tensor<64x512xf32>
      %y = graph.matmul %a, %x : (tensor<64x512xf32>, tensor<512x8xf32>) -> tensor<64x8xf32>
      func.return %y : tensor<64x8xf32>
    }
    ```

    After:

    ```mlir
    #csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed),
                                     posWidth = 32, crdWidth = 32 }>
    !csr = tensor<64x512xf32, #csr>
    func.func @main(%x: tensor<512x8xf32>) -> tensor<64x8xf32> {
      %a = graph.constant nnz = 0 dense_resource<constant.sparse> : !csr
      %y = graph.spmm %a, %x : (!csr, tensor<512x8xf32>) -> tensor<64x8xf32>
      func.return %y : tensor<64x8xf32>
    }
    ```

    A 0 is assumed to stay 0, whatever it is multiplied by.

    Requires: the arrays of constants, in the context.
    Order: preceded by `graph-order-contractions`, as the sparsity of products depends on their
        order; followed by `graph-order-contractions`, as the best order depends on the sparsity.
    Leaves: no unused constant.
    """

    name = "graph-sparsify-constant"
    budget = SUMS

    assumed_size: int = 1024
    """Unknown sizes are assumed to be between 1 and this."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        sparsifier = Sparsifier(ctx, Permission(op), self.assumed_size, weights_of(ctx))
        for function in [f for f in op.walk() if isinstance(f, func.FuncOp)]:
            if PRIMITIVE in function.attributes:
                continue
            for inner in list(function.walk()):
                for candidate in _candidates(inner):
                    if sparsifier.visit(candidate):
                        break
            for constant in [c for c in function.walk() if isinstance(c, graph.ConstantOp)]:
                if not constant.result.uses:
                    Rewriter.erase_op(constant)
