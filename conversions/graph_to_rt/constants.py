"""Constants of the program: slots of the table of pointers, packed for some kernels."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import memref
from xdsl.dialects.builtin import AffineMapAttr, IntegerAttr, MemRefType, i64
from xdsl.ir import Attribute, Operation, SSAValue

from ...core.ir.refusal import refused
from ...core.ir.typed import owned, tensor_type
from ...core.ir.weights import WeightStore
from ...dialects.graph import ops as graph
from ...dialects.graph.buffers import buffer_types
from ...dialects.loop import ops as loop
from ...dialects.loop.arguments import PACKING
from ...dialects.program import EXTREMES
from ...dialects.rt import ops as rt
from ...dialects.sparse_tensor import is_sparse
from .function import BufferFunction


class Constants:
    """The buffers of operands; an array in a layout gets a slot on first use."""

    def __init__(self, function: BufferFunction, weights: WeightStore) -> None:
        self.function, self.weights = function, weights
        self._emitted: dict[tuple[str, Attribute, Attribute | None], rt.ConstantOp] = {}
        self._packed: dict[tuple[SSAValue, Attribute], list[SSAValue]] = {}
        self._literals: dict[Operation, str] = {}

    def buffers_of(self, value: SSAValue) -> list[SSAValue]:
        """The buffers of a value."""
        buffers = self.function.buffers
        if value not in buffers:
            op = owned(value, graph.ConstantOp)
            with self.function.inside(self.function.block):
                buffers[value] = self._constants(op, buffer_types(tensor_type(value)), None)
        return buffers[value]

    def extremes(self, op: graph.ConstantOp) -> SSAValue:
        """A buffer of the smallest and the largest element of a dense constant, if it has any."""
        kind = MemRefType(op.type.element_type, [2])
        with self.function.inside(self.function.block):
            return self._constant(op, f"{self._name(op)}.{EXTREMES}", kind, None)

    def passed(
        self, operand: SSAValue, kernel: loop.KernelOp, position: int, call: Operation
    ) -> list[SSAValue]:
        """The buffers of an operand of a call, in the layout of the kernel's argument."""
        packing = kernel.attrs_of(position).get(PACKING)
        if not isinstance(packing, AffineMapAttr):
            return self.buffers_of(operand)
        if not isinstance(operand.owner, graph.ConstantOp):
            raise refused(
                call,
                f"argument {position} of @{kernel.sym_name.data} is packed",
                expected="a constant",
                got=operand.type,
            )
        if (operand, packing) not in self._packed:
            types = [kernel.body.block.args[position].type]
            with self.function.inside(self.function.block):
                self._packed[operand, packing] = self._constants(operand.owner, types, packing)
        return self._packed[operand, packing]

    def _constants(
        self, op: graph.ConstantOp, types: Sequence[Attribute], packing: Attribute | None
    ) -> list[SSAValue]:
        name = self._name(op)
        if not is_sparse(op.result.type):
            return [self._constant(op, name, types[0], packing)]
        if op.nnz is None:
            raise refused(op, "number of stored entries is unknown")
        entries = op.nnz.value.data
        result: list[SSAValue] = []
        for part, kind in zip(("indptr", "indices", "values"), types, strict=True):
            assert isinstance(kind, MemRefType)
            size = entries if part != "indptr" else kind.get_shape()[0]
            exact = MemRefType(kind.element_type, [size])
            value = self._constant(op, f"{name}.{part}", exact, None)
            result.append(as_type(self.function, value, kind))
        return result

    def _name(self, op: graph.ConstantOp) -> str:
        """The name of the array of a constant in the weight store."""
        name = op.key
        if name is not None and name not in self.weights:
            return name
        array = op.array(self.weights)  # raises where it does not fit the type
        if name is None and op not in self._literals:
            self._literals[op] = self.weights.add("literal", array)
        return name or self._literals[op]

    def _constant(
        self, op: Operation, name: str, kind: Attribute, packing: Attribute | None
    ) -> SSAValue:
        assert isinstance(kind, MemRefType)
        # Regions have constants of their own, of the same arrays.
        key = name, kind, packing
        if key not in self._emitted:
            slot = len(self._emitted)
            constant = rt.ConstantOp(self.function.context, slot, name, kind, packing)
            constant.location = op.location
            self.function.insert(constant)
            self._emitted[key] = constant
        return self._emitted[key].result

    def renumber(self) -> None:
        """Number the slots of those that are used: regions may capture others."""
        used = [constant for constant in self._emitted.values() if constant.result.uses]
        for slot, constant in enumerate(used):
            constant.slot = IntegerAttr(slot, i64)


def as_type(function: BufferFunction, buffer: SSAValue, kind: Attribute) -> SSAValue:
    """A buffer, cast to a type in which other sizes are static."""
    if buffer.type == kind or not isinstance(kind, MemRefType):
        return buffer
    return function.insert(memref.CastOp.get(buffer, kind))
