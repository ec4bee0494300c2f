"""`kernel`: a loop nest written in Python, for an operator or for a call of its own."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from xdsl.dialects.builtin import (
    UNKNOWN_LOC,
    ArrayAttr,
    DictionaryAttr,
    FileLineColLoc,
    IntAttr,
    LocationAttr,
    StringAttr,
    TensorType,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.exceptions import VerifyException

from ....core.algebra.dims import Dim, Shape, size_of_argument
from ....core.display import displayed
from ....core.errors import CompileError, InputError, StepwellError, explain
from ....core.ir.provenance import locate, origin
from ...loop.arguments import BOUNDS, OFFSETS, SIZES
from ...loop.ops import KernelOp
from ...sparse_tensor import is_sparse
from ..buffers import buffer_types
from ..demands import IndexBound, OffsetBound, SizeBound, demands, read_operands
from ..interfaces import GraphOp, ShapeFacts, tensor_type, unknown_sizes
from .builder import KernelBuilder
from .errors import line_of_error
from .proofs import (
    HINT,
    described,
    outside_of_call,
    sizes_by_name,
    sizes_of_operator,
    uncovered_of_call,
)


class Kernel:
    """A function that writes a loop nest; see `kernel`."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.name: str = getattr(function, "__name__", "kernel")

    def _repr_html_(self) -> str:
        return displayed(self)

    def __repr__(self) -> str:
        return f"Kernel({self.name})"

    def of_operator(self, op: GraphOp, symbol: str) -> KernelOp | None:
        """The kernel that computes an operator; None where the function declines it.

        Raises:
            CompileError: if the function raises, or what it makes does not fit the operator.
        """
        names = [name for name, _ in op.get_irdl_definition().operands]
        declared = [(name, getattr(op, name)) for name in names]
        results = [tensor_type(result) for result in op.results]
        kernel = self._build(symbol, declared, results, _sizes(op), op)
        if kernel is None:
            return None
        locate(kernel, op.location)
        self._require_stored(kernel, op.operands, sizes_of_operator(op), op)
        if read_operands(op) or demands(op, SizeBound):
            _bound(kernel, op)
        return kernel

    def of_call(
        self,
        symbol: str,
        operands: Sequence[SSAValue],
        shapes: Sequence[Shape],
        results: Sequence[TensorType],
        sizes: Sequence[Shape],
    ) -> KernelOp:
        """The kernel of a call.

        Args:
            symbol: its name.
            operands: the operands.
            shapes: their shapes, with ``x0.1`` for the first size that is equal to one.
            results: the types of the results.
            sizes: the shapes of the results, likewise.

        Raises:
            CompileError: if the function raises, or what it makes does not fit the call.
        """
        kernel = self._build(symbol, [("x", operand) for operand in operands], results, sizes, None)
        if kernel is None:
            raise CompileError(explain(f'kernel "{self.name}"', "declines these arguments"))
        locate(kernel, self._location())
        if (found := outside_of_call(kernel, operands, sizes)) is not None:
            fact, expected, got = described(found)
            subject = f'kernel "{self.name}"'
            raise CompileError(explain(subject, fact, expected=expected, got=got, hint=HINT))
        self._require_stored(kernel, operands, sizes_by_name(shapes, sizes), None)
        return kernel

    def _require_stored(
        self,
        kernel: KernelOp,
        operands: Sequence[SSAValue],
        sizes: Mapping[str, Dim],
        op: GraphOp | None,
    ) -> None:
        """Raise where a result may be left undefined in part."""
        for found in uncovered_of_call(kernel, operands, sizes):
            fact, expected, got = found.facts
            subject, where = f'kernel "{self.name}"', None if op is None else origin(op)
            hint = f"store a first value to each, in loops over {found.result.name_hint}.shape"
            raise CompileError(
                explain(subject, fact, expected=expected, got=got, origin=where, hint=hint)
            )

    def _location(self) -> LocationAttr:
        """The line where the function begins, as far as there is one."""
        code = getattr(inspect.unwrap(self.function), "__code__", None)
        if code is None:
            return UNKNOWN_LOC
        file, line = StringAttr(Path(code.co_filename).name), IntAttr(code.co_firstlineno)
        return FileLineColLoc(file, line, IntAttr(1))

    def _build(
        self,
        symbol: str,
        declared: Sequence[tuple[str, Any]],
        results: Sequence[TensorType],
        sizes: Sequence[Shape],
        op: GraphOp | None,
    ) -> KernelOp | None:
        subject = f'kernel "{self.name}"'
        where = None if op is None else origin(op)
        if any(is_sparse(kind) for kind in results):
            fact = "a kernel cannot give a sparse result"
            raise CompileError(explain(subject, fact, origin=where))
        k = KernelBuilder(self.name, op)
        names = self._names(len(declared) + len(results))
        args, number = list[Any](), 0
        for place, (name, values) in enumerate(declared):
            label = names[place] if names else name
            given = values if isinstance(values, Sequence) else [values]
            made = [
                None if v is None else k.operand(v, number + n, label) for n, v in enumerate(given)
            ]
            number += sum(v is not None for v in given)
            args.append(tuple(made) if isinstance(values, Sequence) else made[0])
        for place, (kind, shape) in enumerate(zip(results, sizes, strict=True)):
            label = names[len(declared) + place] if names else f"y{place}"
            args.append(k.result(kind, shape, label))
        try:
            given = self.function(k, *args)
        except StepwellError:
            raise
        except Exception as error:
            # The boundary to code of others: it may raise anything.
            text = " ".join(f"raised {type(error).__name__}: {error}".split())
            line = line_of_error(error)
            place = ", ".join(filter(None, (line, where))) or None
            raise CompileError(explain(subject, text, origin=place)) from error
        if given is NotImplemented:
            return None
        if given is None:
            return _verified(k.finish(symbol, len(results)), subject, where)
        if not isinstance(given, KernelOp):
            fact, expected = "returned a value", "None, NotImplemented or a loop.kernel"
            got = type(given).__name__
            raise CompileError(explain(subject, fact, expected=expected, got=got, origin=where))
        _check_types(given, k, len(results), subject, where)
        given.sym_name = StringAttr(symbol)
        return _verified(given, subject, where)

    def _names(self, count: int) -> list[str]:
        """What the function calls its buffers, where it names each of them."""
        parameters = list(inspect.signature(self.function).parameters.values())[1:]
        plain = all(p.kind == p.POSITIONAL_OR_KEYWORD for p in parameters)
        return [p.name for p in parameters] if plain and len(parameters) == count else []


