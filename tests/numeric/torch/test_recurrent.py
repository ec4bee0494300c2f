"""Recurrent layers of torch, with symbolic numbers of steps and sequences."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import stepwell as sw
from stepwell.core.errors import ImportModelError

from .compared import as_torch, close_to_torch, torch

nn = torch.nn
ANY = torch.export.Dim.DYNAMIC


class Layers(nn.Module):
    """Layers of all kinds, with and without first states, in one program."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(3, 4, num_layers=2, bidirectional=True, batch_first=True)
        self.gru = nn.GRU(8, 5, bidirectional=True, bias=False)
        self.rnn, self.relu = nn.RNN(10, 2), nn.RNN(2, 3, nonlinearity="relu")
        self.cells = nn.ModuleList([nn.LSTMCell(3, 2), nn.GRUCell(3, 2), nn.RNNCell(3, 2)])

    def forward(self, x: Any, h: Any) -> Any:
        y, (_, c) = self.lstm(x)
        z, last = self.gru(y.transpose(0, 1), h)
        u, _ = self.rnn(z)
        v, end = self.relu(u[:, 0])
        return y, c, z, last, u, v, end, *(cell(x[:, 0]) for cell in self.cells)


def test_layers() -> None:
    def args(batch: int, steps: int) -> list[Any]:
        return [torch.randn(batch, steps, 3), torch.randn(2, batch, 5)]

    model = Layers().eval()
    module = sw.from_torch(model, tuple(args(3, 5)), dynamic_shapes=({0: ANY, 1: ANY}, {1: ANY}))
    for given in (args(3, 5), args(1, 4), args(2, 1)):
        close_to_torch(module.run_reference(*given), model(*given))


def test_a_compiled_layer() -> None:
    args, others = [torch.randn(3, 2, 3)], [[torch.randn(1, 2, 3)], [torch.randn(9, 4, 3)]]
    as_torch(nn.GRU(3, 4), args, ({0: ANY, 1: ANY},), others)


def test_projections_are_refused() -> None:
    layer = nn.LSTM(3, 4, proj_size=2).eval()
    text = r"stepwell.lstm.default, in .*: projections of an LSTM \(proj_size\); closest supported"
    with pytest.raises(ImportModelError, match=text):
        sw.from_torch(layer, (torch.zeros(2, 1, 3),))


def test_a_layer_of_an_exported_program() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.export.export(nn.GRU(3, 4).eval(), (torch.zeros(3, 2, 3),))
    x = torch.randn(3, 2, 3)
    found = sw.from_torch(program).run_reference(x)
    for got, wanted in zip(found, program.module()(x), strict=True):
        torch.testing.assert_close(torch.tensor(got), wanted)
