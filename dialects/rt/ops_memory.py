"""Where buffers of a program lie: packed constants, and the arena."""

from __future__ import annotations

from xdsl.dialects.builtin import (
    I64,
    AffineMapAttr,
    IndexType,
    IntegerAttr,
    MemRefType,
    StringAttr,
    UnitAttr,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ...core.ir.definitions import irdl_op_definition
from ...core.ir.typed import memref_type
from .attrs import ARENA_TYPE, ContextType
from .buffers import verify_contiguous, verify_slot


@irdl_op_definition
class ConstantOp(IRDLOperation):
    """A packed constant: entry `slot` of the context's table; `packing` says how it was laid out.

    %w = rt.constant %ctx, 3 "w0" : memref<128x784xf32>

    In a program:

    ```mlir
    func.func @main(%ctx: !rt.context, %x: memref<4xf32>, %y: memref<4xf32>) -> i32
        attributes {graph.signature = (tensor<4xf32>) -> tensor<4xf32>} {
      %w = rt.constant %ctx, 0 "w" : memref<4xf32>
      rt.call @scaled(%x, %w, %y) : memref<4xf32>, memref<4xf32>, memref<4xf32>
      %ok = arith.constant 0 : i32
      func.return %ok : i32
    }
    loop.kernel @scaled(%x: memref<4xf32>, %w: memref<4xf32>) -> (%y: memref<4xf32>) {
      loop.for "i" %i to 4 {
        %v = loop.load %x (d0) -> (d0)(%i) : memref<4xf32>, f32
        %f = loop.load %w (d0) -> (d0)(%i) : memref<4xf32>, f32
        %p = arith.mulf %v, %f : f32
        loop.store %p, %y (d0) -> (d0)(%i) : f32, memref<4xf32>
      }
    }
    ```
    """

    name = "rt.constant"

    context = operand_def(ContextType)
    slot = prop_def(IntegerAttr[I64])
    weight = prop_def(StringAttr)
    packing = opt_prop_def(AffineMapAttr)
    result = result_def(MemRefType)

    assembly_format = "$context `,` $slot $weight attr-dict `:` type($result)"

    irdl_options = (ParsePropInAttrDict(),)

    traits = traits_def(Pure())

    def __init__(
        self,
        context: SSAValue | Operation,
        slot: int,
        weight: str,
        result_type: MemRefType,
        packing: Attribute | None = None,
    ):
        super().__init__(
            operands=[context],
            result_types=[result_type],
            properties={
                "slot": IntegerAttr(slot, i64),
                "weight": StringAttr(weight),
                "packing": packing,
            },
        )

    def verify_(self) -> None:
        verify_slot(self, self.slot)
        buffer = memref_type(self.result)
        if not buffer.has_static_shape():
            raise VerifyException(
                f"{self.name}: symbolic size, expected a static shape, got {buffer}"
            )
        verify_contiguous(self, buffer)


@irdl_op_definition
class SliceOp(IRDLOperation):
    """The part of a buffer at an index of its first dimension, without a copy.

    %row = rt.slice %x, %i : memref<?x4xf32> to memref<4xf32>

    In a program:

    ```mlir
    func.func @main(%ctx: !rt.context, %x: memref<2x4xf32>, %y: memref<4xf32>) -> i32
        attributes {graph.signature = (tensor<2x4xf32>) -> tensor<4xf32>} {
      %last = arith.constant 1 : index
      %row = rt.slice %x, %last : memref<2x4xf32> to memref<4xf32>
      rt.call @relu(%row, %y) : memref<4xf32>, memref<4xf32>
      %ok = arith.constant 0 : i32
      func.return %ok : i32
    }
    loop.kernel @relu(%x: memref<4xf32>) -> (%y: memref<4xf32>) {
      %zero = arith.constant 0.0 : f32
      loop.for "i" %i to 4 {
        %v = loop.load %x (d0) -> (d0)(%i) : memref<4xf32>, f32
        %w = arith.maximumf %v, %zero : f32
        loop.store %w, %y (d0) -> (d0)(%i) : f32, memref<4xf32>
      }
    }
    ```
    """

    name = "rt.slice"

    source = operand_def(MemRefType)
    index = operand_def(IndexType)
    result = result_def(MemRefType)

    assembly_format = "$source `,` $index attr-dict `:` type($source) `to` type($result)"

    traits = traits_def(Pure())

    def __init__(self, source: SSAValue | Operation, index: SSAValue | Operation):
        kind = memref_type(SSAValue.get(source))
        part = MemRefType(kind.element_type, kind.get_shape()[1:])
        super().__init__(operands=[source, index], result_types=[part])

    def verify_(self) -> None:
        kind = memref_type(self.source)
        verify_contiguous(self, kind)
        if kind.get_num_dims() == 0:
            raise VerifyException(f"{self.name}: a scalar has no slices, got {kind}")
        expected = MemRefType(kind.element_type, kind.get_shape()[1:])
        if self.result.type != expected:
            raise VerifyException(
                f"{self.name}: wrong result type, expected {expected}, got {self.result.type}"
            )


@irdl_op_definition
class ArenaOp(IRDLOperation):
    """The arena of this call, of at least `bytes`; the call ends where it is smaller.

    %arena = rt.arena %ctx, %bytes : memref<?xi8>

    Buffers are `memref.view`s of it. In a loop, where each iteration may need more than the one
    before, a `growing` arena asks for half as much again, so that calls rarely end for this.

    In a program:

    ```mlir
    func.func @main(%ctx: !rt.context, %x: memref<4xf32>, %y: memref<4xf32>) -> i32
        attributes {graph.signature = (tensor<4xf32>) -> tensor<4xf32>} {
      %bytes = arith.constant 64 : index
      %start = arith.constant 0 : index
      %arena = rt.arena %ctx, %bytes : memref<?xi8>
      %h = memref.view %arena[%start][] : memref<?xi8> to memref<4xf32>
      rt.call_packed %ctx, 0 "env.double" ins(%x : memref<4xf32>) outs(%h : memref<4xf32>)
      rt.call @relu(%h, %y) : memref<4xf32>, memref<4xf32>
      %ok = arith.constant 0 : i32
      func.return %ok : i32
    }
    loop.kernel @relu(%x: memref<4xf32>) -> (%y: memref<4xf32>) {
      %zero = arith.constant 0.0 : f32
      loop.for "i" %i to 4 {
        %v = loop.load %x (d0) -> (d0)(%i) : memref<4xf32>, f32
        %w = arith.maximumf %v, %zero : f32
        loop.store %w, %y (d0) -> (d0)(%i) : f32, memref<4xf32>
      }
    }
    ```
    """

    name = "rt.arena"

    context = operand_def(ContextType)
    bytes = operand_def(IndexType)
    growing = opt_prop_def(UnitAttr)
    """Whether later runs of this operation in a call may need more."""
    result = result_def(MemRefType)

    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$context `,` $bytes (`growing` $growing^)? attr-dict `:` type($result)"

    def __init__(
        self,
        context: SSAValue | Operation,
        bytes: SSAValue | Operation,
        growing: bool = False,
    ) -> None:
        properties = {"growing": UnitAttr() if growing else None}
        super().__init__(
            operands=[context, bytes], properties=properties, result_types=[ARENA_TYPE]
        )

    def verify_(self) -> None:
        if self.result.type != ARENA_TYPE:
            raise VerifyException(
                f"{self.name}: wrong result type, expected {ARENA_TYPE}, got {self.result.type}"
            )
