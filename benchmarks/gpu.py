"""Kernels on a GPU beside torch's, each after its results were compared with those of the host.

The first table compares all results, the second one has times. Ours are those of the kernels, with
a wait after each, as `exe.profile` measures them; a call from arrays of NumPy also copies its
inputs and results, and has a column of its own. Torch has its tensors on the GPU; its time is
between two events around several calls. Products are strictly of f32 in both. A ratio is torch's
time over that of our kernels. `--target cuda:sm_90,emulated` shows the results of small cases
without a GPU.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numpy as np
from harness import RATIO, Case, LeftOutError, Make, Row, Table, difference
from models import Weights, built, layers
from peers import installed, tensor
from rmat import graph_of

import stepwell as sw
from stepwell.frontends import gnn
from stepwell.tools.timing import duration

TOLERANCE = 2e-5
"""The largest difference to the host, relative to the largest element: sums have other orders."""
_COPIES = ("copy to the device", "copy to the host")


def _numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def product(size: int) -> Case:
    arrays = [_numbers(size, size), _numbers(size, size, seed=1)]
    module = built(lambda b, x, y: b.matmul(x, y), *arrays)
    return Case(arrays, module=module, torch=lambda t, x, y: x @ y, flops=2.0 * size**3)


def sparse_product(nodes: int, edges: int, width: int) -> Case:
    a, x = graph_of(nodes, edges).to_csr(), _numbers(nodes, width)
    module = built(lambda b, a, x: b.spmm(a, x), a, x)
    return Case([a, x], module=module, torch=lambda t, a, x: a @ x, flops=0)


def rows(rows: int, columns: int, norm: bool) -> Case:
    x, w = _numbers(rows, columns), Weights()
    scale, bias = w.positive(columns), w.array(columns)
    if not norm:
        module = built(lambda b, x: b.softmax(x), x)
        return Case([x], module=module, torch=lambda t, x: x.softmax(1), flops=0)
    module = built(lambda b, x, s, t: b.layer_norm(x, s, t), x, scale, bias)

    def peer(torch: Any, x: Any, s: Any, t: Any) -> Any:
        return torch.nn.functional.layer_norm(x, (columns,), s, t)

    return Case([x, scale, bias], module=module, torch=peer, flops=0)


def network(batch: int, *widths: int) -> Case:
    x = _numbers(batch, widths[0])
    return Case([x], module=built(lambda b, x: layers(b, x, *widths), x))


def graph_network(kind: str, nodes: int, edges: int, *widths: int) -> Case:
    """Two layers on a graph that is a constant."""
    w, graph = Weights(), graph_of(nodes, edges)
    (first, hidden, last), x = widths, _numbers(nodes, widths[0])
    if kind == "GCN":
        parts: list[Any] = [
            gnn.GCNConv(w.scaled(hidden, first).T, w.array(hidden)),
            gnn.ReLU(),
            gnn.GCNConv(w.scaled(last, hidden).T, w.array(last)),
        ]
    else:
        heads = 8
        attention = [w.array(heads, hidden // heads) for _ in range(2)]
        parts = [gnn.GATConv(w.scaled(hidden, first), *attention, bias=w.array(hidden))]
    features = sw.TensorSpec(x.shape, "f32")
    return Case([x], module=gnn.Sequential(*parts).to_module(graph, features=features))


CASES: dict[str, Make] = {
    "MLP 784-128-10, batch 1": partial(network, 1, 784, 128, 10),
    "MLP 784-128-10, batch 64": partial(network, 64, 784, 128, 10),
    "product 512": partial(product, 512),
    "product 4096": partial(product, 4096),
    **{
        f"sparse product, 169,343 nodes, {width} columns": partial(
            sparse_product, 169_343, 1_166_243, width
        )
        for width in (64, 128, 256)
    },
    "softmax 8192 x 1024": partial(rows, 8192, 1024, norm=False),
    "layer norm 8192 x 1024": partial(rows, 8192, 1024, norm=True),
    "GCN 1433-16-7, size of Cora": partial(graph_network, "GCN", 2708, 10_556, 1433, 16, 7),
    "GAT 1433-64, size of Cora": partial(graph_network, "GAT", 2708, 10_556, 1433, 64, 64),
}


@cache
def made(name: str) -> Case:
    return CASES[name]()


@cache
def compiled(name: str, target: str) -> sw.Executable:
    try:
        return sw.compile(made(name).program, target=target)
    except sw.TargetError as error:
        raise SystemExit(str(error)) from error


def compared(name: str, make: Make, *, target: str = "cuda") -> Row:
    """Compare the result of a case with that of the host."""
    exe, case = compiled(name, target), made(name)
    apart = difference(exe(*case.arrays), sw.compile(case.program)(*case.arrays))
    if not apart <= TOLERANCE:
        raise SystemExit(f"{name}: {apart:.1e} of the largest element away from the host")
    return {"difference to the host": f"{apart:.1e}"}


def timed(name: str, make: Make, *, target: str = "cuda", repeat: int = 20) -> Row:
    """Time the kernels of a case, and torch's."""
    if target.endswith("emulated"):
        raise LeftOutError("times of an emulator say nothing")
    exe, case = compiled(name, target), made(name)
    profile, result = exe.profile(*case.arrays, repeat=repeat), exe(*case.arrays)
    seconds = sum(row.seconds for row in profile.kernels if row.name not in _COPIES)
    row = {"kernels": duration(seconds), "call": duration(profile.seconds)}
    if case.flops:
        row["rate"] = f"{case.flops / seconds / 1e12:.1f} TFLOP/s"
    elif case.flops is not None:
        row["rate"] = f"{case.moved(result) / seconds / 1e9:.0f} GB/s"
    if (peer := torch_seconds(case, result, repeat)) is not None:
        row |= {"torch": duration(peer), RATIO: f"{peer / seconds:.2f}"}
    return row


def torch_seconds(case: Case, ours: np.ndarray, repeat: int) -> float | None:
    """The time of a call of torch on its GPU; None without either."""
    if case.torch is None or not installed("torch"):
        return None
    import torch

    if not torch.cuda.is_available():
        return None
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    tensors = [tensor(array).cuda() for array in case.arrays]
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    with torch.inference_mode():
        apart = difference(case.torch(torch, *tensors).cpu().numpy(), ours)
        if not apart <= TOLERANCE:
            raise SystemExit(f"torch: {apart:.1e} of the largest element away from our result")
        begin.record()
        for _ in range(repeat):
            case.torch(torch, *tensors)
        end.record()
        torch.cuda.synchronize()
    return begin.elapsed_time(end) / 1e3 / repeat


TABLES = (Table("result", CASES, compared), Table("case", CASES, timed))
