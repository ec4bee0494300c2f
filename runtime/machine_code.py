"""Machine code of modules in the LLVM dialect."""

from __future__ import annotations

from ..core.module import Module
from ..core.printing import Listing
from ..core.target import Target
from .interface import interface_of
from .loaded import Program


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

    interface = interface_of(module)
    code = compile_module(module.op, target, public=interface.name, source=source)
    return Program(interface, code.address(ENTRY), code)
