"""Matrices with row pointers of 64 bits and columns of 32: more than 2^31 - 1 entries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

import stepwell as sw
from stepwell.frontends import gnn

from ..harness import RNG, close, floats, same
from .c_programs import needs_compiler, results

NODES = 37


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


def module_of(indptr_dtype: str) -> sw.Module:
    spec = gnn.GraphSpec(indptr_dtype=indptr_dtype)
    return LAYERS.to_module(spec, sw.TensorSpec((None, 6)))


def test_wide_pointers(matrix: csr_array, tmp_path: Path) -> None:
    x = floats(NODES, 6)
    expected = module_of("i32").run_reference(matrix, x)
    module = module_of("i64")
    exe = sw.compile(module, threads=2)
    assert "memref<?xi64>, memref<?xi32>" in exe.ir("loops")
    close(exe(wide(matrix), x), expected)
    for stage in ("graph", "kernels"):
        close(exe.run_at(stage, wide(matrix), x), expected, 1e-4)
    exe.save(tmp_path / "model.stepwell")
    again = sw.load(tmp_path / "model.stepwell")
    same(again(wide(matrix), x), exe(wide(matrix), x))
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
    exe = sw.compile(b.module(), threads=1)
    x = floats(20, 3)
    for part in sw.partition(ends, 3):
        columns = np.concatenate([np.arange(*part.rows), part.halo])
        close(exe(part, x[columns]), part.matrix @ x[columns], 1e-7, atol=0)


@needs_compiler
def test_wide_pointers_in_c(matrix: csr_array, tmp_path: Path) -> None:
    x = floats(NODES, 6)
    module = module_of("i64")
    sw.export(module, tmp_path, "wide")
    header = (tmp_path / "wide.h").read_text()
    assert "const int64_t *indptr; const int32_t *indices;" in header
    expected = [np.asarray(module.run_reference(wide(matrix), x))]
    (found,) = results(tmp_path, module, (wide(matrix), x), expected)
    close(found, expected[0])
