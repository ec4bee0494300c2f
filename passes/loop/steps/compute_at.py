"""Move the nest that fills a local buffer into the loop that reads it.

Before:

```mlir
loop.kernel @tail(%x: memref<9xf32>) -> (%y: memref<8xf32>) {
  %h = loop.local : memref<9xf32>
  loop.for "a" %a to 9 {
    %v = loop.load %x (d0) -> (d0)(%a) : memref<9xf32>, f32
    %e = math.exp %v : f32
    loop.store %e, %h (d0) -> (d0)(%a) : f32, memref<9xf32>
  }
  loop.for "i" %i to 8 {
    %p = loop.load %h (d0) -> (d0 + 1)(%i) : memref<9xf32>, f32
    loop.store %p, %y (d0) -> (d0)(%i) : f32, memref<8xf32>
} }
```

Options: `nest=a loop=i`

After:

```mlir
loop.kernel @tail(%x: memref<9xf32>) -> (%y: memref<8xf32>)
    attributes {loop.schedule = "compute_at(a, i)"} {
  loop.for "i" %i to 8 {
    %h = loop.local : memref<1xf32>
    loop.for "a" %a to 1 {
      %v = loop.load %x (d0, d1) -> (d0 + d1 + 1)(%i, %a) : memref<9xf32>, f32
      %e = math.exp %v : f32
      loop.store %e, %h (d0) -> (d0)(%a) : f32, memref<1xf32>
    }
    %p = loop.load %h () -> (0)() : memref<1xf32>, f32
    loop.store %p, %y (d0) -> (d0)(%i) : f32, memref<8xf32>
} }
```

Requires: a nest that computes each element of a `loop.local`, and a loop after it whose
    iterations read a part of it, of known size.
Leaves: a smaller `loop.local` in that loop, and the nest that fills it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr

from ....core.algebra.affine import expression, minus, normalized, polynomial
from ....core.algebra.expressions import ZERO, Quotient, variables
from ....core.algebra.polynomials import Polynomial
from ....core.ir.typed import memref_type, resized
from ....core.pipelines.budgets import EXACT
from ....dialects.loop.loops import enclosing, extent_of, is_made_in, most_iterations
from ....dialects.loop.nests import Consumed, perfect_nest, plain_loop, refusal
from ....dialects.loop.ops import ForOp, KernelOp, LoadOp, LocalOp, StoreOp
from ....dialects.loop.proofs.in_place import read_in, written_in
from ....dialects.loop.proofs.ranges import RangedRebuild
from ....dialects.loop.trace import noted
from ...primitive import primitive

STEP = "loop-compute-at"


@primitive(EXACT)
def compute_at(kernel: Consumed, nest: str, loop: str) -> KernelOp:
    """Move the nest that fills a local buffer into the loop that reads it.

        local h : n; for a to n: h[a] = f(a)
        for i to n: y[i] = h[i] + 1
        ->  for i to n: local h : 1; for a to 1: h[a] = f(i + a)
                        y[i] = h[0] + 1

    Each iteration computes only the part that it reads, into a buffer of only that size. The parts
    of several iterations may overlap, as those of windows do; each iteration then recomputes the
    overlap.

    Args:
        nest: the outermost loop of the nest that fills the buffer.
        loop: the loop that reads it.

    Raises:
        ScheduleError: if the nest does more than compute each element of one local buffer, if what
            it reads is written to afterwards, if the loop does not read a part of known size, or if
            something else reads the buffer.
    """
    producer, target = (plain_loop(STEP, kernel, name) for name in (nest, loop))
    store, axes = _filled(kernel, producer)
    loads = _reads(kernel, producer, target, store.buffer)
    part = _part_of(kernel, target, loads)
    new = _ComputeAt(kernel, producer, target, store, axes, part).run()
    return noted(new, "compute_at", nest, loop)


def _filled(kernel: KernelOp, nest: ForOp) -> tuple[StoreOp, list[ForOp]]:
    """The only store of a nest, and the loop along each dimension of its local buffer.

    Raises:
        ScheduleError: if there is not exactly one store, of each element of a local buffer.
    """
    stores = [op for op in nest.walk() if isinstance(op, StoreOp)]
    if len(stores) != 1 or not isinstance(stores[0].buffer.owner, LocalOp):
        raise refusal(STEP, kernel, nest, "does not fill one local buffer")
    (store,) = stores
    if store.accumulates:
        raise refusal(STEP, kernel, nest, "accumulates into what the buffer has")
    loops = {loop.variable: loop for loop in perfect_nest(nest)}
    axes: list[ForOp] = []
    for expr in store.map.data.results:
        index = store.indices[expr.position] if isinstance(expr, AffineDimExpr) else None
        if index is None or index not in loops:
            raise refusal(STEP, kernel, nest, "does not store at the variables of its loops")
        axes.append(loops.pop(index))
    shape = memref_type(store.buffer).get_shape()
    if loops or [extent_of(axis) for axis in axes] != list(shape):
        raise refusal(STEP, kernel, nest, "does not store each element once", shape)
    if store.buffer.owner.parent is not nest.parent:
        raise refusal(STEP, kernel, nest, "its buffer lives longer than one run of it")
    return store, axes


def _reads(kernel: KernelOp, nest: ForOp, target: ForOp, buffer: SSAValue) -> list[LoadOp]:
    """The reads of a buffer, all in a loop that comes after the nest that fills it.

    Raises:
        ScheduleError: if there are others, or what the nest reads is written to after it.
    """
    loads: list[LoadOp] = []
    for use in buffer.uses:
        op = use.operation
        if isinstance(op, StoreOp) and nest.is_ancestor(op):
            continue
        if nest.is_ancestor(op):
            raise refusal(STEP, kernel, nest, f"{op.name} uses the buffer that it fills")
        if not isinstance(op, LoadOp) or not target.is_ancestor(op):
            raise refusal(STEP, kernel, target, f"another {op.name} uses the buffer", "loads in it")
        loads.append(op)
    if not loads:
        raise refusal(STEP, kernel, target, f'does not read what "{nest.loop_name.data}" computes')
    read = read_in(nest)
    following, comes_after = nest.next_op, False
    while following is not None:
        comes_after |= following.is_ancestor(target)
        if read & written_in(kernel, following):
            fact = f'what "{nest.loop_name.data}" reads is written to after it'
            raise refusal(STEP, kernel, target, fact)
        following = following.next_op
    if not comes_after:
        raise refusal(STEP, kernel, target, f'does not come after "{nest.loop_name.data}"')
    return loads


@dataclass(frozen=True)
class _BufferPart:
    """The part of a buffer that one iteration reads: an offset and a size along each axis."""

    loads: Sequence[LoadOp]
    sizes: tuple[int, ...]
    starts: tuple[AffineExpr, ...]
    """Over the indices of `operands`."""
    operands: tuple[SSAValue, ...]


def _part_of(kernel: KernelOp, target: ForOp, loads: Sequence[LoadOp]) -> _BufferPart:
    """The smallest part of a buffer that holds what one iteration of a loop reads.

    Raises:
        ScheduleError: if an index is not a sum of loop variables, or the loads read several parts.
    """
    shape = memref_type(loads[0].buffer).get_shape()
    operands = tuple(dict.fromkeys(index for load in loads for index in load.indices))
    sizes: list[int] = []
    starts: list[AffineExpr] = []
    for axis, size in enumerate(shape):
        spans = [_span(kernel, target, load, axis, operands) for load in loads]
        if len({start for start, _, _ in spans}) != 1:
            raise refusal(STEP, kernel, target, "reads several parts of the buffer")
        least = min(least for _, least, _ in spans)
        extent = max(most for _, _, most in spans) - least + 1
        whole = extent >= size
        sizes.append(min(extent, size))
        starts.append(AffineExpr.constant(0) if whole else spans[0][0] + least)
    return _BufferPart(loads, tuple(sizes), tuple(starts), operands)


def _span(
    kernel: KernelOp, target: ForOp, load: LoadOp, axis: int, operands: Sequence[SSAValue]
) -> tuple[AffineExpr, int, int]:
    """Where a load reads along an axis: a start fixed by the iteration, and offsets from it."""
    inside = {
        loop.variable: loop
        for loop in enclosing(load)
        if not loop.over_entries and target.is_ancestor(loop) and loop is not target
    }
    if load.map.data.num_symbols:
        raise refusal(STEP, kernel, target, "reads blocks", hint="compute_at before vectorize")
    dims = [AffineExpr.dimension(operands.index(index)) for index in load.indices]
    place = polynomial(load.map.data.results[axis], dims)
    start = ZERO
    least = most = place.constant
    for (term,), factor in (place - place.constant).terms:
        own = Polynomial.atom(term)
        used = [operands[v.position] for v in variables(own)]
        if not any(is_made_in(value, target) for value in used):
            start = start + own * factor
            continue
        bounding = extent_of if factor < 0 else most_iterations
        size = bounding(inside[used[0]]) if used[0] in inside else None
        if isinstance(term, Quotient) or size is None:
            raise refusal(STEP, kernel, target, "reads at an index that its body computes")
        ends = sorted((0, factor * max(0, size - 1)))
        least, most = least + ends[0], most + ends[1]
    return expression(start), least, most


class _ComputeAt(RangedRebuild):
    def __init__(
        self,
        kernel: KernelOp,
        producer: ForOp,
        target: ForOp,
        store: StoreOp,
        axes: Sequence[ForOp],
        part: _BufferPart,
    ) -> None:
        super().__init__(kernel)
        self.producer, self.target, self.part = producer, target, part
        self.store, self.axes = store, axes
        self.shape = memref_type(store.buffer).get_shape()
        self.buffer: SSAValue | None = None

    def visit(self, op: Operation) -> None:
        if op is not self.producer and op is not self.store.buffer.owner:
            super().visit(op)

    def visit_body(self, block: Block) -> None:
        if block is self.target.body.block:
            # The buffer of an iteration, and the nest that fills it.
            kind = resized(memref_type(self.store.buffer), self.part.sizes)
            self.buffer = self.emit(LocalOp(kind), self.store).result
            self.fill(perfect_nest(self.producer))
        super().visit_body(block)

    def starts(self) -> list[AffineExpr]:
        """The start of the part, over new indices."""
        dims = [
            AffineExpr.constant(0) if is_made_in(operand, self.target) else self.expr(operand)
            for operand in self.part.operands
        ]
        return [start.replace_dims_and_symbols(dims, []) for start in self.part.starts]

    def fill(self, loops: Sequence[ForOp]) -> None:
        """Open the loops of the producer, each over the part only, and compute an element."""
        if not loops:
            self.visit_body(perfect_nest(self.producer)[-1].body.block)
            return
        axis = self.axes.index(loops[0])
        size, start = self.part.sizes[axis], self.starts()[axis]
        bound = [AffineExpr.constant(size)]
        end = minus(AffineExpr.constant(self.shape[axis]), start)
        if not self.is_below_0(size - 1 - polynomial(end)):
            bound.append(end)
        name = self.name(loops[0].loop_name.data)
        with self.loop(name, bound, loops[0].kind.data, loops[0]) as place:
            self.bind(loops[0].variable, normalized(start + place))
            self.fill(loops[1:])

    def visit_store(self, op: StoreOp) -> None:
        if op is self.store:
            self.store_like(op, self.place(op), buffer=self.buffer)
        else:
            super().visit_store(op)

    def visit_load(self, op: LoadOp) -> None:
        if op in self.part.loads:
            self.load_like(op, self.place(op), buffer=self.buffer)
        else:
            super().visit_load(op)

    def place(self, op: LoadOp | StoreOp) -> list[AffineExpr]:
        """The same place in the buffer of the part."""
        exprs = self.composed(op.map.data, op.indices)
        return [minus(expr, start) for expr, start in zip(exprs, self.starts(), strict=True)]
