"""Times products with a mostly empty matrix, stored dense and stored sparse, on one core.

    python benchmarks/sparse_or_dense.py

The costs in `passes/graph/sparsify_constant.py` are fitted to its output.
"""

from __future__ import annotations

import time

import numpy as np
from scipy.sparse import csr_array

import stepwell as sw
from stepwell.frontends.builder import Builder, Value

SIZE = 1024
COLUMNS = (1, 4, 8, 16, 64, 256)
DENSITIES = (0.02, 0.1)
ROUNDS = 15


def seconds(module: sw.Module, x: np.ndarray) -> float:
    """The minimum time of several calls."""
    exe = sw.compile(module, threads=1, opt_level=3)
    best = float("inf")
    for _ in range(ROUNDS + 1):
        start = time.perf_counter()
        exe(x)
        best = min(best, time.perf_counter() - start)
    return best


def left(matrix: np.ndarray | csr_array, columns: int) -> sw.Module:
    """matrix times x."""
    b = Builder()
    x = b.input("x", (SIZE, columns))
    b.output((b.spmm if isinstance(matrix, csr_array) else b.matmul)(b.constant(matrix), x))
    return b.module()


def right(matrix: np.ndarray | csr_array, columns: int) -> sw.Module:
    """x times the transposed matrix."""
    b = Builder()
    x: Value = b.input("x", (columns, SIZE))
    if isinstance(matrix, csr_array):
        b.output(b.transpose(b.spmm(b.constant(matrix), b.transpose(x, [1, 0])), [1, 0]))
    else:
        b.output(b.dense(x, b.constant(matrix)))
    return b.module()


def main() -> None:
    rng = np.random.default_rng(0)
    full = rng.standard_normal((SIZE, SIZE)).astype(np.float32)
    print("side   columns  density  dense GFLOP/s  sparse GFLOP/s  as fast at a density of")
    for side, program in (("left", left), ("right", right)):
        for columns in COLUMNS:
            shape = (SIZE, columns) if side == "left" else (columns, SIZE)
            x = rng.standard_normal(shape).astype(np.float32)
            dense = seconds(program(full, columns), x)
            rate = 2e-9 * full.size * columns / dense
            for density in DENSITIES:
                matrix = csr_array(np.where(rng.random(full.shape) < density, full, 0))
                sparse = seconds(program(matrix, columns), x)
                done = 2e-9 * matrix.nnz * columns / sparse
                even = density * dense / sparse
                print(
                    f"{side:5} {columns:8} {density:8} {rate:14.1f} {done:15.1f} {even:24.3f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
