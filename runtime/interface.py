"""What a program on buffers is called with, besides its code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import FunctionType, ModuleOp, TensorType, i32
from xdsl.ir import Attribute, Operation

from ..core.errors import CompileError, explain
from ..core.module import Module, face_of
from ..dialects import rt
from ..dialects.graph.buffers import buffer_types
from ..dialects.graph.signature import Signature, signature_of
from .constants import materialise
from .functions import callback


@dataclass(frozen=True)
class Interface:
    """What a program takes and gives, and the tables that its context leads to.

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
    """The interface of a module at stage `buffers` or `loops`.

    Raises:
        CompileError: if its public function does not say what its buffers are, or its constants
            or functions are not there.
    """
    main = module.main
    return Interface(
        name=main.sym_name.data,
        signature=checked_signature(main),
        buffers=main.function_type.inputs.data[1:],
        constants=tuple(materialise(op, module.weights) for op in _table(module.op, rt.ConstantOp)),
        functions=tuple(map(callback, _table(module.op, rt.CallPackedOp))),
        messages=tuple(failing.explain for failing in rt.failing_operations(main)),
    )


def checked_signature(main: func.FuncOp) -> Signature:
    """What the public function takes and gives, which its buffers must be made for.

    Raises:
        CompileError: if it does not say so, or says something else than its type.
    """
    signature, face = signature_of(main), face_of(main)
    tensors = cast("list[TensorType]", [*face.type.inputs, *face.type.outputs])
    buffers = [buffer for kind in tensors for buffer in buffer_types(kind)]
    expected = FunctionType.from_lists([rt.ContextType(), *buffers], [i32])
    if main.function_type != expected:
        subject = f"{main.name} @{main.sym_name.data}"
        fact = f"its type does not fit graph.signature = {face.type}"
        raise CompileError(explain(subject, fact, expected=expected, got=main.function_type))
    return signature


_Slotted = TypeVar("_Slotted", rt.ConstantOp, rt.CallPackedOp)


def _table(op: ModuleOp, kind: type[_Slotted]) -> list[_Slotted]:
    """The operations that use a table of the context, one for each of its slots, in order.

    Raises:
        CompileError: if a slot is left out, or is two things at once.
    """
    used: dict[int, _Slotted] = {}
    for inner in op.walk():
        if not isinstance(inner, kind):
            continue
        slot = inner.slot.value.data
        if _content(used.setdefault(slot, inner)) != _content(inner):
            raise CompileError(explain(kind.name, f"slot {slot} is used for two things"))
    if sorted(used) != list(range(len(used))):
        slots = ", ".join(map(str, sorted(used)))
        raise CompileError(
            explain(kind.name, "slots are not numbered from 0", expected=len(used), got=slots)
        )
    return [used[slot] for slot in range(len(used))]


def _content(op: Operation) -> tuple[object, ...]:
    """What the entry of a table has to fit."""
    types = [value.type for value in (*op.operands, *op.results)]
    return dict(op.properties), types
