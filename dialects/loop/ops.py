"""Operations of the loop dialect.

Parsing and printing are written by hand where an operation applies an affine map to index
values (see `syntax.py`) or names its loop variable; the declarative format has neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    FunctionType,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    StringAttr,
    SymbolNameConstraint,
    VectorType,
    i64,
)
from xdsl.dialects.utils import print_func_argument
from xdsl.interfaces import HasCanonicalizationPatternsInterface
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineMap, AffineSymExpr
from xdsl.irdl import (
    AttrSizedOperandSegments,
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
from xdsl.pattern_rewriter import RewritePattern
from xdsl.printer import Printer
from xdsl.traits import (
    IsolatedFromAbove,
    IsTerminator,
    MemoryAllocEffect,
    MemoryReadEffect,
    MemoryWriteEffect,
    NoTerminator,
    Pure,
    RecursiveMemoryEffect,
    SymbolOpInterface,
)
from xdsl.utils.exceptions import VerifyException

from ...core.errors import explain
from ...core.provenance import origin
from .attrs import Combine, CombineAttr, LoopKind, LoopKindAttr
from .syntax import (
    INDEX,
    parse_applied_map,
    parse_bound,
    print_applied_map,
    print_bound,
)

ROW_MAP = AffineMapAttr(AffineMap.identity(1))


def element_type(kind: Attribute) -> Attribute:
    """The type of one lane of a value: of a scalar the type itself."""
    return kind.element_type if isinstance(kind, VectorType) else kind


def block_shape(kind: Attribute) -> tuple[int, ...]:
    """The lanes of a value along each axis; of a scalar the empty tuple."""
    return kind.get_shape() if isinstance(kind, VectorType) else ()


def _refuse(op: Operation, fact: str, expected: object = None, got: object = None) -> None:
    raise VerifyException(explain(op.name, fact, expected=expected, got=got, origin=origin(op)))


@irdl_op_definition
class KernelOp(IRDLOperation):
    """A kernel in destination-passing style: inputs are read, outputs are written.

    ```mlir
    loop.kernel @relu(%x: memref<?x8xf32>) -> (%y: memref<?x8xf32>) { ... }
    ```

    All buffers are contiguous, row-major, and do not overlap. Attributes of an argument:
    `loop.constant` (unit): every call passes a constant of the program; `loop.packing`: the
    affine map from an index of the (packed) argument to the index of the constant it is made
    of; `loop.bounds = ["x0.1"]`: its integers are indices below each of these extents (here
    dimension 1 of the first tensor that is passed), checked before the kernel runs.
    """

    name = "loop.kernel"

    sym_name = prop_def(SymbolNameConstraint())
    function_type = prop_def(FunctionType)
    arg_attrs = opt_prop_def(ArrayAttr[DictionaryAttr])
    body = region_def("single_block")

    traits = traits_def(IsolatedFromAbove(), SymbolOpInterface(), NoTerminator())

    def __init__(
        self,
        name: str,
        inputs: Sequence[Attribute],
        outputs: Sequence[Attribute],
        body: Region | None = None,
        arg_attrs: Sequence[DictionaryAttr] | None = None,
    ) -> None:
        if body is None:
            body = Region(Block(arg_types=[*inputs, *outputs]))
        super().__init__(
            properties={
                "sym_name": StringAttr(name),
                "function_type": FunctionType.from_lists(inputs, outputs),
                "arg_attrs": ArrayAttr(arg_attrs) if arg_attrs is not None else None,
            },
            regions=[body],
        )

    @property
    def inputs(self) -> tuple[SSAValue, ...]:
        """The buffers (and sizes) that are read."""
        return tuple(self.body.block.args[: len(self.function_type.inputs)])

    @property
    def outputs(self) -> tuple[SSAValue, ...]:
        """The buffers that are written."""
        return tuple(self.body.block.args[len(self.function_type.inputs) :])

    def attrs_of(self, index: int) -> dict[str, Attribute]:
        """The attributes of argument `index`, inputs counted first."""
        return dict(self.arg_attrs.data[index].data) if self.arg_attrs is not None else {}

    def verify_(self) -> None:
        types = (*self.function_type.inputs, *self.function_type.outputs)
        args = self.body.block.args
        if tuple(a.type for a in args) != types:
            _refuse(self, f"arguments of @{self.sym_name.data} differ from its type")
        for kind in types:
            if not isinstance(kind, MemRefType | IndexType):
                _refuse(self, "wrong argument type", "a memref or index", kind)
        if self.arg_attrs is not None and len(self.arg_attrs) != len(types):
            _refuse(self, "wrong number of argument attributes", len(types), len(self.arg_attrs))
        seen: set[str] = set()
        for op in self.walk():
            if isinstance(op, ForOp | ReduceOp | ReduceEntriesOp):
                name = op.loop_name.data
                if name in seen:
                    _refuse(self, f'two loops are called "{name}"', "unique names")
                seen.add(name)

    def print(self, printer: Printer) -> None:
        kind, args = self.function_type, self.body.block.args
        count = len(kind.inputs)

        def argument(index: int) -> None:
            print_func_argument(printer, args[index], DictionaryAttr(self.attrs_of(index)))

        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        with printer.in_parens():
            printer.print_list(range(count), argument)
        printer.print_string(" -> ")
        with printer.in_parens():
            printer.print_list(range(count, len(args)), argument)
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False, print_empty_block=False)

    @classmethod
    def parse(cls, parser: Parser) -> KernelOp:
        def argument() -> tuple[Parser.Argument, DictionaryAttr]:
            arg = parser.parse_argument()
            attrs = parser.parse_optional_dictionary_attr_dict()
            arg.location = parser.parse_optional_location()
            return arg, DictionaryAttr(attrs)

        name = parser.parse_symbol_name().data
        inputs = parser.parse_comma_separated_list(parser.Delimiter.PAREN, argument)
        parser.parse_punctuation("->")
        outputs = parser.parse_comma_separated_list(parser.Delimiter.PAREN, argument)
        extra = parser.parse_optional_attr_dict_with_keyword(("sym_name", "function_type"))
        body = parser.parse_region([a for a, _ in (*inputs, *outputs)])
        attrs = [d for _, d in (*inputs, *outputs)]
        op = cls(
            name,
            [a.type for a, _ in inputs],
            [a.type for a, _ in outputs],
            body,
            attrs if any(d.data for d in attrs) else None,
        )
        if extra is not None:
            op.attributes |= extra.data
        return op


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
        super().__init__(
            operands=[operands],
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
        from .canonicalization import EraseIdleLoop, ShortenBound

        return (EraseIdleLoop(), ShortenBound())

    def verify_(self) -> None:
        _verify_bound(self, self.bound.data, self.bounds)
        if tuple(a.type for a in self.body.block.args) != (INDEX,):
            _refuse(self, "wrong loop variable", "one index")

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
        super().__init__(operands=[value])


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
        super().__init__(
            operands=[operands, init],
            properties={
                "loop_name": StringAttr(name),
                "bound": AffineMapAttr(bound),
                "combine": CombineAttr(combine),
                "unroll": IntegerAttr(unroll, i64) if unroll is not None else None,
            },
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
        from .canonicalization import ReduceNothing, ReduceToFirstValue, ShortenBound

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
        from .canonicalization import ReduceToFirstValue

        return (ReduceToFirstValue(),)

    def verify_(self) -> None:
        row = self.row.data
        if len(row.results) != 1 or row.num_symbols or row.num_dims != len(self.row_operands):
            _refuse(self, "wrong row map", f"one result over {len(self.row_operands)} indices", row)
        for buffer in (self.indptr, self.indices):
            kind = cast(MemRefType, buffer.type)
            if kind.get_num_dims() != 1 or not isinstance(kind.element_type, IntegerType):
                _refuse(self, "wrong index array", "a memref of integers of rank 1", kind)
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


class _Access:
    """What `loop.load` and `loop.store` share: an affine map from indices and axes to a place.

    Mixed into operations that have `buffer`, `indices`, `limits`, `map` and `limited`.
    """

    @staticmethod
    def check(op: LoadOp | StoreOp, block: Attribute) -> None:
        kind, map, shape = cast(MemRefType, op.buffer.type), op.map.data, block_shape(block)
        if element_type(block) != kind.element_type:
            _refuse(op, "element types differ", kind.element_type, element_type(block))
        if len(map.results) != kind.get_num_dims():
            _refuse(op, "map has the wrong number of results", kind.get_num_dims(), map)
        if map.num_dims != len(op.indices):
            _refuse(op, "map has the wrong number of dimensions", len(op.indices), map)
        if map.num_symbols != len(shape):
            _refuse(op, "map has not one symbol for each axis", len(shape), map)
        used = {e.position for r in map.results for e in r.dfs() if isinstance(e, AffineSymExpr)}
        for axis, lanes in enumerate(shape):
            if lanes > 1 and axis not in used and isinstance(op, StoreOp):
                _refuse(op, f"lanes of axis {axis} are stored to one place")
            if lanes == 1 and axis in used and isinstance(op, LoadOp):
                _refuse(op, f"axis {axis} is used, but has one lane")
        if len(op.limited) != len(op.limits):
            _refuse(op, "wrong number of limited axes", len(op.limits), len(op.limited))
        for axis in op.limited.get_values():
            if not 0 <= axis < len(shape):
                _refuse(op, "no such axis", f"below {len(shape)}", axis)


def _print_limits(printer: Printer, op: LoadOp | StoreOp) -> None:
    if not op.limits:
        return
    printer.print_string(" valid(")
    axes = op.limited.get_values()

    def limit(pair: tuple[int, SSAValue]) -> None:
        printer.print_string(f"{pair[0]} : ")
        printer.print_ssa_value(pair[1])

    printer.print_list(zip(axes, op.limits, strict=True), limit)
    printer.print_string(")")


def _parse_limits(parser: Parser) -> tuple[list[int], list[SSAValue]]:
    if parser.parse_optional_keyword("valid") is None:
        return [], []

    def limit() -> tuple[int, SSAValue]:
        axis = parser.parse_integer()
        parser.parse_punctuation(":")
        return axis, parser.resolve_operand(parser.parse_unresolved_operand(), INDEX)

    pairs = parser.parse_comma_separated_list(parser.Delimiter.PAREN, limit)
    return [axis for axis, _ in pairs], [value for _, value in pairs]


@irdl_op_definition
class LoadOp(IRDLOperation, HasCanonicalizationPatternsInterface):
    """Read a scalar, or a block whose dimensions are axes.

    ```mlir
    %a = loop.load %x (d0, d1) -> (d0, d1)(%i, %k) : memref<?x784xf32>, f32
    %b = loop.load %w (d0, d1)[s0, s1] -> (d0 * 32 + s1, d1)(%j0, %k) valid(1 : %n)
        : memref<100x784xf32>, vector<1x32xf32>
    ```

    Dimensions of the map are index values, its symbols are axes: `s1` is the lane number
    along axis 1. An axis that the map does not use has one lane. `valid(a : %n)` says that
    only the first `%n` lanes of axis `a` lie inside the buffer; the others are unspecified
    and must not reach a result.
    """

    name = "loop.load"

    buffer = operand_def(MemRefType)
    indices = var_operand_def(INDEX)
    limits = var_operand_def(INDEX)
    map = prop_def(AffineMapAttr)
    limited = prop_def(DenseArrayBase.constr(i64))
    result = result_def()

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryReadEffect())

    def __init__(
        self,
        buffer: SSAValue,
        map: AffineMap,
        indices: Sequence[SSAValue],
        result_type: Attribute | None = None,
        limits: Sequence[tuple[int, SSAValue]] = (),
    ) -> None:
        super().__init__(
            operands=[buffer, indices, [value for _, value in limits]],
            properties={
                "map": AffineMapAttr(map),
                "limited": DenseArrayBase.from_list(i64, [axis for axis, _ in limits]),
            },
            result_types=[result_type or cast(MemRefType, buffer.type).element_type],
        )

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        from .canonicalization import ShortenAccess

        return (ShortenAccess(),)

    def verify_(self) -> None:
        _Access.check(self, self.result.type)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.buffer)
        printer.print_string(" ")
        print_applied_map(printer, self.map, self.indices)
        _print_limits(printer, self)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_list((self.buffer.type, self.result.type), printer.print_attribute)

    @classmethod
    def parse(cls, parser: Parser) -> LoadOp:
        buffer = parser.parse_unresolved_operand()
        map, indices = parse_applied_map(parser)
        axes, limits = _parse_limits(parser)
        attrs = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        buffer_type = parser.parse_type()
        parser.parse_punctuation(",")
        op = cls(
            parser.resolve_operand(buffer, buffer_type),
            map.data,
            [parser.resolve_operand(o, INDEX) for o in indices],
            parser.parse_type(),
            list(zip(axes, limits, strict=True)),
        )
        op.attributes |= attrs
        return op


@irdl_op_definition
class StoreOp(IRDLOperation, HasCanonicalizationPatternsInterface):
    """Write a scalar, or a block whose dimensions are axes.

    ```mlir
    loop.store %r, %y (d0)[s0, s1] -> (d0 * 12 + s0, s1)(%i0) valid(0 : %m)
        : vector<12x16xf32>, memref<?x16xf32>
    ```

    The map is that of `loop.load`; lanes beyond `valid` are not written.
    """

    name = "loop.store"

    value = operand_def()
    buffer = operand_def(MemRefType)
    indices = var_operand_def(INDEX)
    limits = var_operand_def(INDEX)
    map = prop_def(AffineMapAttr)
    limited = prop_def(DenseArrayBase.constr(i64))

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryWriteEffect())

    def __init__(
        self,
        value: SSAValue,
        buffer: SSAValue,
        map: AffineMap,
        indices: Sequence[SSAValue],
        limits: Sequence[tuple[int, SSAValue]] = (),
    ) -> None:
        super().__init__(
            operands=[value, buffer, indices, [limit for _, limit in limits]],
            properties={
                "map": AffineMapAttr(map),
                "limited": DenseArrayBase.from_list(i64, [axis for axis, _ in limits]),
            },
        )

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        from .canonicalization import ShortenAccess

        return (ShortenAccess(),)

    def verify_(self) -> None:
        _Access.check(self, self.value.type)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list((self.value, self.buffer), printer.print_ssa_value)
        printer.print_string(" ")
        print_applied_map(printer, self.map, self.indices)
        _print_limits(printer, self)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_list((self.value.type, self.buffer.type), printer.print_attribute)

    @classmethod
    def parse(cls, parser: Parser) -> StoreOp:
        value = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        buffer = parser.parse_unresolved_operand()
        map, indices = parse_applied_map(parser)
        axes, limits = _parse_limits(parser)
        attrs = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        value_type = parser.parse_type()
        parser.parse_punctuation(",")
        op = cls(
            parser.resolve_operand(value, value_type),
            parser.resolve_operand(buffer, parser.parse_type()),
            map.data,
            [parser.resolve_operand(o, INDEX) for o in indices],
            list(zip(axes, limits, strict=True)),
        )
        op.attributes |= attrs
        return op


@irdl_op_definition
class FoldOp(IRDLOperation):
    """Join the lanes of one axis: the place where a reduction is reassociated.

    ```mlir
    %s = loop.fold %v axis 1 add : vector<1x16xf32> -> vector<1x1xf32>
    ```
    """

    name = "loop.fold"

    value = operand_def(VectorType)
    axis = prop_def(IntegerAttr.constr(i64))
    combine = prop_def(CombineAttr)
    result = result_def(VectorType)

    traits = traits_def(Pure())

    def __init__(self, value: SSAValue, axis: int, combine: Combine) -> None:
        kind = cast(VectorType, value.type)
        shape = [1 if a == axis else lanes for a, lanes in enumerate(kind.get_shape())]
        super().__init__(
            operands=[value],
            properties={"axis": IntegerAttr(axis, i64), "combine": CombineAttr(combine)},
            result_types=[VectorType(kind.element_type, shape)],
        )

    def verify_(self) -> None:
        source, axis = cast(VectorType, self.value.type), self.axis.value.data
        if not 0 <= axis < source.get_num_dims():
            _refuse(self, "no such axis", f"below {source.get_num_dims()}", axis)
        shape = tuple(1 if a == axis else lanes for a, lanes in enumerate(source.get_shape()))
        if cast(VectorType, self.result.type).get_shape() != shape:
            _refuse(self, "wrong result shape", shape, self.result.type)
        if self.combine.data == Combine.CUSTOM:
            _refuse(self, "a custom reduction cannot be reassociated")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.value)
        printer.print_string(f" axis {self.axis.value.data} {self.combine.data}")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.value.type)
        printer.print_string(" -> ")
        printer.print_attribute(self.result.type)

    @classmethod
    def parse(cls, parser: Parser) -> FoldOp:
        value = parser.parse_unresolved_operand()
        parser.parse_keyword("axis")
        axis = parser.parse_integer()
        combine = parser.parse_str_enum(Combine)
        attrs = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        kind = parser.parse_type()
        parser.parse_punctuation("->")
        result = parser.parse_type()
        return cls.create(
            operands=[parser.resolve_operand(value, kind)],
            properties={"axis": IntegerAttr(axis, i64), "combine": CombineAttr(combine)},
            result_types=[result],
            attributes=attrs,
        )


@irdl_op_definition
class LocalOp(IRDLOperation):
    """A small buffer of static size that one nest fills and another reads.

    ```mlir
    %h = loop.local : memref<16xf32>
    ```

    It lives as long as the body of the loop that it is in; nothing is in it at first.
    """

    name = "loop.local"

    result = result_def(MemRefType)

    traits = traits_def(MemoryAllocEffect())
    assembly_format = "attr-dict `:` type($result)"

    def __init__(self, kind: MemRefType) -> None:
        super().__init__(result_types=[kind])

    def verify_(self) -> None:
        if not cast(MemRefType, self.result.type).has_static_shape():
            _refuse(self, "size is not static", "a static shape", self.result.type)


def _verify_bound(op: ForOp | ReduceOp, bound: AffineMap, operands: Sequence[SSAValue]) -> None:
    if not bound.results or bound.num_symbols or bound.num_dims != len(operands):
        _refuse(op, "wrong bound", f"a map over {len(operands)} indices", bound)


def _verify_reduction(
    op: ReduceOp | ReduceEntriesOp, expected: tuple[Attribute, ...], kind: Attribute
) -> None:
    if tuple(a.type for a in op.body.block.args) != expected:
        _refuse(op, "wrong block arguments", ", ".join(map(str, expected)))
    last = op.body.block.last_op
    if not isinstance(last, YieldOp):
        _refuse(op, "body has no loop.yield at its end")
    elif last.value.type != kind:
        _refuse(op, "yielded type differs from the accumulator's", kind, last.value.type)
    if op.result.type != kind:
        _refuse(op, "result type differs from the accumulator's", kind, op.result.type)
    if op.unroll is not None and op.unroll.value.data < 1:
        _refuse(op, "wrong unroll", "at least 1", op.unroll.value.data)
    if op.unroll is not None and op.combine.data == Combine.CUSTOM:
        _refuse(op, "a custom reduction cannot be split into several accumulators")


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
