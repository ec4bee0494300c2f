"""A lowered module: its interface and constants, its LLVM IR, and its machine code."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.ir import Attribute

from ..core.errors import TargetError, explain
from ..core.ir.module import Module
from ..core.ir.printing import Listing
from ..core.ir.weights import WeightStore
from ..core.target import Target
from ..dialects.program import (
    Function,
    buffers_of,
    checked_signature,
    constants_text,
    needs_of,
)
from ..dialects.sparse_tensor import index_type, is_sparse, position_type
from .constants import materialised
from .functions import Callee, Operand, callback, guarded
from .interface import Interface
from .loaded import ENTRY_TYPE, Program

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from ..backends.llvm.jit import Effort
    from ..backends.ptx.kernels import DeviceCode


@dataclass(frozen=True)
class Lowered:
    """A program at a stage from `buffers` on: its interface, and what its code is made of.

    `name` is the name of the public function, `buffers` are the types of its arguments after the
    context. Entry n of `constants` is the array for slot n.
    """

    name: str
    interface: Interface
    buffers: tuple[Attribute, ...]
    constants: tuple[np.ndarray, ...]


@dataclass(frozen=True)
class Generated:
    """The LLVM IR of a program for a target, what calls of its machine code need, and the code of
    its device, if it has one."""

    interface: Interface
    constants: tuple[np.ndarray, ...]
    llvm_ir: str
    effort: Effort
    target: Target
    device: DeviceCode | None = None


@dataclass(frozen=True)
class Source:
    """The IR of which a program can be compiled anew.

    `recipe` says how, as values of JSON: the arguments of a compilation.
    """

    text: str
    weights: WeightStore
    recipe: Mapping[str, Any]


def lowered(module: Module) -> Lowered:
    """The interface and the constants of a module at a stage from `buffers` on.

    Raises:
        CompileError: if its public function lacks the attributes of its signature, or constants are
            missing.
    """
    main = module.program
    needs = needs_of(module.op, main)
    interface = Interface(
        checked_signature(main),
        tuple(constant.weight for constant in needs.constants),
        tuple(map(_callee, needs.functions)),
        needs.failures,
        constants_text(needs.constants),
    )
    constants = materialised(needs.constants, module.weights)
    buffers = tuple(buffers_of(main))
    return Lowered(main.sym_name.data, interface, buffers, constants)


def generated(module: Module, target: Target) -> Generated:
    """The LLVM IR of a module at stage `llvm`, for a target that need not be this machine.

    Raises:
        CompileError: if it is not a program, or cannot be translated.
    """
    from ..backends.llvm.jit import effort_of, program_ir

    found = lowered(module)
    host, device = _divided(module, target)
    text = program_ir(host, target, found.name)
    effort = effort_of(module.op)
    return Generated(found.interface, found.constants, text, effort, target, device)


def generated_of(program: Program) -> Generated | None:
    """The LLVM IR of a program that was compiled by this process; None for another one."""
    from ..backends.llvm.jit import CompiledModule

    code = program.keep
    if not isinstance(code, CompiledModule):
        return None
    device = None if program.device is None else program.device.code
    facts = code.llvm_ir, code.effort, code.target, device
    return Generated(program.interface, program.constants, *facts)


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
    from ..backends.llvm.jit import add_function, compile_module

    found = lowered(module)
    functions = tuple(map(callback, found.interface.functions))
    host, kernels = _divided(module, target, source)
    device = None
    if kernels is not None:
        from .cuda import device_of
        from .device import functions_for_devices

        device = device_of(kernels)
        for name, address in functions_for_devices().items():
            add_function(name, address)
    code = compile_module(host, target, public=found.name, source=source)
    entry = code.address(ENTRY)
    return Program(found.interface, found.constants, functions, entry, code, device)


def elsewhere(module: Module, target: Target) -> Program:
    """The program of a module at stage `llvm` for a processor that is not this one.

    Its stages are those of the target. A call is the `TargetError` that says why.

    Raises:
        CompileError: if it is not a program.
    """
    from ..backends.llvm.machine import check_runs_here

    def call(_: int) -> int:
        check_runs_here(target)
        raise TargetError(explain(target.name, "was compiled where it cannot run"))

    found, entry = lowered(module), ENTRY_TYPE(guarded(call))
    address = ctypes.cast(entry, ctypes.c_void_p).value or 0
    return Program(found.interface, found.constants, (), address, entry)


def _divided(
    module: Module, target: Target, source: Listing | None = None
) -> tuple[ModuleOp, DeviceCode | None]:
    """The module of the host, and the code of the device if the target has one."""
    if target.device is None:
        return module.op, None
    from ..backends.llvm.device import device_code, host_module

    return host_module(module.op), device_code(module.op, target, source)


def _callee(function: Function) -> Callee:
    inputs, outputs = (
        tuple(_operand(cast(TensorType, kind)) for kind in kinds)
        for kinds in (function.type.inputs, function.type.outputs)
    )
    return Callee(function.callee, inputs, outputs)


def _operand(kind: TensorType) -> Operand:
    shape = tuple(None if size == DYNAMIC_INDEX else size for size in kind.get_shape())
    indices = (str(position_type(kind)), str(index_type(kind))) if is_sparse(kind) else None
    return Operand(str(kind.element_type), shape, indices)
