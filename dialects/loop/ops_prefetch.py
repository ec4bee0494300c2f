"""Operations of the loop dialect that change no value: hints to the memory system."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import AffineMapAttr, MemRefType
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.irdl import IRDLOperation, operand_def, prop_def, var_operand_def
from xdsl.parser import Parser
from xdsl.printer import Printer

from ...core.building.creation import initialize
from ...core.ir.definitions import irdl_op_definition
from ...core.ir.typed import memref_type
from .ops_values import refuse
from .syntax import INDEX, parse_applied_map, print_applied_map


@irdl_op_definition
class PrefetchOp(IRDLOperation):
    """Hint that the memory around an element will soon be read.

    ```mlir
    loop.prefetch %w (d0, d1) -> (d0, 64, d1 * 32)(%j0, %k) : memref<4x128x32xf32>
    ```

    The map is that of a scalar `loop.load`. Nothing is read: an index past the end of its row
    counts on in row-major order, and the element may be past the end of the buffer.

    ```mlir
    loop.kernel @doubled(%x: memref<6xf32>) -> (%y: memref<6xf32>) {
      loop.for "i" %i to 6 {
        loop.prefetch %x (d0) -> (d0 + 4)(%i) : memref<6xf32>
        %v = loop.load %x (d0) -> (d0)(%i) : memref<6xf32>, f32
        %t = arith.addf %v, %v : f32
        loop.store %t, %y (d0) -> (d0)(%i) : f32, memref<6xf32>
      }
    }
    ```
    """

    name = "loop.prefetch"

    buffer = operand_def(MemRefType)
    indices = var_operand_def(INDEX)
    map = prop_def(AffineMapAttr)

    def __init__(self, buffer: SSAValue, map: AffineMap, indices: Sequence[SSAValue]) -> None:
        initialize(self, [buffer, *indices], properties={"map": AffineMapAttr(map)})

    def verify_(self) -> None:
        rank, map = memref_type(self.buffer).get_num_dims(), self.map.data
        if len(map.results) != rank:
            refuse(self, "map has the wrong number of results", rank, map)
        if map.num_dims != len(self.indices) or map.num_symbols:
            refuse(self, "map has the wrong number of dimensions", len(self.indices), map)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.buffer)
        printer.print_string(" ")
        print_applied_map(printer, self.map, self.indices)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.buffer.type)

    @classmethod
    def parse(cls, parser: Parser) -> PrefetchOp:
        buffer = parser.parse_unresolved_operand()
        map, indices = parse_applied_map(parser)
        attrs = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        op = cls(
            parser.resolve_operand(buffer, parser.parse_type()),
            map.data,
            [parser.resolve_operand(o, INDEX) for o in indices],
        )
        op.attributes |= attrs
        return op
