"""Calls of kernels, and of functions that are registered at run time; what is between them."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DYNAMIC_INDEX, FunctionType, MemRefType
from xdsl.ir import Attribute, Operation, SSAValue

from ...core.ir.refusal import refused
from ...core.ir.typed import tensor_type
from ...dialects.graph import ops as graph
from ...dialects.graph.buffers import buffer_types, storage_type
from ...dialects.graph.views import joined_at
from ...dialects.rt import ops as rt
from ...dialects.sparse_tensor import is_sparse
from .arena import Arena
from .checks import (
    assemble,
    check_bounds,
    check_indices,
    check_results,
    refuse_other_rows,
    refuse_unchecked,
)
from .computed import ComputedSizes
from .constants import Constants, as_type
from .function import BufferFunction, BufferPlace
from .regions import Regions


class CallConversion:
    """Converts the operations of the function: calls, constants, matrices, and control flow."""

    def __init__(self, function: BufferFunction, constants: Constants, arena: Arena) -> None:
        self.function, self.constants = function, constants
        self.sizes = ComputedSizes(function, constants.buffers_of, arena)
        self.regions = Regions(function, constants, self.sizes, self.convert)
        self._registered: dict[object, int] = {}

    def convert(self, op: Operation) -> None:
        """Convert an operation.

        Raises:
            PassFailedException: if it is none of these.
        """
        with self.function.standing_for(op.location):
            if op.parent is not self.function.source.body.block:
                check_results(self.function, op)
            self.sizes.before(op)
            if isinstance(op, graph.CallDpsOp):
                self._convert_call(op)
            elif isinstance(op, graph.CallPackedOp):
                self._convert_packed(op)
            elif isinstance(op, graph.ControlFlowOp):
                self.function.settle(op)
                self.regions.convert_control(op)
            elif isinstance(op, graph.AssembleOp):
                assemble(self.function, op, self.constants.buffers_of)
            elif isinstance(op, graph.CheckIndicesOp):
                check_indices(self.function, op, self.constants)
            elif isinstance(op, graph.CheckOp):
                self.regions.convert_check(op)
            elif isinstance(op, graph.ReshapeOp | graph.SliceOp) and self._is_view(op):
                self._convert_view(op)
            elif not isinstance(op, graph.ConstantOp) and joined_at(op) is None:
                hint = "graph-fuse-ops,convert-graph-to-loop make kernels of operators"
                raise refused(op, "cannot be converted to the run time", hint=hint)
            self.sizes.after(op)

    def _results(self, op: graph.CallDpsOp | graph.CallPackedOp) -> list[SSAValue]:
        """The buffers for the results of a call."""
        return [buffer for value in op.results for buffer in self.function.destination(value, op)]

    def _convert_call(self, op: graph.CallDpsOp) -> None:
        function = self.function
        kernel = function.kernel(op)
        arguments: list[SSAValue] = []
        for operand in op.arguments:
            arguments += self.constants.passed(operand, kernel, len(arguments), op)
        refuse_other_rows(kernel, op)
        refuse_unchecked(kernel, op)
        check_bounds(function, kernel, op, self.constants)
        arguments += self._results(op)
        types = [arg.type for arg in kernel.body.block.args]
        for number, (argument, type) in enumerate(zip(arguments, types, strict=True)):
            if not _can_be_cast(argument.type, type):
                fact = f"argument {number} of {op.callee} has another type"
                raise refused(op, fact, expected=type, got=argument.type)
        passed = [as_type(function, a, t) for a, t in zip(arguments, types, strict=True)]
        writes = len(kernel.outputs) if function.is_on_device(kernel) else None
        function.append(rt.CallOp(op.callee.string_value(), passed, writes))

    def _is_view(self, op: graph.ReshapeOp | graph.SliceOp) -> bool:
        """Whether a result is in the buffer of its operand, and the sizes of both are given."""
        shapes = self.function.shapes
        return op.is_alias and not shapes.is_computed(*shapes.shape(op.x), *shapes.shape(op.result))

    def _convert_view(self, op: graph.ReshapeOp | graph.SliceOp) -> None:
        """Give a result the buffer of its operand, or a row of it, in its own shape."""
        function, value = self.function, op.result
        shape = function.shapes.shape(value)
        (buffer,), (kind,) = self.constants.buffers_of(op.x), buffer_types(tensor_type(value))
        if isinstance(op, graph.SliceOp):
            assert op.row is not None
            buffer = function.insert(rt.SliceOp(buffer, function.sizes.index(op.row)))
        if buffer.type != kind:
            buffer = function.view_at(BufferPlace(buffer), kind, shape, op)
        function.buffers[value] = [buffer]

    def _convert_packed(self, op: graph.CallPackedOp) -> None:
        name, function = op.callee.data, self.function
        inputs = [b for operand in op.arguments for b in self.constants.buffers_of(operand)]
        outputs = self._results(op)
        types = tuple(buffer.type for buffer in inputs), tuple(buffer.type for buffer in outputs)
        tensors = _unclear([*op.arguments], [*op.results])
        slot = self._registered.setdefault((name, types, tensors), len(self._registered))
        function.append(
            rt.CallPackedOp(function.check_context, slot, name, inputs, outputs, tensors)
        )


def _can_be_cast(kind: Attribute, other: Attribute) -> bool:
    """Whether two types are equal, or those of buffers that differ in which sizes are static."""
    if not isinstance(kind, MemRefType) or not isinstance(other, MemRefType):
        return kind == other
    if kind.element_type != other.element_type or kind.get_num_dims() != other.get_num_dims():
        return False
    sizes = zip(kind.get_shape(), other.get_shape(), strict=True)
    return all(one == two or DYNAMIC_INDEX in (one, two) for one, two in sizes)


def _unclear(arguments: Sequence[SSAValue], results: Sequence[SSAValue]) -> FunctionType | None:
    """The tensors of a call, if its buffers do not determine them."""
    types = [tensor_type(value) for value in (*arguments, *results)]
    stored = [storage_type(kind.element_type) == kind.element_type for kind in types]
    if all(stored) and not any(map(is_sparse, types)):
        return None
    return FunctionType.from_lists(types[: len(arguments)], types[len(arguments) :])
