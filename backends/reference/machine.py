"""xDSL's interpreter with the dialects of all stages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from xdsl.dialects import llvm, scf
from xdsl.dialects.builtin import ModuleOp, SymbolRefAttr
from xdsl.interpreter import (
    Interpreter,
    OpImplResult,
    PythonValues,
    ReturnedValues,
    TerminatorValue,
    impl,
    register_impls,
)
from xdsl.interpreters.cf import CfFunctions
from xdsl.interpreters.func import FuncFunctions
from xdsl.interpreters.scf import ScfFunctions
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.utils.exceptions import InterpretationError

from ...core.errors import CompileError, UnsupportedError, explain
from ...core.ir.provenance import origin
from ...dialects.host_accesses import host_reads, host_writes
from ...dialects.loop.ops import KernelOp
from ...dialects.upstream import ops as upstream
from . import buffers, vectors
from . import llvm as llvm_functions
from .buffers import BufferFunctions
from .listeners import CallingOperations, CallListener
from .llvm import LlvmFunctions, call_external, call_native
from .lockstep import Lockstep
from .loop import LoopFunctions, kernel_arguments
from .memory import Memory, MemoryInterpreter
from .numbers import Compute, Meaning, computation, is_number
from .remembered import CALLS, Remembered, name_of
from .rt import RtFunctions, check_host_reads, note_host_writes


@register_impls
class StructuredFunctions(ScfFunctions):
    """xDSL's implementations of `scf`, also for the operations of `upstream`."""

    def __init__(self, lockstep: Lockstep) -> None:
        self._lockstep = lockstep

    @impl(scf.ForOp)
    def run_loop(self, interpreter: Interpreter, op: scf.ForOp, args: PythonValues) -> PythonValues:
        """Run the iterations, all at once where they do not depend on each other."""
        if not op.iter_args and self._lockstep.run(interpreter, op):
            return ()
        # Numbers are those of Python here, and not attributes as in xDSL's loop.
        lower, upper, step, *carried = args
        for index in range(lower, upper, step):
            carried = interpreter.run_ssacfg_region(op.body, (index, *carried), "for_loop")
        return tuple(carried)

    @impl(upstream.WhileOp)
    def run_corrected_while(
        self, interpreter: Interpreter, op: upstream.WhileOp, args: PythonValues
    ) -> PythonValues:
        """Run it like xDSL's operation."""
        return self.run_while(interpreter, op, args).values


_COMPUTATIONS: Mapping[type[Operation], Meaning] = {
    **buffers.COMPUTATIONS,
    **llvm_functions.COMPUTATIONS,
    **vectors.COMPUTATIONS,
}


@dataclass(slots=True)
class _Step:
    """An operation of a block, decoded once for all its runs."""

    op: Operation
    run: Callable[[Interpreter, Operation, PythonValues], OpImplResult]
    operands: tuple[int, ...]
    """The keys of its operands among the values of a call."""
    results: tuple[int, ...]
    calls: bool
    """Whether it calls a function or a kernel."""
    computes: bool
    """Whether all that it does is to compute at most one result of its operands."""
    reads: tuple[int, ...]
    """The positions of the buffers among its operands that the host reads, if it executes it."""
    writes: tuple[int, ...]
    """Those that the host writes to."""
    compute: Compute | None = None
    """What it computes, known from its first run on."""


