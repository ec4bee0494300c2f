"""Primitive functions become kernels: `convert-graph-to-loop`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DictionaryAttr,
    ModuleOp,
    StringAttr,
    TensorType,
    UnitAttr,
)
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, Region, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import PassFailedException

from ..core.context import decide
from ..core.dims import Dim, Shape
from ..core.errors import explain
from ..core.provenance import fuse, origin
from ..dialects.graph import ops as graph
from ..dialects.graph.buffers import buffer_types
from ..dialects.graph.interfaces import FusionKind, GraphOp, Index, tensor_type
from ..dialects.graph.shapes import EQUAL, SymbolicShapes, equal_attribute
from ..dialects.loop import ops as loop
from ..dialects.sparse_tensor import part_count
from .nest import (
    Argument,
    Frame,
    NestBuilder,
    RestartError,
    SparseArgument,
    UnknownEntryError,
    UnmergedError,
)
from .splitting import split_primitive

Call = graph.CallDpsOp | graph.CallPackedOp


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
    """Write the nests into the body of a kernel, one for each result of the function.

    Raises:
        RestartError: where a result needs other loops, which `known` then says.
    """
    nest = NestBuilder(block, _arguments(function, block), shapes, staged)
    returned = cast(func.ReturnOp, function.body.block.last_op).arguments
    for number, (value, buffer) in enumerate(zip(returned, outputs, strict=True)):
        store = _Store(nest, value, buffer)
        rank = tensor_type(store.source).get_num_dims()
        if number in known.entries:
            _walk_entries(store, *known.entries[number])
            continue
        dims = known.order.get(number, list(range(rank)))
        extents = [nest.extent(store.source, dim) for dim in dims]
        with nest.loops(extents) as opened:
            frames = nest.frames[-rank:] if rank else []
            index = tuple(opened[dims.index(dim)] for dim in range(rank))
            try:
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

    def at(self, index: Index) -> None:
        """Compute and store the element at an index of the source."""
        if self.reshape is not None:
            own, index = index, cast(Index, self.reshape.result_index(self.nest, index))
            self.nest.know_reshaped(self.reshape.result, index, own)
        scalar = self.nest.at(self.value, index)
        stored = self.nest.stored(scalar, tensor_type(self.value).element_type)
        self.nest.store(stored, self.buffer, index)


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
                raise PassFailedException(
                    explain(
                        op.name,
                        "indices cannot be checked before the kernel runs",
                        expected="indices and an extent that the arguments have",
                        origin=origin(op),
                    )
                )
            result.setdefault(indices, []).append(str(extent.substitute(sizes)))
    return {
        value: ArrayAttr([StringAttr(text) for text in dict.fromkeys(texts)])
        for value, texts in result.items()
    }


def _is_constant(value: SSAValue) -> bool:
    return isinstance(value.owner, graph.ConstantOp)


def _result_shapes(
    functions: Sequence[func.FuncOp], calls: Sequence[func.CallOp]
) -> dict[SSAValue, Shape]:
    """The shapes of the results of calls, in the symbols of the function they are in.

    What these sizes have to satisfy, which kernels do not say, is noted on the function.
    """
    result: dict[SSAValue, Shape] = {}
    for function in functions:
        inside = [c for c in calls if c.parent_op() is function]
        if not inside:
            continue
        shapes = SymbolicShapes(function)
        result |= {r: shapes.shape(r) for c in inside for r in c.results}
        if shapes.equalities:
            pairs = ((left, right) for left, right, _ in shapes.equalities)
            function.attributes[EQUAL] = equal_attribute(pairs)
    return result


def _call_dps(
    call: func.CallOp, shapes: dict[SSAValue, Shape], single: Call | None
) -> graph.CallDpsOp | graph.CallPackedOp:
    """The same call in destination-passing style, with the sizes of its results.

    `single` is the call that is all there is in the function, if there is one.
    """
    types = [cast(TensorType, r.type) for r in call.results]
    dims = [
        [
            str(dim) if size == DYNAMIC_INDEX else ""
            for dim, size in zip(shapes[result], kind.get_shape(), strict=True)
        ]
        for result, kind in zip(call.results, types, strict=True)
    ]
    symbolic = any(name for row in dims for name in row)
    known = dims if symbolic else None
    if isinstance(single, graph.CallPackedOp):
        passed = [call.arguments[cast(BlockArgument, v).index] for v in single.arguments]
        new = graph.CallPackedOp(single.callee, passed, types, known)
    elif single is not None:
        passed = [call.arguments[cast(BlockArgument, v).index] for v in single.arguments]
        new = graph.CallDpsOp(single.callee, passed, types, known)
    else:
        new = graph.CallDpsOp(call.callee, call.arguments, types, known)
    new.location = call.location
    return new


def _is_inside(op: Operation) -> bool:
    """Whether an operation is in a primitive function."""
    function = op.parent_op()
    return function is not None and "graph.primitive" in function.attributes


def _build_all(ctx: Context, module: ModuleOp) -> dict[func.FuncOp, loop.KernelOp | Call]:
    """The kernel of each primitive function, or the call that is all there is in it.

    Functions that cannot be one kernel are split, so that there may be more than before.
    """
    waiting = [f for f in module.ops if isinstance(f, func.FuncOp) and _is_primitive(f)]
    built: dict[func.FuncOp, loop.KernelOp | Call] = {}
    while waiting:
        function = waiting.pop(0)
        name = function.sym_name.data
        if (single := _single_call(function)) is not None:
            built[function] = single
            continue
        calls = [
            c
            for c in module.walk()
            if isinstance(c, func.CallOp) and c.callee.string_value() == name
        ]
        constant = [
            bool(calls) and all(_is_constant(c.arguments[number]) for c in calls)
            for number in range(len(function.args))
        ]
        try:
            built[function] = build_kernel(function, constant, SymbolicShapes(function))
        except UnmergedError as refused:
            cut = _where_to_cut(function, refused.value)
            before = split_primitive(module, function, cut, calls)
            what = f"split, what is needed first is @{before.sym_name.data}"
            decide(ctx, function, what, str(refused))
            waiting = [before, function, *waiting]
    return built


def _is_primitive(function: func.FuncOp) -> bool:
    return "graph.primitive" in function.attributes


def _single_call(function: func.FuncOp) -> Call | None:
    """The call without a value at an index that is all there is in a function."""
    op, *rest = function.body.block.ops
    if not isinstance(op, (graph.CallDpsOp, graph.CallPackedOp)) or op.has_value_at:
        return None
    returned = len(rest) == 1 and list(rest[0].operands) == list(op.results)
    return op if returned else None


def _where_to_cut(function: func.FuncOp, value: SSAValue) -> SSAValue:
    """A value that is not merged, or, where it comes from a call that runs as it is, what
    that call is passed, so that the call is alone in the end."""
    op = cast(Operation, value.owner)
    if isinstance(op, GraphOp) and not op.has_value_at:
        for operand in op.operands:
            if isinstance(operand, OpResult) and not isinstance(operand.owner, graph.ConstantOp):
                return operand
    return value


def _mark_constants(kernel: loop.KernelOp, calls: Sequence[graph.CallDpsOp]) -> None:
    """Say of the inputs of a kernel that was there before whether all calls pass constants."""
    types = [cast(TensorType, value.type) for value in calls[0].arguments]
    attrs: list[DictionaryAttr] = []
    for number, kind in enumerate(types):
        constant = all(_is_constant(call.arguments[number]) for call in calls)
        for _ in range(part_count(kind)):
            known = kernel.attrs_of(len(attrs))
            marked = {**known, "loop.constant": UnitAttr()} if constant else known
            attrs.append(DictionaryAttr(marked))
    attrs += [
        DictionaryAttr(kernel.attrs_of(number))
        for number in range(len(attrs), len(kernel.body.block.args))
    ]
    kernel.arg_attrs = ArrayAttr(attrs) if any(d.data for d in attrs) else None


def _refuse_rest(module: ModuleOp) -> None:
    """Raise on the first operator that is left outside of the kernels."""
    allowed = (graph.ConstantOp, graph.CallDpsOp, graph.CallPackedOp)
    for op in module.walk():
        if isinstance(op, GraphOp) and not isinstance(op, allowed):
            raise PassFailedException(
                explain(
                    op.name,
                    "operator outside of a primitive function",
                    origin=origin(op),
                    hint="run graph-fuse-ops first",
                )
            )


@dataclass(frozen=True)
class ConvertGraphToLoopPass(ModulePass):
    """Turn each primitive function into a loop kernel, and calls into destination passing.

    Before:

    ```mlir
    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %y = func.call @relu(%x) : (tensor<4xf32>) -> tensor<4xf32>
      func.return %y : tensor<4xf32>
    }
    func.func private @relu(%x: tensor<4xf32>) -> tensor<4xf32> attributes {graph.primitive} {
      %y = graph.relu %x : (tensor<4xf32>) -> tensor<4xf32>
      func.return %y : tensor<4xf32>
    }
    ```

    After:

    ```mlir
    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %y = graph.call_dps @relu(%x) : (tensor<4xf32>) -> tensor<4xf32>
      func.return %y : tensor<4xf32>
    }
    loop.kernel @relu(%x: memref<4xf32>) -> (%y: memref<4xf32>) {
      %0 = arith.constant 0.000000e+00 : f32
      loop.for "i" %i to 4 {
        %1 = loop.load %x (d0) -> (d0)(%i) : memref<4xf32>, f32
        %2 = arith.maximumf %1, %0 : f32
        loop.store %2, %y (d0) -> (d0)(%i) : f32, memref<4xf32>
      }
    }
    ```

    Requires: every operator that computes is inside of a primitive function.
    Leaves: constants and calls in the public function; no primitive function.
    """

    name = "convert-graph-to-loop"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        kernels = [k for k in op.ops if isinstance(k, loop.KernelOp)]
        merged = {c.callee for c in op.walk() if isinstance(c, graph.CallDpsOp) and _is_inside(c)}
        built = _build_all(ctx, op)
        functions = [f for f in op.ops if isinstance(f, func.FuncOp)]
        calls = [c for c in op.walk() if isinstance(c, func.CallOp)]
        shapes = _result_shapes(functions, calls)
        replaced: dict[str, graph.CallDpsOp | graph.CallPackedOp | None] = {}
        for function, made in built.items():
            replaced[function.sym_name.data] = None if isinstance(made, loop.KernelOp) else made
        for call in calls:
            if (name := call.callee.string_value()) in replaced:
                Rewriter.replace_op(call, _call_dps(call, shapes, replaced[name]))
        for function, made in built.items():
            if isinstance(made, loop.KernelOp):
                Rewriter.replace_op(function, made, [])
            else:
                Rewriter.erase_op(function)
        _refuse_rest(op)
        called = [c for c in op.walk() if isinstance(c, graph.CallDpsOp)]
        for kernel in kernels:
            users = [c for c in called if c.callee.string_value() == kernel.sym_name.data]
            if users:
                _mark_constants(kernel, users)
            elif any(callee.string_value() == kernel.sym_name.data for callee in merged):
                Rewriter.erase_op(kernel)
