"""Operations of the loop dialect that divide places among parts of a computation."""

from __future__ import annotations

from xdsl.ir import SSAValue
from xdsl.irdl import IRDLOperation, operand_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure

from ...core.ir.definitions import irdl_op_definition
from .syntax import INDEX


@irdl_op_definition
class OwnedOp(IRDLOperation):
    """1 if a part owns a place, else 0: part t has the places from `t * size`, `size` of them.

    ```mlir
    %n = loop.owned %q part %t size %c
    ```

    No two parts own one place. So iterations of a loop over parts are independent where all that
    they write is at places that they own, in a loop of so many iterations:

    ```mlir
    loop.kernel @added_in_turn(%x: memref<6xf32>) -> (%y: memref<4xf32>) {
      %zero = arith.constant 0.0 : f32
      %places = arith.constant 4 : index
      %c = arith.constant 2 : index
      loop.for "j" %j to 4 {
        loop.store %zero, %y (d0) -> (d0)(%j) : f32, memref<4xf32>
      }
      loop.for "t" %t to 2 {
        loop.for "k" %k to 6 serial {
          %q = arith.remui %k, %places : index
          %v = loop.load %x (d0) -> (d0)(%k) : memref<6xf32>, f32
          %n = loop.owned %q part %t size %c
          loop.for "o" %o to %n {
            loop.store add %v, %y (d0) -> (d0)(%q) : f32, memref<4xf32>
          }
        }
      }
    }
    ```
    """

    name = "loop.owned"

    place = operand_def(INDEX)
    part = operand_def(INDEX)
    size = operand_def(INDEX)
    result = result_def(INDEX)

    traits = traits_def(Pure())

    def __init__(self, place: SSAValue, part: SSAValue, size: SSAValue) -> None:
        super().__init__(operands=[place, part, size], result_types=[INDEX])

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.place)
        printer.print_string(" part ")
        printer.print_ssa_value(self.part)
        printer.print_string(" size ")
        printer.print_ssa_value(self.size)
        printer.print_op_attributes(self.attributes)

    @classmethod
    def parse(cls, parser: Parser) -> OwnedOp:
        place = parser.resolve_operand(parser.parse_unresolved_operand(), INDEX)
        parser.parse_keyword("part")
        part = parser.resolve_operand(parser.parse_unresolved_operand(), INDEX)
        parser.parse_keyword("size")
        op = cls(place, part, parser.resolve_operand(parser.parse_unresolved_operand(), INDEX))
        op.attributes |= parser.parse_optional_attr_dict()
        return op
