"""A module can be written, read and compiled at every stage, and gives the same results."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

import stepwell as sw
from stepwell.core.pipelines.stages import IR_STAGES
from stepwell.dialects.program import named_weights
from stepwell.dialects.stages import stage_of
from stepwell.driver.compilation import Compilation
from stepwell.driver.request import Request
from stepwell.frontends import gnn

from ..harness import RNG, cases, close, floats, restart, results, same
from . import low_bit_program

pytestmark = pytest.mark.usefixtures("every_stage_verified")

Case = tuple[sw.Module, tuple[Any, ...], dict[str, Any]]
FUNCTION = "test.reread"


def mlp(rows: int | str) -> Case:
    b = sw.Builder("main")
    h = b.relu(b.dense(b.input("x", (rows, 40)), floats(48, 40), bias=floats(48)))
    b.output(b.softmax(b.dense(h, floats(10, 48))), name="y")
    return b.module(), (floats(17, 40),), {}


def graph_network() -> Case:
    """A graph and features at run time: sparse arguments, and checks that they can fail."""
    w = floats(20, 8)
    model = gnn.Sequential(gnn.GCNConv(w, floats(8)), gnn.ReLU(), gnn.GCNConv(w[:8, :4].copy()))
    module = model.to_module(gnn.GraphSpec(), sw.TensorSpec((None, 20)))
    return module, (gnn.Graph.from_edge_index(RNG.integers(0, 5, (2, 9)), 5), floats(5, 20)), {}


def sparse_features() -> Case:
    """A constant graph with sparse features, which are a constant as well."""
    graph = gnn.Graph.from_edge_index(RNG.integers(0, 9, (2, 20)), 9)
    features = csr_array(random_array((9, 30), density=0.2, rng=RNG, dtype=np.float32))
    module = gnn.Sequential(gnn.GCNConv(floats(30, 4))).to_module(graph, features=features)
    return module, (), {}


def convolution() -> Case:
    b = sw.Builder("main")
    x = b.input("x", (2, 3, 12, 12))
    y = b.relu(b.conv(x, floats(8, 3, 3, 3), bias=floats(8), strides=[2, 2]))
    b.output(b.pool(b.conv(y, floats(16, 8, 3, 3)), "max", [2, 2], [1, 1]))
    return b.module(), (floats(2, 3, 12, 12),), {}


def flattened() -> Case:
    """A reshape between two kernels, which has none."""
    b = sw.Builder("main")
    y = b.relu(b.conv(b.input("x", (2, 3, 6, 6)), floats(4, 3, 3, 3)))
    b.output(b.dense(b.reshape(y, (2, 64)), floats(10, 64)))
    return b.module(), (floats(2, 3, 6, 6),), {}


def edges() -> Case:
    """The ends of edges are rows of one argument; matrices are assembled, and checks are kept."""
    b = sw.Builder("main")
    ends, x = b.input("ends", (2, "e"), "i64"), b.input("x", ("n", 6))
    rows, columns = (b.reshape(b.slice(ends, [k, 0], [k + 1, 2**63 - 1]), [-1]) for k in (0, 1))
    a, _ = b.csr_from_edges(rows, columns, (x, x))
    y = b.loop(2, lambda i, h: b.spmm(a, b.relu(h)), x)
    b.output(b.check(y, b.greater(b.reduce(x, "sum", [0, 1]), -1e9), message="too small"))
    return b.module(), (np.array([[0, 1, 4], [1, 1, 2]]), floats(5, 6)), {}


def quantised() -> Case:
    b = sw.Builder("main")
    x, scale = b.input("x", (5, 20)), np.float32(0.05)
    q = b.quantize(x, scale, np.uint8(128))
    b.output(b.dequantize(q, scale, np.uint8(128)))
    for value in (b.cast(x, "bf16"), b.cast(x, "f16"), b.cast(b.floor(x), "i8"), b.greater(x, 0.0)):
        b.output(value)
    return b.module(), (floats(5, 20),), {}


def low_bits() -> Case:
    return *low_bit_program.low_bits(), {}


@sw.kernel
def shifted_relu(k, x, y):
    with k.loops(*y.shape) as (i, j):
        y[i, j] = k.where(x[i, j] > 0, x[i, j], 0) + 1.0


def registered() -> Case:
    """An operator that a registered function computes, and one that is a kernel of the user's."""

    @sw.register_function(FUNCTION)
    def twice(x: np.ndarray, y: np.ndarray) -> None:
        if x[0, 0] == 7:
            raise ValueError("seven")
        np.multiply(x, 2, out=y)

    b = sw.Builder("main")
    x = b.input("x", ("n", 6))
    h = b.call_packed(FUNCTION, x, results=sw.TensorSpec(("n", 6)))
    b.output(b.dense(b.relu(h), floats(6, 6)))
    return b.module(), (floats(3, 6),), {"legalize": {"graph.relu": shifted_relu}}


