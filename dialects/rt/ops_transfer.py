"""Copies between the memory of the host and that of a device."""

from __future__ import annotations

from abc import ABC

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import IRDLOperation, operand_def

from ...core.ir.definitions import irdl_op_definition
from ...core.ir.typed import memref_type
from .buffers import verify_contiguous


class TransferOp(IRDLOperation, ABC):
    """A copy of a buffer between the host and the device, which both have memory for it."""

    buffer = operand_def(MemRefType)

    assembly_format = "$buffer attr-dict `:` type($buffer)"

    def __init__(self, buffer: SSAValue | Operation) -> None:
        super().__init__(operands=[buffer])

    def verify_(self) -> None:
        verify_contiguous(self, memref_type(self.buffer))


@irdl_op_definition
class ToDeviceOp(TransferOp):
    """Copies a buffer to the device, where kernels read it.

    rt.to_device %x : memref<?x4xf32>

    A buffer has the same name on the host and on the device, each of which has memory for it: what
    one of them writes, the other does not see before a copy. Constants of the program are on both.
    For a target without a device, whose kernels all run on the host, copies are left out.

    In a program:

    ```mlir
    func.func @main(%ctx: !rt.context, %x: memref<4xf32>, %y: memref<4xf32>) -> i32
        attributes {graph.signature = (tensor<4xf32>) -> tensor<4xf32>} {
      rt.to_device %x : memref<4xf32>
      rt.call @relu(%x, %y) device writes 1 : memref<4xf32>, memref<4xf32>
      rt.to_host %y : memref<4xf32>
      %ok = arith.constant 0 : i32
      func.return %ok : i32
    }
    loop.kernel @relu(%x: memref<4xf32>) -> (%y: memref<4xf32>) {
      %zero = arith.constant 0.0 : f32
      loop.for "i" %i to 4 threads {
        %v = loop.load %x (d0) -> (d0)(%i) : memref<4xf32>, f32
        %w = arith.maximumf %v, %zero : f32
        loop.store %w, %y (d0) -> (d0)(%i) : f32, memref<4xf32>
      }
    }
    ```
    """

    name = "rt.to_device"


@irdl_op_definition
class ToHostOp(TransferOp):
    """Copies a buffer that kernels have written to the host; see `rt.to_device`.

    rt.to_host %y : memref<?x4xf32>

    It does nothing for inputs and constants of the program, which kernels do not write.

    In a program, where a registered function reads what a kernel has written:

    ```mlir
    func.func @main(%ctx: !rt.context, %x: memref<4xf32>, %y: memref<4xf32>) -> i32
        attributes {graph.signature = (tensor<4xf32>) -> tensor<4xf32>} {
      %bytes = arith.constant 64 : index
      %start = arith.constant 0 : index
      %arena = rt.arena %ctx, %bytes : memref<?xi8>
      %h = memref.view %arena[%start][] : memref<?xi8> to memref<4xf32>
      rt.to_device %x : memref<4xf32>
      rt.call @relu(%x, %h) device writes 1 : memref<4xf32>, memref<4xf32>
      rt.to_host %h : memref<4xf32>
      rt.call_packed %ctx, 0 "env.double" ins(%h : memref<4xf32>) outs(%y : memref<4xf32>)
      %ok = arith.constant 0 : i32
      func.return %ok : i32
    }
    loop.kernel @relu(%x: memref<4xf32>) -> (%y: memref<4xf32>) {
      %zero = arith.constant 0.0 : f32
      loop.for "i" %i to 4 threads {
        %v = loop.load %x (d0) -> (d0)(%i) : memref<4xf32>, f32
        %w = arith.maximumf %v, %zero : f32
        loop.store %w, %y (d0) -> (d0)(%i) : f32, memref<4xf32>
      }
    }
    ```
    """

    name = "rt.to_host"
