"""Calls of kernels, of bodies of parallel tiles, and of registered functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects import func
from xdsl.dialects.builtin import (
    I64,
    FlatSymbolRefAttrConstr,
    FunctionType,
    IndexType,
    IntegerAttr,
    MemRefType,
    StringAttr,
    SymbolRefAttr,
    UnitAttr,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    ParsePropInAttrDict,
    base,
    operand_def,
    opt_prop_def,
    prop_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import SymbolUserOpInterface
from xdsl.utils.exceptions import VerifyException

from ...core.errors import explain
from ...core.ir.definitions import irdl_op_definition
from ...core.ir.symbols import find_symbol
from ..sparse_tensor import part_count
from .attrs import ContextType
from .buffers import verify_contiguous, verify_slot
from .failures import FailingOp
from .statuses import CallFailure


class CalleeExists(SymbolUserOpInterface):
    """The callee is a symbol in scope; where it is a `func.func`, its arguments agree."""

    def verify(self, op: Operation) -> None:
        assert isinstance(op, CallOp | CallTilesOp)
        callee = find_symbol(op, op.callee)
        if callee is None:
            raise VerifyException(f"{op.name}: unknown function, got {op.callee}")
        if not isinstance(callee, func.FuncOp):
            return
        expected = callee.function_type.inputs.data
        got = (*op.LEADING_TYPES, *(operand.type for operand in op.arguments))
        if expected != got:
            raise VerifyException(
                f"{op.name}: arguments of {op.callee} differ, expected "
                f"({', '.join(map(str, expected))}), got ({', '.join(map(str, got))})"
            )
        if callee.function_type.outputs.data:
            raise VerifyException(
                f"{op.name}: {op.callee} returns values, expected none, "
                f"got {len(callee.function_type.outputs)}"
            )


@irdl_op_definition
class CallOp(IRDLOperation):
    """Calls a kernel or a function that returns nothing: inputs, then results.

    rt.call @dense(%x, %w, %y) : memref<?x784xf32>, memref<128x784xf32>, memref<?x128xf32>

    With `device writes 1` the kernel runs on the device, on the contents that its memory has for
    the arguments, and writes to the last one there; see `rt.to_device`.

    In a program:

    ```mlir
    func.func @main(%ctx: !rt.context, %x: memref<4xf32>, %y: memref<4xf32>) -> i32
        attributes {graph.signature = (tensor<4xf32>) -> tensor<4xf32>} {
      rt.call @relu(%x, %y) : memref<4xf32>, memref<4xf32>
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

    name = "rt.call"

    callee = prop_def(FlatSymbolRefAttrConstr)
    arguments = var_operand_def()
    writes = opt_prop_def(IntegerAttr.constr(i64))
    """How many of the last arguments a kernel on a device writes to; None for one on the host."""

    assembly_format = (
        "$callee `(` $arguments `)` (`device` `writes` $writes^)? attr-dict "
        "(`:` type($arguments)^)?"
    )

    traits = traits_def(CalleeExists())

    LEADING_TYPES: ClassVar[tuple[Attribute, ...]] = ()

    def __init__(
        self, callee: str, arguments: Sequence[SSAValue | Operation], writes: int | None = None
    ):
        number = None if writes is None else IntegerAttr(writes, i64)
        properties = {"callee": SymbolRefAttr(callee), "writes": number}
        super().__init__(operands=[arguments], properties=properties)

    def verify_(self) -> None:
        most = len(self.arguments)
        if self.writes is not None and not 0 <= self.writes.value.data <= most:
            got, expected = self.writes.value.data, f"0 to {most} arguments"
            raise VerifyException(
                explain(self.name, "wrong number of writes", expected=expected, got=got)
            )


@irdl_op_definition
class CallTilesOp(IRDLOperation):
    """Calls a function for each tile in [0, count): the tile, then the arguments.

    rt.call_tiles %n, @dense_tile(%x, %y) : memref<?xf32>, memref<?xf32>

    `rt.parallel_tiles` after its body has become a function.

    In a program:

    ```mlir
    func.func @main(%ctx: !rt.context, %x: memref<4xf32>, %y: memref<4xf32>) -> i32
        attributes {graph.signature = (tensor<4xf32>) -> tensor<4xf32>} {
      %n = arith.constant 4 : index
      rt.call_tiles %n, @negate_tile(%x, %y) : memref<4xf32>, memref<4xf32>
      %ok = arith.constant 0 : i32
      func.return %ok : i32
    }
    func.func private @negate_tile(%tile: index, %a: memref<4xf32>, %b: memref<4xf32>) {
      %v = memref.load %a[%tile] : memref<4xf32>
      %w = arith.negf %v : f32
      memref.store %w, %b[%tile] : memref<4xf32>
      func.return
    }
    ```
    """

    name = "rt.call_tiles"

    count = operand_def(IndexType)
    arguments = var_operand_def()
    alternating = opt_prop_def(UnitAttr)
    device = opt_prop_def(UnitAttr)
    block = opt_prop_def(IntegerAttr.constr(i64))
    callee = prop_def(FlatSymbolRefAttrConstr)

    assembly_format = (
        "$count (`alternating` $alternating^)? (`device` $device^)? (`block` $block^)? `,` "
        "$callee `(` $arguments `)` attr-dict (`:` type($arguments)^)?"
    )

    traits = traits_def(CalleeExists())

    LEADING_TYPES: ClassVar[tuple[Attribute, ...]] = (IndexType(),)

    def __init__(
        self,
        count: SSAValue | Operation,
        callee: str,
        arguments: Sequence[SSAValue | Operation],
        alternating: UnitAttr | None = None,
        device: UnitAttr | None = None,
        block: IntegerAttr | None = None,
    ):
        super().__init__(
            operands=[count, arguments],
            properties={
                "callee": SymbolRefAttr(callee),
                "alternating": alternating,
                "device": device,
                "block": block,
            },
        )


@irdl_op_definition
class CallPackedOp(FailingOp):
    """Calls the function registered as `callee`, entry `slot` of the context's table.

    rt.call_packed %ctx, 0 "env.linear" ins(%x : memref<4xf32>) outs(%y : memref<4xf32>)

    The function takes the address of an array of words, for each buffer its address and
    all its sizes, for each index itself, and returns an i32 that is not 0 when it failed.
    `as (tensor<4xi1>) -> tensor<4xf32>` says which tensors the buffers are, where they do not
    say it themselves: a byte may be a boolean, and a sparse matrix is several buffers.

    In a program, with a registered function that doubles:

    ```mlir
    func.func @main(%ctx: !rt.context, %x: memref<4xf32>, %y: memref<4xf32>) -> i32
        attributes {graph.signature = (tensor<4xf32>) -> tensor<4xf32>} {
      rt.call_packed %ctx, 0 "env.double" ins(%x : memref<4xf32>) outs(%y : memref<4xf32>)
      %ok = arith.constant 0 : i32
      func.return %ok : i32
    }
    ```
    """

    name = "rt.call_packed"

    context = operand_def(ContextType)
    inputs = var_operand_def(base(MemRefType) | base(IndexType))
    outputs = var_operand_def(MemRefType)
    slot = prop_def(IntegerAttr[I64])
    callee = prop_def(StringAttr)
    tensors = opt_prop_def(FunctionType)

    assembly_format = (
        "$context `,` $slot $callee (`ins` `(` $inputs^ `:` type($inputs) `)`)? "
        "(`outs` `(` $outputs^ `:` type($outputs) `)`)? (`as` $tensors^)? attr-dict"
    )

    irdl_options = (AttrSizedOperandSegments(as_property=True), ParsePropInAttrDict())

    def __init__(
        self,
        context: SSAValue | Operation,
        slot: int,
        callee: str,
        inputs: Sequence[SSAValue | Operation],
        outputs: Sequence[SSAValue | Operation],
        tensors: FunctionType | None = None,
    ):
        super().__init__(
            operands=[context, inputs, outputs],
            properties={
                "slot": IntegerAttr(slot, i64),
                "callee": StringAttr(callee),
                "tensors": tensors,
            },
        )

    def verify_(self) -> None:
        verify_slot(self, self.slot)
        for operand in (*self.inputs, *self.outputs):
            if isinstance(operand.type, MemRefType):
                verify_contiguous(self, operand.type)
        if self.tensors is not None:
            types = (self.tensors.inputs, self.tensors.outputs)
            expected = [sum(map(part_count, kinds)) for kinds in types]
            got = [len(self.inputs), len(self.outputs)]
            if expected != got:
                fact = f"wrong numbers of buffers for {self.tensors}"
                raise VerifyException(explain(self.name, fact, expected=expected, got=got))

    @property
    def fault(self) -> CallFailure:
        return CallFailure("function", self.callee.data)
