"""Matrices with row pointers of 64 bits and columns of 32: more than 2^31 - 1 entries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

import stepwell as sw
from stepwell.frontends import gnn

from .c_programs import needs_compiler, results

RNG = np.random.default_rng(3)
NODES = 37


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def wide(matrix: Any) -> Any:
    """The matrix with pointers of 64 bits: SciPy's constructor gives both arrays one dtype."""
    result = matrix.copy()
    result.indptr = matrix.indptr.astype(np.int64)
    result.indices = matrix.indices.astype(np.int32)
    return result


def model() -> gnn.Sequential:
    """A product, an attention with heads, and a maximum."""
    return gnn.Sequential(
        gnn.GCNConv(floats(6, 16), floats(16)),
        gnn.GATConv(floats(8, 16), floats(1, 2, 4), floats(1, 2, 4)),
        gnn.SAGEConv(floats(5, 8), floats(5), floats(5, 8), aggr="max"),
    )


@pytest.fixture(scope="module")
def matrix() -> csr_array:
    """With empty rows, a long one, and a duplicate entry."""
    found: Any = random_array((NODES, NODES), density=0.1, rng=RNG, format="lil", dtype=np.float32)
    found[5] = 1.0
    found[7:9] = 0.0
    return csr_array(found)


LAYERS = model()


def compiled(indptr_dtype: str, **options: Any) -> tuple[sw.Module, sw.Executable]:
    spec = gnn.GraphSpec(indptr_dtype=indptr_dtype)
    module = LAYERS.to_module(spec, sw.TensorSpec((None, 6)))
    return module, sw.compile(module, **options)


def test_wide_pointers(matrix: csr_array, tmp_path: Path) -> None:
    x = floats(NODES, 6)
    expected = compiled("i32", threads=1)[1](matrix, x)
    module, exe = compiled("i64", threads=2)
    assert "memref<?xi64>, memref<?xi32>" in exe.ir("loops")
    np.testing.assert_allclose(exe(wide(matrix), x), expected, rtol=1e-5, atol=1e-5)
    for stage in ("graph", "kernels"):
        found = exe.run_at(stage, wide(matrix), x)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    exe.save(tmp_path / "model.stepwell")
    again = sw.load(tmp_path / "model.stepwell")
    np.testing.assert_array_equal(again(wide(matrix), x), exe(wide(matrix), x))
    broken = wide(matrix)
    broken.indptr[3:] += 1 << 40
    with pytest.raises(sw.InputError, match=r'input "graph": .*indptr'):
        exe(broken, x)
    assert module.inputs[0].format == "csr"


def test_a_part_is_an_argument() -> None:
    ends = np.stack([np.arange(20), (np.arange(20) + 1) % 20])
    b = sw.Builder("main")
    a = b.input("a", sw.SparseSpec(("n", "m"), indptr_dtype="i64"))
    b.output(b.spmm(a, b.input("x", ("m", 3))))
    exe = sw.compile(b.module())
    x = floats(20, 3)
    for part in sw.partition(ends, 3):
        columns = np.concatenate([np.arange(*part.rows), part.halo])
        np.testing.assert_allclose(exe(part, x[columns]), part.matrix @ x[columns])


@needs_compiler
def test_wide_pointers_in_c(matrix: csr_array, tmp_path: Path) -> None:
    x = floats(NODES, 6)
    module, exe = compiled("i64")
    sw.export(module, tmp_path, "wide")
    header = (tmp_path / "wide.h").read_text()
    assert "const int64_t *indptr; const int32_t *indices;" in header
    expected = [exe(wide(matrix), x)]
    (found,) = results(tmp_path, module, (wide(matrix), x), expected)
    np.testing.assert_allclose(found, expected[0], rtol=1e-5, atol=1e-5)
