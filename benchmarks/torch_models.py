"""What it takes to run models of torch: the first result of `sw.from_torch`, and calls.

The first table has processor times, imports excluded: of export and decomposition by torch, and
from a module to the first result, which takes that, reading, `sw.compile` and a call. They are
minima of several rounds in a process that has compiled something before. The second has calls
with tensors: of the model without a compiler, of one compiled by a backend that returns a stored
result, which is what torch takes for guards and entering, and with this backend. `kernels` is the
time of the compiled program on arrays. Inputs are small, and there is one thread.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch_geometric.nn as pyg
from harness import Row, Table
from torch import nn

import stepwell as sw
from stepwell.frontends.torch.exporting import exported
from stepwell.tools.timing import ROUNDS, measure

os.environ["STEPWELL_NUM_THREADS"] = "1"
torch.set_num_threads(1)
torch._dynamo.config.capture_scalar_outputs = True
torch._dynamo.config.capture_dynamic_output_shape_ops = True
Case = tuple[Callable[[], nn.Module], tuple[Any, ...]]


class GCN(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = pyg.GCNConv(8, 16), pyg.GCNConv(16, 7)

    def forward(self, x: Any, edges: Any) -> Any:
        return self.second(self.first(x, edges).relu(), edges)


def perceptron() -> nn.Module:
    hidden = [part for _ in range(3) for part in (nn.Linear(4, 4), nn.ReLU())]
    return nn.Sequential(*hidden, nn.Linear(4, 4))


EDGES = torch.tensor([[0, 1, 2, 3, 3, 3, 5, 2, 2, 6], [1, 2, 0, 3, 3, 4, 1, 2, 0, 6]])
MODELS: dict[str, Case] = {
    "one linear layer": (lambda: nn.Linear(4, 4), (torch.randn(2, 4),)),
    "four linear layers": (perceptron, (torch.randn(2, 4),)),
    "GCN of two layers": (GCN, (torch.randn(7, 8), EDGES)),
}


def first_result(make: Callable[[], nn.Module], args: tuple[Any, ...]) -> tuple[float, float]:
    """The seconds for torch's export of a new model, and those from one to its first result."""
    shapes = tuple(dict.fromkeys(range(x.ndim), torch.export.Dim.AUTO) for x in args)
    start = time.process_time()
    exported(make().eval(), args, None, shapes)
    between = time.process_time()
    module = sw.from_torch(make().eval(), args, dynamic_shapes=shapes)
    sw.compile(module, threads=1, records=False)(*args)
    return between - start, time.process_time() - between


def calls(model: nn.Module, args: tuple[Any, ...]) -> dict[str, Callable[[], object]]:
    """The model without a compiler, compiled to nothing, and compiled; and the program alone."""
    stored = (model(*args),)

    def nothing(graph: Any, inputs: Any) -> Callable[..., Any]:
        return lambda *given: stored

    exe = sw.compile(sw.from_torch(model, args), threads=1)
    arrays = [x.numpy() for x in args]
    found: dict[str, Callable[[], object]] = {"model": lambda: model(*args)}
    found["kernels"] = lambda: exe(*arrays)
    for name, backend in (("torch", nothing), ("stepwell", "stepwell")):

        def run(*given: Any) -> Any:
            return model(*given)

        # torch looks up what it has compiled by the object of the code.
        run.__code__ = run.__code__.replace(co_name=name)
        found[name] = partial(torch.compile(run, backend=backend, fullgraph=True), *args)
    return found


def first_row(name: str, case: Case, *, rounds: int = 5) -> Row:
    make, args = case
    first_result(make, args)
    both = [first_result(make, args) for _ in range(rounds)]
    export, whole = (min(column) for column in zip(*both, strict=True))
    times = {
        "export by torch": export,
        "to the first result": whole,
        "without the export": whole - export,
    }
    return {title: f"{seconds:.2f} s" for title, seconds in times.items()}


def call_row(name: str, case: Case, *, rounds: int = ROUNDS) -> Row:
    make, args = case
    torch._dynamo.reset()
    with torch.no_grad():
        found = measure(calls(make().eval(), args), rounds=rounds)
    least = {who: timing.minimum for who, timing in found.items()}
    times = {
        "no compiler": least["model"],
        "torch alone": least["torch"],
        "stepwell": least["stepwell"],
        "above torch": least["stepwell"] - least["torch"] - least["kernels"],
        "kernels": least["kernels"],
    }
    return {title: f"{seconds * 1e6:.1f} us" for title, seconds in times.items()}


TABLES = [Table("model", MODELS, first_row), Table("model", MODELS, call_row)]