def kernel(function: Callable[..., Any]) -> Kernel:
    """A kernel from a function that writes a loop nest.

    The function is given a `KernelBuilder`, then the buffers of the operands, then those of
    the results, which it fills. For an operator (`compile(.., legalize={"graph.dense": dense})`)
    its operands are those that the operator declares: None for one that is left out, a tuple
    for a variadic one; `k.op` is the operator with its attributes. It may return
    NotImplemented to leave the operator to the compiler, or a `loop.kernel` of its own.

        @sw.kernel
        def dense(k, x, w, bias, y):
            with k.loops(*y.shape) as (i, j):
                y[i, j] = bias[j] + k.sum(x.shape[1], lambda t: x[i, t] * w[j, t])

    Raises:
        InputError: if the argument is not callable.
    """
    if not callable(function):
        got = type(function).__name__
        raise InputError(explain("kernel", "cannot be called", expected="a function", got=got))
    return Kernel(function)


def _sizes(op: GraphOp) -> list[Shape]:
    """The shapes of the results of an operator, in ``x0.1``: sizes of its operands."""
    shapes: list[Shape] = [
        tuple(
            Dim.symbol(size_of_argument(number, axis)) if n < 0 else Dim.of(n)
            for axis, n in enumerate(tensor_type(value).get_shape())
        )
        for number, value in enumerate(op.operands)
    ]
    inferred = op.infer_shapes(shapes, ShapeFacts(op, unknown_sizes()))
    declared = [tensor_type(result).get_shape() for result in op.results]
    return [
        tuple(dim if n < 0 else Dim.of(n) for dim, n in zip(shape, sizes, strict=True))
        for shape, sizes in zip(inferred, declared, strict=True)
    ]


def _bound(kernel: KernelOp, op: GraphOp) -> None:
    """Say what an operator demands of indices and sizes, which is checked at run time."""
    operands = list(op.operands)
    data: list[dict[str, Attribute]] = []
    for value in operands:
        bounds: dict[str, Attribute] = {}
        for name, kind in ((BOUNDS, IndexBound), (OFFSETS, OffsetBound)):
            texts = [
                StringAttr(_extent_text(operands, bound.into, bound.dimension))
                for bound in demands(op, kind)
                if bound.operand is value
            ]
            if texts:
                bounds[name] = ArrayAttr(texts)
        data += [bounds] * len(buffer_types(tensor_type(value)))
    data += [{}] * (len(kernel.body.block.args) - len(data))
    conditions = [
        StringAttr(str(needed))
        for bound in demands(op, SizeBound)
        if tensor_type(bound.operand).get_shape()[bound.dimension] < 0
        for needed in bound.conditions(op, _size_of(operands, bound))
    ]
    if conditions:
        data[0] = {**data[0], SIZES: ArrayAttr(conditions)}
    kernel.arg_attrs = ArrayAttr([DictionaryAttr(d) for d in data])


def _size_of(operands: Sequence[SSAValue], bound: SizeBound) -> Dim:
    return Dim.symbol(size_of_argument(operands.index(bound.operand), bound.dimension))


def _extent_text(operands: Sequence[SSAValue], source: SSAValue, axis: int) -> str:
    """The size of a dimension of an operand, or of a result, where it is static."""
    if source in operands:
        return size_of_argument(operands.index(source), axis)
    return str(tensor_type(source).get_shape()[axis])


def _check_types(
    kernel: KernelOp, k: KernelBuilder, outputs: int, subject: str, where: str | None
) -> None:
    """Refuse a kernel of the user's that is not one of these buffers."""
    types = k.argument_types
    inputs, results = types[: len(types) - outputs], types[len(types) - outputs :]
    kind = kernel.function_type
    if list(kind.inputs) != inputs or list(kind.outputs) != results:
        expected = ", ".join(map(str, [*inputs, "->", *results]))
        got = ", ".join(map(str, [*kind.inputs, "->", *kind.outputs]))
        fact = "the kernel does not fit what it is for"
        raise CompileError(explain(subject, fact, expected=expected, got=got, origin=where))


def _verified(kernel: KernelOp, subject: str, where: str | None) -> KernelOp:
    try:
        kernel.verify()
    except VerifyException as error:
        text = " ".join(str(error).partition("\n\n")[0].split())
        raise CompileError(explain(subject, text, origin=where)) from error
    return kernel
