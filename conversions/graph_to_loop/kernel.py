"""The kernel of a primitive function, with the nests of its plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import cast

from xdsl.dialects import func
from xdsl.dialects.builtin import DictionaryAttr, TensorType
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.utils.exceptions import VerifyException

from ...core.errors import UnsupportedError, explain
from ...core.ir.provenance import fuse, origin
from ...core.ir.refusal import FaultyOperator, refused
from ...core.ir.symbols import find_symbol
from ...core.ir.typed import owned, parent_of, returned
from ...dialects.graph.buffers import buffer_types
from ...dialects.graph.interfaces import GraphOp, element_type, is_foreign, rank
from ...dialects.graph.nests.nest import Indices
from ...dialects.graph.nests.operators import written
from ...dialects.graph.nests.proofs import (
    HINT,
    computed_indices,
    counts_in,
    described,
    known_in,
    outside_of,
    uncovered,
)
from ...dialects.graph.ops.control.call import CallDpsOp
from ...dialects.graph.plan.nest_plan import NestPlan, ResultNest
from ...dialects.graph.plan.visibility import StoredRounding
from ...dialects.graph.rearranging import FrameInterface, PlacementInterface, is_framed
from ...dialects.graph.sizes.shapes import SymbolicShapes
from ...dialects.loop import ops as loop
from ...dialects.loop.proofs.dependences import dependences
from ...dialects.loop.proofs.inside import Reader, buffer_of
from .arguments import argument_attrs, arguments_of
from .nest import NestBuilder
from .writing import NestWriter

_FILL = "give all a first value by fill, then change elements by update"


def build_kernel(
    function: func.FuncOp,
    constant: Sequence[bool],
    shapes: SymbolicShapes,
    plan: NestPlan,
    rounding: StoredRounding,
) -> loop.KernelOp:
    """The kernel of a primitive function, by its plan.

    Args:
        function: a function whose body is operators that have a value at an index.
        constant: for each argument, whether all callers pass a constant of the program.
        shapes: the symbolic shapes of the function.
        plan: the plan of its operators and results.
        rounding: knows which values are rounded to 16 bits, though they are not stored.
    """
    kernel = _built(function, constant, shapes, plan, rounding)
    if plan.in_result is None or not any(dependences(kernel.body.block, {})):
        return kernel
    # A reduction whose reads only the loop over the row guards is in that loop, and would read what
    # has been replaced.
    staged = {value: depth for value, depth in plan.staged.items() if value != plan.in_result}
    plan = replace(plan, staged=staged, in_result=None)
    return _built(function, constant, shapes, plan, rounding)


def _built(
    function: func.FuncOp,
    constant: Sequence[bool],
    shapes: SymbolicShapes,
    plan: NestPlan,
    rounding: StoredRounding,
) -> loop.KernelOp:
    input_types, output_types = (
        [buffer for kind in kinds if isinstance(kind, TensorType) for buffer in buffer_types(kind)]
        for kinds in (function.function_type.inputs, function.function_type.outputs)
    )
    attrs = argument_attrs(function, constant, shapes)
    attrs += [DictionaryAttr({})] * len(output_types)
    kernel = loop.KernelOp(
        function.sym_name.data,
        input_types,
        output_types,
        arg_attrs=attrs if any(d.data for d in attrs) else None,
    )
    outputs = kernel.outputs
    for number, output in enumerate(outputs):
        output.name_hint = "y" if len(outputs) == 1 else f"y{number}"
    arguments, results = arguments_of(function, kernel.body.block), returned(function)
    source_of: dict[Operation, Operation] = {}
    if plan.writer is not None:
        targets = {
            source: [(results[number], outputs[number]) for number in numbers]
            for source, numbers in plan.followers.items()
        }
        writer = NestWriter(kernel, arguments, shapes, plan.writer, targets, rounding)
        with writer.standing_for(plan.writer):
            written(plan.writer, writer)
        source_of |= writer.source_of
    pairs = list(zip(results, outputs, strict=True))
    nest = NestBuilder(kernel, arguments, pairs, shapes, plan, rounding)
    for planned in plan.nests:
        _fill(nest, planned, results, outputs)
    source_of |= nest.source_of
    kernel.location = fuse(op for op in function.walk() if isinstance(op, GraphOp))
    if plan.writer is not None:
        _require_covered(kernel, function, shapes, plan.writer, plan.followers)
        if is_foreign(plan.writer):
            _verify_written(kernel, plan.writer)
    if any(map(is_foreign, function.body.block.ops)):
        _require_inside(kernel, function, shapes, source_of, plan.writer)
    return kernel


def _require_inside(
    kernel: loop.KernelOp,
    function: func.FuncOp,
    shapes: SymbolicShapes,
    source_of: Mapping[Operation, Operation],
    writer: GraphOp | None,
) -> None:
    """Raise if an access that users wrote may be outside of its buffer."""

    def is_trusted(access: Reader) -> bool:
        # A built-in operator, such as a sort, may know more of the indices that it computes and of
        # its own memory, and so may a kernel that is trusted.
        ops = computed_indices(access)
        local = buffer_of(access).owner
        if writer is not None and isinstance(local, loop.LocalOp) and source_of[local] is writer:
            return not is_foreign(writer)
        return bool(ops) and not any(map(is_of_users, (access, *ops)))

    def is_of_users(op: Operation) -> bool:
        source = source_of.get(op)
        return source is not None and is_foreign(source) and not _is_trusted(source)

    found = outside_of(kernel, known_in(kernel, shapes), is_trusted)
    if found is not None:
        fact, expected, got = described(found)
        source = source_of.get(found.access, function)
        if not is_of_users(found.access):
            source = next(filter(is_foreign, function.walk()))
        kind = FaultyOperator
        raise refused(source, fact, kind=kind, expected=expected, got=got, hint=HINT)


def _is_trusted(op: Operation) -> bool:
    """Whether an operator calls a kernel of text that is trusted."""
    kernel = find_symbol(op, op.callee) if isinstance(op, CallDpsOp) else None
    return kernel is not None and loop.TRUSTED in kernel.attributes


def _require_covered(
    kernel: loop.KernelOp,
    function: func.FuncOp,
    shapes: SymbolicShapes,
    writer: GraphOp,
    followers: Mapping[SSAValue, Sequence[int]],
) -> None:
    """Raise if an operator may leave elements of its results undefined, or of what follows."""
    counts = counts_in(shapes, dict(zip(returned(function), kernel.outputs, strict=True)))
    result_of = {number: result for result, own in followers.items() for number in own}
    known = known_in(kernel, shapes).with_sizes(shapes.of_arguments(function.args))
    for found in uncovered(kernel, known, counts):
        number = list[SSAValue](writer.results).index(result_of[found.number])
        fact = f"not all elements of its result {number} are proved to be written"
        expected, where = f"writes that cover {found.shape}", origin(writer)
        raise UnsupportedError(
            explain(
                writer.name, fact, expected=expected, got=found.stored, origin=where, hint=_FILL
            )
        )


def _verify_written(kernel: loop.KernelOp, writer: GraphOp) -> None:
    """Raise if the loops of an operator are not valid, which is its fault."""
    try:
        kernel.verify()
    except VerifyException as error:
        why = " ".join(str(error).partition("\n\n")[0].split())
        got = why.removesuffix(f"({origin(writer)})").rstrip()
        fact = "writes loops that are not valid"
        raise refused(writer, fact, kind=FaultyOperator, got=got) from error


def _fill(
    nest: NestBuilder,
    planned: ResultNest,
    results: Sequence[SSAValue],
    outputs: Sequence[SSAValue],
) -> None:
    """Emit a planned nest, which computes some of the results."""
    stores = [
        _Store(nest, results[number], outputs[number], reshape)
        for number, reshape in zip(planned.results, planned.reshapes, strict=True)
    ]
    with nest.standing_for(stores[0].op), _loops(nest, planned) as variables:
        index = planned.index(variables, nest.shapes.shape(planned.source))
        for store in stores:
            with nest.standing_for(store.op):
                store.at(index)
    for store in stores:
        if store.reshape is store.value and is_framed(store.op):
            with nest.standing_for(store.op):
                _fill_frame(nest, cast("FrameInterface", store.op), store.buffer)


def _fill_frame(nest: NestBuilder, op: FrameInterface, buffer: SSAValue) -> None:
    """Emit nests that store the constant around the operand of an operator."""
    (x,), (result,) = op.operands, op.results
    lows = [AffineExpr.constant(low) for low, _ in op.margins]
    inner = [nest.extent(x, axis) for axis in range(rank(x))]
    whole = [nest.extent(result, axis) for axis in range(rank(x))]
    for axis, (low, high) in enumerate(op.margins):
        # Where an earlier index is in the margin, its own nest stores the element.
        starts = [*lows[:axis], *[AffineExpr.constant(0)] * (rank(x) - axis)]
        for count, start in ((low, starts[axis]), (high, inner[axis] + low)):
            if count == 0:
                continue
            extents = [*inner[:axis], AffineExpr.constant(count), *whole[axis + 1 :]]
            starts[axis] = start
            with nest.loops(extents) as own:
                index = tuple(a + b for a, b in zip(own, starts, strict=True))
                nest.store_element(op.fill(nest), buffer, index, element_type(result))


@contextmanager
def _loops(nest: NestBuilder, planned: ResultNest) -> Iterator[Indices]:
    """Open the loops of a planned nest within the context; return the index."""
    source = planned.source
    dims = range(rank(source))
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
    """Stores a result of a function at each index of the value that is looped over.

    That is the result itself, or the operand of `reshape`, from which the result is computed.
    """

    def __init__(
        self, nest: NestBuilder, value: SSAValue, buffer: SSAValue, reshape: SSAValue | None
    ) -> None:
        self.nest, self.value, self.buffer, self.reshape = nest, value, buffer, reshape
        op = value.owner
        self.op = op if isinstance(op, Operation) else parent_of(op, func.FuncOp)

    def at(self, index: Indices) -> None:
        """Compute and store the element at an index."""
        if self.reshape is not None:
            own, index = index, _reshaped(self.nest, self.reshape, index)
            self.nest.know_reshaped(self.reshape, index, own)
        scalar = self.nest.at(self.value, index)
        self.nest.store_element(scalar, self.buffer, index, element_type(self.value))


def _reshaped(nest: NestBuilder, value: SSAValue, index: Indices) -> Indices:
    """The index in the result of a reshape, or of a pad, of an element of its operand."""
    found = owned(value, PlacementInterface).result_index(nest, index)
    assert found is not None
    return found
