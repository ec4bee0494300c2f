"""The stage of a module, determined by its contents.

No attribute says it: a module that a person has edited, or that single passes have changed, is at
the stage of its operations, whatever it was made from.
"""

from __future__ import annotations

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, VectorType
from xdsl.ir import Operation
from xdsl.utils.exceptions import VerifyException

from ..core.errors import UnsupportedError
from .graph.attrs import PRIMITIVE
from .graph.interfaces import GraphOp
from .graph.ops_call import CallDpsOp, CallPackedOp
from .graph.ops_constant import ConstantOp
from .graph.plan.planner import obstacle
from .loop.ops import ForOp, KernelOp
from .program import is_on_buffers


def stage_of(op: ModuleOp) -> str:
    """The stage of a module, determined by its contents."""
    names = {inner.name for inner in op.walk()}
    if any(name.startswith("llvm.") for name in names):
        return "llvm"
    if any(_is_operator(inner) for inner in op.walk()):
        return "graph"
    kernels = [k for k in op.walk() if isinstance(k, KernelOp)]
    if any(isinstance(f, func.FuncOp) and is_on_buffers(f) for f in op.ops):
        return "buffers" if kernels else "loops"
    groups = [f for f in op.ops if isinstance(f, func.FuncOp) and PRIMITIVE in f.attributes]
    if groups:
        # A group that cannot be one kernel is split: see `graph-fuse-ops`.
        return "fused" if all(map(_is_group, groups)) else "optimized"
    if kernels:
        return "scheduled" if any(_is_scheduled(k) for k in kernels) else "kernels"
    return "graph"


def _is_operator(op: Operation) -> bool:
    """Whether an operation is an operator outside of primitive functions."""
    if not isinstance(op, GraphOp) or isinstance(op, (ConstantOp, CallDpsOp, CallPackedOp)):
        return False
    function = op.parent_op()
    return function is None or PRIMITIVE not in function.attributes


def _is_group(function: func.FuncOp) -> bool:
    """Whether a primitive function can be one kernel; invalid input is reported later."""
    try:
        return obstacle(function) is None
    except (UnsupportedError, VerifyException):
        return True


def _is_scheduled(kernel: KernelOp) -> bool:
    """Whether a schedule was applied: blocks, tiles or other kinds of loops are in it."""
    for op in kernel.walk():
        if isinstance(op, ForOp) and op.is_scheduled:
            return True
        if any(isinstance(result.type, VectorType) for result in op.results):
            return True
    return False
