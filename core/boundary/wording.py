"""Texts about the details of a failed call, as data that exported code has, too.

In a text `{0}` stands for a detail, `{-2}` for the negative of one, and `{2-1}` for one less 1.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_PLACE = re.compile(r"\{(-?)(\d)(-1)?\}")


@dataclass(frozen=True)
class Detail:
    """A number in a text: a detail, times `factor`, plus `summand`."""

    place: int
    factor: int = 1
    summand: int = 0


@dataclass(frozen=True)
class WordingCase:
    """A text, and the details to which it applies.

    It applies where detail `detail` is in [`least`, `most`]; `most` None is the last detail, and
    `detail` None means everywhere.
    """

    text: str
    detail: int | None = None
    least: int = 0
    most: int | None = None

    def applies(self, details: Sequence[int]) -> bool:
        """Whether the text is about these details."""
        if self.detail is None:
            return True
        most = details[-1] if self.most is None else self.most
        return self.least <= details[self.detail] <= most


def pieces(text: str, details: int) -> list[str | Detail]:
    """A text as pieces that are texts and numbers, of which there are so many."""
    found: list[str | Detail] = []
    end = 0
    for match in _PLACE.finditer(text):
        sign, place, less = match.groups()
        if int(place) >= details:
            continue
        found += [text[end : match.start()]] if match.start() > end else []
        found.append(Detail(int(place), -1 if sign else 1, -1 if less else 0))
        end = match.end()
    return [*found, text[end:]] if end < len(text) else found


def worded(cases: Sequence[WordingCase], details: Sequence[int]) -> str:
    """The text of the first case that applies."""
    text = next(case.text for case in cases if case.applies(details))
    return "".join(
        piece if isinstance(piece, str) else str(_number(piece, details))
        for piece in pieces(text, len(details))
    )


def _number(detail: Detail, details: Sequence[int]) -> int:
    return details[detail.place] * detail.factor + detail.summand
