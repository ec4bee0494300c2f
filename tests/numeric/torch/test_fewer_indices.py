"""Indices of fewer rows than the data, as torch allows them."""

from __future__ import annotations

from typing import Any

import pytest

from stepwell.core.errors import InputError

from .compared import Functions, as_torch, torch

FUNCTIONS = {
    "gather": lambda x, i, u: torch.gather(x, 1, i),
    "scatter": lambda x, i, u: torch.scatter(x, 1, i, u),
    "scatter_add": lambda x, i, u: torch.scatter_add(x, 1, i, u),
    "scatter_reduce": lambda x, i, u: torch.scatter_reduce(x, 1, i, u, "amax"),
}


def tensors(n: int, m: int) -> list[Any]:
    return [torch.randn(n, 4), torch.tensor([[1, 3]]).repeat(m, 1), torch.randn(m, 2)]


def test_any_number_of_rows() -> None:
    rows = {0: torch.export.Dim.DYNAMIC}
    shapes = {"tensors": (rows, rows, rows)}
    others = [tensors(n, m) for n, m in ((7, 7), (5, 2), (9, 3))]
    exe = as_torch(Functions(FUNCTIONS), tensors(6, 4), shapes, others)
    with pytest.raises(InputError):
        exe(*(tensor.numpy() for tensor in tensors(3, 6)))
