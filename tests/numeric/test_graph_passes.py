"""Passes within the `graph` level keep the meaning: before and after, on the reference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects import func

from stepwell.core.boundary.specs import SparseSpec
from stepwell.core.ir.context import CompilerContext
from stepwell.core.ir.module import Module
from stepwell.core.pipelines.staircase import pipeline, run_passes
from stepwell.core.registry import make_context
from stepwell.dialects.graph.ops import ConstantOp, NormalizeOp
from stepwell.frontends.builder import Builder, Value

from ..harness import close, floats, same

OPTIMIZED = pipeline()["optimized"]


def transformed(module: Module, passes: str) -> tuple[Module, CompilerContext]:
    """A copy of the module after the passes, and the context with what they decided."""
    copy = module.clone()
    ctx = make_context(copy.weights)
    run_passes(ctx, copy.op, passes)
    return Module(copy.op, ctx.weights), ctx


def means_the_same(module: Module, passes: str, *inputs: Any, rtol: float = 1e-5) -> Module:
    """Demand equal results; `rtol` allows for another order of f32 roundings."""
    after, _ = transformed(module, passes)
    close(after.run_reference(*inputs), module.run_reference(*inputs), rtol)
    return after


def random_csr(rows: int, columns: int, density: float = 0.3, seed: int = 0) -> sp.csr_array:
    matrix = sp.random_array((rows, columns), density=density, rng=seed, dtype=np.float64)
    return sp.csr_array(matrix).astype(np.float32)


def main_of(module: Module) -> list[str]:
    return [op.name for op in module.main.body.block.ops]


@pytest.mark.parametrize("dtype", ["f16", "f32", "f64"])
@pytest.mark.parametrize(
    ("shape", "axis"), [((2, 3, 5), 1), ((4, 3), -1), ((3,), 0), ((1, 3, 1, 1), 1)]
)
@pytest.mark.parametrize("constant", [True, False])
def test_batch_norm(dtype: str, shape: tuple[int, ...], axis: int, constant: bool) -> None:
    b = Builder()
    x = b.input("x", shape, dtype)
    kind = {"f16": "float16", "f32": "float32", "f64": "float64"}[dtype]
    vectors = [np.abs(floats(3, dtype=kind)) for _ in range(4)]
    parameters: list[Any] = list(vectors)
    if not constant:
        parameters = [b.input(f"p{i}", (3,), dtype) for i in range(4)]
    b.output(b.batch_norm(x, *parameters, epsilon=1e-3, axis=axis))
    inputs = [floats(*shape, dtype=kind), *([] if constant else vectors)]
    # The factors are rounded once more than in the operator itself.
    rtol = {"f16": 1e-2, "f32": 1e-5, "f64": 1e-12}[dtype]
    after = means_the_same(b.module(), OPTIMIZED, *inputs, rtol=rtol)
    if constant and dtype != "f16":
        names = [n for n in main_of(after) if n not in ("graph.constant", "func.return")]
        assert names == ["graph.mul", "graph.add"]


@pytest.mark.parametrize("kind", ["symmetric", "row"])
@pytest.mark.parametrize("self_loops", [True, False])
@pytest.mark.parametrize("nodes", [1, 2, 7, 33])
@pytest.mark.parametrize("constant", [True, False])
def test_normalize(kind: str, self_loops: bool, nodes: int, constant: bool) -> None:
    b = Builder()
    matrix = random_csr(nodes, nodes, seed=nodes)
    a: Any = matrix if constant else b.input("a", SparseSpec((nodes, nodes)))
    x = b.input("x", ("n", 5))
    a = b.normalize(a, kind=kind, self_loops=self_loops)
    b.output(b.spmm(a, b.relu(b.spmm(a, x))))
    inputs = [*([] if constant else [matrix]), floats(nodes, 5)]
    after = means_the_same(b.module(), OPTIMIZED, *inputs)
    assert not [op for op in after.op.walk() if isinstance(op, NormalizeOp)]
    if constant:
        assert main_of(after).count("graph.spmm") == 2
        assert len(main_of(after)) == 5


@pytest.mark.parametrize(
    "matrix",
    [
        sp.csr_array((4, 4), dtype=np.float32),
        sp.csr_array(np.diag([0.0, 1.0, 2.0, -3.0]).astype(np.float32)),
        # A stored zero on the diagonal is a self loop; rows of sum 0 scale by 0.
        sp.csr_array(
            (np.array([0, 1, -1, 2], np.float32), [0, 1, 2, 3], [0, 1, 3, 4, 4]), shape=(4, 4)
        ),
    ],
    ids=["no edges", "diagonal", "zeros"],
)
@pytest.mark.parametrize("self_loops", [True, False])
def test_normalize_of_odd_graphs(matrix: sp.csr_array, self_loops: bool) -> None:
    matrix = abs(matrix) if not self_loops else matrix
    b = Builder()
    a = b.input("a", SparseSpec((4, 4)))
    x = b.input("x", (4, 3))
    b.output(b.spmm(b.normalize(a, kind="row", self_loops=self_loops), x))
    means_the_same(b.module(), OPTIMIZED, matrix, floats(4, 3))


def test_folded_results_are_evaluated_once_and_kept_out_of_the_text() -> None:
    weight = floats(40, 30)
    b = Builder()
    x = b.input("x", (2, 30))
    b.output(b.dense(x, b.transpose(b.transpose(weight, permutation=[1, 0]), permutation=[1, 0])))
    after = means_the_same(b.module(), "graph-fold-constant", floats(2, 30))
    assert main_of(after) == ["graph.constant", "graph.dense", "func.return"]
    (constant,) = [op for op in after.op.walk() if isinstance(op, ConstantOp)]
    assert constant.key == "transpose_x.transpose.transpose"
    np.testing.assert_array_equal(after.weights[constant.key], weight)


def test_normalized_constant_graph_is_a_csr_constant() -> None:
    b = Builder()
    x = b.input("x", (9, 2))
    b.output(b.spmm(b.normalize(b.constant(random_csr(9, 9), "adjacency")), x))
    after = means_the_same(b.module(), "graph-fold-constant", floats(9, 2))
    (constant,) = [op for op in after.op.walk() if isinstance(op, ConstantOp)]
    assert constant.key == "adjacency.normalize"
    stored = after.weights["adjacency.normalize"]
    assert isinstance(stored, sp.csr_array)
    assert constant.nnz is not None
    assert constant.nnz.value.data == stored.nnz


MODELS: dict[str, Callable[[Builder, Value], Value]] = {
    "epilogue": lambda b, x: b.relu(b.dense(x, floats(5, 8), floats(5)) * 2 + 1),
    "diamond": lambda b, x: (d := b.dense(x, floats(5, 8))) * b.sigmoid(d) + d,
    "two products": lambda b, x: b.dense(b.relu(b.dense(x, floats(6, 8))), floats(5, 6)),
    "softmax": lambda b, x: b.softmax(b.exp(x) * 0.1, axis=-1) / 3,
    "rows": lambda b, x: x - b.reduce(x * x, "mean", axes=[1], keepdims=True),
    "shapes": lambda b, x: (
        b.concat([b.transpose(x, permutation=[1, 0]), b.constant(floats(8, 1))], axis=1)
        if x.shape[0] is not None
        else b.transpose(x, permutation=[1, 0])
    ),
    "gather": lambda b, x: b.gather(
        b.exp(x), b.cast(b.clip(b.reduce(x, "max", axes=[0]), 0, 0), "i64"), axis=0
    ),
    "broadcast": lambda b, x: (
        x * b.exp(floats(8)) + b.broadcast_to(floats(1, 8), shape=[3, 8])
        if x.shape[0] == 3
        else x * b.exp(floats(8))
    ),
    "sparse": lambda b, x: (
        b.relu(b.spmm(random_csr(7, 3), b.matmul(x, floats(8, 4))) + floats(4)) @ floats(4, 2)
        if x.shape[0] == 3
        else x @ floats(8, 2)
    ),
    "many outputs of one value": lambda b, x: b.max(b.tanh(x), b.neg(b.tanh(x))),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("rows", [1, 3, "n"])
@pytest.mark.parametrize("options", ["", "{max-ops=1}", "{max-ops=2}"])
def test_fused_models(name: str, rows: int | str, options: str) -> None:
    b = Builder()
    x = b.input("x", (rows, 8))
    b.output(MODELS[name](b, x))
    size = 5 if rows == "n" else int(rows)
    after = means_the_same(
        b.module(), f"canonicalize,cse,dce,graph-fuse-ops{options}", floats(size, 8)
    )
    assert set(main_of(after)) <= {"graph.constant", "func.call", "func.return"}
    for function in after.op.ops:
        assert isinstance(function, func.FuncOp)
        inner = [op for op in function.body.block.ops if not isinstance(op, ConstantOp)]
        if "graph.primitive" in function.attributes and options == "{max-ops=1}":
            assert len(inner) == 2


def test_identity_and_constant_results_stay() -> None:
    b = Builder()
    x = b.input("x", (2, 3))
    b.output(x, "same")
    b.output(b.constant(floats(4)), "constant")
    b.output(x, "again")
    after = means_the_same(b.module(), f"{OPTIMIZED},graph-fuse-ops", floats(2, 3))
    assert main_of(after) == ["graph.constant", "func.return"]


def test_fusion_says_what_it_decided_in_the_names_of_the_model() -> None:
    b = Builder()
    x = b.input("x", (2, 3))
    b.output(b.relu(b.dense(x, floats(4, 3), name="fc1"), name="act1"))
    after, ctx = transformed(b.module(), "graph-fuse-ops")
    (decision,) = ctx.decisions
    assert decision.subject == "@fused_dense_relu"
    assert "graph.dense, graph.relu" in decision.what
    call = next(op for op in after.main.body.block.ops if op.name == "func.call")
    assert '"fc1", "act1"' in str(call.location).replace("'", '"') or "fc1" in str(call.location)
    inner = [op for op in after.op.walk() if op.name == "graph.dense"]
    assert "fc1" in str(inner[0].location)


UNARY = ["relu", "exp", "neg", "transpose"]
BINARY = ["add", "mul", "sub"]
ANCHOR = ["matmul", "softmax", "reduce"]


@settings(max_examples=settings().max_examples * 60 // 100, deadline=None)
@given(st.data())
def test_any_graph_of_operators_survives_fusion(data: st.DataObject) -> None:
    """Random graphs of square matrices, so that every operator fits every value."""
    b = Builder()
    values = [b.input("x", (3, 3)), b.input("y", (3, 3))]
    for _ in range(data.draw(st.integers(1, 12))):
        x = data.draw(st.sampled_from(values))
        name = data.draw(st.sampled_from(UNARY + BINARY + ANCHOR))
        if name in BINARY or name == "matmul":
            values.append(getattr(b, name)(x, data.draw(st.sampled_from(values))))
        elif name == "transpose":
            values.append(b.transpose(x, permutation=[1, 0]))
        elif name == "softmax":
            values.append(b.softmax(x, axis=1))
        elif name == "reduce":
            values.append(x - b.reduce(x, "mean", axes=[1], keepdims=True))
        elif name == "exp":
            values.append(b.exp(b.neg(b.mul(x, x))))
        else:
            values.append(getattr(b, name)(x))
    for value in values[-data.draw(st.integers(1, 3)) :]:
        b.output(value)
    after, _ = transformed(b.module(), "dce,graph-fuse-ops")
    after.verify()
    x, y = floats(3, 3), floats(3, 3)
    # The same operators in the same order: the same bits.
    same(after.run_reference(x, y), b.module().run_reference(x, y))
    anchors = {"graph.matmul", "graph.softmax", "graph.reduce"}
    for function in after.op.ops:
        assert isinstance(function, func.FuncOp)
        names = [op.name for op in function.body.block.ops]
        if "graph.primitive" in function.attributes:
            found = [n for n in names if n in anchors]
            # Several reductions visit the rows of one loop; nothing else is computed again.
            assert len(found) <= 1 or "graph.matmul" not in found
