"""Checks of programs that are too large to be interpreted: with smaller sizes, then as a whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array
from xdsl.context import Context
from xdsl.dialects import arith, llvm
from xdsl.dialects.builtin import AffineMapAttr, IndexType, IntegerAttr, ModuleOp
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.passes import ModulePass

import stepwell as sw
from stepwell.backends.llvm import operations
from stepwell.core.ir.context import Change
from stepwell.core.pipelines.budgets import EXACT, ROUNDING
from stepwell.core.registry import passes
from stepwell.diagnosis import checks, limits
from stepwell.diagnosis import smaller as sizes
from stepwell.diagnosis.differences import Tolerance
from stepwell.diagnosis.limits import ValueLimits
from stepwell.diagnosis.smaller import is_large, made_up, smaller
from stepwell.diagnosis.traces import Key, Trace
from stepwell.dialects.graph import ops as graph
from stepwell.dialects.loop import ops as loop
from stepwell.frontends import gnn

from ...harness import RNG


def weights(*shape: int) -> np.ndarray:
    return np.random.default_rng(shape[0]).standard_normal(shape, np.float32)


def mlp(rows: int | str = 45, hides: bool = True) -> sw.Module:
    """If it hides something, the result is 0, whatever the first layer computes."""
    b = sw.Builder("main")
    h = b.dense(b.input("x", (rows, 200)), weights(130, 200), bias=weights(130))
    h = b.sub(b.constant(weights(130)), b.relu(h))
    y = b.dense(h, weights(10, 130), bias=weights(10))
    b.output(b.relu(b.sub(y, b.constant(np.full(10, 1e6 * hides, np.float32)))))
    return b.module()


def graph_network(nodes: int = 300) -> sw.Module:
    edges = np.random.default_rng(0).integers(0, nodes, (2, 900))
    layers = gnn.GCNConv(weights(170, 20), weights(20)), gnn.ReLU(), gnn.GCNConv(weights(20, 7))
    model = gnn.Sequential(*layers)
    features = sw.TensorSpec((nodes, 170), "f32")
    return model.to_module(gnn.Graph.from_edge_index(edges, nodes), features=features)


def convolutions() -> sw.Module:
    b = sw.Builder("main")
    x = b.relu(b.conv(b.input("x", (1, 40, 34, 34)), weights(64, 40, 3, 3)))
    b.output(b.dense(b.reduce(x, "mean", [2, 3]), weights(100, 64)))
    return b.module()


def first(op: ModuleOp, kind: type[Any], where: Callable[[Any], bool] = lambda op: True) -> Any:
    found = [inner for inner in op.walk() if isinstance(inner, kind) and where(inner)]
    assert found, f"no {kind.name} to break"
    return found[0]


def swapped_subtraction(op: ModuleOp) -> None:
    wrong = first(op, graph.SubOp)
    wrong.operands = wrong.operands[::-1]


def last_row_left_out(op: ModuleOp) -> None:
    plain = first(op, loop.ForOp, lambda one: one.is_plain)
    *others, bound = plain.bound.data.results
    plain.bound = mapped(plain.bound.data, (*others, bound - 1))


def mapped(old: AffineMap, results: Sequence[AffineExpr]) -> AffineMapAttr:
    return AffineMapAttr(AffineMap(old.num_dims, old.num_symbols, tuple(results)))


def one_element_changed(op: ModuleOp) -> None:
    """The last one has the other sign."""
    store = first(op, loop.StoreOp)
    condition: Any = None
    for index, size in zip(store.indices, store.buffer.type.get_shape(), strict=True):
        last = arith.ConstantOp(IntegerAttr(size - 1, IndexType()))
        is_last = arith.CmpiOp(index, last.result, "eq")
        both = [] if condition is None else [arith.AndIOp(condition.results[0], is_last.result)]
        store.parent.insert_ops_before([last, is_last, *both], store)
        condition = both[0] if both else is_last
    other = arith.NegfOp(store.value)
    chosen = arith.SelectOp(condition.results[0], other.result, store.value)
    store.parent.insert_ops_before([other, chosen], store)
    store.operands[0] = chosen.result


def dropped_store(op: ModuleOp) -> None:
    store = first(op, loop.StoreOp)
    store.detach()
    store.erase()


def mask_too_short(op: ModuleOp) -> None:
    store = first(op, loop.StoreOp, lambda one: len(one.limits) > 0)
    one = arith.ConstantOp.from_int_and_width(1, IndexType())
    store.parent.insert_op_before(one, store)
    store.operands[list(store.operands).index(store.limits[0])] = one.result


def sums_instead_of_products(op: ModuleOp) -> None:
    """In all kernels, of which some are unrolled."""
    for fma in [inner for inner in op.walk() if isinstance(inner, llvm.FMAOp)]:
        fma.operands[2] = fma.operands[0]


class Planted:
    """A pass that makes a mistake from its nth run on: the first one is that of a smaller program.

    The second run is that of the program itself, later ones look for the mistake.
    """

    def __init__(
        self,
        patch: pytest.MonkeyPatch,
        name: str,
        mistake: Callable[[ModuleOp], None],
        since: int,
    ) -> None:
        kind, self.runs = passes()[name](), 0
        apply = kind.apply

        def wrong(own: ModulePass, ctx: Context, op: ModuleOp) -> None:
            apply(own, ctx, op)
            self.runs += 1
            if self.runs >= since:
                mistake(op)
                op.verify()

        patch.setattr(kind, "apply", wrong)


MISTAKES: list[tuple[str, Callable[[ModuleOp], None]]] = [
    ("graph-fuse-ops", swapped_subtraction),
    ("convert-graph-to-loop", last_row_left_out),
    ("convert-graph-to-loop", one_element_changed),
    ("loop-schedule", last_row_left_out),
    ("loop-schedule", dropped_store),
    ("loop-schedule", mask_too_short),
    ("convert-to-llvm", sums_instead_of_products),
]


FEWER = sizes.LARGE // 4
"""A large size in quick tests."""

QUICK = {
    ("convert-graph-to-loop", one_element_changed, 1),
    ("loop-schedule", mask_too_short, 2),
}
"""Others run with all tests."""


@pytest.mark.parametrize(
    ("name", "mistake", "since"),
    [
        pytest.param(
            *(name, mistake, since),
            id=f"{name}:{mistake.__name__}:{size}",
            marks=() if (name, mistake, since) in QUICK else pytest.mark.slow,
        )
        for name, mistake in MISTAKES
        for since, size in ((1, "any size"), (2, "large sizes"))
    ],
)
def test_mistakes_are_blamed_on_their_pass(
    name: str,
    mistake: Callable[[ModuleOp], None],
    since: int,
    monkeypatch: pytest.MonkeyPatch,
    all_tests: bool,
) -> None:
    """Also those that depend on sizes, and although no result shows them."""
    rows = 45 if all_tests else 15
    if not all_tests:
        monkeypatch.setattr(sizes, "LARGE", FEWER)
    Planted(monkeypatch, name, mistake, since)
    with pytest.raises(sw.MiscompilationError) as caught:
        # Operators are compared where a result differs.
        sw.compile(mlp(rows, mistake is not swapped_subtraction), threads=1, check=True)
    error = caught.value
    assert error.pass_name == name
    assert str(error).startswith(f"{name}: ")
    assert ("; sizes: 66 for 130, 72 for 200" in str(error)) == (since == 1)
    assert error.inputs[0].shape == (rows, 72 if since == 1 else 200)
    if mistake is not swapped_subtraction:
        assert error.function is not None
        assert error.function.startswith("fused_dense")


@pytest.mark.slow
def test_mistakes_of_code_generation(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pass is to blame, once all of them are compared at full size."""
    whole = operations._call_intrinsic

    def call(builder: Any, name: str, *rest: Any) -> Any:
        return whole(builder, name.replace("llvm.maximum.", "llvm.minimum."), *rest)

    monkeypatch.setattr(operations, "_call_intrinsic", call)
    monkeypatch.setattr(checks, "_checked", lambda *args: ())
    with pytest.raises(sw.MiscompilationError, match=r"^code generation: .* in @fused_dense"):
        sw.compile(mlp(), threads=1, check=True)


