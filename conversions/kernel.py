"""The kernel of a primitive function: a nest for each of its results, or for several of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr, TensorType, UnitAttr
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.ir.affine import AffineExpr

from ..core.dims import Dim
from ..core.provenance import fuse
from ..core.refusal import refused
from ..dialects.graph import ops as graph
from ..dialects.graph.buffers import buffer_types
from ..dialects.graph.interfaces import FusionKind, GraphOp, Index, tensor_type
from ..dialects.graph.shapes import SymbolicShapes
from ..dialects.loop import ops as loop
from .nest import Argument, Frame, NestBuilder, RestartError, SparseArgument, UnknownEntryError


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


@dataclass
class ResultLoops:
    """The loops in which the results of a function are computed, as far as that was found out.

    Both are by the number of the result; a new entry makes the kernel be built again.
    """

    order: dict[int, list[int]] = field(default_factory=dict)
    """The dimensions in the order in which they are looped over, as a reduction wants it."""
    entries: dict[int, tuple[int, SSAValue]] = field(default_factory=dict)
    """A dimension over the stored entries of a matrix, which is walked row by row."""


def _fill(
    block: Block,
    function: func.FuncOp,
    shapes: SymbolicShapes,
    outputs: Sequence[SSAValue],
    staged: dict[SSAValue, int],
    known: ResultLoops,
) -> None:
    """Write the nests that compute the results of the function into the body of a kernel.

    Raises:
        RestartError: where a result needs other loops, which `known` then says.
    """
    nest = NestBuilder(block, _arguments(function, block), shapes, staged)
    returned = cast(func.ReturnOp, function.body.block.last_op).arguments
    stores = [_Store(nest, *pair) for pair in zip(returned, outputs, strict=True)]
    for numbers in _nests(stores, known):
        with nest.standing_for(stores[numbers[0]].op):
            _fill_nest(nest, [stores[n] for n in numbers], numbers[0], known)


def _fill_nest(
    nest: NestBuilder, together: Sequence[_Store], number: int, known: ResultLoops
) -> None:
    """Write the nest of some results, the first of which has a number."""
    source = together[0].source
    if number in known.entries:
        _walk_entries(together[0], *known.entries[number])
        return
    rank = tensor_type(source).get_num_dims()
    dims = known.order.get(number, list(range(rank)))
    extents = [nest.extent(source, dim) for dim in dims]
    with nest.loops(extents) as opened:
        frames = nest.frames[-rank:] if rank else []
        index = tuple(opened[dims.index(dim)] for dim in range(rank))
        try:
            for store in together:
                with nest.standing_for(store.op):
                    store.at(index)
        except UnknownEntryError as unknown:
            if unknown.position not in index:
                raise
            known.entries[number] = index.index(unknown.position), unknown.matrix
            raise RestartError from unknown
        if number not in known.order and (wanted := _better_order(frames, nest.reductions)):
            known.order[number] = wanted
            raise RestartError


class _Store:
    """Stores a result of a function, index by index.

    `source` is the value whose indices are looped over. That is the result itself, unless
    the result is made of something with rows that is reshaped: a reduction over a row, of
    which a normalisation has several, is then run once for a row, and not once for each
    index of the result that begins in it.
    """

    def __init__(self, nest: NestBuilder, value: SSAValue, buffer: SSAValue) -> None:
        self.nest, self.value, self.buffer = nest, value, buffer
        self.reshape = _reshape_of_rows(nest, value)
        self.source = value if self.reshape is None else self.reshape.x
        function = cast(Operation, value.owner.parent_op())
        self.op = value.owner if isinstance(value.owner, Operation) else function

    def at(self, index: Index) -> None:
        """Compute and store the element at an index of the source."""
        if self.reshape is not None:
            own, index = index, cast(Index, self.reshape.result_index(self.nest, index))
            self.nest.know_reshaped(self.reshape.result, index, own)
        scalar = self.nest.at(self.value, index)
        stored = self.nest.stored(scalar, tensor_type(self.value).element_type)
        self.nest.store(stored, self.buffer, index)


def _nests(stores: Sequence[_Store], known: ResultLoops) -> list[list[int]]:
    """The numbers of the results by the nest that computes them.

    Each has its own, but for numbers that reductions give for the same rows.
    """
    nests: dict[object, list[int]] = {}
    for number, store in enumerate(stores):
        key: object = number
        one_for_each_row = tensor_type(store.source).get_num_dims() == 1
        if one_for_each_row and store.nest.is_deep(store.value) and number not in known.entries:
            key = store.nest.extent(store.source, 0)
        nests.setdefault(key, []).append(number)
    return list(nests.values())


def _reshape_of_rows(nest: NestBuilder, value: SSAValue) -> graph.ReshapeOp | None:
    """The reshape of something that reduces, of which `value` is made index by index."""
    op = value.owner
    if not isinstance(op, GraphOp) or not nest.is_deep(value):
        return None
    if isinstance(op, graph.ReshapeOp):
        start = tuple(AffineExpr.constant(0) for _ in tensor_type(op.x).get_shape())
        return None if op.result_index(nest, start) is None else op
    if op.fusion != FusionKind.ELEMENTWISE:
        return None
    deep = [v for v in op.operands if nest.is_deep(v)]
    same = tensor_type(value).get_shape()
    if len(deep) != 1 or tensor_type(deep[0]).get_shape() != same:
        return None
    return _reshape_of_rows(nest, deep[0])


def _walk_entries(store: _Store, dim: int, matrix: SSAValue) -> None:
    """Compute a result whose dimension `dim` runs over the entries of `matrix` row by row."""
    nest, rank = store.nest, tensor_type(store.source).get_num_dims()
    rest = [nest.extent(store.source, other) for other in range(rank) if other != dim]
    with nest.entry_loops(matrix, rest) as (position, *between):
        store.at((*between[:dim], position, *between[dim:]))


def _better_order(
    frames: Sequence[Frame], reductions: Sequence[frozenset[Frame]]
) -> list[int] | None:
    """The loops that a reduction depends on, then the others; None where that is so already.

    A reduction that needs some of the loops only is then computed before the others begin. A
    loop that runs once may stay where it is.
    """
    for needed in reductions:
        inside = [n for n, frame in enumerate(frames) if frame in needed or frame.runs_once]
        if 0 < len(inside) < len(frames) and inside != list(range(len(inside))):
            return inside + [n for n in range(len(frames)) if n not in inside]
    return None


def build_kernel(
    function: func.FuncOp, constant: Sequence[bool], shapes: SymbolicShapes
) -> loop.KernelOp:
    """The kernel of a primitive function.

    Args:
        function: a function whose body is operators that have a value at an index.
        constant: for each argument whether all callers pass a constant of the program.
        shapes: the symbolic shapes of the function.
    """
    inputs = [cast(TensorType, t) for t in function.function_type.inputs]
    results = [cast(TensorType, t) for t in function.function_type.outputs]
    input_types = [b for kind in inputs for b in buffer_types(kind)]
    output_types = [b for kind in results for b in buffer_types(kind)]
    attrs = _argument_attrs(function, constant, shapes)
    attrs += [DictionaryAttr({})] * len(output_types)
    staged: dict[SSAValue, int] = {}
    known = ResultLoops()
    while True:
        block = Block(arg_types=[*input_types, *output_types])
        outputs = block.args[len(input_types) :]
        for number, output in enumerate(outputs):
            output.name_hint = "y" if len(outputs) == 1 else f"y{number}"
        try:
            _fill(block, function, shapes, outputs, staged, known)
        except RestartError:
            continue
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
