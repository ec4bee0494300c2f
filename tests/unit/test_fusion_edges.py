"""Each edge between two kernels has a reason why they are two."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from xdsl.dialects import func

import stepwell as sw
from stepwell.core.context import CompilerContext
from stepwell.core.registry import make_context
from stepwell.frontends import gnn
from stepwell.passes.graph.fuse_ops import GraphFuseOpsPass


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


def perceptron() -> sw.Module:
    b = sw.Builder("main")
    h = b.relu(b.dense(b.input("x", ("n", 40)), ones(48, 40)))
    b.output(b.dense(b.softmax(h), ones(10, 48)))
    return b.module()


def branches() -> sw.Module:
    b = sw.Builder("main")
    x = b.input("x", (1, 4, 8, 8))
    both = b.concat([b.exp(x), b.relu(x)], axis=1)
    b.output(b.pool(both, "max", [3, 3], [1, 1]))
    y = b.pool(x, "mean", [2, 2], [2, 2])
    b.output(b.concat([b.transpose(y, [0, 1, 3, 2]), y], axis=1))
    return b.module()


def long_chain() -> sw.Module:
    b = sw.Builder("main")
    y = b.input("x", (4,))
    for _ in range(3):
        y = b.exp(b.abs(y))
    b.output(y)
    return b.module()


def attention() -> sw.Module:
    layer = gnn.GATConv(ones(8, 20), ones(1, 2, 4), ones(1, 2, 4))
    model = gnn.Sequential(layer, gnn.ReLU(), gnn.GCNConv(ones(8, 4)))
    return model.to_module(gnn.GraphSpec(), sw.TensorSpec((None, 20)))


def fused(module: sw.Module, max_ops: int = 0) -> tuple[sw.Module, CompilerContext]:
    copy = module.clone()
    ctx = make_context(copy.weights)
    assert isinstance(ctx, CompilerContext)
    GraphFuseOpsPass(max_ops=max_ops).apply(ctx, copy.op)
    return copy, ctx


def reasons(ctx: CompilerContext) -> dict[tuple[str, str], str]:
    """The name of the kernel that reads, that of the one it reads from -> why they are two."""
    found: dict[tuple[str, str], str] = {}
    for decision in ctx.decisions:
        begin, _, rest = decision.what.partition("@")
        if begin == "reads the result of ":
            assert decision.kind == "missed"
            found[decision.subject, "@" + rest.removesuffix(" from memory")] = decision.why
    return found


def calls_between(module: sw.Module) -> set[tuple[str, str]]:
    pairs: set[tuple[str, str]] = set()
    for call in module.op.walk():
        if not isinstance(call, func.CallOp):
            continue
        for operand in call.operands:
            if isinstance(operand.owner, func.CallOp):
                pairs.add((str(call.callee), str(operand.owner.callee)))
    return pairs


@pytest.mark.parametrize("model", [perceptron, branches, long_chain, attention])
@pytest.mark.parametrize("max_ops", [0, 1, 2])
def test_each_edge_between_kernels_has_a_reason(
    model: Callable[[], sw.Module], max_ops: int
) -> None:
    module, ctx = fused(model(), max_ops)
    assert set(reasons(ctx)) == calls_between(module)
    why_one = {decision.why for decision in ctx.decisions if decision.kind == "passed"}
    assert why_one.isdisjoint(reasons(ctx).values())


@pytest.mark.parametrize(
    ("model", "max_ops", "expected"),
    [
        (perceptron, 0, "only operators that read it at their own index can follow a contraction"),
        (perceptron, 0, "a contraction reads each element many times and would compute it each"),
        (branches, 0, "an element of it is read more than once"),
        (long_chain, 2, "a kernel may have at most 2 operators"),
        (attention, 0, "it is needed outside of that kernel as well"),
        (attention, 0, "no other reduction can be in the loops of a contraction"),
    ],
)
def test_reasons(model: Callable[[], sw.Module], max_ops: int, expected: str) -> None:
    assert any(why.startswith(expected) for why in reasons(fused(model(), max_ops)[1]).values())
