"""The function on buffers under construction: its arguments, sizes, and buffers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from xdsl.dialects import func, memref
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    UNKNOWN_LOC,
    LocationAttr,
    MemRefType,
    StringAttr,
    TensorType,
    i64,
)
from xdsl.dialects.utils import split_dynamic_index_list
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue
from xdsl.utils.exceptions import PassFailedException

from ...core.algebra.dims import Dim, Shape, product
from ...core.errors import explain
from ...core.ir.provenance import origin
from ...core.ir.public_function import NAME
from ...core.ir.refusal import refused
from ...core.ir.symbols import find_symbol
from ...core.ir.typed import returned, tensor_type
from ...dialects.graph import ops as graph
from ...dialects.graph.buffers import buffer_types
from ...dialects.graph.sizes.attributes import argument_attributes
from ...dialects.graph.sizes.computed import bounds_of
from ...dialects.graph.sizes.shapes import SymbolicShapes
from ...dialects.loop import ops as loop
from ...dialects.loop.proofs.levels import is_on_device
from ...dialects.rt import ops as rt
from ...dialects.sparse_tensor import is_sparse, part_count
from ...dialects.upstream import ops as upstream
from .sizes import SizeEmitter, block_of

Call = graph.CallDpsOp | graph.CallPackedOp
Producer = Call | graph.ControlFlowOp
"""The operations whose results are written to buffers."""


@dataclass(frozen=True)
class BufferPlace:
    """Where a buffer begins: at a number of bytes of the arena, or in a buffer of the caller."""

    memory: SSAValue
    offset: SSAValue | None = None


class _Iteration:
    """An iteration of an operation, in a block; contexts with its number are made on demand."""

    def __init__(self, number: SSAValue, op: Operation, block: Block) -> None:
        self.number, self.op, self.block = number, op, block
        self._made: SSAValue | None = None

    def of(self, context: SSAValue) -> SSAValue:
        """The context in the iteration, made at the beginning of the block."""
        if self._made is None:
            made = rt.IterationOp(context, self.number, origin(self.op) or self.op.name)
            made.location = self.op.location
            if self.block.first_op is None:
                self.block.add_op(made)
            else:
                self.block.insert_op_before(made, self.block.first_op)
            self._made = made.result
        return self._made


class BufferFunction:
    """What replaces the public function, which is called `source`.

    Args:
        source: the function.
        has_device: whether loops for a device run on one.

    Attributes:
        block: the block of the function.
        current: the block that operations are appended to: that one, or one of a region.
        buffers: the buffers of tensors of the source, completed during the conversion.
        not_negative: sizes that have been checked, where the current block runs.
        spares: the buffers through which a value that a loop carries on rotates.
        places: where buffers begin whose sizes the program computes.
        spare_places: the same of spares.
        outputs: the buffers that the caller passes for each result.
        in_arena: the results whose sizes have no upper bound: callers find them in the arena.
        arena_end: where the memory ends that is in use where the current block runs; None before
            there is any.
        reported: the sizes in the shapes of results that the program computes, stored in a last
            argument, `report`, followed by the places where results begin in the arena.
    """

    def __init__(self, source: func.FuncOp, has_device: bool = True) -> None:
        self.source, self._has_device = source, has_device
        self.shapes = SymbolicShapes(source)
        self.returned = returned(source)
        self.block = self.current = Block()
        self.context = self.block.insert_arg(rt.ContextType(), 0)
        self.context.name_hint = "ctx"
        self.sizes = SizeEmitter(self.block)
        self.buffers: dict[SSAValue, list[SSAValue]] = {
            arg: self._arguments(tensor_type(arg), arg.name_hint) for arg in self.arguments
        }
        self.not_negative = [Dim.of(0)]
        self._iterations: list[_Iteration] = []
        self.spares: dict[SSAValue, list[SSAValue]] = {}
        self.places: dict[SSAValue, BufferPlace] = {}
        self.arena_end: SSAValue | None = None
        self.spare_places: dict[SSAValue, list[BufferPlace]] = {}
        self.outputs = [self._arguments(tensor_type(v), "result") for v in self.returned]
        dims = [dim for value in self.returned for dim in self.shapes.shape(value)]
        needed = {n for d in (*dims, *map(self.shapes.at_most, dims)) for n in d.symbols}
        self.reported = [name for name in self.shapes.computed if name in needed]
        self.in_arena = [
            v for v in self.returned if self.shapes.is_unbounded(*self.shapes.shape(v))
        ]
        if self.reported:
            kind = MemRefType(i64, [len(self.reported) + len(self.in_arena)])
            self.report = self.block.insert_arg(kind, len(self.block.args))
            self.report.name_hint = "sizes"
        for name, (number, dimension) in self.shapes.bindings.items():
            arg = self.arguments[number]
            with self.standing_for(arg.location):
                self.sizes.symbols[name] = self._size(arg, dimension)
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
                largest = map(self.shapes.at_most, self.shapes.shape(value))
                names = {name for dim in largest for name in dim.symbols}
                for name in sorted(names.difference(self.shapes.computed)):
                    self.sizes.symbol(name, op, _hint(op))

    def view(self, value: SSAValue, shape: Shape, op: Operation) -> SSAValue:
        """The buffer at the place of a value, in a shape that `op` needs."""
        (kind,) = buffer_types(tensor_type(value))
        return self.view_at(self.places[value], kind, shape, op)

    def destination(self, value: SSAValue, op: Operation) -> list[SSAValue]:
        """The buffer for a result, of the upper bounds of sizes that `op` computes."""
        if value in self.buffers:
            return self.buffers[value]
        computed = self.shapes.computed.items()
        own = bounds_of({name: size for name, size in computed if size.value in op.results})
        shape = self.shapes.shape(value)
        largest = tuple(dim.at_most(own) for dim in shape)
        made = [self.view(value, largest, op)]
        if largest == shape:
            self.buffers[value] = made
        return made

    def is_placed_by_branch(self, op: graph.IfOp, result: SSAValue) -> bool:
        """Whether a result is in memory that a branch takes: nothing around it bounds its size."""
        computed = self.shapes.computed
        sizes = (computed.get(name) for dim in self.shapes.shape(result) for name in dim.symbols)
        return any(size is not None and size.op is op and size.bound is None for size in sizes)

    def begin(self, value: SSAValue, op: Operation) -> None:
        """Make the buffer of a result whose sizes are known now, if it has none."""
        if value in self.places and value not in self.buffers:
            self.buffers[value] = [self.view(value, self.shapes.shape(value), op)]

    def alias(self, result: SSAValue, value: SSAValue, buffers: Sequence[SSAValue]) -> None:
        """Give a result the buffers of a value, and the place where they begin if it is known."""
        self.buffers[result] = [*buffers]
        if value in self.places:
            self.places[result] = self.places[value]

    def settle(self, op: graph.ControlFlowOp) -> None:
        """Make the buffers of the spares of an operation, with upper bounds of unknown sizes."""
        computed = self.shapes.computed.items()
        unknown = bounds_of({n: size for n, size in computed if n not in self.sizes.symbols})
        for value, places in self.spare_places.items():
            if value not in self.spares and block_of(value) in op.bodies:
                (kind,) = buffer_types(tensor_type(value))
                shape = tuple(dim.at_most(unknown) for dim in self.shapes.shape(value))
                self.spares[value] = [self.view_at(place, kind, shape, op) for place in places]

    def view_at(self, place: BufferPlace, kind: Attribute, shape: Shape, op: Operation) -> SSAValue:
        """The buffer at a place, in a shape that `op` needs."""
        assert isinstance(kind, MemRefType)
        pairs = list(zip(shape, kind.get_shape(), strict=True))
        dims = [dim if size == DYNAMIC_INDEX else Dim.of(size) for dim, size in pairs]
        sizes = [
            self.size(dim, op) if size == DYNAMIC_INDEX else size
            for dim, (_, size) in zip(dims, pairs, strict=True)
        ]
        if place.offset is not None:
            dynamic = [size for size in sizes if isinstance(size, SSAValue)]
            return self.insert(memref.ViewOp(place.memory, place.offset, dynamic, kind))
        inner = [product(tuple(dims[axis + 1 :])) for axis in range(len(dims))]
        strides = [dim.value if dim.is_static else self.size(dim, op) for dim in inner]
        known_sizes, sizes = split_dynamic_index_list(sizes, DYNAMIC_INDEX)
        known_strides, strides = split_dynamic_index_list(strides, DYNAMIC_INDEX)
        made = upstream.ReinterpretCastOp(
            place.memory, [], sizes, strides, [0], known_sizes, known_strides, kind
        )
        return self.insert(made)

    def size(self, dim: Dim, op: Operation) -> SSAValue:
        """A symbolic dimension, which `op` needs, as an index value."""
        return self.sizes.value(dim, op, _hint(op))

    def may_be_negative(self, *dims: Dim) -> bool:
        """Whether one of some sizes is not known to be 0 or more, where the current block runs."""
        return not all(any(_is_above(dim, least) for least in self.not_negative) for dim in dims)

    def subject(self, value: SSAValue) -> str:
        """The name of an argument in error messages."""
        if isinstance(value, BlockArgument):
            name = argument_attributes(self.source, value.index).get(NAME)
            return f'input "{name.data if isinstance(name, StringAttr) else f"arg{value.index}"}"'
        return (origin(value.owner) if isinstance(value.owner, Operation) else None) or "value"

    def kernel(self, call: graph.CallDpsOp) -> loop.KernelOp:
        """The kernel that is called, with a parameter for each buffer."""
        kernel = find_symbol(self.source, call.callee)
        if not isinstance(kernel, loop.KernelOp):
            raise refused(call, f"there is no kernel {call.callee}")
        expected = len(kernel.body.block.args)
        got = sum(part_count(value.type) for value in (*call.arguments, *call.results))
        if expected != got:
            fact = f"wrong number of buffers for {call.callee}"
            raise refused(call, fact, expected=expected, got=got)
        return kernel

    def is_on_device(self, kernel: loop.KernelOp) -> bool:
        """Whether the target has a device, and a kernel runs there."""
        return self._has_device and is_on_device(kernel)

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
        to the block of the function comes before it. Memory that the block takes is free after it.
        """
        outer, symbols, known = self.current, dict(self.sizes.symbols), [*self.not_negative]
        end = self.arena_end
        self.current = self.sizes.current = block
        yield
        self.current = self.sizes.current = outer
        self.sizes.symbols, self.not_negative, self.arena_end = symbols, known, end

    @contextmanager
    def iteration(self, number: SSAValue, op: Operation) -> Iterator[None]:
        """Let checks in the context report the number of an iteration of `op`."""
        self._iterations.append(_Iteration(number, op, self.current))
        yield
        self._iterations.pop()

    @property
    def is_repeated(self) -> bool:
        """Whether the current block is in a loop."""
        return bool(self._iterations)

    @property
    def check_context(self) -> SSAValue:
        """The context for checks, which has the numbers of the iterations around them."""
        context = self.context
        for iteration in self._iterations:
            context = iteration.of(context)
        return context

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


def _is_above(dim: Dim, other: Dim) -> bool:
    """Whether a size is another one plus something that is not negative."""
    return all(factor > 0 for _, factor in (dim - other).terms)


def location_of(value: SSAValue) -> LocationAttr:
    """The location of the definition of a value."""
    source = value if isinstance(value, BlockArgument) else value.owner
    assert isinstance(source, BlockArgument | Operation)
    return source.location


def _hint(op: Operation) -> str | None:
    """A hint for an unknown size."""
    return "name it in `dims`" if isinstance(op, Call) else None
