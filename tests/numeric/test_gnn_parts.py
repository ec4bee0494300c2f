"""Activations, norms, pools, skips and batches of graphs against formulas by hand."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

import stepwell as sw
from stepwell.core.errors import InputError
from stepwell.frontends import gnn
from stepwell.frontends.builder import Value
from stepwell.frontends.gnn.context import Context

from ..harness import floats, import_level

WIDTH = 5
SPEC = sw.TensorSpec((None, WIDTH))
EDGES = gnn.EdgeListSpec()


def erf(x: np.ndarray) -> np.ndarray:
    return np.vectorize(math.erf)(x)


def softplus(x: np.ndarray) -> np.ndarray:
    return np.logaddexp(0, x)


def softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


SLOPES = floats(WIDTH)
ACTIVATIONS: list[tuple[gnn.Layer, Callable[[np.ndarray], np.ndarray]]] = [
    (gnn.ReLU(), lambda x: np.maximum(x, 0)),
    (gnn.ReLU6(), lambda x: np.clip(x, 0, 6)),
    (gnn.LeakyReLU(), lambda x: np.where(x > 0, x, 0.01 * x)),
    (gnn.LeakyReLU(negative_slope=0.3), lambda x: np.where(x > 0, x, 0.3 * x)),
    (gnn.PReLU(SLOPES), lambda x: np.where(x > 0, x, SLOPES * x)),
    (gnn.PReLU(np.array([0.25])), lambda x: np.where(x > 0, x, 0.25 * x)),
    (gnn.ELU(), lambda x: np.where(x > 0, x, np.expm1(x))),
    (gnn.ELU(0.5), lambda x: np.where(x > 0, x, 0.5 * np.expm1(x))),
    (gnn.SELU(), lambda x: 1.0507009873 * np.where(x > 0, x, 1.6732632423 * np.expm1(x))),
    (gnn.CELU(2.0), lambda x: np.where(x > 0, x, 2 * np.expm1(x / 2))),
    (gnn.GELU(), lambda x: x * (1 + erf(x / 2**0.5)) / 2),
    (
        gnn.GELU("tanh"),
        lambda x: x / 2 * (1 + np.tanh((2 / math.pi) ** 0.5 * (x + 0.044715 * x**3))),
    ),
    (gnn.SiLU(), lambda x: x / (1 + np.exp(-x))),
    (gnn.Mish(), lambda x: x * np.tanh(softplus(x))),
    (gnn.Hardswish(), lambda x: x * np.clip(x / 6 + 0.5, 0, 1)),
    (gnn.Sigmoid(), lambda x: 1 / (1 + np.exp(-x))),
    (gnn.Tanh(), np.tanh),
    (gnn.Softplus(), softplus),
    (gnn.Softplus(beta=3), lambda x: softplus(3 * x) / 3),
    (gnn.Softmax(), softmax),
    (gnn.Softmax(dim=0), lambda x: softmax(x, 0)),
    (gnn.LogSoftmax(), lambda x: np.log(softmax(x))),
]


class Beside(gnn.Layer):
    """The results of layers beside one another."""

    def __init__(self, layers: Iterable[gnn.Layer]) -> None:
        self.layers = tuple(layers)

    @property
    def parts(self) -> tuple[gnn.Layer, ...]:
        return self.layers

    def emit(self, context: Context, x: Value, name: str) -> Value:
        made = [p.emit(context, x, f"{name}.{n}") for n, p in enumerate(self.layers)]
        return context.builder.concat(made, axis=1)


def module_of(layer: gnn.Layer, **options: Any) -> sw.Module:
    return gnn.Sequential(layer).to_module(EDGES, SPEC, **options)


def test_activations() -> None:
    module = module_of(Beside(layer for layer, _ in ACTIVATIONS))
    x, ends = 4 * floats(9, WIDTH), np.zeros((2, 0), np.int64)
    want = np.concatenate([function(x.astype(float)) for _, function in ACTIVATIONS], axis=1)
    for run in (module.run_reference, sw.compile(module, threads=1, opt_level=import_level())):
        np.testing.assert_allclose(run(ends, x), want, rtol=1e-5, atol=1e-6)


def mean_of(values: np.ndarray, batch: np.ndarray) -> np.ndarray:
    """For each node the mean over its graph."""
    return np.stack([values[batch == g].mean(0) for g in batch]) if len(batch) else values


W, B, SCALE, MEAN, VAR = (np.abs(floats(WIDTH)) + 0.1 for _ in range(5))
Norm = Callable[[np.ndarray, np.ndarray, bool], np.ndarray]


def graph_norm(x: np.ndarray, batch: np.ndarray, _: bool, scale: Any = SCALE) -> np.ndarray:
    y = x - mean_of(x, batch) * scale
    return W * y / np.sqrt(mean_of(y * y, batch) + 1e-5) + B


def layer_norm(x: np.ndarray, batch: np.ndarray, several: bool) -> np.ndarray:
    def mean(values: np.ndarray) -> np.ndarray:
        return mean_of(values.mean(1, keepdims=True), batch)

    y = x - mean(x)
    variance = mean(y * y)
    return y / (np.sqrt(variance + 0.1) if several else np.sqrt(variance) + 0.1) * W + B


def node_norm(x: np.ndarray, batch: np.ndarray, _: bool) -> np.ndarray:
    y = x - x.mean(1, keepdims=True)
    return y / np.sqrt((y * y).mean(1, keepdims=True) + 1e-5) * W + B


def pair_norm(x: np.ndarray, batch: np.ndarray, _: bool) -> np.ndarray:
    y = x - mean_of(x, batch)
    return 2 * y / np.sqrt(mean_of((y * y).sum(1, keepdims=True), batch) + 1e-5)


def pair_norm_alone(x: np.ndarray, batch: np.ndarray, _: bool) -> np.ndarray:
    y = x - mean_of(x, batch)
    return y / (np.linalg.norm(y, axis=1, keepdims=True) + 1e-5)


NORMS: list[tuple[gnn.Layer, Norm]] = [
    (gnn.BatchNorm(MEAN, VAR, W, B), lambda x, *_: (x - MEAN) / np.sqrt(VAR + 1e-5) * W + B),
    (gnn.BatchNorm(MEAN, VAR), lambda x, *_: (x - MEAN) / np.sqrt(VAR + 1e-5)),
    (gnn.GraphNorm(W, B, SCALE), graph_norm),
    (gnn.InstanceNorm(W, B), lambda *given: graph_norm(*given, scale=1)),
    (gnn.LayerNorm(W, B, eps=0.1), layer_norm),
    (gnn.LayerNorm(W, B, mode="node"), node_norm),
    (gnn.PairNorm(2.0), pair_norm),
    (gnn.PairNorm(scale_individually=True), pair_norm_alone),
]
BATCHES = [
    np.array([0, 2, 0, 1, 2, 0, 2]),  # in any order
    np.zeros(4, np.int64),
    np.array([3, 3, 0]),  # graphs without nodes
    np.array([0]),
]


def normed(x: np.ndarray, batch: np.ndarray, several: bool) -> np.ndarray:
    return np.concatenate([norm(x.astype(float), batch, several) for _, norm in NORMS], axis=1)


def test_norms() -> None:
    layer = Beside(layer for layer, _ in NORMS)
    whole, batched = module_of(layer), module_of(layer, batch=gnn.BatchSpec())
    ends = np.zeros((2, 0), np.int64)
    runs = [(whole.run_reference, False), (batched.run_reference, True)]
    runs.append((sw.compile(batched, threads=2, opt_level=import_level()), True))
    for run, several in runs:
        for batch in BATCHES:
            x = 2 * floats(len(batch), WIDTH) + 1
            given = (batch,) if several else ()
            want = normed(x, batch if several else np.zeros(len(batch)), several)
            np.testing.assert_allclose(run(ends, x, *given), want, rtol=1e-4, atol=1e-4)


POOLS = {"sum": gnn.GlobalAddPool(), "mean": gnn.GlobalMeanPool(), "max": gnn.GlobalMaxPool()}


@pytest.mark.parametrize(("dtype", "count"), [("i64", None), ("i32", 5)])
def test_pools_of_a_batch(dtype: str, count: int | None) -> None:
    spec = gnn.BatchSpec(count, dtype)
    module = module_of(Beside(POOLS.values()), batch=spec)
    ends = np.zeros((2, 0), np.int64)
    for run in (module.run_reference, sw.compile(module, threads=2, opt_level=import_level())):
        for batch in (*BATCHES, np.zeros(0, np.int64)):
            x = floats(len(batch), WIDTH)
            graphs = batch.max(initial=-1) + 1 if count is None else count
            rows = [x[batch == g] for g in range(graphs)]
            want = [
                [getattr(np, kind)(r, axis=0) if len(r) else np.zeros(WIDTH) for r in rows]
                for kind in POOLS
            ]
            got = run(ends, x, batch.astype(dtype.replace("i", "int")))
            assert got.shape == (graphs, 3 * WIDTH)
            want = np.concatenate(np.array(want).reshape(3, -1, WIDTH), axis=1)
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_numbers_of_graphs_are_checked() -> None:
    exe = sw.compile(module_of(POOLS["mean"], batch=gnn.BatchSpec(2)))
    with pytest.raises(InputError, match=r'node "batch": index out of range .*got 2'):
        exe(np.zeros((2, 0), np.int64), floats(3, WIDTH), np.array([0, 2, 1]))


def test_skips() -> None:
    a, b, c = (gnn.Linear(floats(WIDTH, WIDTH)) for _ in range(3))
    ends, x = np.zeros((2, 0), np.int64), floats(7, WIDTH)
    narrow = gnn.Linear(floats(2, WIDTH))

    def through(*layers: gnn.Linear, x: np.ndarray = x) -> np.ndarray:
        for layer in layers:
            x = x @ layer.weight.T
        return x

    relu = np.maximum(through(b, x=through(a)), 0)
    for layer, want in (
        (gnn.Residual(a, gnn.Sequential(b, gnn.ReLU())), relu + x),
        (gnn.Residual(narrow, shortcut=narrow), 2 * through(narrow)),
        (
            gnn.JumpingKnowledge([a, gnn.Sequential(b, gnn.ReLU()), narrow]),
            np.concatenate([through(a), relu, through(narrow, x=relu)], axis=1),
        ),
        (
            gnn.JumpingKnowledge([a, b, c], "max"),
            np.maximum(np.maximum(through(a), through(a, b)), through(a, b, c)),
        ),
    ):
        got = module_of(layer).run_reference(ends, x)
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    names = list(module_of(gnn.Residual(gnn.Sequential(a), shortcut=b)).weights)
    assert names == ["residual_0.sequential_0.linear_0.weight", "residual_0.shortcut.weight"]


class Model:
    """A layer of torch as its `state_dict` shows it."""

    def __init__(self, **weights: np.ndarray) -> None:
        self.state = {f"conv.{key.replace('__', '.')}": value for key, value in weights.items()}
        self.state["other.weight"] = floats(3)


def test_layers_of_a_state_dict() -> None:
    weight, bias = floats(3, WIDTH), floats(3)
    gcn = gnn.GCNConv.from_state_dict(Model(lin__weight=weight, bias=bias).state, "conv.")
    np.testing.assert_array_equal(gcn.weight, weight.T)
    np.testing.assert_array_equal(gcn.bias, bias)
    state = Model(lins__0__weight=weight, lins__1__weight=2 * weight).state
    tag = gnn.TAGConv.from_state_dict(state, "conv.", normalize=False)
    assert [part.weight[0, 0] for part in tag.lins] == [weight[0, 0], 2 * weight[0, 0]]
    assert tag.bias is None
    state = Model(eps=np.array([0.5]), nn__0__weight=weight).state
    gin = gnn.GINConv.from_state_dict(state, "conv.", [gnn.Linear(weight)])
    assert gin.eps == 0.5
    keys = {key: floats(6, WIDTH) for key in ("lin_query__weight", "lin_key__weight")}
    keys |= {key.replace("weight", "bias"): floats(6) for key in keys}
    keys |= {"lin_value__weight": floats(6, WIDTH), "lin_value__bias": floats(6)}
    conv = gnn.TransformerConv.from_state_dict(Model(**keys).state, "conv.", heads=2)
    assert conv.query.bias is not None
    assert conv.skip is None


ONE = np.ones((2, WIDTH), np.float32)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: gnn.GCNConv.from_state_dict({"c.weights": ONE}, "c."),
            r'"c.weights" is none of its weights, expected lin.weight.T, bias, got \(2, 5\)',
        ),
        (
            lambda: gnn.GCNConv.from_state_dict({}, "conv1."),
            'GCNConv: the weights under "conv1." do not fit: .*weight',
        ),
        (lambda: gnn.ELU("1"), "ELU: wrong alpha, expected a number, got '1'"),  # type: ignore[arg-type]
        (lambda: gnn.GELU(1), "GELU: wrong approximate, expected a text, got 1"),  # type: ignore[arg-type]
        (lambda: gnn.PReLU(np.ones(2, int)), "PReLU: the weight has the wrong dtype"),
        (lambda: gnn.LayerNorm(mode="all"), "LayerNorm: unknown mode, expected graph, node"),
        (lambda: gnn.GraphNorm(W, B[1:]), r"the bias has the wrong shape, expected \(5,\)"),
        (lambda: gnn.PairNorm("large"), "scale is not a number"),  # type: ignore[arg-type]
        (gnn.Residual, "Residual: there is no layer"),
        (lambda: gnn.Residual(gnn.ReLU), "Residual: not a layer, .*got ReLU"),  # type: ignore[arg-type]
        (lambda: gnn.JumpingKnowledge([], "cat"), "JumpingKnowledge: there is no layer"),
        (lambda: gnn.JumpingKnowledge([gnn.ReLU()], "sum"), "unknown mode, expected cat, max"),
        (
            lambda: gnn.JumpingKnowledge([gnn.ReLU()], "lstm"),
            'weights do not go with mode "lstm", expected lstm and att, got none',
        ),
        (
            lambda: gnn.JumpingKnowledge([gnn.ReLU()], "max", att=(ONE, ONE[0])),
            'weights do not go with mode "max", expected none, got att',
        ),
        (
            lambda: gnn.JumpingKnowledge([gnn.ReLU()], "lstm", lstm=[ONE] * 4, att=(ONE[:1], None)),
            "lstm does not have the weights of two directions, expected 8 arrays, got 4",
        ),
        (
            lambda: module_of(gnn.Residual(gnn.Linear(ONE))),
            'layer "residual_0" and its input differ in width, expected 5, or a shortcut, got 2',
        ),
        (
            lambda: module_of(gnn.JumpingKnowledge([gnn.ReLU(), gnn.Linear(ONE)], "max")),
            "results in layer .* differ in width",
        ),
        (lambda: module_of(gnn.ReLU(), batch=[0, 1]), "not a batch, expected gnn.BatchSpec"),
        (lambda: gnn.BatchSpec(0), "BatchSpec: num_graphs is wrong, expected a count of 1"),
        (lambda: gnn.BatchSpec(dtype="f32"), "BatchSpec: unknown dtype, expected i32 or i64"),
    ],
)
def test_wrong_parts_are_one_error(call: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
