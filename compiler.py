"""`compile`: a module goes down the staircase and comes out as an `Executable`."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, TensorType, VectorType
from xdsl.dialects.memref import AllocaOp

from .core import pipelines
from .core.context import CompilerContext, target_of
from .core.errors import CompileError, UnsupportedError, explain
from .core.module import Module
from .core.registry import make_context
from .core.target import Target, named
from .dialects import rt
from .dialects.graph.shapes import SymbolicShapes
from .dialects.loop.attrs import LoopKind
from .dialects.loop.ops import ForOp, KernelOp
from .dialects.sparse_tensor import index_type, is_sparse
from .runtime.constants import materialise
from .runtime.executable import Executable, Program, Signature
from .runtime.functions import callback

if TYPE_CHECKING:
    from .backends.llvm.jit import Effort


def compile(
    module: Module,
    target: str | Target = "host",
    threads: int | None = None,
    opt_level: int = 3,
) -> Executable:
    """Compile a module to machine code.

    Args:
        module: what a frontend made; it is not changed.
        target: "host", the name of a processor (see `core.target`), or a `Target`.
        threads: how many threads a call may use; None for as many as there are cores.
        opt_level: 0 (every operator a scalar kernel of its own) to 3.

    Raises:
        CompileError: if the module is not valid or has something that cannot be compiled.
        TargetError: if the target is unknown or is not this machine's architecture.
    """
    if threads is not None and (not isinstance(threads, int) or threads < 1):
        raise CompileError(explain("compile", "wrong threads", expected="1 or more", got=threads))
    chosen = target if isinstance(target, Target) else named(target)
    pipelines.pipeline(opt_level)
    start = stage_of(module.op)
    if start not in ("graph", "optimized", "fused", "kernels", "scheduled"):
        raise UnsupportedError(
            explain(
                "compile",
                "a module on buffers does not say what its tensors are",
                expected='a module of stage "scheduled" or before',
                got=f'stage "{start}"',
            )
        )
    module.verify()
    work = module.clone()
    ctx = make_context(work.weights, chosen)
    with _without_collector():
        signature = _signature(work)
        program = _build(ctx, work, opt_level, start)
    stages = pipelines.STAGES[pipelines.STAGES.index(start) :]
    text = _stage_text(module, chosen, opt_level, start)
    return Executable(signature, program, text, stages, ctx.decisions)


def stage_of(op: ModuleOp) -> str:
    """The stage of the staircase that a module is at, by what is in it."""
    names = {inner.name for inner in op.walk()}
    if any(name.startswith("llvm.") for name in names):
        return "llvm"
    kernels = [k for k in op.walk() if isinstance(k, KernelOp)]
    if any(name.startswith("rt.") for name in names):
        return "buffers" if kernels else "loops"
    if kernels:
        return "scheduled" if any(_is_scheduled(k) for k in kernels) else "kernels"
    if any("graph.primitive" in f.attributes for f in op.walk()):
        return "fused"
    return "graph"


def _is_scheduled(kernel: KernelOp) -> bool:
    """Whether a schedule was applied: blocks, tiles or other kinds of loops are in it."""
    for op in kernel.walk():
        if isinstance(op, ForOp) and op.kind.data != LoopKind.PARALLEL:
            return True
        if any(isinstance(result.type, VectorType) for result in op.results):
            return True
    return False


def _signature(module: Module) -> Signature:
    """What the public function takes and gives."""
    main = module.main
    shapes = SymbolicShapes(main)
    args = main.body.block.args
    returned = cast(func.ReturnOp, main.body.block.last_op).arguments
    return Signature(
        inputs=tuple(module.inputs),
        outputs=tuple(module.outputs),
        input_shapes=tuple(shapes.shape(arg) for arg in args),
        output_shapes=tuple(shapes.shape(value) for value in returned),
        entries=tuple(shapes.nnz(arg) for arg in args),
        equal=tuple((a, b) for a, b, _ in shapes.equalities),
        index_dtypes=tuple(_index_dtype(cast(TensorType, arg.type)) for arg in args),
    )


def _index_dtype(kind: TensorType) -> np.dtype[np.signedinteger] | None:
    """The integers of a CSR argument; None for a dense one."""
    if not is_sparse(kind):
        return None
    return np.dtype(np.int32 if str(index_type(kind)) == "i32" else np.int64)


def _build(ctx: CompilerContext, module: Module, opt_level: int, start: str) -> Program:
    """Take a module down to machine code."""
    from .backends.llvm.jit import compile_module

    name = module.main.sym_name.data
    effort = _effort(module.op)
    constants: list[np.ndarray] = []
    functions: list[object] = []
    messages: list[Callable[..., str]] = []
    for stage, op in pipelines.walk_stages(ctx, module.op, opt_level, start):
        if stage != "loops":
            continue
        for inner in op.walk():
            if isinstance(inner, rt.ConstantOp):
                constants.append(materialise(inner, ctx.weights))
            elif isinstance(inner, rt.CallPackedOp) and inner.slot.value.data == len(functions):
                functions.append(callback(inner))
        messages += [failing.explain for failing in rt.failing_operations(module.main)]
        effort = _effort(op)
    code = compile_module(module.op, target_of(ctx), effort)
    return Program(code.address(name), tuple(constants), tuple(functions), tuple(messages), code)


def _effort(op: ModuleOp) -> Effort:
    """Kernels are scheduled already; only small buffers on the stack are left to LLVM's passes."""
    from .backends.llvm.jit import Effort

    staged = any(isinstance(inner, AllocaOp) for inner in op.walk())
    return Effort.LIGHT if staged else Effort.NONE


def _stage_text(module: Module, target: Target, opt_level: int, start: str) -> Callable[[str], str]:
    """Makes the text of a stage when it is asked for, from the module as it is now."""
    source = module.clone()

    def text(stage: str) -> str:
        pipelines.check_stage(stage)
        work = source.clone()
        ctx = make_context(work.weights, target)
        effort = _effort(work.op)
        for reached, op in pipelines.walk_stages(ctx, work.op, opt_level, start):
            if reached == stage:
                return work.text()
            if reached == "loops":
                effort = _effort(op)
        if stage not in pipelines.TEXT_STAGES:
            raise CompileError(explain("stage", f'"{stage}" is before', got=f'"{start}"'))
        return _backend_text(work, target, stage, effort)

    return text


def _backend_text(module: Module, target: Target, stage: str, effort: Effort) -> str:
    from .backends.llvm import jit

    ir = jit.llvm_ir(module.op, target)
    return ir if stage == "llvm-ir" else jit.assembly(ir, target, effort)


@contextmanager
def _without_collector() -> Iterator[None]:
    """Hold the garbage collector off: with a large heap it adds some 100 ms at random."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
