"""Turn loops into axes of blocks.

Before:

```mlir
loop.kernel @add(%x: memref<4x8xf32>, %b: memref<8xf32>) -> (%y: memref<4x8xf32>) {
  loop.for "i" %i to 4 {
    loop.for "j" %j to 8 {
      %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %j) : memref<4x8xf32>, f32
      %w = loop.load %b (d0) -> (d0)(%j) : memref<8xf32>, f32
      %s = arith.addf %v, %w : f32
      loop.store %s, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<4x8xf32>
    }
  }
}
```

Options: `loops=i,j`

After:

```mlir
loop.kernel @add(%x: memref<4x8xf32>, %b: memref<8xf32>) -> (%y: memref<4x8xf32>)
    attributes {loop.schedule = "vectorize(i, j)"} {
  %v = loop.load %x ()[s0, s1] -> (s0, s1)() : memref<4x8xf32>, vector<4x8xf32>
  %w = loop.load %b ()[s0, s1] -> (s1)() : memref<8xf32>, vector<1x8xf32>
  %w2 = vector.broadcast %w : vector<1x8xf32> to vector<4x8xf32>
  %s = arith.addf %v, %w2 : vector<4x8xf32>
  loop.store %s, %y ()[s0, s1] -> (s0, s1)() : vector<4x8xf32>, memref<4x8xf32>
}
```

Requires: nested loops of constant size; reductions are split before.
Leaves: blocks of full rank, with 1 for an axis that a value does not depend on.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import (
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IntegerAttr,
    VectorType,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.ir.affine import AffineExpr, AffineSymExpr

from ....core.algebra.affine import coefficient
from ....core.building.arithmetic import INDEX, constant
from ....core.ir.typed import memref_type
from ....core.pipelines.budgets import SUMS
from ....dialects.loop.attrs import Combine
from ....dialects.loop.axes import NONE, Axes, AxisSet
from ....dialects.loop.combiners import combining, neutral_value
from ....dialects.loop.loops import enclosing
from ....dialects.loop.nests import Consumed, loops_named
from ....dialects.loop.ops import (
    FoldOp,
    ForOp,
    KernelOp,
    LoadOp,
    StoreOp,
    element_type,
)
from ....dialects.loop.rebuild import Rebuild
from ....dialects.loop.trace import noted
from ....dialects.upstream.dialect import Arith
from ....dialects.upstream.ops import BroadcastOp
from ...primitive import primitive

STEP = "loop-vectorize"

_CLASSES: dict[str, type[Operation]] = {op.name: op for op in Arith.operations}
"""The classes that take blocks; xDSL's own of the same name may be for scalars only."""


@primitive(SUMS)
def vectorize(kernel: Consumed, loops: Sequence[str]) -> KernelOp:
    """Turn loops into axes of blocks, all those of a nest at once, the lanes last.

        for i1 to 12: for j1 to 32: s = reduce k: fma(x[i1, k], w[k, j1], acc); y[i1, j1] = s
        ->  s : 12x32 = reduce k: fma(x[s0, k] : 12x1, w[k, s1] : 1x32, acc); y[s0, s1] = s

    A loop bounded by a constant and something else gets that many lanes, of which only some are
    valid. The inner half of a split reduction becomes partial accumulators, which a `loop.fold`
    combines after the outer half.

    Loops that are not inside of one another, such as those of the nests that a split makes for
    what is left, become axes of different blocks. If another loop around them becomes an axis too,
    those of one length become one axis.

    Args:
        loops: the loops, in the order of the axes; the last one runs along the lanes.

    Raises:
        ScheduleError: naming the loop that cannot be an axis, and why.
    """
    if not loops:
        return kernel
    targets, nests = loops_named(STEP, kernel, loops), dict[ForOp, list[ForOp]]()
    for target in targets:
        outermost = [target, *(loop for loop in enclosing(target) if loop in targets)][-1]
        nests.setdefault(outermost, []).append(target)
    axes = [Axes(STEP, kernel, nest) for nest in nests.values()]
    return noted(_Vectorize(kernel, axes).run(), "vectorize", *loops)


