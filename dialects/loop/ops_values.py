"""Operations of the loop dialect on values: folds of lanes, and local buffers."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    IndexType,
    IntegerAttr,
    MemRefType,
    NoneAttr,
    VectorType,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import IRDLOperation, operand_def, prop_def, result_def, traits_def, var_operand_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryAllocEffect, Pure

from ...core.errors import explain
from ...core.ir.definitions import irdl_op_definition
from ...core.ir.provenance import origin
from ...core.ir.refusal import InvalidOperation
from ...core.ir.typed import memref_type, vector_type
from .attrs import Combine, CombineAttr, SpaceAttr


def element_type(kind: Attribute) -> Attribute:
    """The type of one lane of a value; of a scalar, the type itself."""
    return kind.element_type if isinstance(kind, VectorType) else kind


def block_shape(kind: Attribute) -> tuple[int, ...]:
    """The number of lanes along each axis of a value; of a scalar, the empty tuple."""
    return kind.get_shape() if isinstance(kind, VectorType) else ()


def refuse(op: Operation, fact: str, expected: object = None, got: object = None) -> None:
    raise InvalidOperation(
        explain(op.name, fact, expected=expected, got=got, origin=origin(op)), op
    )


@irdl_op_definition
class FoldOp(IRDLOperation):
    """Combine the lanes of one axis: the step that reassociates a reduction.

    ```mlir
    %s = loop.fold %v axis 1 add : vector<1x16xf32> -> vector<1x1xf32>
    ```

    In a kernel:

    ```mlir
    loop.kernel @sums_of_rows(%x: memref<2x4xf32>) -> (%y: memref<2x1xf32>) {
      loop.for "i" %i to 2 {
        %v = loop.load %x (d0)[s0, s1] -> (d0, s1)(%i) : memref<2x4xf32>, vector<1x4xf32>
        %s = loop.fold %v axis 1 add : vector<1x4xf32> -> vector<1x1xf32>
        loop.store %s, %y (d0)[s0, s1] -> (d0, s1)(%i) : vector<1x1xf32>, memref<2x1xf32>
      }
    }
    ```
    """

    name = "loop.fold"

    value = operand_def(VectorType)
    axis = prop_def(IntegerAttr.constr(i64))
    combine = prop_def(CombineAttr)
    result = result_def(VectorType)

    traits = traits_def(Pure())

    def __init__(self, value: SSAValue, axis: int, combine: Combine) -> None:
        kind = vector_type(value)
        shape = [1 if a == axis else lanes for a, lanes in enumerate(kind.get_shape())]
        super().__init__(
            operands=[value],
            properties={"axis": IntegerAttr(axis, i64), "combine": CombineAttr(combine)},
            result_types=[VectorType(kind.element_type, shape)],
        )

    def verify_(self) -> None:
        source, axis = vector_type(self.value), self.axis.value.data
        if not 0 <= axis < source.get_num_dims():
            refuse(self, "no such axis", f"below {source.get_num_dims()}", axis)
        shape = tuple(1 if a == axis else lanes for a, lanes in enumerate(source.get_shape()))
        if vector_type(self.result).get_shape() != shape:
            refuse(self, "wrong result shape", shape, self.result.type)
        if self.combine.data == Combine.CUSTOM:
            refuse(self, "a custom reduction cannot be reassociated")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.value)
        printer.print_string(f" axis {self.axis.value.data} {self.combine.data}")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.value.type)
        printer.print_string(" -> ")
        printer.print_attribute(self.result.type)

    @classmethod
    def parse(cls, parser: Parser) -> FoldOp:
        value = parser.parse_unresolved_operand()
        parser.parse_keyword("axis")
        axis = parser.parse_integer()
        combine = parser.parse_str_enum(Combine)
        attrs = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        kind = parser.parse_type()
        parser.parse_punctuation("->")
        result = parser.parse_type()
        return cls.create(
            operands=[parser.resolve_operand(value, kind)],
            properties={"axis": IntegerAttr(axis, i64), "combine": CombineAttr(combine)},
            result_types=[result],
            attributes=attrs,
        )


@irdl_op_definition
class LocalOp(IRDLOperation):
    """A buffer that one nest fills and another reads.

    ```mlir
    %h = loop.local : memref<16xf32>
    %t = loop.local(%n) : memref<2x?xi64>
    %s = loop.local : memref<16xf32, #loop<space shared>>
    ```

    It lives for one iteration of the enclosing loop, and starts uninitialised. There is an index
    for each `?` of its type, the size of that dimension; a negative one means 0. Without a memory
    space it is private to a thread: in registers, cache, or stack, and on the heap if it is large
    or of a symbolic size. Spaces `shared` and `threads` are those of a block of threads of a
    device (see `Space` and `levels.py`).

    In a kernel:

    ```mlir
    loop.kernel @squares_backwards(%x: memref<2x4xf32>) -> (%y: memref<2x4xf32>) {
      loop.for "i" %i to 2 {
        %h = loop.local : memref<4xf32>
        loop.for "j" %j to 4 {
          %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %j) : memref<2x4xf32>, f32
          %w = arith.mulf %v, %v : f32
          loop.store %w, %h (d0) -> (d0)(%j) : f32, memref<4xf32>
        }
        loop.for "k" %k to 4 {
          %v = loop.load %h (d0) -> (-d0 + 3)(%k) : memref<4xf32>, f32
          loop.store %v, %y (d0, d1) -> (d0, d1)(%i, %k) : f32, memref<2x4xf32>
        }
      }
    }
    ```
    """

    name = "loop.local"

    sizes = var_operand_def(IndexType())
    result = result_def(MemRefType)

    traits = traits_def(MemoryAllocEffect())
    assembly_format = "(`(` $sizes^ `)`)? attr-dict `:` type($result)"

    def __init__(self, kind: MemRefType, sizes: Sequence[SSAValue] = ()) -> None:
        super().__init__(operands=[sizes], result_types=[kind])

    def verify_(self) -> None:
        kind = memref_type(self.result)
        symbolic = kind.get_shape().count(DYNAMIC_INDEX)
        if len(self.sizes) != symbolic:
            refuse(self, f"wrong number of sizes of {kind}", symbolic, len(self.sizes))
        if not isinstance(kind.memory_space, NoneAttr | SpaceAttr):
            refuse(self, "unknown memory space", "none, or #loop<space shared>", kind.memory_space)
        if isinstance(kind.memory_space, SpaceAttr) and symbolic:
            refuse(self, "size of a buffer of a block is not known", "a static shape", kind)
