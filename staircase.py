"""The way of one module down the staircase: at each stage its text, and what it computes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, VectorType
from xdsl.dialects.memref import AllocaOp
from xdsl.ir import Operation

from .core import pipelines
from .core.context import CompilerContext, PassHook
from .core.errors import CompileError, explain
from .core.module import Module
from .core.printing import Listing, listing
from .core.registry import make_context
from .core.target import Target
from .diagnosis.reproducer import defects_told
from .dialects import rt
from .dialects.graph.interfaces import GraphOp
from .dialects.graph.ops import CallDpsOp, CallPackedOp, ConstantOp
from .dialects.loop.attrs import LoopKind
from .dialects.loop.ops import ForOp, KernelOp

if TYPE_CHECKING:
    from .backends.llvm.jit import Effort
    from .core.fate import Fate
    from .diagnosis.profiling import Profiler
    from .runtime.profile import Profile

_INTERPRETED = ("buffers", "loops", "llvm")
"""The stages whose public function takes buffers."""


class Staircase:
    """The stages that a module goes through, made again whenever one is asked for.

    Args:
        module: where the way begins; it is copied.
        target: the machine that passes look at.
        passes: the pass list of each stage after `start`.
        start: the stage of `module`.
        legalize: the table of `graph-legalize`.
        hooks: what is told of each pass.
        schedules: the traces that tuning has found, by the structure of a kernel.
    """

    def __init__(
        self,
        module: Module,
        target: Target,
        passes: Mapping[str, str],
        start: str,
        legalize: Mapping[str, Any],
        hooks: Sequence[PassHook] = (),
        schedules: Mapping[str, str] | None = None,
    ) -> None:
        self._source, self._target = module.clone(), target
        self._passes, self._start, self._legalize = passes, start, legalize
        self._hooks, self._schedules = hooks, schedules or {}
        self._profiler: Profiler | None = None

    def module(self, stage: str) -> Module:
        """The module at a stage that is IR.

        Raises:
            CompileError: if there is no such stage on the way.
        """
        for reached, work in self._walk(stage):
            if reached == stage:
                return work
        raise CompileError(explain("stage", f'"{stage}" is before', got=f'"{self._start}"'))

    def text(self, stage: str) -> str:
        """The text of a stage.

        Raises:
            CompileError: if there is no such stage on the way.
        """
        if stage not in pipelines.TEXT_STAGES:
            return self.module(stage).text()
        from .backends.llvm import jit

        effort, work = None, self._source
        for reached, work in self._walk(stage):
            if reached == "loops":
                effort = effort_for(work.op)
        if stage == "llvm-ir":
            return jit.llvm_ir(work.op, self._target, self.listing())
        ir = jit.llvm_ir(work.op, self._target)
        return jit.assembly(ir, self._target, effort or jit.Effort.NONE)

    def listing(self) -> Listing:
        """On which lines of the text of the first stage the nodes of the model stand."""
        return listing(self._source.op, f"{self._source.main.sym_name.data}.{self._start}.mlir")

    def run(self, stage: str, inputs: Sequence[object]) -> Any:
        """The results of a stage that is IR, interpreted.

        Raises:
            CompileError: if there is no such stage on the way, or it accesses what it must not.
            InputError: if the inputs do not fit.
        """
        if stage not in _INTERPRETED:
            return self.module(stage).run_reference(*inputs)
        from .runtime.interface import interface_of
        from .runtime.interpreted import interpreted

        interface = None
        for reached, work in self._walk(stage):
            if interface is None and reached in _INTERPRETED:
                interface = interface_of(work)
            if interface is not None and reached == stage:
                return interpreted(work.op, interface)(*inputs)
        raise CompileError(explain("stage", f'"{stage}" is before', got=f'"{self._start}"'))

    def profile(self, inputs: Sequence[object], repeat: int | None) -> Profile:
        """Where the time of calls goes; the program with clocks in it is kept.

        Raises:
            InputError: if the inputs do not fit, or `repeat` is below 1.
            StepwellError: if this machine has no clock that can be read.
        """
        from .diagnosis import profiling

        profiling.check(repeat)
        if self._profiler is None:
            work, ctx = self.begin()
            start = self._start
            self._profiler = profiling.profiler(work, ctx, self._passes, start, self.listing())
        return self._profiler.run(inputs, repeat)

    def why(self, node: str) -> Fate:
        """What becomes of a node of the model.

        Raises:
            InputError: if there is no such node.
        """
        from .diagnosis.why import fate

        return fate(self, node)

    def _walk(self, stage: str) -> Iterator[tuple[str, Module]]:
        """The module at each stage, changed in place from one to the next."""
        pipelines.check_stage(stage)
        work, ctx = self.begin()
        ctx.hooks += self._hooks
        for reached, op in self.descend(work, ctx):
            yield reached, Module(op, ctx.weights)

    def descend(self, work: Module, ctx: CompilerContext) -> Iterator[tuple[str, ModuleOp]]:
        """The module that `begin` gives at each stage, changed in place from one to the next."""
        with defects_told(ctx, self._source, self._start):
            yield from pipelines.walk_stages(ctx, work.op, self._passes, self._start)

    def begin(self) -> tuple[Module, CompilerContext]:
        """A copy of the module, and a context for its way down."""
        work = self._source.clone()
        ctx = make_context(work.weights, self._target)
        ctx.legalize, ctx.schedules = self._legalize, self._schedules
        return work, ctx


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


def effort_for(op: ModuleOp) -> Effort:
    """Kernels are scheduled already; only small buffers on the stack are left to LLVM's passes."""
    from .backends.llvm.jit import Effort

    staged = any(isinstance(inner, AllocaOp) for inner in op.walk())
    return Effort.LIGHT if staged else Effort.NONE
