"""Questions about sparse tensor types."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import IndexType, TensorType, f32, i32, i64

from stepwell.dialects.sparse_tensor import (
    coo,
    csc,
    csr,
    encoding_of,
    format_of,
    index_type,
    is_sparse,
    position_type,
)

DENSE = TensorType(f32, [4, 4])


def test_formats() -> None:
    assert format_of(DENSE) is None
    found = [format_of(TensorType(f32, [4, 4], encoding())) for encoding in (csr, csc, coo)]
    assert found == ["csr", "csc", "coo"]
    assert is_sparse(TensorType(f32, [4, 4], csr()))
    assert not is_sparse(DENSE)
    assert not is_sparse(f32)


def test_integer_types() -> None:
    type = TensorType(f32, [4, 4], csr(pos=64, crd=32))
    assert position_type(type) == i64
    assert index_type(type) == i32
    assert index_type(TensorType(f32, [4, 4], csr(pos=0, crd=0))) == IndexType()


def test_equal_encodings_are_equal() -> None:
    assert csr() == csr(32, 32)
    assert csr() != csr(64, 32)
    assert csr() != csc()


def test_encoding_of_a_dense_type() -> None:
    with pytest.raises(TypeError, match="not a sparse tensor type: tensor<4x4xf32>"):
        encoding_of(DENSE)