class _Vectorize(Rebuild):
    def __init__(self, kernel: KernelOp, nests: Sequence[Axes]) -> None:
        super().__init__(kernel, [axes.root for axes in nests])
        self.nests: dict[Operation, Axes] = {axes.root: axes for axes in nests}
        self.axes = nests[0]
        self.limits: dict[int, SSAValue] = {}
        self.base = 0
        self._types: dict[tuple[Attribute, AxisSet], Attribute] = {}
        self._blocks: dict[tuple[Attribute, tuple[int, ...]], Attribute] = {}
        self._wide: dict[tuple[Block, SSAValue, AxisSet], SSAValue] = {}

    # Shapes.

    def block_type(self, element: Attribute, axes: AxisSet) -> Attribute:
        """The type of a value that has these axes."""
        if not axes:
            return element
        if (element, axes) not in self._types:
            lanes = enumerate(self.axes.lanes)
            shape = tuple(n if a in axes else 1 for a, n in lanes)
            if (element, shape) not in self._blocks:
                self._blocks[element, shape] = VectorType(element, shape)
            self._types[element, axes] = self._blocks[element, shape]
        return self._types[element, axes]

    def widened(self, new: SSAValue, axes: AxisSet) -> SSAValue:
        """A new value broadcast to these axes, outside of the reductions that it does not depend
        on.
        """
        kind = self.block_type(element_type(new.type), axes)
        if not axes or new.type == kind:
            return new
        owner = new.owner if isinstance(new.owner, Block) else new.owner.parent
        levels = [level for level, block in enumerate(self.open) if block is owner]
        home = self.open[max([*levels, self.base])]
        if (home, new, axes) not in self._wide:
            stretched = BroadcastOp.create(
                operands=[new], result_types=[kind], location=self.source.location
            )
            home.add_op(stretched)
            self._wide[home, new, axes] = stretched.results[0]
        return self._wide[home, new, axes]

    def known(self, expr: AffineExpr) -> SSAValue | None:
        """The value of an expression; of an axis the numbers of its lanes."""
        if not isinstance(expr, AffineSymExpr):
            return super().known(expr)
        own, lanes = expr.position, self.axes.lanes
        kind = VectorType(INDEX, [n if axis == own else 1 for axis, n in enumerate(lanes)])
        numbers = DenseIntOrFPElementsAttr.from_list(kind, range(lanes[own]))
        return self.emit(arith.ConstantOp(numbers)).result

    # Loops.

    def visit(self, op: Operation) -> None:
        if op in self.nests:
            self.axes, self.base = self.nests[op], len(self.open) - 1
            self.limits, self._types, self._wide = {}, {}, {}
        super().visit(op)

    def visit_for(self, op: ForOp) -> None:
        if op not in self.axes.targets:
            inner = self.axes.inner.get(op)
            if inner is None:
                super().visit_for(op)
            else:
                self.partial_sums(op, inner)
            return
        axis, bound = self.axes.axis(op), self.bound(op)
        self.limits.pop(axis, None)
        if len(bound) > 1:
            self.limits[axis] = self.smallest(bound, op)
        one = self.axes.lanes[axis] == 1
        self.bind(op.variable, AffineExpr.constant(0) if one else AffineExpr.symbol(axis))
        self.visit_body(op.body.block)

    def partial_sums(self, op: ForOp, inner: ForOp) -> None:
        """A reduction whose inner half becomes lanes of accumulators, combined after it."""
        axis, bound = self.axes.axis(inner), self.bound(op)

        def body(new: ForOp) -> Sequence[SSAValue]:
            self.bind(op.variable, self.number(new.variable))
            self.bind_all(op.carried, new.carried)
            return self.step(inner, AffineExpr.symbol(axis), new.carried)

        inits: list[SSAValue] = []
        for old, combine, init in zip(op.carried, op.combines, op.inits, strict=True):
            neutral = self.emit(_neutral(combine, init.type), op).result
            inits.append(self.widened(neutral, self.axes.of[old]))
        last = self.loop_like(op, self.name(op.loop_name.data), bound, inits, body)
        for number, partial in enumerate(last):
            self.bind(op.results[number], self.joined(op, number, partial, axis))

    def joined(self, op: ForOp, number: int, partial: SSAValue, axis: int) -> SSAValue:
        """The initial value of a carried value, combined with its partial accumulators."""
        axes, combine = self.axes.of[op.results[number]], op.combines[number]
        kind = op.results[number].type
        folded = self.emit(FoldOp(partial, axis, combine), op).result
        if not axes:
            zeros = DenseArrayBase.from_list(i64, [0] * len(self.axes.lanes))
            first = vector.ExtractOp.create(
                operands=[folded], result_types=[kind], properties={"static_position": zeros}
            )
            folded = self.emit(first, op).results[0]
        init = self.value(op.inits[number])
        if _is_neutral(combine, init):
            return folded
        joining = combining(combine, kind)
        init = self.widened(init, axes)
        joined = joining.create(operands=[init, folded], result_types=[folded.type], properties={})
        return self.emit(joined, op).results[0]

    def inits(self, op: ForOp) -> Sequence[SSAValue]:
        return self.all_widened(op, op.inits)

    def yielded(self, op: ForOp) -> Sequence[SSAValue]:
        return self.all_widened(op, op.yielded)

    def all_widened(self, op: ForOp, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
        """Values broadcast to the axes of the carried values of a loop."""
        pairs = zip(values, op.carried, strict=True)
        return [self.widened(self.value(v), self.axes.of.get(c, NONE)) for v, c in pairs]

    # Accesses.

    def visit_load(self, op: LoadOp) -> None:
        axes = self.axes.of.get(op.result, NONE)
        if not axes:
            super().visit_load(op)
            return
        exprs = self.composed(op.map.data, op.indices)
        limits = [
            (axis, self.limits[axis])
            for axis in sorted(axes & self.limits.keys())
            if not self._is_covered(op, exprs, axis)
        ]
        self.load_like(op, exprs, kind=self.block_type(op.result.type, axes), limits=limits)

    def _is_covered(self, op: LoadOp, exprs: Sequence[AffineExpr], axis: int) -> bool:
        """Whether the buffer has a dimension for the axis, with a place for each lane."""
        using = [dim for dim, e in enumerate(exprs) if coefficient(e, AffineSymExpr(axis)) != 0]
        if len(using) != 1 or exprs[using[0]] != AffineSymExpr(axis):
            return False
        return memref_type(op.buffer).get_shape()[using[0]] >= self.axes.lanes[axis]

    def visit_store(self, op: StoreOp) -> None:
        axes = NONE.union(*(self.axes.of.get(index, NONE) for index in op.indices))
        if not axes:
            super().visit_store(op)
            return
        exprs = self.composed(op.map.data, op.indices)
        limits = [(axis, self.limits[axis]) for axis in sorted(axes & self.limits.keys())]
        value = self.widened(self.value(op.value), axes)
        self.store_like(op, exprs, value=value, limits=limits)

    def visit_other(self, op: Operation) -> None:
        axes = NONE.union(*(self.axes.of.get(operand, NONE) for operand in op.operands))
        if not axes:
            super().visit_other(op)
            return
        new = _CLASSES.get(op.name, type(op)).create(
            operands=[self.widened(self.value(operand), axes) for operand in op.operands],
            result_types=[self.block_type(result.type, axes) for result in op.results],
            properties=dict(op.properties),
            attributes=dict(op.attributes),
        )
        self.emit(new, op)
        for before, after in zip(op.results, new.results, strict=True):
            self.bind(before, after)


def _neutral(combine: Combine, kind: Attribute) -> arith.ConstantOp:
    """The neutral value of an accumulator."""
    return constant(neutral_value(combine, kind), kind)


def _is_neutral(combine: Combine, value: SSAValue) -> bool:
    owner = value.owner
    if not isinstance(owner, arith.ConstantOp):
        return False
    constant = owner.value
    if not isinstance(constant, FloatAttr | IntegerAttr):
        return False
    return constant.value.data == neutral_value(combine, value.type)
