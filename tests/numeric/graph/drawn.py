"""Random programs for rules whose text leaves more open than `random_instances` can make up.

`drawn_dense`, `drawn_sparse`, `drawn_quantized`, `drawn_control` and `drawn_nests` have a function
for each of these rules, which draws shapes, element types, attributes and values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from xdsl.dialects.builtin import DYNAMIC_INDEX

import stepwell as sw

from ...fuzz.choices import Choices
from .instances import TYPES, special_array

WHOLE = (1 << 63) - 1

MODERATE = (1.0, 2.0, 0.5, -0.25, 1.5, 3.0, -1.0, 0.75, 0.0, -3.0)
"""Elements of the operands of rules that round: sums of them do not cancel large terms."""


class Drawing:
    """A program that is drawn.

    Args:
        choices: the source of all choices.
        special: whether inputs have NaN, infinities and large numbers.
    """

    def __init__(self, choices: Choices, special: bool) -> None:
        self.b, self.choices, self.special = sw.Builder(), choices, special
        self.symbolic = choices.chance(0.3)
        """Whether sizes above 1 of inputs are symbolic."""
        self.inputs = list[Any]()
        self.text = ""
        """The program, where no builder makes it."""

    def module(self) -> sw.Module:
        """The program."""
        return sw.from_mlir(self.text) if self.text else self.b.module()

    def sizes(self, rank: int) -> list[int]:
        """So many sizes."""
        return [self.choices.among(1, 2, 3, 4, 5) for _ in range(rank)]

    def kind(self, *kinds: str) -> str:
        """An element type."""
        return self.choices.among(*kinds or ("f32", "f16", "i8", "ui8"))

    def array(self, kind: str, *shape: int) -> np.ndarray:
        """Elements of a type."""
        if kind == "i1" or not kind.startswith("f") or self.special:
            return special_array(self.choices, kind, shape)
        values = [self.choices.choice(MODERATE) for _ in range(int(np.prod(shape)))]
        return np.array(values).reshape(shape).astype(TYPES[kind])

    def positive(self, kind: str, *shape: int) -> np.ndarray:
        """Numbers above 0, whose products are exact."""
        powers = [2.0 ** self.choices.among(-2, -1, 0, 1, 2) for _ in range(int(np.prod(shape)))]
        return np.array(powers).reshape(shape).astype(TYPES[kind])

    def given(self, array: np.ndarray, kind: str) -> Any:
        """An input that a call passes this array for."""
        shape = [f"n{size}" if self.symbolic and size > 1 else size for size in array.shape]
        self.inputs.append(array)
        return self.b.input(f"x{len(self.inputs)}", shape, kind)

    def input(self, kind: str, *shape: int) -> Any:
        """An input of random elements."""
        return self.given(self.array(kind, *shape), kind)

    def constant(self, kind: str, *shape: int) -> Any:
        """A constant of random elements."""
        return self.b.constant(self.array(kind, *shape))

    def either(self, kind: str, *shape: int) -> Any:
        """An input or a constant."""
        return (self.input if self.choices.chance(0.5) else self.constant)(kind, *shape)

    def stored(self, rows: int, columns: int) -> sp.csr_array:
        """A sparse matrix with some rows that store nothing."""
        kept = [[self.choices.chance(0.4) for _ in range(columns)] for _ in range(rows)]
        return sp.csr_array(np.where(kept, self.positive("f32", rows, columns), 0))

    def matrix(self, rows: int, columns: int) -> Any:
        """A sparse matrix as an input or as a constant."""
        made = self.stored(rows, columns)
        if self.choices.chance(0.5):
            return self.b.constant(made)
        self.inputs.append(made)
        entries = self.choices.among(None, made.nnz)
        spec = sw.SparseSpec(made.shape, "f32", nnz=entries)
        return self.b.input(f"x{len(self.inputs)}", spec)

    def permuted(self, count: int) -> list[int]:
        """The numbers below a count in random order."""
        return self.choices.sample(range(count), count)


Draw = Callable[[Drawing], None]
DrawT = TypeVar("DrawT", bound=Draw)

DRAWN: dict[str, Draw] = {}
"""What draws programs, by the names of rules. A rule need not apply to each of its programs."""


def draws(*rules: str) -> Callable[[DrawT], DrawT]:
    """Declare that a function draws the programs of rules."""

    def declared(draw: DrawT) -> DrawT:
        DRAWN.update(dict.fromkeys(rules, draw))
        return draw

    return declared


def width_of(x: Any) -> int:
    """The last size of a value."""
    size = x.ssa.type.get_shape()[-1]
    assert size != DYNAMIC_INDEX
    return size
