"""Square products from 64 to 2048 beside NumPy and PyTorch; odd sizes are among them."""

from __future__ import annotations

from functools import partial

from cases import matmul, run
from harness import Table

SIZES = (64, 96, 127, 128, 192, 255, 256, 384, 511, 512, 640, 768, 1000, 1024, 1536, 2047, 2048)
SQUARES = {f"matmul {size} x {size}": partial(matmul, size) for size in SIZES}
TABLES = [Table("case", {name: (make, None) for name, make in SQUARES.items()}, run)]
