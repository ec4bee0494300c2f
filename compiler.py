"""`compile`: a module goes down the staircase and comes out as an `Executable`."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar, cast

from xdsl.dialects import func
from xdsl.dialects.builtin import FunctionType, ModuleOp, TensorType, VectorType, i32
from xdsl.dialects.memref import AllocaOp
from xdsl.ir import Operation

from .core import pipelines
from .core.context import CompilerContext, target_of
from .core.errors import CompileError, UnsupportedError, explain
from .core.module import Module, face_of, specs_of
from .core.registry import make_context
from .core.target import Target, named
from .dialects import rt
from .dialects.graph.buffers import buffer_types
from .dialects.graph.interfaces import GraphOp
from .dialects.graph.ops import CallDpsOp, CallPackedOp, ConstantOp
from .dialects.graph.signature import Signature, signature_of
from .dialects.loop.attrs import LoopKind
from .dialects.loop.ops import ForOp, KernelOp
from .runtime.constants import materialise
from .runtime.executable import Executable, Program, executable
from .runtime.functions import callback

if TYPE_CHECKING:
    from .backends.llvm.jit import Effort


def compile(
    module: Module,
    target: str | Target = "host",
    threads: int | None = None,
    opt_level: int = 3,
    pipeline: str | Mapping[str, str] | None = None,
    legalize: Mapping[str, Any] | None = None,
) -> Executable:
    """Compile a module to machine code.

    Args:
        module: what a frontend made; it is not changed.
        target: "host", the name of a processor (see `core.target`), or a `Target`.
        threads: how many threads a call may use; None for as many as there are cores.
        opt_level: 0 (every operator a scalar kernel of its own) to 3.
        pipeline: the passes to run instead of those that `opt_level` and `threads` call for: the
            text that `stepwell pipeline` prints, as edited, or the text of each stage by its
            name. See `docs/pipeline.md`.
        legalize: for the names of operators what is put in their place: a `stepwell.kernel`, or
            a rule. A pipeline of one's own has to have `graph-legalize` then. See
            `docs/kernels-and-functions.md`.

    Raises:
        CompileError: if the module is not valid or has something that cannot be compiled, or
            if the pipeline is malformed, stops short, or does not use `legalize`.
        TargetError: if the target is unknown or is not this machine's architecture.
    """
    if not isinstance(module, Module):
        got = type(module).__name__
        raise CompileError(explain("compile", "no module", expected="stepwell.Module", got=got))
    chosen = target if isinstance(target, Target) else named(target)
    start = stage_of(module.op)
    if start == "llvm":
        raise UnsupportedError(
            explain(
                "compile",
                "the llvm dialect does not say what its tensors are",
                expected='a module of stage "loops" or before',
                got=f'stage "{start}"',
                hint="save the module at an earlier stage, or translate it by mlir-translate",
            )
        )
    passes = passes_of(pipeline, start, opt_level, chosen, threads)
    module.verify()
    if start in ("buffers", "loops"):
        _signature(module.main)
    else:
        specs_of(module.main)
    work = module.clone()
    ctx = make_context(work.weights, chosen)
    if legalize is not None:
        ctx.legalize = _table_for(legalize, start, passes)
    with _without_collector():
        signature, program = _build(ctx, work, passes, start)
    stages = pipelines.STAGES[pipelines.STAGES.index(start) :]
    text = _stage_text(module, chosen, passes, start, ctx.legalize)
    return executable(signature, program, text, stages, ctx.decisions)


def passes_of(
    pipeline: str | Mapping[str, str] | None,
    start: str,
    opt_level: int,
    target: Target,
    threads: int | None,
) -> Mapping[str, str]:
    """The passes of each stage after `start`, for `compile` with these arguments.

    Raises:
        CompileError: if the arguments contradict each other, or the pipeline stops short.
    """
    if pipeline is None:
        return pipelines.pipeline(opt_level, target.cores if threads is None else threads)
    if threads is not None:
        fact = "the pipeline says itself for how many threads it compiles"
        expected = f"convert-rt-to-llvm{{threads={threads}}} in it, and no threads beside it"
        raise CompileError(explain("compile", fact, expected=expected))
    if isinstance(pipeline, str):
        return pipelines.split_pipeline(pipeline, start)
    stages = pipelines.IR_STAGES[pipelines.IR_STAGES.index(start) + 1 :]
    missing = [stage for stage in stages if stage not in pipeline]
    if missing:
        fact = f'the pipeline lacks stage "{missing[0]}"'
        raise CompileError(explain("compile", fact, expected=f"a text for {', '.join(stages)}"))
    return pipeline


def stage_of(op: ModuleOp) -> str:
    """The stage of the staircase that a module is at, by what is in it."""
    names = {inner.name for inner in op.walk()}
    if any(name.startswith("llvm.") for name in names):
        return "llvm"
    if any(_is_operator(inner) for inner in op.walk()):
        return "graph"
    kernels = [k for k in op.walk() if isinstance(k, KernelOp)]
    if any(isinstance(f, func.FuncOp) and _is_on_buffers(f) for f in op.ops):
        return "buffers" if kernels else "loops"
    if any("graph.primitive" in f.attributes for f in op.walk()):
        return "fused"
    if kernels:
        return "scheduled" if any(_is_scheduled(k) for k in kernels) else "kernels"
    return "graph"


def _is_operator(op: Operation) -> bool:
    """Whether an operation is an operator that no primitive function has taken in."""
    if not isinstance(op, GraphOp) or isinstance(op, (ConstantOp, CallDpsOp, CallPackedOp)):
        return False
    function = op.parent_op()
    return function is None or "graph.primitive" not in function.attributes


def _is_on_buffers(function: func.FuncOp) -> bool:
    return rt.ContextType() in function.function_type.inputs.data


def _is_scheduled(kernel: KernelOp) -> bool:
    """Whether a schedule was applied: blocks, tiles or other kinds of loops are in it."""
    for op in kernel.walk():
        if isinstance(op, ForOp) and op.kind.data != LoopKind.PARALLEL:
            return True
        if any(isinstance(result.type, VectorType) for result in op.results):
            return True
    return False


def _build(
    ctx: CompilerContext, module: Module, passes: Mapping[str, str], start: str
) -> tuple[Signature, Program]:
    """Take a module down to machine code."""
    from .backends.llvm.boundary.code import ENTRY
    from .backends.llvm.jit import compile_module

    name = module.main.sym_name.data
    stages = pipelines.walk_stages(ctx, module.op, passes, start)
    op = next(op for stage, op in stages if stage == "loops")
    signature = _signature(module.main)
    constants = tuple(materialise(c, ctx.weights) for c in _table(op, rt.ConstantOp))
    functions = tuple(map(callback, _table(op, rt.CallPackedOp)))
    messages = tuple(failing.explain for failing in rt.failing_operations(module.main))
    effort = _effort(op)
    for _ in stages:
        pass
    code = compile_module(module.op, target_of(ctx), effort, name)
    return signature, Program(code.address(ENTRY), constants, functions, messages, code)


def _signature(main: func.FuncOp) -> Signature:
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


def _effort(op: ModuleOp) -> Effort:
    """Kernels are scheduled already; only small buffers on the stack are left to LLVM's passes."""
    from .backends.llvm.jit import Effort

    staged = any(isinstance(inner, AllocaOp) for inner in op.walk())
    return Effort.LIGHT if staged else Effort.NONE


