"""Each edge between two kernels has a reason why they are two."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import func
from xdsl.ir import SSAValue

import stepwell as sw
from stepwell.core.ir.context import CompilerContext
from stepwell.core.registry import make_context
from stepwell.dialects.graph.interfaces import GraphOp
from stepwell.dialects.graph.plan.nest_plan import NestPlan
from stepwell.dialects.graph.plan.planner import plan_nests
from stepwell.dialects.graph.plan.uses import Uses
from stepwell.frontends import gnn
from stepwell.passes.graph.fuse_ops import GraphFuseOpsPass
from stepwell.passes.graph.fusion import grouping


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


def perceptron() -> sw.Module:
    b = sw.Builder("main")
    h = b.relu(b.dense(b.input("x", ("n", 40)), ones(72, 40)))
    b.output(b.dense(b.softmax(h), ones(10, 72)))
    return b.module()


def products() -> sw.Module:
    """Products whose results are read in other ways than row by row."""
    b = sw.Builder("main")
    x = b.input("x", ("n", 40))
    b.output(b.transpose(b.dense(x, ones(7, 40)), [1, 0]))
    b.output(b.softmax(b.dense(x, ones(8, 40)), axis=0))
    b.output(b.softmax(b.dense(b.input("few", (5, 40)), ones(8, 40)), axis=0))
    b.output(b.softmax(b.dense(x, b.input("w", (9, 40)))))
    scores = b.softmax(b.add(b.dense(x, ones(10, 40)), b.dense(x, b.neg(ones(10, 40)))))
    b.output(scores)
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


def sorted_columns() -> sw.Module:
    b = sw.Builder("main")
    values, places = b.sort(b.input("x", (9, 4)), axis=0)
    doubled, floats = values * 2, b.cast(places, "f32")
    b.output(doubled + floats)
    b.output(floats - b.reduce(doubled, "max", [0], True))
    return b.module()


def wide_product() -> sw.Module:
    csr = "#sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed) }>"
    return sw.from_mlir(
        """func.func @main(%a: tensor<?x?xf32, #csr>, %x: tensor<?x16xf32>, %w: tensor<16x70xf32>)
            -> tensor<?x70xf32> {
          %h = graph.spmm %a, %x : (tensor<?x?xf32, #csr>, tensor<?x16xf32>) -> tensor<?x16xf32>
          %y = graph.matmul %h, %w : (tensor<?x16xf32>, tensor<16x70xf32>) -> tensor<?x70xf32>
          func.return %y : tensor<?x70xf32>
        }""".replace("#csr", csr)
    )


def column_shares() -> sw.Module:
    b = sw.Builder("main")
    x = b.input("x", (64, 16384))
    b.output(b.div(x, b.reduce(x, "sum", [0])))
    return b.module()


def sums_for_all_rows() -> sw.Module:
    b = sw.Builder("main")
    b.output(b.sub(b.input("x", (3, 4)), b.reduce(b.input("z", (4, 6)), "sum", [1])))
    return b.module()


def diamonds() -> sw.Module:
    b = sw.Builder("main")
    y = b.reduce(b.input("x", (4, 5)), "sum", [1])
    for _ in range(49):
        y = b.mul(y, b.sigmoid(y))
    b.output(y)
    return b.module()


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


@pytest.mark.parametrize(
    "model", [perceptron, products, branches, long_chain, attention, wide_product, column_shares]
)
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
        (perceptron, 0, "only rows of 2 to 64 columns are read again beside their product"),
        (products, 0, "only operators that read it at their own index can follow a contraction"),
        (products, 0, "the kernel that reads it does not read its rows one after the other"),
        (products, 0, 'a reduction would be computed again in each iteration of loop "i"'),
        (products, 0, "the contraction has no register tile of rows and columns"),
        (products, 0, "a kernel has at most one dense product"),
        (perceptron, 0, "a contraction reads each element many times and would compute it each"),
        (branches, 0, "it would be computed more than once"),
        (long_chain, 2, "a kernel may have at most 2 operators"),
        (sorted_columns, 0, "it is needed outside of that kernel as well"),
        (wide_product, 0, "the product that reads it may have more than 64 columns"),
        (column_shares, 0, "the inner loop of the kernel would no longer run along memory"),
        (sums_for_all_rows, 0, "it would need a local buffer for more than a row"),
        (attention, 0, "no other reduction can be in the loops of a contraction"),
    ],
)
def test_reasons(model: Callable[[], sw.Module], max_ops: int, expected: str) -> None:
    assert any(why.startswith(expected) for why in reasons(fused(model(), max_ops)[1]).values())


def test_one_operator_is_a_kernel_for_the_reasons_of_its_edges() -> None:
    _, ctx = fused(long_chain(), max_ops=1)
    alone = {d.why for d in ctx.decisions if d.what.startswith("one kernel for")}
    assert alone == {"a kernel may have at most 1 operator"}


def test_one_operator_may_have_no_neighbours() -> None:
    b = sw.Builder("main")
    b.output(b.exp(b.input("x", (4,))))
    (decision,) = fused(b.module())[1].decisions
    assert decision.why == "it has no neighbours that could be in it"


def test_few_plans_are_made_of_a_long_chain(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []

    def counted(ops: Sequence[GraphOp], *rest: Any) -> NestPlan:
        made.append(len(ops))
        return plan_nests(ops, *rest)

    monkeypatch.setattr(grouping, "plan_nests", counted)
    module, _ = fused(diamonds())
    assert str(module.op).count("graph.primitive") == 1
    assert sum(made) <= 100


@pytest.mark.parametrize("count", [5, 20])
def test_siblings_are_found_without_a_scan(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    csr = "#sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed) }>"
    kind, row = f"tensor<9x9xf32, {csr}>", "tensor<9xf32>"
    lines = [
        f"%d{n} = graph.degree %a{n} self_loops = false power = 1.0 : ({kind}) -> {row}"
        for n in range(count)
    ]
    arguments = ", ".join(f"%a{n}: {kind}" for n in range(count))
    results = ", ".join(f"%d{n}" for n in range(count))
    kinds = ", ".join([row] * count)
    module = sw.from_mlir(
        f"func.func @main({arguments}) -> ({kinds}) {{\n"
        + "\n".join(lines)
        + f"\nfunc.return {results} : {kinds}\n}}"
    )
    asked: list[GraphOp] = []
    numbers_of = Uses.walked

    def walked(self: Uses, op: GraphOp) -> set[SSAValue]:
        asked.append(op)
        return numbers_of(self, op)

    monkeypatch.setattr(Uses, "walked", walked)
    fused(module)
    assert len(asked) <= 2 * count
