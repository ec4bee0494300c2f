"""Replace arguments of a program by constants: arrays are bound to them by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np
from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, FunctionType, ModuleOp, TensorType
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import PassFailedException, VerifyException

from ...core.boundary.specs import ValueSpec
from ...core.dtypes import dtype_of
from ...core.errors import explain
from ...core.ir.context import decide, weights_of
from ...core.ir.provenance import named
from ...core.ir.public_function import face_of, is_public, specs_of
from ...core.ir.undo import all_or_nothing
from ...core.ir.weights import WeightStore
from ...core.pipelines.budgets import EXACT
from ...core.pipelines.exactness import Exactness
from ...dialects.graph import ops as graph
from ...dialects.graph.interfaces import tensor_type
from ...dialects.graph.sizes.shapes import SymbolicShapes, sizes_of
from ...dialects.sparse_tensor import is_sparse
from .rules.specialization import Specializer

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from ...dialects.graph.interfaces import Array

    Bound = dict[int, tuple[str, Array | None]]
    """Argument number -> its name and array; None for an array that is added later."""


def _fail(
    spec: ValueSpec,
    fact: str,
    expected: object = None,
    got: object = None,
    hint: str | None = None,
) -> Exception:
    subject = f'argument "{spec.name}"'
    return PassFailedException(explain(subject, fact, expected=expected, got=got, hint=hint))


def _checked(spec: ValueSpec, type: TensorType, array: Array) -> Array:
    """The array for an argument.

    Raises:
        PassFailedException: if it does not fit the argument.
    """
    if isinstance(array, np.ndarray) == is_sparse(type):
        kinds = ("a dense array", "a CSR matrix")
        sparse = is_sparse(type)
        raise _fail(spec, "wrong kind of array", kinds[sparse], kinds[not sparse])
    dtype = dtype_of(type.element_type)
    if array.dtype != dtype:
        raise _fail(spec, "wrong dtype of the array", dtype, array.dtype)
    shape = cast("tuple[int, ...]", array.shape)
    if len(shape) != len(spec.shape) or not all(map(_fits, spec.shape, shape)):
        raise _fail(spec, "wrong shape of the array", _text(spec), list(shape))
    return array if isinstance(array, np.ndarray) else _consistent(spec, array)


def _fits(declared: int | str, size: int) -> bool:
    return isinstance(declared, str) or declared == size


def _text(spec: ValueSpec) -> str:
    return "[" + ", ".join(map(str, spec.shape)) + "]"


def _consistent(spec: ValueSpec, matrix: csr_array) -> csr_array:
    """The matrix, if it is valid CSR and has as many entries as the argument."""
    try:
        matrix.check_format(full_check=True)
    except ValueError as error:
        raise _fail(spec, f"the matrix is inconsistent: {error}") from error
    if isinstance(spec.nnz, int) and spec.nnz != matrix.nnz:
        raise _fail(spec, "wrong number of entries of the matrix", spec.nnz, matrix.nnz)
    return matrix


def _fix_sizes(functions: Mapping[func.FuncOp, Bound], module: ModuleOp) -> None:
    """Replace the symbolic sizes that follow from arrays by numbers.

    Raises:
        PassFailedException: if arrays disagree, or an operator does not accept their sizes.
    """
    specializer = Specializer(module)
    try:
        for function, bound in functions.items():
            given = {n: sizes_of(a) for n, (_, a) in bound.items() if a is not None}
            if any(not tensor_type(function.args[n]).has_static_shape() for n in given):
                specializer.fix(function, SymbolicShapes(function).solve(given))
        specializer.settle()
    except VerifyException as error:
        raise PassFailedException(str(error)) from error


def _bind(function: func.FuncOp, number: int, key: str, array: Array | None) -> None:
    """Replace an argument by the constant `key`."""
    block = function.body.block
    argument = block.args[number]
    entries = None if array is None or isinstance(array, np.ndarray) else int(array.nnz)
    constant = graph.ConstantOp.resource(key, tensor_type(argument), entries)
    constant.location, constant.result.name_hint = named(key), argument.name_hint
    first = block.first_op
    Rewriter.insert_op(
        constant, InsertPoint.before(first) if first is not None else InsertPoint.at_end(block)
    )
    argument.replace_all_uses_with(constant.result)
    block.erase_arg(argument)
    kept = [i for i in range(len(function.function_type.inputs)) if i != number]
    if function.arg_attrs is not None:
        function.arg_attrs = ArrayAttr([function.arg_attrs.data[i] for i in kept])
    inputs, outputs = function.function_type.inputs.data, function.function_type.outputs
    function.properties["function_type"] = FunctionType.from_attrs(
        ArrayAttr([inputs[i] for i in kept]), outputs
    )


@Exactness.EXACT
@dataclass(frozen=True)
class GraphBindParamsPass(ModulePass):
    """Replace the arguments of a program for which there are arrays by constants.

    Before:

    ```mlir
    func.func @main(%x: tensor<?x8xf32> {graph.name = "x"}, %w: tensor<4x8xf32> {graph.name = "w"})
        -> tensor<?x4xf32> {
      %y = graph.dense %x, %w : (tensor<?x8xf32>, tensor<4x8xf32>) -> tensor<?x4xf32>
      func.return %y : tensor<?x4xf32>
    }
    ```

    Options: `names=w`

    After:

    ```mlir
    func.func @main(%x: tensor<?x8xf32> {graph.name = "x"}) -> tensor<?x4xf32> {
      %w = graph.constant dense_resource<w> : tensor<4x8xf32>
      %y = graph.dense %x, %w : (tensor<?x8xf32>, tensor<4x8xf32>) -> tensor<?x4xf32>
      func.return %y : tensor<?x4xf32>
    }
    ```

    An argument is bound to the array of its public name: from the file `path` if given,
    otherwise from the weights beside the module. The array must have the dtype and sizes that
    the argument declares. A constant refers to its array by name, so `names` may include arrays
    that are added to the weights later.

    A symbolic size takes the array's value throughout the program.

    Before:

    ```mlir
    func.func @main(%x: tensor<?x8xf32> {graph.dims = ["n", ""]},
                    %v: tensor<?xf32> {graph.name = "v", graph.dims = ["n"]}) -> tensor<?xf32> {
      %s = graph.reduce sum %x axes = [1] keepdims = false
        : (tensor<?x8xf32>) -> tensor<?xf32>
      %y = graph.mul %s, %v : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
      func.return %y : tensor<?xf32>
    }
    ```

    Weights: `v = tensor<5xf32>`

    After:

    ```mlir
    func.func @main(%x: tensor<5x8xf32>) -> tensor<5xf32> {
      %v = graph.constant dense_resource<v> : tensor<5xf32>
      %s = graph.reduce sum %x axes = [1] keepdims = false
        : (tensor<5x8xf32>) -> tensor<5xf32>
      %y = graph.mul %s, %v : (tensor<5xf32>, tensor<5xf32>) -> tensor<5xf32>
      func.return %y : tensor<5xf32>
    }
    ```

    So do sizes that an operator requires to be equal to it, and the number of stored entries of
    a sparse matrix. A function that is also called with other sizes is copied.

    Requires: an array for a bound argument of symbolic size; a program on tensors that no
        function calls.
    Leaves: no argument in `names`, or with an array; those of private functions stay. On an
        error the module is unchanged.
    """

    name = "graph-bind-params"
    budget = EXACT

    path: str = ""
    """A `.safetensors` or `.npz` file of arrays; by default the weights beside the module."""

    names: tuple[str, ...] = ()
    """The arguments to bind; by default all for which there is an array."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        store = WeightStore.load(self.path) if self.path else weights_of(ctx)
        self.bind(ctx, op, {name: store[name] for name in store})

    def bind(self, ctx: Context, op: ModuleOp, arrays: Mapping[str, Array]) -> None:
        """Bind arguments to these arrays and add the arrays to the weights of the context.

        Raises:
            PassFailedException: if an array does not fit, or the program is on buffers; the
                module is then unchanged.
        """
        functions = [f for f in op.ops if isinstance(f, func.FuncOp) and is_public(f)]
        for function in functions:
            if face_of(function).described:
                fact = f"@{function.sym_name.data} is a function on buffers"
                raise PassFailedException(explain(self.name, fact, expected="one on tensors"))
        specs = {f: specs_of(f)[0] for f in functions if f.body.blocks}
        self._check_names({spec.name for inputs in specs.values() for spec in inputs}, arrays)
        chosen = {f: self._chosen(f, inputs, arrays) for f, inputs in specs.items()}
        with all_or_nothing(op):
            _fix_sizes(chosen, op)
        for function, bound in chosen.items():
            for number, (name, array) in reversed(bound.items()):
                key = name if array is None else weights_of(ctx).add(name, array)
                _bind(function, number, key, array)
                decide(ctx, f'argument "{name}"', f'bind to the array "{key}"', self._why)

    def _chosen(
        self, function: func.FuncOp, inputs: Sequence[ValueSpec], arrays: Mapping[str, Array]
    ) -> Bound:
        """The arguments of a function to bind, with arrays that fit them."""
        result: Bound = {}
        for number, spec in enumerate(inputs):
            if spec.name not in (self.names or arrays):
                continue
            type, array = tensor_type(function.args[number]), arrays.get(spec.name)
            if array is None and not type.has_static_shape():
                hint = "give the array, or fix its sizes when the model is imported"
                fact = "a constant cannot have symbolic sizes"
                raise _fail(spec, fact, "numbers", _text(spec), hint)
            result[number] = spec.name, None if array is None else _checked(spec, type, array)
        return result

    @property
    def _why(self) -> str:
        return f"{self.path} has an array of this name" if self.path else "it was requested"

    def _check_names(self, arguments: set[str], arrays: Mapping[str, Array]) -> None:
        """Refuse a name without an argument, or without an array in the file."""
        for name in self.names:
            if name not in arguments:
                known = ", ".join(sorted(arguments)) or "none"
                fact = f'no argument "{name}"'
                raise PassFailedException(explain(self.name, fact, expected=known))
            if self.path and name not in arrays:
                fact = f'{self.path} has no array "{name}"'
                expected = ", ".join(arrays) or "no array at all"
                raise PassFailedException(explain(self.name, fact, expected=expected))
