"""Orders, parts and scatters of ATen beside torch, with sizes that are computed in each call."""

from __future__ import annotations

import math
from typing import Any

import pytest

import stepwell as sw

from .compared import Functions, as_torch, close_to_torch, imported, normal, torch

nn, F = torch.nn, torch.nn.functional
ANY = torch.export.Dim.DYNAMIC


def with_nans(x: Any) -> Any:
    x = x.clone()
    x[0, 1], x[-1, 2, 0] = math.nan, math.nan
    return x


ORDERS = {
    "median": lambda x, i: (x.median(1), x.median(0, keepdim=True), x.median()),
    "nanmedian": lambda x, i: (x.nanmedian(1), i.median(0)[0]),
    "mode": lambda x, i: (i.mode(), x.mode(1), (x > 0).long().mode(0, keepdim=True)),
    "histc": lambda x, i: (x.nan_to_num().histc(7), x.histc(5, -1, 0.5), (i * 0.0).histc(3)),
    "cummax": lambda x, i: (x.cummax(1), x.cummin(0), i.cummax(0)),
    "logcumsumexp": lambda x, i: x.nan_to_num(-math.inf).logcumsumexp(0),
    "topk": lambda x, i: x.nan_to_num().topk(x.shape[0] - 1, 0)[0],
    "searchsorted": lambda x, i: torch.searchsorted(x.nan_to_num().sort(-1)[0], x, right=True),
    "searchsorted_row": lambda x, i: torch.searchsorted(i.sort()[0], i + 1, out_int32=True),
    "bucketize": lambda x, i: torch.bucketize(x, torch.linspace(-1, 1, 300)),
    "bincount": lambda x, i: torch.bincount(i),
    "bincount_weighted": lambda x, i: torch.bincount(i, x[:, 2, 1], minlength=7),
    "repeat_interleave": lambda x, i: x.repeat_interleave(i, 0),
    "unique": lambda x, i: i.unique(),
    "norm_0": lambda x, i: torch.linalg.vector_norm(i.float(), 0),
}


def test_orders(all_tests: bool) -> None:
    index = torch.tensor([4, 0, 0, 3, 2])
    args = [with_nans(normal(5, 4, 3)), index]
    others = [[with_nans(normal(2, 4, 3)), torch.tensor([1, 1])]]
    as_torch(Functions(ORDERS), args, [({0: ANY}, {0: ANY})], others, compiles=all_tests)


