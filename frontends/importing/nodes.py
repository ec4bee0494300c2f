"""The interface of conversions: adding operators for a node of a model."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import numpy as np
from xdsl.dialects.builtin import LocationAttr, TensorType
from xdsl.ir import Block, SSAValue
from xdsl.utils.exceptions import VerifyException

from ...core.algebra.dims import Dim, Shape
from ...core.dtype_names import is_cut
from ...core.dtypes import dtype_of
from ...core.errors import ImportModelError, explain
from ...core.ir.provenance import named
from ...core.ir.typed import dense_array
from ...dialects.graph import ops as graph
from ...dialects.graph.interfaces import GraphOp, tensor_type
from ...dialects.graph.op_builder import Arguments, OpBuilder
from .diagnostics import UnsupportedNodeError
from .dtypes import element_type
from .emitter import Emitter
from .values import Value, from_dims, is_static, settled, static_shape

Number = Value | Dim | float
"""A scalar, a size, or a number."""
_I64 = np.dtype(np.int64)
LARGEST_FOLDED = 1 << 16
"""The largest operand, in elements, for which a result is computed at import instead of by an
operator."""
LARGEST_CONSTANT = 1 << 24
"""The largest result that is, and the largest operand of nodes that can only be computed there."""


class ModelNode(OpBuilder[Value]):
    """A node of a model that becomes operators of the `graph` dialect.

    Attributes:
        name: the name of the node in the model.
        subject: its operator in errors, such as ``onnx.Gemm``.
        inputs: operands, None for an omitted one.
        folds: whether operators of known operands are computed at once, by their references.
        withheld: the results that are only an error where they are needed, by number: why.
        remarks: what users are told of how it is read: what was done, why, and the cost.
    """

    def __init__(
        self,
        subject: str,
        name: str,
        inputs: Sequence[Value | None],
        emitter: Emitter,
        location: LocationAttr,
    ) -> None:
        self.name = name
        self.subject = subject
        self.inputs = inputs
        self.folds = False
        self.withheld: dict[int, str] = {}
        self.remarks: list[tuple[str, str, str]] = []
        self._emitter = emitter
        self._location = location

    # Errors

    @property
    def origin(self) -> str:
        return f'node "{self.name}"'

    def broken(self, fact: str, expected: object = None, got: object = None) -> ImportModelError:
        """The error for a node that is not valid; the caller raises it."""
        text = explain(self.subject, fact, expected=expected, got=got, origin=self.origin)
        return ImportModelError(text)

    def unsupported(self, reason: str, closest: str | None = None) -> UnsupportedNodeError:
        """The error for a node that cannot be expressed; the caller raises it."""
        return UnsupportedNodeError(reason, closest)

    # Operands

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

    # Results

    def apply(
        self, operator: type[GraphOp], *args: Any, name: str | None = None, **kwargs: Any
    ) -> Any:
        """Add an operator; an operand may also be a size, which becomes a scalar."""
        arguments = Arguments(operator, args, kwargs)
        typed = (v.dtype for v in arguments.typed if isinstance(v, Value))
        like = next(typed, _I64)
        arguments.convert(lambda x, _, own: self.value(x, dtype_of(own) if own else like))
        try:
            results = (self.folds and self._folded(arguments)) or self._added(arguments, name)
        except VerifyException as error:
            raise self._refused(error) from error
        return results[0] if len(results) == 1 else tuple(results)

    def _added(self, arguments: Arguments, name: str | None) -> list[Value]:
        location = self._location if name is None else named(name)
        op = arguments.build(lambda value: self._emitter.ssa(value, location))
        return self._emitter.emit(op, [value.shape for value in arguments.operands], location)

    def _folded(self, arguments: Arguments) -> list[Value] | None:
        """The results of an operator of known numbers, by its reference; None for another one.

        It may have at most `LARGEST_CONSTANT` elements in a result.
        """
        given = arguments.operands
        arrays = [value.contents for value in given if value.contents is not None]
        if len(arrays) < len(given) or any(value.is_symbolic for value in given):
            return None
        types = [TensorType(element_type(array.dtype), array.shape) for array in arrays]
        values = iter(Block(arg_types=types).args)
        op = arguments.build(lambda _: next(values))
        op.verify()
        sizes = [tensor_type(result).get_shape() for result in op.results]
        if any(math.prod(shape) > LARGEST_CONSTANT for shape in sizes):
            return None
        with np.errstate(all="ignore"):
            return [self.known(dense_array(array)) for array in op.reference(*arrays)]

    def ssa(self, value: Value) -> SSAValue:
        """The IR value of a value, in the current region."""
        return self._emitter.ssa(value, self._location)

    def holder(self, size: Dim) -> tuple[Value, int] | None:
        """A value of numbers with a dimension of this size, and its axis."""
        return self._emitter.holders.get(size)

    def hold(self, value: Value) -> None:
        """Remember which value has a size, until the end of the current region."""
        self._emitter.hold(value)

    def computed_size(self, bound: Dim | None = None) -> Dim:
        """A new size that is computed at run time, with an upper bound if that is known."""
        return self._emitter.computed_size(bound)

    @property
    def computed(self) -> frozenset[str]:
        """The names of all sizes so far that are computed at run time."""
        return self._emitter.computed

    def at_most(self, dim: Dim) -> Dim:
        """An upper bound of a size, in which only computed sizes are left that have none."""
        return self._emitter.at_most(dim)

    def size_of(self, scalar: Value) -> Dim:
        """The size that a scalar of i64 holds at run time."""
        return self._emitter.size_of(self.ssa(scalar))

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

    def append(self, op: graph.ControlFlowOp, shapes: Sequence[Shape]) -> list[Value]:
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

    def known_texts(self, texts: Sequence[str]) -> Value:
        """A vector of strings: their numbers in the table of the model."""
        table = self._emitter.texts
        numbers = np.array([table.setdefault(text, len(table)) for text in texts], np.int64)
        return replace(self.known(numbers), is_text=True)

    def number(self, size: Dim) -> Value:
        """A size as data, an i64 without dimensions."""
        contents = np.array(size.value) if size.is_static else from_dims([size], ())
        return self.known(contents, np.dtype(np.int64))

    def value(self, x: Number, dtype: np.dtype) -> Value:
        """A number as a scalar of an element type; a size as one of i64."""
        if isinstance(x, Value):
            return x
        return self.number(x) if isinstance(x, Dim) else self._scalar(x, dtype)

    def scalar(self, number: float, like: Value) -> Value:
        """A constant scalar of the element type of `like`.

        Raises:
            UnsupportedNodeError: if the number is not an integer but the element type is.
        """
        return self._scalar(number, like.dtype)

    def _scalar(self, number: float, dtype: np.dtype) -> Value:
        if is_cut(number, dtype):
            raise self.unsupported(f"not supported for {dtype.name}")
        return self.known(np.array(number, dtype))

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
