"""The stage of a module: an attribute of it, `stepwell.stage`.

The conversion that makes a stage writes it, from `fused` on; until then a module has none. It may
be left out of text, which is then at the stage of its contents.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

from xdsl.dialects import func, llvm
from xdsl.dialects.builtin import ModuleOp, StringAttr, VectorType
from xdsl.ir import Operation
from xdsl.utils.exceptions import VerifyException

from ..core.errors import CompileError, explain, first_line
from ..core.ir.provenance import origin
from ..core.ir.public_function import is_public
from ..core.pipelines.stages import IR_STAGES
from .graph.attrs import PRIMITIVE
from .graph.interfaces import GraphOp
from .graph.ops.control.call import CallDpsOp, CallPackedOp
from .graph.ops.control.check import AliasOp
from .graph.ops.sources.constant import ConstantOp
from .graph.sizes.shapes import SymbolicShapes
from .graph.views import is_view
from .loop.ops import ForOp, KernelOp
from .program import is_on_buffers

STAGE = "stepwell.stage"


def reach(module: ModuleOp, stage: str) -> None:
    """Write on a module that it is at a stage."""
    module.attributes[STAGE] = StringAttr(stage)


def reach_scheduled(module: ModuleOp) -> None:
    """Write on a module that its kernels are scheduled, if these are all that it computes with."""
    if module.attributes.get(STAGE) == StringAttr("kernels"):
        reach(module, "scheduled")


def stage_of(module: ModuleOp) -> str:
    """The stage that a module states, or that of its contents.

    Raises:
        CompileError: if it states a stage whose modules have other contents, or sizes of a function
            contradict each other.
    """
    try:
        stated = verify_stage(module)
        return _of_contents(module) if stated is None else stated
    except VerifyException as error:
        raise CompileError(first_line(error)) from error


def verify_stage(module: ModuleOp) -> str | None:
    """The stage that a module states, after a check that its contents are of no other stage.

    Raises:
        VerifyException: if they are, naming the first operation.
    """
    stated = module.attributes.get(STAGE)
    if stated is None:
        return None
    stage = stated.data if isinstance(stated, StringAttr) else str(stated)
    if stage not in IR_STAGES:
        expected = ", ".join(IR_STAGES)
        raise VerifyException(explain(STAGE, "unknown stage", expected=expected, got=f'"{stage}"'))
    for op, first, last in _bounds(module):
        if not IR_STAGES.index(first) <= IR_STAGES.index(stage) <= IR_STAGES.index(last):
            expected = f'"{first}"' if first == last else f'"{first}" to "{last}"'
            fact = f"{op.name} is of another stage"
            hint = "without the attribute, a module is at the stage of its contents"
            where = origin(op)
            raise VerifyException(
                explain(STAGE, fact, expected=expected, got=f'"{stage}"', origin=where, hint=hint)
            )
    return stage


def _bounds(module: ModuleOp) -> Iterator[tuple[Operation, str, str]]:
    """Operations that not every stage has, each with the first and the last stage that has it."""
    for op in _computing(module):
        yield op, "graph", "fused"
    for op in module.ops:
        if isinstance(op, KernelOp):
            yield op, "graph", "buffers"
        elif isinstance(op, llvm.FuncOp) and is_public(op):
            yield op, "llvm", "llvm"
        elif isinstance(op, func.FuncOp) and PRIMITIVE in op.attributes:
            yield op, "graph", "fused"
        elif isinstance(op, func.FuncOp) and is_public(op):
            first, last = ("buffers", "loops") if is_on_buffers(op) else ("graph", "scheduled")
            yield op, first, last


def _of_contents(module: ModuleOp) -> str:
    """The stage of a module that states none: that of the last conversion that it shows."""
    if any(inner.name.startswith("llvm.") for inner in module.walk()):
        return "llvm"
    if next(_computing(module), None) is not None:
        return "graph"
    kernels = [k for k in module.walk() if isinstance(k, KernelOp)]
    if any(isinstance(f, func.FuncOp) and is_on_buffers(f) for f in module.ops):
        return "buffers" if kernels else "loops"
    if any(isinstance(f, func.FuncOp) and PRIMITIVE in f.attributes for f in module.ops):
        # `graph-fuse-ops` splits a group that cannot be one kernel, and leaves the others alone.
        return "optimized"
    if kernels:
        return "scheduled" if any(map(_is_scheduled, kernels)) else "kernels"
    return "graph"


def _computing(module: ModuleOp) -> Iterator[GraphOp]:
    """The operators outside of primitive functions that still have to become part of a kernel."""
    shapes_of = functools.cache(SymbolicShapes)
    for op in module.walk():
        function = op.parent_op()
        inside = function is not None and PRIMITIVE in function.attributes
        if isinstance(op, GraphOp) and not inside and _computes(op, shapes_of):
            yield op


def _computes(op: GraphOp, shapes_of: Callable[[func.FuncOp], SymbolicShapes]) -> bool:
    if isinstance(op, (ConstantOp, CallDpsOp, CallPackedOp, AliasOp)):
        return False
    function = op.parent_op()
    return not (isinstance(function, func.FuncOp) and is_view(op, shapes_of(function)))


def _is_scheduled(kernel: KernelOp) -> bool:
    """Whether a schedule was applied: blocks, tiles or other kinds of loops are in it."""
    for op in kernel.walk():
        if isinstance(op, ForOp) and op.is_scheduled:
            return True
        if any(isinstance(result.type, VectorType) for result in op.results):
            return True
    return False
