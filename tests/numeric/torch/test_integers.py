"""Functions of integers that are composed of several operators, over all pairs of bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import stepwell as sw

from ...harness import cases, same
from .compared import Functions, torch

FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "floor_divide": lambda a, b: a // b,
    "floor_divide_number": lambda a, b: a // 7,
    "floor_divide_negative_number": lambda a, b: a // -7,
    "number_floor_divide": lambda a, b: 100 // b,
    "div_floor": lambda a, b: torch.div(a, b, rounding_mode="floor"),
    "div_trunc": lambda a, b: torch.div(a, b, rounding_mode="trunc"),
    "remainder": lambda a, b: a % b,
    "remainder_number": lambda a, b: a % 7,
    "number_remainder": lambda a, b: 100 % b,
    "fmod": torch.fmod,
    "pow": torch.pow,
    "add": lambda a, b: torch.add(a, b, alpha=3),
    "sub": lambda a, b: torch.sub(a, b, alpha=3),
    "rsub": lambda a, b: torch.rsub(a, b, alpha=3),
    "addcmul": lambda a, b: torch.addcmul(a, a, b, value=3),
    "clamp": lambda a, b: a.clamp(b, b + 10),
    "shift_left": lambda a, b: a << (b & 7),
    "shift_right": lambda a, b: a >> (b & 7),
}


def as_torch_exactly(a: Any, b: Any, functions: dict[str, Callable[[Any, Any], Any]]) -> None:
    module = sw.from_torch(Functions(functions).eval(), (a, b))
    for run in (module.run_reference, sw.compile(module, threads=1)):
        found = run(a.numpy(), b.numpy())
        for (name, function), got in zip(functions.items(), found, strict=True):
            same(got, function(a, b).numpy(), name)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_all_pairs_of_bytes(dtype: str) -> None:
    kind = getattr(torch, dtype)
    limits = torch.iinfo(kind)
    numbers = torch.arange(limits.min, limits.max + 1).to(kind)
    signed = {name: function for name, function in FUNCTIONS.items() if "negative" not in name}
    functions = FUNCTIONS if limits.min else signed
    as_torch_exactly(*torch.meshgrid(numbers, numbers[numbers != 0], indexing="ij"), functions)


@pytest.mark.parametrize("dtype", cases(["int16", "int32", "int64"], ["int64"]))
def test_quotients_near_the_ends(dtype: str) -> None:
    kind = getattr(torch, dtype)
    limits = torch.iinfo(kind)
    ends = [
        limits.min,
        limits.min + 1,
        limits.min // 2,
        limits.max // 2,
        limits.max - 1,
        limits.max,
    ]
    numbers = torch.tensor([*ends, *range(-8, 9)], dtype=kind)
    a, b = torch.meshgrid(numbers, numbers[numbers != 0], indexing="ij")
    # The quotient of the smallest integer by -1 traps in torch.
    b = torch.where((a == limits.min) & (b == -1), 1, b)
    as_torch_exactly(a, b, {name: FUNCTIONS[name] for name in list(FUNCTIONS)[:10]})


def test_quotients_by_zero() -> None:
    """An error in torch; here a quotient is 0, and the remainder the dividend."""
    a, b = torch.arange(-128, 128).to(torch.int8), torch.ones(256, dtype=torch.int8)
    names = ("floor_divide", "div_floor", "div_trunc", "remainder", "fmod")
    module = sw.from_torch(Functions({name: FUNCTIONS[name] for name in names}).eval(), (a, b))
    for run in (module.run_reference, sw.compile(module, threads=1)):
        quotients, rests = np.split(np.stack(run(a.numpy(), np.zeros(256, np.int8))), [3])
        assert not quotients.any()
        assert (rests == a.numpy()).all()
