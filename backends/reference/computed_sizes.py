"""Sizes that scalars hold while a module is run operator by operator."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from xdsl.ir import Block, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from ...core.algebra.dims import LARGEST_SIZE, Shape
from ...core.errors import InputError, explain
from ...core.ir.provenance import origin
from ...core.ir.typed import dense_array
from ...dialects.graph.sizes.computed import DIFFERS, OUT_OF_RANGE
from ...dialects.graph.sizes.shapes import SymbolicShapes

if TYPE_CHECKING:
    from ...dialects.graph.interfaces import Array


@dataclass(frozen=True)
class FunctionFrame:
    """A call of a function: its shapes, the sizes of this call, and how its blocks are run.

    `bounded` are the arguments that hold sizes whose upper bounds the caller has checked.
    """

    shapes: SymbolicShapes
    sizes: Mapping[str, int]
    run: Callable[[Block, Sequence[Array], FunctionFrame], tuple[Array, ...] | None]
    bounded: frozenset[SSAValue] = frozenset()

    def run_body(self, block: Block, arguments: Sequence[Array]) -> tuple[Array, ...]:
        """What the block of a region yields."""
        return self.run(block, arguments, self) or ()


def with_computed(
    op: Operation, values: Sequence[SSAValue], arrays: Sequence[Array], frame: FunctionFrame
) -> FunctionFrame:
    """The frame with the sizes of an operation that some of its values hold, or have.

    Raises:
        InputError: if one exceeds its bound, or two that must agree do not.
    """
    own = [
        (name, size)
        for name, size in frame.shapes.computed.items()
        if size.op is op and size.value in values
    ]
    known = dict(frame.sizes)
    for name, size in own:
        array = dense_array(arrays[values.index(size.value)])
        number = int(array[()]) if size.axis is None else array.shape[size.axis]
        bound = None if size.value in frame.bounded else size.bound
        limit = LARGEST_SIZE if bound is None else bound.evaluate(known)
        declared, where = frame.shapes.declared(name), origin(op) or "call"
        if declared is not None and number != declared:
            raise InputError(explain(where, DIFFERS, expected=declared, got=number))
        if not 0 <= number <= limit:
            raise InputError(explain(where, OUT_OF_RANGE, expected=f"0 to {limit}", got=number))
        known[name] = number
    try:
        return replace(frame, sizes=frame.shapes.follow(known)) if own else frame
    except VerifyException as error:
        raise InputError(str(error)) from error


def cut(op: Operation, arrays: Sequence[Array], frame: FunctionFrame) -> tuple[Array, ...]:
    """The results of a call, which are the beginnings of arrays of upper bounds."""
    return tuple(
        _beginning(dense_array(array), frame.shapes.shape(value), frame.sizes)
        for value, array in zip(op.results, arrays, strict=True)
    )


def _beginning(array: np.ndarray, dims: Shape, sizes: Mapping[str, int]) -> np.ndarray:
    shape = tuple(dim.evaluate(sizes) for dim in dims)
    return array if array.shape == shape else array.reshape(-1)[: math.prod(shape)].reshape(shape)