CASES: dict[str, Callable[[], Case]] = {
    "mlp": lambda: mlp(17),
    "mlp_symbolic": lambda: mlp("n"),
    "graph_network": graph_network,
    "sparse_features": sparse_features,
    "convolution": convolution,
    "flattened": flattened,
    "edges": edges,
    "quantised": quantised,
    "low_bits": low_bits,
    "registered": registered,
}


@cache
def case(name: str) -> Case:
    restart()
    return CASES[name]()


@cache
def compiled(name: str) -> tuple[sw.Executable, tuple[Any, ...], tuple[np.ndarray, ...]]:
    module, inputs, options = case(name)
    exe = sw.compile(module, threads=1, **options)
    return exe, inputs, results(exe(*inputs))


@cache
def texts(name: str) -> dict[str, tuple[str, sw.WeightStore]]:
    """What `Executable.ir` and `Executable.weights` give for each stage, from one lowering."""
    module, _, options = case(name)
    compilation = Compilation.of(Request(module, threads=1, **options))
    found: dict[str, tuple[str, sw.WeightStore]] = {}
    work, ctx = compilation.begin()
    for stage in compilation.descend(work, ctx):
        found[stage] = work.text(), work.weights.only(named_weights(work.op))
    return found


def reread(name: str, stage: str) -> sw.Module:
    text, weights = texts(name)[stage]
    # No proof shows that the kernel which sorts edges stays inside of its buffers.
    return sw.from_mlir(text, weights=weights, trusted=name == "edges")


EVERY = ("flattened", "registered")
"""The modules that are read at every stage, or most, where slow tests are left out."""
SOME = {"fused": ("sparse_features",), "llvm": ("edges",)}
"""The others that are read as operators and as code; all but `SLOW` are as loops."""
SLOW = ("mlp", "mlp_symbolic", "convolution")
"""The modules of which others have all the operators."""


def is_slow(name: str, stage: str) -> bool:
    """Of the second stage of operators, and of most stages of some modules, another is similar."""
    if name in SLOW or stage == "optimized":
        return True
    if name == "registered" and stage in ("fused", "kernels", "buffers"):
        return True
    return name not in EVERY and stage != "scheduled" and name not in SOME.get(stage, ())


@pytest.mark.parametrize(
    ("name", "stage"),
    [
        pytest.param(name, stage, marks=pytest.mark.slow if is_slow(name, stage) else ())
        for name in CASES
        for stage in IR_STAGES
    ],
)
def test_results_are_the_same(name: str, stage: str) -> None:
    exe, inputs, expected = compiled(name)
    module = reread(name, stage)
    if stage == "graph" and name == "registered":
        # The table of `legalize` is no part of a module.
        again = sw.compile(module, threads=1, legalize={"graph.relu": shifted_relu})
    else:
        again = sw.compile(module, threads=1)
    assert (again.inputs, again.outputs) == (exe.inputs, exe.outputs)
    same(again(*inputs), expected)


@pytest.mark.parametrize("name", cases(list(CASES), ["flattened"]))
def test_the_stage_of_what_is_read(name: str) -> None:
    for stage in IR_STAGES:
        expected = "graph" if stage == "optimized" else stage
        assert stage_of(reread(name, stage).op) == expected


@pytest.mark.parametrize("name", ["graph_network", "quantised", "registered"])
def test_llvm_that_was_read_is_interpreted(name: str) -> None:
    _, inputs, expected = compiled(name)
    again = sw.compile(reread(name, "llvm"), threads=1)
    close(again.run_at("llvm", *inputs), expected, 1e-4, atol=1e-5)


def test_failures_are_worded() -> None:
    exe, (_, x), _ = compiled("graph_network")
    again = sw.compile(reread("graph_network", "llvm"), threads=1)
    broken = np.array([0, 2, 1]), np.array([1]), np.ones(1, np.float32)
    for at in (exe, again):
        with pytest.raises(sw.InputError, match="indptr decreases after row 1, got 2"):
            at(broken, x[:2])
    exe, (x,), _ = compiled("registered")
    seven = x.copy()
    seven[0, 0] = 7
    for at in (exe, sw.compile(reread("registered", "llvm"), threads=1)):
        with pytest.raises(sw.StepwellError, match="raised ValueError: seven"):
            at(seven)


