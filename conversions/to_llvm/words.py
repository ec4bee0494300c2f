"""Words of 64 bits: those of the context of a call and its tables, and arrays of them."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import llvm
from xdsl.dialects.builtin import i64
from xdsl.ir import Attribute, SSAValue

from .addresses import neighbour
from .lowering import Lowering
from .types import PTR, int_attr, words_of

_MONOTONIC = 2
"""A number of `ATOMIC_ORDERING_KEYWORDS`, for operations on one word that do not order others."""
WORD = {"alignment": int_attr(8, 64), "ordering": int_attr(0, 64)}
ATOMIC_WORD = {"alignment": int_attr(8, 64), "ordering": int_attr(_MONOTONIC, 64)}


def word_address(low: Lowering, base: SSAValue, word: int) -> SSAValue:
    """The address of a word of a table."""
    return neighbour(low, base, word, i64) if word else base


def word_at(low: Lowering, base: SSAValue, word: int, type: Attribute = PTR) -> SSAValue:
    """A word of the context or of its tables, which do not change during a call."""
    address = word_address(low, base, word)
    return low.hoist(("load", address, type), llvm.LoadOp, (address,), type, WORD)


def as_word(low: Lowering, value: SSAValue) -> SSAValue:
    """An index as a word: the same on a target with addresses of 64 bits."""
    return value if value.type == i64 else low.emit(llvm.SExtOp, (value,), i64)


def store_word(low: Lowering, base: SSAValue, word: int, value: SSAValue) -> None:
    """Change a word of a table; an index becomes a word."""
    if value.type == low.index:
        value = as_word(low, value)
    operands = [value, word_address(low, base, word)]
    low.perform(llvm.StoreOp.create(operands=operands, properties=WORD))


def on_stack(low: Lowering, values: Sequence[SSAValue], alignment: int) -> SSAValue:
    """The address of an array on the stack that holds values, each from a word on."""
    count = low.integer(max(1, sum(words_of(value.type) for value in values)))
    properties = {"elem_type": i64, "alignment": int_attr(alignment, 64)}
    array = low.hoist(low.op, llvm.AllocaOp, (count,), PTR, properties)
    word = 0
    for value in values:
        store_word(low, array, word, value)
        word += words_of(value.type)
    return array
