"""The sizes of a kernel in those of the operands of a call, and what else is known of these."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue

from ....core.algebra.dims import Dim, size_of_argument, size_of_result
from ....core.ir.typed import memref_type
from ...loop.arguments import BOUNDS, OFFSETS, texts_of
from ...loop.ops import ForOp, KernelOp
from ...loop.proofs.in_place import overwritable
from ...loop.proofs.indices import Known, KnownIndices
from ...sparse_tensor import is_sparse, part_count

Sizes: TypeAlias = Sequence[Dim | None]
"""The sizes of a tensor in those of arguments, None for one that does not follow from them."""


class NoValueError(Exception):
    """A kernel has no value at an index; the text says why."""


@dataclass(frozen=True)
class ArgumentPart:
    """What an argument of a kernel is of the tensor that is passed.

    `place` is 0 for the elements of a dense tensor; for a CSR matrix 0 to 3 are its row
    pointers, column indices, values and number of columns.
    """

    operand: int
    place: int


class KernelSizes:
    """The sizes of a kernel, in ``x0.1``: dimension 1 of the first operand.

    Args:
        kernel: the kernel.
        kinds: the types of the tensors that a call of it passes.

    Raises:
        NoValueError: if it has another number of buffers.
    """

    def __init__(self, kernel: KernelOp, kinds: Sequence[TensorType]) -> None:
        self.kinds, self.parts = kinds, _parts(kernel, kinds)
        results: list[Sizes] = [[None] * memref_type(v).get_num_dims() for v in kernel.outputs]
        shapes = [_shape_of_argument(number, kind) for number, kind in enumerate(kinds)]
        self._indices = KnownIndices(known_of(kernel, kinds, shapes, results))

    def extent(self, loop: ForOp) -> Dim:
        """The number of iterations of a loop over a bound.

        Raises:
            NoValueError: if it does not follow from the sizes of the operands.
        """
        if len(loop.bound.data.results) != 1:
            raise NoValueError("the end of a loop is a minimum")
        found = self._indices.size_of(loop.bound.data.results[0], loop.bounds)
        if found is None:
            raise NoValueError("the end of a loop is not known from the sizes of its operands")
        if any(name.endswith(".nnz") for name in found.symbols):
            raise NoValueError("the end of a loop is a number of stored entries")
        return found


def _parts(kernel: KernelOp, kinds: Sequence[TensorType]) -> dict[SSAValue, ArgumentPart]:
    places = [
        ArgumentPart(number, place)
        for number, kind in enumerate(kinds)
        for place in range(part_count(kind))
    ]
    if len(places) != len(kernel.inputs):
        raise NoValueError("it is called with another number of buffers")
    return dict(zip(kernel.inputs, places, strict=True))


def known_of_call(
    kernel: KernelOp, kinds: Sequence[TensorType], results: Sequence[Sizes] | None = None
) -> Known | None:
    """Facts about the arguments of a kernel that is called; None for one that does not fit.

    Args:
        kernel: the kernel.
        kinds: the types of the operands of a call.
        results: the sizes of the results, as far as they follow from those of operands.
    """
    if sum(map(part_count, kinds)) != len(kernel.inputs):
        return None
    shapes = [_shape_of_argument(number, kind) for number, kind in enumerate(kinds)]
    names = {name for shape in shapes for dim in shape for name in dim.symbols}
    own: list[Sizes] = []
    for number, kind in enumerate(map(memref_type, kernel.outputs)):
        given = [None] * kind.get_num_dims() if results is None else results[number]
        own.append(
            [
                dim
                if dim is not None and names.issuperset(dim.symbols)
                else Dim.symbol(size_of_result(number, axis))
                for axis, dim in enumerate(given)
            ]
        )
    return known_of(kernel, kinds, shapes, own)


def known_of(
    kernel: KernelOp,
    kinds: Sequence[TensorType],
    shapes: Sequence[Sizes],
    results: Sequence[Sizes],
    holders: Container[int] = (),
) -> Known:
    """Facts about the arguments of a kernel.

    Args:
        kernel: the kernel.
        kinds: the types of the operands of a call of it.
        shapes: their sizes.
        results: the sizes of its results.
        holders: the numbers of the operands that hold a size.
    """
    known, zero, position = Known(), Dim.of(0), 0
    for number, (kind, shape) in enumerate(zip(kinds, shapes, strict=True)):
        parts = kernel.inputs[position : position + part_count(kind)]
        if not is_sparse(kind):
            known.shapes[parts[0]] = shape
            if number in holders:
                known.held[parts[0]] = Dim.symbol(size_of_argument(number, "value"))
            if checked := _checked_contents(kernel, position):
                known.contents[parts[0]] = checked
            position += 1
            continue
        (rows, columns), entries = shape, Dim.symbol(size_of_argument(number, "nnz"))
        known.shapes[parts[0]] = [None if rows is None else rows + 1]
        known.shapes |= {part: [entries] for part in parts[1:3]}
        known.contents[parts[0]], known.entries[parts[0]] = [(zero, entries + 1)], entries
        size = kind.get_shape()[1]
        columns = columns if size < 0 else Dim.of(size)
        if columns is not None:
            known.contents[parts[1]] = [(zero, columns)]
            known.sizes |= dict.fromkeys(parts[3:], columns)
        position += len(parts)
    known.shapes |= dict(zip(kernel.outputs, results, strict=True))
    for changed in _changed_inputs(kernel):
        known.contents.pop(changed, None)
        known.held.pop(changed, None)
    return known


def _checked_contents(kernel: KernelOp, number: int) -> list[tuple[Dim, Dim]]:
    """The least integer of an input and what is above all, as calls check them."""
    indices = [Dim.parse(text) for text in texts_of(kernel, number, BOUNDS)]
    offsets = [Dim.parse(text) for text in texts_of(kernel, number, OFFSETS)]
    # A negative index counts from the back.
    ends = [(-extent, extent) for extent in indices]
    return [*ends, *((Dim.of(0), extent + 1) for extent in offsets)]


def _changed_inputs(kernel: KernelOp) -> Iterator[SSAValue]:
    """The inputs of which a kernel may read elements that a result is written over."""
    for number, output in enumerate(kernel.outputs, len(kernel.inputs)):
        if over := kernel.may_overwrite(number):
            harmless = overwritable(kernel, output)
            yield from (kernel.inputs[given] for given in over.difference(harmless))


def _shape_of_argument(number: int, kind: TensorType) -> list[Dim]:
    """The sizes of an operand of a call by the names that its kernel has for them."""
    return [Dim.symbol(size_of_argument(number, axis)) for axis in range(kind.get_num_dims())]
