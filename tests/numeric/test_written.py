"""Operators that write their results in loops of their own: cumulative operators and scatters.

Compiled code and the reference are compared as in `test_operators`; a sum in another order has
other roundings, but these keep the order of NumPy.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import NodeProto
from onnx.helper import make_node

import stepwell as sw
from stepwell.driver.compilation import Compilation
from stepwell.driver.request import Request
from stepwell.frontends.builder import Value

from ..harness import RNG, as_onnx, as_reference, cases, close
from .test_computed_sizes import program as program_of
from .test_onnx_operators import NEWEST, model
from .test_operators import LEVELS, Build, build, check_all, random

KINDS = {"sum": np.cumsum, "prod": np.cumprod}
SHAPES = [(0,), (1,), (37,), (5, 0), (0, 5), (1, 7), (37, 50), (3, 4, 19)]


def compiled_as_reference(
    program: Build, inputs: Sequence[Any], symbolic: bool = False
) -> sw.Executable:
    """Compare a program as it is compiled by default."""
    return as_reference(build(program, inputs, symbolic), *inputs, threads=1)


def cumulative(axis: int, kind: str, exclusive: bool = False, reverse: bool = False) -> Build:
    flags = {"axis": axis, "kind": kind, "exclusive": exclusive, "reverse": reverse}
    return lambda b, x: b.cumulative(x, **flags)


FEW_SHAPES = [(0,), (1,), (3, 4, 19)]


@pytest.mark.parametrize("shape", cases(SHAPES, FEW_SHAPES), ids=str)
def test_cumulative(shape: tuple[int, ...], all_tests: bool) -> None:
    ways = [("sum", False, True), ("prod", True, False), ("max", True, True), ("min", False, False)]
    programs = [cumulative(axis, *way) for axis in range(len(shape)) for way in ways]
    levels = LEVELS if all_tests or len(shape) == 1 else [3]
    check_all([(program, [random(shape)]) for program in programs], levels=levels)
    compiled_as_reference(cumulative(-1, "sum"), [random(shape)], symbolic=True)


ROWS = [(37, 150), (16, 64), (2, 21, 19), (19, 33, 1)]


@pytest.mark.parametrize("shape", cases(ROWS, [(2, 21, 19), (19, 33, 1)]), ids=str)
def test_cumulative_along_several_rows_at_a_time(shape: tuple[int, ...], all_tests: bool) -> None:
    axis = 1 if shape[-1] == 1 else len(shape) - 1
    ways = [("sum", False, True), ("max", True, False), ("prod", True, True)]
    programs = [cumulative(axis, *way) for way in ways]
    levels = LEVELS if all_tests or shape[-1] == 1 else [3]
    check_all([(program, [random(shape)]) for program in programs], levels=levels)
    compiled_as_reference(programs[0], [random(shape)], symbolic=True)


def test_cumulative_along_several_rows_of_a_type(all_tests: bool) -> None:
    dtypes = ("f16", "f64", "i8", "i64")
    programs = [(cumulative(1, "sum", True), [random((21, 70), dtype)]) for dtype in dtypes]
    check_all(programs, levels=LEVELS if all_tests else [3])


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


def test_cumulative_of_a_type() -> None:
    ways = itertools.product(("f16", "f64", "i8", "i32", "i64"), ("sum", "prod", "max", "min"))
    check_all([(cumulative(0, kind, True), [random((9, 5), dtype)]) for dtype, kind in ways])


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
    exe = compiled_as_reference(program, inputs)
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
        close(exe(*inputs), module.run_reference(*inputs))


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
    close(exe(x), module.run_reference(x))


def test_what_follows_may_read_other_tensors_of_a_symbolic_size() -> None:
    inputs = [random((6, 5), seed=seed) for seed in range(3)]

    def program(b: sw.Builder, x: Value, y: Value, z: Value) -> Value:
        return b.min(b.abs(b.sub(x, y)), b.cumulative(z, kind="sum", axis=0))

    exe = compiled_as_reference(program, inputs, symbolic=True)
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
    exe = compiled_as_reference(program, inputs)
    assert why in " ".join(exe.explain().split())
    assert exe.ir("kernels").count("loop.kernel") > 1


def scattered(axis: int, kind: str) -> Build:
    return lambda b, x, i, u: b.scatter_elements(x, i, u, axis=axis, kind=kind)


DTYPES = ["f16", "f32", "f64", "i8", "i64"]


@pytest.mark.parametrize("dtype", cases(DTYPES, ["f32", "i64"]))
def test_scatter_elements(dtype: str, all_tests: bool) -> None:
    x, updates = random((5, 6, 7), dtype), random((3, 6, 2), dtype, seed=1)
    programs = list[tuple[Build, list[np.ndarray]]]()
    for number, kind in enumerate(("none", "add", "mul", "max", "min")):
        axis = number % 3
        indices = RNG.integers(-x.shape[axis], x.shape[axis], updates.shape)
        programs.append((scattered(axis, kind), [x, indices, updates]))
    check_all(programs, levels=LEVELS if all_tests or dtype == "f32" else [3])


def scattered_nd(kind: str) -> Build:
    return lambda b, x, u, *i: b.scatter_nd(b.neg(x), b.exp(u), i, kind=kind)


PLACES = [((), 1), ((0,), 1), ((40,), 2), ((3, 2), 1)]


@pytest.mark.parametrize("case", cases(PLACES, PLACES[1:]), ids=str)
def test_scatter_nd(case: tuple[tuple[int, ...], int], all_tests: bool) -> None:
    places, count = case
    x = random((5, 6, 19))
    indices = [RNG.integers(-n, n, places) for n in x.shape[:count]]
    updates = random((*places, *x.shape[count:]), seed=1)
    kinds = ("none", "add", "max")
    programs = [(scattered_nd(kind), [x, updates, *indices]) for kind in kinds]
    check_all(programs, levels=LEVELS if all_tests or places == (3, 2) else [3])


def test_scatter_with_symbolic_sizes() -> None:
    x, updates = random((7, 3)), random((11, 3), seed=1)
    indices = RNG.integers(-7, 7, 11)
    compiled_as_reference(
        lambda b, x, u, i: b.scatter_nd(x, u, [i], kind="add"), [x, updates, indices], symbolic=True
    )
    wide = np.broadcast_to(indices[:, None], (11, 3)).copy()
    compiled_as_reference(
        lambda b, x, u, i: b.scatter_elements(x, i, u, axis=0, kind="min"),
        [x, updates, wide],
        symbolic=True,
    )


def test_scatter_without_elements() -> None:
    indices, none = np.zeros(3, np.int64), np.zeros((3, 0), np.float32)
    elements = scattered(0, "max"), [none, np.zeros((3, 0), np.int64), none]
    check_all([(scattered_nd("add"), [none, none, indices]), elements])


def test_truth_values_are_scattered() -> None:
    x, updates = random((7,), "i1"), random((3,), "i1", seed=1)
    program: Build = lambda b, x, u, i: b.scatter_nd(x, u, [i])  # noqa: E731
    check_all([(program, [x, updates, np.array([6, 0, 0])])])


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


@settings(deadline=None, max_examples=settings().max_examples * 12 // 100)
@given(st.data())
def test_gathers_of_any_shape(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=3)))
    axis = data.draw(st.integers(0, len(shape) - 1))
    sizes = [data.draw(st.integers(0, n)) for n in shape]
    along = RNG.integers(-shape[axis], shape[axis], sizes)
    count = data.draw(st.integers(1, len(shape)))
    places = tuple(data.draw(st.lists(st.integers(0, 4), max_size=2)))
    indices = [RNG.integers(-n, n, places) for n in shape[:count]]
    x = random(shape)
    elements = (lambda b, x, i: b.gather_elements(x, i, axis=axis), [x, along])
    check_all([elements, (lambda b, x, *i: b.gather_nd(x, i), [x, *indices])])


def placed(kind: str, axis: int, keepdims: bool = False, last: bool = False) -> Build:
    return lambda b, x: b.arg_reduce(x, kind, axis, keepdims, last)


EXTREMA = [(1,), (37,), (5, 50), (3, 4, 19), (2, 300)]


@pytest.mark.parametrize("shape", cases(EXTREMA, [(1,), (5, 50), (3, 4, 19)]), ids=str)
def test_places_of_extrema(shape: tuple[int, ...], all_tests: bool) -> None:
    # Few different numbers, so that there are ties.
    x = np.round(random(shape) * 2)
    ways = [("max", False, True), ("min", True, False)]
    programs = [placed(kind, axis, *w) for axis in range(len(shape)) for kind, *w in ways]
    check_all([(program, [x]) for program in programs], levels=LEVELS if all_tests else [3])
    levels = LEVELS if all_tests or shape == (1,) else [3]
    either = [(placed("max", -1), [x]), (placed("min", 0, last=True), [x])]
    check_all(either, symbolic=True, levels=levels)


def test_places_of_a_type(all_tests: bool) -> None:
    inputs = [random((7, 33), dtype) for dtype in ("f16", "f64", "i8", "i64")]
    programs = placed("max", 1), placed("min", 1, last=True)
    check_all(
        [(program, [x]) for x in inputs for program in programs],
        levels=LEVELS if all_tests else [3],
    )


def test_a_nan_is_the_extremum() -> None:
    nan, inf = np.nan, np.inf
    x = np.array([[1, nan, 3, nan], [-inf, -inf, -inf, -inf], [inf, 0, inf, 1]], np.float32)
    ways = itertools.product(("max", "min"), (False, True))
    check_all([(placed(kind, 1, last=last), [x]) for kind, last in ways])
    exe = sw.compile(build(placed("max", 1), [x], False), threads=1)
    np.testing.assert_array_equal(exe(x), np.argmax(x, axis=1))


def node_as_onnx(
    node: NodeProto, xs: Mapping[str, np.ndarray], constants: Mapping[str, np.ndarray] | None = None
) -> None:
    inputs = {name: (x, x.shape) for name, x in xs.items()}
    as_onnx(model([node], inputs, constants or {}, NEWEST), *xs.values(), atol=1e-6)


@pytest.mark.parametrize("operator", ["CumSum", "CumProd"])
def test_cumulative_of_onnx(operator: str) -> None:
    for axis in (0, -1):
        for flags in ({}, {"exclusive": 1}, {"reverse": 1, "exclusive": 1}):
            node = make_node(operator, ["x", "a"], ["y"], **flags)
            node_as_onnx(node, {"x": random((4, 5))}, {"a": np.array(axis)})


def test_gathers_and_scatters_of_onnx() -> None:
    x, i = random((4, 5)), np.array([[0, -1, 2], [3, -4, 0]])
    wide = np.array([[0, -1, 2, 1, 3], [3, -4, 0, 0, -2]])
    node_as_onnx(make_node("GatherElements", ["x", "i"], ["y"], axis=0), {"x": x, "i": wide})
    for reduction in ("none", "add", "mul", "max", "min"):
        node = make_node("ScatterElements", list("xiu"), ["y"], axis=1, reduction=reduction)
        node_as_onnx(node, {"x": x, "i": i, "u": random((2, 3), seed=1)})
        node = make_node("ScatterND", list("xiu"), ["y"], reduction=reduction)
        node_as_onnx(node, {"x": x, "i": i[:, :1], "u": random((2, 5), seed=1)})
    node_as_onnx(
        make_node("GatherND", ["x", "i"], ["y"]), {"x": x, "i": np.array([[0, -1], [3, 2]])}
    )
    batched = {"x": random((2, 3, 4)), "i": np.array([[1], [-3]])}
    node_as_onnx(make_node("GatherND", ["x", "i"], ["y"], batch_dims=1), batched)


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

    exe = compiled_as_reference(program, [x])
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
            Compilation.of(Request(build(program(axis, "sum"), inputs, False))).text("optimized")
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
