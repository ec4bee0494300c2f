"""Texts with details, which Python and exported code word alike."""

from __future__ import annotations

import pytest

from stepwell.core.boundary.wording import Detail, WordingCase, pieces, worded


def test_pieces() -> None:
    assert pieces("a {0}, {-2} to {2-1}", 3) == [
        "a ",
        Detail(0),
        ", ",
        Detail(2, -1),
        " to ",
        Detail(2, 1, -1),
    ]
    assert pieces("{1}{0}", 1) == ["{1}", Detail(0)]
    assert pieces("", 3) == []


@pytest.mark.parametrize(
    ("details", "text"),
    [((5, 0, 9), "none at 5"), ((5, -1, 9), "-1 is not in -9 to 8"), ((5, 3, 9), "inside")],
)
def test_the_first_case_that_applies(details: tuple[int, ...], text: str) -> None:
    cases = (
        WordingCase("none at {0}", 1, 0, 0),
        WordingCase("inside", 1, 0),
        WordingCase("{1} is not in {-2} to {2-1}"),
    )
    assert worded(cases, details) == text
