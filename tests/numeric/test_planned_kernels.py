"""What a plan says of a group is what its kernel does, with many dimensions of size 1."""

from __future__ import annotations

import math
from collections import Counter
from unittest import mock

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st
from xdsl.dialects.math import ExpOp
from xdsl.ir import Operation

import stepwell as sw
from stepwell.conversions.convert_graph_to_loop import ConvertGraphToLoopPass
from stepwell.core.ir.provenance import named, names
from stepwell.core.registry import make_context
from stepwell.dialects.graph.interfaces import GraphOp, tensor_type
from stepwell.dialects.graph.nests.recording import Recorder
from stepwell.dialects.graph.ops import SoftmaxOp
from stepwell.dialects.graph.plan import local_buffers
from stepwell.dialects.graph.plan.local_buffers import local_type
from stepwell.dialects.graph.plan.planner import plan_nests
from stepwell.dialects.graph.sizes.shapes import SymbolicShapes
from stepwell.dialects.loop.loops import extent_of
from stepwell.dialects.loop.ops import ForOp, KernelOp, LocalOp
from stepwell.frontends.values import Value
from stepwell.passes.graph.dce import GraphDcePass
from stepwell.passes.graph.fusion.outlining import Outliner

from ..harness import RNG, close

SIZES = st.sampled_from([1, 1, 2, 3])
STEPS = ["reduce", "softmax", "exp", "input", "value", "dense", "transpose", "axis"]


def step(b: sw.Builder, number: int, values: list[Value], kind: str, data: st.DataObject) -> Value:
    """An operator that reads one of some values, in most cases the last."""
    x = data.draw(st.sampled_from([*values, *values[-1:] * 2]))
    shape = [n or 0 for n in x.shape]
    axis = data.draw(st.integers(0, len(shape) - 1))
    match kind:
        case "reduce":
            how = data.draw(st.sampled_from(["sum", "max"]))
            return b.reduce(x, how, [axis], keepdims=len(shape) == 1 or data.draw(st.booleans()))
        case "softmax":
            return b.softmax(x, axis=axis)
        case "value":
            same = [v for v in values if v.shape == x.shape]
            return b.sub(x, data.draw(st.sampled_from(same)))
        case "input":
            sizes = [data.draw(st.sampled_from([1, n])) for n in shape]
            longer = data.draw(st.integers(0, 3 - len(shape)))
            return b.mul(x, b.input(f"x{number}", (*[1] * longer, *sizes)))
        case "dense" if len(shape) > 1:
            return b.dense(x, b.input(f"x{number}", (data.draw(SIZES), shape[-1])))
        case "transpose":
            return b.transpose(x, data.draw(st.permutations(range(len(shape)))))
        case "axis" if len(shape) < 3:
            return b.reshape(x, [*shape[:axis], 1, *shape[axis:]])
        case _:
            return b.exp(x)


@st.composite
def modules(draw: st.DrawFn) -> sw.Module:
    """A function of a few operators."""
    b, data = sw.Builder("main"), draw(st.data())
    values = [b.input("x0", tuple(draw(st.lists(SIZES, min_size=1, max_size=3))))]
    for number, kind in enumerate(draw(st.lists(st.sampled_from(STEPS), min_size=2, max_size=6))):
        values.append(step(b, number + 1, values, kind, data))
    b.output(values[-1])
    return b.module()


def runs(op: Operation) -> int:
    """How often an operation of a kernel runs."""
    around = op.parent_op()
    outside = 1 if around is None else runs(around)
    return outside * (extent_of(around) or 0) if isinstance(around, ForOp) else outside


def is_counted(op: Operation) -> bool:
    """Whether an operation is a reduction, the outermost loop of it, or expensive."""
    around = op.parent_op()
    inner = isinstance(around, ForOp) and around.is_reduction and names(around) == names(op)
    return isinstance(op, ExpOp) or (isinstance(op, ForOp) and op.is_reduction and not inner)


@given(modules(), st.sampled_from([local_buffers.LOCAL_BYTES, 8]))
def test_the_kernel_is_as_planned(module: sw.Module, local_bytes: int) -> None:
    with mock.patch.object(local_buffers, "LOCAL_BYTES", local_bytes):
        check_plan(module)


def check_plan(module: sw.Module) -> None:
    compiled = module.clone()
    GraphDcePass().apply(make_context(), compiled.op)
    ops = [op for op in compiled.main.body.block.ops if isinstance(op, GraphOp)]
    for number, op in enumerate(ops):
        op.location = named(f"n{number}")
    plan = plan_nests(ops, ops[-1].results, SymbolicShapes(compiled.main), Recorder())
    assume(plan.refusal is None)
    once = [op for op in ops if plan.repeated.isdisjoint(op.results)]
    most = {
        # Along another axis than the last, a softmax computes the powers of three elements again.
        names(op): math.prod(tensor_type(op.results[0]).get_shape())
        * (4 if isinstance(op, SoftmaxOp) else 1)
        for op in once
    }
    local = ((v, depth) for v, depth in plan.staged.items() if v is not plan.in_result)
    buffers = Counter(local_type(tensor_type(v), depth) for v, depth in local)
    Outliner(compiled.op).outline(ops, list(ops[-1].results), "group")
    ConvertGraphToLoopPass().apply(make_context(), compiled.op)

    inside = [op for one in compiled.op.ops if isinstance(one, KernelOp) for op in one.walk()]
    assert buffers <= Counter(op.result.type for op in inside if isinstance(op, LocalOp))
    for place, count in most.items():
        own = Counter[tuple[str, object]]()
        for op in inside:
            if is_counted(op) and names(op) == place:
                # A softmax computes a maximum and a sum.
                combines = op.combiners if isinstance(op, ForOp) else None
                own[op.name, combines] += runs(op)
        assert all(number <= count for number in own.values()), (place, own)
    arrays = [RNG.uniform(-1, 1, spec.shape).astype(np.float32) for spec in module.inputs]
    expected = module.run_reference(*arrays)
    # A few sums of three terms in another order.
    close(compiled.run_reference(*arrays), expected, 1e-4)
