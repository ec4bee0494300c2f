"""Machine code of modules in the LLVM dialect."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.ir.module import Module
from ..core.ir.printing import Listing
from ..core.ir.weights import WeightStore
from ..core.target import Target
from .functions import callback
from .interface import Interface
from .loaded import Program
from .lowered import lowered

if TYPE_CHECKING:
    from ..backends.llvm.jit import Effort


@dataclass(frozen=True)
class Generated:
    """The LLVM IR of a program for a target, and what calls of its machine code need."""

    interface: Interface
    constants: tuple[np.ndarray, ...]
    llvm_ir: str
    effort: Effort
    target: Target


@dataclass(frozen=True)
class Source:
    """The IR of which a program can be compiled anew.

    `recipe` says how, as values of JSON: the arguments of a compilation.
    """

    text: str
    weights: WeightStore
    recipe: Mapping[str, Any]


def generated(module: Module, target: Target) -> Generated:
    """The LLVM IR of a module at stage `llvm`, for a target that need not be this machine.

    Raises:
        CompileError: if it is not a program, or cannot be translated.
    """
    from ..backends.llvm.jit import effort_of, program_ir

    found = lowered(module)
    text = program_ir(module.op, target, found.name)
    return Generated(found.interface, found.constants, text, effort_of(module.op), target)


def generated_of(program: Program) -> Generated | None:
    """The LLVM IR of a program that was compiled by this process; None for another one."""
    from ..backends.llvm.jit import CompiledModule

    code = program.keep
    if not isinstance(code, CompiledModule):
        return None
    constants = program.constants
    return Generated(program.interface, constants, code.llvm_ir, code.effort, code.target)


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
