"""Operators that write their results in loops of their own: cumulative operators and scatters.

Compiled code and the reference are compared as in `test_operators`; a sum in another order has
other roundings, but these keep the order of NumPy.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx.helper import make_node

import stepwell as sw
from stepwell.compilation import Compilation
from stepwell.frontends.builder import Value

from .test_computed_sizes import program as program_of
from .test_computed_sizes import same
from .test_onnx_operators import check as check_onnx
from .test_onnx_operators import model
from .test_operators import Build, build, check, check_all, random

KINDS = {"sum": np.cumsum, "prod": np.cumprod}
SHAPES = [(0,), (1,), (37,), (5, 0), (0, 5), (1, 7), (37, 50), (3, 4, 19)]


def cumulative(axis: int, kind: str, exclusive: bool = False, reverse: bool = False) -> Build:
    flags = {"axis": axis, "kind": kind, "exclusive": exclusive, "reverse": reverse}
    return lambda b, x: b.cumulative(x, **flags)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_cumulative(shape: tuple[int, ...]) -> None:
    ways = [("sum", False, True), ("prod", True, False), ("max", True, True), ("min", False, False)]
    programs = [cumulative(axis, *way) for axis in range(len(shape)) for way in ways]
    check_all([(program, [random(shape)]) for program in programs])
    check(cumulative(-1, "sum"), [random(shape)], symbolic=True)


@pytest.mark.parametrize("shape", [(37, 150), (16, 64), (2, 21, 19), (19, 33, 1)], ids=str)
def test_cumulative_along_several_rows_at_a_time(shape: tuple[int, ...]) -> None:
    axis = 1 if shape[-1] == 1 else len(shape) - 1
    ways = [("sum", False, True), ("max", True, False), ("prod", True, True)]
    programs = [cumulative(axis, *way) for way in ways]
    check_all([(program, [random(shape)]) for program in programs])
    check(programs[0], [random(shape)], symbolic=True)


def test_cumulative_along_several_rows_of_a_type() -> None:
    for dtype in ("f16", "f64", "i8", "i64"):
        check(cumulative(1, "sum", True), [random((21, 70), dtype)])


def test_cumulative_along_long_columns() -> None:
    x = random((3, 700, 530))
    for shape, axis, threads in (((2100, 530), 0, 1), (x.shape, 1, 2)):
        module = build(cumulative(axis, "sum"), [x.reshape(shape)], False)
        y = sw.compile(module, threads=threads)(x.reshape(shape))
        np.testing.assert_array_equal(y, np.cumsum(x.reshape(shape), axis=axis))


def test_several_rows_at_a_time_keep_each_order() -> None:
    x, shape = random((37, 150)), (("m", "n"),)
    exe = sw.compile(program_of(lambda b, x: -b.cumulative(x * 2, kind="sum"), x=shape), threads=2)
    assert "stage_columns(" in exe.ir("scheduled")
    np.testing.assert_array_equal(exe(x), -np.cumsum(x * 2, axis=1))


@pytest.mark.parametrize("dtype", ["f16", "f64", "i8", "i32", "i64"])
def test_cumulative_of_a_type(dtype: str) -> None:
    kinds = ("sum", "prod", "max", "min")
    check_all([(cumulative(0, kind, True), [random((9, 5), dtype)]) for kind in kinds])


def test_cumulative_is_numpys() -> None:
    x = random((6, 33))
    for kind, function in KINDS.items():
        module = build(lambda b, x, kind=kind: b.cumulative(x, kind=kind), [x], False)
        np.testing.assert_allclose(sw.compile(module)(x), function(x, axis=1), rtol=1e-5)


def test_cumulative_of_special_values() -> None:
    x = np.array([1, -np.inf, np.nan, np.inf, -0.0], np.float32)
    check_all([(cumulative(0, kind), [x]) for kind in ("sum", "prod", "max", "min")])


def test_a_sum_keeps_the_sign_of_zero() -> None:
    x = np.array([-0.0, -0.0, 0.0, -0.0], np.float32)
    got = sw.compile(build(cumulative(0, "sum"), [x], False), threads=1)(x)
    np.testing.assert_array_equal(np.signbit(got), np.signbit(np.cumsum(x)))


def test_what_is_read_and_what_follows_is_one_kernel() -> None:
    def program(b: sw.Builder, x: Value, y: Value) -> Value:
        return b.tanh(b.cumulative(b.relu(x), kind="sum", axis=0) + y)

    inputs = [random((37, 50)), random((50,), seed=1)]
    check(program, inputs)
    exe = sw.compile(build(program, inputs, False), threads=1)
    assert exe.ir("kernels").count("loop.kernel") == 1


def test_what_follows_two_results_is_one_kernel() -> None:
    def followed(b: sw.Builder, x: Value, y: Value) -> tuple[Value, ...]:
        values, places = b.sort(x, axis=0, descending=True)
        small, rows = b.exp(values) * y, b.neg(places)
        return small, b.reduce(small, "sum", [1]), rows * 2 + places

    module = program_of(followed, x=(("n", 5),), y=(("n", 5),))
    exe = sw.compile(module, threads=2)
    assert "loop.kernel @fused_sort_exp_mul_neg_mul_add(" in exe.ir("kernels")
    assert exe.ir("kernels").count("loop.kernel") == 2
    for n in (37, 1, 0):
        inputs = np.round(random((n, 5))), random((n, 5), seed=1)
        same(exe(*inputs), module.run_reference(*inputs))


def test_what_needs_two_results_is_in_another_kernel() -> None:
    def joined(b: sw.Builder, x: Value) -> tuple[Value, ...]:
        values, places = b.sort(x, axis=0)
        doubled, floats = values * 2, b.cast(places, "f32")
        return b.add(doubled, floats), b.sub(floats, b.reduce(doubled, "max", [0], True))

    module = program_of(joined, x=((9, 4),))
    exe = sw.compile(module, threads=1)
    assert "loop.kernel @fused_sort_mul_cast(" in exe.ir("kernels")
    assert "needed outside of that kernel" in " ".join(exe.explain().split())
    x = random((9, 4))
    same(exe(x), module.run_reference(x))


def test_what_follows_may_read_other_tensors_of_a_symbolic_size() -> None:
    inputs = [random((6, 5), seed=seed) for seed in range(3)]

    def program(b: sw.Builder, x: Value, y: Value, z: Value) -> Value:
        return b.min(b.abs(b.sub(x, y)), b.cumulative(z, kind="sum", axis=0))

    check(program, inputs, symbolic=True)
    exe = sw.compile(build(program, inputs, True), threads=1)
    assert exe.ir("kernels").count("loop.kernel") == 1


@pytest.mark.parametrize(
    ("program", "why"),
    [
        (lambda b, x, i: b.relu(b.scatter_nd(x, x, [i], kind="add")), "are final only at the end"),
        (
            lambda b, x, i: b.transpose(b.cumulative(x, kind="sum"), [1, 0]),
            "writes elements in another order",
        ),
        (
            lambda b, x, i: b.cumulative(b.reduce(x, "sum", [0], True) + x, kind="sum"),
            "a reduction cannot be before the loops of graph.cumulative",
        ),
        (
            lambda b, x, i: b.cumulative(b.cumulative(x, kind="sum"), kind="sum", axis=0),
            "write their results in loops of their own",
        ),
    ],
)
def test_what_stays_in_a_kernel_of_its_own(program: Callable[..., Value], why: str) -> None:
    inputs = [random((6, 6)), np.array([0, 3, -1, 3, 2, -6])]
    check(program, inputs)
    exe = sw.compile(build(program, inputs, False), threads=1)
    assert why in " ".join(exe.explain().split())
    assert exe.ir("kernels").count("loop.kernel") > 1


def scattered(axis: int, kind: str) -> Build:
    return lambda b, x, i, u: b.scatter_elements(x, i, u, axis=axis, kind=kind)


@pytest.mark.parametrize("dtype", ["f16", "f32", "f64", "i8", "i64"])
def test_scatter_elements(dtype: str) -> None:
    x, updates = random((5, 6, 7), dtype), random((3, 6, 2), dtype, seed=1)
    rng, cases = np.random.default_rng(2), list[tuple[Build, list[np.ndarray]]]()
    for number, kind in enumerate(("none", "add", "mul", "max", "min")):
        axis = number % 3
        indices = rng.integers(-x.shape[axis], x.shape[axis], updates.shape)
        cases.append((scattered(axis, kind), [x, indices, updates]))
    check_all(cases)


def scattered_nd(kind: str) -> Build:
    return lambda b, x, u, *i: b.scatter_nd(b.neg(x), b.exp(u), i, kind=kind)


@pytest.mark.parametrize(("places", "count"), [((), 1), ((0,), 1), ((40,), 2), ((3, 2), 1)])
def test_scatter_nd(places: tuple[int, ...], count: int) -> None:
    x = random((5, 6, 19))
    rng = np.random.default_rng(2)
    indices = [rng.integers(-n, n, places) for n in x.shape[:count]]
    updates = random((*places, *x.shape[count:]), seed=1)
    kinds = ("none", "add", "max")
    check_all([(scattered_nd(kind), [x, updates, *indices]) for kind in kinds])


def test_scatter_with_symbolic_sizes() -> None:
    x, updates = random((7, 3)), random((11, 3), seed=1)
    indices = np.random.default_rng(2).integers(-7, 7, 11)
    check(
        lambda b, x, u, i: b.scatter_nd(x, u, [i], kind="add"), [x, updates, indices], symbolic=True
    )
    wide = np.broadcast_to(indices[:, None], (11, 3)).copy()
    check(
        lambda b, x, u, i: b.scatter_elements(x, i, u, axis=0, kind="min"),
        [x, updates, wide],
        symbolic=True,
    )


def test_scatter_without_elements() -> None:
    indices, none = np.zeros(3, np.int64), np.zeros((3, 0), np.float32)
    check(scattered_nd("add"), [none, none, indices])
    check(scattered(0, "max"), [none, np.zeros((3, 0), np.int64), none])


def test_truth_values_are_scattered() -> None:
    x, updates = random((7,), "i1"), random((3,), "i1", seed=1)
    check(lambda b, x, u, i: b.scatter_nd(x, u, [i]), [x, updates, np.array([6, 0, 0])])


@pytest.mark.parametrize("index", [5, -6])
def test_an_index_out_of_range_changes_nothing(index: int) -> None:
    inputs = [random((5, 3)), random((2, 3)), np.array([0, index])]
    for program in (
        lambda b, x, u, i: b.scatter_nd(x, u, [i], name="put"),
        lambda b, x, u, i: b.gather_nd(x, [i], name="put"),
    ):
        exe = sw.compile(build(program, inputs, True), threads=1)
        with pytest.raises(sw.InputError, match=r"put.*index out of range at position 1"):
            exe(*inputs)


@settings(deadline=None, max_examples=10)
@given(st.data())
def test_gathers_of_any_shape(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=3)))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    axis = data.draw(st.integers(0, len(shape) - 1))
    sizes = [data.draw(st.integers(0, n)) for n in shape]
    along = rng.integers(-shape[axis], shape[axis], sizes)
    count = data.draw(st.integers(1, len(shape)))
    places = tuple(data.draw(st.lists(st.integers(0, 4), max_size=2)))
    indices = [rng.integers(-n, n, places) for n in shape[:count]]
    x = random(shape)
    cases = [(lambda b, x, i: b.gather_elements(x, i, axis=axis), [x, along])]
    check_all([*cases, (lambda b, x, *i: b.gather_nd(x, i), [x, *indices])])


def placed(kind: str, axis: int, keepdims: bool = False, last: bool = False) -> Build:
    return lambda b, x: b.arg_reduce(x, kind, axis, keepdims, last)


@pytest.mark.parametrize("shape", [(1,), (37,), (5, 50), (3, 4, 19), (2, 300)], ids=str)
def test_places_of_extrema(shape: tuple[int, ...]) -> None:
    # Few different numbers, so that there are ties.
    x = np.round(random(shape) * 2)
    ways = [("max", False, True), ("min", True, False)]
    cases = [placed(kind, axis, *w) for axis in range(len(shape)) for kind, *w in ways]
    check_all([(program, [x]) for program in cases])
    check(placed("max", -1), [x], symbolic=True)
    check(placed("min", 0, last=True), [x], symbolic=True)


@pytest.mark.parametrize("dtype", ["f16", "f64", "i8", "i64"])
def test_places_of_a_type(dtype: str) -> None:
    x = random((7, 33), dtype)
    check_all([(placed("max", 1), [x]), (placed("min", 1, last=True), [x])])


def test_a_nan_is_the_extremum() -> None:
    nan, inf = np.nan, np.inf
    x = np.array([[1, nan, 3, nan], [-inf, -inf, -inf, -inf], [inf, 0, inf, 1]], np.float32)
    for kind, last in (("max", False), ("min", False), ("max", True), ("min", True)):
        check(placed(kind, 1, last=last), [x])
    exe = sw.compile(build(placed("max", 1), [x], False), threads=1)
    np.testing.assert_array_equal(exe(x), np.argmax(x, axis=1))


@pytest.mark.parametrize("operator", ["CumSum", "CumProd"])
def test_cumulative_of_onnx(operator: str) -> None:
    for axis in (0, -1):
        for flags in ({}, {"exclusive": 1}, {"reverse": 1, "exclusive": 1}):
            node = make_node(operator, ["x", "a"], ["y"], **flags)
            check_onnx(node, {"x": random((4, 5))}, {"a": np.array(axis)})


def test_gathers_and_scatters_of_onnx() -> None:
    x, i = random((4, 5)), np.array([[0, -1, 2], [3, -4, 0]])
    wide = np.array([[0, -1, 2, 1, 3], [3, -4, 0, 0, -2]])
    check_onnx(make_node("GatherElements", ["x", "i"], ["y"], axis=0), {"x": x, "i": wide})
    for reduction in ("none", "add", "mul", "max", "min"):
        node = make_node("ScatterElements", list("xiu"), ["y"], axis=1, reduction=reduction)
        check_onnx(node, {"x": x, "i": i, "u": random((2, 3), seed=1)})
        node = make_node("ScatterND", list("xiu"), ["y"], reduction=reduction)
        check_onnx(node, {"x": x, "i": i[:, :1], "u": random((2, 5), seed=1)})
    check_onnx(make_node("GatherND", ["x", "i"], ["y"]), {"x": x, "i": np.array([[0, -1], [3, 2]])})
    batched = {"x": random((2, 3, 4)), "i": np.array([[1], [-3]])}
    check_onnx(make_node("GatherND", ["x", "i"], ["y"], batch_dims=1), batched)


def test_the_first_scatter_of_onnx() -> None:
    # The reference evaluator of the onnx package does not have it.
    x, i, u = random((4, 5)), np.array([[0, -1, 2], [3, -4, 0]]), random((2, 3), seed=1)
    inputs = {"x": (x, x.shape), "i": (i, i.shape), "u": (u, u.shape)}
    source = model([make_node("Scatter", list("xiu"), ["y"])], inputs, {}, opset=10)
    expected = x.copy()
    np.put_along_axis(expected[:, :3], i, u, axis=0)
    np.testing.assert_array_equal(sw.compile(sw.from_onnx(source))(x, i, u), expected)


def test_a_place_that_is_one_number_is_folded() -> None:
    x, i = random((4,)), np.array(2)

    def program(b: sw.Builder, z: Value) -> Value:
        constant = b.constant(x)
        one = b.gather(constant, b.constant(i)) + b.gather_nd(constant, [b.constant(i)])
        places = b.arg_reduce(constant, "max", 0) + b.arg_reduce(constant, "min", 0, last=True)
        return z + one + b.cast(places, "f32")

    check(program, [x])
    exe = sw.compile(build(program, [x], False), threads=1)
    assert all(f"graph.{name}" not in exe.ir("optimized") for name in ("gather", "arg_reduce"))


def test_an_axis_counted_from_the_end_is_the_same() -> None:
    x, i = random((4, 5)), np.zeros((4, 5), np.int64)
    for program, inputs in (
        (cumulative, [x]),
        (lambda axis, _: placed("max", axis), [x]),
        (lambda axis, _: lambda b, x, i: b.gather_elements(x, i, axis=axis), [x, i]),
        (lambda axis, _: scattered(axis, "add"), [x, i, x]),
    ):
        one, other = (
            Compilation.of(build(program(axis, "sum"), inputs, False)).text("optimized")
            for axis in (1, -1)
        )
        assert one == other


def test_places_along_symbolic_axes_of_onnx() -> None:
    x = random((3, 5))
    inputs = {"x": (x, ("n", "m"))}
    source = model([make_node("ArgMax", ["x"], ["y"], axis=1, keepdims=0)], inputs, {}, opset=18)
    np.testing.assert_array_equal(sw.compile(sw.from_onnx(source))(x), x.argmax(axis=1))
    source = model([make_node("Hardmax", ["x"], ["y"])], inputs, {}, opset=18)
    with pytest.raises(sw.StepwellError, match="positions in symbolic dimension m"):
        sw.from_onnx(source)
