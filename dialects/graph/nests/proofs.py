"""Proofs about a kernel: its accesses are inside of their buffers, its results are stored.

What depends on the sizes of a call is a condition (`loop.fits`) that is checked before the kernel
runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr
from xdsl.ir import Operation, SSAValue

from ....core.algebra.dims import Dim, Shape, size_of_argument, size_of_result
from ....core.ir.symbols import find_symbol
from ....core.ir.typed import memref_type, returned
from ...loop.arguments import FITS, texts_of
from ...loop.ops import KernelOp, LoadOp, PrefetchOp
from ...loop.proofs.counted import is_counted
from ...loop.proofs.coverage import Coverage, is_covered
from ...loop.proofs.indices import Known
from ...loop.proofs.inside import Inside, Reader, Unproved, as_text, indices_of, readers_in
from ..interfaces import GraphOp, declared_shape, tensor_type, unknown_sizes
from ..ops.control.call import CallDpsOp
from ..sizes.computed import bounds_of
from ..sizes.facts import ShapeFacts, text
from ..sizes.shapes import SymbolicShapes
from .sizes import Sizes, known_of, known_of_call

HINT = "clamp the index, or guard the access"
_UNNAMED = Dim.symbol("_")

# Accesses are inside of their buffers.


def outside_of_call(
    kernel: KernelOp,
    operands: Sequence[SSAValue],
    results: Sequence[Sizes] | None = None,
    trusted: Callable[[Reader], bool] = lambda access: False,
    holds: Callable[[Dim], bool] = lambda condition: False,
) -> Unproved | None:
    """The access that `outside_of` finds in a kernel that is called with these operands.

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
    """Facts about the arguments of the kernel of a primitive function with these shapes."""
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


# Results are stored.


@dataclass(frozen=True)
class Uncovered:
    """A result of a kernel that is not proved to be stored as a whole."""

    number: int
    result: SSAValue
    shape: str
    stored: str
    """What is known to be stored."""
    width: int | None
    """How many elements of each row are stored, where rows are padded."""

    @property
    def facts(self) -> tuple[str, str, str]:
        """The fact, what is expected, and what was found instead, for a message."""
        fact = f'not all elements of "{self.result.name_hint or "y"}" are proved to be stored'
        return fact, f"stores that cover {self.shape}", self.stored


def uncovered_of_call(
    kernel: KernelOp,
    operands: Sequence[SSAValue],
    sizes: Mapping[str, Dim],
    counts: Mapping[SSAValue, SSAValue] | None = None,
) -> Iterator[Uncovered]:
    """The results of a kernel that is called that are not proved to be stored as a whole.

    Args:
        kernel: the kernel.
        operands: the operands of a call of it.
        sizes: the sizes of the operands (``x0.1``) and of the results (``y0.1``), in symbols that
            are equal where sizes are.
        counts: see `uncovered`.
    """
    known = known_of_call(kernel, [tensor_type(value) for value in operands])
    # The conversion of the call refuses one that does not fit.
    yield from () if known is None else uncovered(kernel, known.with_sizes(sizes), counts)


def uncovered(
    kernel: KernelOp, known: Known, counts: Mapping[SSAValue, SSAValue] | None = None
) -> Iterator[Uncovered]:
    """The results of a kernel that are not proved to be stored as a whole.

    Args:
        kernel: the kernel.
        known: what is known of its arguments.
        counts: for outputs the output that holds how many elements they have along the first
            dimension, where the kernel computes it.
    """
    for number, output in enumerate(kernel.outputs):
        count = None if counts is None else counts.get(output)
        if count is not None and is_counted(known, output, count):
            continue
        if not is_covered(known, output):
            coverage = Coverage(known, output)
            boxes = [_text(coverage.places(box)) for box in coverage.boxes()]
            none = "nothing" if coverage.is_empty else "none with a known place"
            stored = " and ".join(boxes) or none
            sizes = [dim or _UNNAMED for dim in coverage.shape()]
            shape = text(sizes if count is None else [_UNNAMED, *sizes[1:]])
            widths = (n for n in coverage.widths() if is_covered(known, output, n))
            yield Uncovered(number, output, shape, stored, max(widths, default=None))


def counts_in(
    shapes: SymbolicShapes, outputs: Mapping[SSAValue, SSAValue]
) -> dict[SSAValue, SSAValue]:
    """For outputs of a kernel the output that holds their first size, where there is one.

    Args:
        shapes: the shapes of the function around the results.
        outputs: the outputs of the kernel, by the results that they are.
    """
    found: dict[SSAValue, SSAValue] = {}
    for result, output in outputs.items():
        for first in shapes.shape(result)[:1]:
            size = shapes.computed.get(first.name or "")
            if size is not None and size.value in outputs:
                found[output] = outputs[size.value]
    return found


def is_read_beyond(
    result: SSAValue, width: int, sizes_of: Callable[[CallDpsOp], Mapping[str, Dim]]
) -> bool:
    """Whether more than the first elements of rows of a result may be used.

    Rows that other kernels gather are aligned by elements that nothing reads or writes
    (`loop-align-rows`).

    Args:
        result: the result of a call.
        width: how many elements of each row are known to be stored.
        sizes_of: the sizes of a call, as for `uncovered`.
    """
    for use in result.uses:
        call = use.operation
        kernel = find_symbol(call, call.callee) if isinstance(call, CallDpsOp) else None
        if not isinstance(call, CallDpsOp) or not isinstance(kernel, KernelOp):
            return True
        known = known_of_call(kernel, [tensor_type(value) for value in call.arguments])
        if known is None:
            return True
        inside = Inside(known.with_sizes(sizes_of(call)))
        buffer = kernel.body.block.args[call.places[use.index]]
        last = memref_type(buffer).get_num_dims() - 1
        for reader in (use.operation for use in buffer.uses):
            harmless = isinstance(reader, memref.DimOp | PrefetchOp)
            within = isinstance(reader, LoadOp) and inside.is_below(reader, last, width)
            if not harmless and not within:
                return True
    return False


def sizes_by_name(operands: Sequence[Shape], results: Sequence[Shape]) -> dict[str, Dim]:
    """The sizes of operands and results by the names that their kernel has for them."""
    pairs = ((size_of_argument, operands), (size_of_result, results))
    return {
        name(number, axis): dim
        for name, shapes in pairs
        for number, shape in enumerate(shapes)
        for axis, dim in enumerate(shape)
    }


def sizes_of_operator(op: GraphOp) -> dict[str, Dim]:
    """The sizes of the operands and results of an operator, from its shape rule alone."""
    fresh, equal = unknown_sizes(), list[tuple[Dim, Dim]]()
    shapes = {value: declared_shape(value, fresh) for value in dict.fromkeys(op.operands)}
    operands = [shapes[value] for value in op.operands]
    facts = ShapeFacts(op, fresh, record=lambda a, b: equal.append((a, b)))
    results = op.infer_shapes(operands, facts)
    for result, shape in zip(op.results, results, strict=True):
        declared = zip(shape, tensor_type(result).get_shape(), strict=True)
        equal += [(size, Dim.of(number)) for size, number in declared if number >= 0]
    same = same_sizes(equal)
    return {name: dim.substitute(same) for name, dim in sizes_by_name(operands, results).items()}


def _text(box: Sequence[tuple[Dim | None, Dim | None]]) -> str:
    """A box as messages print it: ``[0:4, 1:?]``."""
    ends = (text([dim or _UNNAMED for dim in pair])[1:-1].replace(", ", ":") for pair in box)
    return f"[{', '.join(ends)}]"
