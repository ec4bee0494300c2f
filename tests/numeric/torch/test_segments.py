"""Reductions of segments between offsets, as torch and torch-geometric have them."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

import stepwell as sw

from ...harness import package
from .compared import Functions, as_torch, close_to_torch, compiled, torch

ANY = torch.export.Dim.DYNAMIC
ROWS, OFFSETS = {0: ANY}, {0: ANY}

KINDS = ("sum", "mean", "prod", "amax", "amin", "max", "min")

X = torch.tensor([[1.0, -2], [3, 4], [5, -6], [float("nan"), 2], [-3, -1]])
P = torch.tensor([0, 2, 2, 3, 5])


def reduced(kind: str, **options: Any) -> Any:
    return lambda x, p: torch.segment_reduce(x, kind, offsets=p, axis=0, **options)


class Module(torch.nn.Module):
    """A function of the elements and the offsets."""

    def __init__(self, functions: dict[str, Any]) -> None:
        super().__init__()
        self.functions = functions

    def forward(self, x: Any, p: Any) -> Any:
        return {name: function(x, p) for name, function in self.functions.items()}


def test_every_kind(all_tests: bool) -> None:
    functions = {kind: reduced(kind) for kind in KINDS}
    for kind in KINDS:
        functions[f"{kind} from 0"] = reduced(kind, initial=0)
        if kind != "mean":
            functions[f"{kind} from -2"] = reduced(kind, initial=-2.5)
    few = torch.tensor([[2.0, 0]]), torch.tensor([0, 0, 1])
    none = torch.zeros(0, 2), torch.tensor([0, 0])
    others = [few, none, (X[:, :1].repeat(1, 2), P)]
    as_torch(Module(functions), (X, P), (ROWS, OFFSETS), others, compiles=all_tests)


def test_a_mean_that_begins_with_a_number() -> None:
    with pytest.raises(sw.ImportModelError, match=r"a mean that begins with 2; closest .* 0"):
        compiled(Module({"y": reduced("mean", initial=2)}), (X, P))


@pytest.mark.parametrize("kind", ["max", "min", "sum", "mean"])
def test_segments_of_torch_geometric(kind: str, all_tests: bool) -> None:
    utils = package("torch_geometric.utils", "torch-geometric")
    model = Functions({"y": lambda x, p: utils.segment(x, p, reduce=kind)})
    shapes = {"tensors": (ROWS, OFFSETS)}
    others = [(torch.randn(0, 2), torch.tensor([0, 0, 0]))]
    as_torch(model, (X, P), shapes, others, compiles=all_tests or kind == "max")


def test_softmax_of_segments() -> None:
    package("torch_geometric.utils", "torch-geometric")
    softmax = importlib.import_module("torch_geometric.utils").softmax
    model = Functions({"y": lambda x, p: softmax(x, ptr=p)})
    x = torch.randn(9, 3, generator=torch.Generator().manual_seed(0))
    exe = compiled(model, (x, P), {"tensors": (ROWS, OFFSETS)})
    for ends in ([0, 4, 4, 9], [0, 1, 2, 3, 9], [0, 0, 9, 9]):
        offsets = torch.tensor(ends)
        close_to_torch(exe(x.numpy(), offsets.numpy()), model(x, offsets))
