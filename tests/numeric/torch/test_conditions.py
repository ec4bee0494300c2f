"""Sizes that an export excludes: an error names the input, the dimension and the value."""

from __future__ import annotations

import re
from typing import Any

import pytest

from stepwell.core.errors import InputError

from .compared import close_to_torch, compiled, torch

Dim = torch.export.Dim


class Model(torch.nn.Module):
    """Conditions by checks of torch, by ranges, and by branches on sizes."""

    def forward(self, x: Any, others: dict[str, Any]) -> Any:
        y, z = others["y"], others["z"]
        torch._check(x.shape[0] <= 100)
        torch._check(x.shape[0] % 2 == 0)
        torch._check(x.shape[1] > y.shape[0] + 1)
        if z.shape[0] == y.shape[0]:
            return x + 1, y, z
        return x, y, z


def zeros(*sizes: int) -> Any:
    a, b, c, d = sizes
    return torch.zeros(a, b), {"y": torch.zeros(c), "z": torch.zeros(d)}


@pytest.fixture(scope="module")
def exe() -> Any:
    shapes = {
        "x": {0: Dim.DYNAMIC, 1: Dim.DYNAMIC},
        "others": {"y": {0: Dim("few", min=1, max=50)}, "z": {0: Dim("many", min=4)}},
    }
    return compiled(Model(), zeros(6, 12, 3, 5), shapes)


def test_sizes_that_the_export_allows(exe: Any) -> None:
    for sizes in ((6, 12, 3, 5), (100, 52, 50, 4), (2, 3, 1, 9), (0, 3, 1, 4), (2, 4, 0, 7)):
        x, others = zeros(*sizes)
        for call in (exe, lambda *args: exe.run_at("graph", *args)):
            close_to_torch(call(x, *others.values()), Model()(x, others))


EXCLUDED = [
    ((102, 12, 3, 5), '"x": wrong size of dimension 0, expected x_0 <= 100, got x_0 = 102'),
    ((7, 12, 3, 5), '"x": wrong size of dimension 0, expected x_0 % 2 == 0, got x_0 = 7'),
    ((6, 4, 3, 5), '"x": wrong size of dimension 1, expected x_1 > 1 + few, got x_1 = 4, few = 3'),
    ((6, 90, 51, 5), '"others_y": wrong size of dimension 0, expected few <= 50, got few = 51'),
    ((6, 12, 2, 3), '"others_z": wrong size of dimension 0, expected many >= 4, got many = 3'),
    ((6, 12, 5, 5), "expected many < 2 or few < 2 or many != few, got many = 5, few = 5"),
]


def test_sizes_that_the_export_excludes(exe: Any) -> None:
    for sizes, text in EXCLUDED:
        x, others = zeros(*sizes)
        for call in (exe, lambda *args: exe.run_at("graph", *args)):
            with pytest.raises(InputError, match="^input .*" + re.escape(text)):
                call(x, *others.values())