def _table_for(
    legalize: Mapping[str, Any], start: str, passes: Mapping[str, str]
) -> Mapping[str, Any]:
    """A table for `graph-legalize`, as it is now.

    Raises:
        CompileError: if it is none, the module is past the stage where operators are replaced, or
            the pipeline does not replace them.
    """
    if not isinstance(legalize, Mapping):
        fact, expected = "legalize is no table", "a mapping from names of operators"
        got = type(legalize).__name__
        raise CompileError(explain("compile", fact, expected=expected, got=got))
    if start != "graph":
        fact, expected = "operators are replaced before they are grouped", 'stage "graph"'
        got = f'stage "{start}"'
        raise CompileError(explain("compile", fact, expected=expected, got=got))
    if legalize and "graph-legalize" not in pipelines.passes_in(passes):
        fact, expected = "the pipeline does not use legalize", "graph-legalize in it"
        raise CompileError(explain("compile", fact, expected=expected))
    return dict(legalize)


def _stage_text(
    module: Module,
    target: Target,
    passes: Mapping[str, str],
    start: str,
    legalize: Mapping[str, Any],
) -> Callable[[str], str]:
    """Makes the text of a stage when it is asked for, from the module as it is now."""
    source = module.clone()

    def text(stage: str) -> str:
        pipelines.check_stage(stage)
        work = source.clone()
        ctx = make_context(work.weights, target)
        ctx.legalize = legalize
        effort = _effort(work.op)
        for reached, op in pipelines.walk_stages(ctx, work.op, passes, start):
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
