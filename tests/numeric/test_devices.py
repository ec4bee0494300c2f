"""Programs whose kernels run on an emulated device: every stage, odd sizes, faults, counters."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from xdsl.parser import Parser

import stepwell as sw
from stepwell.backends.llvm.device import device_code
from stepwell.core import target
from stepwell.core.pipelines.staircase import pipeline
from stepwell.core.registry import make_context
from stepwell.core.target import named
from stepwell.driver.compilation import Compilation
from stepwell.driver.request import Request
from stepwell.frontends import gnn

from ..harness import RNG, cases, floats

DEVICE = "cuda:sm_90,emulated"
STAGES = ("scheduled", "loops", "llvm", "ptx")
TOLERANCE = 2e-6
"""Sums of up to 40 products of numbers of size 1, which the reference adds in another order."""


def everywhere(module: sw.Module, *inputs: Any, stages: Sequence[str] = STAGES) -> sw.Executable:
    """Compare a program, and its stages from where schedules are, with the reference."""
    exe = sw.compile(module, target=DEVICE)
    wanted = module.run_reference(*inputs)
    for stage in stages:
        found = exe.run_at(stage, *inputs)
        np.testing.assert_allclose(found, wanted, rtol=TOLERANCE, atol=TOLERANCE, err_msg=stage)
    return exe


@pytest.fixture
def stages(all_tests: bool) -> Sequence[str]:
    """Half of the time of a test is that of `llvm`, at which quick tests compare few programs."""
    return STAGES if all_tests else [stage for stage in STAGES if stage != "llvm"]


def mlp(rows: int | None) -> sw.Module:
    b = sw.Builder("main")
    x = b.input("x", (rows, 13), "f32")
    hidden = b.relu(b.dense(x, floats(17, 13), bias=floats(17)))
    b.output(b.softmax(b.dense(hidden, floats(5, 17), bias=floats(5))), name="y")
    return b.module()


@pytest.mark.parametrize("rows", cases([1, 7, 33, 129], [33]))
def test_a_perceptron(rows: int) -> None:
    everywhere(mlp(rows), floats(rows, 13))


def test_a_perceptron_of_any_size() -> None:
    module = mlp(None)
    exe = sw.compile(module, target=DEVICE)
    for rows in (0, 1, 33, 400):
        x = floats(rows, 13)
        wanted = module.run_reference(x)
        np.testing.assert_allclose(exe(x), wanted, rtol=TOLERANCE, atol=TOLERANCE)


def test_kernels_do_not_depend_on_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    b, texts = sw.Builder("main"), set[str]()
    x = b.relu(b.conv(b.input("x", (1, 3, 12, 12), "f32"), floats(16, 3, 3, 3)))
    b.output(b.reduce(b.pool(x, "max", [2, 2], strides=[2, 2]), "mean", axes=[2, 3]), name="y")
    for host in ("x86-64-v3", "x86-64-v4", "neoverse-n1"):
        monkeypatch.setattr(target, "host", lambda host=host: named(host))
        texts.add(Compilation.of(Request(b.module(), DEVICE)).text("loops"))
    assert len(texts) == 1


@pytest.mark.parametrize(
    "shape", cases([(1, 1), (3, 1), (5, 37), (130, 2)], [(3, 1), (5, 37)]), ids=str
)
def test_softmax(shape: tuple[int, int], stages: Sequence[str]) -> None:
    b = sw.Builder("main")
    b.output(b.softmax(b.input("x", shape, "f32")), name="y")
    exe = everywhere(b.module(), floats(*shape), stages=stages)
    assert "ex2" not in exe.ir("ptx"), "exponentials are those of the host, to the last bit"


GCN = gnn.Sequential(
    gnn.GCNConv(floats(9, 6), floats(6)), gnn.ReLU(), gnn.GCNConv(floats(6, 3), floats(3))
)
EDGES = np.array([[0, 1, 2, 3, 3], [1, 2, 0, 1, 4]])


def test_a_graph_network() -> None:
    """Nodes 5 and 6 have no edges."""
    graph = gnn.Graph.from_edge_index(EDGES, num_nodes=7)
    module = GCN.to_module(graph, features=sw.TensorSpec((7, 9), "f32"))
    everywhere(module, floats(7, 9))


def test_a_graph_network_of_any_graph() -> None:
    module = GCN.to_module(gnn.GraphSpec(), features=sw.TensorSpec((None, 9), "f32"))
    exe = sw.compile(module, target=DEVICE)
    for nodes, edges in ((1, 0), (7, 5), (200, 900)):
        graph = gnn.Graph.from_edge_index(RNG.integers(0, nodes, (2, edges)), num_nodes=nodes)
        x = floats(nodes, 9)
        wanted = module.run_reference(graph, x)
        np.testing.assert_allclose(exe(graph, x), wanted, rtol=TOLERANCE, atol=TOLERANCE)


@pytest.mark.parametrize("op", ["exp", "tanh", "sigmoid", "erf", "log", "sqrt", "floor", "gelu"])
def test_functions_are_those_of_the_host(op: str) -> None:
    b = sw.Builder("main")
    b.output(getattr(b, op)(b.input("x", (100,), "f32")), name="y")
    module, x = b.module(), np.abs(floats(100)) + np.float32(0.01)
    exe = sw.compile(module, target=DEVICE)
    np.testing.assert_allclose(exe(x), module.run_reference(x), rtol=1e-6, atol=1e-7)
    np.testing.assert_array_equal(exe(x), sw.compile(module)(x))


@pytest.mark.parametrize("op", ["sin", "cos", "tan"])
@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_circles(op: str, kind: str) -> None:
    """A sample of all numbers, where halves are of the last place, and angles near zeros."""
    dtype, wide = (np.float32, np.float64) if kind == "f32" else (np.float64, np.longdouble)
    if kind == "f32":
        some = np.arange(0, 0x7F800000, 150_001, dtype=np.uint32).view(dtype)
    else:
        some = np.arange(0, 0x7FF << 52, 0x2000_0000_0001 * 61, dtype=np.uint64).view(dtype)
    quarters = (np.arange(2000) * np.pi / 2).astype(dtype)
    special = np.array([0.0, 2.0**20, 2.0**25, np.finfo(dtype).max, np.inf, np.nan], dtype)
    x = np.concatenate([some, quarters, special])
    x = np.concatenate([x, -x])
    b = sw.Builder("main")
    b.output(getattr(b, op)(b.input("x", x.shape, kind)), name="y")
    exe = sw.compile(b.module(), target=DEVICE)
    with np.errstate(invalid="ignore"):
        wanted = getattr(np, op)(x.astype(wide))
    found, finite = exe(x), np.isfinite(wanted)
    np.testing.assert_array_equal(np.isfinite(found), finite)
    ulps = np.abs(found - wanted)[finite] / np.spacing(np.abs(wanted.astype(dtype)))[finite]
    assert ulps.max() <= (0.51 if kind == "f32" else 0.90)
    np.testing.assert_array_equal(np.signbit(found[x == 0]), np.signbit(wanted[x == 0]))


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_circles_at_every_stage(kind: str) -> None:
    """A number of quarters is odd by its last bit."""
    b = sw.Builder("main")
    b.output(b.sin(b.input("x", (9,), kind)), name="y")
    everywhere(b.module(), np.linspace(0, 20, 9).astype(kind.replace("f", "float")))


def test_attention_over_a_graph(stages: Sequence[str]) -> None:
    graph = gnn.Graph.from_edge_index(RNG.integers(0, 12, (2, 40)), num_nodes=12)
    layer = gnn.GATConv(floats(8, 6), floats(2, 4), floats(2, 4), floats(8))
    module = gnn.Sequential(layer).to_module(graph, features=sw.TensorSpec((12, 6), "f32"))
    everywhere(module, floats(12, 6), stages=stages)


OPERATORS: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]], str]] = {
    "layer_norm": (lambda b, x: b.layer_norm(x, floats(33), floats(33)), [(5, 33)], "f32"),
    "cumulative": (lambda b, x: b.cumulative(x, "sum", axis=1), [(5, 9)], "f32"),
    "matmul": (lambda b, x, y: b.matmul(x, y), [(2, 5, 13), (2, 13, 7)], "f32"),
    "attention": (lambda b, q, k, v: b.attention(q, k, v), [(1, 2, 9, 8)] * 3, "f32"),
    "conv": (lambda b, x: b.relu(b.conv(x, floats(4, 3, 3, 3))), [(1, 3, 8, 9)], "f32"),
    "squares of f16": (lambda b, x: b.relu(x * x), [(5, 8)], "f16"),
    "functions of f64": (lambda b, x: b.exp(b.tanh(x)), [(5, 8)], "f64"),
    "rows": (lambda b, x: b.reduce(x, "max", axes=[1], keepdims=False), [(6, 1)], "f32"),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_operators(name: str, stages: Sequence[str]) -> None:
    """A scalar that the host computes is an argument of a kernel, as in `layer_norm`."""
    make, shapes, kind = OPERATORS[name]
    dtype = {"f16": np.float16, "f32": np.float32, "f64": np.float64}[kind]
    b = sw.Builder("main")
    inputs = [b.input(f"x{n}", shape, kind) for n, shape in enumerate(shapes)]
    b.output(make(b, *inputs), name="y")
    arrays = [floats(*shape, dtype=dtype) for shape in shapes]
    everywhere(b.module(), *arrays, stages=stages)


def test_integers() -> None:
    b = sw.Builder("main")
    x = b.input("x", (5, 8), "i64")
    b.output(x * x + x, name="y")
    everywhere(b.module(), RNG.integers(-(2**40), 2**40, (5, 8)))


NEIGHBOURS: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]], str, int]] = {
    "a row for all": (lambda b, x, y: b.relu(x + y), [(8, 64), (64,)], "f32", 4),
    "f64": (lambda b, x: b.exp(x), [(16, 32)], "f64", 2),
    "f16": (lambda b, x: b.relu(x * x), [(64, 32)], "f16", 8),
    "odd rows": (lambda b, x: b.relu(x), [(32, 63)], "f32", 1),
    "few": (lambda b, x: b.relu(x), [(4, 64)], "f32", 1),
    "one vector in a row": (lambda b, x: b.relu(x), [(256, 4)], "f32", 1),
    "other places": (lambda b, x: b.transpose(x, [1, 0]), [(64, 32)], "f32", 1),
}


@pytest.mark.parametrize("name", NEIGHBOURS)
def test_a_thread_has_neighbours(name: str) -> None:
    """Those of 16 bytes, where rows are made of them, and there are threads for a block."""
    make, shapes, kind, lanes = NEIGHBOURS[name]
    dtype = np.dtype(kind.replace("f", "float"))
    b = sw.Builder("main")
    inputs = [b.input(f"x{n}", shape, kind) for n, shape in enumerate(shapes)]
    b.output(make(b, *inputs), name="y")
    exe = everywhere(b.module(), *(floats(*shape, dtype=dtype) for shape in shapes))
    exe(*(floats(*shape, dtype=dtype) for shape in shapes))
    (launch,) = exe.launches
    size = int(np.prod(shapes[0]))
    (store,) = [row for row in launch.lines if row.group == "store global"]
    loads = [row for row in launch.lines if row.group == "load global"]
    assert store.threads == size // lanes
    assert [row.threads for row in loads] == [size // lanes] * len(shapes)
    if name != "other places":
        assert launch.coalescing == 1


def rows_of_a_loop(width: int) -> sw.Module:
    """Each iteration takes a row of the input, and writes one of the result."""
    b = sw.Builder("main")
    xs, h = b.input("xs", (3, 8, width), "f32"), b.input("h", (8, width), "f32")
    b.output(b.scan(lambda state, x: (state, b.relu(state + x)), h, xs)[1], name="y")
    return b.module()


@pytest.mark.parametrize(("width", "loads"), [(64, 4), (63, 1)])
def test_rows_of_a_loop_may_begin_anywhere(width: int, loads: int) -> None:
    module, x, h = rows_of_a_loop(width), floats(3, 8, width), floats(8, width)
    exe = sw.compile(module, target=DEVICE)
    np.testing.assert_array_equal(exe(x, h), np.maximum(h + x, 0))
    launch = exe.launches[-1]
    stores = [row for row in launch.lines if row.group == "store global"]
    assert sum(row.threads for row in stores) == 8 * width // loads


def test_a_sum_of_everything_is_one_thread() -> None:
    b = sw.Builder("main")
    b.output(b.reduce(b.input("x", (5, 7), "f32"), "sum", axes=[0, 1], keepdims=False), name="y")
    exe = everywhere(b.module(), floats(5, 7))
    (made,) = [d for d in exe.decisions if d.pass_name == "loop-schedule"]
    assert made.what == "enclose(one); bind(one)"
    assert "one thread, as statements are outside of parallel loops" in str(made)


@pytest.mark.parametrize("level", cases([0, 1, 2], [0]))
def test_levels(level: int) -> None:
    module, x = mlp(7), floats(7, 13)
    exe = sw.compile(module, target=DEVICE, opt_level=level)
    np.testing.assert_allclose(exe(x), module.run_reference(x), rtol=TOLERANCE, atol=TOLERANCE)
    assert len(exe.launches) == exe.ir("ptx").count(".entry")


def test_a_schedule_by_hand() -> None:
    """Of rows, a thread computes four: it loads a row of the weight once for them."""
    module, x = mlp(8), floats(8, 13)
    trace = "@fused_dense_relu: split(i, 4); reorder(i0, j, i1); bind(i0, j)"
    exe = sw.compile(module, target=DEVICE, schedule=trace)
    np.testing.assert_allclose(exe(x), module.run_reference(x), rtol=TOLERANCE, atol=TOLERANCE)
    plain = sw.compile(module, target=DEVICE)
    plain(x)
    counted = exe.launches[0], plain.launches[0]
    by_hand, usual = ([r.warps for r in e.lines if r.group == "load global"] for e in counted)
    assert sum(by_hand) < sum(usual)


@pytest.mark.parametrize("kind", ["f16", "f32", "f64"])
def test_remainders_are_exact(kind: str) -> None:
    """Of numbers of all sizes: quotients have up to 2098 bits, and results may be subnormal."""
    dtype = np.dtype(kind.replace("f", "float"))
    bits, found = np.dtype(f"u{dtype.itemsize}"), np.finfo(dtype)
    special = [0.0, -0.0, 1.0, np.inf, -np.inf, np.nan, found.tiny, found.smallest_subnormal]
    pairs = np.array(np.meshgrid([*special, found.max, 3.0], [*special, -found.max, 0.1]), dtype)
    random = RNG.integers(0, np.iinfo(bits).max, (2, 300), bits).view(dtype)
    x, y = np.concatenate([pairs.reshape(2, -1), random], axis=1)
    b = sw.Builder("main")
    b.output(b.fmod(b.input("x", x.shape, kind), b.input("y", y.shape, kind)))
    with np.errstate(invalid="ignore"):
        want = np.fmod(x, y)
    got = sw.compile(b.module(), target=DEVICE)(x, y)
    np.testing.assert_array_equal(got, want)
    signed = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got)[signed], np.signbit(want)[signed])


def test_a_remainder_of_vectors_is_refused() -> None:
    b = sw.Builder("main")
    b.output(b.fmod(b.input("x", (4, 8), "f32"), b.input("y", (4, 8), "f32")))
    with pytest.raises(sw.UnsupportedError, match="there is no remainder of <8 x float>"):
        sw.compile(b.module(), target=DEVICE, schedule="@fused_fmod: vectorize(j); bind(i)")


def test_what_the_host_would_execute_is_refused() -> None:
    with pytest.raises(
        sw.CompileError, match=r"the host would execute loop\.for of @fused_dense_relu"
    ):
        sw.compile(mlp(8), target=DEVICE, schedule="@fused_dense_relu: split(i, 4)")


def test_a_pipeline_without_a_schedule_is_refused() -> None:
    """One of the nests is in blocks, and the other one on the host."""
    with pytest.raises(sw.CompileError, match=r"the host would execute loop\.for of @fused_relu"):
        compiled_after("loop-split{loop=i factor=3},loop-share-rows{loop=i1t}")


def test_nests_on_the_device_are_not_bound_again() -> None:
    exe = compiled_after("loop-split{loop=i factor=3},loop-share-rows{loop=i1t},loop-schedule")
    x = floats(7, 40)
    np.testing.assert_array_equal(exe(x), np.maximum(x, 0))
    assert [(launch.blocks, launch.threads) for launch in exe.launches] == [(2, 128), (1, 64)]


def compiled_after(steps: str) -> sw.Executable:
    """A program of 7 rows of 40 elements whose kernel has been transformed by these passes."""
    b = sw.Builder("main")
    b.output(b.relu(b.input("x", (7, 40), "f32")), name="y")
    passes = {**pipeline(3), "scheduled": steps}
    return sw.compile(b.module(), target=DEVICE, pipeline=passes)


def test_a_fault_is_at_the_node_of_the_model() -> None:
    """In the text of a later stage, whose accesses are not proved, all threads write to one row."""
    b = sw.Builder("main")
    b.output(b.relu(b.input("x", (40,), "f32")), name="y")
    module = b.module()
    exe, x = sw.compile(module, target=DEVICE), floats(40)
    text, count = re.subn(
        r"(memref.store .*\[)%\w+(\].*)", r'\1%zero\2 loc("act")', exe.ir("loops")
    )
    assert count == 1
    text = re.sub(r"(%\w+ = memref.load)", r"%zero = arith.constant 0 : index\n\1", text)
    wrong = sw.compile(sw.from_mlir(text), target=DEVICE)
    for _ in range(2):
        with pytest.raises(
            sw.EmulationError, match=r"race: byte 0 of argument \d \(memref<40xf32>\)"
        ) as caught:
            wrong(x)
        assert caught.value.kind == "race"
        assert re.fullmatch(r"main\.loops\.mlir:\d+", caught.value.source or "")
    np.testing.assert_array_equal(exe(x), np.maximum(x, 0))


def test_launches_are_counted() -> None:
    exe = sw.compile(mlp(7), target=DEVICE)
    assert exe.launches == ()
    exe(floats(7, 13))
    first, second = exe.launches
    assert (first.kernel, first.blocks, first.threads) == (
        "fused_dense_relu_thread0_kernel",
        1,
        128,
    )
    assert first.mix["fma"] == 13 * 4, "119 threads are 4 warps"
    assert second.total("diverged") == 1, "7 rows of a warp"
    assert sw.compile(mlp(7)).launches == ()


def test_stages_as_text() -> None:
    exe = sw.compile(mlp(7), target=DEVICE)
    assert exe.stages[-1] == "ptx"
    text = exe.ir("ptx")
    assert ".target sm_90\n" in text
    assert ".section" not in text
    host = sw.compile(mlp(7))
    assert "ptx" not in host.stages
    with pytest.raises(sw.CompileError, match="ptx: the target has no device"):
        host.ir("ptx")


def test_new_weights_and_any_stage(all_tests: bool) -> None:
    module, x = mlp(7), floats(7, 13)
    exe = sw.compile(module, target=DEVICE)
    for stage in ("kernels", "scheduled", "loops", "llvm") if all_tests else ("scheduled", "llvm"):
        again = sw.from_mlir(exe.ir(stage), weights=exe.weights(stage))
        np.testing.assert_array_equal(sw.compile(again, target=DEVICE)(x), exe(x))


def test_compilations_are_checked_bisected_and_profiled() -> None:
    b, x = sw.Builder("main"), floats(3, 4)
    b.output(b.exp(b.relu(b.dense(b.input("x", (3, 4), "f32"), floats(2, 4)))), name="y")
    module = b.module()
    wanted = module.run_reference(x)
    exe = sw.compile(module, target=DEVICE, check=True)
    np.testing.assert_allclose(exe(x), wanted, rtol=TOLERANCE, atol=TOLERANCE)
    assert sw.bisect(module, (x,), target=DEVICE) is None
    profile = exe.profile(x, repeat=1)
    assert profile.refused == "kernels run on a device, whose limits are not measured"
    assert all(row.limit is None for row in (*profile.kernels, *profile.nodes))
    rows = {row.name for row in profile.kernels}
    copies = {"copy to the device", "copy to the host"}
    assert rows == {"fused_dense_relu_exp"} | copies


def test_a_schedule_step_by_step() -> None:
    s = sw.schedule(mlp(7), "fused_dense_relu", start="none", target=DEVICE)
    s.bind("i", "j")
    assert s.loops == ["i", "j", "k"]
    assert "to 17 threads {" in s.ir()


FUNCTION = """
llvm.func internal @f(%t: i64, %x: !llvm.ptr) attributes {rt.kernel = KERNEL} {
  %v = llvm.load %x : !llvm.ptr -> f32
  %w = llvm.intr.exp(%v) : (f32) -> f32
  llvm.store %w, %x : f32, !llvm.ptr
  llvm.return
}
"""


@pytest.mark.parametrize(
    ("kernel", "kind", "says"),
    [
        ("[memref<4xf32>]", sw.UnsupportedError, "sm_90: the device has no function llvm.exp.f32"),
        ("1", sw.CompileError, "rt.kernel: malformed, expected .*, got 1"),
    ],
)
def test_code_that_is_not_for_a_device(kernel: str, kind: type[Exception], says: str) -> None:
    """LLVM would end the process at the exponential."""
    op = Parser(make_context(), FUNCTION.replace("KERNEL", kernel)).parse_module()
    with pytest.raises(kind, match=says):
        device_code(op, named(DEVICE))


def test_kernels_do_not_allocate() -> None:
    """A local buffer of a size that is not known: the error is that of the compilation."""
    call = "llvm.func @aligned_alloc(i64, i64) -> !llvm.ptr\n" + FUNCTION.replace(
        "llvm.intr.exp(%v) : (f32) -> f32", "llvm.fadd %v, %v : f32"
    )
    call = call.replace("KERNEL", "[memref<4xf32>]").replace(
        "%v = llvm.load %x",
        "%y = llvm.call @aligned_alloc(%t, %t) : (i64, i64) -> !llvm.ptr\n  %v = llvm.load %y",
    )
    op = Parser(make_context(), call).parse_module()
    with pytest.raises(sw.UnsupportedError, match="sm_90: the device has no function aligned_allo"):
        device_code(op, named(DEVICE))


def test_programs_for_a_device_are_not_exported(tmp_path: Any) -> None:
    says = "a program for a device cannot be exported, expected a processor, got cuda:sm_90,emul"
    with pytest.raises(sw.UnsupportedError, match=says):
        sw.export(mlp(7), tmp_path / "library", target=DEVICE)
