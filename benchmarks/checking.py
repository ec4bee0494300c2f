"""The time of a checked compilation, and of finding a pass that is wrong.

    STEPWELL_DATA=FOLDER python benchmarks/run.py checking

The folder has `cora.npz` and `gcn_cora_weights.npz`. `bisect` looks for a pass that leaves out the
last iteration of a loop: at all sizes, or only at those of the model itself. Each cell has the
processor time of one run, and in brackets the time that elapsed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from cases import cora
from harness import Row, Table
from image_models import resnet18
from models import any_graph, perceptron
from xdsl.context import Context
from xdsl.dialects.builtin import AffineMapAttr, ModuleOp
from xdsl.ir.affine import AffineMap
from xdsl.passes import ModulePass

import stepwell as sw
from stepwell.core.registry import passes
from stepwell.diagnosis.checks import LargeProgram
from stepwell.dialects.loop.ops import ForOp

WRONG = "loop-schedule"
_DESCENTS_OF_A_SMALLER_MODEL = 2


MODELS: dict[str, Callable[[], sw.Module]] = {
    "MLP 784-128-10, batch 1": lambda: perceptron(1, 784, 128, 10),
    "MLP 784-128-10, any batch": lambda: perceptron("batch", 784, 128, 10),
    "GCN Cora, dense features": lambda: cora(dense=True).program,
    "GCN Cora, sparse features": lambda: cora(dense=False).program,
    "GCN 1433-16-7, any graph": lambda: any_graph(1433, 16, 7),
    "ResNet-18": lambda: sw.from_onnx(resnet18()),
}


@contextmanager
def mistake(after: int) -> Iterator[None]:
    """Within it, a pass makes a mistake, except in so many first runs."""
    kind, runs = passes()[WRONG](), 0
    apply = kind.apply

    def wrong(self: ModulePass, ctx: Context, op: ModuleOp) -> None:
        nonlocal runs
        apply(self, ctx, op)
        runs += 1
        if runs > after:
            loop = next(one for one in op.walk() if isinstance(one, ForOp) and one.is_plain)
            bound = loop.bound.data
            *others, last = bound.results
            shorter = AffineMap(bound.num_dims, bound.num_symbols, (*others, last - 1))
            loop.bound = AffineMapAttr(shorter)

    kind.apply = wrong
    try:
        yield
    finally:
        kind.apply = apply


def seconds(call: Callable[[], object]) -> str:
    start, used = time.perf_counter(), time.process_time()
    call()
    used, elapsed = time.process_time() - used, time.perf_counter() - start
    return f"{used:.1f} s ({elapsed:.1f} s)"


def bisected(module: sw.Module, after: int) -> None:
    with mistake(after):
        found = sw.bisect(module)
    if found is None or found.pass_name != WRONG:
        raise SystemExit(f"bisect blames {found}, not {WRONG}")


def row(name: str, make: Callable[[], sw.Module]) -> Row:
    module = make()
    cells = {
        "check=True": seconds(lambda: sw.compile(module, check=True, records=False)),
        "bisect": seconds(lambda: bisected(module, 0)),
    }
    if LargeProgram.of(module, None) is not None:
        small = seconds(lambda: bisected(module, _DESCENTS_OF_A_SMALLER_MODEL))
        cells["bisect, at this size only"] = small
    return cells


TABLES = [Table("model", MODELS, row)]
