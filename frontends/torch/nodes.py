"""The interface of conversions: the node of an exported program."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from ...core.algebra.dims import Dim
from ..importing.elementwise import cast
from ..importing.emitter import Emitter
from ..importing.nodes import ModelNode
from ..importing.shapes import reshaped
from ..importing.values import Value
from .computed import computed_size
from .dtypes import BFLOAT16, numpy_dtype, promoted
from .places import location_of, module_path, source_of
from .registry import Conversion
from .sizes import TorchSizes

_F16, _F32 = np.dtype(np.float16), np.dtype(np.float32)


class ConvertsGraphs(Protocol):
    """Converts the graphs of modules of `torch.fx`, such as the branches of a condition."""

    def inlined(self, owner: Any, given: Sequence[Any], /) -> list[Any]:
        """Convert a graph in the current region, for these inputs; returns its results."""
        ...

    def in_region(self, owner: Any, given: Sequence[Any], /) -> list[Any]:
        """The same in a region of its own, which is the current one."""
        ...


_NUMBERS = {"SymFloat": np.dtype(np.float64), "SymInt": np.dtype(np.int64)}
"""The element types of numbers of Python that follow from sizes."""


class Node(ModelNode):
    """A call of an operator in an exported program.

    Attributes:
        fx: the node of `torch.fx`.
        sizes: the dimensions for the symbols of the program.
        values: the results of the nodes so far.
        graphs: converts graphs that are arguments.
    """

    index = np.dtype(np.int64)
    """The element type of indices and sizes."""

    def __init__(
        self,
        fx: Any,
        values: Mapping[Any, Any],
        emitter: Emitter,
        sizes: TorchSizes,
        graphs: ConvertsGraphs,
    ) -> None:
        inputs = [values.get(operand) for operand in fx.all_input_nodes]
        tensors = [value for value in inputs if isinstance(value, Value)]
        super().__init__(str(fx.target), module_path(fx), tensors, emitter, location_of(fx))
        self.fx = fx
        self.sizes = sizes
        self.values = values
        self.graphs = graphs

    # Results

    @property
    def results(self) -> list[Any]:
        """What torch knows of the results: a tensor, an integer or None for each."""
        found = self.fx.meta.get("val")
        return list(found) if isinstance(found, (list, tuple)) else [found]

    @property
    def dtype(self) -> np.dtype:
        """The element type of the first result; a number of Python has 64 bits."""
        known = self.results[0]
        if type(known).__name__ in _NUMBERS:
            return _NUMBERS[type(known).__name__]
        return numpy_dtype(known.dtype)

    @property
    def computing(self) -> np.dtype:
        """The element type in which torch computes the first result: f32 for 16 bits."""
        return _F32 if self.dtype in (_F16, BFLOAT16) else self.dtype

    @property
    def result_shape(self) -> list[Dim]:
        """The shape of the first result, as far as its sizes are known."""
        return [self.dimension(size) for size in self.results[0].shape]

    def uses(self, number: int) -> bool:
        """Whether a result of several is used."""
        return any(user.args[1] == number for user in self.fx.users if len(user.args) > 1)

    def places_of(self, mask: Value) -> list[Value]:
        """The indices of the elements of a mask that hold, one vector for each dimension.

        All that use a mask have the same ones, and so the same size.
        """
        if mask not in self.sizes.places:
            *places, _ = self.nonzero(mask)
            self.sizes.places[mask] = places
        return self.sizes.places[mask]

    def vector(self, value: Value, size: Dim) -> Value:
        """The elements of a value that has one dimension of this size, and others of 1."""
        if value not in self.sizes.vectors:
            self.sizes.vectors[value] = reshaped(self, value, [size])
        return self.sizes.vectors[value]

    def from_front(self, indices: Value, position: int, x: Value, axis: int) -> Value:
        """Indices along an axis of x, checked not to be negative; the same ones are checked once.

        They are the argument at a position, or its elements in another shape.
        """
        size = x.shape[axis]
        if (indices, size) not in self.sizes.checked:
            subject = self._described(source_of(self.fx.args[position]))
            if size.is_static:
                check = self.check_indices(indices, size=size.value, subject=subject)
            else:
                x, axis = self.holder(size) or (x, axis)
                check = self.check_indices(indices, x, axis=axis, subject=subject)
            self.sizes.checked[indices, size] = check
        return self.sizes.checked[indices, size]

    def _described(self, source: Any) -> str | None:
        """What errors call an input or a constant of the program; None for other values."""
        value = self.values[source]
        if source.op == "call_function" or not value.name:
            return None
        return f'{"constant" if value.stored else "input"} "{value.name}"'

    def hold(self, value: Value) -> None:
        """A value has sizes that others may be made with."""
        self._emitter.hold(value)

    # Arguments

    def dimension(self, size: Any) -> Dim:
        """A size: an integer, a dimension, or what torch has for it.

        Raises:
            UnsupportedNodeError: if it has an unknown symbol or function.
        """
        if isinstance(size, Dim):
            return size
        if isinstance(size, Value):
            raise self.unsupported("a size that is an element of a tensor")
        found = self.sizes.dim(size)
        if found is None:
            # Windows make such sizes, and then a value has them.
            floors = self.sizes.dim(size, floors=True)
            found = floors if floors is not None and self._is_held(floors) else None
        return computed_size(self, self.sizes, size.node.expr) if found is None else found

    def _is_held(self, size: Dim) -> bool:
        """Whether a value has a size, or values have all that it is computed from."""
        atoms = map(Dim.atom, size.atoms)
        return self.holder(size) is not None or all(self.holder(one) for one in atoms)

    def dims(self, sizes: Sequence[Any]) -> list[Dim]:
        """Sizes, which may be symbolic."""
        return [self.dimension(size) for size in sizes]

    def integer(self, size: Any, what: str) -> int:
        """A size that is a number.

        Raises:
            UnsupportedNodeError: if it is symbolic.
        """
        found = self.dimension(size)
        if not found.is_static:
            raise self.unsupported(f"{what} that is symbolic dimension {found}")
        return found.value

    def operand(self, x: Any, dtype: np.dtype) -> Value:
        """A tensor, or a number as a tensor without dimensions, of an element type."""
        if isinstance(x, Dim) and not x.is_static:
            x = self.number(x)
        if isinstance(x, Value):
            return cast(self, x, dtype)
        return self.known(np.array(x.value if isinstance(x, Dim) else x).astype(dtype))

    def wide(self, x: Any) -> Value:
        """A tensor or a number in the element type in which torch computes the first result."""
        return self.operand(x, self.computing)

    def common(self, *operands: Any) -> list[Value]:
        """Tensors and numbers in the element type in which torch computes with them."""
        values = [x for x in operands if isinstance(x, Value)]
        tensors = [x.dtype for x in values if x.rank]
        scalars = [x.dtype for x in values if not x.rank]
        numbers: list[object] = [
            0 if isinstance(x, Dim) else x for x in operands if not isinstance(x, Value)
        ]
        dtype = promoted(tensors, scalars, numbers)
        return [self.operand(x, dtype) for x in operands]


def rounds_once(convert: Conversion) -> Conversion:
    """A conversion of operands that `Node.wide` gives; its result is rounded to its own type."""

    @functools.wraps(convert)
    def converted(node: Node, *args: Any, **options: Any) -> Value:
        return cast(node, convert(node, *args, **options), node.dtype)

    return converted