PARTS = {
    "half": lambda x: x[: x.shape[0] // 2],
    "steps": lambda x: (x[::2], x[1 : x.shape[0] - 1 : 2]),
    "least": lambda x: x[: min(x.shape[0], 3)] * 2,
    "even": lambda x: x[: x.shape[0] - x.shape[0] % 2].sum(0),
    "zeros": lambda x: x.new_zeros(x.shape[0] // 2 + 1, 2),
    "split": lambda x: x.split([1, x.shape[0] - 1], 0),
    "chunk": lambda x: x.repeat(2, 1).chunk(2, 0),
    "unfold": lambda x: (x.unfold(1, 2, 2), x.unfold(0, 2, 1)),
    "diagonal": lambda x: x.diagonal(),
    "size": lambda x: (x.shape[0], x.shape[0] // 2, 7),
}


def test_parts_of_computed_sizes(all_tests: bool) -> None:
    """Some of the results are numbers."""
    model = Functions(PARTS)
    module = imported(model, [normal(5, 4)], [({0: ANY},)])
    run = sw.compile(module, threads=1) if all_tests else module.run_reference
    for rows in (5, 3, 4, 9):
        x = normal(rows, 4)
        close_to_torch(run(x), torch.utils._pytree.tree_map(torch.as_tensor, model(x)))


MOVES = {
    "masked_scatter": lambda x, u: x.masked_scatter(x[0] > 0, u),
    "put": lambda x, u: x.put(torch.tensor([3, 1, 3]), u[0, :3], accumulate=True),
    "smaller_source": lambda x, u: u.scatter_add(1, torch.tensor([[0, 2]]), x.abs()[:3, :3] + 1),
    "index_reduce": lambda x, u: [
        u.index_reduce(1, torch.tensor([0, 0, 2]), u[:, :3] * 2, kind, include_self=own)
        for kind in ("prod", "mean", "amax", "amin")
        for own in (True, False)
    ],
    "strided": lambda x, u: x[:3].clone().as_strided((3, 2), (4, 1), 1),
    "diagonal": lambda x, u: torch.eye(4).fill_diagonal_(3.0) + u[0],
    "triangle": lambda x, u: torch.ones(4, 4)[torch.triu_indices(4, 4, 1).unbind()] * u[0, 0],
    "addmv": lambda x, u: torch.addmv(u[0], u.mT @ u, u[1], beta=0.5, alpha=2),
    "addbmm": lambda x, u: torch.addbmm(u[:3, :3], u[None, :3], u.mT[None, :, :3]),
    "signs": lambda x, u: (torch.signbit(-u * 0), torch.copysign(u, -u), torch.hypot(u, u * 2)),
    "numbers": lambda x, u: (torch.fmax(u, u * math.nan), torch.fmin(u, -u), u.round(decimals=2)),
}


@pytest.mark.filterwarnings("ignore:index_reduce")
def test_moves(all_tests: bool) -> None:
    args = [normal(5, 4), normal(3, 4).repeat(2, 1)]
    others = [[normal(4, 4), args[1]]]
    as_torch(Functions(MOVES), args, [({0: ANY}, None)], others, compiles=all_tests)


class Bags(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        modes = ("sum", "mean", "max")
        self.bags = nn.ModuleList(nn.EmbeddingBag(10, 3, mode=m, padding_idx=4) for m in modes)

    def forward(self, rows: Any, flat: Any, offsets: Any, weights: Any) -> Any:
        first = self.bags[0]
        weighted = first(flat, offsets, weights), first(rows, per_sample_weights=rows.float())
        return [
            *weighted,
            *(bag(rows) for bag in self.bags),
            *(b(flat, offsets) for b in self.bags),
        ]


DISTANCES = {
    "euclidean": lambda x, chosen: torch.cdist(x[chosen], x),
    "largest": lambda x, chosen: torch.cdist(x[chosen], x[chosen], math.inf).topk(1, -1)[1],
    "batches": lambda x, chosen: torch.cdist(x[chosen][:, None], x[None], 1.0),
}


def test_distances_of_counted_rows(all_tests: bool) -> None:
    args = [normal(6, 3), torch.tensor([1, 0, 1, 1, 0, 1]) > 0]
    others = [[normal(4, 3), torch.tensor([0, 0, 1, 0]) > 0]]
    as_torch(Functions(DISTANCES), args, [({0: ANY}, {0: ANY})], others, compiles=all_tests)


def test_bags_of_embeddings(all_tests: bool) -> None:
    rows, flat = torch.tensor([[1, 4, 2], [4, 4, 4]]), torch.tensor([3, 4, 4, 9, 1])
    args = [rows, flat, torch.tensor([0, 2, 2, 4]), normal(5)]
    others = [[rows[:, :2], flat[:2], torch.tensor([0, 0]), normal(2)]]
    sizes = {0: ANY, 1: ANY}, {0: ANY}, {0: ANY}, {0: ANY}
    as_torch(Bags(), args, sizes, others, compiles=all_tests)


class Numbers(nn.Module):
    """Numbers as inputs, which are data and sizes, and None, as a result and an input."""

    def forward(self, x: Any, n: int, none: Any, factor: float) -> Any:
        return {"y": x * factor + n, "none": none, "next": n + 1, "first": torch.arange(n)}


def test_numbers_as_inputs() -> None:
    model, x = Numbers().eval(), normal(3)
    module = sw.from_torch(model, (x, 5, None, 2.0), dynamic_shapes=(None, ANY, None, None))
    assert [str(spec) for spec in module.inputs] == ["x: 3xf32", "n: i64"]
    exe = sw.compile(module)
    for n in (5, 0, 9):
        y, following, first = exe(x, torch.tensor(n))
        expected = model(x, n, None, 2.0)
        close_to_torch((y, first), (expected["y"], expected["first"]))
        assert following == n + 1
    with pytest.raises(sw.StepwellError, match="-2"):
        exe(x, torch.tensor(-2))
