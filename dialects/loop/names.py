"""Names for new loops: each is one that no loop of the kernel has, nor another new one.

Traces, options of passes and records find loops by their names, so that the primitives do not
leave it to chance: a new name is made here, from the name of the loop that it comes from.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence


def free_name(name: str, taken: Collection[str]) -> str:
    """The name, with underscores at its end until it is not taken."""
    while name in taken:
        name += "_"
    return name


def free_base(base: str, endings: Sequence[str], taken: Collection[str]) -> str:
    """The base, with underscores at its end until it makes a free name with each ending."""
    while any(base + ending in taken for ending in endings):
        base += "_"
    return base


def free_suffix(
    suffix: str,
    copied: Collection[str],
    taken: Collection[str],
    endings: Sequence[str] = ("",),
) -> str:
    """The suffix, repeated until copies of loops get free names with it.

    Args:
        suffix: what the names of the copies end with; its last character is no digit.
        copied: the names of the loops that are copied.
        taken: the names that other loops have, `copied` included where these stay.
        endings: the text after the suffix in each of several copies: empty, or a number.

    Names of different copies differ as well: equal ones would have the same ending, which is
    the digits after the last character of the suffix, and so be of the same loop.
    """
    found = suffix
    while any(name + found + ending in taken for name in copied for ending in endings):
        found += suffix
    return found
