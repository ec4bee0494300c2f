"""Lay a constant argument out in the order in which loops read it.

Before:

```mlir
loop.kernel @transpose(%w: memref<8x4xf32> {loop.constant}) -> (%y: memref<4x8xf32>) {
  loop.for "i" %i to 4 {
    loop.for "j" %j to 8 {
      %v = loop.load %w (d0, d1) -> (d1, d0)(%i, %j) : memref<8x4xf32>, f32
      loop.store %v, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<4x8xf32>
    }
  }
}
```

Options: `argument=0 loops=i,j`

After:

```mlir
loop.kernel @transpose(%w: memref<4x8xf32>
    {loop.constant, loop.packing = affine_map<(d0, d1) -> (d1, d0)>})
    -> (%y: memref<4x8xf32>) attributes {loop.schedule = "pack(0, i, j)"} {
  loop.for "i" %i to 4 {
    loop.for "j" %j to 8 {
      %v = loop.load %w (d0, d1) -> (d0, d1)(%i, %j) : memref<4x8xf32>, f32
      loop.store %v, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<4x8xf32>
    }
  }
}
```

Requires: an argument with `loop.constant` that is read by one map of exactly these loops, or by
    several that differ by multiples of a step.
Leaves: the argument with its packed type, and `loop.packing`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    MemRefType,
)
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.rewriter import Rewriter

from ....core.algebra.affine import normalized, value_of
from ....core.pipelines.budgets import EXACT
from ....dialects.loop.arguments import CONSTANT, PACKING
from ....dialects.loop.loops import bound_of, most_iterations
from ....dialects.loop.nests import Consumed, input_numbered, loop_named, refusal
from ....dialects.loop.ops import KernelOp, LoadOp
from ....dialects.loop.proofs.bounds import constant_index
from ....dialects.loop.rebuild import Rebuild
from ....dialects.loop.trace import noted
from ...primitive import primitive

STEP = "loop-pack"


@primitive(EXACT)
def pack(kernel: Consumed, argument: int, loops: Sequence[str]) -> KernelOp:
    """Give a constant argument one dimension for each of the loops that read it.

        for j0: reduce k: for j1: w[32 * j0 + j1, k]
        ->  the same with w[j0, k, j1], where loop.packing is (j0, k, j1) -> (32 * j0 + j1, k)

    Parts that are read together and are equally far apart, such as w[j, k] and w[j + 64, k], are
    interleaved: they have one more dimension, in front of that of the last loop.

    Elements of the new layout that are outside of the constant are 0, and each dimension has the
    size of a whole chunk of its loop, so that reading a chunk needs no mask, not even the last one.

    Args:
        argument: the number of the argument.
        loops: the loops, in the order of the dimensions of the new layout.

    Raises:
        ScheduleError: if the argument is not a constant, is packed already, or is not read by maps
            of exactly these loops that differ by multiples of a step; if the size of a loop is
            unknown.
    """
    kind = input_numbered(STEP, kernel, argument).type
    attrs = kernel.attrs_of(argument)
    if CONSTANT not in attrs or not isinstance(kind, MemRefType):
        hint = "stage copies an argument of each call"
        raise refusal(STEP, kernel, argument, "is not a constant", CONSTANT, hint=hint)
    if PACKING in attrs:
        raise refusal(STEP, kernel, argument, "is packed already")
    sizes: list[int] = []
    variables: list[SSAValue] = []
    for name in loops:
        loop = loop_named(STEP, kernel, name)
        # The iterations of a chunk that is not cut short; None where no limit is known. Of the
        # bounds min(16, 10 - 16 * j) of a chunk of a loop of 10 it is 16.
        known = [n for bound in bound_of(loop) if (n := value_of(bound)) is not None]
        size = max(0, min(known)) if known else most_iterations(loop)
        if size is None:
            raise refusal(STEP, kernel, loop, "its size is not known", "a constant bound")
        sizes.append(size)
        variables.append(loop.variable)
    parts = _parts(kernel, argument, loops, variables)
    if len(parts.numbers) > 1:
        sizes.insert(-1, len(parts.numbers))
    packed = MemRefType(kind.element_type, sizes)
    new = _Pack(kernel, argument, variables, packed, parts).run()
    return noted(new, "pack", argument, *loops)


@dataclass(frozen=True)
class _PackedParts:
    """The parts of a constant that loops read."""

    packing: AffineMap
    """From an index of the packed constant to one of the constant."""
    numbers: Mapping[AffineMap, int]
    """The number of the part that is read by each map."""


def _parts(
    kernel: KernelOp, argument: int, loops: Sequence[str], variables: Sequence[SSAValue]
) -> _PackedParts:
    """The parts of a constant, whose maps from loop variables differ by multiples of a step.

    Raises:
        ScheduleError: if the argument is read in any other way.
    """
    maps = _maps(kernel, argument, loops, variables)
    first = maps[0]
    for position, name in enumerate(loops):
        if position not in first.used_dims():
            raise refusal(STEP, kernel, argument, f'its index does not depend on loop "{name}"')
    if len(maps) == 1:
        return _PackedParts(first, {first: 0})
    apart: dict[AffineMap, tuple[int, ...]] = {first: (0,) * len(first.results)}
    for map in maps[1:]:
        known = [
            value_of(normalized(a - b)) for a, b in zip(map.results, first.results, strict=True)
        ]
        if None in known:
            raise refusal(STEP, kernel, argument, "is read by several maps", first, map)
        apart[map] = tuple(cast(list[int], known))
    ordered = sorted(apart, key=lambda map: apart[map])
    start, step = apart[ordered[0]], _difference(apart[ordered[1]], apart[ordered[0]])
    for number, map in enumerate(ordered):
        distance = _difference(apart[map], start)
        if distance != tuple(number * n for n in step):
            fact = "is read by parts that are not equally far apart"
            raise refusal(STEP, kernel, argument, fact, f"steps of {step}", distance)
    return _PackedParts(_interleaved(ordered[0], step), {map: n for n, map in enumerate(ordered)})


def _difference(a: Sequence[int], b: Sequence[int]) -> tuple[int, ...]:
    return tuple(m - n for m, n in zip(a, b, strict=True))


def _interleaved(map: AffineMap, step: Sequence[int]) -> AffineMap:
    """The packing with one more dimension before the last, for parts that are a step apart."""
    outer = [AffineExpr.dimension(n) for n in range(map.num_dims - 1)]
    part, inner = AffineExpr.dimension(map.num_dims - 1), AffineExpr.dimension(map.num_dims)
    results = (
        normalized(expr.replace_dims_and_symbols([*outer, inner], []) + part * size)
        for expr, size in zip(map.results, step, strict=True)
    )
    return AffineMap(map.num_dims + 1, 0, tuple(results))


def _maps(
    kernel: KernelOp, argument: int, loops: Sequence[str], variables: Sequence[SSAValue]
) -> list[AffineMap]:
    """The maps from loop variables to the constant by which it is read, each once."""
    found: dict[AffineMap, None] = {}
    for use in kernel.body.block.args[argument].uses:
        load = use.operation
        if not isinstance(load, LoadOp):
            raise refusal(STEP, kernel, argument, f"is used by {load.name}", "loads only")
        if load.map.data.num_symbols:
            raise refusal(STEP, kernel, argument, "is read by blocks", hint="pack before vectorize")
        map = _map_over(load, variables)
        if map is None:
            raise refusal(
                STEP, kernel, argument, "is read at an index of other loops", ", ".join(loops)
            )
        found[map] = None
    if not found:
        raise refusal(STEP, kernel, argument, "is not read")
    return list(found)


def _map_over(load: LoadOp, variables: Sequence[SSAValue]) -> AffineMap | None:
    """The index of a load over these variables, None if it depends on something else."""
    dims: list[AffineExpr] = []
    for operand in load.indices:
        constant = constant_index(operand)
        if constant is not None:
            dims.append(AffineExpr.constant(constant))
        elif operand in variables:
            dims.append(AffineExpr.dimension(list(variables).index(operand)))
        else:
            return None
    results = [normalized(e.replace_dims_and_symbols(dims, [])) for e in load.map.data.results]
    return AffineMap(len(variables), 0, tuple(results))


class _Pack(Rebuild):
    def __init__(
        self,
        kernel: KernelOp,
        argument: int,
        variables: Sequence[SSAValue],
        kind: MemRefType,
        parts: _PackedParts,
    ) -> None:
        self.buffer = kernel.body.block.args[argument]
        super().__init__(kernel, [use.operation for use in self.buffer.uses])
        self.argument, self.variables = argument, variables
        self.kind, self.parts = kind, parts

    def run(self) -> KernelOp:
        kernel = super().run()
        Rewriter.replace_value_with_new_type(self.buffer, self.kind)
        count, types = len(kernel.function_type.inputs), kernel.body.block.arg_types
        kernel.function_type = FunctionType.from_lists(types[:count], types[count:])
        attrs = [DictionaryAttr(kernel.attrs_of(number)) for number in range(len(types))]
        packing = {PACKING: AffineMapAttr(self.parts.packing)}
        attrs[self.argument] = DictionaryAttr(attrs[self.argument].data | packing)
        kernel.arg_attrs = ArrayAttr(attrs)
        return kernel

    def visit_load(self, op: LoadOp) -> None:
        index = [self.expr(variable) for variable in self.variables]
        if len(self.parts.numbers) > 1:
            map = _map_over(op, self.variables)
            assert map is not None
            index.insert(-1, AffineExpr.constant(self.parts.numbers[map]))
        self.load_like(op, index)
