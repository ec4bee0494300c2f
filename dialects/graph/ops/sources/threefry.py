"""Threefry-2x32 with 13 rounds: random words as a function of a key and a counter.

Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

Word = TypeVar("Word")

_ROTATIONS = (13, 15, 26, 6, 17, 29, 16, 24)
_ROUNDS = 13
"""The fewest that pass all tests of BigCrush, as the authors report."""
_PARITY = 0x1BD11BDA
_MASK = 0xFFFFFFFF

FLOAT_BITS = 24
"""The digits of an f32: so many upper bits of a word make a number in [0, 1)."""


class Words(Protocol[Word]):
    """Arithmetic on words of 32 bits, which wraps around."""

    def add(self, a: Word, b: Word) -> Word:
        """a + b."""
        ...

    def xor(self, a: Word, b: Word) -> Word:
        """The bits in which a and b differ."""
        ...

    def rotate(self, a: Word, bits: int) -> Word:
        """a rotated to the left."""
        ...

    def number(self, value: int) -> Word:
        """A constant."""
        ...


class MaskedWords:
    """Words in the lower halves of integers of 64 bits, in arrays of NumPy or tensors of torch."""

    def add(self, a: Any, b: Any) -> Any:
        return (a + b) & _MASK

    def xor(self, a: Any, b: Any) -> Any:
        return a ^ b

    def rotate(self, a: Any, bits: int) -> Any:
        return ((a << bits) | (a >> (32 - bits))) & _MASK

    def number(self, value: int) -> Any:
        return value


def first_word(key: tuple[Word, Word], counter: tuple[Word, Word], words: Words[Word]) -> Word:
    """The first random word for a counter; the low word of keys and counters comes first."""
    add, xor = words.add, words.xor
    keys = (*key, xor(xor(*key), words.number(_PARITY)))
    a, b = add(counter[0], keys[0]), add(counter[1], keys[1])
    for number in range(_ROUNDS):
        a = add(a, b)
        b = xor(words.rotate(b, _ROTATIONS[number % len(_ROTATIONS)]), a)
        if number % 4 == 3:
            turn = number // 4 + 1
            a = add(a, keys[turn % 3])
            b = add(add(b, keys[(turn + 1) % 3]), words.number(turn))
    return a


def first_word_of(seeds: Any, places: Any) -> Any:
    """The same for integers of 64 bits in arrays of NumPy or tensors of torch."""

    def halves(x: Any) -> tuple[Any, Any]:
        return x & _MASK, (x >> 32) & _MASK

    return first_word(halves(seeds), halves(places), MaskedWords())
