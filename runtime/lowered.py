"""The interface of a program on buffers, from its IR."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.ir import Attribute

from ..core.ir.module import Module
from ..dialects.program import (
    Constant,
    Function,
    buffers_of,
    checked_signature,
    constants_text,
    needs_of,
)
from ..dialects.sparse_tensor import index_type, is_sparse, position_type
from .constants import materialised
from .functions import Callee, Operand
from .interface import Interface


@dataclass(frozen=True)
class Lowered:
    """A program at a stage from `buffers` on: its interface, and what its code is made of.

    `name` is the name of the public function, `buffers` are the types of its arguments after the
    context. Entry n of `constants` is the array for slot n, and that of `sources` says which weight
    it is.
    """

    name: str
    interface: Interface
    buffers: tuple[Attribute, ...]
    constants: tuple[np.ndarray, ...]
    sources: tuple[Constant, ...]


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
    return Lowered(main.sym_name.data, interface, buffers, constants, needs.constants)


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
