"""Values of the importer: element type, symbolic shape, and contents if known.

Contents are known for initialisers, for values computed from them, and for shapes: exporters
compute the target of a Reshape with Shape, Gather and Concat, which the importer evaluates.
Contents with symbolic dimensions are object arrays of `Dim`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.ir import SSAValue

from ...core.algebra.dims import Dim, Shape

_MOST_SYMBOLIC = 64  # entries of an array of dimensions; a shape has no more
_MOST_TERMS = 32
_MOST_FACTORS = 16
_LARGEST_COEFFICIENT = 1 << 62


@dataclass(eq=False)
class Value:
    """A value of an ONNX graph.

    Attributes:
        name: its ONNX name.
        dtype: element type.
        shape: dimensions, some of them symbolic.
        contents: the elements if known; see `is_symbolic`.
        stored: whether it is an initialiser, which goes to the weight store by name.
        ssa: its value in the IR, set at its first use.
        parts: the vectors that it is a concatenation of, if contents are known of some of them.
        items: the tensors of a sequence, which is no value of the IR; None for a tensor.
        is_text: whether it holds numbers of strings in the table of the model.
    """

    name: str
    dtype: np.dtype
    shape: Shape
    contents: np.ndarray | None = None
    stored: bool = False
    ssa: SSAValue | None = None
    parts: Sequence[Value] = ()
    items: Sequence[Value] | None = None
    is_text: bool = False

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def is_symbolic(self) -> bool:
        """Whether the contents are known, and include symbolic dimensions."""
        return self.contents is not None and self.contents.dtype == object


def is_static(shape: Iterable[Dim]) -> bool:
    """Whether no dimension is symbolic."""
    return all(dim.is_static for dim in shape)


def static_shape(array: np.ndarray) -> Shape:
    return tuple(Dim.of(n) for n in array.shape)


def is_simple(dim: Dim) -> bool:
    """Whether a dimension is small enough to compute with; real models have no larger ones."""
    return len(dim.terms) <= _MOST_TERMS and all(
        len(factors) <= _MOST_FACTORS and abs(coefficient) < _LARGEST_COEFFICIENT
        for factors, coefficient in dim.terms
    )


def as_dims(array: np.ndarray) -> np.ndarray | None:
    """An integer array as an object array of `Dim`; None if it is too long."""
    if array.size > _MOST_SYMBOLIC:
        return None
    if array.dtype == object:
        return array
    return from_dims([Dim.of(int(n)) for n in array.flat], array.shape)


def from_dims(dims: Iterable[Dim], shape: tuple[int, ...]) -> np.ndarray:
    """An object array that holds `dims` in row-major order."""
    flat = list(dims)
    array = np.empty(len(flat), object)
    array[:] = flat
    return array.reshape(shape)


def settled(array: np.ndarray, dtype: np.dtype) -> np.ndarray | None:
    """An object array of dimensions, as numbers if none is symbolic; None if one is too complex."""
    if array.dtype != object:
        return array
    if not all(is_simple(dim) for dim in array.flat):
        return None
    if all(dim.is_static for dim in array.flat):
        return np.array([dim.value for dim in array.flat], dtype).reshape(array.shape)
    return array


def combine(
    dims: Callable[[Dim, Dim], Dim | bool | None], a: np.ndarray, b: np.ndarray
) -> np.ndarray | None:
    """Apply a binary operator to dimensions elementwise, with broadcasting.

    Args:
        dims: the operator on two dimensions: a `Dim`, a bool, or None if it depends on the value
            of a symbol.

    Returns:
        The result, or None if any element is unknown.
    """
    left, right = as_dims(a), as_dims(b)
    if left is None or right is None:
        return None
    left, right = np.broadcast_arrays(left, right)
    answers = [dims(x, y) for x, y in zip(left.flat, right.flat, strict=True)]
    results = [answer for answer in answers if answer is not None]
    if len(results) < len(answers):
        return None
    if results and all(isinstance(r, bool) for r in results):
        return np.array(results, np.bool_).reshape(left.shape)
    return from_dims((dim for dim in results if isinstance(dim, Dim)), left.shape)


def differ(a: Dim, b: Dim) -> bool | None:
    """Whether two dimensions differ for all values of their symbols; None if that depends."""
    difference = a - b
    if difference.is_static:
        return difference.value != 0
    signs = {coefficient > 0 for _, coefficient in difference.terms}
    constant = any(not factors for factors, _ in difference.terms)
    # A sum of terms of one sign that include a constant is not zero, because sizes are nonnegative.
    return True if constant and len(signs) == 1 else None
