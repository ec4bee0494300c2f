"""Sizes of tensors as index expressions over the sizes of a kernel's arguments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects import arith, memref
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr

from ...core.algebra.dims import Dim
from ...core.building.arithmetic import INDEX
from ...core.building.sizes import affine_size
from ...dialects.graph.nests.loop_nest import LoopNest
from ...dialects.graph.sizes.shapes import SymbolicShapes
from .arguments import KernelArgument, SparseArgument


class ArgumentSizes:
    """Emits sizes, each once, on first use.

    A size that a scalar among the arguments holds is that of a result, if one has it.

    Args:
        nest: receives their operations.
        arguments: those of the kernel for each argument of the primitive function.
        results: the results of the function, with their buffers.
        shapes: the shapes of the primitive function.
    """

    def __init__(
        self,
        nest: LoopNest,
        arguments: Sequence[KernelArgument],
        results: Sequence[tuple[SSAValue, SSAValue]],
        shapes: SymbolicShapes,
    ) -> None:
        self._nest, self._arguments, self._shapes = nest, arguments, shapes
        self._known: dict[Dim, AffineExpr] = {}
        self._results = {
            dim: (buffer, axis)
            for value, buffer in results
            for axis, dim in enumerate(shapes.shape(value))
            if not dim.is_static and shapes.is_given(dim)
        }
        self._quotients = dict(_quotients(shapes))

    def of(self, dim: Dim) -> AffineExpr | None:
        """A symbolic dimension; None if it does not follow from the sizes of the arguments."""
        if dim not in self._known:
            others = (Dim.symbol(name) for name in dim.symbols if name not in self._quotients)
            if not all(map(self._shapes.is_given, others)):
                return None
            if dim in self._results and self._shapes.is_computed(dim):
                size = self._buffer_size(*self._results[dim])
                self._known[dim] = self._nest.index(size)
            else:
                self._known[dim] = affine_size(dim, self._symbol, self._product)
        return self._known[dim]

    def _product(self, left: AffineExpr, right: AffineExpr) -> AffineExpr:
        nest = self._nest
        return nest.index(nest.insert(arith.MuliOp(nest.value(left), nest.value(right))))

    def _symbol(self, name: str) -> AffineExpr:
        key = Dim.symbol(name)
        if key not in self._known and name in self._quotients:
            dividend, divisor = self._quotients[name]
            self._known[key] = affine_size(dividend, self._symbol, self._product) // divisor
        elif key not in self._known:
            if self._shapes.is_computed(key) and key in self._results:
                size = self._buffer_size(*self._results[key])
            else:
                size = self._argument_size(*self._shapes.binding_of(name))
            self._known[key] = self._nest.index(size)
        return self._known[key]

    def _argument_size(self, number: int, dimension: int | str) -> SSAValue:
        """The size of a dimension of an argument of the primitive function."""
        source = self._arguments[number]
        if not isinstance(source, SparseArgument) and dimension == "value":
            return self._nest.load(source, ())
        if not isinstance(source, SparseArgument):
            return self._buffer_size(source, int(dimension))
        if dimension == 1:
            assert source.columns is not None
            return source.columns
        if dimension == "nnz":
            return self._buffer_size(source.values, 0)
        rows = self._buffer_size(source.indptr, 0)
        return self._nest.insert(arith.SubiOp(rows, self._nest.constant(1, INDEX)))

    def _buffer_size(self, buffer: SSAValue, dimension: int) -> SSAValue:
        return self._nest.insert(memref.DimOp(buffer, self._nest.constant(dimension, INDEX)))


def _quotients(shapes: SymbolicShapes) -> Iterator[tuple[str, tuple[Dim, int]]]:
    """Sizes that are exact quotients of sizes of the arguments, such as 1/4 of one.

    The exactness is checked where the function is called: n * 4 == m.
    """
    for left, right, _ in shapes.equalities:
        for one, other in ((left, right), (right, left)):
            if len(one.terms) != 1 or shapes.is_given(one) or not shapes.is_given(other):
                continue
            ((names, divisor),) = one.terms
            if names == one.symbols:
                yield names[0], (other, divisor)
