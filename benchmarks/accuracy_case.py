"""A case of `accuracy.py`: a program, what it computes exactly, and the same in the peers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from accuracy_inputs import Arrays, Inputs, numbers
from peers import Node
from scipy.sparse import csr_array

Formula = Callable[..., np.ndarray]
Unit = Callable[[Formula, Arrays], np.ndarray]
FLOATS, WITHOUT_BFLOAT = ("f16", "bf16", "f32", "f64"), ("f16", "f32", "f64")
SPARSE = ("f32", "f64")


def value_of(formula: Formula, arrays: Arrays) -> np.ndarray:
    """The unit of a function: the result itself."""
    return formula(*arrays)


def terms_of(formula: Formula, arrays: Arrays) -> np.ndarray:
    """The unit of a sum: the sum of magnitudes, which is as large whatever cancels."""
    return formula(*map(_magnitudes, arrays))


def _magnitudes(array: Any) -> Any:
    if isinstance(array, np.ndarray):
        return abs(array)
    # The absolute value of a sparse matrix has the sums of entries that have one place.
    return csr_array((abs(array.data), array.indices, array.indptr), shape=array.shape)


def rows_of(formula: Formula, arrays: Arrays) -> np.ndarray:
    """The unit of a normalisation: the largest result of a row."""
    return np.max(abs(formula(*arrays)), axis=-1, keepdims=True)


@dataclass(frozen=True)
class Case:
    """An operator, on inputs, and what it is compared with.

    Args:
        program: adds the operator to a builder; None for the node of ONNX.
        formula: the operator in NumPy.
        inputs: the inputs for an element type.
        unit: the number whose last place is the unit of an error, for each element.
        torch: the operator, given the module `torch` and its tensors.
        node: the operator in ONNX.
        types: the element types.
        in_numpy: whether the formula is a peer: what people compute with NumPy.
        target: what the program is compiled for.
    """

    program: Callable[..., Any] | None
    formula: Formula
    inputs: Inputs = numbers
    unit: Unit = value_of
    torch: Callable[..., Any] | None = None
    node: Node | None = None
    types: tuple[str, ...] = FLOATS
    in_numpy: bool = True
    target: str = "host"
