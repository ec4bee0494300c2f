"""Adding operators to the program, and inferring the symbolic shapes of their results."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256

import numpy as np
from xdsl.dialects.builtin import LocationAttr, TensorType
from xdsl.ir import Block, Operation, SSAValue

from ...core.algebra.dims import Dim, Shape, SizeQuotient
from ...core.algebra.multiples import Multiples
from ...core.dtypes import dtype_of, is_low_bit
from ...core.ir.provenance import named
from ...core.ir.weights import WeightStore
from ...dialects.graph import ops as graph
from ...dialects.graph.interfaces import GraphOp, ShapeFacts, element_type, tensor_type
from ..specs import identifier
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
        texts: the strings of the model, and their numbers.
    """

    def __init__(
        self,
        body: Block,
        weights: WeightStore,
        taken: Collection[str] = (),
        texts: dict[str, int] | None = None,
    ) -> None:
        self.body = body
        self.weights = weights
        self.holders: dict[Dim, tuple[Value, int]] = {}
        self.multiples = Multiples()
        """The divisors that the operators so far demand of sizes."""
        self.texts = {} if texts is None else texts
        self._fresh_symbols = 0
        self._stored: dict[int, tuple[str, np.ndarray]] = {}
        self._first: dict[tuple[str, tuple[int, ...], bytes], np.ndarray] = {}
        names = (f"size.{number}" for number in itertools.count())
        self._fresh_sizes = (Dim.symbol(name) for name in names if name not in taken)
        self._held: dict[SSAValue, Dim] = {}
        self._computed: set[str] = set()
        self._limits: dict[str, Dim] = {}
        self._scalars: dict[str, SSAValue] = {}

    def fresh(self) -> Dim:
        """An unknown dimension."""
        self._fresh_symbols += 1
        return Dim.symbol(f"_{self._fresh_symbols}")

    def computed_size(self, bound: Dim | None = None) -> Dim:
        """A new size that is computed at run time, with an upper bound if that is known."""
        size = next(self._fresh_sizes)
        self._computed.update(size.symbols)
        if bound is not None:
            self._limits.update(dict.fromkeys(size.symbols, bound))
        return size

    @property
    def computed(self) -> frozenset[str]:
        """The names of all sizes so far that are computed at run time."""
        return frozenset(self._computed)

    def at_most(self, dim: Dim) -> Dim:
        """An upper bound of a size, in which only computed sizes are left that have none."""
        return dim.at_most(self._limits)

    def is_computed(self, dim: Dim) -> bool:
        """Whether a size depends on one that is computed at run time."""
        return not self._computed.isdisjoint(dim.symbols)

    def hold(self, value: Value) -> None:
        """Remember which value has a size, for tensors of that size that are made of nothing.

        One of a region has it until the end of that.
        """
        if is_low_bit(element_type_of(value.dtype)):
            return
        for axis, dim in enumerate(value.shape):
            if dim.is_static:
                continue
            known = self.holders.get(dim)
            if known is None or known[0].dtype.kind == "b" != value.dtype.kind:
                self.holders[dim] = value, axis

    def size_of(self, scalar: SSAValue, bound: Dim | None = None) -> Dim:
        """The size that a scalar of i64 holds at run time."""
        if scalar not in self._held:
            self._held[scalar] = size = self.computed_size(bound)
            self._scalars[size.symbols[0]] = scalar
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
        multiples = self.multiples
        facts = ShapeFacts(op, self.fresh, multiples.note, held=self.size_of, multiples=multiples)
        inferred = op.infer_shapes(shapes, facts)
        for result, known in zip(op.results, inferred, strict=True):
            declared = zip(known, tensor_type(result).get_shape(), strict=True)
            shape = [dim if size < 0 else Dim.of(size) for dim, size in declared]
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
        holders, self.holders = self.holders, dict(self.holders)
        try:
            yield
        finally:
            self.body, self.holders = outer, holders

    def ssa(self, value: Value, location: LocationAttr) -> SSAValue:
        """The IR value of `value`; known contents become a constant at their first use.

        Raises:
            UnsupportedNodeError: if the contents are a size that no input has, or it is a sequence.
        """
        if value.ssa is not None:
            return value.ssa
        if value.items is not None:
            raise UnsupportedNodeError("a sequence is only supported where its length is known")
        assert value.contents is not None
        if value.is_symbolic:
            value.ssa = self._numbers(value, location)
            return value.ssa
        if value.stored and value.name:
            location = named(value.name)
        constant = self._constant(value, value.contents)
        constant.location = location
        self.body.add_op(constant)
        value.ssa = constant.result
        hint(value.ssa, value.name)
        return value.ssa

    def _numbers(self, value: Value, location: LocationAttr) -> SSAValue:
        """A tensor of sizes, computed from those of the inputs."""
        assert value.contents is not None
        sizes = [self._number(dim, location) for dim in value.contents.flat]
        if value.contents.ndim == 0:
            joined = sizes[0]
        else:
            apart = [self._add(graph.ReshapeOp(size, [1]), location) for size in sizes]
            joined = self._add(graph.ConcatOp(apart, 0), location)
        if value.contents.ndim > 1:
            joined = self._add(graph.ReshapeOp(joined, value.contents.shape), location)
        if value.dtype == np.int64:
            return joined
        return self._add(graph.CastOp(joined, element_type_of(value.dtype)), location)

    def _number(self, dim: Dim, location: LocationAttr) -> SSAValue:
        """A size as a scalar of i64."""
        total: SSAValue | None = None
        for names, factor in dim.terms:
            factors = [self._symbol(name, location) for name in names]
            if factor != 1 or not factors:
                factors.append(self._add(graph.ConstantOp.literal(np.array(factor)), location))
            term = functools.reduce(lambda a, b: self._add(graph.MulOp(a, b), location), factors)
            total = term if total is None else self._add(graph.AddOp(total, term), location)
        zero = graph.ConstantOp.literal(np.array(0))
        return self._add(zero, location) if total is None else total

    def _symbol(self, name: str, location: LocationAttr) -> SSAValue:
        """The size called `name`, or a quotient of sizes, as a scalar of i64."""
        if isinstance(name, SizeQuotient):
            # Neither of them is negative, so that it is rounded down.
            divisor = self._add(graph.ConstantOp.literal(np.array(name.divisor)), location)
            return self._add(graph.DivOp(self._number(name.dividend, location), divisor), location)
        if name in self._scalars:
            return self._scalars[name]
        holder = self.holders.get(Dim.symbol(name))
        if holder is None:
            raise UnsupportedNodeError(f"the size {name}, which no input has, is used as data")
        source, axis = holder
        return self._add(graph.DimOp(self.ssa(source, location), axis), location)

    def _add(self, op: Operation, location: LocationAttr) -> SSAValue:
        """Append an operator with one result."""
        op.location = location
        self.body.add_op(op)
        return op.results[0]

    def _constant(self, value: Value, contents: np.ndarray) -> graph.ConstantOp:
        """A literal for a number; else a weight in the store, under the name of the value."""
        kind = TensorType(element_type_of(contents.dtype), contents.shape)
        if contents.size == 1 and self.weights.name_of(contents) is None:
            return graph.ConstantOp.literal(contents)
        if not value.stored:
            contents = self._shared(contents)
        # Each region has constants of its own, of the same arrays.
        if id(contents) not in self._stored:
            held = contents if contents.flags.c_contiguous else np.ascontiguousarray(contents)
            name = self.weights.add(value.name or "constant", held)
            self._stored[id(contents)] = name, contents
        return graph.ConstantOp.resource(self._stored[id(contents)][0], kind)

    def _shared(self, contents: np.ndarray) -> np.ndarray:
        """The first array with these elements: of what is computed here, none gets new ones."""
        digest = sha256(np.ascontiguousarray(contents).reshape(-1).view(np.uint8).data).digest()
        key = contents.dtype.name, contents.shape, digest
        return self._first.setdefault(key, contents)


def hint(value: SSAValue, name: str) -> None:
    """Name a value in the text of the IR after its name in the model, if possible."""
    word = identifier(re.sub(r"[^\w.]", "_", name, flags=re.ASCII))
    if value.name_hint is None and word is not None:
        value.name_hint = word
