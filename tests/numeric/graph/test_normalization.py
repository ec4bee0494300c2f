"""Normalisations: against their formulas, compiled as operators and as primitives, one kernel each.

The formulas are written out in f64; what differs is f32 rounding of sums of up to 90 terms.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import func

import stepwell as sw
from stepwell.core.ir.module import Module
from stepwell.dialects.graph.interfaces import GraphOp
from stepwell.dialects.graph.sizes.shapes import SymbolicShapes
from stepwell.driver.compilation import Compilation
from stepwell.driver.request import Request

from ...harness import cases, close, results

EPSILON = 1e-3
TOLERANCE = {"f16": 4e-3, "f32": 1e-5, "f64": 1e-12}
"""f16 has 11 bits; the others are a few units in the last place of sums."""

Formula = Callable[..., np.ndarray]


def random(shape: Sequence[int], dtype: str = "f32", seed: int = 0) -> np.ndarray:
    numbers = np.random.default_rng(seed).standard_normal(shape) * 2 + 0.5
    return numbers.astype(f"float{dtype[1:]}")


def standardized(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    x = x.astype(np.float64)
    mean = x.mean(axes, keepdims=True)
    return (x - mean) / np.sqrt(((x - mean) ** 2).mean(axes, keepdims=True) + EPSILON)


def along(vector: np.ndarray | float, x: np.ndarray, axis: int) -> Any:
    """A vector in the shape in which it broadcasts along a dimension of x."""
    if isinstance(vector, float):
        return vector
    return np.asarray(vector, np.float64).reshape(
        [-1 if i == axis % x.ndim else 1 for i in range(x.ndim)]
    )


def layer(x: np.ndarray, scale: Any = 1.0, bias: Any = 0.0, axis: int = -1) -> np.ndarray:
    return standardized(x, tuple(range(axis % x.ndim, x.ndim))) * scale + bias


def instance(x: np.ndarray, scale: Any = 1.0, bias: Any = 0.0, axis: int = 1) -> np.ndarray:
    axes = tuple(i for i in range(1, x.ndim) if i != axis % x.ndim)
    return standardized(x, axes) * along(scale, x, axis) + along(bias, x, axis)


def group(
    x: np.ndarray, groups: int, scale: Any = 1.0, bias: Any = 0.0, axis: int = 1
) -> np.ndarray:
    moved = np.moveaxis(x, axis, 1)
    apart = moved.reshape(x.shape[0], groups, -1)
    y = np.moveaxis(standardized(apart, (2,)).reshape(moved.shape), 1, axis)
    return y * along(scale, x, axis) + along(bias, x, axis)


def rms(x: np.ndarray, scale: Any = 1.0, axis: int = -1) -> np.ndarray:
    x = x.astype(np.float64)
    axes = tuple(range(axis % x.ndim, x.ndim))
    return x / np.sqrt((x * x).mean(axes, keepdims=True) + EPSILON) * scale


def length(x: np.ndarray, axes: Sequence[int] = (-1,)) -> np.ndarray:
    x = x.astype(np.float64)
    return x / np.sqrt(np.maximum((x * x).sum(tuple(axes), keepdims=True), EPSILON))


DTYPES = ["f16", "f32", "f64"]
Case = tuple[str, Formula, tuple[int, ...], tuple[Any, ...], dict[str, Any]]
CASES: list[Case] = [
    ("layer_norm", layer, (5, 7), ((7,), (7,)), {}),
    ("layer_norm", layer, (1, 9), (), {}),
    ("layer_norm", layer, (2, 3, 5), ((3, 5), (1,)), {"axis": 1}),
    ("layer_norm", layer, (4, 3), ((3,),), {"axis": 0}),
    ("layer_norm", layer, (13,), (), {}),
    ("layer_norm", layer, (3, 1), ((1,), (1,)), {}),
    ("instance_norm", instance, (2, 3, 4, 5), ((3,), (3,)), {}),
    ("instance_norm", instance, (1, 3, 7), (), {}),
    ("instance_norm", instance, (2, 4, 5, 3), ((3,), (3,)), {"axis": -1}),
    ("group_norm", group, (2, 6, 3, 5), (2, (6,), (6,)), {}),
    ("group_norm", group, (1, 6, 7), (3, (6,)), {}),
    ("group_norm", group, (3, 6), (2,), {}),
    ("group_norm", group, (2, 4, 5, 6), (3, (6,), (6,)), {"axis": -1}),
    ("group_norm", group, (2, 5, 3), (1, (5,), (5,)), {}),
    ("group_norm", group, (2, 5, 3), (5,), {}),
    ("rms_norm", rms, (5, 7), ((7,),), {}),
    ("rms_norm", rms, (2, 3, 5), (), {"axis": -2}),
    ("l2_normalize", length, (5, 7), (), {}),
    ("l2_normalize", length, (2, 3, 5), (), {"axes": [0, -1]}),
]
USUAL = [CASES[n] for n in (2, 6, 9, 15, 18)]
"""One of each operator, of several axes where there are such ones."""
GROUPS = [case for case in CASES if case[0] == "group_norm"]
"""Quick tests compile them in one element type: they are primitives like the others."""

IN_ROWS = [
    c for c in CASES if c[4].get("axis", 1) not in (-1, 0) and c[4].get("axes", 0) != [0, -1]
]


APART = [CASES[1], CASES[5], *(c for c in CASES if c not in IN_ROWS and c not in USUAL)]
"""Sizes of 1, and what is not compiled as primitives."""


def program(
    name: str, x: np.ndarray, arguments: tuple[Any, ...], options: dict[str, Any], dims: Any
) -> Module:
    b = sw.Builder()
    add(b, name, x, arguments, options, dims)
    return b.module()


def add(
    b: sw.Builder,
    name: str,
    x: np.ndarray,
    arguments: tuple[Any, ...],
    options: dict[str, Any],
    dims: Any,
) -> None:
    """Add a normalisation of an input of its own."""
    kind = f"f{x.dtype.itemsize * 8}"
    value = b.input(f"x_{kind}", dims, kind)
    extra = {"epsilon": EPSILON, **options}
    b.output(getattr(b, name)(value, *arguments, **extra))


def prepared(
    shape: tuple[int, ...], arguments: tuple[Any, ...], dtype: str
) -> tuple[np.ndarray, tuple[Any, ...]]:
    """x, and the arguments, where a tuple is the shape of a parameter."""
    given = [
        random(a, dtype, seed) if isinstance(a, tuple) else a for seed, a in enumerate(arguments, 1)
    ]
    return random(shape, dtype), tuple(given)


def as_formula(got: Any, want: Any, dtype: str = "f32") -> None:
    """Compare results with those in f64."""
    wanted = [array.astype(f"float{dtype[1:]}") for array in results(want)]
    close(got, wanted, TOLERANCE[dtype], TOLERANCE[dtype] * 8)


WAYS = [(True, DTYPES), (False, ["f32"])]
"""Whether sizes are symbolic, and of what types elements are."""


def texts(module: Module, stages: Sequence[str], level: int) -> list[str]:
    """The texts of stages, by one way down to the last of them."""
    compilation = Compilation.of(Request(module, threads=1, opt_level=level))
    work, ctx = compilation.begin()
    found = list[str]()
    for stage in compilation.descend(work, ctx):
        if stage in stages:
            found.append(work.text())
        if len(found) == len(stages):
            break
    return found


@pytest.mark.parametrize(
    ("symbolic", "dtypes", "levels", "case"),
    [
        *((True, ["f32"], (3,), case) for case in APART),
        *((True, ["f32"] if case in GROUPS else DTYPES, (3,), case) for case in USUAL),
        *(
            pytest.param(*way, (0, 3), case, marks=pytest.mark.slow)
            for case in CASES
            for way in (*WAYS, (False, DTYPES))
        ),
    ],
)
def test_against_the_formula(
    symbolic: bool, dtypes: list[str], levels: tuple[int, ...], case: Case
) -> None:
    """Of several element types in one program, a kernel each."""
    name, formula, shape, arguments, options = case
    channels = options.get("axis", 1) % len(shape)
    dims = [f"n{i}" if symbolic and i != channels else n for i, n in enumerate(shape)]
    b = sw.Builder()
    inputs, wanted = list[np.ndarray](), list[np.ndarray]()
    for dtype in dtypes:
        x, given = prepared(shape, arguments, dtype)
        add(b, name, x, given, options, dims)
        inputs.append(x)
        wanted.append(formula(x, *given, **options))
    module = b.module()
    runs = (sw.compile(module, threads=1, opt_level=level) for level in levels)
    for run in (module.run_reference, *runs):
        for got, want, dtype in zip(results(run(*inputs)), wanted, dtypes, strict=True):
            as_formula(got, want, dtype)


@pytest.mark.parametrize(("name", "formula", "shape", "arguments", "options"), CASES)
def test_operators_are_one_kernel(
    name: str, formula: Formula, shape: tuple[int, ...], arguments: Any, options: Any
) -> None:
    x, given = prepared(shape, arguments, "f32")
    module = program(name, x, given, options, shape)
    fused, kernels = texts(module, ("fused", "kernels"), level=0)
    assert kernels.count("loop.kernel") == 1
    assert f"graph.{name}" in fused
    exe = sw.compile(module, threads=1, opt_level=0)
    as_formula(exe(x), formula(x, *given, **options))


@pytest.mark.parametrize("case", IN_ROWS)
def test_primitives_are_one_kernel(case: Case, all_tests: bool) -> None:
    """With an activation after it, and a sum before; quick tests compile one of each operator."""
    name, formula, shape, arguments, options = case
    x, given = prepared(shape, arguments, "f32")
    b = sw.Builder()
    value = b.input("x", shape)
    y = getattr(b, name)(value + value, *given, epsilon=EPSILON, **options)
    b.output(b.relu(y))
    module = b.module()
    optimized, kernels = texts(module, ("optimized", "kernels"), level=3)
    assert f"graph.{name}" not in optimized
    assert kernels.count("loop.kernel") == 1
    run = sw.compile(module, threads=1) if all_tests or case in USUAL else module.run_reference
    as_formula(run(x), np.maximum(formula(x + x, *given, **options), 0))


@pytest.mark.parametrize("name", ["layer_norm", "instance_norm"])
def test_far_from_zero(name: str) -> None:
    """Rounding the mean leaves no error, though 4096 in f32 has steps of 2^-11."""
    x = random((4, 2, 33)) + np.float32(4096)
    module = program(name, x, (), {}, x.shape)
    want = {"layer_norm": layer, "instance_norm": instance}[name](x)
    runs = (sw.compile(module, threads=1, opt_level=level) for level in (0, 3))
    for run in (module.run_reference, *runs):
        close(run(x), want.astype(np.float32), 1e-5, 1e-6)


@pytest.mark.parametrize(
    ("name", "shape"), [("layer_norm", (5, 70)), ("instance_norm", (2, 3, 9, 40))]
)
def test_sums_of_distances_and_squares_are_one_loop(name: str, shape: tuple[int, ...]) -> None:
    x = random(shape)
    exe = sw.compile(program(name, x, (), {}, ("n", *shape[1:])), threads=1)
    assert "elements are read once for several reductions" in exe.explain()
    as_formula(exe(x), {"layer_norm": layer, "instance_norm": instance}[name](x))


def test_statistics_far_from_zero() -> None:
    """The mean is rounded once, and the variance not a difference of large numbers."""
    x = random((33, 2)) + np.float32(4096)
    b = sw.Builder()
    _, mean, variance = b.batch_norm_training(b.input("x", x.shape), axis=1)
    b.output(mean)
    b.output(variance)
    module, wide = b.module(), x.astype(np.float64)
    for run in (module.run_reference, sw.compile(module, threads=1)):
        got = run(x)
        np.testing.assert_array_max_ulp(got[0], wide.mean(0).astype(np.float32), 1)
        np.testing.assert_allclose(got[1], wide.var(0), rtol=1e-5)


def test_equal_elements() -> None:
    """The variance is not below 0, whatever is rounded."""
    x = np.repeat(np.float32([[1000.1], [3e-3], [7777.7]]), 33, 1)
    module = program("layer_norm", x, (), {"epsilon": 0.0}, x.shape)
    for level in (0, 3):
        got = sw.compile(module, threads=1, opt_level=level)(x)
        assert not (abs(got) > 1).any()


@pytest.mark.parametrize("level", [0, 3])
def test_nothing_but_zeros(level: int) -> None:
    x = np.zeros((2, 5), np.float32)
    for name in ("layer_norm", "rms_norm", "l2_normalize"):
        exe = sw.compile(program(name, x, (), {}, x.shape), threads=1, opt_level=level)
        np.testing.assert_array_equal(exe(x), x)


TRAINED = list(
    itertools.product(
        [(0,), (1, 2), (0, 1, 2), (2,)],
        [False, True],
        [((4, 3), 1), ((2, 3, 5, 4), 1), ((2, 5, 3), -1)],
        [0, 3],
    )
)
"""The results that are used, whether the batch is symbolic, the shape and the axis, the level."""


def is_usual(used: tuple[int, ...], symbolic: bool, image: Any, level: int) -> bool:
    """All of the largest image; of others one result or three, by all passes."""
    if image[1:] == (1,) and len(image[0]) == 4:
        return symbolic or (level == 3 and used == (0, 1, 2))
    return symbolic and level == 3 and used in ((0,), (0, 1, 2))


@pytest.mark.parametrize("case", cases(TRAINED, [case for case in TRAINED if is_usual(*case)]))
def test_batch_norm_training(case: Any) -> None:
    used, symbolic, (shape, axis), level = case
    x, scale, bias = random(shape), random((3,), seed=1), random((3,), seed=2)
    b = sw.Builder()
    value = b.input("x", ["n", *shape[1:]] if symbolic else shape)
    made = b.batch_norm_training(value, scale, bias, axis=axis, epsilon=EPSILON)
    for number in used:
        b.output(made[number])
    module = b.module()
    axes = tuple(i for i in range(x.ndim) if i != axis % x.ndim)
    wide = x.astype(np.float64)
    y = standardized(x, axes) * along(scale, x, axis) + along(bias, x, axis)
    want = [(y, wide.mean(axes), wide.var(axes))[number] for number in used]
    exe = sw.compile(module, threads=1, opt_level=level)
    for got in (module.run_reference(x), exe(x)):
        as_formula(got, want)
    assert ("graph.batch_norm_training" in exe.ir("optimized")) == (level == 0)


@pytest.mark.parametrize("level", [0, 3])
def test_no_channels(level: int) -> None:
    """The means, of which there are 0, are not computed in the nest of result 0."""
    b = sw.Builder()
    x = b.input("x", (2, 0, 3))
    y, mean, _ = b.batch_norm_training(x)
    b.output(y)
    b.output(b.group_norm(x, 2, mean))
    exe = sw.compile(b.module(), threads=1, opt_level=level)
    empty = np.zeros((2, 0, 3), np.float32)
    assert [result.shape for result in exe(empty)] == [empty.shape, empty.shape]


GIVEN = [(scale, dtype) for scale in ("none", "scale", "bias") for dtype in DTYPES]


@pytest.mark.parametrize("case", cases(GIVEN, [c for c in GIVEN if "none" in c or "f32" in c]))
def test_batch_norm_without_parameters(case: tuple[str, str]) -> None:
    given, dtype = case
    scaled, shifted = given == "scale", given == "bias"
    x, mean = random((2, 3, 4), dtype), random((3,), dtype, seed=1)
    variance = np.abs(random((3,), dtype, seed=2)) + x.dtype.type(0.5)
    scale = random((3,), dtype, seed=3) if scaled else None
    bias = random((3,), dtype, seed=4) if shifted else None
    arguments = (scale, bias, mean, variance)
    module = program("batch_norm", x, arguments, {}, ("n", 3, 4))
    root = np.sqrt(along(variance, x, 1) + EPSILON)
    want = (x - along(mean, x, 1)) / root * along(1.0 if scale is None else scale, x, 1)
    want = want + along(0.0 if bias is None else bias, x, 1)
    as_formula(module.run_reference(x), want, dtype)
    for level in (0, 3):
        as_formula(sw.compile(module, threads=1, opt_level=level)(x), want, dtype)


@pytest.mark.parametrize("name", ["layer_norm", "rms_norm", "l2_normalize"])
def test_work(name: str) -> None:
    """An operator takes what its primitives take on each element."""
    module = program(
        name, random((64, 64)), (random((64,)),) if name[0] != "l" else (), {}, (64, 64)
    )
    function = module.main
    assert isinstance(function, func.FuncOp)
    op = next(o for o in function.body.block.ops if isinstance(o, GraphOp) and len(o.operands))
    work = op.flops(SymbolicShapes(function))
    assert work is not None
    of_element, of_row = {"layer_norm": (7, 5), "rms_norm": (4, 2), "l2_normalize": (3, 2)}[name]
    assert work.value == 64 * (64 * of_element + of_row)


@pytest.mark.parametrize("target", ["x86-64", "x86-64-v3"])
def test_a_vector_in_unequal_pieces_reads_the_group_of_each(target: str) -> None:
    """Six channels are vectors of four and two lanes; the last two lanes are one group."""
    x, given = prepared((2, 4, 5, 6), (3, (6,), (6,)), "f32")
    module = program("group_norm", x, given, {"axis": -1}, x.shape)
    try:
        exe = sw.compile(module, target=target, threads=1)
    except sw.TargetError as error:
        pytest.skip(str(error))
    as_formula(exe(x), group(x, *given, axis=-1))
