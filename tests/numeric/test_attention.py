"""Attention block by block: compiled against its reference, and that against a plain formula."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper

import stepwell as sw
from stepwell.core.dtypes import element_type_of
from stepwell.dialects.graph.ops.products import attention_cuts as cut
from stepwell.driver.compilation import Compilation
from stepwell.driver.request import Request

from ..harness import RNG, cases, close, onnx_results

SMALL = {"ROWS": 8, "KEYS": 16, "FEW_KEYS": 16, "LEAST_KEYS": 16, "MOST_KEYS": 16}
"""Tiles and blocks of which short rows have several."""


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, size in SMALL.items():
        monkeypatch.setattr(cut, name, size)
    # The tiles have the number of rows in a name of their own.
    monkeypatch.setattr("stepwell.dialects.graph.ops.products.attention_tiles.ROWS", SMALL["ROWS"])


@dataclass
class Shape:
    """The shapes of q, k and v."""

    batch: tuple[int, ...] = (2,)
    heads: int = 2
    shared: int = 1
    queries: int = 5
    keys: int = 7
    width: int = 4
    values: int = 3

    def arrays(self, dtype: Any = np.float32) -> list[np.ndarray]:
        """q, k and v."""
        every = (
            (self.heads * self.shared, self.queries, self.width),
            (self.heads, self.keys, self.width),
            (self.heads, self.keys, self.values),
        )
        return [2 * RNG.standard_normal((*self.batch, *own)).astype(dtype) for own in every]


@dataclass
class Case:
    """Operands that are not always there, and properties."""

    mask: np.ndarray | None = None
    lengths: np.ndarray | None = None
    properties: dict[str, Any] = field(default_factory=dict[str, Any])


def program(arrays: list[np.ndarray], case: Case, symbolic: bool = False) -> sw.Module:
    b = sw.Builder("main")

    def given(name: str, array: np.ndarray, sizes: list[Any]) -> Any:
        return b.input(name, sizes if symbolic else array.shape, str(element_type_of(array.dtype)))

    q, k, v = arrays
    n = q.ndim
    batch = [f"b{i}" for i in range(n - 3)]
    values = [given("q", q, [*batch, q.shape[-3], "l", q.shape[-1]])]
    for name, x in (("k", k), ("v", v)):
        values.append(given(name, x, [*batch, x.shape[-3], "s", x.shape[-1]]))
    extra: dict[str, Any] = {}
    if case.mask is not None:
        every = [*batch, q.shape[-3], "l", "s"][n - case.mask.ndim :]
        sizes = [1 if size == 1 else own for size, own in zip(case.mask.shape, every, strict=True)]
        extra["mask"] = given("m", case.mask, sizes)
    if case.lengths is not None:
        extra["lengths"] = given("n", case.lengths, batch)
    b.output(b.attention(*values, **extra, **case.properties), name="y")
    return b.module()


def inputs(arrays: list[np.ndarray], case: Case) -> list[np.ndarray]:
    return [*arrays, *(x for x in (case.mask, case.lengths) if x is not None)]


def compiled_as_reference(
    arrays: list[np.ndarray], case: Case, threads: int = 1, symbolic: bool = False
) -> None:
    module = program(arrays, case, symbolic)
    want = module.run_reference(*inputs(arrays, case))
    compare(sw.compile(module, threads=threads)(*inputs(arrays, case)), want)


def compare(got: Any, want: Any) -> None:
    # Sums of some dozens of products of numbers around 2; halves are rounded once.
    close(got, want, {"float64": 1e-13, "float32": 1e-5}.get(want.dtype.name, 2e-2))


def plain(q: np.ndarray, k: np.ndarray, v: np.ndarray, scores: Any) -> np.ndarray:
    """Attention, query by query, in f64; `scores` changes those of a query."""
    y = np.zeros((*q.shape[:-1], v.shape[-1]))
    shared = q.shape[-3] // k.shape[-3]
    for *batch, head, query in np.ndindex(*q.shape[:-1]):
        own = (*batch, head // shared)
        row = scores((*batch, head, query), k[own].astype(float) @ q[(*batch, head, query)])
        kept = np.flatnonzero(~np.isneginf(row))
        if len(kept):
            e = np.exp(row[kept] - row[kept].max())
            y[(*batch, head, query)] = e @ v[own][kept] / e.sum()
    return y


def test_reference_is_the_plain_formula() -> None:
    shape = Shape(batch=(2,), heads=2, shared=3, queries=6, keys=5)
    q, k, v = shape.arrays(np.float64)
    mask = RNG.random((6, 1, 5)) < 0.8
    lengths = np.array([5, 3])
    properties = {"scale": 0.5, "softcap": 2.0, "left": 1, "right": 0, "at_end": True, "safe": True}

    def scores(at: Any, row: np.ndarray) -> np.ndarray:
        batch, head, query = at
        place = query + lengths[batch] - 6
        kept = [
            key < lengths[batch] and place - 1 <= key <= place and mask[head, 0, key]
            for key in range(5)
        ]
        return np.where(kept, 2 * np.tanh(row * 0.5 / 2), -np.inf)

    module = program([q, k, v], Case(mask, lengths, properties))
    close(module.run_reference(q, k, v, mask, lengths), plain(q, k, v, scores), 1e-12)


WINDOWS = [
    {},
    {"right": 0, "at_end": True},
    {"left": 3, "right": 2, "softcap": 1.5, "safe": True},
]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("window", cases(WINDOWS, WINDOWS[2:]))
def test_tiles_and_blocks_of_symbolic_sizes(window: dict[str, Any]) -> None:
    case = Case(properties={"scale": 0.3, **window})
    shape = Shape(shared=2)
    module = program(shape.arrays(), case, symbolic=True)
    exe = sw.compile(module, threads=2)
    sizes = [(1, 1, 1), (2, 8, 16), (1, 9, 17), (3, 3, 40), (1, 21, 33), (2, 0, 5), (2, 5, 0)]
    for batch, queries, keys in [*sizes, (0, 2, 3)]:
        arrays = Shape((batch,), shared=2, queries=queries, keys=keys).arrays()
        compare(exe(*arrays), module.run_reference(*arrays))


@pytest.mark.slow
@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("keys", "window"),
    [(48, {"right": 0}), (16, {}), (53, {"left": 1})],
)
def test_tiles_and_blocks_of_known_sizes(keys: int, window: dict[str, Any]) -> None:
    shape = Shape(batch=(), heads=3, queries=19, keys=keys, width=5, values=17)
    compiled_as_reference(shape.arrays(), Case(properties={"scale": 0.4, **window}), threads=2)


@pytest.mark.slow
@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_element_types(dtype: Any) -> None:
    shape = Shape(queries=9, keys=37)
    mask = RNG.standard_normal((9, 37)).astype(dtype)
    compiled_as_reference(shape.arrays(dtype), Case(mask, properties={"scale": 0.5}))


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("shape", "added", "safe", "symbolic"),
    [
        ((9, 1), False, False, False),
        pytest.param((37,), True, True, True, marks=pytest.mark.slow),
        pytest.param((2, 1, 1, 37), False, True, True, marks=pytest.mark.slow),
        pytest.param((4, 9, 37), True, False, False, marks=pytest.mark.slow),
    ],
)
def test_masks(shape: tuple[int, ...], added: bool, safe: bool, symbolic: bool) -> None:
    arrays = Shape(shared=2, queries=9, keys=37).arrays()
    mask = RNG.random(shape) < 0.5
    mask.reshape(-1)[: shape[-1]] = False
    if added:
        mask = np.where(mask, RNG.standard_normal(shape), -np.inf).astype(np.float32)
    compiled_as_reference(
        arrays, Case(mask, properties={"scale": 0.5, "safe": safe}), symbolic=symbolic
    )


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("symbolic", "window"),
    [
        pytest.param(False, {}, marks=pytest.mark.slow),
        (False, {"right": 0, "at_end": True}),
        pytest.param(True, {"right": 0, "at_end": True}, marks=pytest.mark.slow),
    ],
)
def test_lengths(symbolic: bool, window: dict[str, Any]) -> None:
    arrays = Shape(batch=(5,), queries=3, keys=40).arrays()
    lengths = np.array([0, 1, 16, 39, 41])
    module = program(arrays, Case(None, lengths, {"safe": True, **window}), symbolic)
    exe, want = sw.compile(module, threads=1), module.run_reference(*arrays, lengths)
    compare(exe(*arrays, lengths), want)
    # What is behind the end of a row is not read.
    for array in arrays[1:]:
        for number, length in enumerate(lengths):
            array[number, :, length:] = np.nan
    compare(exe(*arrays, lengths), want)
    with pytest.raises(sw.StepwellError):
        exe(*arrays, lengths[:4])


@pytest.mark.usefixtures("small")
def test_scores_that_are_no_numbers_and_large_ones() -> None:
    q, k, v = Shape(batch=(1,), queries=7, keys=40).arrays()
    q[0, 0, 0], q[0, 0, 1, 2], q[0, 0, 2, 1], q[0, 1, 3] = 1e4, np.nan, np.inf, -1e30
    k[0, 1, 5], k[0, 1, 30, 2] = -1e30, np.nan
    compiled_as_reference([q, k, v], Case(properties={"scale": 1.0}))


def test_large_tiles() -> None:
    compiled_as_reference(
        Shape((1,), 2, 1, 130, 300, 64, 64).arrays(), Case(properties={"scale": 0.125}), 2
    )
    compiled_as_reference(
        Shape((1,), 2, 4, 1, 200, 64, 64).arrays(), Case(properties={"scale": 0.125})
    )


def test_one_kernel_without_a_matrix_of_scores() -> None:
    b = sw.Builder("main")
    q, k, v = (b.input(name, (1, 12, 512, 64), "f32") for name in "qkv")
    b.output(b.relu(b.attention(b.tanh(q), k, v, scale=0.125)), name="y")
    exe = sw.compile(b.module(), threads=1)
    text = exe.ir("scheduled")
    assert text.count("loop.kernel") == 1
    assert "512x512" not in text
    assert text.count("math.tanh") == 1
    # 128 queries, 128 keys, and the scores; f32
    assert "a tile and its blocks are in 194 KiB of local buffers" in str(exe.explain())


def around_a_softmax(lowest: float | None, batch: Any, length: Any, keys: Any) -> sw.Module:
    b = sw.Builder("main")
    q, k = b.input("q", (batch, 2, length, 8), "f32"), b.input("k", (batch, 2, keys, 8), "f32")
    v, m = b.input("v", (batch, 2, keys, 3), "f32"), b.input("m", (batch, 1, 1, keys), "f32")
    scores = b.div(b.matmul(q, b.transpose(k, permutation=(0, 1, 3, 2))), np.float32(2))
    if lowest is None:
        scores = b.add(m, scores)
    else:
        scores = b.where(b.greater(m, np.float32(0)), scores, np.float32(lowest))
    shares = b.softmax(scores, axis=-1)
    if lowest == -np.inf:
        is_nan = b.logical_not(b.equal(shares, shares))
        shares = b.where(is_nan, np.float32(0), shares)
    b.output(b.matmul(shares, v), name="y")
    return b.module()


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    "lowest", [None, *(pytest.param(x, marks=pytest.mark.slow) for x in (-np.inf, -3e38))]
)
def test_products_around_a_softmax(lowest: float | None, all_tests: bool) -> None:
    """Without `lowest` a mask is added, else that number takes the place of scores."""
    module = around_a_softmax(lowest, "b", "l", "s")
    assert "graph.attention" in Compilation.of(Request(module, threads=1)).text("optimized")
    mask = RNG.standard_normal((2, 1, 1, 130)).astype(np.float32)
    mask[1] = -1
    arrays = [*Shape(queries=40, keys=130, width=8).arrays(), mask]
    want = module.run_reference(*arrays)
    for sizes in (("b", "l", "s"), (2, 40, 130)) if all_tests else ((2, 40, 130),):
        exe = sw.compile(around_a_softmax(lowest, *sizes), threads=1)
        compare(exe(*arrays), want)


def onnx_attention(results: list[str]) -> ModelProto:
    """A causal attention in f16; where the scores are a result, ONNX's definition is compiled."""
    sizes = [1, 2, 24, 8]
    kinds = [helper.make_tensor_value_info(n, TensorProto.FLOAT16, sizes) for n in "qkv"]
    node = helper.make_node("Attention", ["q", "k", "v"], results, is_causal=1)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT16, sizes)
    graph = helper.make_graph([node], "g", kinds, [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11)


def test_halves_are_nearer_to_the_formula_than_the_data_of_onnx() -> None:
    # Its reference rounds to f16 after each operator.
    model, defined = onnx_attention(["y"]), onnx_attention(["y", "", "", "scores"])
    q, k, v = RNG.random((3, 1, 2, 24, 8)).astype(np.float16)

    def scores(at: Any, row: np.ndarray) -> np.ndarray:
        return np.where(np.arange(24) <= at[2], row / np.sqrt(8), -np.inf)

    wide = [x.astype(np.float64) for x in (q, k, v)]
    want = plain(wide[0], wide[1], wide[2], scores)

    def error(y: Any) -> float:
        return float(np.abs(np.asarray(y).astype(float) - want).max())

    (given,) = onnx_results(model, q, k, v)
    own, by_definition = (sw.from_onnx(m) for m in (model, defined))
    assert "graph.attention" in own.text()
    assert "graph.attention" not in by_definition.text()
    assert error(own.run_reference(q, k, v)) < error(given) / 1.5
    assert error(sw.compile(own, threads=1)(q, k, v)) < error(given) / 1.5
    assert error(by_definition.run_reference(q, k, v)) <= error(given)
