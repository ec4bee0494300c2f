"""Change the order of perfectly nested loops.

Before:

```mlir
loop.kernel @copy(%x: memref<4x8xf32>) -> (%y: memref<4x8xf32>) {
  loop.for "i" %i to 4 {
    loop.for "j" %j to 8 {
      %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %j) : memref<4x8xf32>, f32
      loop.store %v, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<4x8xf32>
    }
  }
}
```

Options: `loops=j,i`

After:

```mlir
loop.kernel @copy(%x: memref<4x8xf32>) -> (%y: memref<4x8xf32>)
    attributes {loop.schedule = "reorder(j, i)"} {
  loop.for "j" %j to 8 {
    loop.for "i" %i to 4 {
      %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %j) : memref<4x8xf32>, f32
      loop.store %v, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<4x8xf32>
    }
  }
}
```

Requires: perfectly nested loops of these names. A parallel loop that leaves a serial one has
    iterations that access different places.
Leaves: the same statements in the innermost loop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from xdsl.dialects import affine
from xdsl.ir import Operation, SSAValue

from ....core.algebra.affine import dims_in
from ....core.building.creation import copied
from ....core.ir.walks import operations_in
from ....core.pipelines.budgets import SUMS
from ....dialects.loop.loops import enclosing
from ....dialects.loop.nests import (
    Consumed,
    loops_named,
    perfect_nest,
    plain_loop,
    refusal,
)
from ....dialects.loop.ops import ForOp, KernelOp, LoadOp, PrefetchOp, StoreOp
from ....dialects.loop.rebuild import Rebuild
from ....dialects.loop.trace import noted
from ...primitive import primitive

STEP = "loop-reorder"


@primitive(SUMS)
def reorder(kernel: Consumed, loops: Sequence[str]) -> KernelOp:
    """Nest perfectly nested loops in this order.

        for i: for j: body  ->  for j: for i: body

    Serial loops keep their order among each other. A parallel loop may leave a serial one if each
    of its iterations accesses places of its own, whatever the serial loop's: then every place is
    accessed in the same order as before.

        for k serial: for j: y[f(k, j), j] += x[k, j]
        ->  for j: for k serial: y[f(k, j), j] += x[k, j]

    Args:
        loops: the loops, outermost first.

    Raises:
        ScheduleError: if the loops are not perfectly nested, if the order of serial loops would
            change, if a loop leaves a serial one and its iterations may depend on one another, or
            if a bound would depend on an inner loop.
    """
    wanted: list[ForOp] = []
    for name in loops:
        loop = plain_loop(STEP, kernel, name)
        if loop in wanted:
            raise refusal(STEP, kernel, loop, "is named twice")
        wanted.append(loop)
    if not wanted:
        return kernel
    nest = _nest_of(kernel, wanted)
    for position, loop in enumerate(wanted):
        later = {other.variable for other in wanted[position + 1 :]}
        if later & set(loop.bounds):
            inner = next(o for o in wanted[position + 1 :] if o.variable in loop.bounds)
            fact = f'its bound depends on loop "{inner.loop_name.data}"'
            raise refusal(STEP, kernel, loop, fact)
    if leaving := _leaving(kernel, nest, wanted):
        _check_independent(kernel, loops, leaving)
    return noted(_reordered(kernel, nest, wanted), "reorder", *loops)


def _leaving(kernel: KernelOp, nest: Sequence[ForOp], wanted: Sequence[ForOp]) -> dict[str, ForOp]:
    """The loops that leave a serial one, by their names, and that one.

    Raises:
        ScheduleError: if one of them is serial as well.
    """
    found: dict[str, ForOp] = {}
    for position, outer in enumerate(nest):
        if not outer.kind.data.keeps_order:
            continue
        for inner in nest[position + 1 :]:
            if wanted.index(inner) > wanted.index(outer):
                continue
            if inner.kind.data.keeps_order:
                raise refusal(STEP, kernel, outer, "its iterations keep their order")
            found[inner.loop_name.data] = outer
    return found


def _check_independent(
    kernel: KernelOp, loops: Sequence[str], leaving: Mapping[str, ForOp]
) -> None:
    """Check that iterations of loops are independent of one another outside of serial loops."""
    copy = copied(kernel)
    wanted = loops_named(STEP, copy, loops)
    new = _reordered(copy, _nest_of(copy, wanted), wanted)
    for found in new.dependences(leaving):
        name = found.loop.loop_name.data
        raise refusal(STEP, kernel, leaving[name], f'"{name}" may not leave it: {found}')


def _nest_of(kernel: KernelOp, wanted: Sequence[ForOp]) -> list[ForOp]:
    """The loops in the order in which they are nested now.

    Raises:
        ScheduleError: if they are not perfectly nested.
    """
    for candidate in wanted:
        nest = perfect_nest(candidate)[: len(wanted)]
        if set(nest) == set(wanted):
            return nest
    outermost = min(wanted, key=lambda loop: len([*enclosing(loop)]))
    inside = perfect_nest(outermost)
    missing = next(loop for loop in wanted if loop not in inside[: len(wanted)])
    raise refusal(STEP, kernel, missing, f'is not perfectly nested in "{outermost.loop_name.data}"')


def _reordered(kernel: KernelOp, nest: Sequence[ForOp], wanted: Sequence[ForOp]) -> KernelOp:
    """Nest the loops anew around what is in the innermost one."""
    place, after = nest[0].parent, nest[0].next_op
    assert place is not None
    for loop in nest:
        loop.detach()
    statements = list(nest[-1].body.block.ops)
    for statement in statements:
        statement.detach()
    if after is None:
        place.add_op(wanted[0])
    else:
        place.insert_op_before(wanted[0], after)
    for outer, inner in pairwise(wanted):
        outer.body.block.add_op(inner)
    wanted[-1].body.block.add_ops(statements)
    variables = {loop.variable for loop in nest}
    mixing = [op for op in operations_in(wanted[0]) if _mixes(op, variables)]
    return _Ordered(kernel, mixing).run()


class _Ordered(Rebuild):
    """Writes each expression in the order of the loops."""

    def follows(self, indices: Sequence[SSAValue]) -> bool:
        return True


def _mixes(op: Operation, variables: set[SSAValue]) -> bool:
    """Whether an expression has several of these indices, whose order is that of the loops."""
    if isinstance(op, ForOp):
        map, indices = op.bound.data, op.bounds
    elif isinstance(op, affine.ApplyOp | affine.MinOp):
        map, indices = op.map.data, op.operands
    elif isinstance(op, LoadOp | StoreOp | PrefetchOp):
        map, indices = op.map.data, op.indices
    else:
        return False
    return any(
        len(variables.intersection(indices[dim] for dim in dims_in(expr))) > 1
        for expr in map.results
    )
