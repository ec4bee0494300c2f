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
from xdsl.ir import Attribute, Block, BlockArgument, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import PassFailedException

from ..core.dims import Dim, Shape
from ..core.errors import explain
from ..core.provenance import fuse, origin
from ..dialects.graph import ops as graph
from ..dialects.graph.interfaces import GraphOp, Index
from ..dialects.graph.shapes import EQUAL, SymbolicShapes, equal_attribute
from ..dialects.loop import ops as loop
from .buffers import buffer_types
from .nest import (
    Argument,
    Frame,
    NestBuilder,
    RestartError,
    SparseArgument,
    UnknownEntryError,
)


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
        rank = cast(TensorType, value.type).get_num_dims()
        if number in known.entries:
            _walk_entries(nest, value, buffer, *known.entries[number])
            continue
        dims = known.order.get(number, list(range(rank)))
        extents = [nest.extent(value, dim) for dim in dims]
        with nest.loops(extents) as opened:
            frames = nest.frames[-rank:] if rank else []
            index = tuple(opened[dims.index(dim)] for dim in range(rank))
            try:
                _store(nest, value, buffer, index)
            except UnknownEntryError as unknown:
                if unknown.position not in index:
                    raise
                known.entries[number] = index.index(unknown.position), unknown.matrix
                raise RestartError from unknown
            if number not in known.order and (wanted := _better_order(frames, nest.reductions)):
                known.order[number] = wanted
                raise RestartError


def _store(nest: NestBuilder, value: SSAValue, buffer: SSAValue, index: Index) -> None:
    scalar = nest.at(value, index)
    stored = nest.stored(scalar, cast(TensorType, value.type).element_type)
    nest.store(stored, buffer, index)


def _walk_entries(
    nest: NestBuilder, value: SSAValue, buffer: SSAValue, dim: int, matrix: SSAValue
) -> None:
    """Compute a result whose dimension `dim` runs over the entries of `matrix` row by row."""
    rank = cast(TensorType, value.type).get_num_dims()
    rest = [nest.extent(value, other) for other in range(rank) if other != dim]
    with nest.entry_loops(matrix, rest) as (position, *between):
        _store(nest, value, buffer, (*between[:dim], position, *between[dim:]))


def _better_order(
    frames: Sequence[Frame], reductions: Sequence[frozenset[Frame]]
) -> list[int] | None:
    """The loops that a reduction depends on, then the others; None where that is so already.

    A reduction that needs some of the loops only is then computed before the others begin.
    """
    for needed in reductions:
        inside = [number for number, frame in enumerate(frames) if frame in needed]
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


def _call_dps(call: func.CallOp, shapes: dict[SSAValue, Shape]) -> graph.CallDpsOp:
    """The same call in destination-passing style, with the sizes of its results."""
    types = [cast(TensorType, r.type) for r in call.results]
    dims = [
        [
            str(dim) if size == DYNAMIC_INDEX else ""
            for dim, size in zip(shapes[result], kind.get_shape(), strict=True)
        ]
        for result, kind in zip(call.results, types, strict=True)
    ]
    symbolic = any(name for row in dims for name in row)
    new = graph.CallDpsOp(call.callee, call.arguments, types, dims if symbolic else None)
    new.location = call.location
    return new


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
        functions = [f for f in op.ops if isinstance(f, func.FuncOp)]
        primitives = {f.sym_name.data: f for f in functions if "graph.primitive" in f.attributes}
        calls = [c for c in op.walk() if isinstance(c, func.CallOp)]
        shapes = _result_shapes(functions, calls)
        for name, function in primitives.items():
            passed = [c.arguments for c in calls if c.callee.string_value() == name]
            constant = [
                bool(passed) and all(_is_constant(arguments[number]) for arguments in passed)
                for number in range(len(function.args))
            ]
            kernel = build_kernel(function, constant, SymbolicShapes(function))
            Rewriter.replace_op(function, kernel, [])
        for call in calls:
            if call.callee.string_value() in primitives:
                Rewriter.replace_op(call, _call_dps(call, shapes))
        _refuse_rest(op)