@pytest.mark.parametrize(
    ("make", "threads"),
    [
        pytest.param(lambda: graph_network(100), 2, id="a smaller graph"),
        pytest.param(graph_network, 2, marks=pytest.mark.slow),
        pytest.param(mlp, 1, marks=pytest.mark.slow),
        pytest.param(convolutions, 2, marks=pytest.mark.slow),
    ],
)
def test_no_alarm(
    make: Callable[[], sw.Module], threads: int, monkeypatch: pytest.MonkeyPatch, all_tests: bool
) -> None:
    if not all_tests:
        monkeypatch.setattr(sizes, "LARGE", FEWER)
    exe = sw.compile(make(), threads=threads, check=True)
    assert exe.changes[-1].pass_name == "code generation"
    assert {change.stage for change in exe.changes} >= {"kernels", "buffers", "loops", "llvm"}


def perceptron() -> sw.Module:
    b = sw.Builder("main")
    h = b.relu(b.dense(b.input("x", ("n", 784)), weights(128, 784), bias=weights(128)))
    b.output(b.dense(h, weights(10, 128), bias=weights(10)))
    return b.module()


def graph_network_like_cora() -> sw.Module:
    edges = np.random.default_rng(0).integers(0, 2708, (2, 5000))
    graph = gnn.Graph.from_edge_index(np.concatenate([edges, edges[::-1]], 1), 2708)
    layers = gnn.GCNConv(weights(1433, 16), weights(16)), gnn.ReLU(), gnn.GCNConv(weights(16, 7))
    return gnn.Sequential(*layers).to_module(graph, features=sw.TensorSpec((2708, 1433), "f32"))


