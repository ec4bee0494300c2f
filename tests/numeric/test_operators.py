"""Every operator, compiled, gives what its NumPy reference gives.

Sizes are odd, 1 and 0; dimensions are static and symbolic; both a scalar kernel for each
operator (level 0) and the default schedule (level 3) are run.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import stepwell as sw
from stepwell.core.dtype_names import dtype_named
from stepwell.frontends.builder import Value

from ..harness import cases, close, results

Build = Callable[..., Value]
RELATIVE = {"float16": 2e-3, "float32": 2e-5, "float64": 1e-12}
"""A few units in the last place of sums of a dozen terms, and of functions of 4 ulp."""


def random(shape: Sequence[int], dtype: str = "f32", seed: int = 0) -> np.ndarray:
    """Numbers of both signs; integers are small."""
    rng = np.random.default_rng(seed)
    if dtype == "i1":
        return rng.integers(0, 2, shape).astype(np.bool_)
    if dtype.startswith("i"):
        return rng.integers(-9, 10, shape).astype(f"int{dtype[1:]}")
    return rng.standard_normal(shape).astype(f"float{dtype[1:]}")


def element_type(array: Any) -> str:
    """The name that the builder has for the elements of an array."""
    kind, bits = array.dtype.kind, array.dtype.itemsize * 8
    return "i1" if kind == "b" else f"{kind}{bits}"


def add(
    b: sw.Builder, program: Build, inputs: Sequence[Any], symbolic: bool, first: int = 0
) -> None:
    """Add a program with inputs, numbered from `first`, and a result of its own."""
    values: list[Value] = []
    for number, array in enumerate(inputs, first):
        shape = tuple(f"n{size}" if symbolic else size for size in array.shape)
        if isinstance(array, np.ndarray):
            values.append(b.input(f"x{number}", shape, element_type(array)))
        else:
            spec = sw.SparseSpec(shape, element_type(array), nnz=None if symbolic else array.nnz)
            values.append(b.input(f"x{number}", spec))
    b.output(program(b, *values), name=f"y{first}")


def build(program: Build, inputs: Sequence[Any], symbolic: bool) -> sw.Module:
    """The module of a program; with `symbolic` every dimension has a name for its size."""
    b = sw.Builder("main")
    add(b, program, inputs, symbolic)
    return b.module()


LEVELS = (0, 3)


@pytest.fixture
def levels(all_tests: bool) -> tuple[int, ...]:
    """The levels of shapes beside the one that quick tests compile at both."""
    return LEVELS if all_tests else (3,)


def agrees(
    program: Build,
    inputs: Sequence[Any],
    *,
    symbolic: bool = False,
    levels: Sequence[int] = LEVELS,
) -> None:
    """Compile a program at these levels, and compare with the reference."""
    check_all([(program, inputs)], symbolic=symbolic, levels=levels)


def check_all(
    programs: Iterable[tuple[Build, Sequence[Any]]],
    *,
    symbolic: bool = False,
    levels: Sequence[int] = LEVELS,
) -> None:
    """The same for programs that share nothing, in one module: each has kernels of its own."""
    b, arrays = sw.Builder("main"), list[Any]()
    for program, inputs in programs:
        add(b, program, inputs, symbolic, len(arrays))
        arrays += inputs
    module = b.module()
    expected = results(module.run_reference(*arrays))
    for level in levels:
        found = results(sw.compile(module, threads=1, opt_level=level)(*arrays))
        for number, (have, want) in enumerate(zip(found, expected, strict=True)):
            nearly(have, want, f"result {number} at level {level}")


def nearly(have: np.ndarray, want: np.ndarray, what: str) -> None:
    """Compare up to rounding, of numbers as large as the largest."""
    tolerance = RELATIVE.get(have.dtype.name, 0)
    scale = np.abs(want[np.isfinite(want)]).max(initial=0) if tolerance else 0
    close(have, want, tolerance, tolerance * scale, what=what)


SHAPES = [(3, 5), (1, 1), (7,), (17, 33), (0, 4), (2, 3, 19), ()]

UNARY: dict[str, Build] = {
    "neg": lambda b, x: b.neg(x),
    "exp": lambda b, x: b.exp(x),
    "tanh": lambda b, x: b.tanh(x),
    "sigmoid": lambda b, x: b.sigmoid(x),
    "relu": lambda b, x: b.relu(x),
    "leaky_relu": lambda b, x: b.leaky_relu(x, 0.1),
    "gelu": lambda b, x: b.gelu(x),
    "gelu_tanh": lambda b, x: b.gelu(x, "tanh"),
    "erf": lambda b, x: b.erf(x),
    "clip": lambda b, x: b.clip(x, -0.5, 0.75),
    "clip_below": lambda b, x: b.clip(x, minimum=0.25),
    "dropout": lambda b, x: b.dropout(x, 0.3),
    "log_of_square": lambda b, x: b.log(x * x),
    "sqrt_of_square": lambda b, x: b.sqrt(x * x),
    "rsqrt_of_square": lambda b, x: b.rsqrt(x * x + 0.5),
}


@pytest.mark.parametrize("name", UNARY)
def test_unary(name: str, levels: tuple[int, ...]) -> None:
    every = levels == LEVELS or name in ("relu", "exp", "rsqrt_of_square")
    dtypes = ("f32", "f64", "f16") if every else ("f32",)
    check_all(((UNARY[name], [random((5, 37), dtype)]) for dtype in dtypes), levels=levels)


@pytest.mark.parametrize("symbolic", [False, True])
def test_unary_shapes(symbolic: bool, all_tests: bool) -> None:
    check_all(
        (
            (lambda b, x: b.relu(x) * 0.5, [random(shape)])
            for shape in SHAPES
            if shape or not symbolic
        ),
        symbolic=symbolic,
        levels=LEVELS if all_tests else [3] if symbolic else [0],
    )


def test_special_values() -> None:
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, 3.4e38, -3.4e38], np.float32)
    b = sw.Builder("main")
    for number, program in enumerate(UNARY.values()):
        add(b, program, [x], False, number)
    module = b.module()
    found = sw.compile(module, threads=1)(*[x] * len(UNARY))
    expected = module.run_reference(*[x] * len(UNARY))
    for name, have, want in zip(UNARY, found, expected, strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-30, err_msg=name)


BINARY: dict[str, Build] = {
    "add": lambda b, x, y: x + y,
    "sub": lambda b, x, y: x - y,
    "mul": lambda b, x, y: x * y,
    "div": lambda b, x, y: x / y,
    "max": lambda b, x, y: b.max(x, y),
    "min": lambda b, x, y: b.min(x, y),
}


@pytest.mark.parametrize("name", BINARY)
def test_binary(name: str, levels: tuple[int, ...]) -> None:
    every = ("f32", "f64", "f16", "i8", "i16", "i32", "i64")
    dtypes = every if levels == LEVELS or name == "max" else ("f32", "i32")
    check_all(
        (
            (BINARY[name], [random((5, 37), dtype), random((5, 37), dtype, seed=1)])
            for dtype in dtypes
        ),
        levels=levels,
    )


BROADCAST: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((5, 37), (37,)),
    ((5, 37), (5, 1)),
    ((5, 1), (1, 37)),
    ((4, 1, 6), (3, 1)),
    ((), (4,)),
    ((0, 3), (3,)),
]


def test_broadcasting() -> None:
    check_all((lambda b, x, y: x * y + x, [random(m), random(n, seed=1)]) for m, n in BROADCAST)


def test_fma() -> None:
    shapes = (5, 37), (37,), (5, 1)
    check_all(
        (lambda b, x, y, z: b.fma(x, y, z), [random(s, dtype, n) for n, s in enumerate(shapes)])
        for dtype in ("f16", "f32", "f64")
    )


def test_fma_is_rounded_once() -> None:
    # (1 + e) (1 - e) - 1 == -e^2, of which a product that is rounded leaves 0
    e = np.array([2.0**-12, 2.0**-20, 0.0], np.float32)
    arrays = [1 + e, 1 - e, np.full(3, -1, np.float32)]
    module = build(lambda b, x, y, z: b.fma(x, y, z), arrays, symbolic=False)
    for result in (module.run_reference(*arrays), sw.compile(module, threads=1)(*arrays)):
        np.testing.assert_array_equal(result, np.array([-(2.0**-24), -(2.0**-40), 0], np.float32))


def test_integer_division_cannot_trap() -> None:
    x = np.array([7, -7, np.iinfo(np.int32).min, 5], np.int32)
    y = np.array([2, 2, -1, 0], np.int32)
    agrees(BINARY["div"], [x, y])


def test_numbers_beyond_a_float() -> None:
    x = np.array([-1, 0.5, 1, 2], np.float32)
    agrees(lambda b, x: b.leaky_relu(x, 1e300), [x])
    check_all((lambda b, x, e=e: b.pow(x, np.float32(e)), [x]) for e in (np.inf, -np.inf, np.nan))


@pytest.mark.parametrize("dtype", cases(["f32", "f64", "i32", "i64"], ["f64", "i32"]))
def test_pow(dtype: str, levels: tuple[int, ...]) -> None:
    operands = [np.abs(random((5, 9), dtype, seed)) for seed in (0, 1)]
    agrees(lambda b, x, y: x**y, operands, levels=LEVELS if dtype == "f64" else levels)


@pytest.mark.parametrize("columns", cases([1, 7, 10, 32, 33, 128], [1, 10]))
def test_dense(columns: int, all_tests: bool) -> None:
    rng = np.random.default_rng(0)
    w = rng.standard_normal((columns, 23)).astype(np.float32)
    bias = rng.standard_normal(columns).astype(np.float32)

    def program(b: sw.Builder, x: Value) -> Value:
        return b.relu(b.dense(x, w, bias))

    check_all(
        ((program, [random((rows, 23))]) for rows in (1, 2, 5, 12, 13, 64)),
        levels=LEVELS if all_tests or columns == 10 else (3,),
    )


def test_dense_with_a_symbolic_batch() -> None:
    w = random((33, 23), seed=1)
    b = sw.Builder("main")
    b.output(b.relu(b.dense(b.input("x", ("batch", 23), "f32"), w)), name="y")
    module = b.module()
    exe = sw.compile(module, threads=1)
    for rows in (0, 1, 3, 12, 40):
        x = random((rows, 23))
        np.testing.assert_allclose(exe(x), module.run_reference(x), rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize(
    "shapes",
    [
        ((5, 7), (7, 19)),
        ((1, 1), (1, 1)),
        ((3, 5, 7), (7, 19)),
        ((3, 5, 7), (3, 7, 4)),
        ((2, 1, 5, 7), (3, 7, 4)),
        ((4, 0), (0, 3)),
        ((13, 64), (64, 33)),
    ],
    ids=str,
)
def test_matmul(shapes: tuple[tuple[int, ...], tuple[int, ...]], all_tests: bool) -> None:
    every = all_tests or shapes[0] == (5, 7)
    check_all(
        (
            (lambda b, x, y: x @ y, [random(shapes[0], dtype), random(shapes[1], dtype, seed=1)])
            for dtype in (("f32", "f64", "f16", "i32") if every else ("f32",))
        ),
        levels=LEVELS if every else (3,),
    )


@pytest.mark.parametrize("symbolic", [False, True])
def test_dense_with_weights_at_run_time(symbolic: bool) -> None:
    shapes = (6, 11), (9, 11), (9,)
    check_all(
        (
            (
                lambda b, x, w, c: b.dense(x, w, c),
                [random(s, dtype, n) for n, s in enumerate(shapes)],
            )
            for dtype in ("f32", "f64")
        ),
        symbolic=symbolic,
    )


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("shape", [(5, 37), (1, 1), (3, 4, 18), (33, 2)], ids=str)
def test_softmax(name: str, shape: tuple[int, ...], all_tests: bool) -> None:
    every = all_tests or shape == (3, 4, 18)
    check_all(
        (
            (lambda b, x, axis=axis: getattr(b, name)(x, axis=axis), [random(shape) * 10])
            for axis in ((0, 1, -1) if every else (0, -1))
        ),
        levels=LEVELS if every else (3,),
    )


def test_softmax_with_symbolic_sizes(levels: tuple[int, ...]) -> None:
    agrees(lambda b, x: b.softmax(x), [random((5, 37))], symbolic=True, levels=levels)


REDUCTIONS = [
    (kind, dtype)
    for kind in ("sum", "mean", "max", "min", "prod")
    for dtype in ("f32", "f64", "i64")
    if (kind, dtype) != ("mean", "i64")  # which is not an integer
]


USUAL = [("sum", "f32"), ("max", "f64"), ("prod", "i64"), ("mean", "f32"), ("min", "i64")]


@pytest.mark.parametrize("case", cases(REDUCTIONS, USUAL), ids=str)
def test_reduce(case: tuple[str, str], all_tests: bool) -> None:
    kind, dtype = case
    x = random((6, 35), dtype)
    check_all(
        (
            (
                lambda b, x, axes=axes: b.reduce(x, kind, axes),
                [np.clip(x, -2, 2) if kind == "prod" else x],
            )
            for axes in ([0], [1], [0, 1], [-1])
        ),
        levels=LEVELS if all_tests or dtype == "f32" else [3],
    )


@pytest.mark.parametrize("shape", [(3, 5, 7), (2, 9, 56), (4, 3, 17), (2, 1, 5)], ids=str)
def test_reduce_short_rows_together(shape: tuple[int, ...], levels: tuple[int, ...]) -> None:
    x = random(shape)
    x[-1, 0, -1] = np.nan
    kinds = ("sum", "prod", "max", "min", "mean")
    programs = [lambda b, x, kind=kind: b.reduce(x, kind, [1, 2]) for kind in kinds]
    both = [(program, [inputs]) for program in programs for inputs in (x, -np.abs(x) - 1)]
    check_all(both, levels=levels)


@pytest.mark.parametrize("keepdims", [False, True])
def test_reduce_keeps_dimensions(keepdims: bool, levels: tuple[int, ...]) -> None:
    def program(b: sw.Builder, x: Value) -> Value:
        return b.reduce(x, "sum", [1], keepdims)

    check_all(((program, [random(s)]) for s in ((3, 4, 5), (3, 0, 5))), levels=levels)
    agrees(program, [random((3, 4, 5))], symbolic=True, levels=levels)


COMPARISONS: dict[str, Build] = {
    "equal": lambda b, x, y: b.equal(x, y),
    "less": lambda b, x, y: b.less(x, y),
    "less_equal": lambda b, x, y: b.less_equal(x, y),
    "greater": lambda b, x, y: b.greater(x, y),
    "greater_equal": lambda b, x, y: b.greater_equal(x, y),
}


@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons(name: str, levels: tuple[int, ...]) -> None:
    every = ("f32", "f64", "f16", "i8", "i32", "i64")
    programs: list[tuple[Build, list[np.ndarray]]] = []
    for dtype in every if levels == LEVELS or name == "less" else ("f32", "i64"):
        x, y = random((5, 37), dtype), random((37,), dtype, seed=1)
        x[2, :9] = y[:9]
        if dtype.startswith("f"):
            x[1, 3] = y[7] = np.nan
        programs += [(COMPARISONS[name], [x, y]), (COMPARISONS[name], [x[:, :1], y])]
    check_all(programs, levels=levels)


def test_logic() -> None:
    x, y = random((5, 37), "i1"), random((37,), "i1", seed=1)
    programs: list[Build] = [
        lambda b, x, y: b.logical_and(x, y),
        lambda b, x, y: b.logical_or(x, b.logical_not(y)),
        lambda b, x, y: b.equal(x, y),
    ]
    check_all((program, [x, y]) for program in programs)
    agrees(lambda b, x, y: b.logical_xor(x, y), [x, y], symbolic=True)


@pytest.mark.parametrize("symbolic", [False, True])
def test_where(symbolic: bool, all_tests: bool) -> None:
    def program(b: sw.Builder, c: Value, x: Value, y: Value) -> Value:
        return b.where(c, x, y)

    programs: list[tuple[Build, list[np.ndarray]]] = []
    for dtype in ("f32", "f64", "f16", "i8", "i64", "i1"):
        x, y = random((5, 37), dtype), random((37,), dtype, seed=1)
        conditions = [(5, 37)] if symbolic else [(5, 1), (0, 37)]
        programs += [(program, [random(c, "i1"), x if c[0] else x[:1], y]) for c in conditions]
    check_all(programs, symbolic=symbolic, levels=LEVELS if all_tests else (0 if symbolic else 3,))


def test_where_of_a_comparison() -> None:
    """The branch that is not taken may be NaN."""
    x = random((7, 33))
    agrees(lambda b, x: b.where(b.less(x, 0.0), x * 2.0, b.sqrt(x)), [x])


WHOLE = ("abs", "sign", "ceil", "floor", "round", "sin", "cos")


@pytest.mark.parametrize("name", WHOLE)
def test_signs_and_whole_numbers(name: str, levels: tuple[int, ...]) -> None:
    inputs: list[np.ndarray] = []
    every = levels == LEVELS or name in ("sign", "round", "sin")
    for dtype in ("f32", "f64", "f16") if every else ("f32",):
        halves = np.arange(-4, 4.5, 0.5, np.float32).astype(f"float{dtype[1:]}")
        special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0], halves.dtype)
        inputs += [random((5, 37), dtype) * 10, halves]
        inputs += [] if name in ("sin", "cos") else [special]
    check_all(((lambda b, x: getattr(b, name)(x), [x]) for x in inputs), levels=levels)


def test_scalar_kernels() -> None:
    """Elementwise operators at level 0, of one element type."""
    x, y = random((5, 37)), random((37,), seed=1)
    x[1, 3] = y[7] = np.nan
    programs: list[tuple[Build, list[np.ndarray]]] = [(p, [x]) for p in UNARY.values()]
    programs += [(p, [x, y]) for p in (BINARY | COMPARISONS).values()]
    programs += [(lambda b, x, name=name: getattr(b, name)(x), [x]) for name in WHOLE]
    check_all(programs, levels=(0,))


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64"])
def test_fmod(dtype: str) -> None:
    """It is exact, also where a quotient would be rounded."""
    special = [np.nan, np.inf, -np.inf, 0.0, -0.0, 5.3, -5.3, 3e4, -1.7, 0.1]
    a, b = random((5, 37), "f64") * 300, random((37,), "f64", seed=1)
    a[0], b[:10] = 4e4 * a[0] / np.abs(a[0]).max(), special
    a[1, :10], a[2:, :10] = special, np.array(special[5:8])[:, None]
    given = [x.astype(dtype_named(dtype)) for x in (a, b)]
    builder = sw.Builder()
    operands = [builder.input(name, x.shape, dtype) for name, x in zip("ab", given, strict=True)]
    builder.output(builder.fmod(*operands))
    with np.errstate(invalid="ignore"):
        want = np.fmod(*(x.astype(np.float64) for x in given)).astype(given[0].dtype)
    for run in (builder.module().run_reference, sw.compile(builder.module())):
        got = np.asarray(run(*given)).reshape(want.shape)
        np.testing.assert_array_equal(got.astype(np.float64), want.astype(np.float64))
        signs = [np.signbit(x) & (x == x) for x in (got, want)]
        np.testing.assert_array_equal(*signs)


def test_signs_of_integers() -> None:
    programs: list[tuple[Build, list[np.ndarray]]] = []
    for dtype in ("i8", "i32", "i64"):
        x = np.append(random((36,), dtype), np.iinfo(f"int{dtype[1:]}").min)
        x = x.astype(f"int{dtype[1:]}")
        programs += [(lambda b, x: b.abs(x), [x]), (lambda b, x: b.sign(x), [x])]
    check_all(programs)


CONVOLUTIONS: dict[str, tuple[list[tuple[int, ...]], dict[str, Any]]] = {
    "image": ([(2, 3, 9, 21), (5, 3, 3, 3), (5,)], {}),
    "many_filters": ([(1, 4, 6, 17), (33, 4, 3, 3)], {}),
    "strided": ([(2, 3, 9, 11), (7, 3, 3, 2), (7,)], {"strides": [2, 3]}),
    "dilated": ([(2, 3, 9, 11), (4, 3, 3, 2)], {"dilations": [2, 3]}),
    "groups": ([(2, 4, 7, 9), (6, 2, 3, 3), (6,)], {"groups": 2}),
    "depthwise": ([(2, 5, 7, 19), (5, 1, 3, 3)], {"groups": 5}),
    "points": ([(2, 5, 7, 3), (9, 5, 1, 1), (9,)], {}),
    "sequence": ([(3, 2, 17), (5, 2, 5)], {"strides": [3]}),
    "volume": ([(1, 2, 5, 6, 7), (3, 2, 2, 3, 2)], {"strides": [1, 2, 1]}),
    "one_place": ([(1, 3, 3, 3), (4, 3, 3, 3), (4,)], {}),
    "nothing": ([(0, 3, 5, 5), (4, 3, 3, 3)], {}),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_conv(name: str, all_tests: bool) -> None:
    shapes, attributes = CONVOLUTIONS[name]
    inputs = [random(shape, seed=i) for i, shape in enumerate(shapes)]
    weights = inputs[1:]
    check_all(
        [
            (lambda b, *v: b.relu(b.conv(*v, **attributes)), inputs),
            (lambda b, x: b.conv(x, *weights, **attributes), inputs[:1]),
        ],
        levels=LEVELS if all_tests or name == "image" else (3,),
    )


def test_conv_of_other_types(levels: tuple[int, ...]) -> None:
    programs: list[tuple[Build, list[np.ndarray]]] = []
    for dtype in ("f64", "f16", "i8", "i64"):
        x, w = (random(s, dtype, i) for i, s in enumerate([(2, 3, 5, 6), (4, 3, 3, 2)]))
        # Integers of few bits are summed up in i32.
        bias = random((4,), "i32" if dtype == "i8" else dtype, 2)
        programs.append((lambda b, x, w, c: b.conv(x, w, c), [x, w, bias]))
    check_all(programs, levels=levels)


def with_symbolic_batch(program: Build, shape: Sequence[int], levels: Sequence[int]) -> None:
    """Compile for any batch at these levels, and run batches of several sizes."""
    b = sw.Builder("main")
    b.output(program(b, b.input("x", ("batch", *shape), "f32")), name="y")
    module = b.module()
    for level in levels:
        exe = sw.compile(module, threads=1, opt_level=level)
        for batch in (0, 1, 3):
            x = random((batch, *shape))
            np.testing.assert_allclose(exe(x), module.run_reference(x), rtol=2e-5, atol=2e-5)


def test_residual_block_with_a_symbolic_batch(levels: tuple[int, ...]) -> None:
    w, v, c = random((5, 5, 3, 3), seed=1), random((5, 5, 3, 3), seed=2), random((5,), seed=3)

    def program(b: sw.Builder, x: Value) -> Value:
        h = b.relu(b.conv(b.pad(x, [0, 0, 1, 1], [0, 0, 1, 1]), w, c))
        h = b.conv(b.pad(h, [0, 0, 1, 1], [0, 0, 1, 1]), v)
        return b.pool(b.relu(h + x), "max", [2, 3], [2, 2])

    with_symbolic_batch(program, (5, 7, 9), levels)


@pytest.mark.parametrize("kind", ["sum", "mean", "max", "min", "prod"])
def test_pool(kind: str, all_tests: bool) -> None:
    programs: list[Build] = [
        lambda b, x: b.pool(x, kind, [3, 2], [2, 1], [1, 3]),
        lambda b, x: b.pool(b.relu(x), kind, [2]),
        lambda b, x: b.pool(x, kind, [2, 9, 21]),
    ]
    every = all_tests or kind == "max"
    usual = ("f32", "i8") if kind == "sum" else ("f32",)
    dtypes = ("f32", "f64", "f16", "i8", "i64") if every else usual
    arrays = [np.clip(random((2, 3, 9, 21), dtype), -2, 2) for dtype in dtypes]
    check_all(
        ((program, [x]) for x in arrays for program in programs),
        levels=LEVELS if all_tests else (0 if kind == "sum" else 3,),
    )


def test_pool_of_what_is_padded(levels: tuple[int, ...]) -> None:
    def program(b: sw.Builder, x: Value) -> Value:
        padded = b.pad(b.exp(x), [0, 0, 1, 1], [0, 0, 1, 1], -np.inf)
        return b.pool(padded, "max", [3, 3], [2, 2])

    agrees(program, [random((2, 3, 9, 21))])
    with_symbolic_batch(program, (3, 5, 6), levels)


PADS: dict[str, tuple[list[tuple[int, ...]], list[int], list[int]]] = {
    "both": ([(5, 37), (1, 1)], [2, 1], [0, 3]),
    "rows": ([(5, 37), (3, 8)], [2, 0], [1, 0]),
    "columns": ([(5, 37), (4, 1)], [0, 3], [0, 0]),
    "empty": ([(0, 3), (2, 0)], [2, 1], [0, 3]),
}


@pytest.mark.parametrize("name", PADS)
@pytest.mark.parametrize("symbolic", [False, True])
def test_pad(name: str, symbolic: bool, all_tests: bool) -> None:
    shapes, low, high = PADS[name]
    every = all_tests or name == "both"
    dtypes = ("f32", "f16", "i8", "i1") if every else ("f32",)
    arrays = [random(shape, dtype) for shape in shapes for dtype in dtypes]
    check_all(
        ((lambda b, x: b.pad(x, low, high, 1), [x]) for x in arrays),
        symbolic=symbolic,
        levels=LEVELS if all_tests else (0 if every and symbolic else 3,),
    )


def test_pad_fuses_what_comes_before(levels: tuple[int, ...]) -> None:
    """The reading of a broadcast operand stays inside of the guard as well."""

    def program(b: sw.Builder, x: Value, y: Value) -> Value:
        return b.relu(b.pad(x + y, [1, 2], [3, 1], -0.5)) * 2.0

    programs = [(program, [random((rows, 5)), random((5,), seed=1)]) for rows in (0, 1, 4)]
    check_all(programs, levels=levels)
    empty = (program, [random((4, 0)), random((0,))])
    check_all([*programs, empty], symbolic=True, levels=levels)


@pytest.mark.parametrize("mode", ["edge", "reflect", "wrap"])
def test_pad_with_what_is_there(mode: str, levels: tuple[int, ...]) -> None:
    agrees(lambda b, x: b.pad(-x, [1, 0, 3], [2, 0, 0], mode=mode), [random((3, 2, 17))])
    with_symbolic_batch(lambda b, x: b.pad(x, [0, 2], [0, 1], mode=mode), (5,), levels)


def test_layer_norm_as_it_is_composed(levels: tuple[int, ...]) -> None:
    def program(b: sw.Builder, x: Value) -> Value:
        centred = x - b.reduce(x, "mean", [1], True)
        variance = b.reduce(centred * centred, "mean", [1], True)
        return centred * b.rsqrt(variance + 1e-5)

    agrees(program, [random((7, 45))], levels=levels)
    agrees(program, [random((7, 45))], symbolic=True, levels=levels)


SHAPED: dict[str, tuple[Build, list[tuple[int, ...]]]] = {
    "transpose": (lambda b, x: b.transpose(x, [1, 0]), [(5, 37), (1, 3), (32, 48)]),
    "transpose3": (lambda b, x: b.transpose(x, [2, 0, 1]), [(3, 4, 18)]),
    "reshape": (lambda b, x: b.reshape(x, [-1, 6]), [(4, 9), (2, 3, 6), (6,)]),
    "reshape_keep": (lambda b, x: b.reshape(x, [0, -1]), [(4, 3, 3), (1, 2, 2)]),
    "slice": (lambda b, x: b.slice(x, [1, 30], [4, 3], [1, -2]), [(5, 37)]),
    "slice_empty": (lambda b, x: b.slice(x, [2, 0], [2, 5], [1, 1]), [(5, 37)]),
    "concat": (lambda b, x: b.concat([x, x * 2.0, x], axis=1), [(5, 7), (1, 1), (3, 16)]),
    "concat_rows": (lambda b, x: b.concat([x, -x], axis=0), [(5, 7), (0, 3)]),
    "broadcast_to": (lambda b, x: b.broadcast_to(x, [4, 5, 7]), [(5, 7), (1, 7), (7,)]),
}


@pytest.mark.parametrize("name", SHAPED)
def test_shaped(name: str, levels: tuple[int, ...]) -> None:
    program, shapes = SHAPED[name]
    fused: Build = lambda b, x: b.relu(program(b, b.neg(x)))  # noqa: E731
    both = [(build, [random(shape)]) for shape in shapes for build in (program, fused)]
    is_first = name in ("slice", "concat")
    check_all(both, levels=LEVELS if is_first else levels)


@pytest.mark.parametrize("name", ["transpose", "concat", "concat_rows"])
def test_shaped_with_symbolic_sizes(name: str, levels: tuple[int, ...]) -> None:
    agrees(SHAPED[name][0], [random((5, 7))], symbolic=True, levels=levels)


@pytest.mark.parametrize("index_type", ["i32", "i64"])
@pytest.mark.parametrize("axis", [0, 1])
def test_gather(axis: int, index_type: str) -> None:
    ids = np.array([[0, 3, -1], [2, 2, -4]]).astype(f"int{index_type[1:]}")
    agrees(
        lambda b, x, i: b.gather(x, i, axis=axis),
        [random((4, 19)).T if axis else random((4, 19)), ids][::1],
    )


@pytest.mark.slow  # test_bad_input.py has a quick one
def test_gather_out_of_range() -> None:
    module = build(
        lambda b, x, i: b.gather(x, i, axis=0), [random((4, 3)), np.zeros(2, np.int64)], False
    )
    exe = sw.compile(module, threads=1)
    with pytest.raises(sw.InputError, match="index out of range"):
        exe(random((4, 3)), np.array([0, 4]))
    with pytest.raises(sw.InputError, match="index out of range"):
        exe(random((4, 3)), np.array([-5, 0]))


def test_indices_of_two_tables_are_checked_against_both(levels: tuple[int, ...]) -> None:
    long, short, ids = random((9, 3)), random((4, 3), seed=1), np.array([3, 0], np.int64)

    def program(b: sw.Builder, x: Value, y: Value, i: Value) -> Value:
        return b.gather(x, i, axis=0) + b.gather(y, i, axis=0)

    for symbolic in (False, True):
        agrees(program, [long, short, ids], symbolic=symbolic, levels=levels)
        exe = sw.compile(build(program, [long, short, ids], symbolic), threads=1)
        with pytest.raises(sw.InputError, match=r"index out of range at position 1.*got 5"):
            exe(long, short, np.array([0, 5]))


def test_indices_into_a_sparse_product(levels: tuple[int, ...]) -> None:
    inputs = [sparse(11, 9), random((9, 3), seed=1), np.array([10, -11, 0], np.int64)]

    def program(b: sw.Builder, a: Value, x: Value, i: Value) -> Value:
        return b.gather(b.spmm(a, x), i, axis=0)

    agrees(program, inputs, symbolic=True, levels=levels)
    exe = sw.compile(build(program, inputs, True), threads=1)
    with pytest.raises(sw.InputError, match="index out of range"):
        exe(*inputs[:2], np.array([0, 11, 0]))


CASTS = ["f32", "f64", "f16", "i8", "i32", "i64", "i1"]


@pytest.mark.parametrize("source", CASTS)
def test_cast(source: str, levels: tuple[int, ...]) -> None:
    check_all(
        (
            (lambda b, x, target=target: b.cast(x, target), [random((3, 21), source)])
            for target in CASTS
        ),
        levels=LEVELS if source == "f32" else levels,
    )


def test_cast_rounds_to_half() -> None:
    agrees(lambda b, x: b.cast(b.cast(x, "f16"), "f32") + 0.0, [random((40,)) * 1000])


def test_batch_norm() -> None:
    scale, bias, mean = random((6,), seed=1), random((6,), seed=2), random((6,), seed=3)
    variance = np.abs(random((6,), seed=4)) + 0.1
    check_all(
        (lambda b, x: b.batch_norm(x, scale, bias, mean, variance), [random(shape)])
        for shape in ((3, 6), (2, 6, 5))
    )


def sparse(rows: int, columns: int, dtype: str = "f32", density: float = 0.3) -> csr_array:
    """A CSR matrix with empty rows, 32-bit indices and entries of both signs."""
    dense = random((rows, columns), dtype)
    rng = np.random.default_rng(5)
    dense[rng.random((rows, columns)) > density] = 0
    dense[: rows // 3] = 0
    result = csr_array(dense)
    result.indptr, result.indices = result.indptr.astype(np.int32), result.indices.astype(np.int32)
    return result


@pytest.mark.parametrize(
    "case",
    cases([*itertools.product(["f32", "f64"], [False, True])], [("f32", True), ("f64", False)]),
    ids=str,
)
def test_spmm(case: tuple[str, bool], levels: tuple[int, ...]) -> None:
    dtype, symbolic = case
    check_all(
        (
            (
                lambda b, a, x: b.relu(b.spmm(a, x)),
                [sparse(11, 9, dtype), random((9, width), dtype, 1)],
            )
            for width in (1, 3, 7, 16, 17, 40, 130)
        ),
        symbolic=symbolic,
        levels=LEVELS if symbolic else levels,
    )


def test_spmm_without_entries(levels: tuple[int, ...]) -> None:
    empty = csr_array((5, 9), dtype=np.float32)
    empty.indptr, empty.indices = empty.indptr.astype(np.int32), empty.indices.astype(np.int32)
    agrees(lambda b, a, x: b.spmm(a, x), [empty, random((9, 4))], levels=levels)
    none = csr_array((0, 9), dtype=np.float32)
    none.indptr, none.indices = none.indptr.astype(np.int32), none.indices.astype(np.int32)
    agrees(lambda b, a, x: b.spmm(a, x), [none, random((9, 4))], symbolic=True, levels=levels)


@pytest.mark.parametrize(
    "case",
    cases(
        [*itertools.product(["symmetric", "row"], [False, True])],
        [("symmetric", True), ("row", False)],
    ),
    ids=str,
)
def test_normalized_product(case: tuple[str, bool], levels: tuple[int, ...]) -> None:
    kind, self_loops = case
    a = abs(sparse(10, 10))

    def program(b: sw.Builder, a: Value, x: Value) -> Value:
        return b.spmm(b.normalize(a, kind=kind, self_loops=self_loops), x)

    inputs, is_sum = [a, random((10, 5), seed=1)], kind == "row"
    agrees(program, inputs, symbolic=is_sum)
    if levels == LEVELS:
        agrees(program, inputs, symbolic=not is_sum)


def test_degrees() -> None:
    a = abs(sparse(10, 10))
    programs: list[Build] = [
        lambda b, a: b.degree(a, self_loops=True, power=-0.5),
        lambda b, a: b.degree(a),
        lambda b, a: b.missing_self_loops(a),
    ]
    check_all((program, [a]) for program in programs)


def test_the_hidden_row_of_a_graph_convolution(levels: tuple[int, ...]) -> None:
    w, bias = random((16, 7), seed=1), random((16,), seed=2)

    def program(b: sw.Builder, a: Value, x: Value) -> Value:
        return b.log_softmax(b.relu(b.spmm(a, x) + bias) @ w)

    agrees(program, [sparse(13, 13), random((13, 16), seed=3)], levels=levels)
    agrees(program, [sparse(13, 13), random((13, 16), seed=3)], symbolic=True, levels=levels)


def test_several_results_and_shared_values() -> None:
    b = sw.Builder("main")
    x = b.input("x", ("n", 9), "f32")
    h = b.relu(x)
    b.output(h, name="h")
    b.output(b.softmax(h) + h, name="p")
    b.output(x, name="same")
    module = b.module()
    exe = sw.compile(module, threads=1)
    for rows in (0, 1, 6):
        value = random((rows, 9))
        for result, expected in zip(exe(value), module.run_reference(value), strict=True):
            np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)


def test_remaining_rows_of_products(all_tests: bool) -> None:
    """Those of small tiles are computed by a masked one, of others by one for each number."""
    b = sw.Builder("main")
    x = b.input("x", ("n", 8), "f32")
    weights = [random(shape, seed=1) / 4 for shape in ((16, 8), (7, 16), (80, 7))]
    for weight in weights:
        x = b.relu(b.dense(x, weight))
    b.output(b.dense(x, random((5, 80), seed=2) / 8))
    module = b.module()
    for threads in (1, 2) if all_tests else (2,):
        exe = sw.compile(module, threads=threads)
        traces = exe.ir("scheduled")
        assert "tail=split" in traces
        assert "tail=cases" in traces
        for rows in (*range(18), 1000):
            x = random((rows, 8), seed=rows)
            np.testing.assert_allclose(exe(x), module.run_reference(x), rtol=1e-5, atol=1e-5)
