"""Lay a constant argument out in the order in which loops read it: `loop-pack`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import AffineMapAttr, DictionaryAttr, MemRefType
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from ...core.budgets import EXACT
from ...dialects.loop.arguments import CONSTANT, PACKING
from ...dialects.loop.bounds import constant_index
from ...dialects.loop.linear import normalized, value_of
from ...dialects.loop.loops import bound_of, most_iterations
from ...dialects.loop.nests import Consumed, input_numbered, loop_named, refusal
from ...dialects.loop.ops import ForOp, KernelOp, LoadOp
from ...dialects.loop.rebuild import Rebuild
from ...dialects.loop.trace import noted
from ..primitive import PrimitivePass

STEP = "loop-pack"


def pack(kernel: Consumed, argument: int, loops: Sequence[str]) -> KernelOp:
    """Give a constant argument one dimension for each of the loops that read it.

        for j0: reduce k: for j1: w[32 * j0 + j1, k]
        ->  the same with w[j0, k, j1], where loop.packing is (j0, k, j1) -> (32 * j0 + j1, k)

    Elements of the new layout that are outside of the constant are 0, and each dimension has the
    size of a whole chunk of its loop, so that reading a chunk needs no mask, not even the last one.

    Raises:
        ScheduleError: if the argument is not a constant, is packed already, or is not read by one
            map of exactly these loops; if the size of a loop is unknown.
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
        size = _whole_chunk(loop)
        if size is None:
            raise refusal(STEP, kernel, loop, "its size is not known", "a constant bound")
        sizes.append(size)
        variables.append(loop.variable)
    packing = _packing(kernel, argument, loops, variables)
    packed = MemRefType(kind.element_type, sizes)
    new = _Pack(kernel, argument, variables, packed, packing).run()
    return noted(new, "pack", argument, *loops)


def _whole_chunk(loop: ForOp) -> int | None:
    """The iterations of a chunk that is not cut short; None where no limit is known.

    Of the bounds min(16, 10 - 16 * j) of a chunk of a loop of 10 it is 16.
    """
    known = [n for bound in bound_of(loop) if (n := value_of(bound)) is not None]
    return max(0, min(known)) if known else most_iterations(loop)


def _packing(
    kernel: KernelOp, argument: int, loops: Sequence[str], variables: Sequence[SSAValue]
) -> AffineMap:
    """The map from loop variables to the constant, the same in all reads.

    Raises:
        ScheduleError: if the argument is read in any other way.
    """
    found: AffineMap | None = None
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
        if found not in (None, map):
            raise refusal(STEP, kernel, argument, "is read by several maps", found, map)
        found = map
    if found is None:
        raise refusal(STEP, kernel, argument, "is not read")
    for position, name in enumerate(loops):
        if position not in found.used_dims():
            raise refusal(STEP, kernel, argument, f'its index does not depend on loop "{name}"')
    return found


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
        packing: AffineMap,
    ) -> None:
        super().__init__(kernel)
        self.argument, self.variables = argument, variables
        self.kind, self.packing = kind, packing

    def argument_types(self) -> list[Attribute]:
        types = super().argument_types()
        types[self.argument] = self.kind
        return types

    def argument_attrs(self) -> Sequence[DictionaryAttr]:
        attrs = list(cast(Sequence[DictionaryAttr], super().argument_attrs()))
        packing = {PACKING: AffineMapAttr(self.packing)}
        attrs[self.argument] = DictionaryAttr(attrs[self.argument].data | packing)
        return attrs

    def visit_load(self, op: LoadOp) -> None:
        if op.buffer is not self.kernel.body.block.args[self.argument]:
            super().visit_load(op)
            return
        self.load_like(op, [self.expr(variable) for variable in self.variables])


@dataclass(frozen=True)
class LoopPackPass(PrimitivePass):
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

    Requires: an argument with `loop.constant` that is read by one map of exactly these loops.
    Leaves: the argument with its packed type, and `loop.packing`.
    """

    name = "loop-pack"
    budget = EXACT
    primitive = staticmethod(pack)

    argument: int = 0
    """The number of the argument."""
    loops: tuple[str, ...] = ()
    """The loops, in the order of the dimensions of the new layout."""
