"""A row's result has the same bits on any number of threads, wherever it lies, beside any rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from scipy.sparse import block_diag, csr_array

import stepwell as sw
from stepwell.core import processor
from stepwell.frontends import gnn

from ..harness import cases

Program = Callable[[sw.Builder, Any], Any]
ROWS = 41
ODD = (1, 2, 3, 7, 16, 29)
"""Sizes of batches, which end in different remainders."""


def normal(*shape: int, seed: int = 1) -> np.ndarray:
    """Weights."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def perceptron(b: sw.Builder, x: Any) -> Any:
    h = b.gelu(b.dense(x, normal(37, 101), normal(37)))
    return b.softmax(b.dense(h, normal(10, 37)))


def cell(b: sw.Builder, x: Any) -> Any:
    p = b.matmul(x, normal(101, 44)) + normal(44)
    i, f = (b.slice(p, starts=[0, n], ends=[2**63 - 1, n + 22]) for n in (0, 22))
    return b.tanh(i) * b.sigmoid(f)


MATRIX, IMAGE, HEADS = (101,), (4, 9, 9), (2, 13, 8)
# Of fewer rows than a tile a product has several partial sums of each element, since one would wait
# for itself.
PRODUCTS = frozenset({"dense", "perceptron", "cell"})
"""Programs whose rows may differ in the last places in smaller batches."""
LARGEST_TILE = 16
"""No tile of any target has more rows."""

PROGRAMS: dict[str, tuple[tuple[int, ...], Program]] = {
    "functions": (MATRIX, lambda b, x: b.exp(x) + b.log(b.abs(x)) * b.tanh(x) - b.erf(x)),
    "libm": (MATRIX, lambda b, x: b.sin(x) + b.atan(x) * b.cosh(x)),
    "pow": (MATRIX, lambda b, x: b.pow(b.abs(x), x)),
    "softmax": (MATRIX, lambda b, x: b.softmax(x)),
    "log_softmax": (MATRIX, lambda b, x: b.log_softmax(x)),
    "layer_norm": (MATRIX, lambda b, x: b.layer_norm(x, normal(101), normal(101))),
    "rms_norm": (MATRIX, lambda b, x: b.rms_norm(x)),
    "l2_normalize": (MATRIX, lambda b, x: b.l2_normalize(x)),
    "sum": (MATRIX, lambda b, x: b.reduce(x, "sum", axes=[1])),
    "product": (MATRIX, lambda b, x: b.reduce(x, "prod", axes=[1])),
    "cumulative": (MATRIX, lambda b, x: b.cumulative(x, "sum", axis=1)),
    "dense": (MATRIX, lambda b, x: b.dense(x, normal(33, 101), normal(33))),
    "dense of one column": (MATRIX, lambda b, x: b.dense(x, normal(1, 101))),
    "perceptron": (MATRIX, perceptron),
    "cell": (MATRIX, cell),
    "conv": (IMAGE, lambda b, x: b.relu(b.conv(x, normal(17, 4, 3, 3), normal(17)))),
    "pool": (IMAGE, lambda b, x: b.pool(x, "mean", window=[3, 3], strides=[2, 2])),
    "instance_norm": (IMAGE, lambda b, x: b.instance_norm(x, normal(4), normal(4))),
    "group_norm": (IMAGE, lambda b, x: b.group_norm(x, 2)),
    "means of planes": (IMAGE, lambda b, x: b.reduce(x, "mean", axes=[2, 3])),
    "attention": (HEADS, lambda b, x: b.attention(x, x, x, scale=0.3)),
    "matmul of batches": (HEADS, lambda b, x: b.matmul(x, b.transpose(x, [0, 1, 3, 2]))),
}


def compiled(programs: Sequence[str], threads: int) -> sw.Executable:
    """Programs in one module, each with an input and a result of its own."""
    b = sw.Builder("main")
    for number, name in enumerate(programs):
        shape, program = PROGRAMS[name]
        x = b.input(f"x{number}", ("n", *shape), "f32")
        b.output(program(b, x), name=f"y{number}")
    return sw.compile(b.module(), threads=threads)


