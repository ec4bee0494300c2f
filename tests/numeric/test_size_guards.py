"""Conditions on sizes that a function states in `graph.guards`."""

from __future__ import annotations

import numpy as np
import pytest

import stepwell as sw
from stepwell.core.errors import CompileError, InputError, StepwellError

TEXT = """
func.func @main(%x: tensor<?x?xf32> {{graph.name = "x", graph.dims = ["n", "m"]}},
                %b: tensor<?x1xf32> {{graph.name = "b", graph.dims = ["n", ""]}})
    -> tensor<?x?xf32> attributes {{graph.guards = {guards}}} {{
  %y = graph.add %x, %b : (tensor<?x?xf32>, tensor<?x1xf32>) -> tensor<?x?xf32>
  func.return %y : tensor<?x?xf32>
}}
"""


def module(*guards: str) -> sw.Module:
    texts = ", ".join(f'"{guard}"' for guard in guards)
    return sw.from_mlir(TEXT.format(guards=f"[{texts}]"))


def call(run: object, n: int, m: int) -> str:
    """What a call of these sizes fails with; "" if it does not."""
    try:
        run(np.zeros((n, m), np.float32), np.zeros((n, 1), np.float32))  # type: ignore[operator]
    except InputError as error:
        return str(error)
    return ""


def test_each_operator_in_compiled_code_and_in_the_reference() -> None:
    guards = {
        "n <= 9": lambda n, m: n <= 9,
        "(n - 4) // 3 < 2": lambda n, m: (n - 4) // 3 < 2,
        "m != 2 * n or m == 4": lambda n, m: m != 2 * n or m == 4,
        "n % m > -1 + 0 * n": lambda n, m: True,
        "m // n >= 0": lambda n, m: True,
        "(n - 3) % 2 == 1 or n < 6": lambda n, m: (n - 3) % 2 == 1 or n < 6,
    }
    given = module(*guards)
    exe = sw.compile(given, threads=1)
    for n in range(11):
        for m in (0, 1, 4, 6):
            wrong = next((text for text, holds in guards.items() if not holds(n, m)), None)
            for run in (exe, given.run_reference):
                found = call(run, n, m)
                assert (found == "") == (wrong is None)
                assert wrong is None or f"expected {wrong}, got " in found


def test_the_error_names_the_first_size() -> None:
    exe = sw.compile(module("m <= 3"), threads=1)
    text = 'input "x": wrong size of dimension 1, expected m <= 3, got m = 4'
    assert call(exe, 2, 4) == text


@pytest.mark.parametrize(
    "guard", ["n", "n <", "n < 1 < 2", "f(n) < 2", "n ** 2 < 2", "", "True < n"]
)
def test_what_is_no_condition(guard: str) -> None:
    expected = r'wrong graph.guards, expected comparisons of sizes, such as "n <= 100", got'
    with pytest.raises(StepwellError, match=f"func.func @main: {expected}"):
        sw.compile(module(guard), threads=1)
    with pytest.raises(CompileError, match=expected):
        module(guard).run_reference(np.zeros((1, 1), np.float32), np.zeros((1, 1), np.float32))


def test_a_size_that_no_argument_has() -> None:
    text = r"the condition k < 2 has a size that no argument has, expected \['m', 'n'\], got k"
    with pytest.raises(CompileError, match=text):
        sw.compile(module("k < 2"), threads=1)


def test_sizes_that_become_numbers() -> None:
    def fixed(*guards: str, n: int) -> str:
        return sw.bind_params(module(*guards), {"b": np.zeros((n, 1), np.float32)}).text()

    assert 'graph.guards = ["4 < m"]' in fixed("n < 5", "n < m", n=4)
    assert "graph.guards" not in fixed("n < 5", n=4)
    with pytest.raises(StepwellError, match="not made for these sizes, expected n < 5, got n = 5"):
        fixed("n < 5", n=5)
