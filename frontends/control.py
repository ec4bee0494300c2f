"""Conditions and loops of a model under construction, whose bodies are Python functions.

A function is called once, with values of the body that it builds, and may use any other value
of the builder: what it uses from outside is captured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from xdsl.dialects.builtin import DYNAMIC_INDEX, LocationAttr, NoneAttr, TensorType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.utils.exceptions import VerifyException

from ..core.boundary.arrays import is_integer
from ..core.ir.typed import tensor_type
from ..dialects.graph.interfaces import rank
from ..dialects.graph.ops.control.conditional import IfOp, joined
from ..dialects.graph.ops.control.loop import LoopOp
from ..dialects.graph.ops.control.regions import YieldOp
from .bodies import (
    Structure,
    block_for,
    bound_texts,
    elements_of,
    rows_of,
    single,
)
from .captures import captured
from .diagnostics import input_error, reworded
from .parts import BuilderPart
from .values import Operand, Value

_Values = Sequence[Value]


@dataclass(frozen=True)
class _End:
    """How a loop ends, and the bounds of what it carries: arguments of `loop` and `scan`."""

    count: int | str | Value | None
    condition: Callable[..., Any] | None
    limit: int | None
    bounds: Mapping[int, Sequence[int | str | None]]


class ControlFlow(BuilderPart):
    """The part of a `Builder` that has regions."""

    def cond(
        self,
        pred: Value,
        then: Callable[..., Any],
        orelse: Callable[..., Any],
        *operands: Operand,
        name: str | None = None,
    ) -> Any:
        """Choose between two computations at run time.

        Args:
            pred: an i1 scalar.
            then: called with the operands; builds what is computed where `pred` holds.
            orelse: the same for where it does not hold.
            operands: passed to both functions, which may use other values as well.
            name: the name of the model's node in messages; by default the caller's line.

        Returns:
            What the functions return: a value, or a tuple of values. Sizes may differ: then that of
            the result is a computed size.

        Raises:
            InputError: if `pred` is no i1 scalar, or the functions return values of different
                ranks or element types.
        """
        location = self._located(name)
        condition = self._own(pred, "cond")
        given = [self._operand(value, None, "cond", location) for value in operands]
        blocks, ends = [Block(), Block()], list[Structure]()
        for block, function in zip(blocks, (then, orelse), strict=True):
            with self._inside(block):
                end = Structure.of(function(*(Value(self, value) for value in given)))
                self._end(end.values, [None] * len(end.values), location)
            ends.append(end)
        if len(ends[0].values) != len(ends[1].values):
            counts = [len(end.values) for end in ends]
            raise input_error("cond", "the functions return different numbers", *counts)
        captures = captured(blocks)
        pairs = zip(*(_last(block).operands for block in blocks), strict=True)
        types = [joined(one.type, other.type) for one, other in pairs]
        regions = [Region(block) for block in blocks]
        return ends[0].like(self._add(IfOp(condition, captures, types, *regions), location))

    def loop(
        self,
        count: int | str | Value | None,
        body: Callable[..., Any],
        *init: Operand,
        condition: Callable[..., Any] | None = None,
        limit: int | None = None,
        bounds: Mapping[int, Sequence[int | str | None]] = {},
        name: str | None = None,
    ) -> Any:
        """Repeat a computation on what it gave before.

        Args:
            count: the number of iterations: a number, the name of a symbolic size, an i64 scalar,
                or None for as many as `condition` holds.
            body: called with the number of the iteration, an i64 scalar, and the carried values;
                returns the carried values of the next iteration, of the same types.
            init: the carried values of the first iteration.
            condition: called with carried values; returns whether there is another iteration, an i1
                scalar. It is evaluated before each one.
            limit: where no size gives the number of iterations: a call fails that needs more.
            bounds: the number of a carried value whose shape may change -> for each dimension the
                largest size, a number or a text such as "n+9"; None for one that stays the same. A
                call fails that needs more.
            name: the name of the model's node in messages; by default the caller's line.

        Returns:
            The carried values after the last iteration: a value, or a tuple of values.

        Raises:
            InputError: if the loop has no end, or values have the wrong types.
        """
        location = self._located(name)
        carried = [self._operand(value, None, "loop", location) for value in init]

        def iterate(number: Value, state: _Values, _: _Values) -> tuple[Sequence[Operand], _Values]:
            return Structure.of(body(number, *state)).values, ()

        end = _End(count, condition, limit, bounds)
        last, _ = self._repeat("loop", iterate, carried, (), end, location)
        return single(last)

    def scan(
        self,
        body: Callable[..., Any],
        init: Any,
        xs: Any = (),
        *,
        count: int | str | Value | None = None,
        condition: Callable[..., Any] | None = None,
        limit: int | None = None,
        bounds: Mapping[int, Sequence[int | str | None]] = {},
        reverse: bool = False,
        axis: int = 0,
        name: str | None = None,
    ) -> Any:
        """Compute on one slice after another, carrying values along.

        Args:
            body: called with the carried value and a slice; returns the next carried value and an
                output. Each may be a tuple, `()` if there is none.
            init: the first carried value, or a tuple of them.
            xs: what is sliced, or a tuple; of equal sizes along `axis`.
            count: the number of iterations where nothing is sliced, as for `loop`.
            condition: called with carried values; returns whether there is another iteration, an i1
                scalar. It is evaluated before each one.
            limit: how many outputs there may be, where only a condition ends the loop. A call fails
                that needs more. With a `count` that is a value, memory for them is allocated during
                the call if there is no limit.
            bounds: the largest shapes of carried values that may change, as for `loop`. In a text
                `loop.iterations` is the number of slices or `count`, such as "n+loop.iterations",
                and `loop.start` the size before the first iteration.
            reverse: whether to begin with the last slice.
            axis: the axis of `xs` and of the stacked outputs. Other axes than 0 are copied.
            name: the name of the model's node in messages; by default the caller's line.

        Returns:
            The last carried value, and the outputs stacked along `axis` in the order of the slices.
            Where `count` is a value, or there is a condition, there are as many of them as there
            were iterations, which is a computed size.

        Raises:
            InputError: if the loop has no end, or values have the wrong types.
        """
        location = self._located(name)
        start, given = Structure.of(init), Structure.of(xs)
        carried = [self._operand(value, None, "scan", location) for value in start.values]
        tensors = [self._operand(value, None, "scan", location) for value in given.values]
        tensors = [self._moved(value, axis, 0) for value in tensors]
        if isinstance(count, Value) and limit is None and not tensors:
            # As many slices as iterations, whose values are not used.
            tensors, count = [self.arange(self.max(count, 0)).ssa], None
        outputs = Structure.of(None)

        def iterate(
            _: Value, state: _Values, slices: _Values
        ) -> tuple[Sequence[Operand], Sequence[Operand]]:
            nonlocal outputs
            rows = slices[: len(given.values)]
            returned = body(start.like(state), given.like(rows))
            if not isinstance(returned, tuple) or len(returned) != 2:
                raise input_error("scan", "the body returns no pair", "(carried, outputs)")
            on, outputs = map(Structure.of, returned)
            return on.values, outputs.values

        end = _End(count, condition, limit, bounds)
        last, stacks = self._repeat("scan", iterate, carried, tensors, end, location, reverse)
        moved = [Value(self, self._moved(stack.ssa, 0, axis)) for stack in stacks]
        return start.like(last), outputs.like(moved)

    def _repeat(
        self,
        subject: str,
        iterate: Callable[[Value, _Values, _Values], tuple[Sequence[Operand], Sequence[Operand]]],
        carried: Sequence[SSAValue],
        sliced: Sequence[SSAValue],
        end: _End,
        location: LocationAttr,
        reverse: bool = False,
    ) -> tuple[list[Value], list[Value]]:
        """Append a loop; returns what it carries at the end, and the stacked outputs.

        Args:
            subject: the name of the loop in messages.
            iterate: called with the number of the iteration, what is carried and the slices;
                returns what is carried on, and the outputs of the iteration.
            carried: the first carried values.
            sliced: what slices are taken of.
            end: how the loop ends.
            location: the place of the loop in the model.
            reverse: whether to begin with the last slice.
        """
        largest = bound_texts(subject, carried, end.bounds)
        ending = self._ending(subject, end, carried)
        block, first = block_for(carried, sliced, largest), 1 + len(carried)
        with self._inside(block):
            values = [Value(self, argument) for argument in block.args]
            on, outputs = iterate(values[0], values[1:first], values[first:])
            if len(on) != len(carried):
                fact = "the body returns another number of carried values"
                raise input_error(subject, fact, len(carried), len(on))
            likes = [*elements_of(carried), *([None] * len(outputs))]
            given = self._converted([*on, *outputs], likes, location)
            following, rows = given[: len(carried)], given[len(carried) :]
            condition = end.condition
            goes_on = [] if condition is None else [self._flag(subject, condition, following)]
            self._block.add_op(YieldOp(*goes_on, *given))
        size = DYNAMIC_INDEX if end.condition is not None else rows_of(end.count, sliced)
        stacks = [
            TensorType(kind.element_type, [size, *kind.get_shape()], NoneAttr())
            for kind in map(tensor_type, rows)
        ]
        op = LoopOp(
            Region(block),
            [*block.arg_types[1:first], *stacks],
            **ending,
            bounds=largest,
            inits=carried,
            sliced=sliced,
            captures=captured([block]),
            backward_slices=range(len(sliced)) if reverse else (),
            backward_stacks=range(len(rows)) if reverse else (),
        )
        results = self._add(op, location)
        return results[: len(carried)], results[len(carried) :]

    @contextmanager
    def _inside(self, block: Block) -> Iterator[None]:
        """Append to the block of a region within the context."""
        outer, self._block = self._block, block
        try:
            yield
        finally:
            self._block = outer
            self._closed.add(block)

    def _check_outside(self, what: str) -> None:
        if self._block is not self._region.block:
            fact = f"{what}() in the body of a loop or condition"
            raise input_error("Builder", fact, "a call outside")

    def _ending(self, subject: str, end: _End, carried: Sequence[SSAValue]) -> dict[str, Any]:
        """How a loop ends, as arguments of its operation."""
        ending, count = dict[str, Any](limit=end.limit), end.count
        if isinstance(count, Value):
            ending["times"] = self._own(count, subject)
        elif count is not None:
            if not (is_integer(count) or isinstance(count, str)):
                raise input_error(subject, "wrong count", "an integer, a name or a value", count)
            ending["count"] = str(count)
        if end.condition is not None:
            ending["condition"] = self._flag(subject, end.condition, carried)
        return ending

    def _flag(
        self, subject: str, condition: Callable[..., Any], carried: Sequence[SSAValue]
    ) -> SSAValue:
        """The condition of the next iteration."""
        holds = condition(*(Value(self, value) for value in carried))
        return self._own(holds, f"{subject}: condition")

    def _converted(
        self, values: Sequence[Operand], like: Sequence[Attribute | None], location: LocationAttr
    ) -> list[SSAValue]:
        kinds = [*like, *([None] * (len(values) - len(like)))]
        pairs = zip(values, kinds[: len(values)], strict=True)
        return [self._operand(value, kind, "result", location) for value, kind in pairs]

    def _end(
        self, values: Sequence[Operand], like: Sequence[Attribute | None], location: LocationAttr
    ) -> None:
        """End the current block with values."""
        self._block.add_op(YieldOp(*self._converted(values, like, location)))

    def _moved(self, value: SSAValue, source: int, target: int) -> SSAValue:
        """A tensor with an axis moved to another place."""
        count = rank(value)
        if source == target:
            return value
        if not -count <= source < count or not -count <= target < count:
            axis = source or target
            raise input_error("scan", "axis out of range", f"-{count} <= axis < {count}", axis)
        order = [axis for axis in range(count) if axis != source % count]
        order.insert(target % count, source % count)
        return self.transpose(Value(self, value), order).ssa

    def _add(self, op: IfOp | LoopOp, location: LocationAttr) -> list[Value]:
        """Append an operation after a check."""
        op.location = location
        for body in op.bodies:
            last = body.last_op
            assert last is not None
            last.location = location
        try:
            op.verify(verify_nested_ops=False)  # those of the bodies are verified already
        except VerifyException as error:
            raise reworded(error, type(op), location) from error
        self._block.add_op(op)
        return [Value(self, result) for result in op.results]


def _last(block: Block) -> Operation:
    assert block.last_op is not None
    return block.last_op
