"""The interface of conversions: reading a node, and adding operators to the program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from onnx import AttributeProto, GraphProto, NodeProto
from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType

from ...core.algebra.dims import Dim
from ...core.ir.provenance import named
from ..importing.dtypes import element_type
from ..importing.emitter import Emitter
from ..importing.nodes import LARGEST_FOLDED, ModelNode
from ..importing.values import Value, is_static
from .dtypes import numpy_dtype
from .files import ExternalData
from .tensors import array_of


class ConvertsGraph(Protocol):
    """Converts a subgraph for values of its inputs, in the current region; returns its outputs."""

    def __call__(self, body: GraphProto, inputs: Sequence[Value], /) -> list[Value]: ...


class Node(ModelNode):
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
        branch: the same for one that need not be taken; see `BranchError`.
    """

    def __init__(
        self,
        proto: NodeProto,
        name: str,
        opset: int,
        inputs: Sequence[Value | None],
        attributes: Mapping[str, AttributeProto],
        emitter: Emitter,
        data: ExternalData,
        convert: ConvertsGraph,
        branch: ConvertsGraph,
        declared: Mapping[str, Sequence[int | None]],
    ) -> None:
        super().__init__(f"onnx.{proto.op_type}", name, inputs, emitter, named(name))
        self.operator = proto.op_type
        self.opset = opset
        self.outputs = list(proto.output)
        self._attributes = attributes
        self._read = {"consumed_inputs"}  # before opset 6: operands whose memory may be used again
        self._data = data
        self.convert, self.branch = convert, branch
        self._declared = declared

    # Operands

    def input(self, index: int) -> Value:
        """A required operand, which is a tensor."""
        value = self.operand(index)
        if value.items is not None:
            raise self.broken(f"operand {index} is a sequence or an empty optional", "a tensor")
        return value

    def operand(self, index: int) -> Value:
        """A required operand, which may be a sequence."""
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
        return self.dims_of(self.contents(index), index)

    def dims_of(self, array: np.ndarray, index: int) -> list[Dim]:
        """The contents of an operand of integers as dimensions."""
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

    def elements(self, index: int) -> list[Dim | Value]:
        """The elements of an operand of integers: sizes where known, else scalars of i64."""
        return self._elements(self.input(index), index)

    def _elements(self, value: Value, index: int) -> list[Dim | Value]:
        if value.contents is not None:
            return list(self.dims_of(value.contents, index))
        if value.parts:
            return [element for part in value.parts for element in self._elements(part, index)]
        if value.dtype.kind not in "iu" or value.rank > 1:
            got = f"{value.dtype.name}, rank {value.rank}"
            raise self.broken(f"operand {index} is wrong", "integers, rank 0 or 1", got)
        if not is_static(value.shape):
            raise self.unsupported(f"operand {index} has a symbolic number of elements")
        if not value.rank:
            return [self.wide(value)]
        flat = self.wide(value)
        ends = ((at, at + 1) for at in range(flat.shape[0].value))
        parts = [self.slice(flat, starts=[at], ends=[end]) for at, end in ends]
        return [self.reshape(part, shape=[]) for part in parts]

    def wide(self, value: Value) -> Value:
        """Integers as i64."""
        if value.dtype == np.int64:
            return value
        return self.cast(value, target=element_type(np.dtype(np.int64)))

    def declared_sizes(self, rank: int, result: int = 0) -> Sequence[int | None]:
        """The sizes that the model declares for a result; None where it does not."""
        name = self.outputs[result] if result < len(self.outputs) else ""
        sizes = self._declared.get(name, [None] * rank)
        if len(sizes) != rank:
            raise self.broken(f'"{name}" is declared with another rank', rank, len(sizes))
        return sizes

    def declared(self, shape: Sequence[int], dtype: np.dtype) -> TensorType:
        """The type of the first result, with sizes that the model declares where there is a -1."""
        sizes = self.declared_sizes(len(shape))
        for size, own in zip(sizes, shape, strict=True):
            if size is not None and own not in (-1, size):
                raise self.broken(f'"{self.outputs[0]}" is declared with another size', own, size)
        known = [size if own == -1 else own for size, own in zip(sizes, shape, strict=True)]
        return TensorType(element_type(dtype), [DYNAMIC_INDEX if n is None else n for n in known])

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
        return array_of(found.t, self._data, f'attribute "{name}" of {self.origin}')

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
