"""Whether a kernel stores the first elements of an output, up to a number that it counts.

The number is a counter of serial loops. It starts at 0, and in each iteration either stays as it
is, or grows by 1 where all elements at it, along the first dimension, are stored.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.ir import Block, SSAValue

from ..attrs import LoopKind
from ..ops_access import StoreOp
from ..ops_loops import ForOp
from .bounds import integer_constant
from .counters import is_next
from .coverage import CounterStep, is_covered
from .indices import Known


def is_counted(known: Known, output: SSAValue, count: SSAValue) -> bool:
    """Whether each element of an output is stored, along its first dimension up to a number.

    Args:
        known: what is known of the arguments of the kernel.
        output: an output of the kernel, with room for more elements.
        count: the output that holds the number.
    """
    match [op for use in count.uses if isinstance(op := use.operation, StoreOp)]:
        case [StoreOp(accumulates=None, value=end, parent=Block() as body)] if body is count.owner:
            if not isinstance(loop := end.owner, ForOp):
                return False
            start = loop.inits[loop.results.index(end)]
            counting = _Counting(known, output)
            return integer_constant(start) == 0 and counting.counts(start, end, body)
        case _:
            return False


@dataclass(frozen=True)
class _Counting:
    known: Known
    output: SSAValue

    def counts(self, start: SSAValue, end: SSAValue, block: Block) -> bool:
        """Whether `end` is `start`, and 1 more for each element that a block stores from there."""
        if end is start:
            return True
        match end.owner:
            case ForOp() as loop if loop.kind.data == LoopKind.SERIAL:
                number = loop.results.index(end)
                own, after = loop.carried[number], loop.yielded[number]
                inside = self.counts(own, after, loop.body.block)
                return inside and self.counts(start, loop.inits[number], block)
            case arith.SelectOp(cond=condition, lhs=one, rhs=other):
                ways = ((one, condition), (other, None))
                return all(
                    way is start or self._is_step(way, CounterStep(start, block, holds))
                    for way, holds in ways
                )
            case _:
                return self._is_step(end, CounterStep(start, block))

    def _is_step(self, end: SSAValue, step: CounterStep) -> bool:
        """Whether a value is one more than a counter, and the elements at this are stored."""
        return is_next(end, step.counter) and is_covered(self.known, self.output, step=step)
