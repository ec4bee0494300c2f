"""What passes must not do, on random programs and on programs that invite them to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from xdsl.dialects import func
from xdsl.dialects.builtin import TensorType, f16
from xdsl.ir import Operation, SSAValue

import stepwell as sw
from stepwell.dialects.graph import ops as graph
from stepwell.dialects.graph.interfaces import FusionKind, GraphOp
from stepwell.dialects.graph.ops.sparse.products import RowOp
from stepwell.driver.compilation import Compilation
from stepwell.driver.request import Request

from ...harness import RNG, floats

SETTINGS = settings(
    max_examples=settings().max_examples * 60 // 100,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
X, COLUMN = (floats(*s) for s in ((6, 4), (6, 1)))
A = sp.csr_array(sp.random(6, 6, density=0.5, dtype=np.float32, random_state=0))


def computed(module: sw.Module) -> Counter[str]:
    """How often each operator is computed by a call of the program."""
    functions = {f.sym_name.data: f for f in module.op.ops if isinstance(f, func.FuncOp)}
    found: Counter[str] = Counter()
    for op in module.main.body.block.ops:
        if isinstance(op, func.CallOp):
            body = functions[op.callee.string_value()].body.block
            found.update(inner.name for inner in body.ops if isinstance(inner, GraphOp))
        elif isinstance(op, GraphOp):
            found[op.name] += 1
    return Counter({n: c for n, c in found.items() if n != "graph.constant"})


@pytest.mark.parametrize("kind", ["", "dense", "convolution", "quantized", "attention"])
@SETTINGS
@given(data=st.data())
def test_fusion_computes_every_operator_once_and_one_product_in_a_kernel(
    kind: str,
    data: st.DataObject,
    programs: st.SearchStrategy[Any],
    programs_with: Callable[[str], st.SearchStrategy[Any]],
    transformed: Callable,
) -> None:
    case = data.draw(programs_with(kind) if kind else programs)
    passes = "graph-decompose-sparse,graph-dce"
    before, _ = transformed(case.module, passes)
    after, _ = transformed(before, "graph-fuse-ops")
    assert computed(after) == computed(before)
    for function in after.op.ops:
        if isinstance(function, func.FuncOp) and "graph.primitive" in function.attributes:
            ops = [op for op in function.body.block.ops if isinstance(op, GraphOp)]
            products = [op for op in ops if op.fusion == FusionKind.CONTRACTION]
            rows = [op for op in ops if isinstance(op, RowOp | graph.SpmmOp | graph.AggregateOp)]
            assert len(products) <= 1 or rows, f"two products in a kernel:\n{function}"


def written_twice(x: SSAValue) -> list[Operation]:
    """The layouts from a value on: transposes, with what only reshapes between them."""
    found: list[Operation] = []
    while isinstance(x.owner, graph.TransposeOp | graph.ReshapeOp):
        found.append(x.owner)
        x = x.owner.x
    return found


@pytest.mark.parametrize("target", ["x86-64-v3", "x86-64-v4"])
@settings(SETTINGS, max_examples=settings().max_examples * 25 // 100)
@given(data=st.data())
def test_no_pair_of_layouts_cancels(
    target: str, data: st.DataObject, transformed: Callable
) -> None:
    """Chains of convolutions, with what is between them and beside them."""
    draw = data.draw
    b = sw.Builder()
    values = [b.input("x", (2, draw(st.sampled_from([3, 16, 32])), 10, 10))]
    for _ in range(draw(st.integers(2, 6))):
        x = draw(st.sampled_from(values))
        channels = x.shape[1]
        assert channels is not None
        width = draw(st.sampled_from([16, 32, 64]))
        kind = draw(st.sampled_from(["conv", "conv", "relu", "pool", "add", "concat", "scale"]))
        same = [v for v in values if v.shape == x.shape]
        if kind == "conv":
            w = np.full((width, channels, 3, 3), 0.1, np.float32)
            values.append(b.conv(b.pad(x, [0, 0, 1, 1], [0, 0, 1, 1]), w))
        elif kind == "pool":
            values.append(b.pool(x, "max", [3, 3], strides=[1, 1]))
        elif kind == "add":
            values.append(b.add(x, draw(st.sampled_from(same))))
        elif kind == "concat":
            values.append(b.concat([x, draw(st.sampled_from(same))], axis=1))
        elif kind == "scale":
            values.append(b.mul(x, np.full((channels, 1, 1), 0.5, np.float32)))
        else:
            values.append(b.relu(x))
    b.output(values[-1])
    passes = f"graph-dce,graph-alter-op-layout{{target={target}}}"
    after, _ = transformed(b.module(), passes)
    for op in after.main.walk():
        if isinstance(op, graph.TransposeOp):
            chain = written_twice(op.result)
            kind = chain[-1].operands[0].type
            assert isinstance(kind, TensorType)
            array = np.arange(np.prod(kind.get_shape())).reshape(kind.get_shape())
            for step in reversed(chain):
                assert isinstance(step, GraphOp)
                (array,) = step.reference(array)
            order = np.ravel(np.asarray(array))
            pair = sum(isinstance(step, graph.TransposeOp) for step in chain) > 1
            cancels = pair and np.array_equal(order, np.arange(order.size))
            assert not cancels, f"layouts that cancel:\n{after}"


def test_kernels_read_the_narrow_type() -> None:
    b = sw.Builder()
    wide = b.cast(b.input("x", ("n", 8), "f16"), "f32")
    b.output(b.exp(wide))
    b.output(b.reduce(b.tanh(wide), "sum", [1]))
    module = b.module()
    exe = sw.compile(module, threads=1)
    fused = sw.from_mlir(exe.ir("fused"))
    for function in fused.op.ops:
        if isinstance(function, func.FuncOp) and "graph.primitive" in function.attributes:
            kinds = [kind.element_type for kind in function.function_type.inputs]  # type: ignore[attr-defined]
            assert kinds == [f16]
    x = RNG.standard_normal((5, 8)).astype(np.float16)
    for have, want in zip(exe(x), module.run_reference(x), strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-5)


def test_a_narrowing_cast_stays_one() -> None:
    b = sw.Builder()
    narrow = b.cast(b.input("x", ("n", 8)), "f16")
    b.output(b.exp(narrow))
    b.output(b.tanh(narrow))
    module = b.module()
    text = Compilation.of(Request(module, threads=1)).text("optimized")
    assert text.count("graph.cast") == 1


SPARSE: dict[str, Callable[[sw.Builder, Any], Any]] = {
    "a product with two users": lambda b, x: (y := b.spmm(b.constant(A), x)) * COLUMN + y,
    "a matrix with two users": lambda b, x: (
        b.spmm(a := b.constant(A), x) * COLUMN + b.spmm(a, b.relu(x))
    ),
    "an operand with two users": lambda b, x: b.spmm(b.constant(A), s := x * COLUMN) + s,
    "an infinite factor": lambda b, x: b.spmm(b.constant(A), x) * (COLUMN * np.float32(np.inf)),
    "a run-time factor": lambda b, x: b.spmm(b.constant(A), x) * b.slice(x, [0, 0], [6, 1], [1, 1]),
}


@pytest.mark.parametrize("name", SPARSE)
def test_scales_beside_sparse_products_that_stay(name: str, assert_same: Callable) -> None:
    b = sw.Builder()
    b.output(SPARSE[name](b, b.input("x", (6, 4))))
    module = b.module()
    with np.errstate(invalid="ignore"):
        after = assert_same(module, "graph-fold-scale-axis", X, tolerance=0)
    assert computed(after) == computed(module)