OTHERS = (
    *("perceptron", "log_softmax", "rms_norm", "l2_normalize", "product", "dense of one column"),
    *("instance_norm", "means of planes"),
)
"""Programs that are compiled as those above that are like them."""
SETS = [
    pytest.param([name for name in PROGRAMS if name not in OTHERS], id="usual"),
    pytest.param(OTHERS, id="others", marks=pytest.mark.slow),
]


@pytest.fixture(scope="module", params=SETS)
def programs(request: pytest.FixtureRequest) -> Sequence[str]:
    return request.param


@pytest.fixture(scope="module")
def one(programs: Sequence[str]) -> sw.Executable:
    return compiled(programs, 1)


@pytest.fixture(scope="module")
def batch(programs: Sequence[str]) -> list[np.ndarray]:
    """An input of each program."""
    return [normal(ROWS, *PROGRAMS[name][0], seed=n) * 3 for n, name in enumerate(programs)]


def each_same(
    programs: Sequence[str],
    found: tuple[np.ndarray, ...],
    expected: list[np.ndarray],
    what: str,
    nearly: frozenset[str] = frozenset(),
) -> None:
    """Compare bits, or for some programs all but the last places."""
    for name, have, want in zip(programs, found, expected, strict=True):
        if name in nearly:
            np.testing.assert_allclose(have, want, rtol=1e-4, atol=1e-4, err_msg=f"{name}: {what}")
            continue
        np.testing.assert_array_equal(have.view(np.int32), want.view(np.int32), f"{name}: {what}")


ON_THREADS = ("softmax", "dense", "conv", "attention")
"""Programs that quick tests run on two threads: rows, a product, windows, and tiles of both."""


def test_threads(
    programs: Sequence[str], one: sw.Executable, batch: list[np.ndarray], all_tests: bool
) -> None:
    places = [n for n, name in enumerate(programs) if all_tests or name in ON_THREADS]
    some = [programs[n] for n in places]
    many = compiled(some, 2)
    for rows in (1, 5, ROWS):
        arrays = [x[:rows] for x in batch]
        whole = one(*arrays)
        found, wanted = many(*(arrays[n] for n in places)), [whole[n] for n in places]
        each_same(some, found, wanted, f"{rows} rows on two threads")


def test_neighbours(programs: Sequence[str], one: sw.Executable, batch: list[np.ndarray]) -> None:
    """The same rows alone, in smaller batches, in another order, and beside others."""
    whole = one(*batch)
    for rows in ODD:
        for first in (0, ROWS - rows):
            part = slice(first, first + rows)
            found, expected = one(*(x[part] for x in batch)), [y[part] for y in whole]
            each_same(
                programs,
                found,
                expected,
                f"{rows} rows",
                PRODUCTS if rows < LARGEST_TILE else frozenset(),
            )
    order = np.random.default_rng(0).permutation(ROWS)
    each_same(programs, one(*(x[order] for x in batch)), [y[order] for y in whole], "another order")
    others = [x.copy() for x in batch]
    for x in others:
        x[::2] = np.inf
    each_same(
        programs,
        tuple(y[1::2] for y in one(*others)),
        [y[1::2] for y in whole],
        "beside infinities",
    )


