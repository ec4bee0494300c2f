"""Sizes that the program computes: read from their scalars between calls, and checked."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import i64
from xdsl.ir import Operation, SSAValue

from ...core.algebra.dims import LARGEST_SIZE, Dim
from ...core.algebra.multiples import misfit
from ...core.building.arithmetic import INDEX
from ...core.errors import explain
from ...core.ir.provenance import origin
from ...dialects.graph.sizes.computed import DIFFERS, OUT_OF_RANGE, ComputedSize
from ...dialects.rt import ops as rt
from .arena import Arena
from .checks import check_product
from .function import BufferFunction


class ComputedSizes:
    """Emits the sizes that scalars hold, each before its first use.

    Args:
        function: the function that computes them.
        buffers_of: returns the buffers of a value.
        arena: the arena, which grows where a size without an upper bound is known.
    """

    def __init__(
        self,
        function: BufferFunction,
        buffers_of: Callable[[SSAValue], Sequence[SSAValue]],
        arena: Arena,
    ) -> None:
        self.function, self._buffers_of, self.arena = function, buffers_of, arena
        self._of = defaultdict[Operation, list[tuple[str, ComputedSize]]](list)
        self._along: dict[tuple[SSAValue, int], str] = {}
        for name, size in function.shapes.computed.items():
            if size.axis is None:
                self._of[size.op].append((name, size))
            else:
                self._along[size.value, size.axis] = name
        self._unchecked = [
            (left, right)
            for left, right, _ in function.shapes.equalities
            if function.shapes.is_computed(left, right)
        ]

    def before(self, call: Operation) -> None:
        """Emit the sizes that arguments of a call hold."""
        self._define([pair for pair in self._of[call] if pair[1].value not in call.results])

    def after(self, call: Operation) -> None:
        """Emit the sizes that results of a call hold, and the buffers that those results begin."""
        self._define([pair for pair in self._of[call] if pair[1].value in call.results])
        for value in call.results:
            self.function.begin(value, call)

    def measured_by(self, op: Operation) -> list[tuple[SSAValue, int]]:
        """The results of control flow, and their axes, whose sizes are computed."""
        return [place for place in self._along if place[0] in op.results]

    def measure(self, op: Operation, tensor: SSAValue, axis: int, size: SSAValue) -> None:
        """Note the size of a tensor of control flow along an axis, if it is computed."""
        if (tensor, axis) in self._along:
            name = self._along[tensor, axis]
            self.function.sizes.symbols[name] = size
            self._check_equal(op)
            if self.function.shapes.computed[name].bound is None:
                self.arena.extend(name, op)

    def bounded(self, op: Operation, size: Dim, bound: Dim) -> SSAValue:
        """A size that `op` needs, after a check of its upper bound where that is not known."""
        number = self.function.size(size, op)
        if any(factor < 0 for _, factor in (bound - size).terms):
            self._check_bound(op, number, self.function.size(bound, op), "sle")
        return number

    def _check_bound(self, op: Operation, size: SSAValue, bound: SSAValue, order: str) -> None:
        fits = self.function.insert(arith.CmpiOp(size, bound, order))
        self._check(fits, op, OUT_OF_RANGE, "0 to {1}", [size, bound])

    def report(self) -> None:
        """Store the sizes of results for the caller, and where they begin in the arena."""
        function = self.function
        sizes = [function.sizes.symbols[name] for name in function.reported]
        offsets = [function.places[value].offset for value in function.in_arena]
        for number, value in enumerate((*sizes, *offsets)):
            assert value is not None
            size = function.insert(arith.IndexCastOp(value, i64))
            place = [function.sizes.index(number)]
            function.append(memref.StoreOp.get(size, function.report, place))

    def _define(self, sizes: Sequence[tuple[str, ComputedSize]]) -> None:
        function = self.function
        for name, size in sizes:
            (scalar,) = self._buffers_of(size.value)
            loaded = function.insert(memref.LoadOp.get(scalar, []))
            number = function.insert(arith.IndexCastOp(loaded, INDEX))
            self._check_size(name, size, number)
            function.sizes.symbols[name] = number
        if sizes:
            self._check_equal(sizes[0][1].op)
        for name, size in sizes:
            if size.bound is None:
                self.arena.extend(name, size.op)

    def _check_size(self, name: str, size: ComputedSize, number: SSAValue) -> None:
        """Check that a size is the declared one, or not above its bound."""
        function = self.function
        if (declared := function.shapes.declared(name)) is not None:
            limit = function.sizes.index(declared)
            fits = function.insert(arith.CmpiOp(number, limit, "eq"))
            self._check(fits, size.op, DIFFERS, "{1}", [number, limit])
            same = {Dim.symbol(name), Dim.of(declared)}
            self._unchecked = [pair for pair in self._unchecked if set(pair) != same]
        limit = function.size(Dim.of(LARGEST_SIZE) if size.bound is None else size.bound, size.op)
        # As unsigned numbers, negative ones are larger than any bound.
        self._check_bound(size.op, number, limit, "ule")

    def _check_equal(self, op: Operation) -> None:
        """Check the pairs of sizes that are known now."""
        function, waiting = self.function, list[tuple[Dim, Dim]]()
        for left, right in self._unchecked:
            if not function.sizes.symbols.keys() >= {*left.symbols, *right.symbols}:
                waiting.append((left, right))
                continue
            for dim in (left, right):
                unbounded = [
                    name for name in dim.symbols if function.shapes.is_unbounded(Dim.symbol(name))
                ]
                if unbounded:
                    check_product(function, dim, unbounded[-1], op)
            sizes = [function.size(dim, op) for dim in (right, left)]
            same = function.insert(arith.CmpiOp(sizes[0], sizes[1], "eq"))
            fact, expected = f"sizes {left} and {right} must agree", "{1}"
            if (words := misfit(left, right)) is not None:
                fact, expected, size = words
                sizes = [function.size(size, op)]
            self._check(same, op, fact, expected, sizes)
        self._unchecked = waiting

    def _check(
        self,
        condition: SSAValue,
        op: Operation,
        fact: str,
        expected: str,
        details: Sequence[SSAValue],
    ) -> None:
        """End the call where a condition does not hold; the first detail is the value found."""
        message = explain(origin(op) or "call", fact, expected=expected, got="{0}")
        self.function.append(rt.CheckOp(self.function.check_context, condition, message, details))
