"""xDSL's interpreter with the dialects of all stages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.dialects import llvm
from xdsl.dialects.builtin import ModuleOp, StringAttr, SymbolRefAttr
from xdsl.interpreter import (
    Interpreter,
    PythonValues,
    ReturnedValues,
    Successor,
    impl,
    register_impls,
)
from xdsl.interpreters.cf import CfFunctions
from xdsl.interpreters.func import FuncFunctions
from xdsl.interpreters.scf import ScfFunctions
from xdsl.ir import Operation, Region
from xdsl.utils.exceptions import InterpretationError
from xdsl.utils.scoped_dict import ScopedDict

from ...core.errors import CompileError, UnsupportedError, explain
from ...core.provenance import origin
from ...dialects.loop.ops import KernelOp
from ...dialects.upstream import ops as upstream
from .buffers import BufferFunctions
from .llvm import LlvmFunctions, call_external, call_native
from .loop import LoopFunctions, kernel_arguments
from .memory import Memory, MemoryInterpreter
from .numbers import number_functions
from .rt import RtFunctions
from .vectors import VectorFunctions
from .writes import CallListener


@register_impls
class StructuredFunctions(ScfFunctions):
    """xDSL's implementations of `scf`, also for the operations of `upstream`."""

    @impl(upstream.WhileOp)
    def run_corrected_while(
        self, interpreter: Interpreter, op: upstream.WhileOp, args: PythonValues
    ) -> PythonValues:
        """Run it like xDSL's operation."""
        return self.run_while(interpreter, op, args).values


class Machine(MemoryInterpreter):
    """Runs functions and kernels of a module, operation by operation.

    Args:
        module: the module, at any stage after `fused`, or between stages.
        natives: machine code to call instead of functions of the LLVM dialect, by name.
    """

    def __init__(self, module: ModuleOp, natives: Mapping[str, Callable[..., Any]] = {}) -> None:
        self.natives = natives
        super().__init__(module, index_bitwidth=64)
        self.memory = Memory()
        own = (LoopFunctions(), BufferFunctions(), VectorFunctions(), RtFunctions())
        standard = (StructuredFunctions(), CfFunctions(), FuncFunctions(), LlvmFunctions())
        for functions in (*number_functions(), *own, *standard):
            self.register_implementations(functions)

    def call_op(
        self, op: Operation | str | SymbolRefAttr, inputs: PythonValues = ()
    ) -> PythonValues:
        """Call a function or a kernel, and notify listeners of calls."""
        callee = op if isinstance(op, Operation) else self.get_op_for_symbol(op)
        listening = [one for one in self.listeners if isinstance(one, CallListener)]
        if not listening:
            return self._call(callee, inputs)
        symbol = callee.properties.get("sym_name")
        name = symbol.data if isinstance(symbol, StringAttr) else ""
        for listener in listening:
            listener.will_call(name, inputs)
        results = self._call(callee, inputs)
        for listener in listening:
            listener.did_call(name)
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

    def run_ssacfg_region(
        self, region: Region, args: PythonValues, name: str = "unknown"
    ) -> PythonValues:
        """Run a region in one scope; xDSL would nest a new one for each block that it enters."""
        outer = self._ctx
        values: dict[Any, Any] = {}
        self._ctx = ScopedDict(parent=outer, name=name, local_scope=values)
        try:
            block = region.blocks.first
            while block is not None:
                values.update(zip(block.args, args, strict=True))
                following = None
                for op in block.ops:
                    result = self._run_op(op, self.get_values(op.operands))
                    values.update(zip(op.results, result.values, strict=True))
                    match result.terminator_value:
                        case ReturnedValues(results):
                            return results
                        case Successor(following, args):
                            break
                        case _:
                            pass
                block = following
        finally:
            self._ctx = outer
        return ()

    def _run_op(self, op: Operation, inputs: PythonValues) -> Any:
        try:
            return super()._run_op(op, inputs)
        except InterpretationError as error:
            fact = str(error).partition("\n")[0]
            raise UnsupportedError(explain(op.name, fact, origin=origin(op))) from error
        except RecursionError as error:
            raise CompileError(explain(op.name, "calls itself", origin=origin(op))) from error
        except (ArithmeticError, IndexError, TypeError, ValueError) as error:
            # Unsupported operands: the module may be handwritten.
            raise CompileError(explain(op.name, str(error), origin=origin(op))) from error


def call(machine: Machine, op: Operation, arguments: Sequence[Any]) -> PythonValues:
    """The results of a function or a kernel of the machine's module."""
    with np.errstate(all="ignore"):
        return machine.call_op(op, tuple(arguments))


def run_kernel(
    kernel: KernelOp,
    arrays: Sequence[np.ndarray | int],
    listeners: Sequence[Interpreter.Listener] = (),
) -> None:
    """Run a kernel; its outputs are written in place. See `kernel_arguments`."""
    module = kernel.parent_op()
    machine = Machine(module if isinstance(module, ModuleOp) else ModuleOp([]))
    machine.listeners = tuple(listeners)
    call(machine, kernel, kernel_arguments(kernel, arrays))
