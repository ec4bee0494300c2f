"""Adding operators to the program, and inferring the symbolic shapes of their results."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from xdsl.dialects.builtin import LocationAttr, TensorType
from xdsl.ir import Block, Operation, SSAValue

from ...core.dims import Dim, Shape
from ...core.dtypes import dtype_of
from ...core.provenance import named
from ...core.weights import WeightStore
from ...dialects.graph import ops as graph
from ...dialects.graph.interfaces import GraphOp, ShapeFacts, element_type
from .diagnostics import UnsupportedNodeError
from .dtypes import element_type as element_type_of
from .sizes import check_shape
from .values import Value, is_simple


class Emitter:
    """Adds operators to the body of the program and infers the symbolic shapes of their results.

    Args:
        body: the block of the public function.
        weights: the store for initialisers.
        taken: the symbols of the inputs.
    """

    def __init__(self, body: Block, weights: WeightStore, taken: Collection[str] = ()) -> None:
        self.body = body
        self.weights = weights
        self.holders: dict[Dim, tuple[Value, int]] = {}
        self._fresh_symbols = 0
        self._stored: dict[int, tuple[str, np.ndarray]] = {}
        names = (f"size.{number}" for number in itertools.count())
        self._fresh_sizes = (Dim.symbol(name) for name in names if name not in taken)
        self._held: dict[SSAValue, Dim] = {}
        self._computed: set[str] = set()

    def fresh(self) -> Dim:
        """An unknown dimension."""
        self._fresh_symbols += 1
        return Dim.symbol(f"_{self._fresh_symbols}")

    def computed_size(self) -> Dim:
        """A new size that is computed at run time."""
        size = next(self._fresh_sizes)
        self._computed.update(size.symbols)
        return size

    def is_computed(self, dim: Dim) -> bool:
        """Whether a size depends on one that is computed at run time."""
        return not self._computed.isdisjoint(dim.symbols)

    def hold(self, value: Value) -> None:
        """Remember which value has a size, for tensors of that size that are made of nothing."""
        if value.dtype.kind == "b":
            return
        for axis, dim in enumerate(value.shape):
            if not dim.is_static:
                self.holders.setdefault(dim, (value, axis))

    def _size(self, scalar: SSAValue, bound: Dim) -> Dim:
        """The size that a scalar holds at run time."""
        if scalar not in self._held:
            self._held[scalar] = self.computed_size()
        return self._held[scalar]

    def emit(self, op: Operation, shapes: Sequence[Shape], location: LocationAttr) -> list[Value]:
        """Append `op`, whose operands have these shapes.

        Raises:
            VerifyException: if the operands do not fit together.
            ImportModelError: if a result is too large for any machine.
            UnsupportedNodeError: if a dimension of a result is too complex.
        """
        op.location = location
        op.verify()
        assert isinstance(op, GraphOp)
        results: list[Value] = []
        inferred = op.infer_shapes(shapes, ShapeFacts(op, self.fresh, held=self._size))
        for result, shape in zip(op.results, inferred, strict=True):
            dtype = dtype_of(element_type(result))
            check_shape([d.value if d.is_static else 1 for d in shape], dtype.itemsize, op.name)
            if not all(is_simple(d) for d in shape):
                raise UnsupportedNodeError("a dimension of the result is too complex")
            results.append(Value("", dtype, tuple(shape), ssa=result))
        self.body.add_op(op)
        return results

    def add(
        self, op: graph.ControlFlowOp, shapes: Sequence[Shape], location: LocationAttr
    ) -> list[Value]:
        """Append an operation with regions, whose results have these shapes.

        Raises:
            VerifyException: if its parts do not fit together.
        """
        op.verify()  # without a location, which the caller adds to an error
        op.location = location
        for body in op.bodies:
            assert body.last_op is not None
            body.last_op.location = location
        self.body.add_op(op)
        dtypes = [dtype_of(element_type(result)) for result in op.results]
        found = zip(dtypes, shapes, op.results, strict=True)
        return [Value("", dtype, tuple(shape), ssa=result) for dtype, shape, result in found]

    @contextmanager
    def inside(self, body: Block) -> Iterator[None]:
        """Append to the block of a region within the context."""
        outer, self.body = self.body, body
        try:
            yield
        finally:
            self.body = outer

    def ssa(self, value: Value, location: LocationAttr) -> SSAValue:
        """The IR value of `value`; known contents become a constant at their first use.

        Raises:
            UnsupportedNodeError: if the contents depend on a symbolic dimension.
        """
        if value.ssa is not None:
            return value.ssa
        assert value.contents is not None
        if value.is_symbolic:
            raise UnsupportedNodeError(
                "the size of a symbolic dimension is used as data"
                if not value.name
                else f'"{value.name}", the size of a symbolic dimension, is used as data'
            )
        if value.stored and value.name:
            location = named(value.name)
        constant = self._constant(value, value.contents)
        constant.location = location
        self.body.add_op(constant)
        value.ssa = constant.result
        hint(value.ssa, value.name)
        return value.ssa

    def _constant(self, value: Value, contents: np.ndarray) -> graph.ConstantOp:
        """A literal for a scalar; else a weight in the store, under the name of the value."""
        kind = TensorType(element_type_of(contents.dtype), contents.shape)
        if contents.size == 1:
            return graph.ConstantOp.literal(contents)
        # Each region has constants of its own, of the same arrays.
        if id(contents) not in self._stored:
            name = self.weights.add(value.name or "constant", np.ascontiguousarray(contents))
            self._stored[id(contents)] = name, contents
        return graph.ConstantOp.resource(self._stored[id(contents)][0], kind)


def hint(value: SSAValue, name: str) -> None:
    """Name a value in the text of the IR after its name in the model, if possible."""
    word = re.sub(r"\W", "_", name, flags=re.ASCII)
    if value.name_hint is None and word and SSAValue.is_valid_name(word):
        value.name_hint = word
