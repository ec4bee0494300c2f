"""Random choices: the same ones for the same seed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Choices(random.Random):
    """A source of random choices.

    Args:
        seed: what the choices depend on; equal texts give equal choices.
    """

    def __new__(cls, seed: str) -> Choices:
        return super().__new__(cls)

    def __init__(self, seed: str) -> None:
        super().__init__(seed)

    def chance(self, probability: float) -> bool:
        """Whether something of this probability happens."""
        return self.random() < probability

    def among(self, *options: T) -> T:
        """One of the options."""
        return options[self.randrange(len(options))]

    def some(self, options: Sequence[T], most: int) -> list[T]:
        """Between one and `most` of the options, in random order."""
        return self.sample(options, self.randint(1, min(most, len(options))))

    def size(self) -> int:
        """A size of a dimension: mostly a small one, at times that of several vectors."""
        if self.chance(0.75):
            return self.among(1, 2, 2, 3, 3, 4, 5)
        return self.among(0, 7, 8, 9, 16, 17, 33) if self.chance(0.9) else 0
