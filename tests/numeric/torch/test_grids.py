"""Grids of `grid_sample` with NaN, which means -1, and infinite places."""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

import numpy as np
import pytest

from ...harness import cases, results
from .compared import TOLERANCE, Functions, compiled, torch

sample = torch.nn.functional.grid_sample

PADDINGS = "zeros", "border", "reflection"
NAN, INF = math.nan, math.inf
PLACES = [[NAN, 0.1], [0.2, NAN], [NAN, NAN], [0.3, -0.4], [-1.0, 1.0], [1e30, 0.2]]
BEYOND = [[INF, 0.1], [-INF, 0.1], [0.1, INF], [0.1, -INF], [0.3, 0.3]]


def grid(places: list[list[float]]) -> Any:
    return torch.tensor(places).reshape(1, 1, -1, 2)


@pytest.mark.parametrize("mode", cases(["bilinear", "nearest", "bicubic"], ["bilinear", "nearest"]))
def test_places_that_are_not_numbers(mode: str, all_tests: bool) -> None:
    x = torch.arange(1.0, 13).reshape(1, 1, 3, 4)
    paddings = {"bilinear": PADDINGS, "nearest": PADDINGS[1:2], "bicubic": PADDINGS[:1]}[mode]
    functions = {
        f"{padding} {corners}": functools.partial(
            sample, mode=mode, padding_mode=padding, align_corners=corners
        )
        for padding, corners in itertools.product(PADDINGS, (False, True))
        if all_tests or (corners == (padding == "border") and padding in paddings)
    }
    exe = compiled(Functions(functions), (x, grid(PLACES)))
    meant = grid([[-1.0 if math.isnan(g) else g for g in place] for place in PLACES])
    found = results(exe(x.numpy(), grid(PLACES).numpy()))
    for (name, function), got in zip(functions.items(), found, strict=True):
        # How often a place as far as 1e30 is reflected, f32 cannot say.
        count = 5 if name.startswith("reflection") else 6
        want = function(x, meant)[..., :count]
        np.testing.assert_allclose(got[..., :count], want, TOLERANCE, TOLERANCE, err_msg=name)


@pytest.mark.parametrize("mode", cases(["bilinear", "nearest"], ["bilinear"]))
def test_infinite_places(mode: str) -> None:
    x = torch.arange(1.0, 13).reshape(1, 1, 3, 4)
    functions = {
        padding: functools.partial(sample, mode=mode, padding_mode=padding, align_corners=False)
        for padding in ("border", "reflection")
    }
    exe = compiled(Functions(functions), (x, grid(BEYOND)))
    found = exe(x.numpy(), grid(BEYOND).numpy())
    for (name, function), got in zip(functions.items(), found, strict=True):
        want = function(x, grid(BEYOND))
        np.testing.assert_allclose(got, want, TOLERANCE, TOLERANCE, err_msg=name)
