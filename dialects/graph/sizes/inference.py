"""The walk over a function that runs its shape rules."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from xdsl.dialects import func
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    IntegerAttr,
    StringAttr,
    TensorType,
)
from xdsl.ir import Attribute, Operation, SSAValue

from ....core.algebra.dims import Dim, Shape
from ....core.algebra.multiples import Multiples
from ....core.errors import explain
from ....core.ir.provenance import origin
from ....core.ir.public_function import DIMS, NNZ
from ....core.ir.refusal import InvalidProgram
from ....core.ir.symbols import find_symbol
from ....core.ir.typed import tensor_type
from ...sparse_tensor import is_sparse
from ..interfaces import GraphOp, ShapeFacts, SparseResultInterface, text
from ..ops.control.call import CallLikeOp
from ..ops.control.regions import ControlFlowOp, yielded
from .attributes import argument_attributes, argument_names, equal_sizes
from .computed import ComputedSize

Binding = tuple[int, int | str]
"""An argument of the function and one of its dimensions, or "nnz" for its entry count."""

_IDENTIFIER = re.compile(r"[A-Za-z_][\w.]*")


@dataclass(frozen=True)
class KnownValues:
    """What is known of the values in a function."""

    shapes: dict[SSAValue, Shape] = field(default_factory=dict)
    nnz: dict[SSAValue, Dim | None] = field(default_factory=dict)
    held: dict[SSAValue, Dim] = field(default_factory=dict)
    """The sizes that scalars hold."""


class ShapeInference:
    """Runs the shape rules of the operations of a function, in order.

    Raises:
        VerifyException: if shapes cannot fit together.
    """

    def __init__(self, function: func.FuncOp) -> None:
        self.function = function
        self.known = KnownValues()
        """What is known of the values in the function."""
        self.equalities: list[tuple[Dim, Dim, Operation]] = []
        """Dimensions that have to agree at run time, and the operation that needs it."""
        self._multiples = Multiples()
        self.bindings: dict[str, Binding] = {}
        """Where the value of a symbol is read from: the first place that names it."""
        self.computed: dict[str, ComputedSize] = {}
        """The sizes that the program computes, in the order in which they are known."""
        self._active: list[func.FuncOp] = []
        self._named: dict[str, Dim] = {}
        self._fresh = self._unused_symbols("_", argument_names(function))
        taken = [*argument_names(function), *_computed_names(function)]
        self._fresh_size = self._unused_symbols("size.", taken)
        self._bind_arguments()
        for left, right in equal_sizes(function):
            self._record(left, right, function)
        self._visit(function, self.known)

    def _unused_symbols(self, prefix: str, taken: Sequence[str]) -> Iterator[Dim]:
        names = (f"{prefix}{number}" for number in itertools.count())
        return (Dim.symbol(name) for name in names if name not in taken)

    def _bind_arguments(self) -> None:
        for number, argument in enumerate(arguments_of(self.function)):
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
            self.known.shapes[argument] = tuple(shape)
            self.known.nnz[argument] = self._entry_count(argument, attributes, number)

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

    def _visit(self, function: func.FuncOp, known: KnownValues) -> list[SSAValue]:
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
            self._visit_op(op, known)
        self._active.pop()
        return returned

    def _visit_regions(self, op: ControlFlowOp, known: KnownValues) -> list[Shape]:
        """Run the rules of regions; returns the shapes of the results."""
        facts, given = self._facts(op, known), [known.shapes[value] for value in op.operands]
        around = set(self.computed)
        for body in op.bodies:
            known.shapes.update(zip(body.args, op.argument_shapes(given, facts), strict=True))
            known.nnz.update(dict.fromkeys(body.args))
            for argument, value in zip(op.captured(body), op.captures, strict=True):
                known.nnz[argument] = known.nnz[value]
                if value in known.held:
                    known.held[argument] = known.held[value]
            for inner in body.ops:
                self._visit_op(inner, known)
        ends = [[known.shapes[value] for value in yielded(body)] for body in op.bodies]
        inferred = op.result_shapes(given, ends, facts)
        around |= {name for name, size in self.computed.items() if size.value in op.results}
        for number, shape in enumerate(inferred):
            if not around.issuperset(n for d in shape for n in d.symbols if n in self.computed):
                fact = f"result {number} has a size that a region computes"
                facts.fail(fact, "sizes that are known around it", text(shape))
        return [tuple(dim.substitute(self._named) for dim in shape) for shape in inferred]

    def _facts(self, op: Operation, known: KnownValues) -> ShapeFacts:
        def held(scalar: SSAValue, bound: Dim | None) -> Dim:
            if scalar not in known.held:
                self._compute(next(self._fresh_size), ComputedSize(scalar, bound, op), known)
            return known.held[scalar]

        def measured(tensor: SSAValue, axis: int, bound: Dim) -> Dim:
            symbol = next(stated, None) or next(self._fresh_size)
            limit = bound.substitute(self._named)
            inside = {n: s for n, s in self.computed.items() if _is_inside(s.op, op)}
            for name, inner in reversed(inside.items()):
                if inner.bound is not None:
                    limit = limit.at_most({name: inner.bound})
            most = limit if inside.keys().isdisjoint(limit.symbols) else None
            self._compute(symbol, ComputedSize(tensor, most, op, axis), known)
            return symbol

        stated = iter(self._stated(op))
        return ShapeFacts(
            op,
            lambda: next(self._fresh),
            lambda a, b: self._record(a, b, op),
            lambda matrix: known.nnz[matrix],
            self._is_recorded,
            held,
            lambda value: known.shapes[value],
            measured,
            self._multiples,
        )

    def _stated(self, op: Operation) -> list[Dim]:
        """The symbols of sizes that control flow states: the names of the outer function."""
        names = op.stated_sizes if isinstance(op, ControlFlowOp) else ()
        return [Dim.symbol(name) for name in names] if len(self._active) == 1 else []

    def _visit_op(self, op: Operation, known: KnownValues) -> None:
        tensors = [result for result in op.results if isinstance(result.type, TensorType)]
        if isinstance(op, GraphOp):
            inferred, entries = self._infer(op, known)
        elif isinstance(op, func.CallOp):
            inferred, entries = self._visit_call(op, known)
        elif isinstance(op, ControlFlowOp):
            inferred, entries = self._visit_regions(op, known), [None] * len(op.results)
        else:
            inferred, entries = [], []
        for position, result in enumerate(tensors):
            shape = inferred[position] if inferred else None
            known.shapes[result] = self._declared(op, result, shape)
            unknown = next(self._fresh) if is_sparse(result.type) and not entries else None
            known.nnz[result] = entries[position] if entries else unknown
        self._check_first(op, known)

    def _infer(self, op: GraphOp, known: KnownValues) -> tuple[list[Shape], list[Dim | None]]:
        """What the rules of an operator say of its results."""
        facts = self._facts(op, known)
        if isinstance(op, CallLikeOp):
            self._name_sizes(op, known)
        inferred = op.infer_shapes([known.shapes[value] for value in op.operands], facts)
        entries: list[Dim | None] = [None] * len(op.results)
        if isinstance(op, SparseResultInterface):
            entries = op.infer_nnz([known.nnz[value] for value in op.operands], facts)
        if isinstance(op, CallLikeOp) and op.result_dims is not None:
            # The only names in an operation: those of the function that it is in.
            inferred = [tuple(d.substitute(self._named) for d in s) for s in inferred]
        return inferred, entries

    def _compute(self, symbol: Dim, size: ComputedSize, known: KnownValues) -> None:
        """Note that the program computes a size."""
        (name,) = symbol.symbols
        if name in self.computed or name in self.bindings:
            self._fail(f'size "{name}" is defined twice', None, None)
        self.computed[name] = size
        if size.axis is None:
            known.held[size.value] = symbol

    def _name_sizes(self, call: CallLikeOp, known: KnownValues) -> None:
        """Note the sizes that arguments or results of a call hold."""
        for size in call.sizes:
            name, bound = size.symbol.data, size.with_sizes(self._named).upper
            symbol = next(self._fresh_size) if len(self._active) > 1 else Dim.symbol(name)
            self._named[name] = symbol
            self._compute(symbol, ComputedSize(size.scalar(call), bound, call), known)

    def _check_first(self, op: Operation, known: KnownValues) -> None:
        """Demand that sizes that an operation computes are those of first dimensions.

        Then a result is the beginning of a buffer of the upper bound.
        """
        own = {
            name
            for name, size in self.computed.items()
            if size.value in op.results and size.axis is None
        }
        facts = ShapeFacts(op, lambda: next(self._fresh))
        if any(self.computed[name].bound is None for name in own):
            facts.fail("a size that is computed along with what it is a size of has no upper bound")
        for number, result in enumerate(op.results if own else ()):
            if not own.isdisjoint(
                n for dim in known.shapes.get(result, ())[1:] for n in dim.symbols
            ):
                fact = f"result {number} has a size that is computed along with it"
                facts.fail(fact, "in its first dimension only", text(known.shapes[result]))

    def _visit_call(
        self, op: func.CallOp, known: KnownValues
    ) -> tuple[list[Shape], list[Dim | None]]:
        callee = find_symbol(op, op.callee)
        if not isinstance(callee, func.FuncOp) or not callee.body.blocks:
            return [], []
        parameters: Sequence[SSAValue] = callee.body.block.args
        inner, outer, self._named = KnownValues(), self._named, {}
        for number, (parameter, argument) in enumerate(zip(parameters, op.operands, strict=True)):
            kind = parameter.type
            if argument in known.shapes:
                inner.shapes[parameter] = known.shapes[argument]
                inner.nnz[parameter] = known.nnz[argument]
            if argument in known.held:
                inner.held[parameter] = known.held[argument]
            if not isinstance(kind, TensorType):
                continue
            names = self._dimension_names(kind, argument_attributes(callee, number))
            pairs = zip(names, known.shapes[argument], strict=True)
            self._named |= {name: dim for name, dim in pairs if name}
        returned = self._visit(callee, inner)
        self._named = outer
        self._take_sizes(op, dict(zip(parameters, op.operands, strict=True)), known, inner)
        self._take_sizes(op, dict(zip(returned, op.results, strict=True)), known, inner)
        tensors = [value for value in returned if value in inner.shapes]
        return [inner.shapes[v] for v in tensors], [inner.nnz[v] for v in tensors]

    def _take_sizes(
        self,
        call: func.CallOp,
        outer: Mapping[SSAValue, SSAValue],
        known: KnownValues,
        inner: KnownValues,
    ) -> None:
        """Note the sizes that scalars of a called function hold, by those of its caller."""
        for own, value in outer.items():
            if own in inner.held:
                known.held.setdefault(value, inner.held[own])
        for name, size in self.computed.items():
            if size.value in outer:
                self.computed[name] = replace(size, value=outer[size.value], op=call)

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

    def _record(self, a: Dim, b: Dim, op: Operation) -> None:
        if not self._is_recorded(a, b):
            self.equalities.append((a, b, op))
            self._multiples.note(a, b)

    def _is_recorded(self, a: Dim, b: Dim) -> bool:
        return any((c, d) in ((a, b), (b, a)) for c, d, _ in self.equalities)


def arguments_of(function: func.FuncOp) -> Sequence[SSAValue]:
    """The arguments of a function; none of one without a body."""
    return function.args if function.body.blocks else ()


def _computed_names(function: func.FuncOp) -> list[str]:
    """The symbols of computed sizes that operations of a function state."""
    names: list[str] = []
    for op in function.walk():
        if isinstance(op, CallLikeOp):
            names += [size.symbol.data for size in op.sizes]
        elif isinstance(op, ControlFlowOp):
            names += op.stated_sizes
    return names


def _is_inside(op: Operation, other: Operation) -> bool:
    """Whether an operation is in a region of another one."""
    return op is not other and other.is_ancestor(op)
