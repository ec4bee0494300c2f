"""Diffs of functions by passes, of large ones, too."""

from __future__ import annotations

import difflib

import pytest

from stepwell.core.instrumentation.ir_text import difference, window
from stepwell.report import pass_changes
from stepwell.report.pass_changes import LONGEST, PassChanges


def lines(*numbers: int) -> str:
    return "".join(f"line {number}\n" for number in numbers)


@pytest.mark.parametrize(
    ("before", "after", "places"),
    [
        ("abc", "abc", ((3, 3), (3, 3))),
        ("abc", "axc", ((1, 2), (1, 2))),
        ("aa", "aaa", ((2, 2), (2, 3))),
        ("aba", "a", ((1, 3), (1, 1))),
        ("", "ab", ((0, 0), (0, 2))),
        ("ab", "", ((0, 2), (0, 0))),
    ],
)
def test_the_window_of_what_differs(
    before: str, after: str, places: tuple[tuple[int, int], ...]
) -> None:
    assert tuple((one.start, one.stop) for one in window(before, after)) == places


@pytest.mark.parametrize("changed", [(), (0,), (1,), (20,), (38,), (39,), (3, 30), (0, 39)])
@pytest.mark.parametrize("kind", ["other", "removed", "added"])
def test_a_diff_is_that_of_the_whole_text(changed: tuple[int, ...], kind: str) -> None:
    old = [f"line {number}" for number in range(40)]
    new: list[str] = []
    for number, line in enumerate(old):
        if number not in changed:
            new.append(line)
        elif kind != "removed":
            new += ["-- other"] if kind == "other" else [line, "@@ -1 +1 @@"]
    whole = difflib.unified_diff(old, new, "f before", "f after", lineterm="")
    assert difference("f", "\n".join(old), "\n".join(new)) == "\n".join(whole)


def test_diffs_of_what_is_new_or_gone() -> None:
    assert difference("f", None, "a\nb").splitlines()[2:] == ["@@ -0,0 +1,2 @@", "+a", "+b"]
    assert difference("f", "a", None).splitlines()[2:] == ["@@ -1 +0,0 @@", "-a"]


def test_a_small_change_of_a_large_function_is_shown() -> None:
    found = PassChanges()._difference(
        "f", lines(*range(5000)), lines(*range(2500), -1, *range(2501, 5000))
    )
    assert (found.removed, found.added) == (1, 1)
    assert found.text.splitlines()[2] == "@@ -2498,7 +2498,7 @@"
    assert "-line 2500\n+line -1" in found.text


def test_a_large_change_is_counted() -> None:
    """Only the lines between the first one that differs and the last one."""
    old = lines(*range(3 * LONGEST))
    new = lines(*range(LONGEST), *range(-LONGEST - 1, 0), *range(2 * LONGEST, 3 * LONGEST))
    found = PassChanges()._difference("f", old, new)
    assert (found.removed, found.added, found.text) == (LONGEST, LONGEST + 1, "")


def test_the_largest_change_that_is_shown() -> None:
    old, new = lines(*range(LONGEST)), lines(*range(-LONGEST, 0))
    found = PassChanges()._difference("f", old, new)
    assert found.text.count("\n-") == found.text.count("\n+line") == LONGEST


def test_added_and_removed_lines_are_counted_apart() -> None:
    found = PassChanges()._difference("f", lines(0, 1, 2), lines(0, 3))
    assert (found.removed, found.added) == (2, 1)


def test_after_many_diffs_lines_are_only_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pass_changes, "_BUDGET", 100)
    changes = PassChanges()
    first, second = (changes._difference("f", lines(*range(5)), lines(0, 9)) for _ in range(2))
    assert first.text
    assert (second.removed, second.added, second.text) == (first.removed, first.added, "")