def test_a_saved_module_is_compiled(tmp_path: Path) -> None:
    _, inputs, expected = compiled("flattened")
    reread("flattened", "llvm").save(tmp_path / "m.mlir")
    again = sw.compile(sw.from_mlir(tmp_path / "m.mlir"), threads=1)
    same(again(*inputs), expected)
    assert again.stages == ("llvm", "llvm-ir", "asm")
    with pytest.raises(sw.CompileError, match='no pass is left for a module of stage "llvm", got'):
        sw.compile(reread("flattened", "llvm"), pipeline="canonicalize")
    with pytest.raises(sw.StepwellError, match="clocks can no longer be inserted, expected stage"):
        again.profile(*inputs)


def test_weights_are_those_that_the_text_names() -> None:
    b = sw.Builder("main")
    b.output(b.dense(b.input("x", (3, 4)), np.ones((4, 4), np.float32)))
    module = b.module()
    module.weights.add("unused", np.zeros(1 << 20, np.float32))
    exe = sw.compile(module, threads=1)
    for stage in exe.stages:
        assert "unused" not in exe.weights(stage)
        assert len(exe.weights(stage)) == 1


def test_the_text_says_the_effort() -> None:
    """Stack buffers are read and written by LLVM's passes, from the text too."""
    assert "rt.effort" in texts("mlp")["llvm"][0]
    exe, _, _ = compiled("mlp")
    again = sw.compile(reread("mlp", "llvm"), threads=1)
    assert again.ir("asm") == exe.ir("asm")


MAIN = """builtin.module attributes {{{module}}} {{
  llvm.func @main(%0: !llvm.ptr{arguments}) -> i32 attributes {{{function}}} {{
    %1 = llvm.mlir.constant(0 : i32) : i32
    llvm.return %1 : i32
  }}
}}"""
SIGNATURE = "graph.signature = (tensor<4xf32>) -> tensor<4xf32>"
TWO = ", %x: !llvm.ptr, %y: !llvm.ptr"


@pytest.mark.parametrize(
    ("module", "arguments", "function", "message"),
    [
        ("", TWO, "", "does not say what its buffers are, expected graph.signature"),
        (
            "",
            ", %x: !llvm.ptr",
            SIGNATURE,
            r"llvm.func @main: its type does not fit graph.signature = .* expected .*ptr, .*ptr",
        ),
        ('rt.effort = "most"', TWO, SIGNATURE, r'rt.effort: unknown effort, expected .* "most"'),
        ("", TWO, f"{SIGNATURE}, rt.constants = 3 : i64", r"@main: wrong rt.constants, expected"),
        ("", TWO, f"{SIGNATURE}, rt.constants = [1 : i64]", "wrong rt.constants, expected .slot"),
        (
            "",
            TWO,
            f'{SIGNATURE}, rt.constants = [{{slot = 0 : i64, weight = "w", type = f32}}]',
            "wrong rt.constants, expected .* got .*f32",
        ),
        (
            "",
            TWO,
            f'{SIGNATURE}, rt.constants = [{{slot = 1 : i64, weight = "w", type = memref<4xf32>}}]',
            "rt.constant: slots are not numbered from 0, expected 1, got 1",
        ),
        (
            "",
            TWO,
            f'{SIGNATURE}, rt.constants = [{{slot = 0 : i64, weight = "w", type = memref<4xf32>}}]',
            'constant "w": is not in the weight store',
        ),
        (
            "",
            TWO,
            f'{SIGNATURE}, rt.functions = [{{slot = 0 : i64, callee = "f", type = () -> f32}}]',
            "wrong rt.functions, expected .slot = 0 : i64, callee",
        ),
        (
            "",
            TWO,
            f'{SIGNATURE}, rt.failures = [{{kind = "bad", subject = "x"}}]',
            'wrong rt.failures, expected .kind = "csr"',
        ),
        (
            "",
            TWO,
            f'{SIGNATURE}, rt.failures = [{{kind = "check", subject = "x", loops = [1]}}]',
            'wrong rt.failures, expected .kind = "csr"',
        ),
    ],
)
def test_attributes_that_are_malformed(
    module: str, arguments: str, function: str, message: str
) -> None:
    text = MAIN.format(module=module, arguments=arguments, function=function)
    with pytest.raises(sw.CompileError, match=message):
        sw.compile(sw.from_mlir(text), threads=1)
