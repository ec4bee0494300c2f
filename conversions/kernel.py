"""The kernel of a primitive function: a nest for each of its results, or for several of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import cast

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr, TensorType, UnitAttr
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue

from ..core.dims import Dim
from ..core.provenance import fuse
from ..core.refusal import refused
from ..dialects.graph.buffers import buffer_types
from ..dialects.graph.interfaces import GraphOp, Index, tensor_type
from ..dialects.graph.plan.nest_plan import NestPlan, ResultNest
from ..dialects.graph.shapes import SymbolicShapes
from ..dialects.loop import ops as loop
from .nest import Argument, NestBuilder, SparseArgument


def _arguments(function: func.FuncOp, block: Block) -> dict[SSAValue, Argument]:
    """Pair the arguments of a primitive function with those of its kernel."""
    result: dict[SSAValue, Argument] = {}
    position = 0
    for arg in function.body.block.args:
        count = len(buffer_types(cast(TensorType, arg.type)))
        values = block.args[position : position + count]
        position += count
        if count == 1:
            result[arg] = values[0]
        else:
            result[arg] = SparseArgument(
                values[0], values[1], values[2], values[3] if count == 4 else None
            )
        for value in values:
            value.name_hint = arg.name_hint
    return result


def _fill(
    block: Block,
    function: func.FuncOp,
    shapes: SymbolicShapes,
    outputs: Sequence[SSAValue],
    plan: NestPlan,
) -> None:
    """Write the nests that compute the results of the function into the body of a kernel."""
    nest = NestBuilder(block, _arguments(function, block), shapes, plan.staged)
    returned = cast(func.ReturnOp, function.body.block.last_op).arguments
    for planned in plan.nests:
        stores = [
            _Store(nest, returned[number], outputs[number], reshape)
            for number, reshape in zip(planned.results, planned.reshapes, strict=True)
        ]
        with nest.standing_for(stores[0].op), _loops(nest, planned) as index:
            for store in stores:
                with nest.standing_for(store.op):
                    store.at(index)


@contextmanager
def _loops(nest: NestBuilder, planned: ResultNest) -> Iterator[Index]:
    """Open the loops of a planned nest, for as long as the context lasts; gives the index."""
    source = planned.source
    dims = range(tensor_type(source).get_num_dims())
    if planned.entries is None:
        order = planned.order or list(dims)
        with nest.loops([nest.extent(source, dim) for dim in order]) as opened:
            yield tuple(opened[order.index(dim)] for dim in dims)
        return
    walked, matrix = planned.entries
    rest = [nest.extent(source, dim) for dim in dims if dim != walked]
    with nest.entry_loops(matrix, rest) as (position, *between):
        yield (*between[:walked], position, *between[walked:])


class _Store:
    """Stores a result of a function, index by index of the value that is looped over.

    That is the result itself, or what `reshape`, of which the result is made, reshapes.
    """

    def __init__(
        self, nest: NestBuilder, value: SSAValue, buffer: SSAValue, reshape: SSAValue | None
    ) -> None:
        self.nest, self.value, self.buffer, self.reshape = nest, value, buffer, reshape
        function = cast(Operation, value.owner.parent_op())
        self.op = value.owner if isinstance(value.owner, Operation) else function

    def at(self, index: Index) -> None:
        """Compute and store the element at an index."""
        if self.reshape is not None:
            own, op = index, cast(GraphOp, self.reshape.owner)
            index = cast(Index, op.result_index(self.nest, own))
            self.nest.know_reshaped(self.reshape, index, own)
        scalar = self.nest.at(self.value, index)
        stored = self.nest.stored(scalar, tensor_type(self.value).element_type)
        self.nest.store(stored, self.buffer, index)


def build_kernel(
    function: func.FuncOp, constant: Sequence[bool], shapes: SymbolicShapes, plan: NestPlan
) -> loop.KernelOp:
    """The kernel of a primitive function, as it is planned.

    Args:
        function: a function whose body is operators that have a value at an index.
        constant: for each argument whether all callers pass a constant of the program.
        shapes: the symbolic shapes of the function.
        plan: the plan of its operators and results.
    """
    inputs = [cast(TensorType, t) for t in function.function_type.inputs]
    results = [cast(TensorType, t) for t in function.function_type.outputs]
    input_types = [b for kind in inputs for b in buffer_types(kind)]
    output_types = [b for kind in results for b in buffer_types(kind)]
    attrs = _argument_attrs(function, constant, shapes)
    attrs += [DictionaryAttr({})] * len(output_types)
    block = Block(arg_types=[*input_types, *output_types])
    outputs = block.args[len(input_types) :]
    for number, output in enumerate(outputs):
        output.name_hint = "y" if len(outputs) == 1 else f"y{number}"
    _fill(block, function, shapes, outputs, plan)
    kernel = loop.KernelOp(
        function.sym_name.data,
        input_types,
        output_types,
        Region(block),
        attrs if any(d.data for d in attrs) else None,
    )
    kernel.location = fuse(op for op in function.walk() if isinstance(op, GraphOp))
    return kernel


def _argument_attrs(
    function: func.FuncOp, constant: Sequence[bool], shapes: SymbolicShapes
) -> list[DictionaryAttr]:
    """What the kernel says of each of its inputs."""
    args = function.body.block.args
    bounds = _index_bounds(function, shapes)
    result: list[DictionaryAttr] = []
    for number, arg in enumerate(args):
        data: dict[str, Attribute] = {}
        if constant[number]:
            data["loop.constant"] = UnitAttr()
        if arg in bounds:
            data["loop.bounds"] = bounds[arg]
        count = len(buffer_types(cast(TensorType, arg.type)))
        result += [DictionaryAttr(data)] * count
    return result


def _index_bounds(function: func.FuncOp, shapes: SymbolicShapes) -> dict[SSAValue, Attribute]:
    """For each argument that holds indices the extents that they must stay within.

    An extent is written as text in sizes of the arguments: ``x0.1`` is dimension 1 of the
    first one.
    """
    sizes = {
        name: Dim.symbol(f"x{number}.{dimension}")
        for name, (number, dimension) in shapes.bindings.items()
    }
    result: dict[SSAValue, list[str]] = {}
    for op in function.body.block.ops:
        if not isinstance(op, GraphOp):
            continue
        for indices, source, dimension in op.index_bounds:
            extent = shapes.shape(source)[dimension]
            if not isinstance(indices, BlockArgument) or not set(extent.symbols) <= set(sizes):
                raise refused(
                    op,
                    "indices cannot be checked before the kernel runs",
                    expected="indices and an extent that the arguments have",
                )
            result.setdefault(indices, []).append(str(extent.substitute(sizes)))
    return {
        value: ArrayAttr([StringAttr(text) for text in dict.fromkeys(texts)])
        for value, texts in result.items()
    }
