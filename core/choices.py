"""Enumerations of the words that an attribute or an argument may be."""

from __future__ import annotations

from typing import NoReturn

from xdsl.utils.str_enum import StrEnum


class Choice(StrEnum):
    """An enumeration of words; another word is an error that lists them.

    >>> class Direction(Choice):
    ...     UP = "up"
    ...     DOWN = "down"
    >>> Direction("left")
    Traceback (most recent call last):
    ...
    ValueError: unknown word, expected up, down, got left
    """

    @classmethod
    def _missing_(cls, value: object) -> NoReturn:
        raise ValueError(f"unknown word, expected {', '.join(cls)}, got {value}")
