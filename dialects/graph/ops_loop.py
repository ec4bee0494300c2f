"""`graph.loop`: iterations that carry values, take slices of tensors, and stack what they make."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    IntegerAttr,
    NoneAttr,
    StringAttr,
    TensorType,
    i1,
    i64,
)
from xdsl.ir import Attribute, BlockArgument, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    ParsePropInAttrDict,
    irdl_op_definition,
    opt_operand_def,
    opt_prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.pattern_rewriter import RewritePattern
from xdsl.traits import (
    HasCanonicalizationPatternsTrait,
    IsolatedFromAbove,
    RecursiveMemoryEffect,
)

from ...core.dims import Dim, Shape
from ...core.typed import tensor_type
from .attrs import ANY_TENSOR, DENSE_TENSOR
from .interfaces import ShapeFacts
from .ops_control import ControlFlowOp, yielded

_FLAG = TensorType(i1, [])
_NUMBER = TensorType(i64, [])


class _LoopCanonicalization(HasCanonicalizationPatternsTrait):
    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        from .loop_rewrites import LOOP_REWRITES

        return LOOP_REWRITES


@irdl_op_definition
class LoopOp(ControlFlowOp):
    """Run the region for one iteration after another.

    %h, %ys = graph.loop carries(%h0 : tensor<4xf32>) slices(%xs : tensor<?x4xf32>)
        captures(%w : tensor<4xf32>) -> (tensor<4xf32>, tensor<?x4xf32>) {
    ^bb0(%i: tensor<i64>, %h: tensor<4xf32>, %x: tensor<4xf32>, %v: tensor<4xf32>):
      ...
      graph.yield %next, %y : tensor<4xf32>, tensor<4xf32>
    }

    The arguments of the region are the number of the iteration, what the last one carries to this
    one, a slice of each operand of `slices` along its first axis, and the captures. It yields the
    condition of the next iteration if there is `while`, what it carries on, and a slice of each
    stacked result. The operation gives what the last iteration carries (without one, `carries`
    itself), and the stacked results.

    The number of iterations is the number of slices, `count` (a number, or a size of the function),
    or the value of `times`, of which a negative one counts as 0. It ends before an iteration
    for which the condition does not hold: the operand of `while` for the first one. A loop whose
    end no size determines may have a `limit`: another iteration is then an error.

    Stacked results have as many slices as there were iterations. Where that depends on values, it
    is a computed size, at most `count`, the number of slices, or the `limit`. `sizes` names it.
    """

    name = "graph.loop"

    times = opt_operand_def(_NUMBER)
    condition = opt_operand_def(_FLAG)
    inits = var_operand_def(DENSE_TENSOR)
    sliced = var_operand_def(DENSE_TENSOR)
    captures = var_operand_def(ANY_TENSOR)
    count = opt_prop_def(StringAttr)
    limit = opt_prop_def(IntegerAttr)
    backward_slices = opt_prop_def(DenseArrayBase.constr(i64))
    """The numbers of the operands of `slices` whose last slice comes first."""
    backward_stacks = opt_prop_def(DenseArrayBase.constr(i64))
    """The numbers of the stacked results whose last slice is stored first."""
    sizes = opt_prop_def(ArrayAttr[StringAttr])
    """The symbols of the sizes that the loop computes, in the order of `measured`."""
    res = var_result_def(DENSE_TENSOR)
    body = region_def()

    traits = traits_def(IsolatedFromAbove(), RecursiveMemoryEffect(), _LoopCanonicalization())
    irdl_options = (AttrSizedOperandSegments(as_property=True), ParsePropInAttrDict())
    assembly_format = (
        "(`count` $count^)? (`times` `(` $times^ `:` type($times) `)`)? "
        "(`while` `(` $condition^ `:` type($condition) `)`)? "
        "(`carries` `(` $inits^ `:` type($inits) `)`)? "
        "(`slices` `(` $sliced^ `:` type($sliced) `)`)? "
        "(`captures` `(` $captures^ `:` type($captures) `)`)? attr-dict-with-keyword "
        "`->` `(` type($res) `)` $body"
    )

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
    ) -> None:
        super().__init__(
            operands=[times, condition, inits, sliced, captures],
            properties={
                "count": None if count is None else StringAttr(count),
                "limit": None if limit is None else IntegerAttr(limit, i64),
                "backward_slices": _numbers(backward_slices),
                "backward_stacks": _numbers(backward_stacks),
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

    def takes_backward(self, number: int) -> bool:
        """Whether the last slice of an operand comes first."""
        return self.backward_slices is not None and number in self.backward_slices.get_values()

    def stores_backward(self, number: int) -> bool:
        """Whether the last slice of a stacked result is stored first."""
        return self.backward_stacks is not None and number in self.backward_stacks.get_values()

    @property
    def stated_sizes(self) -> tuple[str, ...]:
        return () if self.sizes is None else tuple(name.data for name in self.sizes)

    def state_sizes(self, names: Sequence[str]) -> None:
        self.sizes = ArrayAttr(map(StringAttr, names)) if names else None

    def iterations(self, sliced: Sequence[Shape], facts: ShapeFacts) -> Dim | None:
        """The number of iterations, if sizes determine it; an early end aside."""
        counts = [shape[0] for shape in sliced]
        if self.count is not None:
            counts.insert(0, self._counted())
        for other in counts[1:]:
            facts.equal(counts[0], other, "numbers of iterations differ")
        return counts[0] if counts else None

    def _counted(self) -> Dim:
        assert self.count is not None
        try:
            return Dim.parse(self.count.data)
        except ValueError:
            raise self.fail("count is not a size", "a size", self.count) from None

    # What the operation must be

    def verify_(self) -> None:
        self._verify_end()
        if any(tensor_type(value).get_num_dims() == 0 for value in self.sliced):
            raise self.fail("a scalar has no slices", "a tensor of rank 1 or more")
        slices = [_slice_of(tensor_type(value)) for value in self.sliced]
        inits = [value.type for value in self.inits]
        captures = [value.type for value in self.captures]
        last = self.check_body(self.body, [_NUMBER, *inits, *slices, *captures])
        self.check_types("results of other types than what is carried", inits, self._first_results)
        first = [] if self.condition is None else [_FLAG]
        stacks = [_slice_of(tensor_type(value)) for value in self.stacks if _has_rows(value)]
        if len(stacks) < len(self.stacks):
            raise self.fail("a scalar is no stacked result", "a tensor of rank 1 or more")
        expected = [*first, *inits, *stacks]
        self.check_types("the region yields other types", expected, last.operand_types)
        for numbers, values in (
            (self.backward_slices, self.sliced),
            (self.backward_stacks, self.stacks),
        ):
            listed = () if numbers is None else numbers.get_values()
            if any(not 0 <= number < len(values) for number in listed):
                fact = "wrong number of what runs backward"
                raise self.fail(fact, f"below {len(values)}", listed)

    @property
    def _first_results(self) -> list[Attribute]:
        return [result.type for result in self.results[: len(self.inits)]]

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
            number = self._counted().number
            if number is not None and number < 0:
                raise self.fail("negative count", "0 or more", number)

    @property
    def _limit(self) -> int:
        assert self.limit is not None
        return self.limit.value.data

    def argument_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        leading = len(self.operands) - len(self.inits) - len(self.sliced) - len(self.captures)
        first = leading + len(self.inits)
        last = first + len(self.sliced)
        slices = [shape[1:] for shape in shapes[first:last]]
        return [(), *shapes[leading:first], *slices, *shapes[last:]]

    def result_shapes(
        self, shapes: Sequence[Shape], yielded: Sequence[Sequence[Shape]], facts: ShapeFacts
    ) -> list[Shape]:
        leading = len(self.operands) - len(self.inits) - len(self.sliced) - len(self.captures)
        first = leading + len(self.inits)
        given = yielded[0][0 if self.condition is None else 1 :]
        fact = "what the loop carries changes its size"
        carried = [
            tuple(facts.same(a, b, fact) for a, b in zip(before, after, strict=True))
            for before, after in zip(shapes[leading:first], given, strict=False)
        ]
        count = self.iterations(shapes[first : first + len(self.sliced)], facts)
        if not self.stacks:
            return carried
        if count is None or self.condition is not None:
            most = Dim.of(self._limit) if count is None else count
            count = facts.measured(self.stacks[0], 0, most)
        return [*carried, *((count, *shape) for shape in given[len(carried) :])]


def _has_rows(value: SSAValue) -> bool:
    return tensor_type(value).get_num_dims() > 0


def _slice_of(kind: TensorType) -> TensorType:
    """The type of a slice along the first axis."""
    return TensorType(kind.element_type, kind.get_shape()[1:], NoneAttr())


def _numbers(values: Sequence[int]) -> DenseArrayBase | None:
    return DenseArrayBase.from_list(i64, values) if values else None
