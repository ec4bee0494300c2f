"""Machine code of modules in the LLVM dialect."""

from __future__ import annotations

from ..core.module import Module
from ..core.printing import Listing
from ..core.target import Target
from .functions import callback
from .loaded import Program
from .lowered import lowered


def machine_code(module: Module, target: Target, source: Listing | None = None) -> Program:
    """The machine code of a module at stage `llvm`.

    Args:
        module: the module.
        target: the target of the code.
        source: the lines that debuggers and profilers show for its nodes.

    Raises:
        CompileError: if it is not a program, or cannot be translated.
        TargetError: if this processor cannot run code for the target.
    """
    from ..backends.llvm.boundary.code import ENTRY
    from ..backends.llvm.jit import compile_module

    found = lowered(module)
    functions = tuple(map(callback, found.interface.functions))
    code = compile_module(module.op, target, public=found.name, source=source)
    return Program(found.interface, found.constants, functions, code.address(ENTRY), code)
