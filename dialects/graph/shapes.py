"""Symbolic shapes: the size of every dimension in a function, in terms of its arguments."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, cast

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DictionaryAttr,
    IntegerAttr,
    StringAttr,
    TensorType,
)
from xdsl.ir import Attribute, Operation, SSAValue

from ...core.dims import Dim, Shape, size_of_argument
from ...core.errors import explain
from ...core.module import DIMS, NAME, NNZ, Program
from ...core.provenance import origin
from ...core.refusal import InvalidProgram
from ...core.symbols import find_symbol
from ...core.typed import tensor_type
from ..sparse_tensor import is_sparse
from .interfaces import GraphOp, ShapeFacts
from .ops_call import CallLikeOp
from .ops_control import ControlFlowOp, yielded

if TYPE_CHECKING:
    from .interfaces import Array

Binding = tuple[int, int | str]
"""An argument of the function and one of its dimensions, or "nnz" for its entry count."""

EQUAL = "graph.equal"
"""Attribute of a function: pairs of sizes that must agree, known from its original operators."""

_IDENTIFIER = re.compile(r"[A-Za-z_][\w.]*")


class SymbolicShapes:
    """The shapes of all tensor values in a function, by the shape rules.

    Symbols are the names in `graph.dims` and `graph.nnz` of the arguments; an unnamed ``?``
    gets a symbol of its own (`_0`, `_1`, ...). Calls are followed into the functions that
    they name. A symbol that is in none of `bindings` is a size that is known only once the
    operation has run, such as the entry count of a normalized matrix.

    Raises:
        VerifyException: if shapes cannot fit together.
    """

    def __init__(self, function: func.FuncOp) -> None:
        self.function = function
        self.equalities: list[tuple[Dim, Dim, Operation]] = []
        """Dimensions that have to agree at run time, and the operation that needs it."""
        self.bindings: dict[str, Binding] = {}
        """Where the value of a symbol is read from: the first place that names it."""
        self._shapes: dict[SSAValue, Shape] = {}
        self._nnz: dict[SSAValue, Dim | None] = {}
        self._active: list[func.FuncOp] = []
        self._named: dict[str, Dim] = {}
        self._fresh = self._unused_symbols()
        self._bind_arguments()
        for left, right in equal_sizes(function):
            self._record(left, right, function)
        self._visit(function, self._shapes, self._nnz)

    def shape(self, value: SSAValue) -> Shape:
        """The shape of a tensor value of the function."""
        return self._shapes[value]

    def nnz(self, value: SSAValue) -> Dim | None:
        """The number of stored entries of a sparse value; None for a dense one."""
        return self._nnz[value]

    def of_arguments(self, operands: Iterable[SSAValue]) -> dict[str, Dim]:
        """The sizes of the operands of a call, by the names that its callee has for them."""
        sizes: dict[str, Dim] = {}
        for number, operand in enumerate(operands):
            for axis, dim in enumerate(self.shape(operand)):
                sizes[size_of_argument(number, axis)] = dim
            if (entries := self.nnz(operand)) is not None:
                sizes[size_of_argument(number, "nnz")] = entries
        return sizes

    def in_arguments(self, dim: Dim) -> Dim | None:
        """A dimension in sizes of the arguments, None where it does not follow from them."""
        if not self.bindings.keys() >= set(dim.symbols):
            return None
        names = {name: self.bindings[name] for name in dim.symbols}
        return dim.substitute({n: Dim.symbol(size_of_argument(*b)) for n, b in names.items()})

    def solve(self, given: Mapping[int, Sequence[int | None]]) -> dict[str, int]:
        """The values of symbols where arguments have these sizes, and what follows from them.

        Args:
            given: for the number of an argument its dimensions, and behind them the number of
                stored entries of a sparse one; None where one is not known.

        Raises:
            VerifyException: if two sizes that must agree do not.
        """
        known: dict[str, int] = {}
        places: dict[str, int] = {}
        for number, sizes in given.items():
            argument = self._arguments[number]
            entries = self._nnz.get(argument)
            dims = (*self._shapes[argument], *([] if entries is None else [entries]))
            for dim, size in zip(dims, sizes, strict=True):
                if size is None or dim.is_static:
                    continue
                (symbol,) = dim.symbols
                first = places.setdefault(symbol, number)
                if known.setdefault(symbol, size) != size:
                    here, there = (self._argument_name(n) for n in (number, first))
                    fact = f'size "{symbol}" is not that of {there}'
                    raise InvalidProgram(explain(here, fact, expected=known[symbol], got=size))
        return self._follow(known)

    def _follow(self, known: dict[str, int]) -> dict[str, int]:
        """Add to known sizes those that `equalities` leave no choice about."""
        while True:
            dims = {name: Dim.of(size) for name, size in known.items()}
            before = len(known)
            for left, right, op in self.equalities:
                a, b = left.substitute(dims), right.substitute(dims)
                root = (a - b).root()
                if (a - b).is_static and a != b:
                    fact = f"sizes {left} and {right} differ"
                    where = origin(op)
                    raise InvalidProgram(explain(op.name, fact, expected=a, got=b, origin=where))
                if root is not None:
                    known.setdefault(*root)
            if len(known) == before:
                return known

    def _argument_name(self, number: int) -> str:
        name = argument_attributes(self.function, number).get(NAME)
        return f'argument "{name.data if isinstance(name, StringAttr) else number}"'

    def _unused_symbols(self) -> Iterator[Dim]:
        attributes = [argument_attributes(self.function, i) for i in range(len(self._arguments))]
        texts = [text for attrs in attributes for text in _named_symbols(attrs)]
        names = (f"_{number}" for number in itertools.count())
        return (Dim.symbol(name) for name in names if name not in texts)

    @property
    def _arguments(self) -> Sequence[SSAValue]:
        return self.function.args if self.function.body.blocks else ()

    def _bind_arguments(self) -> None:
        for number, argument in enumerate(self._arguments):
            if not isinstance(argument.type, TensorType):
                continue
            attributes = argument_attributes(self.function, number)
            names = self._dimension_names(argument.type, attributes)
            sizes = argument.type.get_shape()
            shape: list[Dim] = []
            for axis, (size, name) in enumerate(zip(sizes, names, strict=True)):
                if size != DYNAMIC_INDEX:
                    shape.append(Dim.of(size))
                    continue
                shape.append(self._symbol(name, (number, axis)))
            self._shapes[argument] = tuple(shape)
            self._nnz[argument] = self._entry_count(argument, attributes, number)

    def _symbol(self, name: str, binding: Binding) -> Dim:
        dim = Dim.symbol(name) if name else next(self._fresh)
        self.bindings.setdefault(dim.symbols[0], binding)
        return dim

    def _dimension_names(
        self, type: TensorType, attributes: Mapping[str, Attribute]
    ) -> Sequence[str]:
        dims = attributes.get(DIMS)
        if dims is None:
            return [""] * type.get_num_dims()
        texts = dims.data if isinstance(dims, ArrayAttr) else ()
        names = [a.data for a in texts if isinstance(a, StringAttr)]
        valid = all(not name or _IDENTIFIER.fullmatch(name) for name in names)
        if len(names) != type.get_num_dims() or not valid:
            self._fail("graph.dims does not fit the type", f"{type.get_num_dims()} names", dims)
        return names

    def _entry_count(
        self, argument: SSAValue, attributes: Mapping[str, Attribute], number: int
    ) -> Dim | None:
        if not is_sparse(argument.type):
            return None
        nnz = attributes.get(NNZ)
        if isinstance(nnz, IntegerAttr):
            return Dim.of(nnz.value.data)
        name = nnz.data if isinstance(nnz, StringAttr) else ""
        if name and not _IDENTIFIER.fullmatch(name):
            self._fail("graph.nnz is not a number or a name", "a name", f'"{name}"')
        return self._symbol(name, (number, "nnz"))

    def _fail(self, fact: str, expected: object, got: object) -> None:
        where = origin(self.function)
        subject = f"{self.function.name} @{self.function.sym_name.data}"
        raise InvalidProgram(explain(subject, fact, expected=expected, got=got, origin=where))

    def _visit(
        self, function: func.FuncOp, shapes: dict[SSAValue, Shape], nnz: dict[SSAValue, Dim | None]
    ) -> list[SSAValue]:
        """Run the rules of a function whose arguments have shapes; returns what it returns."""
        if function in self._active or len(function.body.blocks) != 1:
            what = "is recursive" if function in self._active else "is not one block"
            self._fail(f"shapes are unknown, @{function.sym_name.data} {what}", None, None)
        self._active.append(function)
        returned: list[SSAValue] = []
        for op in function.body.block.ops:
            if isinstance(op, func.ReturnOp):
                returned = list(op.operands)
                continue
            self._visit_op(op, shapes, nnz)
        self._active.pop()
        return returned

    def _visit_regions(
        self,
        op: ControlFlowOp,
        shapes: dict[SSAValue, Shape],
        nnz: dict[SSAValue, Dim | None],
    ) -> list[Shape]:
        """Run the rules of regions; returns the shapes of the results."""
        facts, given = self._facts(op, nnz), [shapes[value] for value in op.operands]
        for body in op.bodies:
            shapes |= zip(body.args, op.argument_shapes(given, facts), strict=True)
            nnz |= dict.fromkeys(body.args)
            nnz |= {a: nnz[v] for a, v in zip(op.captured(body), op.captures, strict=True)}
            for inner in body.ops:
                self._visit_op(inner, shapes, nnz)
        ends = [[shapes[value] for value in yielded(body)] for body in op.bodies]
        inferred = op.result_shapes(given, ends, facts)
        return [tuple(dim.substitute(self._named) for dim in shape) for shape in inferred]

    def _facts(self, op: Operation, nnz: Mapping[SSAValue, Dim | None]) -> ShapeFacts:
        return ShapeFacts(
            op,
            lambda: next(self._fresh),
            lambda a, b: self._record(a, b, op),
            lambda matrix: nnz[matrix],
            self._is_recorded,
        )

    def _visit_op(
        self, op: Operation, shapes: dict[SSAValue, Shape], nnz: dict[SSAValue, Dim | None]
    ) -> None:
        tensors = [result for result in op.results if isinstance(result.type, TensorType)]
        if isinstance(op, GraphOp):
            facts = self._facts(op, nnz)
            inferred = op.infer_shapes([shapes[value] for value in op.operands], facts)
            entries = op.infer_nnz([nnz[value] for value in op.operands], facts)
            if isinstance(op, CallLikeOp) and op.result_dims is not None:
                # The only names in an operation: those of the function that it is in.
                inferred = [tuple(d.substitute(self._named) for d in s) for s in inferred]
        elif isinstance(op, func.CallOp):
            inferred, entries = self._visit_call(op, shapes, nnz)
        elif isinstance(op, ControlFlowOp):
            inferred, entries = self._visit_regions(op, shapes, nnz), [None] * len(op.results)
        else:
            inferred, entries = [], []
        for position, result in enumerate(tensors):
            known = inferred[position] if inferred else None
            shapes[result] = self._declared(op, result, known)
            nnz[result] = entries[position] if entries else self._unknown_entries(result)

    def _visit_call(
        self, op: func.CallOp, shapes: dict[SSAValue, Shape], nnz: dict[SSAValue, Dim | None]
    ) -> tuple[list[Shape], list[Dim | None]]:
        callee = find_symbol(op, op.callee)
        if not isinstance(callee, func.FuncOp) or not callee.body.blocks:
            return [], []
        parameters: Sequence[SSAValue] = callee.body.block.args
        pairs = list(zip(parameters, op.operands, strict=True))
        inner_shapes: dict[SSAValue, Shape] = {p: shapes[a] for p, a in pairs if a in shapes}
        inner_nnz: dict[SSAValue, Dim | None] = {p: nnz[a] for p, a in pairs if a in shapes}
        outer, self._named = self._named, {}
        for number, (parameter, argument) in enumerate(pairs):
            kind = parameter.type
            if not isinstance(kind, TensorType):
                continue
            names = self._dimension_names(kind, argument_attributes(callee, number))
            self._named |= {n: d for n, d in zip(names, shapes[argument], strict=True) if n}
        returned = [v for v in self._visit(callee, inner_shapes, inner_nnz) if v in inner_shapes]
        self._named = outer
        return [inner_shapes[v] for v in returned], [inner_nnz[v] for v in returned]

    def _declared(self, op: Operation, result: SSAValue, inferred: Shape | None) -> Shape:
        """What a type declares, refined by what a rule inferred, and the other way round."""
        sizes = tensor_type(result).get_shape()
        if inferred is None:
            return tuple(next(self._fresh) if n == DYNAMIC_INDEX else Dim.of(n) for n in sizes)
        facts = ShapeFacts(op, lambda: next(self._fresh), lambda a, b: self._record(a, b, op))
        fact = "result type differs from the inferred size"
        return tuple(
            dim if size == DYNAMIC_INDEX else facts.equal(dim, Dim.of(size), fact)
            for size, dim in zip(sizes, inferred, strict=True)
        )

    def _unknown_entries(self, result: SSAValue) -> Dim | None:
        return next(self._fresh) if is_sparse(result.type) else None

    def _record(self, a: Dim, b: Dim, op: Operation) -> None:
        if not self._is_recorded(a, b):
            self.equalities.append((a, b, op))

    def _is_recorded(self, a: Dim, b: Dim) -> bool:
        return any((c, d) in ((a, b), (b, a)) for c, d, _ in self.equalities)


def sizes_of(array: Array) -> tuple[int, ...]:
    """The sizes of an argument as `SymbolicShapes.solve` takes them."""
    shape = cast(tuple[int, ...], array.shape)
    return shape if isinstance(array, np.ndarray) else (*shape, int(array.nnz))


def equal_sizes(function: Program) -> list[tuple[Dim, Dim]]:
    """The pairs of sizes that the attribute `graph.equal` of a function holds.

    Raises:
        VerifyException: if it holds something else.
    """
    attr = function.attributes.get(EQUAL, ArrayAttr[Attribute]([]))
    pairs: list[tuple[Dim, Dim]] = []
    try:
        for pair in cast(ArrayAttr[ArrayAttr[StringAttr]], attr):
            left, right = (Dim.parse(text.data) for text in pair)
            pairs.append((left, right))
    except (TypeError, AttributeError, ValueError) as error:
        subject = f"{function.name} @{function.sym_name.data}"
        raise InvalidProgram(
            explain(subject, f"wrong {EQUAL}", expected="pairs of sizes", got=attr)
        ) from error
    return pairs


def equal_attribute(pairs: Iterable[tuple[Dim, Dim]]) -> ArrayAttr[ArrayAttr[StringAttr]]:
    """What `equal_sizes` reads."""
    return ArrayAttr([ArrayAttr([StringAttr(str(dim)) for dim in pair]) for pair in pairs])


def argument_attributes(function: func.FuncOp, number: int) -> Mapping[str, Attribute]:
    """The attributes of an argument of a function."""
    if function.arg_attrs is None:
        return {}
    return cast(DictionaryAttr, function.arg_attrs.data[number]).data


def _named_symbols(attributes: Mapping[str, Attribute]) -> list[str]:
    dims, nnz = attributes.get(DIMS), attributes.get(NNZ)
    texts = dims.data if isinstance(dims, ArrayAttr) else ()
    names = [a.data for a in texts if isinstance(a, StringAttr)]
    return [*names, nnz.data] if isinstance(nnz, StringAttr) else names