class ReferenceMachine(MemoryInterpreter):
    """Runs functions and kernels of a module, operation by operation.

    A call has one table of values for all its regions: a region that runs again overwrites the
    values of its last run. The module must not change between runs.

    Args:
        module: the module, at any stage after `fused`, or between stages.
        natives: machine code to call instead of functions of the LLVM dialect, by name.
        remembered: results of earlier runs, of modules that may have functions in common.
    """

    def __init__(
        self,
        module: ModuleOp,
        natives: Mapping[str, Callable[..., Any]] = {},
        remembered: Remembered | None = None,
    ) -> None:
        self.natives, self.remembered = natives, remembered
        super().__init__(module, index_bitwidth=64)
        self.memory = Memory()
        self._values: dict[int, Any] = {}
        self._decoded: dict[Block, list[_Step]] = {}
        lockstep = Lockstep()
        loops = (LoopFunctions(lockstep), RtFunctions(lockstep), StructuredFunctions(lockstep))
        standard = (BufferFunctions(), CfFunctions(), FuncFunctions())
        for functions in (*loops, *standard, LlvmFunctions()):
            self.register_implementations(functions)

    def listen(self, listeners: Iterable[Interpreter.Listener]) -> None:
        """Notify listeners of operations that run."""
        self.listeners = tuple(listeners)
        self.watchers = tuple(
            one for one in self.listeners if not isinstance(one, CallingOperations)
        )

    def call_op(
        self, op: Operation | str | SymbolRefAttr, inputs: PythonValues = ()
    ) -> PythonValues:
        """Call a function or a kernel, and notify listeners of calls."""
        callee = op if isinstance(op, Operation) else self.get_op_for_symbol(op)
        listening = [one for one in self.listeners if isinstance(one, CallListener)]
        name = name_of(callee)
        for listener in listening:
            listener.will_call(name, inputs)
        caller, self._values = self._values, {}
        try:
            results = self._called_or_recalled(callee, inputs)
        finally:
            self._values = caller
        for listener in listening:
            listener.did_call(name)
        return results

    def _called_or_recalled(self, callee: Operation, inputs: PythonValues) -> PythonValues:
        """Call a function, unless what the call writes is known."""
        known = self.remembered
        if known is not None and known.replay(callee, inputs):
            return ()
        if known is None or self.watchers:
            return self._call(callee, inputs)
        key = known.recall(callee, inputs)
        if key is None:
            return ()
        results = self._call(callee, inputs)
        known.keep(callee, inputs, key)
        return results

    def _call(self, callee: Operation, inputs: PythonValues) -> PythonValues:
        """Call a kernel, or a function of `llvm` or `func`; xDSL handles those of `func`."""
        match callee:
            case KernelOp():
                return self.run_ssacfg_region(callee.body, inputs, callee.sym_name.data)
            case llvm.FuncOp() if callee.sym_name.data in self.natives:
                return call_native(self.natives[callee.sym_name.data], callee, inputs)
            case llvm.FuncOp() if callee.body.blocks:
                return self.run_ssacfg_region(callee.body, inputs, callee.sym_name.data)
            case llvm.FuncOp():
                return call_external(self, callee, inputs)
            case _:
                return super().call_op(callee, inputs)

    def get_values(self, values: Iterable[SSAValue]) -> PythonValues:
        """The values of the current call."""
        return tuple([self._values[id(value)] for value in values])

    def run_ssacfg_region(
        self, region: Region, args: PythonValues, name: str = "unknown"
    ) -> PythonValues:
        """Run a region of the current call."""
        values, block = self._values, region.blocks.first
        while block is not None:
            steps = self._decoded.get(block)
            if not steps:
                # Look up how to run the operations of the block.
                steps = self._decoded[block] = [
                    _Step(
                        op,
                        self._implementation(type(op)),
                        tuple(map(id, op.operands)),
                        tuple(map(id, op.results)),
                        isinstance(op, CALLS),
                        is_number(op)
                        or (type(op) in _COMPUTATIONS and not llvm_functions.loads_address(op)),
                        _positions(op, host_reads(op)),
                        _positions(op, host_writes(op)),
                    )
                    for op in block.ops
                ]
            values.update(zip(map(id, block.args), args, strict=True))
            block = None
            for step in steps:
                ended = self._run_step(step, tuple([values[key] for key in step.operands]))
                if ended is None:
                    continue
                if isinstance(ended, ReturnedValues):
                    return ended.values
                block, args = ended
                break
        return ()

    def _implementation(
        self, kind: type[Operation]
    ) -> Callable[[Interpreter, Operation, PythonValues], OpImplResult]:
        found = self._impls._impl_dict.get(kind)
        if found is None:
            return _refuse
        functions, run = found
        return partial(run, functions)

    def _run_step(self, step: _Step, inputs: PythonValues) -> TerminatorValue | None:
        """Run an operation; returns where to go on if it ends its block."""
        op = step.op
        listeners = self.listeners if step.calls else self.watchers
        if (step.reads or step.writes) and not self.memory.on_device:
            check_host_reads(self, op, [inputs[place] for place in step.reads])
            note_host_writes(self, [inputs[place] for place in step.writes])
        try:
            if step.computes and not listeners:
                compute = step.compute or self._computation(step)
                result = compute(*inputs)
                if step.results:
                    self._values[step.results[0]] = result
                return None
            return self._run_observed(step, inputs, listeners)
        except InterpretationError as error:
            fact = str(error).partition("\n")[0]
            raise UnsupportedError(explain(op.name, fact, origin=origin(op))) from error
        except RecursionError as error:
            raise CompileError(explain(op.name, "calls itself", origin=origin(op))) from error
        except (ArithmeticError, IndexError, TypeError, ValueError) as error:
            # Unsupported operands: the module may be handwritten.
            raise CompileError(explain(op.name, str(error), origin=origin(op))) from error

    def _run_observed(
        self, step: _Step, inputs: PythonValues, listeners: Sequence[Interpreter.Listener]
    ) -> TerminatorValue | None:
        op, results, ended = step.op, (), None
        for listener in listeners:
            listener.will_interpret_op(op, inputs)
        if step.computes:
            compute = step.compute or self._computation(step)
            result = compute(*inputs)
            results = (result,) if step.results else ()
        else:
            results, ended = step.run(self, op, inputs)
        self._values.update(zip(step.results, results, strict=True))
        for listener in listeners:
            listener.did_interpret_op(op, results)
        return ended

    def _computation(self, step: _Step) -> Compute:
        op = step.op
        meaning = _COMPUTATIONS.get(type(op))
        step.compute = compute = (meaning or computation)(op)
        return compute


def _positions(op: Operation, values: Sequence[SSAValue]) -> tuple[int, ...]:
    return tuple(place for place, operand in enumerate(op.operands) if operand in values)


def _refuse(interpreter: Interpreter, op: Operation, args: PythonValues) -> OpImplResult:
    """Run an operation that has no implementation.

    Raises:
        InterpretationError: always.
    """
    raise InterpretationError(f"Could not find interpretation function for op {op.name}")


def call(machine: ReferenceMachine, op: Operation, arguments: Sequence[Any]) -> PythonValues:
    """The results of a function or a kernel of the machine's module."""
    with np.errstate(all="ignore"):
        return machine.call_op(op, tuple(arguments))


def run_kernel(
    kernel: KernelOp,
    arrays: Sequence[np.ndarray | int],
    listeners: Sequence[Interpreter.Listener] = (),
    remembered: Remembered | None = None,
) -> None:
    """Run a kernel; its outputs are written in place. See `kernel_arguments`."""
    module = kernel.parent_op()
    module = module if isinstance(module, ModuleOp) else ModuleOp([])
    machine = ReferenceMachine(module, remembered=remembered)
    machine.listen(listeners)
    call(machine, kernel, kernel_arguments(kernel, arrays))
