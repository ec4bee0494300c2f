"""Operations of the loop dialect that partition work: where parts of a sparse matrix begin."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, IntegerType, MemRefType, i64
from xdsl.ir import SSAValue
from xdsl.irdl import IRDLOperation, operand_def, prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect

from ...core.ir.definitions import irdl_op_definition
from ...core.ir.typed import memref_type
from .ops_values import refuse
from .syntax import INDEX

MOST_WEIGHT = 1 << 16
"""The largest weight of a row: costs of rows that fit into memory then fit into 64 bits."""


@irdl_op_definition
class PartitionPointOp(IRDLOperation):
    """The row at which a part begins when rows are cut into parts of about equal cost.

    ```mlir
    %r = loop.partition_point %indptr rows %n part %t of %parts weight 4 : memref<?xi32>
    ```

    An entry costs 1, a row `weight` entries. The result is the smallest `r` from 0 on with

        (indptr[r] + weight * r) * parts >= t * (indptr[n] + weight * n)

    and at most `n`. Because rows cost something, part 0 begins at row 0, part `parts` would
    begin at row `n`, and each row is in one part, however many entries it has: the path of
    Merrill and Garland, "Merge-Based Parallel Sparse Matrix-Vector Multiplication" (2016), cut
    between rows. There are fewer than 2**31 parts.

    In a kernel:

    ```mlir
    loop.kernel @bounds(%indptr: memref<5xi32>) -> (%y: memref<2xi32>) {
      %n = arith.constant 4 : index
      %parts = arith.constant 2 : index
      loop.for "t" %t to 2 {
        %r = loop.partition_point %indptr rows %n part %t of %parts weight 1 : memref<5xi32>
        %v = arith.index_cast %r : index to i32
        loop.store %v, %y (d0) -> (d0)(%t) : i32, memref<2xi32>
      }
    }
    ```
    """

    name = "loop.partition_point"

    indptr = operand_def(MemRefType)
    rows = operand_def(INDEX)
    part = operand_def(INDEX)
    parts = operand_def(INDEX)
    weight = prop_def(IntegerAttr.constr(i64))
    result = result_def(INDEX)

    traits = traits_def(MemoryReadEffect())

    def __init__(
        self, indptr: SSAValue, rows: SSAValue, part: SSAValue, parts: SSAValue, weight: int
    ) -> None:
        super().__init__(
            operands=[indptr, rows, part, parts],
            properties={"weight": IntegerAttr(weight, i64)},
            result_types=[INDEX],
        )

    def verify_(self) -> None:
        kind, weight = memref_type(self.indptr), self.weight.value.data
        if kind.get_num_dims() != 1 or not isinstance(kind.element_type, IntegerType):
            refuse(self, "wrong row pointer", "a memref of integers of rank 1", kind)
        if not 1 <= weight <= MOST_WEIGHT:
            refuse(self, "wrong weight", f"1 to {MOST_WEIGHT}", weight)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.indptr)
        printer.print_string(" rows ")
        printer.print_ssa_value(self.rows)
        printer.print_string(" part ")
        printer.print_ssa_value(self.part)
        printer.print_string(" of ")
        printer.print_ssa_value(self.parts)
        printer.print_string(f" weight {self.weight.value.data}")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.indptr.type)

    @classmethod
    def parse(cls, parser: Parser) -> PartitionPointOp:
        indptr = parser.parse_unresolved_operand()
        numbers: list[SSAValue] = []
        for keyword in ("rows", "part", "of"):
            parser.parse_keyword(keyword)
            numbers.append(parser.resolve_operand(parser.parse_unresolved_operand(), INDEX))
        parser.parse_keyword("weight")
        weight = parser.parse_integer()
        attrs = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        rows, part, parts = numbers
        op = cls(parser.resolve_operand(indptr, parser.parse_type()), rows, part, parts, weight)
        op.attributes |= attrs
        return op
