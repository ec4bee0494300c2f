"""Which buffers that kernels of a device are called with begin at multiples of 16 bytes.

Those of callers do, since a device has memory of its own for each of them, and so do constants and
most of what is in the arena. What is computed, such as a row that an iteration takes of a buffer,
may begin anywhere.
"""

from __future__ import annotations

from math import prod

from xdsl.dialects import arith, func, memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, IntegerAttr, ModuleOp
from xdsl.ir import Operation, SSAValue

from ...core.dtypes import byte_size
from ...core.ir.typed import memref_type
from ...core.ir.walks import operations_in
from ...dialects.loop.proofs.levels import VECTOR_BYTES
from ...dialects.rt import ops as rt
from ...dialects.upstream import ops as upstream


def aligned_arguments(module: ModuleOp) -> dict[str, list[bool]]:
    """For each kernel that is called on a device, which of its arguments all calls align."""
    found: dict[str, list[bool]] = {}
    for op in operations_in(module):
        if isinstance(op, rt.CallOp) and op.writes is not None:
            here = list(map(_is_aligned, op.arguments))
            name = op.callee.root_reference.data
            known = found.get(name, here)
            found[name] = [one and other for one, other in zip(known, here, strict=True)]
    return found


def _is_aligned(buffer: SSAValue) -> bool:
    owner = buffer.owner
    match owner:
        case rt.ConstantOp() | rt.ArenaOp():
            return True
        case memref.ViewOp():
            return _is_aligned(owner.source) and _is_multiple(owner.byte_shift)
        case memref.CastOp() | upstream.ReinterpretCastOp():
            # The latter begins where its operand does, wherever it is made.
            return _is_aligned(owner.operands[0])
        case rt.SliceOp():
            kind = memref_type(owner.result)
            size = prod(kind.get_shape()) * byte_size(kind.element_type)
            known = DYNAMIC_INDEX not in kind.get_shape()
            return known and size % VECTOR_BYTES == 0 and _is_aligned(owner.operands[0])
        case Operation():
            return False
        case _:
            return isinstance(owner.parent_op(), func.FuncOp)


def _is_multiple(offset: SSAValue) -> bool:
    """Whether an offset in bytes is a multiple of 16, by how it is computed."""
    match owner := offset.owner:
        case arith.ConstantOp():
            value = owner.value
            return isinstance(value, IntegerAttr) and value.value.data % VECTOR_BYTES == 0
        case arith.AddiOp() | arith.MaxSIOp():
            return all(map(_is_multiple, owner.operands))
        case arith.MuliOp():
            return any(map(_is_multiple, owner.operands))
        case _:
            return False
