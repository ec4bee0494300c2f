"""Symbolic shapes: the size of every dimension in a function, in terms of its arguments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, cast

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import BlockArgument, Operation, SSAValue

from ....core.algebra.dims import Dim, Shape, size_of_argument
from ....core.algebra.multiples import misfit
from ....core.errors import explain
from ....core.ir.provenance import origin
from ....core.ir.public_function import NAME
from ....core.ir.refusal import InvalidProgram
from ....core.ir.typed import tensor_type
from .attributes import argument_attributes
from .computed import ComputedSize, bounds_of
from .inference import Binding, ShapeInference, arguments_of

if TYPE_CHECKING:
    from ..interfaces import Array


class SymbolicShapes:
    """The shapes of all tensor values in a function, by the shape rules.

    Symbols are the names in `graph.dims` and `graph.nnz` of the arguments; an unnamed ``?``
    gets a symbol of its own (`_0`, `_1`, ...). Calls are followed into the functions that
    they name. A symbol in `computed` (`size.0`, `size.1`, ...) is the size that a scalar holds at
    run time. One that is neither there nor in `bindings` is a size that is known only once the
    operation has run, such as the entry count of a normalized matrix.

    Raises:
        VerifyException: if shapes cannot fit together.
    """

    def __init__(self, function: func.FuncOp) -> None:
        self.function = function
        found = ShapeInference(function)
        self.equalities: list[tuple[Dim, Dim, Operation]] = found.equalities
        """Dimensions that have to agree at run time, and the operation that needs it."""
        self.bindings: dict[str, Binding] = found.bindings
        """Where the value of a symbol is read from: the first place that names it."""
        self.computed: dict[str, ComputedSize] = found.computed
        """The sizes that the program computes, in the order in which they are known."""
        self._known = found.known

    def shape(self, value: SSAValue) -> Shape:
        """The shape of a tensor value of the function."""
        return self._known.shapes[value]

    def nnz(self, value: SSAValue) -> Dim | None:
        """The number of stored entries of a sparse value; None for a dense one."""
        return self._known.nnz[value]

    def at_most(self, dim: Dim) -> Dim:
        """An upper bound of a size, over sizes that are known before the program runs.

        Computed sizes without an upper bound stay in it.
        """
        return dim.at_most(bounds_of(self.computed))

    def declared(self, name: str) -> int | None:
        """The number that a computed size must be, where a type says it."""
        symbol = Dim.symbol(name)
        pairs = (
            (a, b) for left, right, _ in self.equalities for a, b in ((left, right), (right, left))
        )
        return next((b.value for a, b in pairs if a == symbol and b.is_static), None)

    def is_unbounded(self, *dims: Dim) -> bool:
        """Whether one of these sizes has no upper bound that is known before the program runs."""
        names = {name for dim in dims for name in self.at_most(dim).symbols}
        return any(name in self.computed for name in names)

    def is_computed(self, *dims: Dim) -> bool:
        """Whether one of these sizes depends on one that the program computes."""
        return any(name in self.computed for dim in dims for name in dim.symbols)

    def is_computed_by(self, op: Operation, value: SSAValue) -> bool:
        """Whether a tensor has a size that an operation computes."""
        names = (name for dim in self.shape(value) for name in dim.symbols)
        return any(name in self.computed and self.computed[name].op is op for name in names)

    def binding_of(self, name: str) -> Binding:
        """The argument that has a size, or holds it: then the dimension is "value"."""
        if name in self.bindings:
            return self.bindings[name]
        value = self.computed[name].value
        assert isinstance(value, BlockArgument)
        return value.index, "value"

    def is_given(self, dim: Dim) -> bool:
        """Whether a size is known where the function is called: its arguments have or hold it."""
        held = {n for n, size in self.computed.items() if size.value in self._arguments}
        return held.union(self.bindings).issuperset(dim.symbols)

    def of_arguments(self, operands: Iterable[SSAValue]) -> dict[str, Dim]:
        """The sizes of the operands of a call, by the names that its callee has for them."""
        sizes: dict[str, Dim] = {}
        for number, operand in enumerate(operands):
            for axis, dim in enumerate(self.shape(operand)):
                sizes[size_of_argument(number, axis)] = dim
            if (entries := self.nnz(operand)) is not None:
                sizes[size_of_argument(number, "nnz")] = entries
            if (held := self._known.held.get(operand)) is not None:
                sizes[size_of_argument(number, "value")] = held
        return sizes

    def in_arguments(self, dim: Dim) -> Dim | None:
        """A dimension in sizes of the arguments, None where it does not follow from them."""
        if not self.is_given(dim):
            return None
        names = {name: self.binding_of(name) for name in dim.symbols}
        return dim.substitute({n: Dim.symbol(size_of_argument(*b)) for n, b in names.items()})

    def solve(self, given: Mapping[int, Sequence[int | None]]) -> dict[str, int]:
        """The values of symbols where arguments have these sizes, and what follows from them.

        Args:
            given: for the number of an argument its dimensions, and after them the number of
                stored entries of a sparse one; None where one is not known.

        Raises:
            VerifyException: if two sizes that must agree do not.
        """
        known: dict[str, int] = {}
        places: dict[str, int] = {}
        for number, sizes in given.items():
            argument = self._arguments[number]
            entries = self._known.nnz.get(argument)
            dims = (*self._known.shapes[argument], *([] if entries is None else [entries]))
            for dim, size in zip(dims, sizes, strict=True):
                if size is None or dim.is_static:
                    continue
                (symbol,) = dim.symbols
                first = places.setdefault(symbol, number)
                if known.setdefault(symbol, size) != size:
                    here, there = (self._argument_name(n) for n in (number, first))
                    fact = f'size "{symbol}" is not that of {there}'
                    raise InvalidProgram(explain(here, fact, expected=known[symbol], got=size))
        return self.follow(known)

    def follow(self, known: dict[str, int]) -> dict[str, int]:
        """Add to known sizes those that `equalities` leave no choice about.

        Raises:
            VerifyException: if two sizes that must agree do not.
        """
        while True:
            dims = {name: Dim.of(size) for name, size in known.items()}
            before = len(known)
            for left, right, op in self.equalities:
                a, b = left.substitute(dims), right.substitute(dims)
                root = (a - b).root()
                if (a - b).is_static and a != b:
                    fact, expected, got = f"sizes {left} and {right} differ", a, b
                    if (words := misfit(left, right)) is not None:
                        fact, expected, size = words
                        got = size.substitute(dims)
                    where = origin(op)
                    text = explain(op.name, fact, expected=expected, got=got, origin=where)
                    raise InvalidProgram(text)
                if root is not None and root[0] not in self.computed:
                    known.setdefault(*root)
            if len(known) == before:
                return known

    @property
    def _arguments(self) -> Sequence[SSAValue]:
        return arguments_of(self.function)

    def _argument_name(self, number: int) -> str:
        name = argument_attributes(self.function, number).get(NAME)
        return f'argument "{name.data if isinstance(name, StringAttr) else number}"'


def compares_sizes(op: Operation) -> bool:
    """Whether a call has to compare sizes because of an operator: erasing it would allow others."""
    values = [*op.operands, *op.results]
    if all(tensor_type(value).has_static_shape() for value in values):
        return False
    function = op.parent_op()
    while function is not None and not isinstance(function, func.FuncOp):
        function = function.parent_op()
    if function is None:
        return True
    return any(other is op for *_, other in SymbolicShapes(function).equalities)


def sizes_of(array: Array) -> tuple[int, ...]:
    """The sizes of an argument as `SymbolicShapes.solve` takes them."""
    shape = cast(tuple[int, ...], array.shape)
    return shape if isinstance(array, np.ndarray) else (*shape, int(array.nnz))
