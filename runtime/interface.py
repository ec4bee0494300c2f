"""The interface of a program on buffers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from xdsl.dialects import llvm
from xdsl.dialects.builtin import DYNAMIC_INDEX, FunctionType, MemRefType, TensorType, i32, i64
from xdsl.ir import Attribute

from ..core.errors import CompileError, explain
from ..core.module import Module, Program, face_of
from ..dialects import rt
from ..dialects.graph.buffers import buffer_types
from ..dialects.graph.signature import Signature, signature_of
from ..dialects.program import needs_of
from .constants import materialised
from .functions import callback


@dataclass(frozen=True)
class Interface:
    """The inputs and results of a program, and the tables of its context.

    `name` is that of the public function, `buffers` are the types of its arguments after the
    context. Entry n of `constants` and `functions` is for slot n; `messages` word failure n + 1
    from its details.
    """

    name: str
    signature: Signature
    buffers: tuple[Attribute, ...]
    constants: tuple[np.ndarray, ...]
    functions: tuple[Any, ...]
    messages: tuple[Callable[[Sequence[int]], str], ...]


def interface_of(module: Module) -> Interface:
    """The interface of a module at a stage from `buffers` on.

    Raises:
        CompileError: if its public function does not say what its buffers are, or its constants
            or functions are not there.
    """
    main = module.program
    needs = needs_of(module.op, main)
    return Interface(
        name=main.sym_name.data,
        signature=checked_signature(main),
        buffers=tuple(_buffers(main)),
        constants=materialised(needs.constants, module.weights),
        functions=tuple(map(callback, needs.functions)),
        messages=tuple(failure.explain for failure in needs.failures),
    )


def is_on_buffers(main: Program) -> bool:
    """Whether a public function takes buffers, not tensors."""
    return isinstance(main, llvm.FuncOp) or rt.ContextType() in main.function_type.inputs.data


def checked_signature(main: Program) -> Signature:
    """The signature of the public function, which its buffers must fit.

    Raises:
        CompileError: if it states none, or one that contradicts its type.
    """
    signature, buffers = signature_of(main), _buffers(main)
    if isinstance(main, llvm.FuncOp):
        words = [part for buffer in buffers for part in _words(buffer)]
        expected = llvm.LLVMFunctionType([llvm.LLVMPointerType(), *words], i32)
    else:
        expected = FunctionType.from_lists([rt.ContextType(), *buffers], [i32])
    if main.function_type != expected:
        subject = f"{main.name} @{main.sym_name.data}"
        fact = f"its type does not fit graph.signature = {face_of(main).type}"
        raise CompileError(explain(subject, fact, expected=expected, got=main.function_type))
    return signature


def _buffers(main: Program) -> list[Attribute]:
    """The types of the arguments that stand for tensors."""
    face = face_of(main)
    tensors = cast("list[TensorType]", [*face.type.inputs, *face.type.outputs])
    return [buffer for kind in tensors for buffer in buffer_types(kind)]


def _words(buffer: Attribute) -> list[Attribute]:
    """The arguments of an `llvm.func` that stand for a buffer: its address, its symbolic sizes."""
    if not isinstance(buffer, MemRefType):
        return [i64]
    return [llvm.LLVMPointerType(), *[i64] * buffer.get_shape().count(DYNAMIC_INDEX)]
