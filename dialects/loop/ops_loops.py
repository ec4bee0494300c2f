"""Operations of the loop dialect that have iterations: loops and reductions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import (
    AffineMapAttr,
    IntegerAttr,
    IntegerType,
    MemRefType,
    StringAttr,
    i64,
)
from xdsl.interfaces import HasCanonicalizationPatternsInterface
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern
from xdsl.printer import Printer
from xdsl.traits import (
    IsTerminator,
    MemoryReadEffect,
    NoTerminator,
    RecursiveMemoryEffect,
)

from ...core.exactness import Exactness
from .attrs import Combine, CombineAttr, LoopKind, LoopKindAttr
from .bounds import iterations, shortened
from .ops_values import StoreOp, refuse
from .syntax import (
    INDEX,
    parse_applied_map,
    parse_bound,
    print_applied_map,
    print_bound,
)


@irdl_op_definition
class ForOp(IRDLOperation, HasCanonicalizationPatternsInterface):
    """A loop from 0 in steps of 1 to the smallest of its bounds.

    ```mlir
    loop.for "i" %i to 128 { ... }
    loop.for "j0" %j0 to min (d0) -> (4, d0 + 1)(%n) tiles { ... }
    ```

    The name in quotes is what schedules call the loop. Kind `parallel` is not printed.
    """

    name = "loop.for"

    bounds = var_operand_def(INDEX)
    loop_name = prop_def(StringAttr)
    bound = prop_def(AffineMapAttr)
    kind = prop_def(LoopKindAttr)
    body = region_def("single_block")

    traits = traits_def(NoTerminator(), RecursiveMemoryEffect())

    def __init__(
        self,
        name: str,
        bound: AffineMap | int,
        operands: Sequence[SSAValue] = (),
        kind: LoopKind = LoopKind.PARALLEL,
        body: Region | None = None,
    ) -> None:
        if isinstance(bound, int):
            bound = AffineMap.constant_map(bound)
        # Not by the general constructor: schedules make loops by the hundred.
        Operation.__init__(
            self,
            operands=operands,
            properties={
                "loop_name": StringAttr(name),
                "bound": AffineMapAttr(bound),
                "kind": LoopKindAttr(kind),
            },
            regions=[body or Region(Block(arg_types=[INDEX]))],
        )

    @property
    def variable(self) -> SSAValue:
        """The loop variable, an index."""
        return self.body.block.args[0]

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        return (EraseIdleLoop(), ShortenBound())

    def verify_(self) -> None:
        _verify_bound(self, self.bound.data, self.bounds)
        if tuple(a.type for a in self.body.block.args) != (INDEX,):
            refuse(self, "wrong loop variable", "one index")

    def print(self, printer: Printer) -> None:
        _print_loop_head(printer, self.loop_name, self.variable)
        print_bound(printer, self.bound, self.bounds)
        printer.print_string(" ")
        if self.kind.data != LoopKind.PARALLEL:
            printer.print_string(f"{self.kind.data} ")
        printer.print_region(self.body, print_entry_block_args=False, print_empty_block=False)
        printer.print_op_attributes(self.attributes)

    @classmethod
    def parse(cls, parser: Parser) -> ForOp:
        name, variable, bound, operands = _parse_loop_head(parser)
        kind = parser.parse_optional_str_enum(LoopKind) or LoopKind.PARALLEL
        body = parser.parse_region([variable])
        op = cls(name, bound.data, operands, kind, body)
        op.attributes |= parser.parse_optional_attr_dict()
        return op


@irdl_op_definition
class YieldOp(IRDLOperation):
    """The new value of a reduction's accumulator.

    ```mlir
    loop.yield %sum : f32
    ```
    """

    name = "loop.yield"

    value = operand_def()

    traits = traits_def(IsTerminator())
    assembly_format = "$value attr-dict `:` type($value)"

    def __init__(self, value: SSAValue) -> None:
        Operation.__init__(self, operands=[value])


@irdl_op_definition
class ReduceOp(IRDLOperation, HasCanonicalizationPatternsInterface):
    """A reduction: a loop that carries one accumulator.

    ```mlir
    %s = loop.reduce "k" %k to 784 combine add carry(%acc = %b : f32) {
      ...
      loop.yield %t : f32
    }
    ```

    `combine` says how accumulators over parts of the range would join. With `unroll` of U,
    that many iterations are taken at a time, each into an accumulator of its own.
    """

    name = "loop.reduce"

    bounds = var_operand_def(INDEX)
    init = operand_def()
    loop_name = prop_def(StringAttr)
    bound = prop_def(AffineMapAttr)
    combine = prop_def(CombineAttr)
    unroll = opt_prop_def(IntegerAttr.constr(i64))
    result = result_def()
    body = region_def("single_block")

    traits = traits_def(RecursiveMemoryEffect())

    def __init__(
        self,
        name: str,
        bound: AffineMap | int,
        operands: Sequence[SSAValue],
        combine: Combine,
        init: SSAValue,
        body: Region | None = None,
        unroll: int | None = None,
    ) -> None:
        if isinstance(bound, int):
            bound = AffineMap.constant_map(bound)
        properties: dict[str, Attribute] = {
            "loop_name": StringAttr(name),
            "bound": AffineMapAttr(bound),
            "combine": CombineAttr(combine),
        }
        if unroll is not None:
            properties["unroll"] = IntegerAttr(unroll, i64)
        Operation.__init__(
            self,
            operands=[*operands, init],
            properties=properties,
            result_types=[init.type],
            regions=[body or Region(Block(arg_types=[INDEX, init.type]))],
        )

    @property
    def variable(self) -> SSAValue:
        """The loop variable, an index."""
        return self.body.block.args[0]

    @property
    def accumulator(self) -> SSAValue:
        """The accumulator inside the loop."""
        return self.body.block.args[1]

    @property
    def yielded(self) -> SSAValue:
        """The accumulator after an iteration."""
        return cast(YieldOp, self.body.block.last_op).value

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        return (ReduceNothing(), ReduceToFirstValue(), ShortenBound())

    def verify_(self) -> None:
        _verify_bound(self, self.bound.data, self.bounds)
        _verify_reduction(self, (INDEX, self.init.type), self.init.type)

    def print(self, printer: Printer) -> None:
        _print_loop_head(printer, self.loop_name, self.variable)
        print_bound(printer, self.bound, self.bounds)
        _print_carry(printer, self)
        printer.print_region(self.body, print_entry_block_args=False)
        printer.print_op_attributes(self.attributes)

    @classmethod
    def parse(cls, parser: Parser) -> ReduceOp:
        name, variable, bound, operands = _parse_loop_head(parser)
        combine, accumulator, init, unroll = _parse_carry(parser)
        body = parser.parse_region([variable, accumulator])
        op = cls(name, bound.data, operands, combine, init, body, unroll)
        op.attributes |= parser.parse_optional_attr_dict()
        return op


@irdl_op_definition
class ReduceEntriesOp(IRDLOperation, HasCanonicalizationPatternsInterface):
    """A reduction over the stored entries of one row of a CSR matrix.

    ```mlir
    %s = loop.reduce_entries "e" %p, %j of %indptr, %indices row (d0) -> (d0)(%i)
        combine add carry(%acc = %zero : f32) : memref<?xi32>, memref<?xi32> {
      %a = loop.load %values (d0) -> (d0)(%p) : memref<?xf32>, f32
      ...
      loop.yield %t : f32
    }
    ```

    `%p` runs from `indptr[row]` to `indptr[row + 1]`, `%j` is `indices[p]`, the column. The
    row is never an axis: rows differ in length. With `unroll = U` that many entries are
    taken at a time, each into an accumulator of its own (not for `custom`).
    """

    name = "loop.reduce_entries"

    indptr = operand_def(MemRefType)
    indices = operand_def(MemRefType)
    row_operands = var_operand_def(INDEX)
    init = operand_def()
    loop_name = prop_def(StringAttr)
    row = prop_def(AffineMapAttr)
    combine = prop_def(CombineAttr)
    unroll = opt_prop_def(IntegerAttr.constr(i64))
    result = result_def()
    body = region_def("single_block")

    traits = traits_def(RecursiveMemoryEffect(), MemoryReadEffect())

    def __init__(
        self,
        name: str,
        indptr: SSAValue,
        indices: SSAValue,
        row: AffineMap,
        row_operands: Sequence[SSAValue],
        combine: Combine,
        init: SSAValue,
        body: Region | None = None,
        unroll: int | None = None,
    ) -> None:
        super().__init__(
            operands=[indptr, indices, row_operands, init],
            properties={
                "loop_name": StringAttr(name),
                "row": AffineMapAttr(row),
                "combine": CombineAttr(combine),
                "unroll": IntegerAttr(unroll, i64) if unroll is not None else None,
            },
            result_types=[init.type],
            regions=[body or Region(Block(arg_types=[INDEX, INDEX, init.type]))],
        )

    @property
    def position(self) -> SSAValue:
        """The position of the entry in `indices` and in the values."""
        return self.body.block.args[0]

    @property
    def column(self) -> SSAValue:
        """The column of the entry."""
        return self.body.block.args[1]

    @property
    def accumulator(self) -> SSAValue:
        """The accumulator inside the loop."""
        return self.body.block.args[2]

    @property
    def yielded(self) -> SSAValue:
        """The accumulator after an entry."""
        return cast(YieldOp, self.body.block.last_op).value

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        return (ReduceToFirstValue(),)

    def verify_(self) -> None:
        row = self.row.data
        if len(row.results) != 1 or row.num_symbols or row.num_dims != len(self.row_operands):
            refuse(self, "wrong row map", f"one result over {len(self.row_operands)} indices", row)
        for buffer in (self.indptr, self.indices):
            kind = cast(MemRefType, buffer.type)
            if kind.get_num_dims() != 1 or not isinstance(kind.element_type, IntegerType):
                refuse(self, "wrong index array", "a memref of integers of rank 1", kind)
        _verify_reduction(self, (INDEX, INDEX, self.init.type), self.init.type)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_string_literal(self.loop_name.data)
        printer.print_string(" ")
        printer.print_list((self.position, self.column), printer.print_ssa_value)
        printer.print_string(" of ")
        printer.print_list((self.indptr, self.indices), printer.print_ssa_value)
        printer.print_string(" row ")
        print_applied_map(printer, self.row, self.row_operands)
        _print_carry(printer, self)
        printer.print_string(": ")
        printer.print_list((self.indptr.type, self.indices.type), printer.print_attribute)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)
        printer.print_op_attributes(self.attributes)

    @classmethod
    def parse(cls, parser: Parser) -> ReduceEntriesOp:
        name = parser.parse_str_literal()
        position = parser.parse_argument(expect_type=False)
        parser.parse_punctuation(",")
        column = parser.parse_argument(expect_type=False)
        parser.parse_keyword("of")
        indptr = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        indices = parser.parse_unresolved_operand()
        parser.parse_keyword("row")
        row, operands = parse_applied_map(parser)
        combine, accumulator, init, unroll = _parse_carry(parser)
        parser.parse_punctuation(":")
        indptr_type = parser.parse_type()
        parser.parse_punctuation(",")
        indices_type = parser.parse_type()
        body = parser.parse_region([position.resolve(INDEX), column.resolve(INDEX), accumulator])
        op = cls(
            name,
            parser.resolve_operand(indptr, indptr_type),
            parser.resolve_operand(indices, indices_type),
            row.data,
            [parser.resolve_operand(o, INDEX) for o in operands],
            combine,
            init,
            body,
            unroll,
        )
        op.attributes |= parser.parse_optional_attr_dict()
        return op


def _verify_bound(op: ForOp | ReduceOp, bound: AffineMap, operands: Sequence[SSAValue]) -> None:
    if not bound.results or bound.num_symbols or bound.num_dims != len(operands):
        refuse(op, "wrong bound", f"a map over {len(operands)} indices", bound)


def _verify_reduction(
    op: ReduceOp | ReduceEntriesOp, expected: tuple[Attribute, ...], kind: Attribute
) -> None:
    if tuple(a.type for a in op.body.block.args) != expected:
        refuse(op, "wrong block arguments", ", ".join(map(str, expected)))
    last = op.body.block.last_op
    if not isinstance(last, YieldOp):
        refuse(op, "body has no loop.yield at its end")
    elif last.value.type != kind:
        refuse(op, "yielded type differs from the accumulator's", kind, last.value.type)
    if op.result.type != kind:
        refuse(op, "result type differs from the accumulator's", kind, op.result.type)
    if op.unroll is not None and op.unroll.value.data < 1:
        refuse(op, "wrong unroll", "at least 1", op.unroll.value.data)
    if op.unroll is not None and op.combine.data == Combine.CUSTOM:
        refuse(op, "a custom reduction cannot be split into several accumulators")


def _print_loop_head(printer: Printer, name: StringAttr, variable: SSAValue) -> None:
    printer.print_string(" ")
    printer.print_string_literal(name.data)
    printer.print_string(" ")
    printer.print_ssa_value(variable)
    printer.print_string(" to ")


def _parse_loop_head(
    parser: Parser,
) -> tuple[str, Parser.Argument, AffineMapAttr, list[SSAValue]]:
    name = parser.parse_str_literal()
    variable = parser.parse_argument(expect_type=False).resolve(INDEX)
    parser.parse_keyword("to")
    bound, operands = parse_bound(parser)
    return name, variable, bound, operands


def _print_carry(printer: Printer, op: ReduceOp | ReduceEntriesOp) -> None:
    printer.print_string(f" combine {op.combine.data} ")
    if op.unroll is not None:
        printer.print_string(f"unroll {op.unroll.value.data} ")
    printer.print_string("carry(")
    printer.print_ssa_value(op.accumulator)
    printer.print_string(" = ")
    printer.print_ssa_value(op.init)
    printer.print_string(" : ")
    printer.print_attribute(op.init.type)
    printer.print_string(") ")


def _parse_carry(parser: Parser) -> tuple[Combine, Parser.Argument, SSAValue, int | None]:
    parser.parse_keyword("combine")
    combine = parser.parse_str_enum(Combine)
    unroll = parser.parse_integer() if parser.parse_optional_keyword("unroll") else None
    parser.parse_keyword("carry")
    parser.parse_punctuation("(")
    accumulator = parser.parse_argument(expect_type=False)
    parser.parse_punctuation("=")
    init = parser.parse_unresolved_operand()
    parser.parse_punctuation(":")
    kind = parser.parse_type()
    parser.parse_punctuation(")")
    return combine, accumulator.resolve(kind), parser.resolve_operand(init, kind), unroll


# for i to min(%c4, %n + 0) == for i to min(4, %n)
@Exactness.EXACT
class ShortenBound(RewritePattern):
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ForOp | ReduceOp, rewriter: PatternRewriter) -> None:
        shorter = shortened(op.bound.data, op.bounds)
        if shorter is None:
            return
        map, operands = shorter
        op.bound = AffineMapAttr(map)
        op.operands = operands if isinstance(op, ForOp) else [*operands, op.init]
        rewriter.notify_op_modified(op)


# for i to 0: body == nothing
@Exactness.EXACT
class EraseIdleLoop(RewritePattern):
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ForOp, rewriter: PatternRewriter) -> None:
        if iterations(op.bound.data, op.bounds) == 0 or op.body.block.is_empty:
            rewriter.erase_op(op)


# reduce k to 0 carry(acc = init): body == init
@Exactness.EXACT
class ReduceNothing(RewritePattern):
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ReduceOp, rewriter: PatternRewriter) -> None:
        if iterations(op.bound.data, op.bounds) == 0:
            rewriter.replace_op(op, [], [op.init])


# reduce k carry(acc = init): yield acc == init
@Exactness.EXACT
class ReduceToFirstValue(RewritePattern):
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ReduceOp | ReduceEntriesOp, rewriter: PatternRewriter) -> None:
        stores = any(isinstance(inner, StoreOp) for inner in op.body.walk())
        if op.yielded is op.accumulator and not stores:
            rewriter.replace_op(op, [], [op.init])
