"""Checked compilation: no alarm where nothing is wrong, and the right pass where something is."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from xdsl.context import Context
from xdsl.dialects import arith, cf, func, llvm, memref, scf, vector
from xdsl.dialects.builtin import (
    AffineMapAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    ModuleOp,
    i32,
    i64,
)
from xdsl.ir import Operation
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

import stepwell as sw
from stepwell.core.pipelines.staircase import pipeline
from stepwell.core.registry import passes
from stepwell.core.target import host
from stepwell.dialects.graph import ops as graph
from stepwell.dialects.loop import ops as loop
from stepwell.dialects.loop.attrs import Combine, CombineAttr
from stepwell.dialects.rt import ops as rt
from stepwell.dialects.upstream import ops as upstream
from stepwell.driver.compilation import Compilation
from stepwell.driver.request import Request
from stepwell.frontends import gnn


def weights(*shape: int) -> np.ndarray:
    return np.random.default_rng(shape[0]).standard_normal(shape).astype(np.float32)


def mlp() -> sw.Module:
    b = sw.Builder("main")
    x = b.input("x", ("n", 20))
    h = b.tanh(b.dense(x, weights(8, 20), bias=weights(8)))
    h = b.batch_norm(h, weights(8), weights(8), weights(8), np.abs(weights(8)))
    shifted = b.sub(b.exp(h), b.reduce(h, "max", axes=[1], keepdims=True))
    b.output(b.softmax(b.dense(shifted, weights(5, 8))))
    return b.module()


def layer() -> sw.Module:
    """One kernel, which takes little time to be interpreted at late stages."""
    b = sw.Builder("main")
    b.output(b.exp(b.tanh(b.dense(b.input("x", ("n", 5)), weights(3, 5), bias=weights(3)))))
    return b.module()


def convolution() -> sw.Module:
    b = sw.Builder("main")
    x = b.input("x", (1, 3, 7, 7))
    y = b.relu(b.conv(x, weights(8, 3, 3, 3)))
    b.output(b.add(b.pool(y, "mean", [2, 2]), b.pool(y, "max", [2, 2])))
    return b.module()


def graph_layer() -> sw.Module:
    model = gnn.Sequential(gnn.GCNConv(weights(6, 4)), gnn.ReLU())
    return model.to_module(gnn.GraphSpec(), sw.TensorSpec((None, 6)))


def graph_network() -> sw.Module:
    model = gnn.Sequential(gnn.GCNConv(weights(6, 4)), gnn.ReLU(), gnn.GCNConv(weights(4, 3)))
    return model.to_module(gnn.GraphSpec(), sw.TensorSpec((None, 6)))


CORPUS = {
    "mlp": mlp,
    "layer": layer,
    "convolution": convolution,
    "graph_layer": graph_layer,
    "graph_network": graph_network,
}


QUICK = {("layer", 0, 1), ("layer", 3, 2), ("convolution", 3, 1), ("graph_layer", 3, 2)}
"""Of the programs, levels and numbers of threads: others run with all tests."""

WAYS = [
    pytest.param(*way, marks=() if way in QUICK else pytest.mark.slow)
    for way in itertools.product(CORPUS, (0, 3), (1, 2))
]


@pytest.mark.parametrize(("name", "level", "threads"), WAYS)
def test_no_alarm(name: str, level: int, threads: int) -> None:
    exe = sw.compile(CORPUS[name](), threads=threads, opt_level=level, check=True)
    assert exe.changes[-1].pass_name == "code generation"
    assert {change.stage for change in exe.changes} >= {"kernels", "buffers", "loops", "llvm"}
    # A dozen sums of a few terms, and functions of at most 4 ulp.
    assert max(change.ulp for change in exe.changes) < 64
    for change in exe.changes:
        assert (change.how == "") == (change.elements == 0)


def test_no_alarm_where_nothing_but_errors_is_left() -> None:
    """A normalisation sums differences from the mean, which is 0 but for rounding."""
    b = sw.Builder("main")
    y = b.instance_norm(b.reshape(b.input("x", ("n", 4), "f32"), [0, 1, 4]), axis=1)
    b.output(b.dense(y, weights(1, 4)))
    sw.compile(b.module(), threads=1, check=[weights(5, 4)])


@settings(
    max_examples=settings().max_examples * 16 // 100,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(data=st.data())
def test_no_alarm_over_random_programs(data: st.DataObject, programs: Any) -> None:
    case = data.draw(programs)
    sw.compile(case.module, threads=1, check=list(case.inputs))


Op = TypeVar("Op", bound=Operation)


def first(op: ModuleOp, kind: type[Op], where: Callable[[Op], bool] = lambda op: True) -> Op:
    found = [inner for inner in op.walk() if isinstance(inner, kind) and where(inner)]
    assert found, f"no {kind.name} to break"
    return found[0]


def swap(op: Operation, one: int = 0, other: int = 1) -> None:
    operands = list(op.operands)
    operands[one], operands[other] = operands[other], operands[one]
    op.operands = operands


def mapped(op: Operation, name: str, change: Callable[[AffineExpr], AffineExpr]) -> None:
    """Change the last result of an affine map."""
    attr = op.properties[name]
    assert isinstance(attr, AffineMapAttr)
    *others, last = attr.data.results
    results = (*others, change(last))
    op.properties[name] = AffineMapAttr(
        AffineMap(attr.data.num_dims, attr.data.num_symbols, results)
    )


def number(op: Operation, value: float) -> None:
    """Give a constant another value."""
    old = op.properties["value"]
    if isinstance(old, DenseIntOrFPElementsAttr):
        elements = [value + 0 * x for x in old.get_values()]
        op.properties["value"] = DenseIntOrFPElementsAttr.from_list(old.type, elements)
    elif isinstance(old, FloatAttr):
        op.properties["value"] = FloatAttr(value, old.type)
    else:
        assert isinstance(old, IntegerAttr)
        op.properties["value"] = IntegerAttr(int(value), old.type)


def replaced(op: Operation, kind: type[Operation]) -> None:
    """Put another operation with the same operands in its place."""
    new = kind.create(
        operands=op.operands,
        result_types=[result.type for result in op.results],
        properties=op.properties,
    )
    parent = op.parent
    assert parent is not None
    parent.insert_op_before(new, op)
    for old, result in zip(op.results, new.results, strict=True):
        old.replace_all_uses_with(result)
    op.detach()
    op.erase()


def is_index(op: Operation) -> bool:
    return isinstance(op.results[0].type, IndexType)


def is_float(op: Operation) -> bool:
    return "f32" in str(op.results[0].type)


def in_kernel(op: Operation) -> bool:
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, func.FuncOp | llvm.FuncOp | loop.KernelOp):
        parent = parent.parent_op()
    return parent is not None and "fused" in str(parent.properties["sym_name"])


def wrong_constant(op: ModuleOp) -> None:
    folded = first(op, graph.ConstantOp, lambda c: isinstance(c.value, DenseIntOrFPElementsAttr))
    number(folded, 3.0)


def swapped_subtraction(op: ModuleOp) -> None:
    swap(first(op, graph.SubOp))


def dropped_relu(op: ModuleOp) -> None:
    relu = first(op, graph.ReluOp)
    relu.results[0].replace_all_uses_with(relu.operands[0])


def wrong_axis(op: ModuleOp) -> None:
    pool = first(op, graph.PoolOp, lambda pool: "max" in str(pool.properties["kind"]))
    mean = first(op, graph.PoolOp, lambda pool: "mean" in str(pool.properties["kind"]))
    pool.properties["kind"] = mean.properties["kind"]


def wrong_value_merged(op: ModuleOp) -> None:
    tanh, exp = first(op, graph.TanhOp), first(op, graph.ExpOp)
    exp.results[0].replace_all_uses_with(tanh.results[0])


def swapped_call(op: ModuleOp) -> None:
    call = first(op, func.CallOp, lambda c: len({o.type for o in c.operands}) < len(c.operands))
    swap(call, *same_types(call.operands))


def same_types(values: Any) -> tuple[int, int]:
    """Two places with values of one type."""
    types = [value.type for value in values]
    for one, kind in enumerate(types):
        for other in range(one + 1, len(types)):
            if types[other] == kind and values[one] is not values[other]:
                return one, other
    raise AssertionError("no two values of one type")


def short_loop(op: ModuleOp) -> None:
    mapped(first(op, loop.ForOp, lambda f: f.is_plain), "bound", lambda bound: bound - 1)


def short_reduction(op: ModuleOp) -> None:
    mapped(first(op, loop.ForOp, lambda f: f.is_reduction), "bound", lambda bound: bound - 1)


def wrong_place(op: ModuleOp) -> None:
    load = first(op, loop.LoadOp, lambda load: len(load.map.data.results) > 1)
    mapped(load, "map", lambda place: place * 0)


def stale_accumulator(op: ModuleOp) -> None:
    loops = [inner for inner in op.walk() if isinstance(inner, loop.ForOp)]
    inits = [sum.inits[0].owner for sum in loops if sum.combines == [Combine.ADD]]
    zero = next(init for init in inits if isinstance(init, arith.ConstantOp))
    number(zero, 1.0)


def wrong_fold(op: ModuleOp) -> None:
    fold = first(op, loop.FoldOp, lambda fold: fold.combine.data == Combine.ADD)
    fold.combine = CombineAttr(Combine.MAX)


def dropped_mask(op: ModuleOp) -> None:
    store = first(op, loop.StoreOp, lambda store: len(store.limits) > 0)
    one = arith.ConstantOp(IntegerAttr(1, IndexType()))
    assert store.parent is not None
    store.parent.insert_op_before(one, store)
    store.operands[list(store.operands).index(store.limits[0])] = one.result


def off_by_one_tail(op: ModuleOp) -> None:
    tail = [f for f in op.walk() if isinstance(f, loop.ForOp) and "mod" in str(f.bound)]
    assert tail, "no tail to break"
    mapped(tail[0], "bound", lambda bound: bound * 0)


def overlapping_buffers(op: ModuleOp) -> None:
    views = [v for v in op.walk() if isinstance(v, memref.ViewOp)]
    assert len(views) > 1, "no two buffers"
    for view in views:
        view.operands[1] = views[0].byte_shift


def swapped_arguments(op: ModuleOp) -> None:
    call = first(op, rt.CallOp, lambda call: has_same_types(call.arguments))
    swap(call, *same_types(call.arguments))


def has_same_types(values: Any) -> bool:
    return len({value.type for value in values}) < len(values)


def wrong_packing(op: ModuleOp) -> None:
    constant = first(op, rt.ConstantOp, lambda constant: "packing" in constant.properties)
    mapped(constant, "packing", lambda place: place * 0)


def short_scf_loop(op: ModuleOp) -> None:
    inner = first(op, scf.ForOp, lambda f: isinstance(f.ub.owner, arith.ConstantOp))
    assert isinstance(inner.ub.owner, arith.ConstantOp)
    one = arith.ConstantOp(IntegerAttr(1, IndexType()))
    assert inner.parent is not None
    inner.parent.insert_op_before(one, inner)
    inner.operands[1] = one.result


def added_instead(op: ModuleOp) -> None:
    replaced(first(op, arith.MulfOp, in_kernel), arith.AddfOp)


def wrong_lanes(op: ModuleOp) -> None:
    shuffle = first(op, vector.ShuffleOp, lambda s: len(set(s.mask.get_values())) > 1)
    lane = shuffle.mask.get_values()[0]
    shuffle.mask = DenseArrayBase.from_list(i64, [lane] * len(shuffle.mask.get_values()))


def fewer_tiles(op: ModuleOp) -> None:
    call = first(op, rt.CallTilesOp)
    zero = arith.ConstantOp(IntegerAttr(0, IndexType()))
    assert call.parent is not None
    call.parent.insert_op_before(zero, call)
    call.operands[0] = zero.result


def wrong_coefficient(op: ModuleOp) -> None:
    constants = [
        c
        for c in op.walk()
        if isinstance(c, arith.ConstantOp) and "0.166" in str(c.properties["value"])
    ]
    assert constants, "no polynomial to break"
    for constant in constants:
        number(constant, 0.17)


def wrong_branch(op: ModuleOp) -> None:
    """A loop goes on while i <= n."""
    for branch in op.walk():
        if isinstance(branch, cf.ConditionalBranchOp) and in_kernel(branch):
            condition = branch.cond.owner
            if isinstance(condition, arith.CmpiOp):
                condition.properties["predicate"] = IntegerAttr(3, 64)


def wrong_slot(op: ModuleOp) -> None:
    words = [
        g
        for g in op.walk()
        if isinstance(g, upstream.GEPOp) and g.rawConstantIndices.get_values() == (1,)
    ]
    assert words, "no word to break"
    for word in words:
        word.rawConstantIndices = DenseArrayBase.from_list(i32, [2])


def wrong_product(op: ModuleOp) -> None:
    # All of them: not every tile of a kernel runs on inputs that are made up.
    products = [inner for inner in op.walk() if isinstance(inner, llvm.FMulOp) and in_kernel(inner)]
    assert products, "no product to break"
    for product in products:
        replaced(product, llvm.FAddOp)


def wrong_sum(op: ModuleOp) -> None:
    sums = [inner for inner in op.walk() if isinstance(inner, llvm.FMAOp) and in_kernel(inner)]
    assert sums, "no sum to break"
    for fma in sums:
        fma.operands[2] = fma.operands[0]


PLANTED: list[tuple[str, Callable[[], sw.Module], Callable[[ModuleOp], None]]] = [
    ("graph-open-composites", mlp, wrong_constant),
    ("graph-canonicalize-ops", mlp, swapped_subtraction),
    ("graph-fold-constant", mlp, swapped_subtraction),
    ("graph-simplify", convolution, dropped_relu),
    ("graph-alter-op-layout", convolution, wrong_axis),
    ("graph-cse", mlp, wrong_value_merged),
    ("graph-order-contractions", graph_network, dropped_relu),
    ("graph-fuse-ops", mlp, swapped_subtraction),
    ("convert-graph-to-loop", mlp, short_loop),
    ("convert-graph-to-loop", mlp, short_reduction),
    ("convert-graph-to-loop", mlp, wrong_place),
    ("convert-graph-to-loop", mlp, stale_accumulator),
    ("loop-schedule", mlp, wrong_fold),
    ("loop-schedule", mlp, dropped_mask),
    ("loop-schedule", mlp, off_by_one_tail),
    ("loop-schedule", convolution, short_reduction),
    ("convert-graph-to-rt", graph_network, overlapping_buffers),
    ("convert-graph-to-rt", mlp, wrong_packing),
    ("convert-loop-to-scf", mlp, short_scf_loop),
    ("convert-loop-to-scf", mlp, added_instead),
    ("convert-loop-to-scf", mlp, wrong_lanes),
    ("rt-outline-tiles", layer, fewer_tiles),
    ("convert-math-to-arith", layer, wrong_coefficient),
    ("convert-scf-to-cf", layer, wrong_branch),
    ("convert-rt-to-llvm", mlp, wrong_slot),
    ("convert-rt-to-llvm", layer, wrong_slot),
    ("convert-to-llvm", mlp, wrong_product),
    ("convert-to-llvm", layer, wrong_product),
    ("convert-to-llvm", layer, wrong_sum),
]


SIMILAR = (
    *(wrong_place, stale_accumulator, wrong_fold, off_by_one_tail),
    *(short_scf_loop, added_instead, wrong_lanes, wrong_sum),
)
"""Mistakes of late passes, each beside another one of the same pass: programs take long to be
interpreted at these stages. `test_where_a_difference_shows` has that of `convert-loop-to-scf`."""


def is_slow(
    pass_name: str, program: Callable[[], sw.Module], mistake: Callable[[ModuleOp], None]
) -> bool:
    return mistake in SIMILAR or (program is mlp and pass_name in LAST)


LAST = ("convert-rt-to-llvm", "convert-to-llvm")
"""Passes whose mistakes are also found in several kernels, of which one takes long."""


@pytest.mark.parametrize(
    ("pass_name", "program", "mistake"),
    [
        pytest.param(
            *planted,
            id=f"{planted[0]}:{planted[2].__name__} in {planted[1].__name__}",
            marks=pytest.mark.slow if is_slow(*planted) else (),
        )
        for planted in PLANTED
    ],
)
def test_planted_errors_are_blamed_on_their_pass(
    pass_name: str,
    program: Callable[[], sw.Module],
    mistake: Callable[[ModuleOp], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kind = passes()[pass_name]()
    apply, planted = kind.apply, False

    def wrong(self: ModulePass, ctx: Context, op: ModuleOp) -> None:
        nonlocal planted
        apply(self, ctx, op)
        if not planted:
            planted = True
            mistake(op)
            op.verify()

    monkeypatch.setattr(kind, "apply", wrong)
    with pytest.raises(sw.MiscompilationError) as caught:
        sw.compile(program(), threads=1, check=True)
    assert caught.value.pass_name == pass_name
    assert str(caught.value).startswith(f"{pass_name}: ")
    assert "\n" not in str(caught.value)


def test_conditions_are_compared_though_buffers_hold_them_in_bytes() -> None:
    b = sw.Builder("main")
    n, x = b.input("n", (), "i64"), b.input("x", (3,))
    b.output(b.cond(b.less(n, 4), lambda: x * 2.0, lambda: b.exp(x)))
    sw.compile(b.module(), threads=1, check=True)


def test_inputs_are_made_up_or_have_to_be_given() -> None:
    b = sw.Builder("main")
    b.output(b.relu(b.input("x", ("n", 4))))
    with pytest.raises(sw.CompileError, match="max_ulp without check, expected check=True"):
        sw.compile(b.module(), max_ulp=1)
    with pytest.raises(sw.CompileError, match="wrong max_ulp, expected 0 or more, got nan"):
        sw.compile(b.module(), check=True, max_ulp=float("nan"))
    with pytest.raises(sw.InputError, match='input "x": wrong dtype'):
        sw.compile(b.module(), check=[np.ones((2, 4))])
    with pytest.raises(sw.InputError, match="wrong number of inputs"):
        sw.compile(b.module(), check=[])


def test_a_limit_of_no_change() -> None:
    b = sw.Builder("main")
    b.output(b.reduce(b.exp(b.input("x", (40, 64))), "sum", axes=[1]))
    with pytest.raises(sw.MiscompilationError, match=r"changes result 0 by .* ulp"):
        sw.compile(b.module(), threads=1, check=True, max_ulp=0)
    x = np.zeros((40, 64), np.float32)
    sw.compile(b.module(), threads=1, check=[x], max_ulp=0)


LATER = [pytest.param(stage, marks=pytest.mark.slow) for stage in ("fused", "scheduled", "buffers")]


@pytest.mark.parametrize("stage", ["loops", *LATER])
def test_a_program_is_checked_from_where_it_is(stage: str) -> None:
    compilation = Compilation(Request(layer(), host(), pipeline=pipeline()))
    checked = sw.compile(compilation.at(stage), threads=1, check=True)
    assert checked.changes[-1].pass_name == "code generation"


def test_without_a_check_there_are_no_changes() -> None:
    assert sw.compile(mlp(), threads=1, opt_level=0).changes == ()


def test_where_a_difference_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = passes()["convert-loop-to-scf"]()
    apply = kind.apply

    def wrong(self: ModulePass, ctx: Context, op: ModuleOp) -> None:
        apply(self, ctx, op)
        wrong_lanes(op)

    monkeypatch.setattr(kind, "apply", wrong)
    with pytest.raises(sw.MiscompilationError) as caught:
        sw.compile(mlp(), threads=1, check=True)
    error = caught.value
    assert error.pass_name == "convert-loop-to-scf"
    assert (error.stage, error.function) == ("loops", "fused_dense_tanh_batch_norm_exp_reduce_sub")
    assert error.ulp > 1e4
    assert {node.partition(":")[0] for node in error.nodes} == {"test_checking.py"}
    assert error.inputs[0].shape[1] == 20


def test_each_of_several_results_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = passes()["graph-cse"]()
    apply = kind.apply

    def wrong(self: ModulePass, ctx: Context, op: ModuleOp) -> None:
        apply(self, ctx, op)
        for add in [inner for inner in op.walk() if isinstance(inner, graph.AddOp)]:
            Rewriter.replace_op(add, graph.SubOp(*add.operands))

    monkeypatch.setattr(kind, "apply", wrong)
    b = sw.Builder("main")
    x, z = b.input("x", (3, 4)), b.input("z", (3, 4))
    b.output(b.tanh(x))
    b.output(x + z)
    with pytest.raises(sw.MiscompilationError, match="graph-cse: it changes result 1 by"):
        sw.compile(b.module(), threads=1, check=True)


HALF = """
func.func @main(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %y = graph.call_dps @half(%x) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  func.return %y : tensor<8x4xf32>
}
loop.kernel @half(%x: memref<8x4xf32>) -> (%y: memref<8x4xf32>) {
  %found = loop.local : memref<8xi32>
  %one = arith.constant 1 : i32
  loop.for "k" %k to 4 {
    loop.store %one, %found (d0) -> (d0)(%k) : i32, memref<8xi32>
  }
  loop.for "i" %i to 8 tiles {
    loop.for "j" %j to 4 {
      %n = loop.load %found (d0) -> (d0)(%j) : memref<8xi32>, i32
      %f = arith.sitofp %n : i32 to f32
      %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %j) : memref<8x4xf32>, f32
      %s = arith.addf %v, %f : f32
      loop.store %s, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<8x4xf32>
    }
  }
}
"""
"""One half of the local buffer that the tiles are given is never written, or read."""


def test_elements_that_are_undefined_are_not_compared() -> None:
    exe = sw.compile(sw.from_mlir(HALF), threads=2, opt_level=0, check=True)
    assert all(change.ulp == 0 for change in exe.changes)
