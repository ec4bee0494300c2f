"""The stage of a module, determined by its contents.

No attribute says it: a module that a person has edited, or that single passes have changed, is at
the stage of its operations, whatever it was made from.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, VectorType
from xdsl.utils.exceptions import VerifyException

from ..core.errors import CompileError, UnsupportedError, first_line
from .graph.attrs import PRIMITIVE
from .graph.interfaces import GraphOp
from .graph.ops_call import CallDpsOp, CallPackedOp
from .graph.ops_check import AliasOp
from .graph.ops_constant import ConstantOp
from .graph.plan.planner import obstacle
from .graph.shapes import SymbolicShapes
from .graph.views import is_view
from .loop.ops import ForOp, KernelOp
from .program import is_on_buffers


def stage_of(op: ModuleOp) -> str:
    """The stage of a module, determined by its contents.

    Raises:
        CompileError: if sizes of a function contradict each other.
    """
    names = {inner.name for inner in op.walk()}
    if any(name.startswith("llvm.") for name in names):
        return "llvm"
    shapes_of = functools.cache(SymbolicShapes)
    try:
        if any(_computes(inner, shapes_of) for inner in _operators(op)):
            return "graph"
    except VerifyException as error:
        raise CompileError(first_line(error)) from error
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


def _operators(module: ModuleOp) -> Iterator[GraphOp]:
    """The operators outside of primitive functions."""
    for op in module.walk():
        function = op.parent_op()
        inside = function is not None and PRIMITIVE in function.attributes
        if isinstance(op, GraphOp) and not inside:
            yield op


def _computes(op: GraphOp, shapes_of: Callable[[func.FuncOp], SymbolicShapes]) -> bool:
    """Whether an operator still has to become (part of) a kernel."""
    if isinstance(op, (ConstantOp, CallDpsOp, CallPackedOp, AliasOp)):
        return False
    function = op.parent_op()
    return not (isinstance(function, func.FuncOp) and is_view(op, shapes_of(function)))


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
