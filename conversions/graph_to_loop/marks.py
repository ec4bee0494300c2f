"""Facts about the calls of kernels: constants, entries of matrices, operands that die."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, UnitAttr, i64
from xdsl.ir import Attribute, Operation, SSAValue

from ...core.ir.typed import function_around
from ...dialects.graph import ops as graph
from ...dialects.graph.rearranging import is_alias
from ...dialects.graph.sizes.shapes import SymbolicShapes
from ...dialects.graph.views import joined_at
from ...dialects.loop import ops as loop
from ...dialects.loop.arguments import CONSTANT, ENTRIES, IN_PLACE
from ...dialects.loop.proofs.in_place import overwritable
from ...dialects.sparse_tensor import is_sparse
from .calls import Call


def is_constant(value: SSAValue) -> bool:
    """Whether a value is a constant of the program."""
    return isinstance(value.owner, graph.ConstantOp)


def mark_constants(kernel: loop.KernelOp, calls: Sequence[graph.CallDpsOp]) -> None:
    """Mark the inputs for which all calls of a user's kernel pass constants."""
    attrs = _argument_attrs(kernel)
    for number, (start, end) in enumerate(pairwise(calls[0].places)):
        # Calls with other numbers of operands are refused later.
        given = [call.arguments[number : number + 1] for call in calls]
        if all(values and is_constant(values[0]) for values in given):
            for known in attrs[start:end]:
                known[CONSTANT] = UnitAttr()
    _set_argument_attrs(kernel, attrs)


def mark_in_place(kernel: loop.KernelOp, calls: Sequence[graph.CallDpsOp]) -> None:
    """Mark the outputs of a kernel that may overwrite an input, if a call passes a tensor for it
    that is dead afterwards."""
    dying: set[int] = set()
    for call in calls:
        for operand, position in zip(call.arguments, call.places, strict=False):
            if _is_dying(operand, call):
                dying.add(position)
    if not dying:
        return
    first, attrs = len(kernel.inputs), _argument_attrs(kernel)
    for number, output in enumerate(kernel.outputs, first):
        if inputs := [n for n in overwritable(kernel, output) if n in dying]:
            attrs[number][IN_PLACE] = ArrayAttr(IntegerAttr(n, i64) for n in inputs)
    _set_argument_attrs(kernel, attrs)


def mark_entries(
    kernel: loop.KernelOp,
    calls: Sequence[graph.CallDpsOp],
    shapes: Callable[[func.FuncOp], SymbolicShapes],
) -> None:
    """Mark the number of entries of each sparse matrix, if it is known and the same in all calls
    of a kernel."""
    attrs = _argument_attrs(kernel)
    for number, position in enumerate(calls[0].places[:-1]):
        if is_sparse(calls[0].arguments[number].type):
            functions = [(call, function_around(call)) for call in calls]
            counts = {shapes(f).nnz(call.arguments[number]) for call, f in functions if f}
            known = counts.pop()
            if not counts and known is not None and known.is_static:
                attrs[position + 1][ENTRIES] = IntegerAttr(known.value, i64)
    _set_argument_attrs(kernel, attrs)


def _argument_attrs(kernel: loop.KernelOp) -> list[dict[str, Attribute]]:
    """The attributes of all arguments, for changes."""
    return [kernel.attrs_of(number) for number in range(len(kernel.body.block.args))]


def _set_argument_attrs(kernel: loop.KernelOp, attrs: Sequence[dict[str, Attribute]]) -> None:
    kernel.arg_attrs = ArrayAttr(map(DictionaryAttr, attrs)) if any(attrs) else None


def _is_dying(value: SSAValue, call: Operation) -> bool:
    """Whether a value comes from another call, and this call is its last use."""
    if not isinstance(value.owner, Call):
        return False
    users = [use.operation for use in value.uses if use.operation is not call]
    if any(is_alias(user) or joined_at(user) is not None for user in users):
        # It lives on under another name.
        return False
    return all(user.parent is call.parent and user.is_before_in_block(call) for user in users)
