"""The constant: a small literal in the text, or an array of the weight store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, cast

import numpy as np
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    BytesAttr,
    DenseIntOrFPElementsAttr,
    DenseResourceAttr,
    IntegerAttr,
    TensorType,
    i1,
    i8,
    i64,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AnyAttr,
    ParamAttrConstraint,
    VarConstraint,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import ConstantLike

from .....core.algebra.dims import Dim, Shape
from .....core.dtype_names import as_buffer
from .....core.dtypes import LOW_BIT_INTEGERS, dtype_of, element_type_of, is_low_bit
from .....core.errors import CompileError, explain
from .....core.ir.definitions import irdl_op_definition
from .....core.ir.provenance import origin
from .....core.ir.typed import dense_array, integer_type, is_splat
from .....core.ir.weights import WeightStore
from ....sparse_tensor import is_sparse
from ...attrs import ANY_TENSOR, i64_attr
from ...interfaces import FusionKind, GraphOp, Indices, Nest, ShapeFacts, SparseResultInterface
from ...traits import SignInterface

if TYPE_CHECKING:
    from ...interfaces import Array

ElementsAttr = DenseIntOrFPElementsAttr | DenseResourceAttr


@irdl_op_definition
class ConstantOp(GraphOp, SignInterface, SparseResultInterface):
    """A tensor that is known at compile time.

    A literal (`dense<...>`) is for small tensors; weights are named (`dense_resource<...>`)
    and live in the weight store beside the module. A sparse constant is always named; `nnz`
    is the number of its stored entries.

    %c = graph.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>

    %w = graph.constant dense_resource<w0> : tensor<128x784xf32>

    %a = graph.constant nnz = 13264 dense_resource<adj> : tensor<2708x2708xf32, #csr>
    """

    name = "graph.constant"
    FUSION: ClassVar[FusionKind] = FusionKind.BROADCAST

    T: ClassVar = VarConstraint("T", ANY_TENSOR)

    value = prop_def(
        ParamAttrConstraint(DenseIntOrFPElementsAttr, (T, AnyAttr()))
        | ParamAttrConstraint(DenseResourceAttr, (AnyAttr(), T))
    )
    nnz = opt_prop_def(IntegerAttr.constr(i64))
    result = result_def(T)

    traits = traits_def(ConstantLike())
    assembly_format = "(`nnz` `=` $nnz^)? $value attr-dict"

    def __init__(self, value: ElementsAttr, nnz: int | None = None) -> None:
        entries = None if nnz is None else i64_attr(nnz)
        properties: dict[str, Attribute | None] = {"value": value, "nnz": entries}
        super().__init__(properties=properties, result_type=value.get_type())

    @staticmethod
    def literal(array: np.ndarray) -> ConstantOp:
        """The constant that has the elements of a small array in the text."""
        element = integer_type(element_type_of(array.dtype))
        type = TensorType(element, array.shape)
        if array.dtype == np.bool_:
            return ConstantOp(DenseIntOrFPElementsAttr.from_list(type, array.ravel().tolist()))
        if element in LOW_BIT_INTEGERS:  # xDSL extends them to bytes.
            array = array.astype(np.int8)
        # xDSL packs elements in little-endian order.
        packed = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).tobytes()
        return ConstantOp(DenseIntOrFPElementsAttr(type, BytesAttr(packed)))

    @staticmethod
    def resource(name: str, type: TensorType, nnz: int | None = None) -> ConstantOp:
        """The constant whose elements are the array `name` of the weight store."""
        return ConstantOp(DenseResourceAttr.from_params(name, type), nnz)

    @property
    def key(self) -> str | None:
        """The name of the array in the weight store; None for a literal."""
        if isinstance(self.value, DenseResourceAttr):
            return self.value.resource_handle.data
        return None

    @property
    def type(self) -> TensorType:
        """The type of the result."""
        return cast(TensorType, self.value.get_type())

    @property
    def fusion(self) -> FusionKind:
        """A splat literal can be fused, other constants are operands."""
        return FusionKind.OPAQUE if self.splat is None else FusionKind.BROADCAST

    @property
    def splat(self) -> float | int | bool | None:
        """The common value of all elements of a literal; None if they differ."""
        if not isinstance(self.value, DenseIntOrFPElementsAttr) or not is_splat(self.value):
            return None
        return cast(float, next(iter(self.value.iter_values())))

    def array(self, weights: WeightStore) -> Array:
        """The elements.

        Raises:
            CompileError: if the store has no array of this name, shape and dtype.
        """
        if self.key is None:
            return self.reference()[0]
        where = origin(self)
        if self.key not in weights:
            fact = f'the weight store has no array "{self.key}"'
            raise CompileError(explain(self.name, fact, origin=where))
        array = weights[self.key]
        dtype = dtype_of(self.type.element_type)
        if tuple(array.shape) != self.type.get_shape() or array.dtype != dtype:
            got = f"{list(array.shape)} {array.dtype}"
            expected = f"{list(self.type.get_shape())} {dtype}"
            fact = f'array "{self.key}" differs from the type'
            raise CompileError(explain(self.name, fact, expected=expected, got=got, origin=where))
        if isinstance(array, np.ndarray) == is_sparse(self.type):
            fact = f'array "{self.key}" is stored as {type(array).__name__}'
            raise CompileError(explain(self.name, fact, expected=self.type, origin=where))
        return array

    def is_nonnegative(self, operands: Sequence[bool]) -> bool:
        return self.splat is not None and self.splat >= 0

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        sizes = self.type.get_shape()
        if DYNAMIC_INDEX in sizes:
            facts.fail("shape is not static", got=self.type)
        return [tuple(Dim.of(n) for n in sizes)]

    def infer_element_types(self) -> list[Attribute]:
        return [self.type.element_type]

    def infer_encodings(self) -> list[Attribute]:
        return [self.type.encoding]

    def infer_nnz(self, nnz: Sequence[Dim | None], facts: ShapeFacts) -> list[Dim | None]:
        if not is_sparse(self.type):
            return [None]
        return [facts.fresh() if self.nnz is None else Dim.of(self.nnz.value.data)]

    def verify_(self) -> None:
        super().verify_()
        facts = ShapeFacts(self, lambda: Dim.symbol("_"))
        sparse = is_sparse(self.type)
        if sparse and self.key is None:
            facts.fail("a sparse constant has a literal value", "dense_resource<name>")
        if self.nnz is not None and not sparse:
            facts.fail("nnz of a dense constant", "a sparse type", self.type)
        if self.nnz is not None and self.nnz.value.data < 0:
            facts.fail("nnz is negative", "0 or more", self.nnz.value.data)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        value = self.value
        if isinstance(value, DenseResourceAttr):
            fact = f'the elements of "{self.key}" are in the weight store; use array(weights)'
            raise CompileError(explain(self.name, fact, origin=origin(self)))
        dtype = dtype_of(self.type.element_type)
        if self.type.element_type == i1:
            flat = np.array(list(value.iter_values()), dtype=np.bool_)
        elif self.type.element_type in LOW_BIT_INTEGERS:
            flat = np.frombuffer(value.data.data, np.int8).astype(dtype)
        else:
            flat = np.frombuffer(value.data.data, dtype=dtype.newbyteorder("<")).astype(dtype)
        return (flat.reshape(self.type.get_shape()),)

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        splat = self.splat
        if splat is None:
            return super().value_at(nest, index, result)
        element = self.type.element_type
        if is_low_bit(element):  # Codes of NaN differ.
            return nest.constant(as_buffer(dense_array(self.reference()[0])).flat[0].item(), i8)
        return nest.constant(splat, nest.compute_type(element))


def splat_of(value: SSAValue) -> float | int | bool | None:
    """The common value of all elements of a literal constant; None for other values."""
    op = value.owner
    return op.splat if isinstance(op, ConstantOp) else None
