"""Arrays that are bound to arguments of symbolic size fix these sizes in all of the program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from xdsl.dialects import func
from xdsl.dialects.builtin import TensorType

import stepwell as sw
from stepwell.core.pipelines.staircase import pipeline, run_passes
from stepwell.core.registry import make_context
from stepwell.dialects.sparse_tensor import is_sparse
from stepwell.frontends import gnn

from ...harness import close, floats, same

A = sp.csr_array(sp.random(5, 5, density=0.4, dtype=np.float32, random_state=0))
ARRAYS: dict[str, Any] = {
    "a": A,
    "x": floats(5, 2),
    "w": floats(3, 2),
    "e": floats(A.nnz),
}


def program() -> sw.Module:
    """spmm(a with the values e, dense(x, w)), as it is, and its columns summed up."""
    b = sw.Builder()
    a = b.input("a", sw.SparseSpec(("n", "n"), nnz="E"))
    x, w = b.input("x", ("n", "k")), b.input("w", ("m", "k"))
    y = b.spmm(b.with_entries(a, b.input("e", ("E",))), b.dense(x, w))
    b.output(b.reshape(b.relu(y), [0, -1]), name="y")
    b.output(b.reduce(y, "sum", axes=[0]), name="s")
    return b.module()


def shapes(module: sw.Module) -> dict[str, Any]:
    return {spec.name: spec.shape for spec in (*module.inputs, *module.outputs)}


def agree(have: Any, want: Any) -> None:
    """Sums of a few products may be in another order."""
    close(have, want, 1e-4, 1e-5)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("a", {"x": (5, "k"), "w": ("m", "k"), "e": (10,), "y": (5, "m"), "s": ("m",)}),
        ("w", {"a": ("n", "n"), "x": ("n", 2), "e": ("E",), "y": ("n", 3), "s": (3,)}),
        ("x", {"a": (5, 5), "w": ("m", 2), "e": ("E",), "y": (5, "m"), "s": ("m",)}),
        ("ew", {"a": ("n", "n"), "x": ("n", 2), "y": ("n", 3), "s": (3,)}),
        ("axwe", {"y": (5, 3), "s": (3,)}),
    ],
)
@pytest.mark.parametrize("stages", [(), ("optimized",), ("optimized", "fused")])
def test_sizes_of_all_that_is_named_alike(
    names: str, expected: Any, stages: tuple[str, ...], all_tests: bool
) -> None:
    module = program()
    want = module.run_reference(*ARRAYS.values())
    for stage in stages:
        run_passes(make_context(module.weights), module.op, pipeline()[stage], stage)
    after = sw.bind_params(module, {name: ARRAYS[name] for name in names})
    after.verify()
    assert shapes(after) == expected
    left = [ARRAYS[name] for name in "axwe" if name not in names]
    agree(after.run_reference(*left), want)
    if all_tests or len(stages) == 2:
        agree(sw.compile(after, threads=1)(*left), want)


def test_no_symbol_is_left_where_all_sizes_are_known() -> None:
    module = program()
    run_passes(make_context(module.weights), module.op, "graph-decompose-sparse,graph-fuse-ops")
    after = sw.bind_params(module, {"a": A, "w": ARRAYS["w"]})
    types = [v.type for op in after.op.walk() for v in (*op.operands, *op.results)]
    assert all(t.has_static_shape() for t in types if isinstance(t, TensorType))
    assert "graph.dims" not in str(after)
    assert [f"{spec}" for spec in after.inputs] == ["x: 5x2xf32", "e: 10xf32"]


def test_the_module_that_was_stays() -> None:
    module = program()
    before = str(module)
    sw.bind_params(module, {"a": A})
    assert str(module) == before
    assert not len(module.weights)


def test_arrays_are_copied() -> None:
    module, w = program(), ARRAYS["w"].copy()
    after = sw.bind_params(module, {"w": w})
    w[:] = 0
    agree(after.run_reference(*(ARRAYS[n] for n in "axe")), module.run_reference(*ARRAYS.values()))


def test_a_graph_and_numbers_of_python() -> None:
    b = sw.Builder()
    a, x = b.input("a", sw.SparseSpec(("n", "n"))), b.input("x", ("n", 2))
    b.output(b.spmm(a, x), name="y")
    graph = gnn.Graph.from_edge_index(np.array([[0, 1, 2], [1, 2, 0]]), 3)
    after = sw.bind_params(b.module(), {"a": graph})
    assert shapes(after) == {"x": (3, 2), "y": (3, 2)}
    x = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    want = graph.to_csr().toarray() @ np.array(x, np.float32)
    agree(sw.bind_params(after, {"x": x}).run_reference(), want)


def test_sizes_that_operators_need_to_be_equal() -> None:
    """A size that is bound fixes others, and those that are computed from them."""
    b = sw.Builder()
    x, y, z = b.input("x", ("n", 4)), b.input("y", ("m", 4)), b.input("z", ("p", 4))
    both = b.concat([x, b.add(x, y)], axis=0)
    b.output(b.mul(both, z), name="r")
    module = b.module()
    after = sw.bind_params(module, {"y": np.ones((3, 4), np.float32)})
    assert shapes(after) == {"x": (3, 4), "z": (6, 4), "r": (6, 4)}
    after = sw.bind_params(module, {"z": np.ones((6, 4), np.float32)})
    assert shapes(after) == {"x": (3, 4), "y": (3, 4), "r": (6, 4)}


def test_a_size_of_one_is_not_broadcast() -> None:
    """What a symbol stands for has to agree, though a 1 in a type would fit any size."""
    b = sw.Builder()
    b.output(b.add(b.input("x", ("n", 4)), b.input("y", ("m", 4))), name="r")
    after = sw.bind_params(b.module(), {"y": np.ones((1, 4), np.float32)})
    assert shapes(after) == {"x": (1, 4), "r": (1, 4)}


def test_no_rows() -> None:
    b = sw.Builder()
    x, v = b.input("x", ("n", 3, 4)), b.input("v", ("n",))
    b.output(b.reshape(x, [0, -1]), name="flat")
    b.output(b.mul(b.reshape(x, [0, 2, -1]), b.reshape(v, [-1, 1, 1])), name="scaled")
    after = sw.bind_params(b.module(), {"v": np.zeros(0, np.float32)})
    assert shapes(after) == {"x": (0, 3, 4), "flat": (0, 12), "scaled": (0, 2, 6)}
    x = np.zeros((0, 3, 4), np.float32)
    agree(sw.compile(after, threads=1)(x), after.run_reference(x))


TWO_CALLS = """
func.func @main(%x: tensor<?x4xf32> {graph.name = "x", graph.dims = ["n", ""]},
                %y: tensor<?x4xf32> {graph.name = "y", graph.dims = ["m", ""]})
    -> (tensor<?x4xf32>, tensor<?x4xf32>) {
  %a = func.call @fused_relu(%x) : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %b = func.call @fused_relu(%y) : (tensor<?x4xf32>) -> tensor<?x4xf32>
  func.return %a, %b : tensor<?x4xf32>, tensor<?x4xf32>
}
func.func private @fused_relu(%x: tensor<?x4xf32>) -> tensor<?x4xf32> attributes {graph.primitive} {
  %y = graph.relu %x : (tensor<?x4xf32>) -> tensor<?x4xf32>
  func.return %y : tensor<?x4xf32>
}
"""


def test_a_function_that_is_called_with_other_sizes_is_copied() -> None:
    module = sw.from_mlir(TWO_CALLS)
    x, y = floats(3, 4), floats(5, 4)
    one = sw.bind_params(module, {"x": x})
    assert "@fused_relu_1(%x: tensor<3x4xf32>)" in str(one)
    assert "@fused_relu(%x: tensor<?x4xf32>)" in str(one)
    for names in ("x", "y", "xy"):
        after = sw.bind_params(module, {n: {"x": x, "y": y}[n] for n in names})
        left = [v for n, v in (("x", x), ("y", y)) if n not in names]
        agree(sw.compile(after, threads=1)(*left), (np.maximum(x, 0), np.maximum(y, 0)))
    alike = sw.bind_params(module, {"x": x, "y": -x})
    assert str(alike).count("func.func private @fused_relu(%x: tensor<3x4xf32>)") == 1
    assert str(alike).count("func.func") == 2


def test_sizes_in_names_of_results() -> None:
    @sw.register_function("bind.twice")
    def twice(x: np.ndarray, y: np.ndarray) -> None:
        y[: len(x)], y[len(x) :] = x, 2 * x

    b = sw.Builder()
    x = b.input("x", ("n", 4))
    y = b.call_packed("bind.twice", x, results=[sw.TensorSpec(("n2", 4))])
    b.input("d", ("n2",))
    b.output(b.neg(y), name="y")
    text = str(b.module()).replace('"n2", ""', '"2*n", ""').replace('dims = ["n2"]', 'dims = ["n"]')
    module, value = sw.from_mlir(text), np.ones((3, 4), np.float32)
    after = sw.bind_params(module, {"d": np.zeros(3, np.float32)})
    assert shapes(after) == {"x": (3, 4), "y": (6, 4)}
    want = -np.repeat([[1.0], [2.0]], 3, axis=0) * np.ones(4, np.float32)
    agree(sw.compile(after, threads=1)(value), want.astype(np.float32))


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (
            {"a": A, "x": np.ones((4, 2), np.float32)},
            'argument "x": size "n" is not that of argument "a", expected 5, got 4',
        ),
        (
            {"e": np.ones(3, np.float32), "a": A},
            'argument "e": size "E" is not that of argument "a", expected 10, got 3',
        ),
        (
            {"a": sp.csr_array(np.ones((4, 5), np.float32))},
            'argument "a": size "n" is not that of argument "a", expected 4, got 5',
        ),
        ({"q": 1.0}, 'bind_params: no input "q", expected a, x, w, e'),
        ({"x": [["text"]]}, 'argument "x": unknown dtype'),
        ({"x": ARRAYS["x"].astype(np.float64)}, 'argument "x": wrong dtype of the array'),
        ({"x": A}, 'argument "x": wrong kind of array'),
        ([("x", 1)], "bind_params: arrays is not a mapping, expected a mapping .*, got list"),
    ],
)
def test_arrays_that_do_not_fit(arrays: Any, message: str) -> None:
    module = program()
    before = str(module)
    with pytest.raises(sw.InputError, match=message):
        sw.bind_params(module, arrays)
    assert str(module) == before


def test_arrays_that_operators_do_not_take() -> None:
    b = sw.Builder()
    b.output(b.add(b.input("x", ("n", 4)), b.input("y", ("m", 4))), name="r")
    module = b.module()
    before = str(module)
    rows = {name: np.ones((n, 4), np.float32) for name, n in (("x", 1), ("y", 3))}
    with pytest.raises(sw.InputError, match=r"graph.add: sizes n and m differ, expected 1, got 3"):
        sw.bind_params(module, rows)
    assert str(module) == before


def test_a_rule_that_refuses_leaves_the_module_as_it_was(transformed: Callable) -> None:
    b = sw.Builder()
    x, v = b.input("x", ("n",)), b.input("v", ("n",))
    b.output(b.add(b.reshape(x, [-1, 2]), b.reshape(v, [-1, 2])), name="r")
    module = b.module()
    module.weights.add("v", np.ones(5, np.float32))
    before = str(module)
    with pytest.raises(sw.CompileError, match=r"graph\.reshape: size n is not divisible"):
        run_passes(make_context(module.weights), module.op, "graph-bind-params")
    assert str(module) == before


def test_kernels_that_take_a_size() -> None:
    module = program()
    ctx = make_context(module.weights)
    for stage in ("optimized", "fused", "kernels"):
        run_passes(ctx, module.op, pipeline()[stage], stage)
    with pytest.raises(sw.InputError, match=r"call_dps: @\w+ is made for symbolic sizes .*kernels"):
        sw.bind_params(module, {"a": A})
    for stage in ("scheduled", "buffers"):
        run_passes(ctx, module.op, pipeline()[stage], stage)
    with pytest.raises(sw.InputError, match="@main is a function on buffers, expected one on tens"):
        sw.bind_params(module, {"a": A})


SETTINGS = settings(
    max_examples=settings().max_examples * 60 // 100,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@pytest.mark.parametrize("passes", ["graph-defuse", "graph-fuse-ops"])
@SETTINGS
@given(data=st.data())
def test_random_programs(
    passes: str, data: st.DataObject, programs: st.SearchStrategy[Any], transformed: Callable
) -> None:
    case = data.draw(programs)
    module, _ = transformed(case.module, passes)
    names = [spec.name for spec in module.inputs]
    chosen = data.draw(st.sets(st.sampled_from(names)))
    after = sw.bind_params(
        module, {n: a for n, a in zip(names, case.inputs, strict=True) if n in chosen}
    )
    after.verify()
    assert [spec.name for spec in after.inputs] == [n for n in names if n not in chosen]
    left = [a for n, a in zip(names, case.inputs, strict=True) if n not in chosen]
    want, have = module.run_reference(*case.inputs), after.run_reference(*left)
    same(have, want)
    if not after.inputs or any("n" in spec.shape for spec in module.inputs if spec.name in chosen):
        # No type says how many entries a matrix has: a function beside the program does not know.
        functions = [f for f in after.op.ops if isinstance(f, func.FuncOp)]
        given = {f: [arg.type for arg in f.body.block.args] for f in functions}
        known = [f for f in functions if f is after.main or not any(map(is_sparse, given[f]))]
        types = [value.type for f in known for op in f.walk() for value in op.results]
        assert all(t.has_static_shape() for t in types if isinstance(t, TensorType))
