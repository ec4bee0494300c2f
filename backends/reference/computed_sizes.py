"""Sizes that scalars hold while a module is run operator by operator."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from ...core.dims import Shape
from ...core.errors import InputError, explain
from ...core.provenance import origin
from ...core.typed import dense_array
from .control_flow import Frame

if TYPE_CHECKING:
    from ...dialects.graph.interfaces import Array


def with_computed(
    op: Operation, scalars: Sequence[SSAValue], arrays: Sequence[Array], frame: Frame
) -> Frame:
    """The frame with the sizes of an operation that some of its scalars hold.

    Raises:
        InputError: if one exceeds its bound, or two that must agree do not.
    """
    own = [
        (name, size)
        for name, size in frame.shapes.computed.items()
        if size.op is op and size.value in scalars
    ]
    known = dict(frame.sizes)
    for name, size in own:
        number = int(dense_array(arrays[scalars.index(size.value)])[()])
        limit = size.bound.evaluate(known)
        if not 0 <= number <= limit:
            fact, where = "a size is out of range", origin(op) or "call"
            raise InputError(explain(where, fact, expected=f"0 to {limit}", got=number))
        known[name] = number
    try:
        return replace(frame, sizes=frame.shapes.follow(known)) if own else frame
    except VerifyException as error:
        raise InputError(str(error)) from error


def cut(op: Operation, arrays: Sequence[Array], frame: Frame) -> tuple[Array, ...]:
    """The results of a call, which are the beginnings of arrays of upper bounds."""
    return tuple(
        _beginning(dense_array(array), frame.shapes.shape(value), frame.sizes)
        for value, array in zip(op.results, arrays, strict=True)
    )


def _beginning(array: np.ndarray, dims: Shape, sizes: Mapping[str, int]) -> np.ndarray:
    shape = tuple(dim.evaluate(sizes) for dim in dims)
    return array if array.shape == shape else array.reshape(-1)[: math.prod(shape)].reshape(shape)
