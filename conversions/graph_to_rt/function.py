"""The function on buffers under construction: its arguments, sizes, and buffers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from xdsl.dialects import func
from xdsl.dialects.builtin import (
    UNKNOWN_LOC,
    LocationAttr,
    StringAttr,
    TensorType,
)
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.utils.exceptions import PassFailedException

from ...core.dims import Dim
from ...core.errors import explain
from ...core.module import NAME
from ...core.provenance import origin
from ...core.refusal import refused
from ...core.symbols import find_symbol
from ...core.typed import returned, tensor_type
from ...dialects.graph import ops as graph
from ...dialects.graph.buffers import buffer_types
from ...dialects.graph.shapes import SymbolicShapes, argument_attributes
from ...dialects.loop import ops as loop
from ...dialects.rt import ops as rt
from ...dialects.sparse_tensor import is_sparse
from .sizes import Sizes

Call = graph.CallDpsOp | graph.CallPackedOp
Producer = Call | graph.ControlFlowOp
"""The operations whose results are written to buffers."""


class BufferFunction:
    """What replaces the public function, which is called `source`.

    Attributes:
        block: the block of the function.
        current: the block that operations are appended to: that one, or one of a region.
        buffers: the buffers of tensors of the source, completed during the conversion.
        spares: the buffers through which a value that a loop carries on rotates.
        outputs: the buffers that the caller passes for each result.
    """

    def __init__(self, source: func.FuncOp) -> None:
        self.source = source
        self.shapes = SymbolicShapes(source)
        self.returned = returned(source)
        self.block = self.current = Block()
        self.context = self.block.insert_arg(rt.ContextType(), 0)
        self.context.name_hint = "ctx"
        self.sizes = Sizes(self.block)
        self.buffers: dict[SSAValue, list[SSAValue]] = {
            arg: self._arguments(tensor_type(arg), arg.name_hint) for arg in self.arguments
        }
        self.spares: dict[SSAValue, list[SSAValue]] = {}
        self.outputs = [self._arguments(tensor_type(v), "result") for v in self.returned]
        self._bind_symbols()
        self._check_results()

    @property
    def arguments(self) -> tuple[BlockArgument, ...]:
        """The arguments of the source."""
        return self.source.body.block.args

    def _arguments(self, kind: TensorType, name: str | None) -> list[SSAValue]:
        """Add the arguments for a tensor."""
        result: list[SSAValue] = []
        for buffer in buffer_types(kind):
            arg = self.block.insert_arg(buffer, len(self.block.args))
            arg.name_hint = name
            result.append(arg)
        return result

    def _bind_symbols(self) -> None:
        """Find the value of each symbol among the arguments."""
        for name, (number, dimension) in self.shapes.bindings.items():
            arg = self.arguments[number]
            with self.standing_for(arg.location):
                self.sizes.symbols[name] = self._size(arg, dimension)

    def _size(self, arg: SSAValue, dimension: int | str) -> SSAValue:
        """A size of an argument: of a dimension, or the number of its stored entries."""
        buffers = self.buffers[arg]
        if dimension == "nnz":
            return self.sizes.of(buffers[2], 0)
        if not is_sparse(arg.type):
            return self.sizes.of(buffers[0], int(dimension))
        return buffers[3] if dimension else self.sizes.rows(buffers[0])

    def _check_results(self) -> None:
        """Refuse results that the caller cannot allocate from the sizes of arguments."""
        for number, value in enumerate(self.returned):
            if is_sparse(value.type):
                fact = f"result {number} is sparse"
                raise PassFailedException(
                    explain(self.source.name, fact, expected="a dense tensor", got=value.type)
                )
            op = value.owner
            if isinstance(op, Operation):
                for name in [name for dim in self.shapes.shape(value) for name in dim.symbols]:
                    self.sizes.symbol(name, op, _hint(op))

    def size(self, dim: Dim, op: Operation) -> SSAValue:
        """A symbolic dimension, which `op` needs, as an index value."""
        return self.sizes.value(dim, op, _hint(op))

    def subject(self, value: SSAValue) -> str:
        """The name of an argument in error messages."""
        if isinstance(value, BlockArgument):
            name = argument_attributes(self.source, value.index).get(NAME)
            return f'input "{name.data if isinstance(name, StringAttr) else f"arg{value.index}"}"'
        return (origin(value.owner) if isinstance(value.owner, Operation) else None) or "value"

    def kernel(self, call: graph.CallDpsOp) -> loop.KernelOp:
        """The kernel that is called."""
        kernel = find_symbol(self.source, call.callee)
        if not isinstance(kernel, loop.KernelOp):
            raise refused(call, f"there is no kernel {call.callee}")
        return kernel

    def append(self, op: Operation) -> None:
        """Add an operation at the end of the current block."""
        self.current.add_op(op)

    def insert(self, op: Operation) -> SSAValue:
        """Append an operation; return its result."""
        self.current.add_op(op)
        return op.results[0]

    @contextmanager
    def inside(self, block: Block) -> Iterator[None]:
        """Append to another block within the context.

        The operation with this block is appended after the context, so what is meanwhile appended
        to the block of the function comes before it.
        """
        outer, self.current = self.current, block
        yield
        self.current = outer

    @contextmanager
    def standing_for(self, location: LocationAttr) -> Iterator[None]:
        """Set the location of operations that are appended without one in the context."""
        before = {block: block.last_op for block in (self.block, self.current)}
        yield
        for block, last in before.items():
            op = block.first_op if last is None else last.next_op
            while op is not None:
                if op.location is UNKNOWN_LOC:
                    op.location = location
                op = op.next_op


def location_of(value: SSAValue) -> LocationAttr:
    """The location of the definition of a value."""
    source = value if isinstance(value, BlockArgument) else value.owner
    assert isinstance(source, BlockArgument | Operation)
    return source.location


def _hint(op: Operation) -> str | None:
    """A hint for an unknown size."""
    return "name it in `dims`" if isinstance(op, Call) else None
