"""16 bits in memory: how far results are from f32, and what is decided about each operator."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.sparse import random_array

import stepwell as sw
from stepwell.core.pipelines.staircase import pipeline, run_passes
from stepwell.core.registry import make_context
from stepwell.frontends import gnn
from stepwell.frontends.builder import Builder

from ...harness import cases, results, same

UNIT = {"bf16": 2.0**-8, "f16": 2.0**-11}
"""The largest relative error of one rounding."""


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def mlp() -> tuple[sw.Module, list[Any]]:
    b = Builder()
    x = b.input("x", ("n", 33))
    h = b.relu(b.dense(x, normal(17, 33), normal(17), name="fc1"), name="act1")
    b.output(b.softmax(b.dense(h, normal(40, 17), name="fc2") * 0.1, axis=-1), name="y")
    b.output(h, name="hidden")
    return b.module(), [normal(5, 33, seed=1)]


def conv() -> tuple[sw.Module, list[Any]]:
    b = Builder()
    x = b.input("x", (2, 3, 9, 9))
    h = b.conv(x, normal(4, 3, 3, 3), name="conv1")
    positive = normal(4) ** 2 + 0.5
    h = b.relu(b.batch_norm(h, positive, normal(4), normal(4), positive, epsilon=1e-5, axis=1))
    h = b.pool(h, "mean", [2, 2], strides=[2, 2])
    b.output(b.dense(b.reshape(h, [0, -1]), normal(5, 36), name="fc"), name="y")
    return b.module(), [normal(2, 3, 9, 9, seed=1)]


def gcn() -> tuple[sw.Module, list[Any]]:
    adjacency = random_array((9, 9), density=0.3, rng=np.random.default_rng(0), dtype=np.float32)
    graph = gnn.Graph.from_scipy((adjacency + adjacency.T).tocsr())
    layers = (gnn.GCNConv(normal(6, 4), normal(4)), gnn.ReLU(), gnn.GCNConv(normal(4, 3)))
    module = gnn.Sequential(*layers).to_module(graph, sw.TensorSpec((9, 6), "f32"))
    return module, [normal(9, 6, seed=1)]


MODELS = pytest.mark.parametrize("model", [mlp, conv, gcn])
TYPES = pytest.mark.parametrize("type", ["bf16", "f16"])
Model = Callable[[], tuple[sw.Module, list[Any]]]


def error(want: np.ndarray, have: np.ndarray) -> float:
    return float(np.abs(want - have).max() / np.abs(want).max())


WAYS = [(model, type, level) for model in (mlp, conv, gcn) for type in UNIT for level in (0, 3)]
"""Either type at either level, of one model or another."""
CROSSED = [("bf16", 0), ("f16", 3)]


@pytest.mark.parametrize(
    "case", cases(WAYS, [way for way in WAYS if (way[0] is conv) == (way[1:] in CROSSED)])
)
def test_compiled_results_are_as_close_as_the_type_allows(case: tuple[Model, str, int]) -> None:
    model, type, level = case
    module, inputs = model()
    mixed = sw.to_mixed_precision(module, [inputs], type).module
    exe = sw.compile(mixed, threads=1, opt_level=level)
    assert [s.dtype for s in (*exe.inputs, *exe.outputs)] == [
        s.dtype for s in (*module.inputs, *module.outputs)
    ]
    wanted = results(module.run_reference(*inputs))
    for want, have in zip(wanted, results(exe(*inputs)), strict=True):
        assert have.dtype == want.dtype
        # Operands, weights and results of each of two layers are rounded: 6 roundings, most of
        # which cancel; the softmax multiplies an absolute error of its operand.
        assert 0 < error(want, have) < 6 * UNIT[type]


@MODELS
@TYPES
def test_reported_errors_are_those_of_the_module(model: Model, type: str) -> None:
    module, inputs = model()
    made = sw.to_mixed_precision(module, [inputs, inputs], type)
    assert made.samples == 2
    before = results(module.run_reference(*inputs))
    after = results(made.module.run_reference(*inputs))
    assert [d.name for d in made.outputs] == [s.name for s in module.outputs]
    for reported, want, have in zip(made.outputs, before, after, strict=True):
        # The f32 results differ by the order of sums of the optimised module.
        assert reported.absolute == pytest.approx(float(np.abs(want - have).max()), rel=1e-2)
        assert reported.relative == pytest.approx(error(want, have), rel=1e-2)
    stored = [d for d in made.decisions if d.what.startswith("store ")]
    assert [d.nodes for d in made.operators] == [d.nodes for d in stored]
    assert all(0 < d.relative < 6 * UNIT[type] for d in made.operators)
    assert "largest differences from f32, over 2 samples" in str(made)


def test_weights_take_half_the_bytes(tmp_path: Path) -> None:
    module, inputs = mlp()
    made = sw.to_mixed_precision(module, [inputs])
    assert {
        str(array.dtype) for array in map(made.module.weights.__getitem__, made.module.weights)
    } == {"bfloat16"}
    made.module.save(tmp_path / "m.mlir")
    again = sw.from_mlir(tmp_path / "m.mlir")
    assert str(again) == str(made.module)
    same(again.run_reference(*inputs), made.module.run_reference(*inputs))


def test_decisions_name_the_nodes_and_the_policy() -> None:
    module, inputs = mlp()
    decisions = sw.to_mixed_precision(module, [inputs], "f16").decisions
    told = [str(d) for d in decisions]
    assert {d.kind for d in decisions if d.what.endswith("in f32")} == {"missed"}
    assert 'node "fc1": store graph.dense in f16, because its policy is always' in told[0]
    assert "[1156 instead of 2312 bytes of weights]" in told[0]
    assert any("compute graph.softmax in f32, because its policy is never" in d for d in told)


def test_lists_go_before_what_operators_say() -> None:
    module, inputs = mlp()
    made = sw.to_mixed_precision(module, [inputs], never=["dense"])
    assert not made.operators
    assert made.outputs[0].absolute == 0
    made = sw.to_mixed_precision(module, [inputs], always=["graph.softmax"])
    assert "graph.softmax" in [d.name for d in made.operators]


def test_results_that_leave_the_range_are_reported() -> None:
    b = Builder()
    b.output(b.dense(b.input("x", (1, 2)), np.full((1, 2), 6e4, np.float32)), name="y")
    sample = [np.full((1, 2), 6e4, np.float32)]
    assert sw.to_mixed_precision(b.module(), [sample], "f16").outputs[0].absolute == np.inf
    assert sw.to_mixed_precision(b.module(), [sample], "bf16").outputs[0].relative < 0.01


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"type": "f8"}, "graph-to-mixed-precision: unknown type, expected f16 or bf16, got f8"),
        ({"never": ["swoosh"]}, 'graph-to-mixed-precision: unknown operator "graph.swoosh"'),
        (
            {"never": ["dense"], "always": ["dense"]},
            'graph-to-mixed-precision: "graph.dense" is in two lists',
        ),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], message: str) -> None:
    module, inputs = mlp()
    with pytest.raises(sw.CompileError, match=message):
        sw.to_mixed_precision(module, [inputs], **arguments)


def test_samples_are_needed() -> None:
    module, _ = mlp()
    with pytest.raises(sw.InputError, match="to_mixed_precision: no samples to measure the error"):
        sw.to_mixed_precision(module, [])


def test_in_an_edited_pipeline() -> None:
    module, inputs = mlp()
    texts = pipeline(3)
    step = "graph-to-mixed-precision{type=f16},graph-fold-constant,graph-canonicalize-cast"
    texts = {**texts, "optimized": f"{texts['optimized']},{step}"}
    exe = sw.compile(module, threads=1, pipeline=texts)
    assert "tensor<17x33xf16>" in exe.ir("fused")
    assert "graph-to-mixed-precision" in exe.explain()
    for want, have in zip(module.run_reference(*inputs), exe(*inputs), strict=True):
        assert error(want, have) < 6 * UNIT["f16"]


@settings(
    max_examples=settings().max_examples * 25 // 100,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(data=st.data(), type=st.sampled_from(["f16", "bf16"]))
def test_any_program_stays_valid(
    data: st.DataObject, type: str, programs: st.SearchStrategy[Any]
) -> None:
    """The types of arguments and results stay; operators verify on the narrow type."""
    case = data.draw(programs)
    copy = case.module.clone()
    ctx = make_context(copy.weights)
    run_passes(ctx, copy.op, f"graph-to-mixed-precision{{type={type}}}")
    after = sw.Module(copy.op, ctx.weights)
    assert after.outputs == case.module.outputs
    runs = (results(m.run_reference(*case.inputs)) for m in (case.module, after))
    for want, have in zip(*runs, strict=True):
        assert want.dtype == have.dtype
        assert want.shape == have.shape
