"""A mistake that tests have to notice."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Break:
    """A mistake in a line or two of the sources.

    Args:
        meaning: what is wrong then, in words that hold wherever the code is.
        file: the file, from the root of the repository.
        right: what is in the file, once.
        wrong: what stands there instead.
        tests: tests, files of tests or of IR text, one of which fails then; separated by spaces.
    """

    meaning: str
    file: str
    right: str
    wrong: str
    tests: str
