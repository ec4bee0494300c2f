"""Runs modules of the `graph` level on NumPy and SciPy, operator by operator.

This is a plain walk and not an xDSL `Interpreter`, which looks up the implementation of an
operation by its exact class in a table filled beforehand. Here each operator implements its own
semantics (`GraphOp.reference`), so operators of plug-ins run without registration.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.interpreter import Interpreter
from xdsl.ir import Block, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from ...core.boundary.functions import call, registered
from ...core.dtype_names import as_buffer
from ...core.dtypes import dtype_of
from ...core.errors import CompileError, InputError, UnsupportedError, explain
from ...core.ir.module import Module
from ...core.ir.provenance import origin
from ...core.ir.symbols import find_symbol
from ...dialects.graph.interfaces import GraphOp, element_type, tensor_type
from ...dialects.graph.ops import CallDpsOp, CallPackedOp, ConstantOp, IfOp, LoopOp, YieldOp
from ...dialects.graph.sizes.computed import bounds_of
from ...dialects.graph.sizes.shapes import SymbolicShapes, sizes_of
from ...dialects.loop.ops import KernelOp
from ...dialects.sparse_tensor import index_type, position_type
from .computed_sizes import FunctionFrame, cut, with_computed
from .control_flow import run_if, run_loop
from .inputs import check_inputs
from .machine import run_kernel
from .numbers import unknown
from .remembered import Remembered
from .sizes import check_accesses_of_call, check_sizes, check_sizes_of_call

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    Array = np.ndarray | csr_array


Observe = Callable[[Operation, "tuple[Array, ...]"], "tuple[Array, ...] | None"]
"""Called with each operation after its run, and its results; may return replacements."""


def run(
    module: Module,
    inputs: Sequence[object],
    observe: Observe | None = None,
    listeners: Sequence[Interpreter.Listener] = (),
    remembered: Remembered | None = None,
) -> tuple[Array, ...]:
    """The results of the public function of a module.

    A dense input is a NumPy array of the dtype of its argument; a sparse one is a
    `scipy.sparse` matrix, an object with `to_csr()`, or the three arrays of a CSR matrix.

    `observe` is called for each operation of the graph level, `listeners` for those in kernels;
    `remembered` knows results of kernels.

    Raises:
        InputError: if the inputs do not fit the arguments, or contradict each other.
        CompileError: if the module has operations outside of the graph level.
    """
    arrays = check_inputs(module, inputs)
    return _Run(module, observe, listeners, remembered).call(module.main, arrays)


class _Run:
    """One run of a module."""

    def __init__(
        self,
        module: Module,
        observe: Observe | None,
        listeners: Sequence[Interpreter.Listener],
        remembered: Remembered | None,
    ) -> None:
        self.module, self.listeners, self.remembered = module, listeners, remembered
        self.observe = observe
        self._shapes: dict[func.FuncOp, SymbolicShapes] = {}

    def call(
        self,
        function: func.FuncOp,
        arguments: Sequence[Array],
        bounded: frozenset[SSAValue] = frozenset(),
    ) -> tuple[Array, ...]:
        """Run a function with a body; for `bounded` see `FunctionFrame`."""
        shapes = self._shapes_of(function)
        try:
            sizes = shapes.solve(dict(enumerate(map(sizes_of, arguments))))
        except VerifyException as error:
            raise InputError(str(error)) from error
        frame = FunctionFrame(shapes, sizes, self._run_block, bounded)
        returned = self._run_block(function.body.block, arguments, frame)
        if returned is None:
            name = f"@{function.sym_name.data}"
            raise CompileError(explain(f"func.func {name}", "does not end in func.return"))
        return returned

    def _run_block(
        self, block: Block, arguments: Sequence[Array], frame: FunctionFrame
    ) -> tuple[Array, ...] | None:
        """Run a block; returns what its terminator gives, None where it has none."""
        values: dict[SSAValue, Array] = dict(zip(block.args, arguments, strict=True))
        for op in block.ops:
            operands = [values[operand] for operand in op.operands]
            if isinstance(op, func.ReturnOp | YieldOp):
                return tuple(operands)
            frame = with_computed(op, op.operands, operands, frame)
            if isinstance(op, CallPackedOp):
                # A registered function gets read-only inputs and the arrays for its results.
                function = registered(op.callee.data)
                arrays = _destinations(op, frame)
                call(op.callee.data, function, [_read_only(array) for array in operands], arrays)
                results = tuple(arrays)
            elif isinstance(op, CallDpsOp):
                results = _call_dps(op, operands, frame, self.listeners, self.remembered)
            elif isinstance(op, IfOp):
                results = run_if(op, operands, frame)
            elif isinstance(op, LoopOp):
                results = run_loop(op, operands, frame)
            else:
                results = self._results(op, operands, frame)
            frame = with_computed(op, op.results, results, frame)
            if isinstance(op, CallPackedOp | CallDpsOp):
                results = cut(op, results, frame)
            if self.observe is not None:
                results = self.observe(op, results) or results
            values.update(zip(op.results, results, strict=True))
        return None

    def _shapes_of(self, function: func.FuncOp) -> SymbolicShapes:
        if function not in self._shapes:
            try:
                self._shapes[function] = SymbolicShapes(function)
            except VerifyException as error:
                raise CompileError(str(error)) from error
        return self._shapes[function]

    def _results(
        self, op: Operation, operands: Sequence[Array], frame: FunctionFrame
    ) -> tuple[Array, ...]:
        if isinstance(op, ConstantOp):
            return (op.array(self.module.weights),)
        if isinstance(op, GraphOp):
            check_sizes(op, operands)
            return op.reference(*operands)
        if not isinstance(op, func.CallOp):
            fact = "the reference runs the graph level only"
            raise UnsupportedError(explain(op.name, fact, origin=origin(op)))
        callee = find_symbol(op, op.callee)
        if not isinstance(callee, func.FuncOp) or not callee.body.blocks:
            fact = f"there is no function {op.callee} with a body"
            raise CompileError(explain(op.name, fact, origin=origin(op)))
        pairs = zip(callee.args, op.operands, strict=True)
        holders = {size.value for size in frame.shapes.computed.values()} | frame.bounded
        return self.call(callee, operands, frozenset(a for a, v in pairs if v in holders))


def _destinations(op: CallPackedOp | CallDpsOp, frame: FunctionFrame) -> list[np.ndarray]:
    """The arrays for the results of a call, with undefined values."""
    results: list[np.ndarray] = []
    own = {n: s for n, s in frame.shapes.computed.items() if s.value in op.results}
    for result in op.results:
        shape = [dim.at_most(bounds_of(own)) for dim in frame.shapes.shape(result)]
        if any(not set(dim.symbols) <= frame.sizes.keys() for dim in shape):
            fact = "the size of a result is unknown; give it in dims"
            raise CompileError(explain(op.name, fact, origin=origin(op)))
        size = tuple(dim.evaluate(frame.sizes) for dim in shape)
        if min(size, default=0) < 0:
            fact = f"the size {shape[size.index(min(size))]} is negative"
            expected, where = "0 or more", origin(op) or op.name
            raise InputError(explain(where, fact, expected=expected, got=min(size)))
        results.append(unknown(size, element_type(result)))
    return results


def _call_dps(
    op: CallDpsOp,
    operands: Sequence[Array],
    frame: FunctionFrame,
    listeners: Sequence[Interpreter.Listener],
    remembered: Remembered | None,
) -> tuple[Array, ...]:
    """Run a kernel of the module, operation by operation."""
    kernel = find_symbol(op, op.callee)
    if not isinstance(kernel, KernelOp):
        fact = f"{op.callee} is not a kernel"
        raise UnsupportedError(explain(op.name, fact, expected="loop.kernel", origin=origin(op)))
    check_sizes_of_call(op, kernel, operands)
    results = _destinations(op, frame)
    check_accesses_of_call(op, kernel, operands, results)
    values, arrays = (*op.operands, *op.results), (*operands, *results)
    buffers = [
        part
        for value, array in zip(values, arrays, strict=True)
        for part in _parts(array, tensor_type(value))
    ]
    run_kernel(kernel, buffers, listeners, remembered)
    return tuple(results)


def _parts(array: Array, kind: TensorType) -> list[np.ndarray | int]:
    """The arguments of a kernel for an array: its memory, or the parts of a CSR matrix."""
    if isinstance(array, np.ndarray):
        return [as_buffer(array)]
    pointers, indices = dtype_of(position_type(kind)), dtype_of(index_type(kind))
    parts = [array.indptr.astype(pointers), array.indices.astype(indices), array.data]
    return [*parts, array.shape[1]] if kind.get_shape()[1] == DYNAMIC_INDEX else parts


def _read_only(array: Array) -> Array:
    if not isinstance(array, np.ndarray):
        return array
    view = array.view()
    view.flags.writeable = False
    return view
