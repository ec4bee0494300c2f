"""Conditions and loops of torch beside torch itself."""

from __future__ import annotations

from typing import Any

import pytest

import stepwell as sw

from .compared import Functions, as_torch, compiled, normal, torch

N = torch.export.Dim("n")
nn = torch.nn


class Chosen(nn.Module):
    """Conditions on values and on sizes, one in another, with weights and a result of each type."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(3, 3) for _ in range(3))

    def forward(self, x: Any, flag: Any) -> Any:
        first, second, third = self.layers

        def inner(x: Any) -> Any:
            return torch.cond(flag, lambda x: second(x) + 1.5, lambda x: x * 2.0, (x,))

        large = torch.cond(x.sum() > 0, lambda x: first(x).relu(), inner, (x,))
        long = torch.cond(
            x.shape[0] > 3, lambda x: (x.sum(0), x * 1), lambda x: (third(x[0]), x + 1), (x,)
        )
        return large, long, large + first(x)


def test_conditions(all_tests: bool) -> None:
    yes, no = torch.tensor(True), torch.tensor(False)
    x = normal(5, 3).abs()
    others = [[x, no], [-x, yes], [-x, no], [x[:2], yes], [-x[:3], no]]
    as_torch(Chosen(), [x, yes], ({0: N}, None), others, compiles=all_tests)


class Repeated(nn.Module):
    """Loops that count by a tensor, by an integer, and by a size."""

    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(3, 3)

    def forward(self, x: Any, count: Any) -> Any:
        loop = torch._higher_order_ops.while_loop
        _, by_tensor = loop(
            lambda i, y: i < count, lambda i, y: (i + 1, self.lin(y).tanh()), (torch.tensor(0), x)
        )
        number, by_integer = loop(
            lambda i, y: 2 * i < y.shape[0], lambda i, y: (i + 1, y * 0.5 + i), (0, x)
        )
        (until,) = loop(lambda y: y.sum() < 100, lambda y: (y * 2,), (x.exp(),))
        return by_tensor, by_integer + number, until


def test_loops(all_tests: bool) -> None:
    x = normal(5, 3)
    others = [[x, torch.tensor(0)], [x[:1], torch.tensor(9)]]
    args = [x, torch.tensor(3)]
    as_torch(Repeated(), args, ({0: N}, None), others, compiles=all_tests)


class Recurrent(nn.Module):
    """A recurrent cell and running sums as scans, and a map."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(3, 3)

    def forward(self, x: Any) -> Any:
        scan = torch._higher_order_ops.scan

        def step(h: Any, row: Any) -> Any:
            h = self.cell(row, h)
            return h, h.clone()

        last, states = scan(step, torch.zeros(x.shape[1], 3), x)
        xs = (x, x + 1)
        sums, rows = scan(lambda c, row: (c + row[0], row[1] * c), x[0] * 2, xs, reverse=True)
        products = torch._higher_order_ops.map(lambda row, y: row @ y.T, x, x[0] + 1)
        return last, states, sums, rows, products


@pytest.mark.slow
def test_scans() -> None:
    as_torch(Recurrent(), [normal(4, 2, 3)], [{0: N}], [[normal(7, 2, 3)]])


class Missing(nn.Module):
    def forward(self, x: Any) -> Any:
        return torch.cond(x.sum() > 0, torch.special.i1, lambda x: torch.polygamma(1, x), (x,))


def test_what_is_missing_in_branches_is_reported() -> None:
    with pytest.raises(sw.ImportModelError) as error:
        compiled(Missing(), [normal(3)])
    text = str(error.value)
    assert "2 parts of the model are not supported" in text
    assert "aten.special_i1.default" in text
    assert "aten.polygamma.default" in text
    assert text.count("test_control.py") == 2


def test_what_torch_refuses_is_explained() -> None:
    def function(x: Any) -> Any:
        return torch.cond(x.sum() > 0, lambda x: x, torch.relu, (x,))

    text = "Got graph break/error: Encountered aliasing .*; torch suggests Replace `return input`"
    with pytest.raises(sw.ImportModelError, match=text):
        compiled(Functions({"y": function}), [normal(3)])
