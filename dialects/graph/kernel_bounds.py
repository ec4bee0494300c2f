"""The kernels of users: their accesses are inside of their buffers, or the kernel is refused.

What depends on the sizes of a call is a condition (`loop.fits`) that is checked before the kernel
runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr
from xdsl.ir import Operation, SSAValue

from ...core.dims import Dim, size_of_result
from ...core.typed import memref_type, returned
from ..loop.arguments import FITS, texts_of
from ..loop.inside import Inside, Reader, Unproved, as_text, indices_of, readers_in
from ..loop.known import Known
from ..loop.ops import KernelOp
from .computed_sizes import bounds_of
from .interfaces import tensor_type
from .kernel_sizes import Sizes, known_of, known_of_call
from .ops_call import CallDpsOp
from .shapes import SymbolicShapes

HINT = "clamp the index, or guard the access"


def outside_of_call(
    kernel: KernelOp,
    operands: Sequence[SSAValue],
    results: Sequence[Sizes] | None = None,
    trusted: Callable[[Reader], bool] = lambda access: False,
    holds: Callable[[Dim], bool] = lambda condition: False,
) -> Unproved | None:
    """What `outside_of` finds in a kernel that is called with these operands.

    Args:
        kernel: the kernel.
        operands: the operands of a call.
        results: the sizes of the results, as far as they follow from those of operands.
        trusted: see `outside_of`.
        holds: see `outside_of`.
    """
    known = known_of_call(kernel, [tensor_type(v) for v in operands], results)
    # The conversion of the call refuses one that does not fit.
    return None if known is None else outside_of(kernel, known, trusted, holds)


def outside_of(
    kernel: KernelOp,
    known: Known,
    trusted: Callable[[Reader], bool] = lambda access: False,
    holds: Callable[[Dim], bool] = lambda condition: False,
) -> Unproved | None:
    """An access of a kernel that may be outside of its buffer whatever sizes are checked.

    If there is none, the sizes that have to be checked are added to the attributes of the kernel.

    Args:
        kernel: the kernel.
        known: what is known of its arguments.
        trusted: whether an access is known to be inside otherwise.
        holds: whether a sum of sizes is known to be below 0 in all calls.
    """
    inside, texts = Inside(known), list(texts_of(kernel, 0, FITS))
    for access in readers_in(kernel):
        if trusted(access):
            continue
        for found in inside.conditions(access):
            if isinstance(found, Unproved):
                return found
            if not holds(found):
                texts.append(as_text(found))
    if texts:
        first, *rest = kernel.arg_attrs or [DictionaryAttr({})] * len(kernel.body.block.args)
        fits = ArrayAttr([StringAttr(text) for text in dict.fromkeys(texts)])
        kernel.arg_attrs = ArrayAttr([DictionaryAttr({**first.data, FITS: fits}), *rest])
    return None


def is_computed(access: Reader) -> bool:
    """Whether an access is at an index that is computed, from data or otherwise."""
    return bool(computed_indices(access))


def computed_indices(access: Reader) -> list[Operation]:
    """The operations that compute indices of an access; sizes and loops are none."""
    made = [v.owner for v in indices_of(access) if isinstance(v.owner, Operation)]
    return [op for op in made if not isinstance(op, arith.ConstantOp | memref.DimOp)]


def described(found: Unproved) -> tuple[str, str, str]:
    """The fact, what is expected, and what was found instead, for a message."""
    size = memref_type(found.buffer).get_shape()[found.dimension]
    fact = f"an access may be outside of dimension {found.dimension}"
    limit = "the size of the dimension" if size < 0 else size
    return fact, f"0 <= index < {limit}", str(found)


def known_in(kernel: KernelOp, shapes: SymbolicShapes) -> Known:
    """What is known of the arguments of the kernel of a primitive function with these shapes."""
    args, results = shapes.function.body.block.args, returned(shapes.function)
    kinds = [tensor_type(arg) for arg in args]
    holding = [size.value for size in shapes.computed.values() if size.axis is None]
    holders = [number for number, arg in enumerate(args) if arg in holding]
    # Each call checks that sizes of arguments, such as numbers of entries, equal others.
    pairs = ([shapes.in_arguments(dim) for dim in pair[:2]] for pair in shapes.equalities)
    equal = same_sizes([(a, b) for a, b in pairs if a is not None and b is not None])
    given, made = _sizes_of(shapes, args), _sizes_of(shapes, results)
    return known_of(kernel, kinds, given, made, holders).with_sizes(equal)


def same_sizes(pairs: Iterable[tuple[Dim, Dim]]) -> dict[str, Dim]:
    """For names of sizes others, where pairs of sizes are equal."""
    same: dict[str, Dim] = {}
    for pair in pairs:
        one, other = (dim.substitute(same) for dim in pair)
        for left, right in ((one, other), (other, one)):
            name = left.name
            if name is not None and name not in right.symbols:
                same = {old: new.substitute({name: right}) for old, new in same.items()}
                same[name] = right
                break
    return same


def _sizes_of(shapes: SymbolicShapes, values: Sequence[SSAValue]) -> list[Sizes]:
    """The sizes of tensors of a primitive function in those of its arguments.

    A size that the function computes counts as its upper bound, for which a buffer has room.
    """

    def size(dim: Dim) -> Dim | None:
        known = shapes.in_arguments(dim)
        return shapes.in_arguments(shapes.at_most(dim)) if known is None else known

    return [list(map(size, shapes.shape(value))) for value in values]


def holds_in(call: CallDpsOp, shapes: SymbolicShapes, condition: Dim) -> bool:
    """Whether a sum of sizes of a kernel is below 0, whatever the sizes of the caller are."""
    value = condition.substitute(call_sizes(call, shapes))
    # Sizes that are checked to be equal when the function is called.
    zeros = [a - b for a, b, _ in shapes.equalities]
    values = [value, *(value + zero for zero in zeros), *(value - zero for zero in zeros)]
    return any(v.constant < 0 and all(factor < 0 for _, factor in v.terms) for v in values)


def call_sizes(call: CallDpsOp, shapes: SymbolicShapes) -> dict[str, Dim]:
    """The sizes of the operands and results of a call, by the names that its kernel has.

    A size that the call computes counts as its upper bound, for which its buffer has room.
    """
    own = bounds_of({name: s for name, s in shapes.computed.items() if s.op is call})
    return shapes.of_arguments(call.arguments) | {
        size_of_result(number, axis): dim.at_most(own)
        for number, result in enumerate(call.results)
        for axis, dim in enumerate(shapes.shape(result))
    }


def equal_sizes(call: CallDpsOp, shapes: SymbolicShapes) -> dict[str, Dim]:
    """The sizes of `call_sizes`, with one symbol for sizes that the caller checks to be equal."""
    same = same_sizes((a, b) for a, b, _ in shapes.equalities)
    return {name: dim.substitute(same) for name, dim in call_sizes(call, shapes).items()}
