"""Operations of the loop dialect for iteration: loops, and their yields."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    IntegerAttr,
    IntegerType,
    MemRefType,
    StringAttr,
    UnitAttr,
    i64,
)
from xdsl.interfaces import HasCanonicalizationPatternsInterface
from xdsl.ir import Attribute, Block, BlockArgument, Region, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, NoTerminator

from ...core.building.creation import initialize
from ...core.exactness import Exactness
from .attrs import Combine, CombineAttr, LoopKind, LoopKindAttr
from .bounds import iterations, shortened
from .effects import LoopEffects
from .ops_access import StoreOp
from .ops_values import refuse
from .syntax import (
    INDEX,
    parse_bound,
    parse_carried,
    parse_row,
    print_bound,
    print_carried,
    print_row,
)


@irdl_op_definition
class YieldOp(IRDLOperation):
    """The end of an iteration: the new value of each value that its loop carries.

    ```mlir
    loop.yield %sum, %most : f32, f32
    ```
    """

    name = "loop.yield"

    values = var_operand_def()

    traits = traits_def(IsTerminator())
    assembly_format = "$values attr-dict `:` type($values)"

    def __init__(self, *values: SSAValue) -> None:
        initialize(self, values)


@irdl_op_definition
class ForOp(IRDLOperation, HasCanonicalizationPatternsInterface):
    """A loop: its range, its kind, and the values that an iteration passes to the next one.

    ```mlir
    loop.for "i" %i to 128 {
      loop.for "j0" %j0 to min (d0) -> (4, d0 + 1)(%n) tiles {
        %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %j0) : memref<128x?xf32>, f32
        loop.store %v, %y (d0, d1) -> (d0, d1)(%i, %j0) : f32, memref<128x?xf32>
      }
    }
    ```

    ```mlir
    %s, %m = loop.for "k" %k to 784 reduction carry(%acc = %b : f32 add, %top = %z : f32 max) {
      %v = loop.load %x (d0) -> (d0)(%k) : memref<784xf32>, f32
      %t = arith.addf %acc, %v : f32
      %u = arith.maximumf %top, %v : f32
      loop.yield %t, %u : f32, f32
    }
    ```

    ```mlir
    %t = loop.for "e" %p, %j of %indptr, %indices row (d0) -> (d0)(%i)
        reduction carry(%acc = %zero : f32 add) : memref<?xi32>, memref<?xi32> {
      %v = loop.load %x (d0) -> (d0)(%j) : memref<?xf32>, f32
      %u = arith.addf %acc, %v : f32
      loop.yield %u : f32
    }
    ```

    Schedules refer to the loop by the name in quotes. It runs from 0 in steps of 1 to the
    smallest of its bounds, or over the stored entries of one row of a CSR matrix: `%p` from
    `indptr[row]` to `indptr[row + 1]`, and `%j` is `indices[p]`, the column. A row is never an
    axis: rows differ in length.

    Kind `parallel` is not printed. A loop of kind `serial` may carry values from one iteration
    to the next; its results are the final values. A `reduction` accumulates values in any order:
    each has a combiner, by which the body accumulates it, and by which accumulators over parts of
    the range are combined. With `unroll U`, it runs U iterations at a time, each with its own
    accumulators. With `cascade N`, which only a loop over entries has, each N iterations start from
    neutral values, and are combined with a total. A value with a known combiner depends on no other
    carried value; values that depend on each other have the combiner `custom`.

    In a kernel:

    ```mlir
    loop.kernel @sum_and_maximum(%x: memref<2x4xf32>) -> (%s: memref<2xf32>, %m: memref<2xf32>) {
      %zero = arith.constant 0.0 : f32
      %least = arith.constant 0xff800000 : f32
      loop.for "i" %i to 2 {
        %sum, %most = loop.for "k" %k to 4 reduction carry(%a = %zero : f32 add,
            %b = %least : f32 max) {
          %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %k) : memref<2x4xf32>, f32
          %t = arith.addf %a, %v : f32
          %u = arith.maximumf %b, %v : f32
          loop.yield %t, %u : f32, f32
        }
        loop.store %sum, %s (d0) -> (d0)(%i) : f32, memref<2xf32>
        loop.store %most, %m (d0) -> (d0)(%i) : f32, memref<2xf32>
      }
    }
    ```
    """

    name = "loop.for"

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

    traits = traits_def(NoTerminator(), LoopEffects())

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
            "kind": LoopKindAttr(kind),
        }
        if matrix:
            properties["entries"] = UnitAttr()
        if combines:
            properties["combiners"] = ArrayAttr([CombineAttr(combine) for combine in combines])
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

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        return (EraseIdleLoop(), DropInvariantCarry(), ShortenBound())

    # Verification.

    def verify_(self) -> None:
        bound, count = self.bound.data, len(self.operands)
        count -= len(self.results) + (2 if self.over_entries else 0)
        fits = not bound.num_symbols and bound.num_dims == count
        if not fits or any(value.type != INDEX for value in self.bounds):
            refuse(self, "wrong bound", f"a map over {max(count, 0)} indices", bound)
        if self.over_entries:
            self._verify_entries(bound)
        elif not bound.results:
            refuse(self, "wrong bound", f"a map over {count} indices", bound)
        types = [value.type for value in self.inits]
        expected = [INDEX, *([INDEX] if self.over_entries else []), *types]
        if [arg.type for arg in self.body.block.args] != expected:
            refuse(self, "wrong block arguments", ", ".join(map(str, expected)))
        self._verify_carried(types)
        self._verify_kind()

    def _verify_entries(self, row: AffineMap) -> None:
        if len(row.results) != 1:
            refuse(self, "wrong row map", f"one result over {len(self.bounds)} indices", row)
        for buffer in self.matrix:
            match buffer.type:
                case MemRefType(element_type=IntegerType()) as kind if kind.get_num_dims() == 1:
                    pass
                case kind:
                    refuse(self, "wrong index array", "a memref of integers of rank 1", kind)

    def _verify_carried(self, types: Sequence[Attribute]) -> None:
        last = self.body.block.last_op
        if not types:
            if isinstance(last, YieldOp):
                refuse(self, "carries nothing, but has a loop.yield at its end")
            return
        if not isinstance(last, YieldOp):
            refuse(self, "body has no loop.yield at its end")
            return
        for what, values in (("yielded", last.values), ("result", self.results)):
            got = [value.type for value in values]
            if got != types:
                fact = f"{what} types differ from those that are carried"
                refuse(self, fact, *(", ".join(map(str, kinds)) for kinds in (types, got)))

    def _verify_kind(self) -> None:
        kind = self.kind.data
        if self.over_entries and kind.is_scheduled:
            refuse(self, "rows differ in length", "a loop that is not cut into equal parts", kind)
        if self.results and kind not in (LoopKind.SERIAL, LoopKind.REDUCTION):
            refuse(self, "wrong kind of a loop that carries values", "serial or reduction", kind)
        if not self.is_reduction:
            if self.combiners is not None or self.unroll is not None or self.cascade is not None:
                refuse(self, "has combiners or accumulators", "a reduction", kind)
            return
        if not self.results:
            refuse(self, "a reduction carries nothing", "at least one value")
        if len(self.combines) != len(self.results):
            refuse(self, "wrong number of combiners", len(self.results), len(self.combines))
        if self.at_once < 1:
            refuse(self, "wrong unroll", "at least 1", self.at_once)
        if self.unroll is not None and not self.is_joinable:
            refuse(self, "a custom reduction cannot be split into several accumulators")
        self._verify_chunk(self.chunk)

    def _verify_chunk(self, chunk: int | None) -> None:
        if chunk is None:
            return
        if not self.over_entries:
            refuse(self, "a loop over a bound is no cascade", "two loops")
        if chunk < 1:
            refuse(self, "wrong cascade", "at least 1", chunk)
        if not self.is_joinable:
            refuse(self, "chunks of a custom reduction cannot be combined")

    # Text.

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_string_literal(self.loop_name.data)
        printer.print_string(" ")
        printer.print_ssa_value(self.variable)
        if self.over_entries:
            printer.print_string(", ")
            printer.print_ssa_value(self.column)
            print_row(printer, self.matrix, self.bound, self.bounds)
        else:
            printer.print_string(" to ")
            print_bound(printer, self.bound, self.bounds)
        printer.print_string(" ")
        if self.kind.data != LoopKind.PARALLEL:
            printer.print_string(f"{self.kind.data} ")
        if self.unroll is not None:
            printer.print_string(f"unroll {self.at_once} ")
        if self.chunk is not None:
            printer.print_string(f"cascade {self.chunk} ")
        if self.results:
            print_carried(printer, self.carried, self.inits, self.combines)
        if self.over_entries:
            printer.print_string(": ")
            printer.print_list([v.type for v in self.matrix], printer.print_attribute)
            printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False, print_empty_block=False)
        printer.print_op_attributes(self.attributes)

    @classmethod
    def parse(cls, parser: Parser) -> ForOp:
        name = parser.parse_str_literal()
        variables = [parser.parse_argument(expect_type=False).resolve(INDEX)]
        arrays: list[UnresolvedOperand] = []
        if parser.parse_optional_punctuation(","):
            variables.append(parser.parse_argument(expect_type=False).resolve(INDEX))
            arrays, bound, operands = parse_row(parser)
        else:
            parser.parse_keyword("to")
            bound, operands = parse_bound(parser)
        kind = parser.parse_optional_str_enum(LoopKind) or LoopKind.PARALLEL
        unroll = parser.parse_integer() if parser.parse_optional_keyword("unroll") else None
        cascade = parser.parse_integer() if parser.parse_optional_keyword("cascade") else None
        carried, inits, combines = parse_carried(parser)
        matrix: list[SSAValue] = []
        for number, array in enumerate(arrays):
            parser.parse_punctuation("," if number else ":")
            matrix.append(parser.resolve_operand(array, parser.parse_type()))
        body = parser.parse_region([*variables, *carried])
        more = {"matrix": matrix, "inits": inits, "combines": combines}
        op = cls(name, bound.data, operands, kind, body, **more, unroll=unroll, cascade=cascade)
        op.attributes |= parser.parse_optional_attr_dict()
        return op


# for i to min(%c4, %n + 0) == for i to min(4, %n)
@Exactness.EXACT
class ShortenBound(RewritePattern):
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ForOp, rewriter: PatternRewriter) -> None:
        shorter = shortened(op.bound.data, op.bounds)
        if shorter is None:
            return
        map, operands = shorter
        rest = op.operands[op.bound.data.num_dims :]
        op.bound = AffineMapAttr(map)
        op.operands = [*operands, *rest]
        rewriter.notify_op_modified(op)


# for i to 0 carry(acc = init): body == init
@Exactness.EXACT
class EraseIdleLoop(RewritePattern):
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ForOp, rewriter: PatternRewriter) -> None:
        never = not op.over_entries and iterations(op.bound.data, op.bounds) == 0
        if never or op.body.block.is_empty:
            rewriter.replace_op(op, [], op.inits)


# for i carry(a = x, b = y): yield a, f(b)  ==  x, for i carry(b = y): yield f(b)
@Exactness.EXACT
class DropInvariantCarry(RewritePattern):
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ForOp, rewriter: PatternRewriter) -> None:
        inits, carried, yielded = op.inits, op.carried, op.yielded
        kept = [n for n, value in enumerate(yielded) if value is not carried[n]]
        if len(kept) == len(yielded):
            return
        if not kept:
            if not any(isinstance(inner, StoreOp) for inner in op.body.walk()):
                rewriter.replace_op(op, [], inits)
            return
        block = op.body.block
        for number in [n for n in range(len(yielded)) if n not in kept]:
            carried[number].replace_all_uses_with(inits[number])
        for value in [carried[n] for n in range(len(yielded)) if n not in kept]:
            block.erase_arg(cast(BlockArgument, value))
        last = cast(YieldOp, block.last_op)
        # A kept value may yield a dropped one, which is its initial value by now.
        rewriter.replace_op(last, YieldOp(*[last.values[n] for n in kept]))
        new = ForOp(
            op.loop_name.data,
            op.bound.data,
            op.bounds,
            op.kind.data,
            op.detach_region(op.body),
            matrix=op.matrix,
            inits=[inits[n] for n in kept],
            combines=[op.combines[n] for n in kept] if op.is_reduction else (),
            unroll=None if op.unroll is None else op.at_once,
            cascade=op.chunk,
        )
        new.attributes |= op.attributes
        results: list[SSAValue] = list(inits)
        for number, result in zip(kept, new.results, strict=True):
            results[number] = result
        rewriter.replace_op(op, new, results)
