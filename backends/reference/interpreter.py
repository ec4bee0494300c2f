"""Runs modules of the `graph` level on NumPy and SciPy, operator by operator.

This is a plain walk and not an xDSL `Interpreter`: that one finds the implementation of an
operation by its exact class in a table that is filled beforehand, whereas an operator here
carries its own meaning (`GraphOp.reference`), so that one of a plug-in runs without being
listed anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

import numpy as np
from xdsl.dialects import func
from xdsl.ir import Operation, SSAValue
from xdsl.traits import SymbolTable
from xdsl.utils.exceptions import VerifyException

from ...core.errors import CompileError, InputError, UnsupportedError, explain
from ...core.functions import registered
from ...core.module import Module
from ...core.provenance import origin
from ...dialects.graph.attrs import dtype_of
from ...dialects.graph.interfaces import GraphOp, element_type
from ...dialects.graph.ops import CallPackedOp, ConstantOp
from ...dialects.graph.shapes import SymbolicShapes
from .inputs import check_inputs

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    Array = np.ndarray | csr_array


def run(module: Module, inputs: Sequence[object]) -> tuple[Array, ...]:
    """The results of the public function of a module.

    A dense input is a NumPy array of the dtype of its argument; a sparse one is a
    `scipy.sparse` matrix, an object with `to_csr()`, or the three arrays of a CSR matrix.

    Raises:
        InputError: if the inputs do not fit the arguments, or each other.
        CompileError: if the module holds something that is not of the graph level.
    """
    arrays = check_inputs(module.inputs, inputs)
    return _Run(module).call(module.main, arrays)


class _Run:
    """One run of a module."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self._shapes: dict[func.FuncOp, SymbolicShapes] = {}

    def call(self, function: func.FuncOp, arguments: Sequence[Array]) -> tuple[Array, ...]:
        """Run a function with a body."""
        shapes = self._shapes_of(function)
        sizes = {
            symbol: _size(arguments[number], dimension)
            for symbol, (number, dimension) in shapes.bindings.items()
        }
        _check_equalities(shapes, sizes)
        values: dict[SSAValue, Array] = dict(zip(function.body.block.args, arguments, strict=True))
        for op in function.body.block.ops:
            operands = [values[operand] for operand in op.operands]
            if isinstance(op, func.ReturnOp):
                return tuple(operands)
            if isinstance(op, CallPackedOp):
                results = _call_packed(op, operands, shapes, sizes)
            else:
                results = self._results(op, operands)
            values.update(zip(op.results, results, strict=True))
        name = f"@{function.sym_name.data}"
        raise CompileError(explain(f"func.func {name}", "does not end in func.return"))

    def _shapes_of(self, function: func.FuncOp) -> SymbolicShapes:
        if function not in self._shapes:
            try:
                self._shapes[function] = SymbolicShapes(function)
            except VerifyException as error:
                raise CompileError(str(error)) from error
        return self._shapes[function]

    def _results(self, op: Operation, operands: Sequence[Array]) -> tuple[Array, ...]:
        if isinstance(op, ConstantOp):
            return (op.array(self.module.weights),)
        if isinstance(op, GraphOp):
            return op.reference(*operands)
        if not isinstance(op, func.CallOp):
            fact = "the reference runs the graph level only"
            raise UnsupportedError(explain(op.name, fact, origin=origin(op)))
        callee = SymbolTable.lookup_symbol(op, op.callee)
        if not isinstance(callee, func.FuncOp) or not callee.body.blocks:
            fact = f"there is no function {op.callee} with a body"
            raise CompileError(explain(op.name, fact, origin=origin(op)))
        return self.call(callee, operands)


def _size(array: Array, dimension: int | str) -> int:
    if isinstance(dimension, str):
        return int(cast("csr_array", array).nnz)
    return int(cast(tuple[int, ...], array.shape)[dimension])


def _check_equalities(shapes: SymbolicShapes, sizes: Mapping[str, int]) -> None:
    """Check the sizes that have to agree although the types do not say so."""
    for a, b, op in shapes.equalities:
        if not set(a.symbols + b.symbols) <= sizes.keys():
            continue
        left, right = a.evaluate(sizes), b.evaluate(sizes)
        if left == right:
            continue
        fact = f"sizes {a} and {b} differ"
        raise InputError(explain(op.name, fact, expected=left, got=right, origin=origin(op)))


def _call_packed(
    op: CallPackedOp,
    operands: Sequence[Array],
    shapes: SymbolicShapes,
    sizes: Mapping[str, int],
) -> tuple[Array, ...]:
    """Call a registered function with its inputs, read-only, and the arrays it is to fill."""
    function = registered(op.callee.data)
    results: list[np.ndarray] = []
    for result in op.results:
        shape = shapes.shape(result)
        unknown = [str(d) for d in shape if not set(d.symbols) <= sizes.keys()]
        if unknown:
            fact = "the size of a result is unknown; give it in dims"
            raise CompileError(explain(op.name, fact, origin=origin(op)))
        size = tuple(dim.evaluate(sizes) for dim in shape)
        results.append(np.empty(size, dtype_of(element_type(result))))
    function(*[_read_only(array) for array in operands], *results)
    return tuple(results)


def _read_only(array: Array) -> Array:
    if not isinstance(array, np.ndarray):
        return array
    view = array.view()
    view.flags.writeable = False
    return view
