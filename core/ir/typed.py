"""Python types that the declarations of operations guarantee, for values of more general types.

The functions for types and arrays are on hot paths and rely on the verifier; those for operations
assert the class of their result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar, cast

from xdsl.dialects import func
from xdsl.dialects.builtin import (
    AnyFloat,
    DenseIntOrFPElementsAttr,
    IntegerType,
    MemRefType,
    TensorType,
    VectorType,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue

if TYPE_CHECKING:
    import numpy as np
    from scipy.sparse import csr_array

OpT = TypeVar("OpT", bound=Operation)


def owned(value: SSAValue, kind: type[OpT]) -> OpT:
    """The operation of class `kind` that a value is a result of."""
    op = value.owner
    assert isinstance(op, kind), op
    return op


def memref_type(value: SSAValue) -> MemRefType:
    """The type of a buffer."""
    return cast(MemRefType, value.type)


def resized(kind: MemRefType, shape: Sequence[int]) -> MemRefType:
    """The type of a buffer of another shape, of the same elements in the same memory space."""
    return MemRefType(kind.element_type, shape, memory_space=kind.memory_space)


def tensor_type(value: SSAValue) -> TensorType:
    """The type of a tensor."""
    return cast(TensorType, value.type)


def vector_type(value: SSAValue) -> VectorType[Attribute]:
    """The type of a vector."""
    return cast("VectorType[Attribute]", value.type)


def float_type(type: Attribute) -> AnyFloat:
    """A type that is a float."""
    return cast(AnyFloat, type)


def integer_type(type: Attribute) -> IntegerType:
    """A type that is an integer."""
    return cast(IntegerType, type)


def bits(type: Attribute) -> int:
    """The width of a type that is an integer."""
    return integer_type(type).width.data


def parent_of(op: Operation | Block, kind: type[OpT]) -> OpT:
    """The operation of class `kind` around another one, or around a block."""
    parent = op.parent_op()
    assert isinstance(parent, kind), parent
    return parent


def function_around(op: Operation) -> func.FuncOp | None:
    """The function that an operation is in, through the regions of others; None if in none."""
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, func.FuncOp):
        parent = parent.parent_op()
    return parent


def is_splat(attribute: DenseIntOrFPElementsAttr) -> bool:
    """Whether all elements have the same bits.

    xDSL's own test compares numbers, for which 0.0 is -0.0.
    """
    data, count = attribute.data.data, len(attribute)
    return count > 0 and data == data[: len(data) // count] * count


def dense_array(array: np.ndarray | csr_array) -> np.ndarray:
    """The array of an operand that is dense."""
    return cast("np.ndarray", array)


def sparse_array(array: np.ndarray | csr_array) -> csr_array:
    """The array of an operand that is sparse."""
    return cast("csr_array", array)


def returned(function: func.FuncOp) -> tuple[SSAValue, ...]:
    """The values that a function of one block returns."""
    last = function.body.block.last_op
    assert isinstance(last, func.ReturnOp), last
    return tuple(last.operands)
