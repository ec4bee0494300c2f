"""The interface of conversions: reading a node, and adding operators to the program."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from onnx import AttributeProto, GraphProto, NodeProto
from xdsl.dialects.builtin import LocationAttr, TensorType
from xdsl.ir import Block, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from ...core.dims import Dim, Shape
from ...core.dtypes import dtype_of
from ...core.errors import ImportModelError
from ...core.provenance import named
from ...core.weights import WeightStore
from ...dialects.graph import ops as graph
from ...dialects.graph.interfaces import GraphOp, ShapeFacts, element_type
from .diagnostics import UnsupportedNodeError, broken
from .dtypes import element_type as element_type_of
from .dtypes import numpy_dtype
from .tensors import array_of, check_shape
from .values import Value, is_simple, is_static, settled, static_shape

LARGEST_FOLDED = 1 << 16
"""The largest operand, in elements, for which a result is computed at import instead of by an
operator."""

LARGEST_CONSTANT = 1 << 24
"""The same for nodes that can only be computed at import."""


class Builds(Protocol):
    """A constructor of an operator of the `graph` dialect."""

    def __call__(self, *operands: Any, **attributes: Any) -> Operation: ...


class ConvertsGraph(Protocol):
    """Converts a subgraph for values of its inputs, in the current region; returns its outputs."""

    def __call__(self, body: GraphProto, inputs: Sequence[Value], /) -> list[Value]: ...


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
        op.location = location
        for body in op.bodies:
            assert body.last_op is not None
            body.last_op.location = location
        op.verify()
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


class Node:
    """A node of the model, as an input of a conversion.

    An attribute that the conversion does not read makes the node unsupported: none is ignored by
    accident. `ignore` is for those without an effect at inference.

    Attributes:
        name: the name of the node in the model.
        operator: the ONNX operator.
        opset: the version of its domain.
        inputs: operands, None for an omitted one.
        outputs: names of the results, "" for an unused one.
        convert: converts a subgraph.
    """

    def __init__(
        self,
        proto: NodeProto,
        name: str,
        opset: int,
        inputs: Sequence[Value | None],
        attributes: Mapping[str, AttributeProto],
        emitter: Emitter,
        folder: Path | None,
        convert: ConvertsGraph,
    ) -> None:
        self.name = name
        self.operator = proto.op_type
        self.opset = opset
        self.inputs = inputs
        self.outputs = list(proto.output)
        self._attributes = attributes
        self._read: set[str] = set()
        self._emitter = emitter
        self._folder = folder
        self._location = named(name)
        self.convert = convert

    # Errors

    @property
    def origin(self) -> str:
        return f'node "{self.name}"'

    def broken(self, fact: str, expected: object = None, got: object = None) -> ImportModelError:
        """The error for a node that is not valid ONNX; the caller raises it."""
        subject = f"onnx.{self.operator}"
        return broken(fact, subject=subject, expected=expected, got=got, origin=self.origin)

    def unsupported(self, reason: str) -> UnsupportedNodeError:
        """The error for a node that cannot be expressed; the caller raises it."""
        return UnsupportedNodeError(reason)

    # Operands

    def input(self, index: int) -> Value:
        """A required operand."""
        value = self.optional(index)
        if value is None:
            raise self.broken(f"operand {index} is missing")
        return value

    def optional(self, index: int) -> Value | None:
        """An operand that may be omitted."""
        return self.inputs[index] if index < len(self.inputs) else None

    def variadic(self) -> list[Value]:
        """All operands, at least one."""
        if not self.inputs:
            raise self.broken("operands are missing", "at least 1", 0)
        return [self.input(index) for index in range(len(self.inputs))]

    def wants(self, index: int) -> bool:
        """Whether result `index` is used."""
        return index < len(self.outputs) and bool(self.outputs[index])

    def contents(self, index: int) -> np.ndarray:
        """The elements of an operand, which must be known; an object array of `Dim` if symbolic."""
        value = self.input(index)
        if value.contents is None:
            raise self.unsupported(f'operand {index} ("{value.name}") must be a constant')
        return value.contents

    def dims(self, index: int) -> list[Dim]:
        """A known operand of integers as dimensions, which may be symbolic."""
        array = self.contents(index)
        if array.dtype != object and not np.issubdtype(array.dtype, np.integer):
            raise self.broken(f"operand {index} has the wrong type", "integers", array.dtype.name)
        if array.ndim > 1:
            raise self.broken(f"operand {index} has the wrong rank", "at most 1", array.ndim)
        if array.size > LARGEST_FOLDED:
            raise self.broken(f"operand {index} is too long", f"<= {LARGEST_FOLDED}", array.size)
        return [d if isinstance(d, Dim) else Dim.of(int(d)) for d in array.flat]

    def integers(self, index: int) -> list[int]:
        """A known operand of integers that does not depend on symbolic dimensions."""
        dims = self.dims(index)
        if not is_static(dims):
            raise self.unsupported(f"operand {index} depends on a symbolic dimension")
        return [dim.value for dim in dims]

    def axis(self, axis: int, rank: int, *, inclusive: bool = False) -> int:
        """An axis counted from the front; `inclusive` also allows the end of the shape."""
        if not -rank <= axis < rank + inclusive:
            limit = f"{-rank} <= axis {'<=' if inclusive else '<'} {rank}"
            raise self.broken("axis out of range", limit, axis)
        return axis + rank if axis < 0 else axis

    def axes(self, axes: Iterable[int], rank: int) -> list[int]:
        """Axes counted from the front, each once."""
        found = [self.axis(axis, rank) for axis in axes]
        if len(set(found)) < len(found):
            raise self.broken("an axis is named twice", got=found)
        return found

    # Attributes

    def has(self, name: str) -> bool:
        """Whether an attribute is given."""
        return name in self._attributes

    def attr_int(self, name: str, default: int = 0) -> int:
        found = self._attribute(name, AttributeProto.INT)
        return default if found is None else found.i

    def attr_float(self, name: str, default: float = 0.0) -> float:
        found = self._attribute(name, AttributeProto.FLOAT)
        return default if found is None else found.f

    def attr_string(self, name: str, default: str = "") -> str:
        found = self._attribute(name, AttributeProto.STRING)
        return default if found is None else found.s.decode(errors="replace")

    def attr_ints(self, name: str) -> list[int] | None:
        found = self._attribute(name, AttributeProto.INTS)
        return None if found is None else list(found.ints)

    def attr_floats(self, name: str) -> list[float] | None:
        found = self._attribute(name, AttributeProto.FLOATS)
        return None if found is None else list(found.floats)

    def attr_strings(self, name: str) -> list[str] | None:
        found = self._attribute(name, AttributeProto.STRINGS)
        return None if found is None else [s.decode(errors="replace") for s in found.strings]

    def attr_tensor(self, name: str) -> np.ndarray | None:
        found = self._attribute(name, AttributeProto.TENSOR)
        if found is None:
            return None
        return array_of(found.t, self._folder, f'attribute "{name}" of {self.origin}')

    def attr_dtype(self, name: str, default: np.dtype | None = None) -> np.dtype:
        """An attribute that is an ONNX element type."""
        if default is not None and not self.has(name):
            return default
        return numpy_dtype(self.attr_int(name))

    def attr_graph(self, name: str) -> GraphProto:
        """A subgraph, which must be there."""
        found = self._attribute(name, AttributeProto.GRAPH)
        if found is None:
            raise self.broken(f'attribute "{name}" is missing')
        return found.g

    def ignore(self, *names: str) -> None:
        """Mark attributes that have no effect at inference."""
        self._read.update(names)

    def insist(self, only: Mapping[str, int | str]) -> None:
        """Require given values of attributes.

        Raises:
            UnsupportedNodeError: if one has another value.
        """
        for name, value in only.items():
            text = isinstance(value, str)
            got = self.attr_string(name, value) if text else self.attr_int(name, value)
            if got != value:
                raise self.unsupported(f"attribute {name} = {got} is not supported, only {value}")

    def unread(self) -> list[str]:
        """Unread attributes, sorted."""
        return sorted(set(self._attributes) - self._read)

    def _attribute(self, name: str, kind: int) -> AttributeProto | None:
        self._read.add(name)
        found = self._attributes.get(name)
        if found is not None and found.type != kind:
            names = AttributeProto.AttributeType
            got = names.Name(found.type) if found.type in names.values() else found.type
            raise self.broken(f'attribute "{name}" has the wrong type', names.Name(kind), got)
        return found

    # Results

    def emit(self, build: Builds, *operands: Value | None, **attributes: Any) -> Value:
        """Add an operator with one result; see `emit_all`."""
        (result,) = self.emit_all(build, *operands, **attributes)
        return result

    def emit_all(self, build: Builds, *operands: Value | None, **attributes: Any) -> list[Value]:
        """Add an operator.

        Args:
            build: the class of the operator.
            operands: its operands; None for an omitted one.
            attributes: keyword arguments of its constructor.
        """
        given = [value for value in operands if value is not None]
        values = [
            None if value is None else self._emitter.ssa(value, self._location)
            for value in operands
        ]
        try:
            op = build(*values, **attributes)
            return self._emitter.emit(op, [value.shape for value in given], self._location)
        except VerifyException as error:
            raise self._refused(error) from error

    def ssa(self, value: Value) -> SSAValue:
        """The IR value of a value, in the current region."""
        return self._emitter.ssa(value, self._location)

    def holder(self, size: Dim) -> tuple[Value, int] | None:
        """An input of numbers with a dimension of this size, and its axis."""
        return self._emitter.holders.get(size)

    def computed_size(self) -> Dim:
        """A new size that is computed at run time."""
        return self._emitter.computed_size()

    def is_computed(self, dim: Dim) -> bool:
        """Whether a size depends on one that is computed at run time."""
        return self._emitter.is_computed(dim)

    def take(self, block: Block) -> None:
        """Move the operators of a block to the end of the current region."""
        for op in list(block.ops):
            op.detach()
            self._emitter.body.add_op(op)

    def inside(self, body: Block) -> AbstractContextManager[None]:
        """Add operators to the block of a region within the context."""
        return self._emitter.inside(body)

    def add(self, op: graph.ControlFlowOp, shapes: Sequence[Shape]) -> list[Value]:
        """Add an operation with regions, whose results have these shapes."""
        try:
            return self._emitter.add(op, shapes, self._location)
        except VerifyException as error:
            raise self._refused(error) from error

    def known(self, contents: np.ndarray, dtype: np.dtype | None = None) -> Value:
        """A value with known contents: numbers, or an object array of `Dim`."""
        if contents.dtype == object:
            dtype = dtype or np.dtype(np.int64)
            numbers = settled(contents, dtype)
            if numbers is None:
                raise self.unsupported("a symbolic dimension in the result is too complex")
            contents = numbers
        return Value("", dtype or contents.dtype, static_shape(contents), contents)

    def scalar(self, number: float, like: Value) -> Value:
        """A constant scalar of the element type of `like`.

        Raises:
            UnsupportedNodeError: if the number is not an integer but the element type is.
        """
        if like.dtype.kind != "f" and not float(number).is_integer():
            raise self.unsupported(f"not supported for {like.dtype.name}")
        return self.known(np.array(number, like.dtype))

    def _refused(self, error: VerifyException) -> ImportModelError | UnsupportedNodeError:
        """The error for an operator that rejects the shapes or types of its operands."""
        text = str(error).strip().splitlines()[-1].strip()
        if text.startswith("graph."):
            fact = text.partition(": ")[2]
            given = [value.shape for value in self.inputs if value is not None]
            # The actual sizes of symbols might fit: the model may be valid.
            return self.broken(fact) if all(map(is_static, given)) else self.unsupported(fact)
        types = sorted({value.dtype.name for value in self.inputs if value is not None})
        return self.unsupported(f"not supported for {', '.join(types)}")


def hint(value: SSAValue, name: str) -> None:
    """Name a value in the text of the IR after its name in the model, if possible."""
    word = re.sub(r"\W", "_", name, flags=re.ASCII)
    if value.name_hint is None and word and SSAValue.is_valid_name(word):
        value.name_hint = word
