"""Special functions beside torch, over the whole range of floats, and divisors of integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes  # noqa: F401  NumPy finds bfloat16 by its name then
import numpy as np
import pytest

import stepwell as sw

from .compared import Functions, torch

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "angle": torch.angle,
    "digamma": torch.digamma,
    "erfc": torch.erfc,
    "erfcx": torch.special.erfcx,
    "erfinv": torch.erfinv,
    "i0": torch.i0,
    "i0e": torch.special.i0e,
    "lgamma": torch.lgamma,
    "log_ndtr": torch.special.log_ndtr,
    "positive": torch.positive,
}

SPECIAL = (0, 1, 2, 0.5, 3, 10, 1e-30, 1e-8, 1e30, np.inf, 27.3, 1.4616321, 1.5, 2.5, 1 - 1e-7, 40)


def values(dtype: Any, count: int) -> Any:
    """Numbers of all sizes and signs, those in [-1, 1], those near 1, and special ones."""
    random = np.random.default_rng(2)
    sizes = np.exp(random.uniform(-60, 60, count))
    found = [
        np.array([*SPECIAL, *(-number for number in SPECIAL), np.nan]),
        *(random.standard_normal(count) * scale for scale in (1, 10)),
        *(
            random.uniform(-1, 1, count),
            sizes,
            -1 / sizes,
            1 - np.exp(random.uniform(-30, 0, count)),
        ),
    ]
    return torch.from_numpy(np.concatenate(found)).to(dtype)


def expected(name: str, x: Any) -> np.ndarray:
    """The results of torch, but for `digamma` below 0, where it loses digits near poles, and for
    `i0`, where a factor of its overflows."""
    found = FUNCTIONS[name](x)
    if name == "i0":
        found = torch.i0(x.double()).to(x.dtype).masked_fill(x.isinf(), torch.inf)
    if name == "digamma":
        # psi(x) == psi(1 - x) - pi / tan(pi (x - n)), where n is the nearest integer
        mirrored = torch.digamma(1 - x) - torch.pi / torch.tan(torch.pi * (x - x.round()))
        found = torch.where((x < 0) & (x != x.floor()), mirrored, found)
    return found.numpy()


def compare(name: str, got: np.ndarray, x: Any) -> None:
    """Special results agree; others have an error of some ulp, of torch and of ours together.

    Near the zeros of `digamma` and of `lgamma` for x < 0, where large numbers cancel, the error is
    one of these numbers. In f64 torch takes `erfcx` of large negative numbers from a square that it
    rounds. Subnormal results may be 0.
    """
    exact = {"float32": 5e-6, "float64": 2e-13 if name == "erfcx" else 1e-14}[got.dtype.name]
    near = {"float32": 1e-5, "float64": 2e-13}[got.dtype.name]
    least = near if name in ("digamma", "lgamma") else np.finfo(got.dtype).tiny
    np.testing.assert_allclose(got, expected(name, x), rtol=exact, atol=least, err_msg=name)


def test_functions_over_all_floats(all_tests: bool) -> None:
    """By the reference, which has the meaning of each operator."""
    x, names = values(torch.float32, 60), FUNCTIONS if all_tests else ("erfc", "lgamma")
    model = Functions({name: FUNCTIONS[name] for name in names}).eval()
    for name, got in zip(names, sw.from_torch(model, (x,)).run_reference(x.numpy()), strict=True):
        compare(name, got, x)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_compiled_functions_over_all_floats(name: str, dtype: Any) -> None:
    x = values(dtype, 3000)
    module = sw.from_torch(Functions({name: FUNCTIONS[name]}).eval(), (x,))
    compare(name, sw.compile(module, threads=1)(x), x)


@pytest.mark.parametrize("name", ["float32", "float64", "bfloat16"])
def test_the_next_float(name: str) -> None:
    numbers = [0, 1, 2, 3e38, np.inf, 1e-45, 1e-38]
    x = torch.tensor([*numbers, *(-number for number in numbers), np.nan]).to(getattr(torch, name))
    a, b = x.repeat_interleave(15), x.repeat(15)
    integers = {2: torch.int16, 4: torch.int32, 8: torch.int64}[x.itemsize]
    arrays = [part.view(integers).numpy().view(np.dtype(name)) for part in (a, b)]
    wanted = torch.nextafter(a, b)
    module = sw.from_torch(torch.nextafter, (a, b))
    for run in (module.run_reference, sw.compile(module, threads=1)):
        got = torch.from_numpy(run(*arrays).view(f"i{x.itemsize}"))
        is_nan = torch.from_numpy(np.isnan(run(*arrays)))
        assert torch.equal(is_nan, wanted.isnan())
        assert torch.equal(got[~is_nan], wanted.view(integers)[~is_nan])


class Divisors(torch.nn.Module):
    def forward(self, a: Any, b: Any) -> Any:
        return torch.gcd(a, b), torch.lcm(a, b)


def check_divisors(a: Any, b: Any, run: Callable[[sw.Module], Callable[..., Any]]) -> None:
    n, m = torch.export.Dim("n"), torch.export.Dim("m")
    module = sw.from_torch(Divisors().eval(), (a, b), dynamic_shapes=({0: n}, {0: m}))
    call = run(module)
    for first, second in ((a, b), (a[:1], b), (a[:0], b)):
        results = call(first.numpy(), second.numpy())
        for got, expected in zip(results, Divisors()(first, second), strict=True):
            assert got.dtype == expected.numpy().dtype
            np.testing.assert_array_equal(got, expected.numpy())


def integers(dtype: Any) -> tuple[Any, Any]:
    """Numbers of both signs, 0, 1, the largest ones, and neighbours in Fibonacci's sequence."""
    random, info = np.random.default_rng(4), torch.iinfo(dtype)
    fibonacci = [1, 1]
    while fibonacci[-1] + fibonacci[-2] <= info.max:
        fibonacci.append(fibonacci[-1] + fibonacci[-2])
    few = [number for number in (0, 1, -1, info.max, info.min + 1) if number >= info.min]
    low, high = max(info.min, -200), min(info.max, 200)
    a = [*few, *random.integers(low, high, 20).tolist(), fibonacci[-1]]
    b = [*few, *random.integers(low, high, 30).tolist(), fibonacci[-2]]
    return torch.tensor(a, dtype=dtype)[:, None], torch.tensor(b, dtype=dtype)


def test_divisors() -> None:
    check_divisors(*integers(torch.int16), lambda module: module.run_reference)


def test_divisors_of_all_bytes() -> None:
    """But -128, whose size torch takes for negative."""
    numbers = torch.arange(-127, 128).to(torch.int8)
    check_divisors(numbers[:, None], numbers, lambda module: module.run_reference)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64"])
def test_compiled_divisors(dtype: str) -> None:
    a, b = integers(getattr(torch, dtype))
    check_divisors(a, b, lambda module: sw.compile(module, threads=1))


def test_powers_of_two() -> None:
    functions = {
        "integers": torch.ldexp,
        "one": lambda x, n: torch.ldexp(x, n[0]),
    }
    x, n = torch.linspace(-3, 3, 298), torch.arange(298) - 149
    module = sw.from_torch(Functions(functions).eval(), (x, n))
    for got, function in zip(
        module.run_reference(x.numpy(), n.numpy()), functions.values(), strict=True
    ):
        np.testing.assert_array_equal(got, function(x, n).numpy())
