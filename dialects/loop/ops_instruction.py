"""The operation of the loop dialect that is an instruction of some processors."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import StringAttr, VectorType
from xdsl.ir import SSAValue
from xdsl.irdl import IRDLOperation, prop_def, result_def, traits_def, var_operand_def
from xdsl.traits import Pure

from ...core.instructions import INSTRUCTIONS, Instruction
from ...core.ir.definitions import irdl_op_definition
from ...core.ir.typed import vector_type
from ..bodies import body_of, depth_of
from .ops_values import element_type, refuse


@irdl_op_definition
class InstructionOp(IRDLOperation):
    """What an instruction of the table `core/instructions.py` computes, in each lane.

    ```mlir
    %p = loop.instruction "vpmaddwd"(%x, %w) : (vector<6x2xi16>, vector<1x32xi16>)
        -> vector<6x16xi32>
    ```

    An operand in groups of `depth` elements has `depth` lanes for each lane of the result along the
    last axis, or one group for all. Along the other axes it has as many lanes as the result, or
    one. Other operands have the shape of the result.

    In a kernel:

    ```mlir
    loop.kernel @pairs(%x: memref<4xi16>, %w: memref<8xi16>) -> (%y: memref<2x4xi32>) {
      %a = loop.load %x ()[s0, s1] -> (s0 * 2 + s1)() : memref<4xi16>, vector<2x2xi16>
      %b = loop.load %w ()[s0, s1] -> (s1)() : memref<8xi16>, vector<1x8xi16>
      %p = loop.instruction "vpmaddwd"(%a, %b) : (vector<2x2xi16>, vector<1x8xi16>)
          -> vector<2x4xi32>
      loop.store %p, %y ()[s0, s1] -> (s0, s1)() : vector<2x4xi32>, memref<2x4xi32>
    }
    ```
    """

    name = "loop.instruction"

    instruction = prop_def(StringAttr)
    args = var_operand_def(VectorType)
    result = result_def(VectorType)

    traits = traits_def(Pure())
    assembly_format = "$instruction `(` $args `)` attr-dict `:` functional-type(operands, results)"

    def __init__(self, row: Instruction, args: Sequence[SSAValue], result: VectorType) -> None:
        super().__init__(
            operands=[args],
            properties={"instruction": StringAttr(row.name)},
            result_types=[result],
        )

    @property
    def row(self) -> Instruction:
        """The row of the table."""
        return INSTRUCTIONS[self.instruction.data]

    def verify_(self) -> None:
        if self.instruction.data not in INSTRUCTIONS:
            refuse(self, "no such instruction", ", ".join(INSTRUCTIONS), self.instruction.data)
        function, depth = body_of(self.row).function_type, depth_of(self.row)
        inputs, (output,) = function.inputs.data, function.outputs.data
        if len(self.args) != len(inputs):
            refuse(self, "wrong number of operands", len(inputs), len(self.args))
        kind = self.result.type
        shape = kind.get_shape()
        if kind.element_type != output or not shape:
            refuse(self, "wrong result", f"a vector of {output}", kind)
        *rows, lanes = shape
        for wanted, operand in zip(inputs, self.args, strict=True):
            given, in_groups = vector_type(operand), isinstance(wanted, VectorType)
            element, own = element_type(wanted), given.get_shape()
            fits = given.element_type == element and len(own) == len(shape)
            if in_groups:
                others = zip(own[:-1], rows, strict=False)
                fits = fits and own[-1] in (depth, lanes * depth)
                fits = fits and all(here in (1, there) for here, there in others)
            if not fits or not (in_groups or own == shape):
                expected = [*rows, lanes * depth if in_groups else lanes]
                refuse(self, "wrong operand", f"{expected} of {element}", given)
