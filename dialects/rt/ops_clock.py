"""Clocks and tables of times, for profiles."""

from __future__ import annotations

from xdsl.dialects.builtin import I64, IntegerAttr, MemRefType, i64
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import IRDLOperation, ParsePropInAttrDict, operand_def, prop_def, result_def
from xdsl.utils.exceptions import VerifyException

from ...core.errors import explain
from ...core.ir.definitions import irdl_op_definition
from ...core.ir.typed import memref_type
from .abi import RECORD_WORDS, TABLE_WORDS
from .buffers import verify_contiguous


@irdl_op_definition
class ClockOp(IRDLOperation):
    """Nanoseconds on a clock that only goes forward.

    %since = rt.clock : i64

    In a program:

    ```mlir
    func.func @main(%ctx: !rt.context, %forward: memref<i64>) -> i32
        attributes {graph.signature = () -> tensor<i64>} {
      %since = rt.clock : i64
      %until = rt.clock : i64
      %later = arith.cmpi sge, %until, %since : i64
      %v = arith.extui %later : i1 to i64
      memref.store %v, %forward[] : memref<i64>
      %ok = arith.constant 0 : i32
      func.return %ok : i32
    }
    ```
    """

    name = "rt.clock"

    result = result_def(I64)

    assembly_format = "attr-dict `:` type($result)"

    def __init__(self) -> None:
        super().__init__(result_types=[i64])


@irdl_op_definition
class RecordOp(IRDLOperation):
    """Adds the time since `since` to row `row` of a table, and 1 to the number next to it.

    rt.record %since, %times 2 : memref<4x2xi64>

    In a program:

    ```mlir
    func.func @main(%ctx: !rt.context, %count: memref<i64>) -> i32
        attributes {graph.signature = () -> tensor<i64>} {
      %bytes = arith.constant 64 : index
      %first = arith.constant 0 : index
      %second = arith.constant 1 : index
      %none = arith.constant 0 : i64
      %arena = rt.arena %ctx, %bytes : memref<?xi8>
      %times = memref.view %arena[%first][] : memref<?xi8> to memref<1x2xi64>
      memref.store %none, %times[%first, %first] : memref<1x2xi64>
      memref.store %none, %times[%first, %second] : memref<1x2xi64>
      %since = rt.clock : i64
      rt.record %since, %times 0 : memref<1x2xi64>
      rt.record %since, %times 0 : memref<1x2xi64>
      %n = memref.load %times[%first, %second] : memref<1x2xi64>
      memref.store %n, %count[] : memref<i64>
      %ok = arith.constant 0 : i32
      func.return %ok : i32
    }
    ```
    """

    name = "rt.record"

    since = operand_def(I64)
    times = operand_def(MemRefType)
    row = prop_def(IntegerAttr[I64])

    assembly_format = "$since `,` $times $row attr-dict `:` type($times)"

    irdl_options = (ParsePropInAttrDict(),)

    def __init__(self, since: SSAValue | Operation, times: SSAValue | Operation, row: int):
        super().__init__(operands=[since, times], properties={"row": IntegerAttr(row, i64)})

    def verify_(self) -> None:
        buffer = memref_type(self.times)
        verify_contiguous(self, buffer)
        rows, *columns = buffer.get_shape() or (0,)
        if rows < 0 or columns != [RECORD_WORDS] or buffer.element_type != i64:
            expected = f"a fixed number of rows of {RECORD_WORDS} i64"
            raise VerifyException(explain(self.name, "wrong table", expected=expected, got=buffer))
        most = min(rows, TABLE_WORDS // RECORD_WORDS)
        if not 0 <= self.row.value.data < most:
            expected, got = f"below {most}", self.row.value.data
            raise VerifyException(explain(self.name, "no such row", expected=expected, got=got))
