"""`Builder`: a model written in Python, operator by operator.

Every operator of the `graph` dialect is a method under its mnemonic with the arguments of its
constructor, except that tensors may be NumPy or SciPy arrays and Python numbers:

    b = Builder("main")
    x = b.input("x", ("batch", 784), "f32")
    h = b.relu(b.dense(x, w0, bias=b0))
    b.output(h * 2 + 1, name="y")
    module = b.module()
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    LocationAttr,
    ModuleOp,
    NoneAttr,
    StringAttr,
    TensorType,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.utils.exceptions import VerifyException

from ..core.boundary.specs import SparseSpec, TensorSpec
from ..core.dtypes import element_type_of
from ..core.errors import CompileError
from ..core.ir.module import Module
from ..core.ir.provenance import named
from ..core.ir.public_function import NAME
from ..core.ir.weights import WeightStore
from ..dialects.graph.interfaces import GraphOp, element_type
from ..dialects.graph.op_builder import Arguments, parameters_of
from ..dialects.graph.ops.sources.constant import ConstantOp
from ..dialects.graph.ops.sparse.sparse_forms import sparse_form
from ..dialects.loop.ops import KernelOp
from ..dialects.sparse_tensor import csr, is_sparse
from .arrays import (
    csr_matrix_of,
    dense_array,
    element_type_named,
    equal,
    is_scipy,
)
from .calls import CallMethods
from .captures import block_of
from .control import ControlFlow
from .diagnostics import input_error, reworded
from .edge_lists import EdgeLists
from .operands import check_kinds, has_own_type, only_value
from .recurrences import Recurrences
from .selections import Selections
from .specs import argument_of, identifier, name_result_sizes, symbols_of
from .values import Operand, Value

if TYPE_CHECKING:
    from .arrays import Array


class Builder(CallMethods, ControlFlow, EdgeLists, Selections, Recurrences):
    """A function of tensors, written by calling its operators in order.

    Args:
        name: the name of the function.
        weights: the store of its arrays; by default a new one.
    """

    def __init__(self, name: str = "main", weights: WeightStore | None = None) -> None:
        if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z_][\w$.]*", name):
            raise input_error("Builder", "bad function name", "letters, digits and _", repr(name))
        self.name = name
        self.weights = WeightStore() if weights is None else weights
        self._stored: dict[int, tuple[object, str]] = {}
        self._block = Block()
        self._region = Region(self._block)
        self._closed: set[Block | None] = set()
        self._inputs: dict[str, DictionaryAttr] = {}
        self._symbols: set[str] = set()
        """What the symbols of sizes of each input begin with that have no name."""
        self._outputs: list[tuple[SSAValue, DictionaryAttr]] = []
        self._kernels: dict[tuple[Any, ...], KernelOp] = {}
        self._node: LocationAttr | None = None

    def input(
        self,
        name: str,
        shape: Sequence[int | str | None] | TensorSpec | SparseSpec,
        dtype: str = "f32",
    ) -> Value:
        """Add an argument of the program.

        Args:
            name: its name for callers.
            shape: its sizes; a str names a symbolic size, None is a symbolic size with a generated
                name. A `TensorSpec` or `SparseSpec` also replaces `dtype`.
            dtype: its element type: f16, bf16, f32, f64, i1, i8 to i64, ui8 to ui32.

        Raises:
            InputError: if the name is taken, or the shape or dtype is invalid.
        """
        self._check_outside("input")
        if not isinstance(name, str) or not name or name in self._inputs:
            raise input_error("Builder", "input name is taken or empty", got=repr(name))
        if isinstance(shape, (tuple, list)):
            shape = TensorSpec(tuple(shape), dtype)
        if not isinstance(shape, (TensorSpec, SparseSpec)):
            raise input_error(f'input "{name}"', "the shape is not a sequence", got=repr(shape))
        symbols = symbols_of(name, self._symbols)
        type, attrs = argument_of(name, shape, symbols)
        self._inputs[name] = attrs
        self._symbols.add(symbols)
        argument = self._block.insert_arg(type, len(self._block.args))
        argument.location = named(name)
        argument.name_hint = identifier(name)
        return Value(self, argument)

    def constant(self, array: Operand, name: str = "constant", dtype: str | None = None) -> Value:
        """A constant tensor.

        Args:
            array: a number, a NumPy array, or a two-dimensional `scipy.sparse` array, which
                stays sparse (CSR). It is copied.
            name: its name in the weight store; a single element becomes a literal instead.
            dtype: its element type; by default that of the array, with f32 for Python floats and
                i64 for Python integers.

        Raises:
            InputError: if there is no such element type, or it cannot hold the elements.
        """
        location = self._located(None if name == "constant" else name)
        element = None if dtype is None else element_type_named(name, dtype)
        return self._constant(array, name, element, location)

    def output(self, value: Value, name: str | None = None) -> None:
        """Make `value` the next result of the program, called `name`.

        Raises:
            InputError: if it is not a value of this builder, or the name is taken.
        """
        self._check_outside("output")
        ssa = self._own(value, "output")
        label = f"result{len(self._outputs)}" if name is None else name
        if any(attrs.data[NAME] == StringAttr(label) for _, attrs in self._outputs):
            raise input_error("Builder", "output name is taken", got=repr(label))
        self._outputs.append((ssa, DictionaryAttr({NAME: StringAttr(label)})))

    def module(self) -> Module:
        """A module of the program so far; the builder can be used further.

        Raises:
            InputError: if it has no output.
            CompileError: if sizes in loops and conditions do not fit together.
        """
        if not self._outputs:
            raise input_error("Builder", "the program has no output", "a call of output()")
        region, copies = Region(), dict[SSAValue, SSAValue]()
        self._region.clone_into(region, 0, copies)
        function = self._function(region, [copies[value] for value, _ in self._outputs])
        function.res_attrs = ArrayAttr([attrs for _, attrs in self._outputs])
        kernels = [kernel.clone() for kernel in self._kernels.values()]
        module = Module(ModuleOp([function, *kernels]), self.weights.copy())
        module.verify()
        try:
            name_result_sizes(function)
        except VerifyException as error:
            raise CompileError(str(error)) from error
        return module

    def take(self) -> list[Operation]:
        """Detach and return the operators so far, in order, for the caller to insert.

        Values of another function may be their operands, as `Value(builder, ssa)`.
        """
        ops = list(self._block.ops)
        for op in ops:
            op.detach()
        return ops

    def _function(self, region: Region, values: Sequence[SSAValue]) -> func.FuncOp:
        """The function with a copy of the body, which returns `values`."""
        block = region.block
        block.add_op(func.ReturnOp(*values))
        return func.FuncOp(
            self.name,
            FunctionType.from_lists([a.type for a in block.args], [v.type for v in values]),
            region,
            arg_attrs=ArrayAttr(list(self._inputs.values())),
        )

    def apply(
        self, operator: type[GraphOp], *args: Operand, name: str | None = None, **kwargs: Operand
    ) -> Any:
        """Append an operator, such as one of a plug-in, with the arguments of its constructor.

        An operator on dense tensors also accepts a sparse matrix if it maps 0 to 0: its result is
        sparse (or dense, as for products and sums of rows).

        Args:
            operator: its class. Operands may be arrays or numbers, which are converted to the
                element type of the first operand that is a `Value`.
            name: the name of the model's node in messages; by default the caller's line.

        Returns:
            Its result, a `Value`; a tuple if it has several.

        Raises:
            InputError: if the arguments do not fit, with the message of the operator.
        """
        location = self._located(name)
        try:
            named_values = {key: only_value(argument) for key, argument in kwargs.items()}
            arguments = Arguments(operator, map(only_value, args), named_values)
            check_kinds(parameters_of(operator).signature, arguments.attributes)
            values = (v.ssa for v in arguments.typed if isinstance(v, Value))
            like = next(map(element_type, values), None)

            def operand(argument: Operand, key: str, own: Attribute | None) -> SSAValue:
                kept = own is not None or has_own_type(operator, argument, like)
                label = f"{operator.name.partition('.')[2]}_{key}"
                return self._operand(argument, None if kept else like, label, location)

            arguments.convert(operand)
            ops = self._made(arguments.build(lambda value: value), location)
        except (VerifyException, TypeError, ValueError, KeyError, OverflowError) as error:
            raise reworded(error, operator, location) from error
        last = [self._append(op) for op in ops][-1]
        results = ops[-1].results
        return last if len(results) == 1 else tuple(Value(self, r) for r in results)

    def _made(self, op: GraphOp, location: LocationAttr) -> list[GraphOp]:
        """The operator, or its replacement if an operand is sparse and must be dense."""
        sparse = any(is_sparse(operand.type) for operand in op.operands)
        forms = sparse_form(op, op.operands) if sparse else None
        if forms is not None:
            op.erase()
        ops = [op] if forms is None else forms
        for made in ops:
            made.location = location
            made.verify()
        return ops

    def _append(self, op: Operation, hint: str | None = None) -> Value:
        self._block.add_op(op)
        if hint is not None:
            op.results[0].name_hint = identifier(hint)
        return Value(self, op.results[0])

    def _constant(
        self, array: Operand, name: str, element: Attribute | None, location: LocationAttr
    ) -> Value:
        if is_scipy(array):
            values = csr_matrix_of(array, name, element)
        else:
            values = dense_array(array, name, element)
        key = None
        if isinstance(values, np.ndarray) and values.size == 1:
            op = ConstantOp.literal(values)
        else:
            key = self._weight(array, values, name)
            sparse = not isinstance(values, np.ndarray)
            encoding = csr() if sparse else NoneAttr()
            type = TensorType(element_type_of(values.dtype), values.shape, encoding)
            op = ConstantOp.resource(key, type, values.nnz if sparse else None)
        op.location = location
        return self._append(op, key)

    def _weight(self, source: object, values: Array, name: str) -> str:
        """The name of an array in the weight store; a repeated array is one weight."""
        known = self._stored.get(id(source))
        if known is not None and equal(self.weights[known[1]], values):
            return known[1]
        key = self.weights.add(name, values)
        # A reference to the source keeps its id unique.
        self._stored[id(source)] = (source, key)
        return key

    def _own(self, value: object, subject: str) -> SSAValue:
        if not isinstance(value, Value):
            expected, got = "what input() or an operator returned", type(value).__name__
            raise input_error(subject, "not a value of a builder", expected, got)
        if value.builder is not self:
            raise input_error(subject, "the value belongs to another builder")
        if block_of(value.ssa) in self._closed:
            raise input_error(subject, "the value belongs to the body of a loop or condition")
        return value.ssa

    def _operand(
        self, argument: Operand, like: Attribute | None, name: str, location: LocationAttr
    ) -> SSAValue:
        if isinstance(argument, Value):
            return self._own(argument, name)
        return self._constant(argument, name, like, location).ssa

    def _product(self, left: Operand, right: Operand) -> Value:
        sparse = isinstance(left, Value) and is_sparse(left.ssa.type)
        return self.spmm(left, right) if sparse else self.matmul(left, right)
