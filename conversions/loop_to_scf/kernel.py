"""Kernels as functions."""

from __future__ import annotations

from xdsl.dialects import func
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    MemRefType,
    StringAttr,
    UnitAttr,
)
from xdsl.ir import Block, Region

from ...dialects.loop.ops import KernelOp
from ...dialects.loop.proofs.in_place import sharing
from .elementwise import ELEMENTWISE, elementwise
from .loops import LOOPS
from .memory import MEMORY
from .searches import SEARCHES
from .state import State

_HANDLERS = ELEMENTWISE | MEMORY | LOOPS | SEARCHES


def convert_kernel(kernel: KernelOp) -> func.FuncOp:
    """The function that a kernel becomes.

    Raises:
        PassFailedException: naming an operation that cannot be converted.
    """
    types = [arg.type for arg in kernel.body.block.args]
    body = Block(arg_types=types)
    for old, new in zip(kernel.body.block.args, body.args, strict=True):
        new.name_hint = old.name_hint
    state = State(kernel, body, _HANDLERS, elementwise)
    emit = state.emitter
    emit.location = kernel.location
    state.convert(kernel.body.block.ops)
    emit.emit(func.ReturnOp, [])
    emit.close()
    state.buffers.contents.drop_unread()
    emit.drop_unused_lanes()
    shared = sharing(kernel)
    no_alias = DictionaryAttr({"llvm.noalias": UnitAttr()})
    attrs = [
        no_alias if isinstance(kind, MemRefType) and number not in shared else DictionaryAttr({})
        for number, kind in enumerate(types)
    ]
    return func.FuncOp.create(
        properties={
            "sym_name": kernel.sym_name,
            "function_type": FunctionType.from_lists(types, []),
            "sym_visibility": StringAttr("private"),
            "arg_attrs": ArrayAttr(attrs),
        },
        regions=[Region(body)],
        location=kernel.location,
    )
