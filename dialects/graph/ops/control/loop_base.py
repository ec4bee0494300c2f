"""What `graph.loop` is made of: its parts, what they must be, and the shapes of its results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DenseArrayBase,
    IntegerAttr,
    NoneAttr,
    StringAttr,
    TensorType,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute, BlockArgument, Region, SSAValue
from xdsl.irdl import (
    opt_operand_def,
    opt_prop_def,
    region_def,
    var_operand_def,
    var_result_def,
)

from .....core.algebra.dims import Dim, Shape
from .....core.ir.typed import tensor_type
from ...attrs import ANY_TENSOR, STORED_TENSOR
from ...interfaces import ShapeFacts, declared_shape, unknown_sizes
from .regions import ControlFlowOp, yielded

_FLAG = TensorType(i1, [])
_NUMBER = TensorType(i64, [])

ITERATIONS = "loop.iterations"
"""In an upper bound: the number of iterations, which `count` or `slices` say before the loop."""
START = "loop.start"
"""In an upper bound: the size before the first iteration."""


class GraphLoopBase(ControlFlowOp):
    """A loop: see `graph.loop`, which is the only one."""

    times = opt_operand_def(_NUMBER)
    condition = opt_operand_def(_FLAG)
    inits = var_operand_def(STORED_TENSOR)
    sliced = var_operand_def(STORED_TENSOR)
    captures = var_operand_def(ANY_TENSOR)
    count = opt_prop_def(StringAttr)
    limit = opt_prop_def(IntegerAttr)
    backward_slices = opt_prop_def(DenseArrayBase.constr(i64))
    """The numbers of the operands of `slices` whose last slice comes first."""
    backward_stacks = opt_prop_def(DenseArrayBase.constr(i64))
    """The numbers of the stacked results whose last slice is stored first."""
    bounds = opt_prop_def(ArrayAttr[ArrayAttr[StringAttr]])
    """The upper bounds of the sizes of carried values that may change."""
    sizes = opt_prop_def(ArrayAttr[StringAttr])
    """The symbols of the sizes that the loop computes, in the order of `measured`."""
    res = var_result_def(STORED_TENSOR)
    body = region_def()

    def __init__(
        self,
        body: Region,
        result_types: Sequence[Attribute],
        *,
        count: str | None = None,
        times: SSAValue | None = None,
        condition: SSAValue | None = None,
        inits: Sequence[SSAValue] = (),
        sliced: Sequence[SSAValue] = (),
        captures: Sequence[SSAValue] = (),
        limit: int | None = None,
        backward_slices: Sequence[int] = (),
        backward_stacks: Sequence[int] = (),
        bounds: Sequence[Sequence[str]] = (),
    ) -> None:
        super().__init__(
            operands=[times, condition, inits, sliced, captures],
            properties={
                "count": None if count is None else StringAttr(count),
                "limit": None if limit is None else IntegerAttr(limit, i64),
                "backward_slices": _numbers(backward_slices),
                "backward_stacks": _numbers(backward_stacks),
                "bounds": _texts(bounds),
            },
            result_types=[result_types],
            regions=[body],
        )

    # The parts of the operation

    @property
    def number(self) -> BlockArgument:
        """The argument of the region that is the number of the iteration."""
        return self.body.block.args[0]

    @property
    def carried(self) -> tuple[BlockArgument, ...]:
        """The arguments of the region that are carried from one iteration to the next."""
        return tuple(self.body.block.args[1 : 1 + len(self.inits)])

    @property
    def slices(self) -> tuple[BlockArgument, ...]:
        """The arguments of the region that are slices of operands."""
        first = 1 + len(self.inits)
        return tuple(self.body.block.args[first : first + len(self.sliced)])

    @property
    def stacks(self) -> tuple[SSAValue, ...]:
        """The results that are stacked."""
        return tuple(self.results[len(self.inits) :])

    @property
    def goes_on(self) -> SSAValue | None:
        """The condition that the region yields."""
        return None if self.condition is None else yielded(self.body.block)[0]

    @property
    def carried_on(self) -> tuple[SSAValue, ...]:
        """What the region yields for the next iteration."""
        first = 0 if self.condition is None else 1
        return yielded(self.body.block)[first : first + len(self.inits)]

    @property
    def stacked(self) -> tuple[SSAValue, ...]:
        """What the region yields for the stacked results."""
        first = 0 if self.condition is None else 1
        return yielded(self.body.block)[first + len(self.inits) :]

    def capture(self, values: Sequence[SSAValue]) -> list[BlockArgument]:
        """Capture more values; returns the arguments of the region that stand for them."""
        self.set_captures([*self.captures, *values])
        body = self.body.block
        return [body.insert_arg(value.type, len(body.args)) for value in values]

    def slice(self, value: SSAValue, backward: bool) -> BlockArgument:
        """Take slices of one more value; returns the argument of the region for them."""
        place, body = 1 + len(self.inits) + len(self.sliced), self.body.block
        if backward:
            numbers = [n for n in range(len(self.sliced)) if self.takes_backward(n)]
            listed = DenseArrayBase.from_list(i64, [*numbers, len(self.sliced)])
            self.properties["backward_slices"] = listed
        optional = ([] if one is None else [one] for one in (self.times, self.condition))
        parts = [*optional, self.inits, [*self.sliced, value], self.captures]
        counts = [len(part) for part in parts]
        self.operands = [one for part in parts for one in part]
        self.properties["operandSegmentSizes"] = DenseArrayBase.from_list(i32, counts)
        return body.insert_arg(_slice_of(tensor_type(value)), place)

    def takes_backward(self, number: int) -> bool:
        """Whether the last slice of an operand comes first."""
        return self.backward_slices is not None and number in self.backward_slices.get_values()

    def stores_backward(self, number: int) -> bool:
        """Whether the last slice of a stacked result is stored first."""
        return self.backward_stacks is not None and number in self.backward_stacks.get_values()

    def bounds_of(
        self, number: int, iterations: Dim | None = None, start: Shape = ()
    ) -> dict[int, Dim]:
        """The axes of a carried value along which its size may change, with upper bounds.

        These name `ITERATIONS` where the number of iterations is not given, and `START` where the
        shape of the value before the loop is not.
        """
        if self.bounds is None:
            return {}
        texts = enumerate(self.bounds.data[number])
        known = {} if iterations is None else {ITERATIONS: iterations}
        found = {axis: self._size(text, "bound") for axis, text in texts if text.data}
        first = {axis: {**known, START: dim} for axis, dim in enumerate(start)}
        return {axis: bound.substitute(first.get(axis, known)) for axis, bound in found.items()}

    def substitute(self, sizes: Mapping[str, Dim]) -> None:
        """Substitute sizes for symbols in the number of iterations and in upper bounds."""
        if self.count is not None:
            self.count = StringAttr(str(Dim.parse(self.count.data).substitute(sizes)))
        rows = [self.bounds_of(number) for number in range(len(self.inits))]
        known = [{axis: str(dim.substitute(sizes)) for axis, dim in row.items()} for row in rows]
        self.bounds = _texts(
            [row.get(axis, "") for axis in range(tensor_type(value).get_num_dims())]
            for row, value in zip(known, self.inits, strict=True)
        )

    def carried_type(self, number: int, kind: TensorType) -> TensorType:
        """The type of a carried value in which sizes that may change are not known."""
        bounds = self.bounds_of(number)
        shape = enumerate(kind.get_shape())
        sizes = [DYNAMIC_INDEX if axis in bounds else size for axis, size in shape]
        return TensorType(kind.element_type, sizes, kind.encoding)

    def iterations(self, sliced: Sequence[Shape], facts: ShapeFacts) -> Dim | None:
        """The number of iterations, if sizes determine it; an early end aside."""
        counts = [shape[0] for shape in sliced]
        if self.count is not None:
            counts.insert(0, self._size(self.count, "count"))
        for other in counts[1:]:
            facts.equal(counts[0], other, "numbers of iterations differ")
        return counts[0] if counts else None

    def _size(self, text: StringAttr, what: str) -> Dim:
        try:
            return Dim.parse(text.data)
        except ValueError:
            raise self.fail(f"{what} is not a size", "a size", text) from None

    # What the operation must be

    def verify_(self) -> None:
        self._verify_bounds()
        if any(tensor_type(value).get_num_dims() == 0 for value in self.sliced):
            raise self.fail("a scalar has no slices", "a tensor of rank 1 or more")
        self._verify_end()
        slices = [_slice_of(tensor_type(value)) for value in self.sliced]
        carried = self._carried_types(self.inits)
        captures = [value.type for value in self.captures]
        last = self.check_body(self.body, [_NUMBER, *carried, *slices, *captures])
        given = [result.type for result in self.results[: len(self.inits)]]
        self.check_types("results of other types than what is carried", carried, given)
        first = [] if self.condition is None else [_FLAG]
        kinds = map(tensor_type, self.stacks)
        stacks = [_slice_of(kind) for kind in kinds if kind.get_num_dims() > 0]
        if len(stacks) < len(self.stacks):
            raise self.fail("a scalar is no stacked result", "a tensor of rank 1 or more")
        expected, start = [*first, *carried, *stacks], len(first)
        got, end = list(last.operand_types), len(first) + len(carried)
        if len(got) == len(expected):
            got[start:end] = self._carried_types(last.operands[start:end])
        self.check_types("the region yields other types", expected, got)
        for numbers, values in (
            (self.backward_slices, self.sliced),
            (self.backward_stacks, self.stacks),
        ):
            listed = () if numbers is None else numbers.get_values()
            if any(not 0 <= number < len(values) for number in listed):
                fact = "number of a backward value out of range"
                raise self.fail(fact, f"below {len(values)}", listed)

    def _carried_types(self, values: Sequence[SSAValue]) -> list[Attribute]:
        return [self.carried_type(number, tensor_type(v)) for number, v in enumerate(values)]

    def _verify_bounds(self) -> None:
        if self.bounds is None:
            return
        got = [len(row) for row in self.bounds]
        ranks = [tensor_type(value).get_num_dims() for value in self.inits]
        if got != ranks:
            raise self.fail("bounds do not fit what is carried", f"{ranks} texts", f"{got}")
        for number in range(len(ranks)):
            for dim in self.bounds_of(number).values():
                if dim.number is not None and dim.number < 0:
                    raise self.fail("a bound is negative", "0 or more", dim)
                if ITERATIONS in dim.symbols and self.count is None and not self.sliced:
                    fact = f"no size is the number of iterations that a bound names, {dim}"
                    raise self.fail(fact, "count or slices")

    def _verify_end(self) -> None:
        """Check how the loop ends."""
        counted = self.count is not None or bool(self.sliced)
        if self.times is not None and counted:
            raise self.fail("two numbers of iterations", "times, count or slices")
        if not counted and self.times is None and self.condition is None:
            raise self.fail("the loop has no end", "count, times, slices or while")
        if self.stacks and not counted and self.limit is None:
            raise self.fail("stacked results of an unknown size", "count, slices or a limit")
        if self.backward_stacks is not None and self.condition is not None:
            fact = "the last slice of a stacked result is stored first"
            raise self.fail(fact, "a loop without a condition")
        if self.limit is not None and (counted or self._limit < 1):
            fact = "wrong limit"
            raise self.fail(fact, "1 or more, for a loop without count and slices", self._limit)
        if self.count is not None:
            number = self._size(self.count, "count").number
            if number is not None and number < 0:
                raise self.fail("negative count", "0 or more", number)
        fresh = unknown_sizes()
        shapes = [declared_shape(value, fresh) for value in self.sliced]
        self.iterations(shapes, ShapeFacts(self, fresh))

    @property
    def _limit(self) -> int:
        assert self.limit is not None
        return self.limit.value.data

    def argument_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        leading = len(self.operands) - len(self.inits) - len(self.sliced) - len(self.captures)
        first = leading + len(self.inits)
        last = first + len(self.sliced)
        slices = [shape[1:] for shape in shapes[first:last]]
        count = self.iterations(shapes[first:last], facts)
        carried = [
            self._changing(argument, shape, self.bounds_of(number, count, shape), facts)
            for number, (argument, shape) in enumerate(
                zip(self.carried, shapes[leading:first], strict=True)
            )
        ]
        return [(), *carried, *slices, *shapes[last:]]

    def _changing(
        self, tensor: SSAValue, start: Shape, bounds: Mapping[int, Dim], facts: ShapeFacts
    ) -> Shape:
        """The shape of a carried value in the region or after the loop, from that before it."""
        return tuple(
            facts.measured(tensor, axis, bounds[axis]) if axis in bounds else dim
            for axis, dim in enumerate(start)
        )

    def result_shapes(
        self, shapes: Sequence[Shape], yielded: Sequence[Sequence[Shape]], facts: ShapeFacts
    ) -> list[Shape]:
        leading = len(self.operands) - len(self.inits) - len(self.sliced) - len(self.captures)
        first = leading + len(self.inits)
        given = yielded[0][0 if self.condition is None else 1 :]
        count = self.iterations(shapes[first : first + len(self.sliced)], facts)
        carried = list[Shape]()
        for number, before in enumerate(shapes[leading:first]):
            bounds = self.bounds_of(number, count, before)
            self._check_carried(before, given[number], bounds, facts)
            carried.append(self._changing(self.results[number], before, bounds, facts))
        if not self.stacks:
            return carried
        if count is None or self.condition is not None:
            most = Dim.of(self._limit) if count is None else count
            count = facts.measured(self.stacks[0], 0, most)
        return [*carried, *((count, *shape) for shape in given[len(carried) :])]

    def _check_carried(
        self, before: Shape, after: Shape, bounds: Mapping[int, Dim], facts: ShapeFacts
    ) -> None:
        """Demand that sizes stay the same or within their bounds, as far as they are known."""
        for axis, (start, end) in enumerate(zip(before, after, strict=True)):
            if axis not in bounds:
                facts.same(start, end, "what the loop carries changes its size")
                continue
            for size in (start, end):
                rest = (bounds[axis] - size).number
                if rest is not None and rest < 0:
                    fact = "what the loop carries is larger than its bound"
                    facts.fail(fact, f"at most {bounds[axis]}", size)


def _slice_of(kind: TensorType) -> TensorType:
    """The type of a slice along the first axis."""
    return TensorType(kind.element_type, kind.get_shape()[1:], NoneAttr())


def _texts(rows: Iterable[Sequence[str]]) -> ArrayAttr[ArrayAttr[StringAttr]] | None:
    """An attribute of texts; None if there are none."""
    attrs = [ArrayAttr(map(StringAttr, row)) for row in rows]
    return ArrayAttr(attrs) if any(text.data for row in attrs for text in row) else None


def _numbers(values: Sequence[int]) -> DenseArrayBase | None:
    return DenseArrayBase.from_list(i64, values) if values else None
