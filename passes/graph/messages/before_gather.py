"""Operators on gathered slices, computed before the slices are gathered: what it costs, and how."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue

from ....core.algebra.dims import Dim, Shape, product
from ....core.dtypes import dtype_of
from ....core.ir.typed import owned
from ....core.pipelines.exactness import EXACT, ROUNDING, Exactness, states
from ....dialects.graph import ops as graph
from ....dialects.graph.attrs import is_float
from ....dialects.graph.interfaces import (
    FusionKind,
    GraphOp,
    Sizes,
    element_type,
    rank,
    tensor_type,
)
from ....dialects.graph.op_builder import InsertingBuilder
from ....dialects.graph.plan.chains import Cost
from ....dialects.sparse_tensor import is_sparse
from .linear_terms import Ends, LinearTerm, ends_of, terms_of

Product = graph.DenseOp | graph.MatmulOp
_ALL = (1 << 63) - 1
_WIDE = 4
"""Parts of a sum are stored without another rounding in element types of so many bytes or more."""


class BeforeGather(ABC):
    """Another way to compute an operator on slices that are gathered for each edge.

    Attributes:
        op: the operator, whose result is [E, ...].
        sizes: those of values.
    """

    exactness: Exactness
    """How exact it is."""

    def __init__(self, op: GraphOp, sizes: Sizes) -> None:
        self.op, self.sizes = op, sizes

    @property
    def result(self) -> Shape:
        """The shape of the result."""
        return self.sizes.shape(self.op.results[0])

    @property
    @abstractmethod
    def gathered(self) -> list[tuple[Ends, SSAValue]]:
        """What is gathered, and the values that slices are gathered of."""

    @abstractmethod
    def costs(self) -> tuple[Cost, Cost]:
        """What the operator costs as it is, and before slices are gathered."""

    @abstractmethod
    def emit(self, b: InsertingBuilder) -> SSAValue:
        """The result, by other operators."""

    def cost(self, flops: Dim, *moved: Shape) -> Cost:
        """The cost of some operations and of values that are read or written."""
        item = dtype_of(element_type(self.op.results[0])).itemsize
        return Cost(flops, sum(map(product, moved), Dim.of(0)) * item)


@states(ROUNDING, "w [x_i, x_j - x_i] == ((w_1 - w_2) x)_i + (w_2 x)_j")
class ProductBeforeGather(BeforeGather):
    """Sums of products of nodes, gathered: of each value there is one product.

    w [x_i, x_j - x_i] == ((w_1 - w_2) x)_i + (w_2 x)_j

    Where each column is that of one value, the sum is taken in another order and nothing else is.
    """

    def __init__(self, op: Product, terms: Sequence[LinearTerm], sizes: Sizes) -> None:
        super().__init__(op, sizes)
        self.product = op
        self.groups = dict[Ends | None, dict[tuple[object, ...], list[LinearTerm]]]()
        for term in terms:
            same = self.groups.setdefault(term.ends, {})
            same.setdefault((term.value, term.moves), []).append(term)
        if _is_reordered(terms) and dtype_of(element_type(op.results[0])).itemsize >= _WIDE:
            self.exactness = Exactness.OPEN

    @property
    def gathered(self) -> list[tuple[Ends, SSAValue]]:
        return [
            (ends, terms[0].value)
            for ends, group in self.groups.items()
            if ends is not None
            for terms in group.values()
        ]

    def costs(self) -> tuple[Cost, Cost]:
        x, result = self.sizes.shape(self.op.operands[0]), self.result
        own = self.cost(product(result) * x[-1] * 2, x, result)
        before = self.cost(Dim.of(0))
        for ends, group in self.groups.items():
            for first, *_ in group.values():
                made = (self.sizes.shape(first.value)[0], *result[1:])
                read = (*made[:-1], Dim.of(first.width))
                before += self.cost(product(made) * first.width * 2, read, made)
            if ends is not None:
                before += self.cost(Dim.of(0), result)
        return own, before

    def emit(self, b: InsertingBuilder) -> SSAValue:
        bias = self.product.bias if isinstance(self.product, graph.DenseOp) else None
        parts = list[SSAValue]()
        # The bias is added to nodes rather than to edges.
        for ends in sorted(self.groups, key=lambda ends: ends is None):
            made = [self._of(terms, b) for terms in self.groups[ends].values()]
            if bias is not None:
                first = owned(made[0], graph.DenseOp)
                first.operands = [first.x, first.w, bias]
                bias = None
            whole = _sum(made, b)
            parts.append(whole if ends is None else ends.of(whole, b))
        return _sum(parts, b)

    def _of(self, terms: Sequence[LinearTerm], b: InsertingBuilder) -> SSAValue:
        """The product of one value with the weights of all of its columns."""
        x, weights = terms[0].made(self.sizes, b), [self._weights(term, b) for term in terms]
        return b.apply(type(self.product), x, _sum(weights, b))

    def _weights(self, term: LinearTerm, b: InsertingBuilder) -> SSAValue:
        """The weights of the columns of a term."""
        whole = self.product.operands[1]
        axis = 1 if isinstance(self.product, graph.DenseOp) else 0
        starts, ends = [0, 0], [d.value if d.is_static else _ALL for d in self.sizes.shape(whole)]
        alone = ends[axis] == term.width
        starts[axis], ends[axis] = term.start, term.start + term.width
        part = whole if alone else b.slice(whole, starts, ends)
        if term.scale == 1:
            return part
        if term.scale == -1:
            return b.neg(part)
        return b.mul(part, term.scale)


@states(EXACT, "f(x_j) == f(x)_j")
class ElementwiseBeforeGather(BeforeGather):
    """f(x_j) == f(x)_j"""

    def __init__(self, op: GraphOp, ends: Ends, sizes: Sizes) -> None:
        super().__init__(op, sizes)
        self.ends = ends

    @property
    def gathered(self) -> list[tuple[Ends, SSAValue]]:
        found = map(ends_of, self.op.operands)
        return [(self.ends, one[1]) for one in found if one is not None]

    def costs(self) -> tuple[Cost, Cost]:
        rows = self.sizes.shape(self.gathered[0][1])[0]
        own, before = product(self.result), product((rows, *self.result[1:]))
        return self.cost(own), self.cost(before)

    def emit(self, b: InsertingBuilder) -> SSAValue:
        found = map(ends_of, self.op.operands)
        operands = [
            value if one is None else one[1]
            for value, one in zip(self.op.operands, found, strict=True)
        ]
        before, type = tensor_type(self.gathered[0][1]), tensor_type(self.op.results[0])
        sizes = [before.get_shape()[0], *type.get_shape()[1:]]
        made = self.op.create(
            operands=operands,
            result_types=[TensorType(type.element_type, sizes)],
            properties=self.op.properties,
        )
        return self.ends.of(b.insert(made), b)


def _sum(values: Sequence[SSAValue], b: InsertingBuilder) -> SSAValue:
    total, *others = values
    for value in others:
        total = b.add(total, value)
    return total


def _is_reordered(terms: Sequence[LinearTerm]) -> bool:
    """Whether each column of a sum of terms is one column of one of them, perhaps negative."""
    starts = [term.start for term in sorted(terms, key=lambda term: term.start)]
    ends = sorted(term.start + term.width for term in terms)
    apart = all(end <= start for end, start in zip(ends, starts[1:], strict=False))
    return apart and all(abs(term.scale) == 1 for term in terms)


def before_gather(op: object, sizes: Sizes) -> BeforeGather | None:
    """Another way to compute an operator on gathered slices; None if there is none."""
    if isinstance(op, graph.DenseOp | graph.MatmulOp):
        return _product(op, sizes)
    if isinstance(op, GraphOp) and op.fusion == FusionKind.ELEMENTWISE and len(op.results) == 1:
        return _elementwise(op, sizes)
    return None


def _product(op: Product, sizes: Sizes) -> ProductBeforeGather | None:
    """A product by a matrix, of slices that are gathered."""
    x, w = op.operands[:2]
    if rank(w) != 2 or rank(x) < 2 or not is_float(element_type(x)):
        return None
    terms = terms_of(x, sizes)
    if terms is None or all(term.ends is None for term in terms):
        return None
    found = ProductBeforeGather(op, terms, sizes)
    return found if _are_equally_long(found.gathered, sizes) else None


def _elementwise(op: GraphOp, sizes: Sizes) -> ElementwiseBeforeGather | None:
    """An operator on slices that are gathered in one way, and on what all slices share."""
    result, ends = sizes.shape(op.results[0]), set[Ends]()
    for operand in op.operands:
        shape, gathered = sizes.shape(operand), ends_of(operand)
        if is_sparse(operand.type):
            return None
        if gathered is not None and shape == result:
            ends.add(gathered[0])
        elif len(shape) == len(result) and shape[:1] != (1,):
            return None
    if len(ends) != 1:
        return None
    (found,) = ends
    # What the ends of an entry have are floats.
    if found.axis is not None and not is_float(element_type(op.results[0])):
        return None
    made = ElementwiseBeforeGather(op, found, sizes)
    return made if _are_equally_long(made.gathered, sizes) else None


def _are_equally_long(gathered: Sequence[tuple[Ends, SSAValue]], sizes: Sizes) -> bool:
    """Whether values that are gathered in one way have as many slices, as sums of them need."""
    counts = dict[Ends, Dim]()
    return all(
        counts.setdefault(ends, count) == count
        for ends, value in gathered
        for count in sizes.shape(value)[:1]
    )