def residual_network() -> sw.Module:
    """ResNet-18 for an image of 224 x 224, without its batch norms."""
    b = sw.Builder("main")

    def conv(x: Any, channels: int, filters: int, size: int, stride: int) -> Any:
        if border := size // 2:
            x = b.pad(x, [0, 0, border, border], [0, 0, border, border])
        scale = np.float32(1 / np.sqrt(channels * size * size))
        return b.conv(x, scale * weights(filters, channels, size, size), strides=(stride, stride))

    x = b.relu(conv(b.input("x", (1, 3, 224, 224)), 3, 64, 7, 2))
    x = b.pool(b.pad(x, [0, 0, 1, 1], [0, 0, 1, 1]), "max", [3, 3], strides=(2, 2))
    channels = 64
    for filters in (64, 128, 256, 512):
        for stride in (1 if filters == 64 else 2, 1):
            y = conv(b.relu(conv(x, channels, filters, 3, stride)), filters, filters, 3, 1)
            short = x if channels == filters else conv(x, channels, filters, 1, stride)
            x, channels = b.relu(b.add(y, short)), filters
    b.output(b.dense(b.reduce(x, "mean", [2, 3]), weights(1000, 512), bias=weights(1000)))
    return b.module()


@pytest.mark.slow
@pytest.mark.parametrize("make", [perceptron, graph_network_like_cora, residual_network])
def test_models_of_real_size(make: Callable[[], sw.Module]) -> None:
    exe = sw.compile(make(), check=True, records=False)
    assert exe.changes[-1].pass_name == "code generation"
    assert max(change.ulp for change in exe.changes) < 64


