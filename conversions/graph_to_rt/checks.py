"""Checks of the indices that callers pass: no compiled loop reads outside a buffer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import FloatAttr, IndexType, f64, i32, i64
from xdsl.ir import Operation, SSAValue

from ...core.algebra.dims import Dim
from ...core.errors import explain
from ...core.ir.provenance import origin
from ...core.ir.refusal import refused
from ...core.ir.typed import tensor_type
from ...dialects.graph import ops as graph
from ...dialects.graph.buffers import buffer_types
from ...dialects.graph.demands import SizeBound, demands
from ...dialects.graph.nests.proofs import call_sizes
from ...dialects.graph.rearranging import is_alias
from ...dialects.loop import ops as loop
from ...dialects.loop.arguments import (
    BOUNDS,
    FITS,
    OFFSETS,
    SizeCondition,
    comparison,
    size_conditions,
    texts_of,
)
from ...dialects.loop.proofs.levels import on_the_host
from ...dialects.loop.proofs.segments import is_row_pointer
from ...dialects.rt import ops as rt
from ...dialects.sparse_tensor import is_sparse
from .constants import Constants, as_type
from .function import BufferFunction

LARGEST_PRODUCT = 1 << 56
"""No product of sizes, and no part of an arena in bytes, is larger: sums do not wrap around."""


def check_inputs(function: BufferFunction) -> None:
    """Check the indices of sparse arguments."""
    for arg in function.arguments:
        if not is_sparse(arg.type):
            continue
        indptr, indices, _, *columns = function.buffers[arg]
        with function.standing_for(arg.location):
            size = tensor_type(arg).get_shape()[1]
            width = columns[0] if columns else function.sizes.index(size)
            subject = function.subject(arg)
            check = rt.CheckCsrOp(function.check_context, indptr, indices, width, subject)
            function.append(check)


def check_sizes(function: BufferFunction) -> None:
    """Check the sizes that arguments give, before any of them is used.

    No size may be negative, and kernels that certainly run have demands.
    """
    for op in function.source.body.block.ops:
        for needed in _sizes_needed(function, op):
            if _is_known_first(function, op, needed.size):
                with function.standing_for(op.location):
                    _check_size(function, op, needed)
                if not needed.is_upper:
                    function.not_negative.append(needed.size - needed.limit)
    for op in function.source.body.block.ops:
        check_results(function, op)


def check_results(function: BufferFunction, op: Operation) -> None:
    """Check that sizes of results that arguments give are not negative, each once."""
    for dim in (d for result in op.results for d in function.shapes.shape(result)):
        known = function.shapes.bindings.keys() >= {*dim.symbols}
        if known and function.may_be_negative(dim):
            function.not_negative.append(dim)
            with function.standing_for(op.location):
                _check_not_negative(function, op, dim)


def _sizes_needed(function: BufferFunction, op: Operation) -> Iterator[SizeCondition]:
    """The conditions on sizes of an operation."""
    if isinstance(op, graph.AssembleOp):
        for bound in demands(op, SizeBound):
            size = function.shapes.shape(bound.operand)[bound.dimension]
            yield from bound.conditions(op, size)
    if isinstance(op, graph.CallDpsOp):
        kernel, sizes = function.kernel(op), function.shapes.of_arguments(op.arguments)
        for position in op.places[: len(op.arguments)]:
            for needed in size_conditions(kernel, position):
                yield replace(needed, size=needed.size.substitute(sizes))


def _is_known_first(function: BufferFunction, op: Operation, size: Dim) -> bool:
    """Whether a size that `op` needs is checked at the start: it runs, and arguments give it."""
    outer = op.parent is function.source.body.block
    return outer and function.shapes.bindings.keys() >= {*size.symbols}


def assemble(
    function: BufferFunction,
    op: graph.AssembleOp,
    buffers_of: Callable[[SSAValue], Sequence[SSAValue]],
) -> None:
    """Give a matrix the buffers of its parts, after a check."""
    kind = tensor_type(op.result)
    indptr, indices, values = (buffers_of(v)[0] for v in (op.indptr, op.indices, op.values))
    columns = function.size(function.shapes.shape(op.result)[1], op)
    subject = function.subject(op.result)
    function.append(rt.CheckCsrOp(function.check_context, indptr, indices, columns, subject))
    types = buffer_types(kind)
    pairs = zip((indptr, indices, values), types, strict=False)
    parts = [as_type(function, buffer, type) for buffer, type in pairs]
    function.buffers[op.result] = [*parts, columns][: len(types)]


def check_indices(function: BufferFunction, op: graph.CheckIndicesOp, constants: Constants) -> None:
    """Give indices their own buffer, after a check."""
    function.alias(op.result, op.indices, constants.buffers_of(op.indices))
    limit = function.size(op.limit(function.shapes), op)
    _check_index(function, constants, op.indices, limit, op.what, from_front=True)


def _check_index(
    function: BufferFunction,
    constants: Constants,
    indices: SSAValue,
    extent: SSAValue,
    subject: str,
    from_front: bool = False,
) -> None:
    """Check indices; those of a constant are known, and an extent is compared with the extremes."""
    if not isinstance(indices.owner, graph.ConstantOp):
        (buffer,) = constants.buffers_of(indices)
        check = rt.CheckIndexOp(function.check_context, buffer, extent, subject, from_front)
        function.append(check)
        return
    if 0 in tensor_type(indices).get_shape():
        return
    extremes, zero = constants.extremes(indices.owner), function.sizes.index(0)
    least = zero if from_front else function.insert(arith.SubiOp(zero, extent))
    most = function.insert(arith.SubiOp(extent, function.sizes.index(1)))
    words = explain(subject, "index out of range", expected="{0} to {1}", got="{2}")
    for number in range(2):
        place = [function.sizes.index(number)]
        index = function.insert(memref.LoadOp.get(extremes, place))
        index = function.insert(arith.IndexCastOp(index, IndexType()))
        order, limit = ("sle", most) if number else ("sge", least)
        fits = function.insert(arith.CmpiOp(index, limit, order))
        function.append(rt.CheckOp(function.check_context, fits, words, [least, most, index]))


def indices_of(function: BufferFunction) -> dict[SSAValue, tuple[int, ...]]:
    """The values that hold indices, and the numbers of their index buffers."""
    found: dict[SSAValue, tuple[int, ...]] = {
        arg: (0, 1) for arg in function.arguments if is_sparse(arg.type)
    }
    for call in function.source.body.walk():
        if isinstance(call, graph.ControlFlowOp):
            # A region may read indices from any part of its operation's operands.
            integers = (v for v in call.operands if tensor_type(v).element_type in (i32, i64))
            found |= {v: (0,) for v in integers if v in function.buffers and v not in found}
        if isinstance(call, graph.AssembleOp):
            for value in (call.indptr, call.indices):
                found.setdefault(_buffer_of(value), (0,))
        if isinstance(call, graph.CheckIndicesOp):
            found.setdefault(_buffer_of(call.indices), (0,))
        if not isinstance(call, graph.CallDpsOp):
            continue
        kernel = function.kernel(call)
        for operand, position in zip(call.arguments, call.places, strict=False):
            if {BOUNDS, OFFSETS} & kernel.attrs_of(position).keys():
                found.setdefault(_buffer_of(operand), (0,))
    return found


def _buffer_of(value: SSAValue) -> SSAValue:
    """The value whose buffer holds that of a view or of a checked value; another value itself."""
    while isinstance(op := value.owner, Operation) and is_alias(op):
        value = op.operands[0]
    return value


def refuse_work_of_the_host(kernel: loop.KernelOp) -> None:
    """Refuse a kernel that does anything outside of loops whose iterations a device runs.

    Raises:
        PassFailedException: naming the first operation that the host would execute.
    """
    if (found := on_the_host(kernel)) is not None:
        fact = f"the host would execute {found.name} of @{kernel.sym_name.data}"
        raise refused(kernel, fact, expected="a step bind of the loops around it")


def refuse_other_rows(kernel: loop.KernelOp, call: graph.CallDpsOp) -> None:
    """Refuse a call that passes anything but a CSR matrix for the row pointers of one.

    Matrices are arguments, constants, or assembled, and all are checked.

    Raises:
        PassFailedException: naming the argument of the kernel.
    """
    passed = dict(zip(call.places, call.arguments, strict=False))
    for number, arg in enumerate(kernel.inputs):
        operand = passed.get(number)
        if not is_row_pointer(arg) or (operand is not None and is_sparse(operand.type)):
            continue
        fact = f"argument {number} of @{kernel.sym_name.data} is the row pointers of a matrix"
        got = "another buffer" if operand is None else operand.type
        raise refused(call, fact, expected="a tensor in CSR", got=got)


def refuse_unchecked(kernel: loop.KernelOp, call: graph.CallDpsOp) -> None:
    """Refuse limits of integers (`loop.bounds`, `loop.offsets`) that no call checks.

    The integers of a dense operand are checked; the parts of a matrix have limits of their own.

    Raises:
        PassFailedException: naming the argument of the kernel.
    """
    passed = dict(zip(call.places, call.arguments, strict=False))
    for number in range(len(kernel.inputs)):
        limits = {BOUNDS, OFFSETS} & kernel.attrs_of(number).keys()
        operand = passed.get(number)
        if limits and (operand is None or is_sparse(operand.type)):
            fact = f"argument {number} of @{kernel.sym_name.data} has {min(limits)}"
            raise refused(call, fact, expected="a dense operand for it", got="a part of a matrix")


def check_bounds(
    function: BufferFunction,
    kernel: loop.KernelOp,
    call: graph.CallDpsOp,
    constants: Constants,
) -> None:
    """Check the integers that a kernel uses as indices or offsets before it runs.

    Args:
        function: the function that calls it.
        kernel: the kernel.
        call: the call.
        constants: the constants of the program.
    """
    sizes = function.shapes.of_arguments(call.arguments)
    subject = origin(call) or f"kernel {kernel.sym_name.data}"
    for needed in _sizes_needed(function, call):
        if not _is_known_first(function, call, needed.size):
            _check_size(function, call, needed)
    for operand, position in zip(call.arguments, call.places, strict=False):
        for name in (BOUNDS, OFFSETS):
            for text in texts_of(kernel, position, name):
                extent = Dim.parse(text).substitute(sizes)
                if name == BOUNDS and _is_checked(function, operand, extent):
                    continue
                limit = function.size(extent, call)
                if name == BOUNDS:
                    _check_index(function, constants, operand, limit, subject)
                else:
                    (offsets,) = constants.buffers_of(operand)
                    check = rt.CheckOffsetsOp(function.check_context, offsets, limit, subject)
                    function.append(check)
    if fits := texts_of(kernel, 0, FITS):
        sizes = call_sizes(call, function.shapes)
        for text in fits:
            left, right = (side.substitute(sizes) for side in comparison(text))
            _check_fits(function, call, (left, right))


def _is_checked(function: BufferFunction, indices: SSAValue, extent: Dim) -> bool:
    """Whether an operator in front has checked indices for a size."""
    op = indices.owner
    return isinstance(op, graph.CheckIndicesOp) and op.limit(function.shapes) == extent


def check_product(function: BufferFunction, size: Dim, name: str, op: Operation) -> None:
    """Check that a number of bytes or elements does not wrap around.

    It is computed in floats, and depends on the size called `name`, which `op` needs.
    """
    total = function.insert(arith.ConstantOp(FloatAttr(0.0, f64)))
    for names, factor in size.terms:
        term = function.insert(arith.ConstantOp(FloatAttr(float(abs(factor)), f64)))
        for one in names:
            number = function.insert(arith.IndexCastOp(function.size(Dim.atom(one), op), i64))
            number = function.insert(arith.SIToFPOp(number, f64))
            term = function.insert(arith.MulfOp(term, number))
        total = function.insert(arith.AddfOp(total, term))
    largest = function.insert(arith.ConstantOp(FloatAttr(float(LARGEST_PRODUCT), f64)))
    fits = function.insert(arith.CmpfOp(total, largest, "ole"))
    expected = f"one of a tensor of at most {LARGEST_PRODUCT} bytes"
    words = explain(origin(op) or "call", "a size is too large", expected=expected, got="{0}")
    details = [function.sizes.symbol(name, op)]
    function.append(rt.CheckOp(function.check_context, fits, words, details))


def _check_size(function: BufferFunction, op: Operation, needed: SizeCondition) -> None:
    """Check that a size is within its limit."""
    kernel = f"kernel {op.callee.string_value()}" if isinstance(op, graph.CallDpsOp) else op.name
    subject = needed.operator or kernel
    size, fact, expected = needed.size, needed.fact, needed.expected(needed.limit)
    if size.is_static and not needed.holds(size.value):
        raise refused(op, fact, subject=subject, expected=expected, got=size)
    if size.is_static:
        return
    value, limit = function.size(size, op), function.sizes.index(needed.limit)
    fits = function.insert(arith.CmpiOp(value, limit, "sle" if needed.is_upper else "sge"))
    words = explain(subject, fact, expected=expected, got="{0}", origin=origin(op))
    function.append(rt.CheckOp(function.check_context, fits, words, [value]))


def _check_not_negative(function: BufferFunction, op: Operation, dim: Dim) -> None:
    """Check that a size is not negative."""
    size = function.size(dim, op)
    fits = function.insert(arith.CmpiOp(size, function.sizes.index(0), "sge"))
    fact = f"the size {dim} is negative"
    words = explain(origin(op) or op.name, fact, expected="0 or more", got="{0}")
    function.append(rt.CheckOp(function.check_context, fits, words, [size]))


def _check_fits(function: BufferFunction, call: graph.CallDpsOp, ends: tuple[Dim, Dim]) -> None:
    """Check that one size is not above another, so that no access is outside of a buffer."""
    left, right = ends
    rest = right - left
    if all(factor > 0 for _, factor in rest.terms):
        return
    subject, fact = f"kernel {call.callee.string_value()}", "an access is outside of a buffer"
    if all(factor < 0 for _, factor in rest.terms) and rest.constant:
        got = f"{left} > {right}"
        raise refused(call, fact, subject=subject, expected=f"{left} <= {right}", got=got)
    values = function.size(left, call), function.size(right, call)
    fits = function.insert(arith.CmpiOp(*values, "sle"))
    words = explain(
        subject, fact, expected=f"{left} <= {right}", got="{0} > {1}", origin=origin(call)
    )
    function.append(rt.CheckOp(function.check_context, fits, words, [*values]))
