"""Sizes of torch that are quotients of others: reshapes by fixed numbers and by half of a size."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import stepwell as sw

from ...harness import cases, import_level
from .compared import TOLERANCE, close_to_torch, compiled, torch

W6, W10 = torch.ones(6, 4), torch.linspace(0, 1, 40).reshape(10, 4)

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "rows": lambda x: (x.reshape(-1, 6) @ W6).softmax(0),
    "columns": lambda x: x.reshape(2, -1).softmax(1).t() @ x.reshape(2, -1),
    "unflatten": lambda x: x.unflatten(0, (2, -1)).softmax(1).flatten(0, 1) + x,
    "and back": lambda x: x.reshape(-1, 10).softmax(1).view(x.shape) + x,
    "several": lambda x: (x.reshape(2, -1).reshape(-1, 10) @ W10).transpose(0, 1).reshape(-1, 6),
    "transposed": lambda x: x.transpose(0, 1).reshape(3, 2, -1).permute(2, 0, 1).reshape(-1, 6),
    "expanded": lambda x: x.reshape(2, -1).unsqueeze(1).expand(2, 3, -1) + 1,
    "counted": lambda x: torch.arange(x.reshape(-1, 6).shape[0]) + x.reshape(-1, 6)[:, 0],
    "halves": lambda x: x.reshape(x.shape[0] // 2, 30).softmax(1),
    "pairs": lambda x: x.reshape(x.shape[0] // 2, 2, 15).mean(1) @ torch.ones(15, 3),
}


class Model(torch.nn.Module):
    def __init__(self, function: Callable[[Any], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Any) -> Any:
        return self.function(x)


def tensor(n: int) -> Any:
    return torch.randn(n, 3, 5, generator=torch.Generator().manual_seed(n))


ROWS = {0: torch.export.Dim.DYNAMIC}


STRIDED = ["several", "transposed"]
GROUPS = [[name for name in FUNCTIONS if name not in STRIDED], STRIDED]


@pytest.mark.parametrize(
    "names",
    [*GROUPS, *(pytest.param([name], marks=pytest.mark.slow) for name in FUNCTIONS)],
    ids=" ".join,
)
def test_quotients(names: list[str], all_tests: bool) -> None:
    """All functions take any even number, of rows, together and each of them alone."""

    def function(x: Any) -> list[Any]:
        return [FUNCTIONS[name](x) for name in names]

    module = sw.from_torch(Model(function).eval(), (tensor(8),), dynamic_shapes=(ROWS,))
    runs = [module.run_reference]
    if all_tests or names[0] in STRIDED:
        runs.append(sw.compile(module, threads=1, opt_level=import_level()))
    # torch takes half of a size not to be 1; where it compares strides, it refuses others as well.
    for n in (6, 8, 12, 40) if names[0] in STRIDED else (0, 4, 6, 8, 12, 40):
        for run in runs:
            close_to_torch(run(tensor(n).numpy()), function(tensor(n)))
    for n in (3, 7):
        for run in runs:
            with pytest.raises(sw.InputError, match=f"size.* x_0 .* got (x_0 = )?{n}$"):
                run(tensor(n).numpy())


def test_half_as_many_rows_as_there_are() -> None:
    """Any number of columns makes up for it, as long as it is one number."""

    def halves(x: Any) -> Any:
        y = x.reshape(x.shape[0] // 2, -1)
        return y.sum(1) + x[: x.shape[0] // 2, 0, 0], (y * 2).reshape(-1, 5)

    exe = compiled(Model(halves), (tensor(8),), (ROWS,))
    for n in (4, 6, 8, 12):
        close_to_torch(exe(tensor(n).numpy()), halves(tensor(n)))
    text = "dimension 0, expected x_0 // 2 == 0 or x_0 % (x_0 // 2) == 0, got x_0 = 7"
    with pytest.raises(sw.InputError, match=re.escape(text)):
        exe(tensor(7).numpy())


@pytest.mark.parametrize("name", cases(["rows", "several", "halves"], ["halves"]))
def test_forward_and_backward(name: str) -> None:
    function = FUNCTIONS[name]
    torch._dynamo.reset()
    level = {"opt_level": import_level()}
    compiled = torch.compile(function, backend="stepwell", dynamic=True, options=level)
    for n in (8, 12, 2):
        results = []
        for f in (function, compiled):
            x = tensor(n).requires_grad_()
            y = f(x)
            results.append((y.detach(), *torch.autograd.grad((y * y).sum(), x)))
        for want, got in zip(*results, strict=True):
            np.testing.assert_allclose(got, want, rtol=TOLERANCE, atol=TOLERANCE)
