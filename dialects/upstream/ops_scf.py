"""`scf.while`, which xDSL does not print in upstream MLIR's form."""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.irdl import region_def, var_operand_def, var_result_def
from xdsl.printer import Printer

from ...core.ir.definitions import irdl_op_definition


@irdl_op_definition
class WhileOp(scf.WhileOp):
    """`%r = scf.while (%a = %x) : (index) -> index { ... } do { ... }`.

    xDSL's prints its location before its regions, where nothing reads it.
    """

    name = "scf.while"

    arguments = var_operand_def()
    res = var_result_def()
    before_region = region_def("single_block")
    after_region = region_def("single_block")

    def print(self, printer: Printer) -> None:
        pairs = zip(self.before_region.block.args, self.arguments, strict=True)
        printer.print_string(" (")
        printer.print_list(pairs, lambda pair: self._print_pair(printer, pair))
        printer.print_string(") : ")
        printer.print_function_type(self.operand_types, self.result_types)
        printer.print_string(" ")
        printer.print_region(self.before_region, print_entry_block_args=False)
        printer.print_string(" do ")
        printer.print_region(self.after_region)
        if self.attributes:
            printer.print_op_attributes(self.attributes, print_keyword=True)
