"""Operations of the loop dialect for iteration: loops."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    IntegerType,
    MemRefType,
)
from xdsl.interfaces import HasCanonicalizationPatternsInterface
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.irdl import traits_def
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.pattern_rewriter import RewritePattern
from xdsl.printer import Printer
from xdsl.traits import NoTerminator

from ...core.algebra.affine import DivisorError
from ...core.ir.definitions import irdl_op_definition
from .attrs import LoopKind
from .effects import LoopEffects
from .loop_base import LoopBase, YieldOp
from .loop_rewrites import LOOP_REWRITES
from .ops_values import refuse
from .proofs.bounds import filled_in
from .proofs.levels import check_levels
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
class ForOp(LoopBase, HasCanonicalizationPatternsInterface):
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
    accumulators. With `cascade N`, which only a loop over entries has, each N iterations, or each
    64th of them if that is more, start from neutral values, and are combined with a total. A value
    with a known combiner depends on no other carried value; values that depend on each other have
    the combiner `custom`.

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

    traits = traits_def(NoTerminator(), LoopEffects())

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        return LOOP_REWRITES

    # Verification.

    def verify_(self) -> None:
        bound, count = self.bound.data, len(self.operands)
        count -= len(self.results) + (2 if self.over_entries else 0)
        fits = not bound.num_symbols and bound.num_dims == count
        if not fits or any(value.type != INDEX for value in self.bounds):
            refuse(self, "wrong bound", f"a map over {max(count, 0)} indices", bound)
        try:
            filled_in(bound, self.bounds)
        except DivisorError:
            refuse(self, "wrong bound", "positive divisors", bound)
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
        check_levels(self)
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
        if self.chunk is None:
            return
        if not self.over_entries:
            refuse(self, "a loop over a bound is no cascade", "two loops")
        if self.chunk < 1:
            refuse(self, "wrong cascade", "at least 1", self.chunk)
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
