"""Mistakes can be planted: what they replace is there, and so are the tests that notice them."""

from __future__ import annotations

from pathlib import Path

import pytest

from .mistakes import Break
from .planted import BREAKS


@pytest.mark.parametrize("mistake", BREAKS, ids=lambda one: one.meaning)
def test_what_is_replaced_is_there_once(mistake: Break, root: Path) -> None:
    assert (root / mistake.file).read_text(encoding="utf-8").count(mistake.right) == 1
    assert mistake.right != mistake.wrong
    for test in mistake.tests.split():
        assert (root / test.partition("::")[0]).exists()


def test_each_is_stated_once() -> None:
    meanings = [one.meaning for one in BREAKS]
    assert len(set(meanings)) == len(meanings) >= 80
