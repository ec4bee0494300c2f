"""A dense layer of few columns and what reads its rows again are one kernel of register tiles."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

import stepwell as sw
from stepwell.driver.compilation import Compilation
from stepwell.driver.request import Request
from stepwell.frontends.builder import Value

from ..harness import RNG, as_reference, cases, close

Rows = Callable[[sw.Builder, Value, np.ndarray], Value]

DEPTH = 5


def softmax(b: sw.Builder, x: Value, scale: np.ndarray) -> Value:
    return b.softmax(x, axis=-1)


def log_softmax(b: sw.Builder, x: Value, scale: np.ndarray) -> Value:
    return b.log_softmax(b.relu(x), axis=-1)


def layer_norm(b: sw.Builder, x: Value, scale: np.ndarray) -> Value:
    return b.layer_norm(b.relu(x), b.constant(scale), b.constant(scale), epsilon=1e-2)


def rms_norm(b: sw.Builder, x: Value, scale: np.ndarray) -> Value:
    return b.rms_norm(x, b.constant(scale), epsilon=1e-2)


FORMS = [softmax, log_softmax, layer_norm, rms_norm]


def id_of(case: object) -> str | None:
    """The names of the functions of a case."""
    parts = case if isinstance(case, tuple) else (case,)
    return "-".join(part.__name__ if callable(part) else str(part) for part in parts)


def module_of(form: Rows, rows: int | str, columns: int, dtype: str = "f32") -> sw.Module:
    """A dense layer with a bias, and `form` of its rows."""
    b = sw.Builder("main")

    def weights(*shape: int) -> np.ndarray:
        values = RNG.uniform(-1, 1, shape)
        return values.astype({"f32": np.float32, "f64": np.float64}.get(dtype, np.float32))

    arrays = [weights(columns, DEPTH), weights(columns), weights(columns)]
    w, bias, scale = arrays
    x = b.input("x", (rows, DEPTH), dtype)
    b.output(form(b, b.dense(x, b.constant(w), b.constant(bias)), scale))
    return b.module()


def one_kernel(exe: sw.Executable) -> sw.Executable:
    """The program, whose only kernel computes some rows at a time."""
    text = exe.ir("scheduled")
    assert text.count("loop.kernel @") == 1
    assert f"memref<1x{DEPTH}x" in text or "distribute(" in text
    return exe


def near_reference(exe: sw.Executable, module: sw.Module, rows: int, dtype: str = "f32") -> None:
    """Compare a program of some rows with the reference."""
    x = RNG.uniform(-2, 2, (rows, DEPTH)).astype(dtype.replace("f", "float"))
    # A few dozen terms of size 1, in another order.
    close(exe(x), module.run_reference(x), 2e-5 if dtype == "f32" else 1e-10)


KNOWN = list(itertools.product(FORMS, (10, 16, 64), (1, 2, 65)))
USUAL = [(softmax, 10, 1), (softmax, 16, 65), (log_softmax, 10, 2), (layer_norm, 64, 65)]


@pytest.mark.parametrize("case", cases(KNOWN, [*USUAL, (rms_norm, 16, 1)]), ids=id_of)
def test_known_rows(case: tuple[Rows, int, int]) -> None:
    form, columns, rows = case
    module = module_of(form, rows, columns)
    near_reference(one_kernel(sw.compile(module, threads=1)), module, rows)


SIZES = [(3, "f32"), (17, "f64"), (40, "f32")]
ANY = [(form, *size) for form in FORMS for size in SIZES]
ANY_USUAL = [(softmax, *SIZES[0]), (log_softmax, *SIZES[1]), (layer_norm, *SIZES[2])]


@pytest.mark.parametrize("case", cases(ANY, ANY_USUAL), ids=id_of)
def test_any_rows(case: tuple[Rows, int, str]) -> None:
    form, columns, dtype = case
    module = module_of(form, "n", columns, dtype)
    exe = one_kernel(sw.compile(module, threads=1))
    for rows in (0, 1, 2, 7, 64, 65, 600):
        near_reference(exe, module, rows, dtype)


TILED = list(itertools.product(["x86-64", "x86-64-v3", "x86-64-v4"], [1500, "n"]))


@pytest.mark.parametrize("case", cases(TILED, [("x86-64-v3", "n")]), ids=id_of)
def test_threads_take_tiles_of_rows(case: tuple[str, int | str]) -> None:
    target, rows = case
    module = module_of(layer_norm, rows, 40)
    try:
        exe = sw.compile(module, target=target, threads=2)
    except sw.TargetError as error:
        pytest.skip(str(error))
    assert "tiles(i0" in exe.ir("scheduled")
    near_reference(one_kernel(exe), module, 1500)


def test_matrices_that_come_with_the_call() -> None:
    """Those of a batch, whose columns are contiguous."""
    b = sw.Builder("main")
    x, w = b.input("x", (2, "n", DEPTH)), b.input("w", (2, DEPTH, 10))
    b.output(b.softmax(b.matmul(x, w), axis=-1))
    module = b.module()
    exe = sw.compile(module, threads=1)
    arrays = [RNG.uniform(-2, 2, shape).astype(np.float32) for shape in ((2, 13, 5), (2, 5, 10))]
    assert "distribute(" in one_kernel(exe).ir("scheduled")
    # Sums of ten terms of size 1.
    close(exe(*arrays), module.run_reference(*arrays), 2e-5)


def test_half_precision_has_one_kernel_too() -> None:
    b = sw.Builder("main")
    w = RNG.uniform(-1, 1, (10, DEPTH)).astype(np.float16)
    b.output(b.softmax(b.dense(b.input("x", (7, DEPTH), "f16"), b.constant(w)), axis=-1))
    module = b.module()
    exe = sw.compile(module, threads=1)
    x = RNG.uniform(-2, 2, (7, DEPTH)).astype(np.float16)
    assert exe.ir("fused").count("graph.primitive") == 1
    # The reference rounds the product to 11 bits.
    close(exe(x), module.run_reference(x), 5e-3, atol=1e-3)


def test_what_is_cheap_to_make_of_a_staged_row_is_not_staged_too() -> None:
    """A layer norm keeps the row, not its differences from the mean, nor their squares."""
    kernel = Compilation.of(Request(module_of(layer_norm, 64, 40), threads=1)).text("kernels")
    assert kernel.count("loop.local") == 1


def scaled(b: sw.Builder, y: Value, h: Value, columns: np.ndarray) -> Value:
    return b.mul(y, np.float32(2))


def subtracted(b: sw.Builder, y: Value, h: Value, columns: np.ndarray) -> Value:
    return b.sub(np.float32(1), y)


def residual(b: sw.Builder, y: Value, h: Value, columns: np.ndarray) -> Value:
    return b.relu(b.add(y, h))


def by_columns(b: sw.Builder, y: Value, h: Value, columns: np.ndarray) -> Value:
    return b.mul(y, columns)


def chosen(b: sw.Builder, y: Value, h: Value, columns: np.ndarray) -> Value:
    return b.where(b.greater(h, columns), y, columns)


def of_several_rows(b: sw.Builder, y: Value, h: Value, columns: np.ndarray) -> Value:
    return b.add(y, np.stack([columns, columns, columns]))


CONSUMERS = [scaled, subtracted, residual, by_columns, chosen, of_several_rows]


def followed(
    consumer: Callable[..., Value], form: Rows, batch: tuple[int, ...], product: bool
) -> sw.Module:
    """A consumer that broadcasts, after `form` of rows of a product or of an input."""
    w, columns = RNG.uniform(-1, 1, (4, DEPTH)), RNG.uniform(-1, 1, 4)
    b = sw.Builder("main")
    h = b.input("x", (*batch, DEPTH if product else 4))
    if product:
        h = b.dense(h, b.constant(w.astype(np.float32)))
    columns = columns.astype(np.float32)
    b.output(consumer(b, form(b, h, columns), h, columns))
    return b.module()


FOLLOWED = list(itertools.product(CONSUMERS, FORMS))
EACH_ONCE = list(zip(CONSUMERS, FORMS + FORMS[:2], strict=True))
BATCHES = [((1,), True), ((2, 1), True), ((1, 3), False)]
"""Shapes of rows, and whether they are of a product."""


@pytest.mark.parametrize("case", cases(FOLLOWED, EACH_ONCE), ids=id_of)
def test_dimensions_of_size_1_before_what_broadcasts(
    case: tuple[Callable[..., Value], Rows], all_tests: bool
) -> None:
    """In quick tests each consumer is left out after one of the shapes."""
    consumer, form = case
    left_out = None if all_tests else CONSUMERS.index(consumer) % 3
    for number, (batch, product) in enumerate(BATCHES):
        if number == left_out:
            continue
        module = followed(consumer, form, batch, product)
        shape = (*batch, DEPTH if product else 4)
        x = RNG.uniform(-2, 2, shape).astype(np.float32)
        # Sums of five terms of size 1.
        as_reference(module, x, rtol=2e-5, threads=1)


ONE_ROW = list(itertools.product([scaled, residual, by_columns], FORMS))
ONE_ROW_USUAL = list(zip([scaled, residual, by_columns, scaled], FORMS, strict=True))


@pytest.mark.parametrize("case", cases(ONE_ROW, ONE_ROW_USUAL), ids=id_of)
def test_one_row_is_computed_once_whatever_broadcasts(
    case: tuple[Callable[..., Value], Rows],
) -> None:
    """The sums and buffers are those of any other number of rows."""
    consumer, form = case
    one, more = (
        Compilation.of(Request(followed(consumer, form, (rows,), True), threads=1)).text("kernels")
        for rows in (1, 3)
    )
    for word in ("loop.local", "math.fma", "math.exp"):
        assert one.count(word) == more.count(word)