@pytest.mark.parametrize(
    "target",
    [
        *("x86-64-v3", "x86-64-v4"),
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("x86-64", "znver4")),
    ],
)
@pytest.mark.parametrize("rows", cases([None, 21, 43], [None]), ids=lambda n: f"{n or 'any'} rows")
def test_places_in_a_product(target: str, rows: int | None, all_tests: bool) -> None:
    """On tiles of all widths, whose last ones have fewer accumulators."""
    if processor.architecture() != "x86_64" or processor.missing(list(processor.NEEDS[target])):
        pytest.skip(f"needs a processor that runs code for {target}")
    b = sw.Builder("main")
    for columns in (1, 8, 16, 33):
        for terms in (9, 600) if all_tests else (600,) if columns in (1, 16) else (9,):
            x = b.input(f"x{columns}_{terms}", (rows or "n", terms))
            b.output(b.relu(b.dense(x, normal(columns, terms))), name=f"y{columns}_{terms}")
    exe = sw.compile(b.module(), target=target, threads=1)
    for n in [rows] if rows else (2, 5, 11, 13, 19, 29, 43):
        xs = [normal(n, *one.shape[1:], seed=n) for one in exe.inputs]
        places = np.roll(np.arange(n), 3)
        for whole, moved in zip(exe(*xs), exe(*(x[places] for x in xs)), strict=True):
            np.testing.assert_array_equal(moved.view(np.int32), whole[places].view(np.int32))


def shifted(x: np.ndarray, offset: int) -> np.ndarray:
    """The same array so many bytes after a cache line."""
    memory = np.empty(x.nbytes + 128, np.uint8)
    start = -memory.ctypes.data % 64 + offset
    found = memory[start : start + x.nbytes].view(x.dtype).reshape(x.shape)
    found[...] = x
    return found


VIEWS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    **{f"{n} bytes off": lambda x, n=n: shifted(x, n) for n in (0, 4, 8, 20, 60)},
    "every other row": lambda x: np.repeat(x, 2, 0)[::2],
    "backwards": lambda x: x[::-1].copy()[::-1],
    "columns first": np.asfortranarray,
    "of a wider array": lambda x: np.concatenate([x, x], -1)[..., : x.shape[-1]],
    "read-only": lambda x: np.frombuffer(x.tobytes(), x.dtype).reshape(x.shape),
}


@pytest.mark.parametrize("view", VIEWS)
def test_where_arrays_lie(
    programs: Sequence[str], view: str, one: sw.Executable, batch: list[np.ndarray]
) -> None:
    arrays = [x[:7] for x in batch]
    expected = list(one(*arrays))
    each_same(programs, one(*map(VIEWS[view], arrays)), expected, view)
    out = tuple(VIEWS["20 bytes off"](y) for y in expected)
    each_same(programs, one(*arrays, out=out), expected, "results that are given")


LAYERS: dict[str, gnn.Layer] = {
    "GCNConv": gnn.GCNConv(normal(6, 5), normal(5)),
    "SAGEConv": gnn.SAGEConv(normal(5, 6), normal(5), normal(5, 6)),
    "GATConv": gnn.GATConv(normal(10, 6), normal(2, 5), normal(2, 5), normal(10)),
    "GINConv": gnn.GINConv(gnn.Linear(normal(5, 6), normal(5))),
}


def a_graph(nodes: int, seed: int) -> csr_array:
    """A random graph, with a row of many entries."""
    random = np.random.default_rng(seed)
    dense = random.random((nodes, nodes)) < 0.2
    dense[0] = True
    return csr_array(dense.astype(np.float32))


@pytest.mark.parametrize("layer", cases([*LAYERS], ["GCNConv", "GATConv"]))
def test_graphs_side_by_side(layer: str) -> None:
    """A node's result does not depend on graphs that share the batch, nor on threads."""
    model = gnn.Sequential(LAYERS[layer])
    graphs, features = [a_graph(n, n) for n in (23, 40, 5)], normal(68, 6)
    module = model.to_module(gnn.GraphSpec(), features=sw.TensorSpec((None, 6), "f32"))
    one, two = (sw.compile(module, threads=threads) for threads in (1, 2))
    together = gnn.Graph.from_scipy(block_diag(graphs))
    whole = one(together, features)
    np.testing.assert_array_equal(two(together, features), whole)
    first = 0
    for alone in graphs:
        part = slice(first, first + alone.shape[0])
        np.testing.assert_array_equal(one(gnn.Graph.from_scipy(alone), features[part]), whole[part])
        first = part.stop
