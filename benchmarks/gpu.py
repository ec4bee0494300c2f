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

import numpy as np
from cases import matmul
from harness import RATIO, Case, LeftOutError, Make, Row, Table, difference
from models import Weights, built, gcn, perceptron, spec_of
from operators import normal, operator
from peers import installed, tensor
from rmat import graph_of

import stepwell as sw
from stepwell.frontends import gnn
from stepwell.tools.timing import duration

TOLERANCE = 2e-5
"""The largest difference to the host, relative to the largest element: sums have other orders."""
_COPIES = ("copy to the device", "copy to the host")


def sparse_product(width: int) -> Case:
    """A product of the matrix of a graph with a power law, and features."""
    a, x = graph_of(169_343, 1_166_243).to_csr(), normal(169_343, width)
    module = built(lambda b, a, x: b.spmm(a, x), a, x)
    return Case([a, x], module=module, torch=lambda t, a, x: a @ x, flops=0)


def network(batch: int) -> Case:
    return Case([normal(batch, 784)], module=perceptron(batch, 784, 128, 10))


def on_cora(layers: gnn.Sequential) -> Case:
    """Layers on a graph of the size of Cora that is a constant."""
    x = normal(2708, 1433)
    return Case([x], module=layers.to_module(graph_of(2708, 10_556), features=spec_of(x)))


def attention() -> Case:
    """A layer of 8 heads."""
    w = Weights()
    heads = [w.array(8, 8) for _ in range(2)]
    return on_cora(gnn.Sequential(gnn.GATConv(w.scaled(64, 1433), *heads, bias=w.array(64))))


CASES: dict[str, Make] = {
    "MLP 784-128-10, batch 1": partial(network, 1),
    "MLP 784-128-10, batch 64": partial(network, 64),
    "product 512": partial(matmul, 512),
    "product 4096": partial(matmul, 4096),
    **{
        f"sparse product, 169,343 nodes, {width} columns": partial(sparse_product, width)
        for width in (64, 128, 256)
    },
    "softmax 8192 x 1024": operator(
        [(8192, 1024)], build=lambda b, x: b.softmax(x), torch=lambda t, x: x.softmax(1)
    ),
    "layer norm 8192 x 1024": operator(
        [(8192, 1024), (1024,), (1024,)],
        build=lambda b, x, scale, bias: b.layer_norm(x, scale, bias),
        torch=lambda t, x, *parameters: t.nn.functional.layer_norm(x, (1024,), *parameters),
    ),
    "GCN 1433-16-7, size of Cora": lambda: on_cora(gcn(1433, 16, 7)),
    "GAT 1433-64, size of Cora": attention,
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
