"""Products beside NumPy and PyTorch: squares from 64 to 2048, and rows of some odd lengths."""

from __future__ import annotations

from functools import partial

from cases import matmul, mlp
from harness import Make, Table, run

SIZES = (64, 96, 127, 128, 192, 255, 256, 384, 511, 512, 640, 768, 1000, 1024, 1536, 2047, 2048)
CASES: dict[str, Make] = {f"matmul {size} x {size}": partial(matmul, size) for size in SIZES} | {
    f"240 x 256 to {columns} columns": partial(mlp, 240, 256, columns)
    for columns in (7, 10, 33, 40, 47, 48, 56, 100, 250, 1000)
}
TABLES = [Table("case", CASES, run)]