@pytest.mark.slow
def test_given_inputs_are_those_of_the_whole_program(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.zeros((45, 200), np.float32)
    Planted(monkeypatch, "loop-schedule", dropped_store, since=2)
    with pytest.raises(sw.MiscompilationError) as caught:
        sw.compile(mlp(), threads=1, check=[x])
    assert caught.value.inputs[0] is x
    with pytest.raises(sw.InputError, match='input "x"'):
        sw.compile(mlp(), threads=1, check=[x[:, 1:].copy()])


@pytest.mark.parametrize("since", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_bisection(since: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the smaller program: both descents, then both of the program itself."""
    Planted(monkeypatch, "loop-schedule", last_row_left_out, since)
    found = sw.bisect(mlp(), threads=1)
    assert found is not None
    assert (found.pass_name, found.stage) == ("loop-schedule", "scheduled")
    assert found.function == "fused_dense_relu_sub"
    assert dict(found.sizes) == ({130: 66, 200: 72} if since == 1 else {})
    assert ("sizes: 66 for 130, 72 for 200" in str(found)) == (since == 1)
    assert found.diff()


@pytest.mark.slow
def test_bisection_of_a_program_that_is_right() -> None:
    assert sw.bisect(mlp(), threads=1) is None


def test_a_given_limit_is_that_of_each_pass() -> None:
    one, change = np.ones(3, np.float32), Change("fused", "several passes", 0.0, 0, "")
    limits, before = ValueLimits(mlp(), max_ulp=2), Trace((one,))
    apart = Trace((one + 5 * np.spacing(np.float32(1)),))
    limits.compare(change, before, apart, [], EXACT, passes=3)
    with pytest.raises(sw.MiscompilationError, match=r"several passes: .* the limit is 4 ulp"):
        limits.compare(change, before, apart, [], EXACT, passes=2)


def test_growth_is_measured_once_for_the_same_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[list[Any]] = []

    def growth(module: sw.Module, inputs: list[Any], limit: float, digits: int) -> dict[Key, float]:
        measured.append(inputs)
        return {0: float(inputs[0])}

    monkeypatch.setattr(limits, "growth", growth)
    one, change = np.ones(3, np.float32), Change("fused", "a pass", 0.0, 0, "")
    found, before = ValueLimits(mlp(), max_ulp=None), Trace((one,))
    apart = Trace((one + 9 * np.spacing(np.float32(1)),))
    small, large = [np.float32(5)], [np.float32(50)]
    for inputs in (small, small, [*large], [*large]):
        with suppress(sw.MiscompilationError):
            found.compare(change, before, apart, inputs, ROUNDING)
            assert inputs == large
    assert measured == [small, large]


def test_each_value_has_the_limit_to_which_it_grows() -> None:
    one, change = np.ones(3, np.float32), Change("fused", "a pass", 0.0, 0, "")
    apart = one + 100 * np.spacing(np.float32(1))
    grown = {0: 10.0, 1: 1000.0, ("f", 1): 1e6}
    tolerance = Tolerance(4.0, 24, grown)
    assert tolerance.difference(change, Trace((one, one)), Trace((one, apart)), []) is None
    error = tolerance.difference(change, Trace((one, one)), Trace((apart, one)), [])
    assert "it changes result 0" in str(error)
    assert "the limit is 10 ulp" in str(error)


def test_sizes_keep_their_order_and_remainders() -> None:
    small = smaller(mlp("n"))
    assert small is not None
    assert dict(small.sizes) == {130: 66, 200: 72}
    assert [spec.shape for spec in small.module.inputs] == [("n", 72)]
    assert sorted(shapes(small.module)) == [
        *((10,), (10,), (10, 66)),
        *((66,), (66,), (66, 72)),
    ]


def shapes(module: sw.Module) -> list[tuple[int, ...]]:
    return [module.weights[name].shape for name in module.weights]


def test_related_sizes_are_divided() -> None:
    """Heads of attention."""
    b = sw.Builder("main")
    x = b.dense(b.input("x", (50, 384)), weights(384, 384))
    heads = b.reshape(x, (50, 6, 64))
    b.output(b.reduce(heads, "sum", [2]))
    small = smaller(b.module())
    assert small is not None
    assert dict(small.sizes) == {384: 96, 64: 16}
    ((rows, columns),) = (spec.shape for spec in small.module.inputs)
    assert (rows, columns) == (50, 96)


def test_sparse_matrices_keep_their_rows_full() -> None:
    matrix = csr_array(random_array((300, 300), density=0.02, rng=RNG, dtype=np.float32))
    b = sw.Builder("main")
    a = b.input("a", sw.SparseSpec((300, 200), "f32", nnz=900))
    b.output(b.spmm(b.constant(matrix), b.spmm(a, b.input("x", (200, 170)))))
    small = smaller(b.module())
    assert small is not None
    assert small.module.inputs[0].nnz == 900 * small.sizes[300] // 300
    (name,) = small.module.weights
    rows = small.sizes[300]
    part: Any = small.module.weights[name]
    assert part.shape == (rows, rows)
    assert 0.9 * matrix.indptr[rows] < part.nnz <= matrix.indptr[rows]


def test_a_program_that_cannot_shrink_is_interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes, "LARGE", 10)
    b = sw.Builder("main")
    b.output(b.relu(b.input("x", (4, 5))))
    module = b.module()
    assert is_large(module, made_up(module))
    assert smaller(module) is None
    assert sw.compile(module, threads=1, check=True).changes[-1].pass_name == "code generation"
