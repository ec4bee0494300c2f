"""Numbers of Python that follow from sizes, such as the correction of a variance, and gradients."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ...harness import cases, import_level
from .compared import Functions, as_torch, torch

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "var": lambda x: x.var(1),
    "std": lambda x: x.std(0),
    "all": lambda x: x.var(),
    "var_mean": lambda x: sum(torch.var_mean(x, 1)),
    "std_mean": lambda x: sum(torch.std_mean(x, (0, 1), keepdim=True)),
    "corrected": lambda x: x.var(1, correction=0) + x.var(1, correction=2),
    "clamp": lambda x: x.clamp(max=x.shape[0] / 8),
    "alpha": lambda x: torch.add(x, x * 2, alpha=x.shape[0] / 2),
    "where": lambda x: torch.where(x > 0, x, x.shape[0] * 0.1),
    "scaled": lambda x: x * x.shape[0] ** -0.5 + x / torch.sym_sqrt(x.shape[1]) - -x.shape[0] / 3,
}


@pytest.mark.parametrize("name", cases(list(FUNCTIONS), ["std_mean", "clamp"]))
def test_forward_and_backward(name: str, caplog: pytest.LogCaptureFixture) -> None:
    torch._dynamo.reset()
    function = FUNCTIONS[name]
    level = {"opt_level": import_level()}
    own = torch.compile(function, backend="stepwell", dynamic=True, options=level)
    for shape in ((4, 6), (5, 3), (7, 7)):
        found = []
        for f in (function, own):
            generator = torch.Generator().manual_seed(shape[0])
            x = torch.randn(*shape, generator=generator).requires_grad_()
            y = f(x)
            found.append((y.detach(), *torch.autograd.grad((y * y).sum(), x)))
        for want, got in zip(*found, strict=True):
            # Sums of at most 49 numbers in another order.
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    if name not in ("clamp", "where", "alpha"):
        assert not [r for r in caplog.records if r.levelno >= logging.WARNING], "all is compiled"


def test_numbers_in_an_export(all_tests: bool) -> None:
    names = [name for name in FUNCTIONS if name != "std_mean"]
    model = Functions({name: FUNCTIONS[name] for name in names})
    shapes = {"tensors": ({0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC},)}
    others = [(torch.randn(5, 3),), (torch.randn(8, 3),)]
    as_torch(model, (torch.randn(4, 6),), shapes, others, compiles=all_tests)
