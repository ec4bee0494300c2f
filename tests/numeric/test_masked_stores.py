"""Rows whose length is one more than that of a vector: nothing is written behind them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import stepwell as sw

BEHIND = 64
"""Bytes that are watched behind a result."""


def product(b: sw.Builder, columns: int, dtype: np.dtype) -> tuple[Any, list[np.ndarray]]:
    """A convolution of one element with three filters, of floats or of quantised numbers."""
    random = np.random.default_rng(columns)
    shapes = (1, 1, 2, columns), (3, 1, 1, 1)
    if dtype.kind != "u":
        arrays = [random.standard_normal(shape).astype(dtype) for shape in shapes]
        kind = {"float16": "f16", "bfloat16": "bf16"}[dtype.name]
        x, w = (b.input(f"x{n}", a.shape, kind) for n, a in enumerate(arrays))
        return b.conv(x, w), arrays
    arrays = [random.integers(0, 255, shape).astype(dtype) for shape in shapes]
    x, w = (b.input(f"x{n}", a.shape, "ui8") for n, a in enumerate(arrays))
    scale, zero = np.float32(0.1), np.array(128, dtype)
    return b.quantized_conv(x, scale, zero, w, scale, zero, np.float32(3.0), zero), arrays


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.uint8])
@pytest.mark.parametrize("columns", [9, 17, 33])
def test_the_element_behind_a_row_stays(columns: int, dtype: Any) -> None:
    b = sw.Builder("main")
    result, arrays = product(b, columns, np.dtype(dtype))
    b.output(result, name="y")
    module = b.module()
    expected = module.run_reference(*arrays)
    memory = np.full(expected.nbytes + BEHIND, 77, np.uint8)
    out = memory[: expected.nbytes].view(expected.dtype).reshape(expected.shape)
    sw.compile(module, threads=1)(*arrays, out=out)
    np.testing.assert_array_equal(out.astype(np.float64), expected.astype(np.float64))
    assert (memory[expected.nbytes :] == 77).all()
