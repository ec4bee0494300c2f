"""Quotients and remainders of special values of each type of floats, with the signs of zeros."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import stepwell as sw

from ...harness import cases, same
from .compared import Functions, torch

NUMBERS = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    3.0,
    -3.0,
    0.1,
    -0.1,
    7.0,
    math.inf,
    -math.inf,
    math.nan,
]
FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "floor_divide": lambda a, b: a // b,
    "floor_divide_number": lambda a, b: a // -2.0,
    "number_floor_divide": lambda a, b: -0.5 // b,
    "div_trunc": lambda a, b: torch.div(a, b, rounding_mode="trunc"),
    "remainder": lambda a, b: a % b,
    "remainder_number": lambda a, b: a % -2.0,
    "fmod": torch.fmod,
    "trunc": lambda a, b: a.trunc(),
}


DTYPES = ["float64", "float32", "float16", "bfloat16"]


@pytest.mark.parametrize("dtype", cases(DTYPES, ["float32", "bfloat16"]))
def test_signs(dtype: str) -> None:
    numbers = torch.tensor(NUMBERS, dtype=getattr(torch, dtype))
    a, b = (x.contiguous() for x in torch.meshgrid(numbers, numbers, indexing="ij"))
    exe = sw.compile(sw.from_torch(Functions(FUNCTIONS).eval(), (a, b)), threads=1)
    for (name, function), got in zip(FUNCTIONS.items(), exe(a, b), strict=True):
        same(got.astype(np.float64), function(a, b).double().numpy(), name)
