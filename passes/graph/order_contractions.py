"""The order of a sparse and a dense product is chosen by the number of multiply-adds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ...core.context import decide
from ...core.dims import Dim
from ...core.provenance import fuse
from ...dialects.graph import ops as graph
from ...dialects.graph.interfaces import rank
from ...dialects.graph.shapes import SymbolicShapes

_Product = graph.MatmulOp | graph.DenseOp


@dataclass(frozen=True)
class Chain:
    """``a x w`` with a sparse `a`: `inner` is the product that is computed first."""

    inner: graph.SpmmOp | _Product
    outer: graph.SpmmOp | _Product

    @property
    def a(self) -> SSAValue:
        """The sparse matrix."""
        return cast(graph.SpmmOp, self.outer if self.sparse_last else self.inner).a

    @property
    def x(self) -> SSAValue:
        """The dense matrix in the middle."""
        return self.inner.operands[0 if self.sparse_last else 1]

    @property
    def product(self) -> _Product:
        """The dense product, whose second operand is `w`."""
        return cast(_Product, self.inner if self.sparse_last else self.outer)

    @property
    def sparse_last(self) -> bool:
        """Whether it is ``a (x w)`` and not ``(a x) w``."""
        return isinstance(self.outer, graph.SpmmOp)

    def costs(self, shapes: SymbolicShapes) -> tuple[Dim, Dim]:
        """The multiply-adds of ``a (x w)`` and of ``(a x) w``."""
        # p k n + e n  and  e k + m k n  for a: m x p with e entries, x: p x k, w: k x n
        rows, entries = shapes.shape(self.a)[0], shapes.nnz(self.a) or Dim.of(0)
        inner, width = shapes.shape(self.x)
        columns = shapes.shape(self.product.results[0])[1]
        sparse_last = inner * width * columns + entries * columns
        return sparse_last, entries * width + rows * width * columns

    def swap(self) -> None:
        """Compute the other product first."""
        product = type(self.product)
        w = self.product.operands[1]
        if self.sparse_last:
            first: Operation = graph.SpmmOp(self.a, self.x)
            second: Operation = product(first, w, result_type=self.outer.results[0].type)
        else:
            first = product(self.x, w)
            second = graph.SpmmOp(self.a, first, result_type=self.outer.results[0].type)
        first.location = second.location = fuse([self.inner, self.outer])
        Rewriter.insert_op(first, InsertPoint.before(self.outer))
        Rewriter.replace_op(self.outer, second)
        Rewriter.erase_op(self.inner)


def _chain(outer: Operation) -> Chain | None:
    """The chain that ends in `outer`, if its inner product is used by nothing else."""
    if isinstance(outer, graph.SpmmOp):
        inner = outer.x.owner
        if not _is_product(inner):
            return None
    elif _is_product(outer):
        inner = outer.operands[0].owner
        if not isinstance(inner, graph.SpmmOp):
            return None
    else:
        return None
    chain = Chain(cast(_Product, inner), cast(_Product, outer))
    return chain if chain.inner.results[0].has_one_use() else None


def _is_product(op: object) -> bool:
    """Whether `op` multiplies two matrices and does nothing else."""
    if isinstance(op, graph.DenseOp):
        return op.bias is None and rank(op.x) == 2
    return isinstance(op, graph.MatmulOp) and rank(op.a) == rank(op.b) == 2


def _is_less(a: Dim, b: Dim) -> bool:
    """Whether `a` is less than `b` for all sizes of 1 or more."""
    coefficients = [count for _, count in (b - a).terms]
    return bool(coefficients) and all(count > 0 for count in coefficients)


def _order(ctx: Context, chain: Chain, shapes: SymbolicShapes) -> None:
    outer = chain.outer
    last, first = chain.costs(shapes)
    kept, other = (last, first) if chain.sparse_last else (first, last)
    texts = ("a (x w)", "(a x) w") if chain.sparse_last else ("(a x) w", "a (x w)")
    if _is_less(other, kept):
        what, less, more = f"order {texts[1]} instead of {texts[0]}", other, kept
        chain.swap()
    else:
        what, less, more = f"order {texts[0]}", kept, other
    decide(ctx, outer, what, f"the other one has {more} multiply-adds", f"{less} multiply-adds")


@dataclass(frozen=True)
class GraphOrderContractionsPass(ModulePass):
    """Compute ``a x w`` with a sparse `a` as ``a (x w)`` or ``(a x) w``, whichever is less work.

    Before:

    ```mlir
    #csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed) }>
    !csr = tensor<9x9xf32, #csr>
    func.func @main(%a: !csr, %x: tensor<9x2xf32>, %w: tensor<2x8xf32>) -> tensor<9x8xf32> {
      %p = graph.matmul %x, %w : (tensor<9x2xf32>, tensor<2x8xf32>) -> tensor<9x8xf32>
      %y = graph.spmm %a, %p : (!csr, tensor<9x8xf32>) -> tensor<9x8xf32>
      func.return %y : tensor<9x8xf32>
    }
    ```

    After:

    ```mlir
    #csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed) }>
    !csr = tensor<9x9xf32, #csr>
    func.func @main(%a: !csr, %x: tensor<9x2xf32>, %w: tensor<2x8xf32>) -> tensor<9x8xf32> {
      %p = graph.spmm %a, %x : (!csr, tensor<9x2xf32>) -> tensor<9x2xf32>
      %y = graph.matmul %p, %w : (tensor<9x2xf32>, tensor<2x8xf32>) -> tensor<9x8xf32>
      func.return %y : tensor<9x8xf32>
    }
    ```

    Sizes and entry counts may be symbolic: an order is changed where the other one is less
    work for all sizes.

    Requires: `graph.normalize` not decomposed yet, which would put operators in between.
    Leaves: the operators as they are but for their order.
    """

    name = "graph-order-contractions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [f for f in op.walk() if isinstance(f, func.FuncOp)]:
            if not function.body.blocks or "graph.primitive" in function.attributes:
                continue
            chains = [c for inner in function.walk() if (c := _chain(inner)) is not None]
            shapes = SymbolicShapes(function) if chains else None
            done: set[Operation] = set()
            for chain in chains:
                if shapes is None or {chain.inner, chain.outer} & done:
                    continue
                done |= {chain.inner, chain.outer}
                _order(ctx, chain, shapes)
