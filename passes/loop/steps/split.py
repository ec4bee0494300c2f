"""Cut a loop into chunks.

Before:

```mlir
loop.kernel @copy(%x: memref<100xf32>) -> (%y: memref<100xf32>) {
  loop.for "i" %i to 100 {
    %v = loop.load %x (d0) -> (d0)(%i) : memref<100xf32>, f32
    loop.store %v, %y (d0) -> (d0)(%i) : f32, memref<100xf32>
  }
}
```

Options: `loop=i factor=16 tail=mask`

After:

```mlir
loop.kernel @copy(%x: memref<100xf32>) -> (%y: memref<100xf32>)
    attributes {loop.schedule = "split(i, 16, tail=mask)"} {
  loop.for "i0" %i0 to 7 {
    loop.for "i1" %i1 to min (d0) -> (16, d0 * -16 + 100)(%i0) {
      %v = loop.load %x (d0, d1) -> (d0 * 16 + d1)(%i0, %i1) : memref<100xf32>, f32
      loop.store %v, %y (d0, d1) -> (d0 * 16 + d1)(%i0, %i1) : f32, memref<100xf32>
    }
  }
}
```

Requires: a loop of that name that is not over entries; a reduction is only peeled.
Leaves: loops named after it, with 0 and 1 appended, and t in the tail.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineBinaryOpExpr, AffineExpr, AffineMap

from ....core.algebra.affine import (
    expression,
    minus,
    polynomial,
    quotient,
    remainder,
    rounded_up_quotient,
    value_of,
)
from ....core.algebra.expressions import Quotient
from ....core.pipelines.budgets import SUMS
from ....dialects.loop.handles import parts
from ....dialects.loop.loops import bound_of, extent_of, loops_in
from ....dialects.loop.names import free_names, free_suffix
from ....dialects.loop.nests import (
    MOST,
    MOST_COPIES,
    Consumed,
    check_number,
    loop_named,
    loop_names,
    refusal,
)
from ....dialects.loop.ops import ForOp, KernelOp, StoreOp
from ....dialects.loop.proofs.bounds import without_repeats
from ....dialects.loop.proofs.indices import may_be_negative
from ....dialects.loop.proofs.ranges import RangedRebuild
from ....dialects.loop.trace import noted
from ...primitive import primitive

STEP = "loop-split"
TAILS = ("peel", "mask", "split", "cases", "even")


def loops_of_body(loop: ForOp) -> list[ForOp]:
    """The loops inside of a loop."""
    return list(loops_in(loop.body.block))


@primitive(SUMS, parts, factor=1)
def split(
    kernel: Consumed, loop: str, factor: int, tail: str = "peel", cases: int = 0, alone: int = 0
) -> KernelOp:
    """Cut a loop into one over chunks of `factor` iterations and one inside of a chunk.

        for i to n: body(i)
        ->  for i0 to n floordiv f: for i1 to f: body(f * i0 + i1)
            for i1t to n mod f: body(f * (n floordiv f) + i1t)           (tail "peel")
        ->  for i0 to n ceildiv f: for i1 to min(f, n - f * i0): ...     (tail "mask")
        ->  for i0 to n floordiv f: for i1 to f: ...                     (tail "split")
            for i0t to (n mod f) ceildiv f: for i1t to min(f, n mod f): ...
        ->  for i0 to n floordiv f: for i1 to f: ...                     (tail "cases")
            for i0t to min(1, n mod f):
                for i0t1 to (1 if n mod f == 1 else 0): for i1t1 to 1: ...
                for i0t2 to (1 if n mod f == 2 else 0): for i1t2 to 2: ...     (up to f - 1)
        ->  for i0 to 2: for i1 to 6: body(6 * i0 + i1)               (tail "even", n = 32, f = 6)
            for i0t to 4: for i1t to 5: body(5 * i0t + i1t + 12)

    In these nests f is `factor`. The tail "split" keeps the chunks whole and handles the remainder
    in one masked chunk; its outer loop has at most one iteration. The tail "cases" has a nest for
    each possible remainder, of which one runs: as fast as for a known size, at the cost of the code
    of all of them. With `cases` above `f` there are also nests for f + 1 to `cases` iterations: a
    remainder of a few iterations runs together with the last chunk. With `alone` up to so many
    iterations have two nests, as those of such a remainder do in any case: one where they are all
    there are, and one where they remain, named after the smallest number for which it runs (f + 1,
    ...). If the bound is the smallest of several, "cases" computes it before the chunks. For a
    known size "cases" is "peel". The tail "even" has as many chunks as the others, whose sizes
    differ by at most one: `factor` is the largest size. If `factor` divides the size, there is no
    tail. As n mod f is above 0 for some negative n, the tail of a bound that may be negative is
    also bounded by n.

    Args:
        loop: the loop that is cut.
        factor: the iterations of a chunk.
        tail: how the remainder is handled: `peel`, `mask`, `split`, `cases` or `even`.
        cases: with `cases`, the most iterations that have their own nest; by default a chunk's - 1.
        alone: with `cases`, the most iterations that have another nest where they are alone.

    Raises:
        ScheduleError: for an entries loop, for a tail other than "peel" of a loop that carries
            values, for even chunks of an unknown size, for a number of cases that is neither
            f - 1 nor from f + 1 to 2 * f - 1, and for `alone` above f - 1.
    """
    target = loop_named(STEP, kernel, loop)
    if target.over_entries:
        raise refusal(STEP, kernel, target, "rows differ in length", hint="unroll its entries")
    most = MOST_COPIES if tail == "cases" else MOST
    check_number(STEP, kernel, target, "factor", factor, most)
    if tail not in TAILS:
        raise refusal(STEP, kernel, target, "unknown tail", ", ".join(TAILS), tail)
    if cases and (tail != "cases" or cases not in (factor - 1, *range(factor + 1, 2 * factor))):
        wanted = f"{factor - 1}, or from {factor + 1} to {2 * factor - 1}, with tail=cases"
        raise refusal(STEP, kernel, target, "wrong number of cases", wanted, cases)
    if alone and (tail != "cases" or not 0 < alone < factor):
        wanted = f"1 to {factor - 1}, with tail=cases"
        raise refusal(STEP, kernel, target, "wrong number of iterations alone", wanted, alone)
    if target.results and tail != "peel":
        fact = "it carries values, and has no masked tail"
        raise refusal(STEP, kernel, target, fact, "tail=peel", tail)
    if tail == "even" and extent_of(target) is None:
        raise refusal(STEP, kernel, target, "its size is not known", "a constant bound")
    if tail not in ("mask", "cases", "even") and len(bound_of(target)) > 1:
        fact = f"its bound is the smaller of several, which tail={tail} cannot cut"
        raise refusal(STEP, kernel, target, fact)
    new = _Split(kernel, target, factor, tail, max(cases, factor - 1), alone).run()
    named = {name: n for name, n in (("cases", cases), ("alone", alone)) if n}
    return noted(new, "split", loop, factor, tail=tail, **named)


class _Split(RangedRebuild):
    def __init__(
        self, kernel: KernelOp, target: ForOp, factor: int, tail: str, cases: int, alone: int
    ) -> None:
        super().__init__(kernel, [target])
        self.target, self.factor, self.tail = target, factor, tail
        self.joined = max(0, cases - factor)
        """Up to this many remaining iterations run together with the last chunk."""
        self.alone = max(self.joined, alone)
        """Up to this many iterations have another nest where no chunk is before them."""
        taken = loop_names(kernel)
        halves = free_names(target.loop_name.data, ("0", "1"), taken)
        self.outer, self.inner = halves
        copied = [*(nested.loop_name.data for nested in loops_of_body(target)), *halves]
        endings = ["", *map(str, self.numbers())] if tail == "cases" else [""]
        self.end = free_suffix("t", copied, taken.union(halves), endings)
        """The suffix of the names of loops in the tail, those of the split included."""

    def visit_for(self, op: ForOp) -> None:
        if op is not self.target:
            super().visit_for(op)
        elif op.results:
            self.carried_on(op)
        elif self.tail == "mask":
            self.masked(op)
        elif self.tail == "even":
            self.even(op, cast(int, extent_of(op)))
        else:
            self.chunks_and_rest(op)

    # (f * i0 + i1) floordiv f == i0  for 0 <= i1 < f
    def composed(
        self, map: AffineMap, operands: Sequence[SSAValue], symbols: Sequence[AffineExpr] = ()
    ) -> list[AffineExpr]:
        found = super().composed(map, operands, symbols)
        if self.suffix and type(self.source) is StoreOp:
            # Stores of the rest have the form of those of chunks: together they are all.
            return found
        return [self.folded(e) if type(e) is AffineBinaryOpExpr else e for e in found]

    def folded(self, expr: AffineExpr) -> AffineExpr:
        """An index without the quotients that are the number of a chunk."""
        value = polynomial(expr)
        if not any(isinstance(atom, Quotient) for atom in value.atoms):
            return expr
        return expression(self.ranges.folded(value))

    def masked(self, op: ForOp) -> None:
        """Chunks, the last of which may be shorter."""
        bound, f = self.bound(op), self.factor
        outer = [rounded_up_quotient(b, f) for b in bound]
        with self.loop(self.outer, outer, op.kind.data, op) as i0:
            rest = [minus(b, i0 * f) for b in bound if value_of(remainder(b, f)) != 0]
            self.chunk(op, [AffineExpr.constant(f), *rest], i0 * f, is_only=True)

    def even(self, op: ForOp, size: int) -> None:
        """Chunks whose sizes differ by at most one, the larger ones first."""
        chunks = -(-size // self.factor)
        least, larger = divmod(size, max(1, chunks))
        start = 0
        for count, length in ((larger, least + 1), (chunks - larger, least)):
            if count == 0:
                continue
            name, bound = self.name(self.outer), [AffineExpr.constant(count)]
            with self.loop(name, bound, op.kind.data, op) as i0:
                self.chunk(op, [AffineExpr.constant(length)], i0 * length + start)
            start, self.suffix = count * length, self.end
        self.suffix = ""

    def chunks_and_rest(self, op: ForOp) -> None:
        """Whole chunks, then the remainder."""
        f, bound = self.factor, self.only_bound(op)
        full, rest = quotient(bound, f), remainder(bound, f)
        whole = AffineExpr.constant(f)
        if self.tail == "cases" and value_of(rest) is None:
            self.chunks_and_cases(op, bound)
            return
        if value_of(full) != 0:
            with self.loop(self.outer, [full], op.kind.data, op) as i0:
                self.chunk(op, [whole], i0 * f, is_only=value_of(rest) == 0)
        if value_of(rest) == 0:
            return
        self.suffix = self.end
        if self.tail == "peel":
            self.chunk(op, [rest, *self.limits_of_tail(op, bound)], full * f)
        elif value_of(rest) is not None:
            bounds = [rest] if self.tail == "cases" else [whole, rest]
            self.chunk(op, bounds, full * f)
        else:
            name = self.name(self.outer)
            bounds = [rounded_up_quotient(rest, f), *self.limits_of_tail(op, bound)]
            with self.loop(name, bounds, op.kind.data.of_parts, op):
                self.chunk(op, [whole, rest], full * f)
        self.suffix = ""

    def only_bound(self, op: ForOp) -> AffineExpr:
        """The bound of a loop; the smallest of several is computed before it."""
        bound = without_repeats(self.bound(op))
        if extent_of(op) == 0:
            return AffineExpr.constant(0)
        return bound[0] if len(bound) == 1 else self.number(self.smallest(bound, op))

    # min(n mod f, n) == n mod f  for n >= 0
    def limits_of_tail(self, op: ForOp, bound: AffineExpr) -> list[AffineExpr]:
        """What else bounds a tail, so that there is none for a negative number of iterations."""
        return [bound] if may_be_negative(op) else []

    def chunks_and_cases(self, op: ForOp, bound: AffineExpr) -> None:
        """Whole chunks, one fewer where few iterations would remain, then a nest for each
        remainder.
        """
        f = self.factor
        full = minus(quotient(bound, f), self.rest_is(bound, 1, self.joined))
        with self.loop(self.outer, [full], op.kind.data, op) as i0:
            self.chunk(op, [AffineExpr.constant(f)], i0 * f)
        once = [AffineExpr.constant(1), remainder(bound, f), *self.limits_of_tail(op, bound)]
        with self.loop(self.outer + self.end, once, op.kind.data.of_parts, op):
            for number in self.numbers():
                self.suffix = f"{self.end}{number}"
                self.case(op, number, bound)
        self.suffix = ""

    # 1 if a <= n mod f <= b else 0  ==  (n + f - a) floordiv f - (n + f - 1 - b) floordiv f
    def rest_is(self, bound: AffineExpr, least: int, most: int) -> AffineExpr:
        """1 if `least` to `most` iterations remain after whole chunks, else 0."""
        f = self.factor
        return minus(quotient(bound + (f - least), f), quotient(bound + (f - 1 - most), f))

    def numbers(self) -> list[int]:
        """The smallest number of iterations for which each nest of a remainder runs."""
        f = self.factor
        return [*range(1, f), *range(f + 1, f + self.alone + 1)]

    def case(self, op: ForOp, number: int, bound: AffineExpr) -> None:
        """The nest for what remains of `number` iterations, or of more by a multiple of f."""
        left = number % self.factor
        bounds = [AffineExpr.constant(1), self.rest_is(bound, left, left)]
        if left <= self.alone:
            many = minus(bound, AffineExpr.constant(self.alone))
            bounds.append(many if number > left else minus(AffineExpr.constant(1), many))
        with self.loop(self.name(self.outer), bounds, op.kind.data.of_parts, op):
            whole = AffineExpr.constant(number if left <= self.joined else left)
            self.chunk(op, [whole], minus(bound, whole))

    def chunk(
        self, op: ForOp, bound: Sequence[AffineExpr], start: AffineExpr, is_only: bool = False
    ) -> None:
        """A loop over the iterations of one chunk."""
        with self.loop(self.name(self.inner), bound, op.kind.data.of_parts, op) as i1:
            self.bind(op.variable, start + i1)
            if is_only:
                self.take_body(op)
            else:
                self.visit_body(op.body.block)

    def carried_on(self, op: ForOp) -> None:
        """Chunks that carry values from one to the next, and then the remainder."""
        bound, f = self.only_bound(op), self.factor
        full, rest = quotient(bound, f), remainder(bound, f)
        last, whole = self.inits(op), AffineExpr.constant(f)

        def chunk(outer: ForOp) -> Sequence[SSAValue]:
            start = self.number(outer.variable) * f

            def body(inner: ForOp) -> Sequence[SSAValue]:
                return self.step(op, start + self.number(inner.variable), inner.carried)

            return self.loop_like(op, self.inner, [whole], outer.carried, body)

        def tail(new: ForOp) -> Sequence[SSAValue]:
            return self.step(op, full * f + self.number(new.variable), new.carried)

        if value_of(full) != 0:
            last = self.loop_like(op, self.outer, [full], last, chunk)
        if value_of(rest) != 0:
            self.suffix = self.end
            bounds = [rest, *self.limits_of_tail(op, bound)]
            last = self.loop_like(op, self.name(self.inner), bounds, last, tail)
            self.suffix = ""
        self.bind_all(op.results, last)
