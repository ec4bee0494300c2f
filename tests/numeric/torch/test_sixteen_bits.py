"""Numbers of Python beside tensors of 16 bits: torch computes in f32 and rounds once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import stepwell as sw

from ...harness import cases
from .compared import Functions, torch

F = torch.nn.functional
Function = Callable[[Any, Any], Any]

ARITHMETIC: dict[str, Function] = {
    "add": lambda x, y: x + 1.7,
    "add_alpha": lambda x, y: torch.add(x, y, alpha=1.7),
    "add_number_alpha": lambda x, y: torch.add(x, 0.3, alpha=1.7),
    "add_scalar": lambda x, y: x + torch.tensor(1.7),
    "sub": lambda x, y: x - 1.7,
    "sub_alpha": lambda x, y: torch.sub(x, y, alpha=1.7),
    "rsub": lambda x, y: 1.7 - x,
    "rsub_alpha": lambda x, y: torch.rsub(x, y, alpha=1.7),
    "mul": lambda x, y: x * 1.7,
    "mul_integer": lambda x, y: x * 301,
    "mul_exact": lambda x, y: x * 0.125,
    "mul_large": lambda x, y: x * 1e30,
    "mul_scalar": lambda x, y: x * torch.tensor(1.7),
    "mul_size": lambda x, y: x * (x.shape[1] + 3),
    "div": lambda x, y: x / 1.7,
    "div_scalar": lambda x, y: x / torch.tensor(1.7),
    "number_div": lambda x, y: 1.7 / x,
    "div_floor": lambda x, y: torch.div(x, 0.17, rounding_mode="floor"),
    "div_trunc": lambda x, y: torch.div(x, 0.17, rounding_mode="trunc"),
    "floor_divide": lambda x, y: x // 0.17,
    # Of larger numbers the quotient overflows in torch, and the remainder is NaN.
    "remainder": lambda x, y: x.clamp(-32768, 32768) % 0.17,
    "number_remainder": lambda x, y: 1.7 % y,
    "index_add": lambda x, y: x.index_add(0, torch.arange(3), y[:3], alpha=1.7),
    "clamp": lambda x, y: x.clamp(-0.17, 1.7),
    "clamp_min": lambda x, y: x.clamp_min(0.17),
    "clamp_max": lambda x, y: x.clamp_max(0.17),
    "hardtanh": lambda x, y: F.hardtanh(x, -0.17, 1.7),
    "relu6": lambda x, y: F.relu6(x),
    "leaky_relu": lambda x, y: F.leaky_relu(x, 0.17),
    "rrelu": lambda x, y: F.rrelu(x, 0.11, 0.34),
    "prelu": lambda x, y: F.prelu(x, y[0, :1]),
    "hardsigmoid": lambda x, y: F.hardsigmoid(x),
    "threshold": lambda x, y: F.threshold(x, 0.17, 1.7),
    "hardshrink": lambda x, y: F.hardshrink(x, 0.17),
    "round_decimals": lambda x, y: x.round(decimals=2),
    "where": lambda x, y: torch.where(x > 0, x, 1.7),
    "masked_fill": lambda x, y: x.masked_fill(x > 0, 1.7),
    "nan_to_num": lambda x, y: torch.nan_to_num(x, 0.17),
    "copysign": lambda x, y: torch.copysign(x, -1.7),
    "less": lambda x, y: (x < 0.17).to(x.dtype),
    "equal": lambda x, y: (x == 0.17).to(x.dtype),
    "greater_equal": lambda x, y: (x >= 1.7).to(x.dtype),
    "pow_two": lambda x, y: x**2,
}
ELEMENTARY: dict[str, Function] = {
    "addcdiv": lambda x, y: torch.addcdiv(x, y, x, value=1.7),
    "addcmul": lambda x, y: torch.addcmul(x, y, y, value=1.7),
    "pow": lambda x, y: x**1.7,
    "pow_inverse": lambda x, y: x**-3,
    "pow_base": lambda x, y: 1.7**x,
    "pow_root": lambda x, y: x.abs() ** 0.5,
    "elu": lambda x, y: F.elu(x, 1.7),
    "selu": lambda x, y: F.selu(x),
    "celu": lambda x, y: F.celu(x, 1.7),
    "softplus": lambda x, y: F.softplus(x),
    "softplus_beta": lambda x, y: F.softplus(x, 1.7, 3.3),
    "hardswish": lambda x, y: F.hardswish(x.clamp(-9, 9)),
    "silu": lambda x, y: F.silu(x),
    "mish": lambda x, y: F.mish(x),
    "logsigmoid": lambda x, y: F.logsigmoid(x),
    "log2": lambda x, y: x.log2(),
    "log10": lambda x, y: x.log10(),
    "exp2": lambda x, y: x.exp2(),
}
SUMS: dict[str, Function] = {
    "addmm": lambda x, y: torch.addmm(y[:, :1], x, y.T, beta=0.3, alpha=1.7),
    "addmv": lambda x, y: torch.addmv(y[:, 0], x, y[0], beta=0.3, alpha=1.7),
    "var": lambda x, y: x.var(1),
    "std": lambda x, y: x.std(0, correction=0),
    "logsumexp": lambda x, y: torch.logsumexp(x * 0.125, 1),
    "norm": lambda x, y: torch.linalg.vector_norm(x, 3, 1),
}
# torch also rounds the parts of these sums to 16 bits.
MORE_ROUNDINGS = ("addmv", "logsumexp")


def every(dtype: Any) -> tuple[Any, Any]:
    """All numbers of a type of 16 bits, and others beside them."""
    x = torch.arange(-(2**15), 2**15).to(torch.int16).view(dtype).reshape(64, 1024)
    return x, torch.randn(64, 1024, generator=torch.Generator().manual_seed(0)).to(dtype)


def differences(functions: dict[str, Function], x: Any, y: Any) -> dict[str, np.ndarray]:
    """By how many numbers of the type each result is from that of torch; NaN is NaN."""
    model = Functions(functions).eval()
    results = sw.compile(sw.from_torch(model, (x, y)), threads=1)(x, y)
    found: dict[str, np.ndarray] = {}
    for (name, function), got in zip(functions.items(), results, strict=True):
        want = function(x, y)
        assert want.dtype == x.dtype
        places = [in_order(bits.view(np.int16)) for bits in (got, want.view(torch.int16).numpy())]
        nan = np.isnan(np.stack([got.astype(np.float32), want.float().numpy()]))
        found[name] = np.where(nan.all(0), 0, np.where(nan.any(0), 2**16, np.ptp(places, axis=0)))
    return found


def in_order(bits: np.ndarray) -> np.ndarray:
    """The numbers of a type by their places: zeros of both signs are at 0."""
    size = bits.astype(np.int64) & 0x7FFF
    return np.where(bits < 0, -size, size)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_arithmetic_with_numbers(dtype: str, all_tests: bool) -> None:
    """Bit for bit, signs of zeros aside; each function in one type at least."""
    chosen = (0, 1, 2) if all_tests else (1, 2) if dtype == "bfloat16" else (0,)
    functions = {n: f for place, (n, f) in enumerate(ARITHMETIC.items()) if place % 3 in chosen}
    found = differences(functions, *every(getattr(torch, dtype)))
    assert {name: np.count_nonzero(part) for name, part in found.items() if part.any()} == {}


@pytest.mark.parametrize("dtype", cases(["bfloat16", "float16"], ["bfloat16"]))
def test_functions_with_numbers(dtype: str) -> None:
    """Near the middle of two neighbours another f32 is rounded to the other one."""
    found = differences(ELEMENTARY, *every(getattr(torch, dtype)))
    assert {name: part.max() for name, part in found.items() if part.max() > 1} == {}
    counts = {name: np.count_nonzero(part) for name, part in found.items()}
    assert {name: count for name, count in counts.items() if count > 12} == {}


@pytest.mark.parametrize("dtype", cases(["bfloat16", "float16"], ["float16"]))
def test_sums_with_numbers(dtype: str) -> None:
    """Sums of f32 in another order are rounded to the same numbers but near the middle of two."""
    generator = torch.Generator().manual_seed(1)
    x, y = (torch.randn(64, 48, generator=generator).to(getattr(torch, dtype)) for _ in range(2))
    found = differences(SUMS, x, y)
    assert {name: part.max() for name, part in found.items() if part.max() > 1} == {}
    shares = {name: part.mean() for name, part in found.items() if name not in MORE_ROUNDINGS}
    assert {name: share for name, share in shares.items() if share > 0.02} == {}
