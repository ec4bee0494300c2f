"""Run a reduction of the threads of a block together, in panels that they copy for each other.

Before:

```mlir
loop.kernel @sum(%w: memref<4x16xi8>) -> (%y: memref<4x8xi8>) {
  %z = arith.constant 0 : i8
  loop.for "b" %b to 4 blocks { loop.for "t" %t to 8 threads {
    %s = loop.for "k" %k to 4 reduction carry(%a = %z : i8 add) {
      %r = loop.for "j" %j to 16 reduction carry(%c = %a : i8 add) {
        %q = loop.load %w (d0, d1) -> (d0, d1)(%k, %j) : memref<4x16xi8>, i8
        %u = arith.addi %c, %q : i8  loop.yield %u : i8 }
      loop.yield %r : i8 }
    loop.store %s, %y (d0, d1) -> (d0, d1)(%b, %t) : i8, memref<4x8xi8> } } }
```

Options: `loop=k`

After:

```mlir
loop.kernel @sum(%w: memref<4x16xi8>) -> (%y: memref<4x8xi8>) attributes {loop.schedule =
"stage_panels(k)"} { %z = arith.constant 0 : i8 loop.for "b" %b to 4 blocks { %r = loop.local :
memref<8xi8, #loop<space threads>> loop.for "tb" %t to 8 threads { loop.store %z, %r (d0) ->
(d0)(%t) : i8, memref<8xi8, #loop<space threads>> } loop.for "k" %k to 4 serial { %p = loop.local :
memref<16xi8, #loop<space shared>> loop.for "kp" %c to 16 threads { %q = loop.load %w (d0, d1) ->
(d0, d1)(%k, %c) : memref<4x16xi8>, i8 loop.store %q, %p (d0) -> (d0)(%c) : i8, memref<16xi8,
#loop<space shared>> } loop.for "t" %t to 8 threads { %a = loop.load %r (d0) -> (d0)(%t) :
memref<8xi8, #loop<space threads>>, i8 %s = loop.for "j" %j to 16 reduction carry(%c = %a : i8 add)
{ %q = loop.load %p (d0) -> (d0)(%j) : memref<16xi8, #loop<space shared>>, i8 %u = arith.addi %c, %q
: i8 loop.yield %u : i8 } loop.store %s, %r (d0) -> (d0)(%t) : i8, memref<8xi8, #loop<space
threads>> } } loop.for "te" %t to 8 threads { %s = loop.load %r (d0) -> (d0)(%t) : memref<8xi8,
#loop<space threads>>, i8 loop.store %s, %y (d0, d1) -> (d0, d1)(%b, %t) : i8, memref<4x8xi8> } } }
```

Requires: a reduction in perfectly nested loops of known sizes, of which the outer ones are the
    threads of a block, that reads the same elements of inputs in several threads.
Leaves: a serial loop around nests of threads that copy panels to shared memory and accumulate,
    and one before and after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from xdsl.dialects.builtin import MemRefType, VectorType
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.traits import is_side_effect_free

from ....core.algebra.affine import normalized
from ....core.ir.typed import memref_type
from ....core.pipelines.budgets import EXACT
from ....dialects.loop.attrs import LoopKind, Space, SpaceAttr
from ....dialects.loop.loops import enclosing, extent_of, is_made_in, loops_in
from ....dialects.loop.names import free_names, free_suffix
from ....dialects.loop.nests import (
    Consumed,
    check_number,
    loop_named,
    loop_names,
    perfect_nest,
    refusal,
)
from ....dialects.loop.ops import ForOp, KernelOp, LoadOp, LocalOp, StoreOp
from ....dialects.loop.proofs.in_place import written_in
from ....dialects.loop.proofs.levels import is_in_block
from ....dialects.loop.rebuild import Rebuild
from ....dialects.loop.trace import noted
from ...primitive import primitive
from ..staging.panels import Panel, copy_type, lanes_of, panels_of
from ..staging.terms import Terms, terms_of

STEP = "loop-stage-panels"


@primitive(EXACT)
def stage_panels(kernel: Consumed, loop: str, *, part: int = 0, ahead: int = 0) -> KernelOp:
    """Run a reduction of the threads of a block together, in panels that they copy for each other.

        for b blocks: for t threads: s = reduce k: s + x[b, t, k] * w[k]; y[b, t] = s
        ->  for b blocks: { for t threads: s[t] = 0
                for k serial: { for c threads: p[c] = x[b, c, k]; q = w[k]
                    for t threads: s[t] = s[t] + p[t] * q }
                for t threads: y[b, t] = s[t] }

    An input of which several threads read the same elements is copied to shared memory by all
    threads of the block, the part that one iteration of the reduction reads at a time. So the
    reduction is the outer one of two, and its iterations are panels. Each thread keeps its
    accumulators, one for each iteration of the loops between it and the reduction. Rows of a panel
    have an odd number of elements, or of vectors of 16 bytes, so that a column is in as many banks.
    A thread copies such a vector where the rows of an input and of a panel are made of them.

    What the inner reduction computes alike in all threads, such as the weights of entries and their
    columns, is computed once, an iteration by each thread:

        for t threads: s = reduce k0: reduce k1 to min(32, n - 32 * k0): s + exp(v[k]) * x[c[k], t]
        ->  for k0 serial: {
                for k1 threads: { q[k1] = exp(v[32 * k0 + k1]); d[k1] = c[32 * k0 + k1] }
                for t threads: s[t] = reduce k1: s[t] + q[k1] * x[d[k1], t] }

    With `part`, the threads run the inner reduction in parts of so many iterations: what they
    read for one part is in registers at a time.

    With `ahead`, each panel is copied asynchronously while the one before it is added, to the other
    one of two buffers, and threads wait for each other once for each panel:

        for b blocks: {
            copy 0 to p
            for k serial to (n - 1) / 2: {
                copy 2 * k + 1 to q; add p; copy 2 * k + 2 to p; add q }
            add p }      (or, of an even number n: copy n - 1 to q; add p; add q)

    Args:
        loop: the reduction.
        part: the iterations of the only reduction in it that run at a time; 0 for all.
        ahead: 1 to copy panels one iteration ahead, 0 to wait for each of them.

    Raises:
        ScheduleError: if the reduction is not in the threads of a block, alone but for what it
            begins with and what uses its results, if threads have nothing in common in it, or if
            there is no inner reduction of a multiple of so many iterations. With `ahead`, if there
            are not two panels or more, of a known number, or if they are not copied by vectors.
    """
    target = loop_named(STEP, kernel, loop)
    nest = _nest_around(kernel, target)
    _check_parts(kernel, target, part)
    written = written_in(kernel, nest[0])
    terms = terms_of(nest, target, written)
    alike = () if terms is None else terms.ops
    panels = [panel for panel in panels_of(nest, target, written) if panel.load not in alike]
    if not panels and terms is None:
        raise refusal(STEP, kernel, target, "reads nothing that several threads read")
    if ahead:
        _check_ahead(kernel, target, ahead, panels, terms)
    made = _StagePanels(kernel, nest, target, panels, terms, part, ahead=bool(ahead)).run()
    options = {"part": part, "ahead": ahead}
    return noted(made, "stage_panels", loop, **{k: v for k, v in options.items() if v})


def _nest_around(kernel: KernelOp, target: ForOp) -> list[ForOp]:
    """The loops of threads around a reduction, and those between it and them."""
    threads = [op for op in enclosing(target) if op.kind.data is LoopKind.THREADS]
    if not threads or not is_in_block(threads[-1]):
        raise refusal(STEP, kernel, target, "is not in the threads of a block")
    nest = perfect_nest(threads[-1])
    if nest[-1] is not target.parent_op():
        fact = f'is not in loops that are perfectly nested in "{threads[-1].loop_name.data}"'
        raise refusal(STEP, kernel, target, fact)
    for loop in nest:
        if extent_of(loop) is None:
            fact = f'the size of "{loop.loop_name.data}" around it is not known'
            raise refusal(STEP, kernel, target, fact)
    if not target.results or target.over_entries:
        fact, got = "is no reduction over a bound", target.kind.data
        raise refusal(STEP, kernel, target, fact, got=got)
    if any(isinstance(init.type, VectorType) for init in target.inits):
        raise refusal(STEP, kernel, target, "accumulates vectors")
    if any(is_made_in(value, nest[0]) for value in target.bounds):
        raise refusal(STEP, kernel, target, "its bound differs between threads")
    for op in _before(target):
        if not isinstance(op, LoadOp) and (op.regions or not is_side_effect_free(op)):
            raise refusal(STEP, kernel, target, f"is after {op.name}")
        if isinstance(op, LoadOp) and op.buffer in written_in(kernel, nest[0]):
            raise refusal(STEP, kernel, target, "is after a load of what the nest writes")
    return nest


def _check_parts(kernel: KernelOp, target: ForOp, part: int) -> None:
    inner = [op for op in target.body.block.ops if isinstance(op, ForOp)]
    size = extent_of(inner[0]) if len(inner) == 1 and inner[0].is_reduction else None
    if part and (size is None or part < 0 or size % part):
        fact, expected = "has no such parts", "a divisor of the size of the only reduction in it"
        raise refusal(STEP, kernel, target, fact, expected, part)


def _check_ahead(
    kernel: KernelOp, target: ForOp, ahead: int, panels: Sequence[Panel], terms: Terms | None
) -> None:
    check_number(STEP, kernel, target, "number of panels ahead", ahead, 1)
    if (extent_of(target) or 0) < 2:
        raise refusal(STEP, kernel, target, "has no known number of panels", "at least 2")
    if terms is not None or not all(lanes_of(panel) > 1 for panel in panels):
        fact = "what it reads is not copied by vectors of 16 bytes"
        raise refusal(STEP, kernel, target, fact)


def _before(target: ForOp) -> list[Operation]:
    """The operations before a reduction in its block."""
    block = target.parent
    assert block is not None
    ops = list(block.ops)
    return ops[: ops.index(target)]


class _StagePanels(Rebuild):
    def __init__(
        self,
        kernel: KernelOp,
        nest: Sequence[ForOp],
        target: ForOp,
        panels: Sequence[Panel],
        terms: Terms | None,
        part: int,
        *,
        ahead: bool,
    ) -> None:
        super().__init__(kernel, [nest[0]])
        self.part, self.ahead = part, ahead
        self.first = AffineExpr.constant(0)
        """The first iteration of the part of the inner reduction."""
        self.nest, self.target, self.panels, self.terms = nest, target, panels, terms
        self.staged: dict[SSAValue, SSAValue] = {}
        """The buffers of terms."""
        self.copies: dict[LoadOp, tuple[int, Panel]] = {}
        """The numbers of copies, and the panels, by the loads that read them."""
        self.stage: Sequence[SSAValue] = ()
        """The copies that are read."""
        inside = [loop.loop_name.data for loop in (nest[0], *loops_in(nest[0].body.block))]
        taken = loop_names(kernel)
        self.suffixes = [free_suffix(suffix, inside, taken) for suffix in ("b", "e")]
        self.repeated = [free_suffix(suffix, inside, taken) for suffix in ("q", "r", "s")]

    def visit_for(self, op: ForOp) -> None:
        if op.parent_op() is self.target and self.part:
            self.visit_part(op)
            return
        if op is not self.nest[0]:
            super().visit_for(op)
            return
        target = self.target
        shape = [extent_of(loop) or 0 for loop in self.nest]
        space = SpaceAttr(Space.THREADS)
        kinds = [MemRefType(init.type, shape, memory_space=space) for init in target.inits]
        sums = [self.emit(LocalOp(kind), target).result for kind in kinds]
        before, after = self.suffixes
        with self.threads(before) as place:
            self.store(self.inits(target), sums, place)
        name = target.loop_name.data
        if self.ahead:
            self.run_ahead(sums, extent_of(target) or 0)
        else:
            with self.loop(name, self.bound(target), LoopKind.SERIAL, target) as variable:
                stage = self.copy_panels(variable, [])
                if self.terms is not None:
                    self.compute_terms(self.terms)
                self.add(variable, stage, sums)
        with self.threads(after) as place:
            self.bind_all(target.results, self.loads(sums, place))
            following = target.next_op
            while following is not None:
                self.visit(following)
                following = following.next_op

    def run_ahead(self, sums: Sequence[SSAValue], count: int) -> None:
        """Emit iterations of the reduction, each of which copies the panels of the next one."""
        number, suffixes = AffineExpr.constant(0), iter(self.repeated)
        first = self.copy_panels(number, [])
        kinds, second = [memref_type(copy) for copy in first], list[SSAValue]()
        second += [self.emit(LocalOp(kind), self.target).result for kind in kinds]
        name, pairs = self.target.loop_name.data, (count - 1) // 2
        if pairs:
            bound = [AffineExpr.constant(pairs)]
            with self.loop(name, bound, LoopKind.SERIAL, self.target) as pair:
                number = pair * 2
                for stage, other, suffix in ((first, second, ""), (second, first, next(suffixes))):
                    self.copy_panels(number + 1, other, suffix or "n")
                    self.add(number, stage, sums, suffix)
                    number = number + 1
        number = AffineExpr.constant(2 * pairs)
        if count % 2 == 0:
            self.copy_panels(number + 1, second, "l")
            self.add(number, first, sums, next(suffixes))
            number, first = number + 1, second
        self.add(number, first, sums, next(suffixes))

    def add(
        self,
        number: AffineExpr,
        stage: Sequence[SSAValue],
        sums: Sequence[SSAValue],
        suffix: str = "",
    ) -> None:
        """Emit nests of threads that add an iteration of the reduction, of copied panels."""
        target, self.stage = self.target, stage
        self.bind(target.variable, number)
        with self.parts(suffix), self.threads(suffix) as place:
            self.store(self.step(target, number, self.loads(sums, place)), sums, place)

    @contextmanager
    def parts(self, suffix: str) -> Iterator[None]:
        """Open a loop over the parts of the inner reduction within the context, if it has any."""
        if not self.part:
            yield
            return
        inner = next(op for op in self.target.body.block.ops if isinstance(op, ForOp))
        (name,) = free_names(f"{inner.loop_name.data}p{suffix}", [""], loop_names(self.kernel))
        count = [AffineExpr.constant((extent_of(inner) or 0) // self.part)]
        with self.loop(name, count, LoopKind.SERIAL, inner) as number:
            self.first = number * self.part
            yield

    def visit_part(self, inner: ForOp) -> None:
        """Emit the iterations of a part of the inner reduction."""

        def step(new: ForOp) -> Sequence[SSAValue]:
            return self.step(inner, self.first + self.number(new.variable), new.carried)

        name, count = self.name(inner.loop_name.data), [AffineExpr.constant(self.part)]
        self.bind_all(inner.results, self.loop_like(inner, name, count, self.inits(inner), step))

    @contextmanager
    def threads(self, suffix: str) -> Iterator[Sequence[AffineExpr]]:
        """Open the nest again within the context, with what is before the reduction in it."""
        self.suffix = suffix
        with ExitStack() as stack:
            place = list[AffineExpr]()
            for loop in self.nest:
                name = self.name(loop.loop_name.data)
                opened = self.loop(name, self.bound(loop), loop.kind.data, loop)
                place.append(stack.enter_context(opened))
                self.bind(loop.variable, place[-1])
            for op in _before(self.target):
                self.visit(op)
            yield place
        self.suffix = ""

    def store(
        self, values: Sequence[SSAValue], sums: Sequence[SSAValue], place: Sequence[AffineExpr]
    ) -> None:
        """Keep the accumulators of a thread."""
        for value, buffer in zip(values, sums, strict=True):
            self.emit(StoreOp(value, buffer, *self.map(place)), self.target)

    def loads(self, sums: Sequence[SSAValue], place: Sequence[AffineExpr]) -> list[SSAValue]:
        """The accumulators of a thread."""
        loads = [LoadOp(s, *self.map(place), memref_type(s).element_type) for s in sums]
        return [self.emit(load, self.target).result for load in loads]

    def copy_panels(
        self, iteration: AffineExpr, stage: list[SSAValue], suffix: str = ""
    ) -> list[SSAValue]:
        """Emit the copies of the panels of an iteration, each once, to buffers; return these.

        They are made where there are none.
        """
        self.bind(self.target.variable, iteration)
        made: dict[object, int] = {}
        zero = AffineExpr.constant(0)
        for number, panel in enumerate(self.panels):
            load = panel.load
            inner = {index for steps in panel.steps for index in steps}
            dims = [zero if index in inner else self.expr(index) for index in load.indices]
            first = [normalized(expr, dims) for expr in load.map.data.results]
            key = load.buffer, tuple(first), tuple(panel.sizes)
            if key not in made:
                made[key] = len(made)
                if made[key] == len(stage):
                    stage.append(self.emit(LocalOp(copy_type(panel)), load).result)
                repeated = "p" * (number + 1 + (self.terms is not None))
                base = f"{self.target.loop_name.data}{repeated}{suffix}"
                self.copy_panel(panel, first, base, stage[made[key]])
            self.copies[load] = made[key], panel
        return stage

    def copy_panel(
        self, panel: Panel, first: Sequence[AffineExpr], base: str, copy: SSAValue
    ) -> None:
        """Emit the copy of a panel by the threads of the block, its last dimension fastest."""
        load, kept = panel.load, panel.kept
        shape = [panel.sizes[dim] for dim in kept]
        endings = [str(place) if place else "" for place in range(len(kept))]
        loops = [(size, LoopKind.THREADS) for size in shape]
        if (lanes := lanes_of(panel)) > 1:
            # A thread copies neighbours, which are one access.
            kind = LoopKind.ASYNC if self.ahead else LoopKind.UNROLL
            loops[-1:] = [(shape[-1] // lanes, LoopKind.THREADS), (lanes, kind)]
            endings.append("v")
        names = free_names(base, endings, loop_names(self.kernel))
        with ExitStack() as stack:
            place = [
                stack.enter_context(self.loop(name, [AffineExpr.constant(size)], kind, load))
                for name, (size, kind) in zip(names, loops, strict=True)
            ]
            if lanes > 1:
                place[-2:] = [place[-2] * lanes + place[-1]]
            moved = dict(zip(kept, place, strict=True))
            source = [e + moved[dim] if dim in moved else e for dim, e in enumerate(first)]
            read = LoadOp(self.value(load.buffer), *self.map(source), load.result.type)
            value = self.emit(read, load).result
            self.emit(StoreOp(value, copy, *self.map(place)), load)

    def compute_terms(self, terms: Terms) -> None:
        """Emit a nest of threads that compute what an iteration of the reduction has in common."""
        inner, space = terms.inner, SpaceAttr(Space.SHARED)
        kinds = [MemRefType(v.type, [terms.most], memory_space=space) for v in terms.values]
        buffers = [self.emit(LocalOp(kind), inner).result for kind in kinds]
        (name,) = free_names(self.target.loop_name.data, ["p"], loop_names(self.kernel))
        with self.loop(name, self.bound(inner), LoopKind.THREADS, inner) as place:
            self.bind(inner.variable, place)
            for op in (*terms.constants, *terms.ops):
                self.visit(op)
            for value, buffer in zip(terms.values, buffers, strict=True):
                self.emit(StoreOp(self.value(value), buffer, *self.map([place])), inner)
        self.staged = dict(zip(terms.values, buffers, strict=True))

    def visit_op(self, op: Operation) -> None:
        if self.terms is None or not op.results or op.results[0] not in self.staged:
            super().visit_op(op)
            return
        buffer, place = self.staged[op.results[0]], self.expr(self.terms.inner.variable)
        load = LoadOp(buffer, *self.map([place]), op.results[0].type)
        self.bind(op.results[0], self.emit(load, op).result)

    def visit_load(self, op: LoadOp) -> None:
        if op not in self.copies:
            super().visit_load(op)
            return
        number, panel = self.copies[op]
        place: list[AffineExpr] = []
        for dim in panel.kept:
            parts = [self.expr(v) * factor for v, factor in panel.steps[dim].items()]
            place.append(sum(parts[1:], parts[0]))
        self.load_like(op, place, buffer=self.stage[number])
