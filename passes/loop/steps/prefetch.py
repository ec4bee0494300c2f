"""Prefetch the rows of an argument before a reduction or another loop reads them.

Before:

```mlir
loop.kernel @sum(%w: memref<9x8xf32>) -> (%y: memref<8xf32>) {
  %z = arith.constant dense<0.0> : vector<8xf32>
  %s = loop.for "k" %k to 9 reduction carry(%acc = %z : vector<8xf32> add) {
    %v = loop.load %w (d0)[s0] -> (d0, s0)(%k) : memref<9x8xf32>, vector<8xf32>
    %t = arith.addf %acc, %v : vector<8xf32>
    loop.yield %t : vector<8xf32>
  }
  loop.store %s, %y ()[s0] -> (s0)() : vector<8xf32>, memref<8xf32>
}
```

Options: `argument=0 loop=k ahead=64`

After:

```mlir
loop.kernel @sum(%w: memref<9x8xf32>) -> (%y: memref<8xf32>)
    attributes {loop.schedule = "prefetch(0, k, 64)"} {
  %z = arith.constant dense<0.0> : vector<8xf32>
  %s = loop.for "k" %k to 9 reduction carry(%acc = %z : vector<8xf32> add) {
    loop.prefetch %w (d0) -> (2, d0 * 8)(%k) : memref<9x8xf32>
    %v = loop.load %w (d0)[s0] -> (d0, s0)(%k) : memref<9x8xf32>, vector<8xf32>
    %t = arith.addf %acc, %v : vector<8xf32>
    loop.yield %t : vector<8xf32>
  }
  loop.store %s, %y ()[s0] -> (s0)() : vector<8xf32>, memref<8xf32>
}
```

Requires: a reduction that reads an argument row by row, once in each iteration, or a loop
    that reads a part of one row.
Leaves: `loop.prefetch` in it; such a nest is vectorised already, or never.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import FixedBitwidthType, MemRefType
from xdsl.ir import Block, Operation
from xdsl.ir.affine import AffineDimExpr, AffineExpr, AffineSymExpr

from ....core.algebra.affine import normalized, value_of
from ....core.ir.typed import memref_type
from ....core.ir.walks import operations_in
from ....core.pipelines.budgets import EXACT
from ....dialects.loop.loops import enclosing, extent_of
from ....dialects.loop.nests import Consumed, check_number, loop_named, refusal
from ....dialects.loop.ops import (
    ForOp,
    KernelOp,
    LoadOp,
    PrefetchOp,
    block_shape,
)
from ....dialects.loop.substitution import Substitution
from ....dialects.loop.trace import noted
from ...primitive import primitive

STEP = "loop-prefetch"
LINE_BITS = 512
"""The size of a cache line, which one hint fetches."""

MOST_HINTS = 64
"""The most hints in an iteration of a loop that is not a reduction."""

Place = Sequence[AffineExpr]
"""The index of an element."""


@primitive(EXACT)
def prefetch(kernel: Consumed, argument: int, loop: str, ahead: int = 0) -> KernelOp:
    """Prefetch the rows of an argument that a reduction reads.

        for j: for i to 2: reduce k to n: w[j, k, :]
        ->  for j: for i to 2: reduce k to n: prefetch w[j, n/2 + ahead] + (n * i + k) * half a row
                                              w[j, k, :]

    Loops around the reduction may read the same rows again, and so may nests beside those. Their
    iterations divide the hints evenly, so that memory is prefetched at a constant rate: the rest of
    w[j] while the first of them reads it, then the beginning of w[j + 1]. If the number of
    repetitions is unknown, each one prefetches everything.

    A reduction along some rows of a block, w[8 * i + s, k], prefetches the rows after them. A loop
    that is not a reduction prefetches memory `ahead` of the blocks that an iteration reads, all of
    their rows:

        for j: y[16 * j + s] = exp x[16 * j + s]
        ->  for j: prefetch x[16 * j] + ahead
                   y[16 * j + s] = exp x[16 * j + s]

    Args:
        argument: the number of the argument.
        loop: the reduction or the loop that reads it.
        ahead: bytes by which hints are earlier than evenly spread ones, or than the reads of a
            loop.

    Raises:
        ScheduleError: if a reduction does not read rows of the argument one after the other, if
            another loop does not read it, or needs more than `MOST_HINTS`, or if a size is unknown.
    """
    hints, target = Hints(kernel), loop_named(STEP, kernel, loop)
    if target.over_entries:
        raise refusal(STEP, kernel, target, "is over the entries of a row")
    check_number(STEP, kernel, target, "number of bytes ahead", ahead, least=0)
    loads = _reads(kernel, target, argument)
    if target.is_plain:
        _check_blocks(kernel, target, loads)
        places = hints.of_blocks(loads, ahead)
    else:
        places = hints.in_stream(target, _stream(kernel, target, loads, ahead))
    hints.add(target, loads[0], places)
    return noted(kernel, "prefetch", argument, loop, ahead)


def _reads(kernel: KernelOp, loop: ForOp, argument: int) -> list[LoadOp]:
    """The loads in the body of a loop that read an argument."""
    if not 0 <= argument < len(kernel.inputs):
        expected = f"0 <= number < {len(kernel.inputs)}"
        raise refusal(STEP, kernel, loop, "no such input", expected, argument)
    buffer = kernel.inputs[argument]
    loads = [op for op in loop.body.block.ops if isinstance(op, LoadOp) and op.buffer is buffer]
    if not loads:
        raise refusal(STEP, kernel, loop, f"does not read argument {argument}")
    return loads


def _is_beside(load: LoadOp, other: LoadOp) -> bool:
    """Whether two loads differ in constants only: `pack` interleaves parts that way."""
    pairs = zip(load.map.data.results, other.map.data.results, strict=True)
    same = all(a == b or None not in (value_of(a), value_of(b)) for a, b in pairs)
    return same and list(load.indices) == list(other.indices)


def _check_blocks(kernel: KernelOp, loop: ForOp, loads: Sequence[LoadOp]) -> None:
    """Check that blocks of known places and sizes are read.

    Raises:
        ScheduleError: if one is not.
    """
    if not bits_of(memref_type(loads[0].buffer)) or not loads[0].map.data.results:
        raise refusal(STEP, kernel, loop, "does not read elements of one size in a row")
    inside = loop.body.block
    owners = (index.owner for load in loads for index in load.indices)
    if any(isinstance(owner, Operation) and owner.parent is inside for owner in owners):
        raise refusal(STEP, kernel, loop, "reads at an index that it computes")
    if (hints := sum(map(lines_of, loads))) > MOST_HINTS:
        raise refusal(STEP, kernel, loop, "too many hints", f"at most {MOST_HINTS}", hints)


def lines_of(load: LoadOp) -> int:
    """The hints for the block that a load reads: one for each line of each of its rows."""
    rows, width = _rows(load)
    return math.prod(rows) * -(-width // _line(memref_type(load.buffer)))


def _rows(load: LoadOp) -> tuple[list[int], int]:
    """The sizes of the axes of a block, 1 for those along its rows, and the length of a row."""
    shape, lanes = block_shape(load.result.type), _axes(load.map.data.results[-1:])
    rows = [1 if axis in lanes else size for axis, size in enumerate(shape)]
    return rows, math.prod(shape[axis] for axis in lanes)


@dataclass(frozen=True)
class _Stream:
    """The places of hints: a part of a row for each iteration, `rows` ahead."""

    load: LoadOp
    dimension: int
    """That of the rows."""
    start: int
    """The row of the first hint."""
    part: int
    """The elements that an iteration prefetches."""
    line: int
    repeats: tuple[ForOp, ...]
    """The loops that read the same rows again, from outside to inside."""
    before: int
    """How often nests in front of those have read the same rows."""
    size: int
    """The iterations of the reduction."""


def _stream(kernel: KernelOp, loop: ForOp, loads: Sequence[LoadOp], ahead: int) -> _Stream:
    """Where a reduction reads rows, with one load or with several of parts of a row."""
    if not all(_is_beside(load, loads[0]) for load in loads):
        raise refusal(STEP, kernel, loop, "reads rows in several places", 1, len(loads))
    load = min(loads, key=lambda load: [value_of(expr) or 0 for expr in load.map.data.results])
    kind, size = memref_type(load.buffer), extent_of(loop)
    results, shape = load.map.data.results, kind.get_shape()
    position = list(load.indices).index(loop.variable) if loop.variable in load.indices else -1
    moving = [n for n, e in enumerate(results) if AffineExpr.dimension(position) in e.dfs()]
    if len(moving) != 1 or not isinstance(results[moving[0]], AffineDimExpr):
        raise refusal(STEP, kernel, loop, "does not read one row after the other")
    dimension = moving[0]
    inner = [e for result in results[dimension + 1 :] for e in result.dfs()]
    is_part = any(isinstance(e, AffineDimExpr) for e in inner)
    if is_part or size is None or size != shape[dimension]:
        raise refusal(STEP, kernel, loop, "does not read all of the rows, or parts of them")
    bits, line = bits_of(kind), _line(kind)
    if not bits:
        raise refusal(STEP, kernel, loop, "does not read elements of one size")
    if (height := _height(load, dimension)) > 1:
        start = height * size + ahead * 8 // bits
        return _Stream(load, dimension, start, height, line, (), 0, size)
    # The loops around the reduction whose variables the load does not use, up to the first that it
    # does.
    found: list[ForOp] = []
    for outer in enclosing(loop):
        if not outer.is_plain or outer.variable in load.indices:
            break
        found.insert(0, outer)
    repeats = [repeat for repeat in found if extent_of(repeat) is not None]
    # How often rows are read by the nests in front of that of the reduction, and by all of them.
    nest = repeats[0] if repeats else loop
    block, own = nest.parent, math.prod(cast(int, extent_of(repeat)) for repeat in repeats)
    assert block is not None
    others = {op: _times(op, loop, load) for op in block.ops if isinstance(op, ForOp)}
    others[nest] = own
    earlier = list(others)[: list(others).index(nest)]
    before, times = sum(others[op] for op in earlier), sum(others.values())
    row = math.prod(shape[dimension + 1 :])
    if not times or row < times:
        fact = "is repeated too often to share a row"
        raise refusal(STEP, kernel, loop, fact, f"at most {row}", times)
    start = size - size // times + -(-8 * ahead // (row * bits))
    return _Stream(load, dimension, start, -(-row // times), line, tuple(repeats), before, size)


def bits_of(kind: MemRefType) -> int:
    """The size of an element, 0 where it is not known."""
    return kind.element_type.bitwidth if isinstance(kind.element_type, FixedBitwidthType) else 0


def _line(kind: MemRefType) -> int:
    """The elements of a line."""
    return max(1, LINE_BITS // max(1, bits_of(kind)))


def _height(load: LoadOp, dimension: int) -> int:
    """How many rows a block has whose columns are the last dimension, one after the other."""
    results, lanes = load.map.data.results, block_shape(load.result.type)
    if dimension != len(results) - 1 or dimension == 0:
        return 1
    return math.prod(lanes[axis] for axis in _axes([results[dimension - 1]]))


def _axes(results: Iterable[AffineExpr]) -> list[int]:
    """The axes of a block that a part of an access map depends on."""
    return [e.position for result in results for e in result.dfs() if isinstance(e, AffineSymExpr)]


def _times(nest: ForOp, loop: ForOp, load: LoadOp) -> int:
    """How often a nest reads the rows that a load in a reduction reads, 0 where it is not known."""
    rows = [index for index in load.indices if index is not loop.variable]
    for other in operations_in(nest):
        if not isinstance(other, LoadOp) or other.buffer is not load.buffer:
            continue
        inner, *around = itertools.takewhile(
            lambda op: op is not nest.parent_op(), enclosing(other)
        )
        sizes = [extent_of(op) for op in around]
        same = rows == [index for index in other.indices if index is not inner.variable]
        if same and extent_of(inner) == extent_of(loop) and None not in sizes:
            return math.prod(cast(list[int], sizes))
    return 0


class Hints(Substitution):
    """Inserts hints at the beginning of loops of a kernel, which stays the same operation."""

    def add(self, loop: ForOp, load: LoadOp, places: Iterable[Place]) -> None:
        """Prefetch some places of a load's buffer in each iteration of a loop."""
        self.source = load
        for around in reversed(list(enclosing(loop))):
            self.number(around.body.block.args[0])  # sums are in the order of loops
        with self.inside(Block()):
            for place in places:
                map, operands = self.map([normalized(expr) for expr in place])
                self.emit(PrefetchOp(self.value(load.buffer), map, operands), load)
            made = list(self.block.ops)
        for op in made:
            op.detach()
        block = loop.body.block
        assert block.first_op is not None
        block.insert_ops_before(made, block.first_op)

    def in_stream(self, loop: ForOp, stream: _Stream) -> Iterator[Place]:
        """A place for each line of an iteration's part."""
        variable = self.number(loop.variable)
        self.bind(loop.variable, AffineExpr.constant(0))
        passed: AffineExpr = AffineExpr.constant(0)
        for repeat in stream.repeats:
            passed = passed * cast(int, extent_of(repeat)) + self.expr(repeat.variable)
        iteration = (passed + stream.before) * stream.size + variable
        place = self._first(stream.load)
        place[stream.dimension] = AffineExpr.constant(stream.start)
        *outer, last = place
        for offset in range(0, stream.part, stream.line):
            yield [*outer, last + iteration * stream.part + offset]

    def of_blocks(self, loads: Iterable[LoadOp], ahead: int) -> list[Place]:
        """A place for each line of the rows of blocks, `ahead` bytes after it."""
        found = dict[tuple[AffineExpr, ...], None]()
        for load in loads:
            kind, (rows, width) = memref_type(load.buffer), _rows(load)
            for row in itertools.product(*map(range, rows)):
                *outer, last = self._first(load, row)
                for offset in range(0, width, _line(kind)):
                    place = [*outer, last + ahead * 8 // bits_of(kind) + offset]
                    found[tuple(normalized(expr) for expr in place)] = None
        return [list(place) for place in found]

    def _first(self, load: LoadOp, row: Sequence[int] = ()) -> list[AffineExpr]:
        """The place of the first element of a row that a load reads, by default the first one."""
        map = load.map.data
        axes = [AffineExpr.constant(n) for n in row or [0] * map.num_symbols]
        return self.composed(map, load.indices, axes)
