"""The operations of every stage, and the time of calls, are those of nodes of the model.

What counts: every operation but those that hold others or end a block, and constants, which are
one for all that use them. The routines that check the inputs of a call belong to no node: of
them, what calls them counts. Of a profile, what counts is the time of all kernels, and that of
whole calls that are long enough for the clock itself not to matter.
"""

from __future__ import annotations

import itertools
import runpy
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import onnx
import pytest
from xdsl.dialects import func, llvm
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.traits import ConstantLike, IsTerminator

import stepwell as sw
from stepwell.backends.reference.samples import random_inputs
from stepwell.core.boundary.specs import SparseSpec, TensorSpec
from stepwell.core.ir.module import Module
from stepwell.core.ir.provenance import names
from stepwell.dialects.loop.ops import KernelOp
from stepwell.driver.compilation import Compilation
from stepwell.driver.request import Request
from stepwell.frontends import gnn
from stepwell.tools import demo

from ..harness import cases, floats

LEAST = 0.95
"""How much of every stage, and of the time, has to say where it comes from."""

LONG = 2e-5
"""Seconds of a call that is much longer than reading the clock takes."""

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
DATA = {
    "cora_gcn": ("cora.npz", "gcn_cora_weights.npz"),
    "fashion_mnist": ("fashion_mnist_900.npz", "fashion_mlp_weights.npz"),
}
FUNCTIONS = (ModuleOp, func.FuncOp, llvm.FuncOp, KernelOp)


def counted(module: ModuleOp) -> Iterator[Operation]:
    """The operations that ought to know their nodes."""
    for function in module.ops:
        symbol = str(function.properties.get("sym_name"))
        for op in function.walk() if not symbol.startswith('"rt_') else ():
            constant = op.has_trait(ConstantLike) or isinstance(op, llvm.ConstantOp)
            if not (isinstance(op, FUNCTIONS) or constant or op.has_trait(IsTerminator)):
                yield op


def assert_covered(module: Module, opt_level: int = 3, threads: int = 2) -> None:
    """Each stage of a module has the nodes that it should."""
    compilation = Compilation.of(Request(module, threads=threads, opt_level=opt_level))
    work, ctx = compilation.begin()
    for stage in compilation.descend(work, ctx):
        ops = list(counted(work.op))
        lost = Counter(op.name for op in ops if not names(op))
        assert ops, f"{stage} is empty"
        assert lost.total() <= (1 - LEAST) * len(ops), f"{stage}: {lost}"


def assert_timed(module: Module) -> None:
    """The time of calls is that of nodes."""
    exe = sw.compile(module, threads=2)
    profile = exe.profile(*random_inputs(module.inputs, {}), repeat=5)
    of_nodes, of_kernels = (
        sum(row.seconds for row in rows) for rows in (profile.nodes, profile.kernels)
    )
    assert of_nodes >= LEAST * of_kernels
    assert profile.attributed >= LEAST or profile.seconds < LONG


ONNX_MODELS = ["resnet50", "shufflenet", "squeezenet", "zfnet512"]


@pytest.mark.parametrize("name", cases(ONNX_MODELS, []))
def test_onnx_models(name: str) -> None:
    module = sw.from_onnx(LIGHT / f"light_{name}.onnx")
    assert_covered(module)
    if name == "squeezenet":  # runs of others take seconds
        assert_timed(module)


WAYS = list(itertools.product([0, 1, 3], [1, 2]))


@pytest.mark.parametrize("way", cases(WAYS, [(0, 1), (3, 2)]), ids=str)
def test_shipped_models(way: tuple[int, int]) -> None:
    opt_level, threads = way
    assert_covered(demo.karate().module, opt_level, threads)
    assert_covered(demo.digits().module, opt_level, threads)


@pytest.mark.parametrize("model", cases([demo.karate, demo.digits], [demo.karate]))
def test_time_of_shipped_models(model: Callable[[], Any]) -> None:
    assert_timed(model().module)


NAMES = sorted(path.stem for path in EXAMPLES.glob("*.py"))
SLOW = (
    *("bound_parameters", "cora_gcn", "fashion_mnist", "group_dense_add", "user_deployment"),
    *("user_graph_networks", "user_graph_on_disk", "user_performance", "user_student"),
    "user_torch",
)


@pytest.mark.unguarded("buffers of kernels take time in Python")
@pytest.mark.parametrize("name", cases(NAMES, [name for name in NAMES if name not in SLOW]))
def test_examples(
    name: str,
    real_data: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    for file in DATA.get(name, ()):
        real_data(file)  # skips without it
    if name.startswith("train_"):
        pytest.skip("it trains the weights of a shipped model, which is a case of its own")
    compiled: list[tuple[Module, Any]] = []
    compile_module = sw.compile

    def keep(module: Module, *args: Any, **options: Any) -> sw.Executable:
        compiled.append((module.clone(), options.get("legalize")))
        return compile_module(module, *args, **options)

    monkeypatch.setattr(sw, "compile", keep)
    monkeypatch.setattr("sys.argv", [name])
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    assert compiled
    for module, table in list(compiled):
        if table is None:
            assert_covered(module)
            assert_timed(module)


LAYERS: dict[str, gnn.Sequential] = {
    "gcn": gnn.Sequential(gnn.GCNConv(floats(5, 4), floats(4)), gnn.ReLU()),
    "gat": gnn.Sequential(gnn.GATConv(floats(6, 5), floats(1, 2, 3), floats(1, 2, 3), floats(6))),
    "sage": gnn.Sequential(gnn.SAGEConv(floats(4, 5), floats(4), floats(4, 5), aggr="max")),
    "gin": gnn.Sequential(
        gnn.GINConv([gnn.Linear(floats(8, 5)), gnn.ReLU(), gnn.Linear(floats(3, 8))], eps=0.5)
    ),
    "pool": gnn.Sequential(gnn.Linear(floats(4, 5)), gnn.GlobalMeanPool()),
}


def layer_module(layer: str, spec: type[TensorSpec | SparseSpec] = TensorSpec) -> Module:
    return LAYERS[layer].to_module(gnn.GraphSpec(), spec((None, 5)))


@pytest.mark.parametrize("layer", cases(list(LAYERS), ["gat", "sage", "gin", "pool"]))
def test_gnn_layers(layer: str) -> None:
    assert_covered(layer_module(layer))


@pytest.mark.parametrize("layer", cases(["gcn", "gat"], ["gcn"]))
def test_gnn_layers_of_sparse_features(layer: str) -> None:
    assert_covered(layer_module(layer, SparseSpec))


@pytest.mark.parametrize("layer", cases(list(LAYERS), []))
def test_time_of_gnn_layers(layer: str) -> None:
    assert_timed(layer_module(layer))


def test_what_is_counted() -> None:
    compilation = Compilation.of(Request(demo.digits().module, threads=1))
    work, ctx = compilation.begin()
    ops = {stage: [op.name for op in counted(work.op)] for stage in compilation.descend(work, ctx)}
    assert ops["graph"] == ["graph.dense", "graph.relu", "graph.dense"]
    assert {"rt.call", "rt.arena", "loop.for"} <= set(ops["buffers"])
    kinds = set(chain(*ops.values()))
    assert not kinds & {"graph.constant", "llvm.return", "llvm.br", "func.func"}
