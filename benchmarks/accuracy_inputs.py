"""The inputs of `accuracy.py`: numbers of all sizes, rows to add up, and a graph."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from ml_dtypes import finfo
from scipy.sparse import csr_array

Array = np.ndarray
Arrays = tuple[Array | csr_array, ...]
Inputs = Callable[[np.dtype], Arrays]
"""Makes the inputs of a case for an element type."""

ROWS, COLUMNS = 1000, 2000
NODES, EDGES, WIDTH = 97, 1400, 9


def _rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def sizes(dtype: np.dtype, count: int) -> Array:
    """Numbers from the smallest denormal one to the largest one, evenly in their logarithms."""
    limits = finfo(dtype)
    least, most = limits.minexp - limits.nmant, limits.maxexp
    return np.ldexp(_rng().uniform(1, 2, count), _rng(1).integers(least, most, count))


def special(dtype: np.dtype) -> Array:
    """Zeros, ones and their neighbours, denormal numbers, the largest ones, infinities, NaN."""
    limits = finfo(dtype)
    tiny, eps = float(limits.tiny), float(limits.eps)
    found = [0.0, 1.0, 1 - eps / 2, 1 + eps, 0.5, 2.0, tiny, tiny / 2, tiny * eps]
    found += [float(limits.max), float(limits.max) / 2, np.inf]
    return np.array([*found, *(-number for number in found), np.nan])


def numbers(dtype: np.dtype) -> Arrays:
    """Numbers of all sizes and signs, and many between -1.1 and 1.1 and -100 and 100."""
    random = _rng(2)
    parts = [
        special(dtype),
        sizes(dtype, 6000) * random.choice([-1, 1], 6000),
        random.uniform(-1.1, 1.1, 6000),
        random.uniform(-10, 10, 6000),
        random.uniform(-100, 100, 2000),
    ]
    return (np.concatenate(parts).astype(dtype),)


def powers(dtype: np.dtype) -> Arrays:
    """Bases and exponents: special ones, and those whose powers are of all sizes."""
    random, limits = _rng(3), finfo(dtype)
    edge = special(dtype)
    base = sizes(dtype, 8000).astype(dtype).astype(np.float64)
    size = random.uniform(limits.minexp - limits.nmant, limits.maxexp, base.size)
    with np.errstate(all="ignore"):
        exponent = np.clip(size / np.log2(base), -float(limits.max), float(limits.max))
    whole = random.integers(-40, 40, 1000)
    bases = [np.repeat(edge, edge.size), base, random.standard_normal(1000) * 3]
    exponents = [np.tile(edge, edge.size), exponent, whole]
    return tuple(np.concatenate(part).astype(dtype) for part in (bases, exponents))


def rows(dtype: np.dtype) -> Arrays:
    """Rows of positive, normal, tiny, huge numbers, of many sizes, and of those that cancel."""
    random, limits = _rng(4), finfo(dtype)
    normal = random.standard_normal((ROWS, COLUMNS))
    kind = np.arange(ROWS)[:, None] % 6
    halves = normal[:, : COLUMNS // 2]
    cancelling = random.permuted(np.concatenate([halves, -halves], axis=1), axis=1)
    cancelling[:, 0] += 1e-3
    scales = [np.abs(normal), normal, normal * float(limits.tiny)]
    scales += [normal * float(limits.max) * 2.0**-14, normal * 4.0 ** random.integers(-5, 5, 2000)]
    return (np.select([kind == number for number in range(5)], scales, cancelling).astype(dtype),)


def columns(dtype: np.dtype) -> Arrays:
    return (np.ascontiguousarray(rows(dtype)[0].T),)


def near_one(dtype: np.dtype) -> Arrays:
    """Rows of factors whose products neither overflow nor vanish."""
    return (_rng(5).uniform(0.9, 1.1, (ROWS, 500)).astype(dtype),)


def scores(dtype: np.dtype) -> Arrays:
    """Rows of scores: close ones, far ones, equal ones, those that leave a single one, and -inf."""
    random = _rng(6)
    normal = random.standard_normal((ROWS, 501))
    factor = np.array([1.0, 10.0, 1000.0, 0.0])[np.arange(ROWS) % 4, None]
    found = normal * factor
    found[5::6, ::7] = -np.inf
    return (found.astype(dtype),)


def apart(seed: int, shape: tuple[int, ...], trailing: int) -> Inputs:
    """Channels or rows that are centred, far from 0, tiny, and large."""

    def made(dtype: np.dtype) -> Arrays:
        kind = np.arange(shape[-trailing - 1]).reshape(-1, *[1] * trailing) % 4
        factor, offset = np.array([[1.0, 1.0, 1e-3, 100.0], [0.0, 50.0, 0.0, 0.0]])
        x = _rng(seed).standard_normal(shape)
        return ((x * factor[kind] + offset[kind]).astype(dtype),)

    return made


images = apart(7, (2, 16, 19, 19), 2)
rows_to_normalize = apart(8, (ROWS, 513), 1)


def with_parameters(make: Inputs, count: int, size: int) -> Inputs:
    """Inputs, and vectors of positive numbers after them."""

    def made(dtype: np.dtype) -> Arrays:
        parameters = _rng(9).uniform(0.5, 2, (count, size)).astype(dtype)
        return (*make(dtype), *parameters)

    return made


def factors(*shapes: tuple[int, ...]) -> Inputs:
    """Tensors of normally distributed numbers; half of the first one is positive."""

    def made(dtype: np.dtype) -> Arrays:
        found = [_rng(10 + n).standard_normal(shape) for n, shape in enumerate(shapes)]
        found[0][::2] = np.abs(found[0][::2])
        return tuple(array.astype(dtype) for array in found)

    return made


def _edges() -> csr_array:
    """A graph with a node of many neighbours and nodes without any."""
    random = _rng(20)
    ends = np.stack([random.integers(0, NODES, EDGES) // 2 * 2, random.integers(0, NODES, EDGES)])
    ends[0, :300] = 4
    data = random.standard_normal(EDGES)
    return csr_array((data, tuple(ends)), shape=(NODES, NODES))


GRAPH = _edges()
GRAPH.sum_duplicates()
ROW_OF = np.repeat(np.arange(NODES), np.diff(GRAPH.indptr))
COLUMN_OF = GRAPH.indices


def graph(*shapes: tuple[int, ...]) -> Inputs:
    """The graph, and tensors of normally distributed numbers; -1 stands for its entries.

    SciPy has no matrices of 16-bit numbers: the weights of edges are then of 32 bits.
    """

    def made(dtype: np.dtype) -> Arrays:
        full = [tuple(GRAPH.nnz if size < 0 else size for size in shape) for shape in shapes]
        matrix = GRAPH.astype(dtype if dtype.itemsize > 2 else np.float32)
        return (matrix, *factors(*full)(dtype)) if full else (matrix,)

    return made


SCATTERED = _rng(21).integers(0, 40, 3000)
"""Places that numbers are added to, many at each."""
OFFSETS = np.array([0, 0, 1, 700, 1500, 1507, 3000])
"""Bounds of segments, an empty one and long ones among them."""
TREES = 500
FEATURES = _rng(22).integers(0, 8, TREES).astype(np.int32)
"""The feature that each tree decides by."""


def positive_graph(dtype: np.dtype) -> Arrays:
    """The graph with positive entries, whose sums are degrees, and a tensor."""
    a, x = graph((NODES, WIDTH))(dtype)
    return abs(a), x


def doubled_graph(dtype: np.dtype) -> Arrays:
    """A matrix with up to four entries at a place."""
    columns = np.sort(_rng(23).integers(0, 20, (30, 40)), 1).ravel()
    values = _rng(24).standard_normal(columns.size).astype(dtype)
    return (csr_array((values, columns, np.arange(0, 1201, 40)), shape=(30, 20)),)


def to_quantize(dtype: np.dtype) -> Arrays:
    """Numbers, many of them between two integers times the scale; the scale and the zero point."""
    between = np.arange(-300, 300) * 0.05
    x = np.concatenate([_rng(25).uniform(-20, 20, 5000), between, special(dtype)[:-1]])
    return x.astype(dtype), np.array(0.1, dtype), np.array(100, np.uint8)


def to_requantize(dtype: np.dtype) -> Arrays:
    """Sums of products of integers, a scale and the zero point."""
    x = _rng(27).integers(-(1 << 20), 1 << 20, 20_000).astype(np.int32)
    return x, np.array(0.0003, dtype), np.array(100, np.uint8)


def integers(x: tuple[int, ...], w: tuple[int, ...]) -> Inputs:
    """Factors of 8 bits with their scales and zero points, then those of the result."""

    def made(dtype: np.dtype) -> Arrays:
        random = _rng(26)
        factor = random.integers(0, 256, x).astype(np.uint8), random.integers(-128, 128, w)
        scales = [np.array(scale, dtype) for scale in (0.02, 0.03, 2.0)]
        zeros = np.array(120, np.uint8), np.array(3, np.int8), np.array(128, np.uint8)
        return (
            *(factor[0], scales[0], zeros[0]),
            *(factor[1].astype(np.int8), scales[1], zeros[1], scales[2], zeros[2]),
        )

    return made
