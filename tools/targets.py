"""Output formats of `stepwell-opt` beyond the targets of xDSL."""

from __future__ import annotations

from typing import IO

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.printer import Printer
from xdsl.targets.mlir import MLIRTarget

from ..core.ir.printing import module_text


class AliasedMlirTarget(MLIRTarget):
    """xDSL's target `mlir`, with the aliases of sparse encodings."""

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        """Write the module."""
        if self.syntax_highlight:
            super().emit(ctx, module, output)
            return
        text = module_text(
            module,
            locations=self.print_debuginfo,
            print_generic_format=self.print_generic_format,
            print_properties_as_attributes=self.print_properties_as_attributes,
        )
        output.write(text)
        Printer(stream=output).print_metadata(ctx.loaded_dialects)
