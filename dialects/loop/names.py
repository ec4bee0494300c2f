"""Names of new loops, each unique in its kernel.

Traces, options of passes and records find loops by name, so that every new name is made here, from
the name of the loop that it comes from.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence


def free_name(name: str, taken: Collection[str]) -> str:
    """The name, with underscores appended until it is free."""
    while name in taken:
        name += "_"
    return name


def free_names(base: str, endings: Sequence[str], taken: Collection[str]) -> list[str]:
    """The base with each ending, after underscores that make all of these names free."""
    while any(base + ending in taken for ending in endings):
        base += "_"
    return [base + ending for ending in endings]


def free_suffix(
    suffix: str,
    copied: Collection[str],
    taken: Collection[str],
    endings: Sequence[str] = ("",),
) -> str:
    """The suffix, repeated until it forms a free name for each copy of a loop.

    Args:
        suffix: the end of the names of the copies; its last character is not a digit.
        copied: the names of the loops that are copied.
        taken: the names in use, including `copied` if those loops stay.
        endings: the text after the suffix in each of several copies: empty, or a number.

    Names of different copies differ too: equal names would have the same digits after the suffix,
    and so the same name of a loop before it.
    """
    found = suffix
    while any(name + found + ending in taken for name in copied for ending in endings):
        found += suffix
    return found
