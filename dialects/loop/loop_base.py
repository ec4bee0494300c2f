"""Yields of the loop dialect, and what loops are made of: a range, a kind, carried values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    IntegerAttr,
    StringAttr,
    UnitAttr,
    i64,
)
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.irdl import (
    IRDLOperation,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import IsTerminator

from ...core.building.creation import initialize
from ...core.ir.definitions import irdl_op_definition
from .attrs import Combine, CombineAttr, LoopKind, LoopKindAttr
from .syntax import (
    INDEX,
)


@irdl_op_definition
class YieldOp(IRDLOperation):
    """The end of an iteration: the new value of each value that its loop carries.

    ```mlir
    loop.yield %sum, %most : f32, f32
    ```

    In a kernel:

    ```mlir
    loop.kernel @products_of_rows(%x: memref<2x4xf32>) -> (%y: memref<2xf32>) {
      %one = arith.constant 1.0 : f32
      loop.for "i" %i to 2 {
        %p = loop.for "k" %k to 4 reduction carry(%a = %one : f32 mul) {
          %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %k) : memref<2x4xf32>, f32
          %t = arith.mulf %a, %v : f32
          loop.yield %t : f32
        }
        loop.store %p, %y (d0) -> (d0)(%i) : f32, memref<2xf32>
      }
    }
    ```
    """

    name = "loop.yield"

    values = var_operand_def()

    traits = traits_def(IsTerminator())
    assembly_format = "$values attr-dict `:` type($values)"

    def __init__(self, *values: SSAValue) -> None:
        initialize(self, values)


_KINDS = {kind: LoopKindAttr(kind) for kind in LoopKind}
_COMBINERS = {combine: CombineAttr(combine) for combine in Combine}


class LoopBase(IRDLOperation):
    """The fields of `loop.for`, and what follows from them."""

    arguments = var_operand_def()
    """The operands of the bound, the index arrays of a matrix, the first carried values."""
    loop_name = prop_def(StringAttr)
    bound = prop_def(AffineMapAttr)
    """For a loop over entries, the row."""
    kind = prop_def(LoopKindAttr)
    entries = opt_prop_def(UnitAttr)
    combiners = opt_prop_def(ArrayAttr[CombineAttr])
    unroll = opt_prop_def(IntegerAttr.constr(i64))
    cascade = opt_prop_def(IntegerAttr.constr(i64))
    last = var_result_def()
    body = region_def("single_block")

    def __init__(
        self,
        name: str,
        bound: AffineMap | int,
        operands: Sequence[SSAValue] = (),
        kind: LoopKind = LoopKind.PARALLEL,
        body: Region | None = None,
        *,
        matrix: Sequence[SSAValue] = (),
        inits: Sequence[SSAValue] = (),
        combines: Sequence[Combine] = (),
        unroll: int | None = None,
        cascade: int | None = None,
    ) -> None:
        if isinstance(bound, int):
            bound = AffineMap.constant_map(bound)
        properties: dict[str, Attribute] = {
            "loop_name": StringAttr(name),
            "bound": AffineMapAttr(bound),
            "kind": _KINDS[kind],
        }
        if matrix:
            properties["entries"] = UnitAttr()
        if combines:
            properties["combiners"] = ArrayAttr([_COMBINERS[combine] for combine in combines])
        if unroll is not None:
            properties["unroll"] = IntegerAttr(unroll, i64)
        if cascade is not None:
            properties["cascade"] = IntegerAttr(cascade, i64)
        types = [init.type for init in inits]
        if body is None:
            body = Region(Block(arg_types=[*([INDEX] * (2 if matrix else 1)), *types]))
        # The general constructor is slow, and schedules make hundreds of loops.
        initialize(self, [*operands, *matrix, *inits], types, properties, regions=[body])

    # Range.

    @property
    def over_entries(self) -> bool:
        """Whether the loop is over the stored entries of a row."""
        return "entries" in self.properties

    @property
    def bounds(self) -> Sequence[SSAValue]:
        """The indices that the bound, or the row, is computed from."""
        return self.operands[: self.bound.data.num_dims]

    @property
    def matrix(self) -> Sequence[SSAValue]:
        """The row pointers and column indices of a loop over entries; of another loop, nothing."""
        count = self.bound.data.num_dims
        return self.operands[count : count + 2] if self.over_entries else ()

    @property
    def _block(self) -> Block:
        """The block of the body; the declared accessor takes several times as long."""
        return self.regions[0].block

    @property
    def variable(self) -> SSAValue:
        """The loop variable, an index; for an entry, its position in `indices` and the values."""
        return self._block.args[0]

    @property
    def column(self) -> SSAValue:
        """The column of an entry."""
        return self._block.args[1]

    # Carried values.

    @property
    def is_plain(self) -> bool:
        """Whether the loop is over a bound, and carries nothing."""
        return not self.results and not self.over_entries

    @property
    def is_reduction(self) -> bool:
        """Whether the loop is a reduction."""
        return self.kind.data == LoopKind.REDUCTION

    @property
    def inits(self) -> Sequence[SSAValue]:
        """The carried values of the first iteration."""
        return self.operands[len(self.operands) - len(self.results) :]

    @property
    def carried(self) -> Sequence[SSAValue]:
        """The carried values inside of the loop; of a reduction, its accumulators."""
        return self._block.args[2 if self.over_entries else 1 :]

    @property
    def yielded(self) -> Sequence[SSAValue]:
        """The carried values after an iteration."""
        return cast(YieldOp, self._block.last_op).operands[:] if self.results else ()

    @property
    def combines(self) -> Sequence[Combine]:
        """How partial results of each carried value of a reduction are combined."""
        return [] if self.combiners is None else [attr.data for attr in self.combiners]

    @property
    def is_joinable(self) -> bool:
        """Whether this is a reduction whose partial results can all be combined."""
        return self.is_reduction and Combine.CUSTOM not in self.combines

    @property
    def is_scheduled(self) -> bool:
        """Whether a schedule has chosen how the iterations run."""
        chosen = self.unroll is not None or self.cascade is not None
        return chosen or self.kind.data.is_scheduled

    @property
    def at_once(self) -> int:
        """How many iterations of a reduction run at a time."""
        return 1 if self.unroll is None else self.unroll.value.data

    @property
    def chunk(self) -> int | None:
        """The iterations of a loop over entries that accumulate on their own, None for all."""
        return None if self.cascade is None else self.cascade.value.data
