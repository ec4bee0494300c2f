"""Times products with a mostly empty matrix, stored dense and stored sparse, on one core.

The costs in `passes/graph/sparsify_constant.py` are fitted to its output.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from harness import Row, Table
from models import built
from scipy.sparse import csr_array

import stepwell as sw
from stepwell.frontends.builder import Value
from stepwell.tools.timing import measure

SIZE = 1024
COLUMNS = (1, 4, 8, 16, 64, 256)
DENSITIES = (0.02, 0.1)


def left(matrix: np.ndarray | csr_array, columns: int) -> sw.Module:
    """matrix times x."""

    def program(b: sw.Builder, x: Value) -> Value:
        return (b.spmm if isinstance(matrix, csr_array) else b.matmul)(b.constant(matrix), x)

    return built(program, (SIZE, columns))


def right(matrix: np.ndarray | csr_array, columns: int) -> sw.Module:
    """x times the transposed matrix."""

    def program(b: sw.Builder, x: Value) -> Value:
        if isinstance(matrix, csr_array):
            return b.transpose(b.spmm(b.constant(matrix), b.transpose(x, [1, 0])), [1, 0])
        return b.dense(x, b.constant(matrix))

    return built(program, (columns, SIZE))


def rows(name: str, case: tuple[str, int], *, rounds: int = 15) -> Iterator[Row]:
    """Time the products of both forms of a matrix."""
    side, columns = case
    rng = np.random.default_rng(0)
    full = rng.standard_normal((SIZE, SIZE)).astype(np.float32)
    shape = (SIZE, columns) if side == "left" else (columns, SIZE)
    x = rng.standard_normal(shape).astype(np.float32)
    matrices = {d: csr_array(np.where(rng.random(full.shape) < d, full, 0)) for d in DENSITIES}
    for density, matrix in matrices.items():
        forms = {"dense": full, "sparse": matrix}
        exes = {n: sw.compile(SIDES[side](m, columns), threads=1) for n, m in forms.items()}
        calls = {which: partial(exe, x) for which, exe in exes.items()}
        dense, sparse = (timing.minimum for timing in measure(calls, rounds=rounds).values())
        yield {
            "density": str(density),
            "dense GFLOP/s": f"{2e-9 * full.size * columns / dense:.1f}",
            "sparse GFLOP/s": f"{2e-9 * matrix.nnz * columns / sparse:.1f}",
            "as fast at a density of": f"{density * dense / sparse:.3f}",
        }


SIDES = {"left": left, "right": right}
CASES = {f"{side}, {columns} columns": (side, columns) for side in SIDES for columns in COLUMNS}
TABLES = [Table("side", CASES, rows)]
