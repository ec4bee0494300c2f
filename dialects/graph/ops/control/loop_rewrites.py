"""Canonicalisations of `graph.loop`: what is known of a loop, and what it does not need."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern
from xdsl.rewriter import InsertPoint

from .....core.ir.typed import tensor_type
from .....core.pipelines.exactness import EXACT, states
from ...interfaces import ShapeFacts, unknown_sizes
from ..moves.shape import ReshapeOp
from ..sources.constant import ConstantOp, splat_of
from .loop_base import GraphLoopBase
from .regions import CaptureOfConstant, UnusedCapture, inlined


@states(EXACT, 'loop times(5) == loop count "5"')
class KnownCount(RewritePattern):
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: GraphLoopBase, rewriter: PatternRewriter) -> None:
        number = None if op.times is None else splat_of(op.times)
        if number is not None and (op.limit is None or number <= op.limit.value.data):
            count = str(max(0, int(number)))
            _replace(op, rewriter, range(len(op.inits)), range(len(op.stacks)), count=count)


@states(
    EXACT,
    "loop while(false) carries(x) == x",
    "loop count n while(true) { yield true } == loop count n",
)
class KnownCondition(RewritePattern):
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: GraphLoopBase, rewriter: PatternRewriter) -> None:
        if op.condition is None or op.goes_on is None:
            return
        first, others = splat_of(op.condition), splat_of(op.goes_on)
        counted = op.times is not None or op.count is not None or bool(op.sliced)
        if first is not None and not first and _returns_start(op):
            rewriter.replace(op, [], list(op.inits))
        elif first and others and counted:
            _replace(op, rewriter, range(len(op.inits)), range(len(op.stacks)), unconditional=True)


@states(EXACT, 'loop count "0" carries(x) == x', 'loop count "1" carries(x) { f } == f(x)')
class KnownIterations(RewritePattern):
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: GraphLoopBase, rewriter: PatternRewriter) -> None:
        known = [tensor_type(value).get_shape()[0] for value in op.sliced]
        count = op.iterations([], ShapeFacts(op, unknown_sizes()))
        known += [] if count is None or count.number is None else [count.number]
        if 0 in known and _returns_start(op):
            rewriter.replace(op, [], list(op.inits))
        elif 1 in known and op.condition is None and self._is_static(op):
            self._unroll(op, rewriter)

    def _is_static(self, op: GraphLoopBase) -> bool:
        """Whether slices can be written as reshapes, and sizes do not change."""
        types = [tensor_type(value) for value in (*op.sliced, *op.stacks)]
        return op.bounds is None and all(
            kind.has_static_shape() and 0 not in kind.get_shape() for kind in types
        )

    def _unroll(self, op: GraphLoopBase, rewriter: PatternRewriter) -> None:
        # x[0] == reshape(x) for x of one row
        number = ConstantOp.literal(np.array(0, np.int64))
        slices = [ReshapeOp(v, list(tensor_type(v).get_shape()[1:])) for v in op.sliced]
        rewriter.insert([number, *slices], InsertPoint.before(op))
        rows = [row.result for row in slices]
        arguments = [number.result, *op.inits, *rows, *op.captures]
        results = inlined(op.body.block, op, arguments, rewriter)
        stacks = [
            ReshapeOp(row, list(tensor_type(stack).get_shape()))
            for row, stack in zip(results[len(op.inits) :], op.stacks, strict=True)
        ]
        for part in (number, *slices, *stacks):
            part.location = op.location
        results[len(op.inits) :] = [stack.result for stack in stacks]
        rewriter.replace(op, stacks, results)


@states(EXACT, "loop carries(x) { a -> a } == x", "a == x  in the region")
class UnchangedCarry(RewritePattern):
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: GraphLoopBase, rewriter: PatternRewriter) -> None:
        body, captured = op.body.block, dict[SSAValue, SSAValue]()
        captured |= zip(op.captured(body), op.captures, strict=True)
        pairs = zip(op.inits, op.carried, op.carried_on, strict=True)
        same = [
            number
            for number, (init, argument, on) in enumerate(pairs)
            if (on is argument or captured.get(on) is init) and not op.bounds_of(number)
        ]
        if not same:
            return
        arguments = op.capture([op.inits[number] for number in same])
        for number, inside in zip(same, arguments, strict=True):
            rewriter.replace_all_uses_with(op.carried[number], inside)
            rewriter.replace_all_uses_with(op.results[number], op.inits[number])
        kept = [number for number in range(len(op.inits)) if number not in same]
        _replace(op, rewriter, kept, range(len(op.stacks)))


@states(
    EXACT,
    "loop carries(x, y) { a, b -> f(a), g(a, b) } == loop carries(x) { a -> f(a) }  for a "
    "result y that nothing reads",
)
class UnusedInLoop(RewritePattern):
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: GraphLoopBase, rewriter: PatternRewriter) -> None:
        used = [bool(a.uses or r.uses) for a, r in zip(op.carried, op.results, strict=False)]
        carried = [number for number, own in enumerate(used) if own]
        stacks = [number for number, result in enumerate(op.stacks) if result.uses]
        if len(carried) < len(op.inits) or len(stacks) < len(op.stacks):
            _replace(op, rewriter, carried, stacks)


def _replace(
    op: GraphLoopBase,
    rewriter: PatternRewriter,
    carried: Sequence[int],
    stacks: Sequence[int],
    *,
    count: str | None = None,
    unconditional: bool = False,
) -> None:
    """Replace a loop by one with some of its carried and stacked values, others being unused.

    Args:
        op: the loop.
        rewriter: makes the change.
        carried: the numbers of carried values to keep.
        stacks: the numbers of stacked results to keep.
        count: the number of iterations, in place of `times`.
        unconditional: whether to drop the condition, which always holds.
    """
    body, first = op.body.block, len(op.inits)
    goes_on = [] if op.goes_on is None or unconditional else [op.goes_on]
    on, rows = op.carried_on, op.stacked
    arguments = op.carried
    assert body.last_op is not None
    body.last_op.operands = [*goes_on, *(on[n] for n in carried), *(rows[n] for n in stacks)]
    for number in reversed(range(first)):
        if number not in carried:
            rewriter.erase_block_argument(arguments[number])
    kept = [*carried, *(first + number for number in stacks)]
    new = type(op)(
        op.detach_region(op.body),
        [op.results[number].type for number in kept],
        count=op.count.data if op.count is not None else count,
        times=None if count is not None else op.times,
        condition=None if unconditional else op.condition,
        inits=[op.inits[number] for number in carried],
        sliced=op.sliced,
        captures=op.captures,
        limit=None if op.limit is None or count is not None else op.limit.value.data,
        backward_slices=[n for n in range(len(op.sliced)) if op.takes_backward(n)],
        backward_stacks=[i for i, n in enumerate(stacks) if op.stores_backward(n)],
        bounds=[]
        if op.bounds is None
        else [[text.data for text in op.bounds.data[n]] for n in carried],
    )
    results: list[SSAValue | None] = [None] * len(op.results)
    for number, result in zip(kept, new.results, strict=True):
        results[number] = result
    rewriter.replace(op, new, results)


def _returns_start(op: GraphLoopBase) -> bool:
    """Whether a loop without an iteration gives the initial values, of the same types."""
    return op.result_types == op.inits.types


LOOP_REWRITES: tuple[RewritePattern, ...] = (
    CaptureOfConstant(),
    UnusedCapture(),
    KnownCount(),
    KnownCondition(),
    KnownIterations(),
    UnchangedCarry(),
    UnusedInLoop(),
)
