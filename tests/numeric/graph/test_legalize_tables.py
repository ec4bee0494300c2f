"""`graph-legalize` on random programs with random tables of a user."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import stepwell as sw
from stepwell.core.pipelines.staircase import run_passes
from stepwell.core.registry import make_context
from stepwell.dialects.graph import ops as graph
from stepwell.dialects.graph.interfaces import element_type

from ...harness import close


@sw.kernel
def dense(k, x, w, bias, y):
    if len(x.shape) != 2:
        return NotImplemented
    with k.loops(*y.shape) as (i, j):
        total = k.sum(x.shape[1], lambda t: x[i, t] * w[j, t])
        y[i, j] = total if bias is None else total + bias[j]
    return None


@sw.kernel
def tanh(k, x, y):
    with k.loops(*y.shape) as index:
        y[index] = k.tanh(x[index])


@sw.kernel
def spmm(k, a, x, y):
    with k.loops(*y.shape) as (i, j):
        y[i, j] = k.sum(a.row(i), lambda column, value: value * x[column, j])


def add_negative(op: graph.SubOp, target: sw.Target) -> graph.AddOp:
    # a - b == a + -b
    return graph.AddOp(op.lhs, graph.NegOp(op.rhs))


def scale(op: graph.NegOp, target: sw.Target) -> graph.MulOp | None:
    # -x == x * -1  for floats
    kind = element_type(op.x)
    if str(kind) != "f32":
        return None
    return graph.MulOp(op.x, graph.ConstantOp.literal(np.array(-1, np.float32)))


def choose(op: graph.ReluOp, target: sw.Target) -> graph.MaxOp | None:
    # relu(x) == max(x, 0)
    if str(element_type(op.x)) != "f32":
        return None
    return graph.MaxOp(op.x, graph.ConstantOp.literal(np.array(0, np.float32)))


def maximum(op: graph.MaxOp, target: sw.Target) -> graph.WhereOp:
    # max(a, b) == b < a ? a : b  where none is NaN
    return graph.WhereOp(graph.LessOp(op.rhs, op.lhs), op.lhs, op.rhs)


def divide(op: graph.DivOp, target: sw.Target) -> graph.MulOp | None:
    # a / sqrt(b) == a * rsqrt(b)
    root = op.rhs.owner
    if not isinstance(root, graph.SqrtOp):
        return None
    return graph.MulOp(op.lhs, graph.RsqrtOp(root.x))


def leave(op: Any, target: sw.Target) -> None:
    return None


RULES: dict[str, list[Any]] = {
    "graph.dense": [dense, leave],
    "graph.tanh": [tanh],
    "graph.spmm": [spmm],
    "graph.sub": [add_negative],
    "graph.neg": [scale],
    "graph.relu": [choose],
    "graph.max": [maximum, leave],
    "graph.div": [divide],
}


@st.composite
def tables(draw: st.DrawFn) -> Mapping[str, Any]:
    return {n: draw(st.sampled_from(rules)) for n, rules in RULES.items() if draw(st.booleans())}


def legalized(module: sw.Module, table: Mapping[str, Any]) -> sw.Module:
    after = module.clone()
    ctx = make_context(after.weights)
    ctx.legalize = table
    run_passes(ctx, after.op, "graph-legalize")
    after.verify()
    return after


@settings(
    max_examples=settings().max_examples * 80 // 100,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(data=st.data())
def test_a_table_is_used_up(data: st.DataObject, programs: st.SearchStrategy[Any]) -> None:
    """A second run finds nothing to do, and what is computed stays."""
    case, table = data.draw(programs), data.draw(tables())
    once = legalized(case.module, table)
    assert str(legalized(once, table)) == str(once)
    left = {op.name for op in once.op.walk()} & table.keys()
    assert not left & {name for name in ("graph.tanh", "graph.spmm", "graph.sub") if name in table}
    want, have = (m.run_reference(*case.inputs) for m in (case.module, once))
    close(have, want, case.tolerance, scaled=True)
