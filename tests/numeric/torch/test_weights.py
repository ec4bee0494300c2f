"""Weights of torch that change after a program was compiled."""

from __future__ import annotations

from typing import Any

import pytest

from stepwell.core.errors import InputError

from .compared import close_to_torch, compiled, torch

nn = torch.nn


class Model(nn.Module):
    """Weights that are folded, packed, tied, single numbers, unused, and not in the state."""

    def __init__(self) -> None:
        super().__init__()
        self.lin, self.norm = nn.Linear(4, 8), nn.BatchNorm1d(8)
        self.out, self.tied = nn.Linear(8, 5), nn.Linear(8, 5, bias=False)
        self.tied.weight = self.out.weight
        self.head, self.unused = nn.Linear(5, 1), nn.Linear(2, 3)
        self.brief = nn.Parameter(torch.ones(3, dtype=torch.bfloat16))
        self.register_buffer("scale", torch.tensor(2.0))
        self.register_buffer("shift", torch.ones(5), persistent=False)

    def forward(self, x: Any) -> Any:
        h = self.norm(self.lin(x))
        return self.head(self.out(h) * self.scale + self.tied(h) + self.shift), self.brief.float()


def test_a_state_dict_replaces_the_weights_of_a_program() -> None:
    model, x = Model().eval(), torch.randn(3, 4)
    exe = compiled(model, (x,), ({0: torch.export.Dim("n")},))
    before = model(x)
    with torch.no_grad():
        for tensor in (*model.parameters(), model.scale):
            tensor.add_(torch.rand_like(tensor))
    close_to_torch(exe(x), [before[0], torch.ones(3)])
    exe.update(model.state_dict())
    close_to_torch(exe(x), model(x))
    wanted = model(x)
    text = 'weights "out.weight" and "tied.weight" are one array of the program, expected equal'
    with pytest.raises(InputError, match=text):
        exe.update({**model.state_dict(), "tied.weight": torch.zeros(5, 8)})
    state = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}
    with pytest.raises(InputError, match='unknown weight "shift"'):
        exe.update({**state, "shift": torch.zeros(5)})
    with pytest.raises(InputError, match=r'weight "brief": not an array \(.*, got Parameter'):
        exe.update({**state, "brief": nn.Parameter(state["brief"].to("meta"))})
    with torch.no_grad():
        for tensor in (*model.parameters(), model.shift):
            tensor.zero_()
    close_to_torch(exe(x), wanted)
    brief = state.pop("brief")
    exe.update({**{name: tensor.numpy() for name, tensor in state.items()}, "brief": brief})
    close_to_torch(exe(x), wanted)
