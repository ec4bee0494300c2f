"""The `rt` dialect: what remains of a program without tensors and loop nests.

Why upstream is not enough: no standard dialect has a planned arena, a table of constants,
calls to functions registered at run time, checks that return an error number to the caller,
or tiles that several threads run. `memref.alloc` would hide the arena, `cf.assert` ends the
process, `omp` and `async` bring a run time of their own.

What lowers into it: `convert-graph-to-rt` makes the public function of these operations, with
buffers as arguments; `convert-loop-to-scf` makes `rt.parallel_tiles` from tile loops.

What it lowers to: `rt-outline-tiles` turns `rt.parallel_tiles` into a function and
`rt.call_tiles`; `convert-rt-to-llvm` does the rest, with `cf` and `func` for control flow.

The public function takes `!rt.context` first, then inputs, then results, all as buffers, and
returns an i32: 0 for success, `ARENA_TOO_SMALL` when the arena must grow (the bytes wanted are
then in the first detail), or the number of the operation that failed: operations that can fail
are numbered from 1 in the order in which `failing_operations` lists them.

The context is an array of 8-byte words, `Word` says which. Buffers are contiguous, row-major;
one passed to compiled code is its address followed by its symbolic sizes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar

from xdsl.dialects import func
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    I1,
    I64,
    FlatSymbolRefAttrConstr,
    FunctionType,
    IndexType,
    IntegerAttr,
    MemRefType,
    NoneAttr,
    StringAttr,
    SymbolRefAttr,
    i8,
    i32,
    i64,
)
from xdsl.ir import (
    Attribute,
    Block,
    BlockArgument,
    Dialect,
    Operation,
    ParametrizedAttribute,
    Region,
    SSAValue,
    TypeAttribute,
)
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    ParsePropInAttrDict,
    base,
    irdl_attr_definition,
    irdl_op_definition,
    lazy_traits_def,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern
from xdsl.traits import (
    ConstantLike,
    HasCanonicalizationPatternsTrait,
    HasParent,
    IsolatedFromAbove,
    IsTerminator,
    Pure,
    SymbolUserOpInterface,
)
from xdsl.utils.exceptions import VerifyException

from ..core.errors import explain
from ..core.exactness import Exactness
from ..core.indices import explained, explained_index
from ..core.symbols import find_symbol
from ..core.typed import memref_type
from ..core.walks import operations_in
from .sparse_tensor import part_count

ARENA_TOO_SMALL = -1
"""What the public function returns when the arena must grow before anything can run."""

ARENA_TYPE = MemRefType(i8, [DYNAMIC_INDEX])
"""The type of the arena."""

PARALLEL_TILES = "stepwell_parallel_tiles"
"""The function of the run time that compiled code calls to run tiles on several threads:
`(body, context, count, threads)`, where `body` is called with the context and a tile."""

SYSTEM_CLOCK = "clock_gettime"
"""The function of the system (POSIX) that compiled code reads a clock by."""

DETAIL_WORDS = 3
"""How many words a failed check may leave in the context."""

RECORD_WORDS = 2
"""Words of a row that `rt.record` keeps: nanoseconds, and how often they were taken."""


class Word(IntEnum):
    """Where things are in the context, in 8-byte words."""

    CONSTANTS = 0
    """Address of the table of addresses of constants."""
    FUNCTIONS = 1
    """Address of the table of addresses of registered functions."""
    ARENA = 2
    """Address of the arena, aligned to 64 bytes."""
    ARENA_BYTES = 3
    """Size of the arena."""
    BUSY = 4
    """For the run time's own use: 1 while a call has the context."""
    NEXT = 5
    """For the run time's own use: address of another context of the program."""
    DETAILS = 6
    """First of `DETAIL_WORDS` words about the check that failed."""


WORDS = Word.DETAILS + DETAIL_WORDS
"""Size of the context in words."""


@irdl_attr_definition
class ContextType(ParametrizedAttribute, TypeAttribute):
    """`!rt.context`: the run time's side of one call: constants, functions, arena, details."""

    name = "rt.context"


class CalleeExists(SymbolUserOpInterface):
    """The callee is a symbol in scope; where it is a `func.func`, its arguments agree."""

    def verify(self, op: Operation) -> None:
        assert isinstance(op, CallOp | CallTilesOp)
        callee = find_symbol(op, op.callee)
        if callee is None:
            raise VerifyException(f"{op.name}: unknown function, got {op.callee}")
        if not isinstance(callee, func.FuncOp):
            return
        expected = callee.function_type.inputs.data
        got = (*op.LEADING_TYPES, *(operand.type for operand in op.arguments))
        if expected != got:
            raise VerifyException(
                f"{op.name}: arguments of {op.callee} differ, expected "
                f"({', '.join(map(str, expected))}), got ({', '.join(map(str, got))})"
            )
        if callee.function_type.outputs.data:
            raise VerifyException(
                f"{op.name}: {op.callee} returns values, expected none, "
                f"got {len(callee.function_type.outputs)}"
            )


@irdl_op_definition
class ConstantOp(IRDLOperation):
    """A packed constant: entry `slot` of the context's table; `packing` says how it was laid out.

    `%w = rt.constant %ctx, 3 "w0" : memref<128x784xf32>`
    """

    name = "rt.constant"

    context = operand_def(ContextType)
    slot = prop_def(IntegerAttr[I64])
    weight = prop_def(StringAttr)
    packing = opt_prop_def()
    result = result_def(MemRefType)

    assembly_format = "$context `,` $slot $weight attr-dict `:` type($result)"

    irdl_options = (ParsePropInAttrDict(),)

    traits = traits_def(Pure())

    def __init__(
        self,
        context: SSAValue | Operation,
        slot: int,
        weight: str,
        result_type: MemRefType,
        packing: Attribute | None = None,
    ):
        super().__init__(
            operands=[context],
            result_types=[result_type],
            properties={
                "slot": IntegerAttr(slot, i64),
                "weight": StringAttr(weight),
                "packing": packing,
            },
        )

    def verify_(self) -> None:
        if self.slot.value.data < 0:
            raise VerifyException(f"{self.name}: negative slot, got {self.slot.value.data}")
        buffer = memref_type(self.result)
        if not buffer.has_static_shape():
            raise VerifyException(
                f"{self.name}: symbolic size, expected a static shape, got {buffer}"
            )
        verify_contiguous(self, buffer)


@irdl_op_definition
class ArenaOp(IRDLOperation):
    """The arena of this call, of at least `bytes`; the call ends where it is smaller.

    `%arena = rt.arena %ctx, %bytes : memref<?xi8>`; buffers are `memref.view`s of it.
    """

    name = "rt.arena"

    context = operand_def(ContextType)
    bytes = operand_def(IndexType)
    result = result_def(MemRefType)

    assembly_format = "$context `,` $bytes attr-dict `:` type($result)"

    def __init__(self, context: SSAValue | Operation, bytes: SSAValue | Operation):
        super().__init__(operands=[context, bytes], result_types=[ARENA_TYPE])

    def verify_(self) -> None:
        if self.result.type != ARENA_TYPE:
            raise VerifyException(
                f"{self.name}: wrong result type, expected {ARENA_TYPE}, got {self.result.type}"
            )


@irdl_op_definition
class CallOp(IRDLOperation):
    """Calls a kernel or a function that returns nothing: inputs, then results.

    `rt.call @dense(%x, %w, %y) : memref<?x784xf32>, memref<128x784xf32>, memref<?x128xf32>`
    """

    name = "rt.call"

    callee = prop_def(FlatSymbolRefAttrConstr)
    arguments = var_operand_def()

    assembly_format = "$callee `(` $arguments `)` attr-dict (`:` type($arguments)^)?"

    traits = traits_def(CalleeExists())

    LEADING_TYPES: ClassVar[tuple[Attribute, ...]] = ()

    def __init__(self, callee: str, arguments: Sequence[SSAValue | Operation]):
        super().__init__(operands=[arguments], properties={"callee": SymbolRefAttr(callee)})


@dataclass(frozen=True)
class Failure:
    """A way in which a call can fail, as reported to its caller.

    `subject` is the registered function, the message of a check, or what was checked. So many
    `details` stand in a message as `{0}`, `{1}`, `{2}`.
    """

    kind: str
    subject: str
    details: int = 0

    KINDS: ClassVar = ("function", "check", "csr", "index")

    def explain(self, details: Sequence[int]) -> str:
        """What went wrong; `details` are the words left in the context."""
        match self.kind:
            case "function":
                return f'registered function "{self.subject}" failed'
            case "check":
                text = self.subject
                for number in range(self.details):
                    text = text.replace(f"{{{number}}}", str(details[number]))
                return text
            case "csr":
                return f"{self.subject}: {explained(*details)}"
            case _:
                return f"{self.subject}: {explained_index(*details)}"


class FailingOp(IRDLOperation, ABC):
    """An operation of the public function that can end the call with an error number."""

    @property
    @abstractmethod
    def failure(self) -> Failure:
        """What its failure means to the caller."""


@irdl_op_definition
class CallPackedOp(FailingOp):
    """Calls the function registered as `callee`, entry `slot` of the context's table.

    `rt.call_packed %ctx, 0 "env.linear" ins(%x : memref<4xf32>) outs(%y : memref<4xf32>)`

    The function takes the address of an array of words, for each buffer its address and
    all its sizes, for each index itself, and returns an i32 that is not 0 when it failed.
    `as (tensor<4xi1>) -> tensor<4xf32>` says which tensors the buffers are, where they do not
    say it themselves: a byte may be a boolean, and a sparse matrix is several buffers.
    """

    name = "rt.call_packed"

    context = operand_def(ContextType)
    inputs = var_operand_def(base(MemRefType) | base(IndexType))
    outputs = var_operand_def(MemRefType)
    slot = prop_def(IntegerAttr[I64])
    callee = prop_def(StringAttr)
    tensors = opt_prop_def(FunctionType)

    assembly_format = (
        "$context `,` $slot $callee (`ins` `(` $inputs^ `:` type($inputs) `)`)? "
        "(`outs` `(` $outputs^ `:` type($outputs) `)`)? (`as` $tensors^)? attr-dict"
    )

    irdl_options = (AttrSizedOperandSegments(as_property=True), ParsePropInAttrDict())

    def __init__(
        self,
        context: SSAValue | Operation,
        slot: int,
        callee: str,
        inputs: Sequence[SSAValue | Operation],
        outputs: Sequence[SSAValue | Operation],
        tensors: FunctionType | None = None,
    ):
        super().__init__(
            operands=[context, inputs, outputs],
            properties={
                "slot": IntegerAttr(slot, i64),
                "callee": StringAttr(callee),
                "tensors": tensors,
            },
        )

    def verify_(self) -> None:
        if self.slot.value.data < 0:
            raise VerifyException(f"{self.name}: negative slot, got {self.slot.value.data}")
        for operand in (*self.inputs, *self.outputs):
            if isinstance(operand.type, MemRefType):
                verify_contiguous(self, operand.type)
        if self.tensors is not None:
            types = (self.tensors.inputs, self.tensors.outputs)
            expected = [sum(map(part_count, kinds)) for kinds in types]
            got = [len(self.inputs), len(self.outputs)]
            if expected != got:
                fact = f"wrong numbers of buffers for {self.tensors}"
                raise VerifyException(explain(self.name, fact, expected=expected, got=got))

    @property
    def failure(self) -> Failure:
        return Failure("function", self.callee.data)


class _CheckCanonicalization(HasCanonicalizationPatternsTrait):
    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        return (DropTrueCheck(),)


@irdl_op_definition
class CheckOp(FailingOp):
    """Ends the call where `condition` is false. `{0}`, `{1}`, `{2}` in the message are details.

    `rt.check %ctx, %ok, "x: sizes of dimension 0 differ, expected {0}, got {1}"(%m, %n)`
    """

    name = "rt.check"

    context = operand_def(ContextType)
    condition = operand_def(I1)
    details = var_operand_def(IndexType)
    message = prop_def(StringAttr)

    assembly_format = "$context `,` $condition `,` $message (`(` $details^ `)`)? attr-dict"

    irdl_options = (ParsePropInAttrDict(),)

    traits = traits_def(_CheckCanonicalization())

    def __init__(
        self,
        context: SSAValue | Operation,
        condition: SSAValue | Operation,
        message: str,
        details: Sequence[SSAValue | Operation] = (),
    ):
        super().__init__(
            operands=[context, condition, details],
            properties={"message": StringAttr(message)},
        )

    def verify_(self) -> None:
        if len(self.details) > DETAIL_WORDS:
            raise VerifyException(
                f"{self.name}: too many details, expected at most {DETAIL_WORDS}, "
                f"got {len(self.details)}"
            )

    @property
    def failure(self) -> Failure:
        return Failure("check", self.message.data, len(self.details))


@irdl_op_definition
class CheckCsrOp(FailingOp):
    """Ends the call where a CSR matrix is malformed, so that no loop over it leaves a buffer.

    `rt.check_csr %ctx, %indptr, %indices, %columns "graph" : memref<?xi32>, memref<?xi32>`

    Row pointers start at 0, never decrease and end at the number of entries; column indices
    lie in [0, columns). Indices need not be sorted.
    """

    name = "rt.check_csr"

    context = operand_def(ContextType)
    indptr = operand_def(MemRefType)
    indices = operand_def(MemRefType)
    columns = operand_def(IndexType)
    subject = prop_def(StringAttr)

    assembly_format = (
        "$context `,` $indptr `,` $indices `,` $columns $subject attr-dict `:` "
        "type($indptr) `,` type($indices)"
    )

    irdl_options = (ParsePropInAttrDict(),)

    def __init__(
        self,
        context: SSAValue | Operation,
        indptr: SSAValue | Operation,
        indices: SSAValue | Operation,
        columns: SSAValue | Operation,
        subject: str,
    ):
        super().__init__(
            operands=[context, indptr, indices, columns],
            properties={"subject": StringAttr(subject)},
        )

    def verify_(self) -> None:
        for operand in (self.indptr, self.indices):
            buffer = memref_type(operand)
            verify_index_buffer(self, buffer)
            if buffer.get_num_dims() != 1:
                raise VerifyException(f"{self.name}: wrong rank, expected 1, got {buffer}")

    @property
    def failure(self) -> Failure:
        return Failure("csr", self.subject.data)


@irdl_op_definition
class CheckIndexOp(FailingOp):
    """Ends the call where an index i does not satisfy -extent <= i < extent.

    `rt.check_index %ctx, %indices, %extent "ids" : memref<?x?xi64>`
    """

    name = "rt.check_index"

    context = operand_def(ContextType)
    indices = operand_def(MemRefType)
    extent = operand_def(IndexType)
    subject = prop_def(StringAttr)

    assembly_format = "$context `,` $indices `,` $extent $subject attr-dict `:` type($indices)"

    irdl_options = (ParsePropInAttrDict(),)

    def __init__(
        self,
        context: SSAValue | Operation,
        indices: SSAValue | Operation,
        extent: SSAValue | Operation,
        subject: str,
    ):
        super().__init__(
            operands=[context, indices, extent], properties={"subject": StringAttr(subject)}
        )

    def verify_(self) -> None:
        verify_index_buffer(self, memref_type(self.indices))

    @property
    def failure(self) -> Failure:
        return Failure("index", self.subject.data)


@irdl_op_definition
class ClockOp(IRDLOperation):
    """Nanoseconds on a clock that only goes forward.

    `%since = rt.clock : i64`
    """

    name = "rt.clock"

    result = result_def(I64)

    assembly_format = "attr-dict `:` type($result)"

    def __init__(self) -> None:
        super().__init__(result_types=[i64])


@irdl_op_definition
class RecordOp(IRDLOperation):
    """Adds the time since `since` to row `row` of a table, and 1 to the number next to it.

    `rt.record %since, %times 2 : memref<4x2xi64>`
    """

    name = "rt.record"

    since = operand_def(I64)
    times = operand_def(MemRefType)
    row = prop_def(IntegerAttr[I64])

    assembly_format = "$since `,` $times $row attr-dict `:` type($times)"

    irdl_options = (ParsePropInAttrDict(),)

    def __init__(self, since: SSAValue | Operation, times: SSAValue | Operation, row: int):
        super().__init__(operands=[since, times], properties={"row": IntegerAttr(row, i64)})

    def verify_(self) -> None:
        buffer = memref_type(self.times)
        verify_contiguous(self, buffer)
        rows, *columns = buffer.get_shape() or (0,)
        if columns != [RECORD_WORDS] or buffer.element_type != i64:
            expected = f"memref<?x{RECORD_WORDS}xi64>"
            raise VerifyException(explain(self.name, "wrong table", expected=expected, got=buffer))
        if not 0 <= self.row.value.data < rows:
            expected, got = f"below {rows}", self.row.value.data
            raise VerifyException(explain(self.name, "no such row", expected=expected, got=got))


@irdl_op_definition
class YieldOp(IRDLOperation):
    """Ends the body of `rt.parallel_tiles`: `rt.yield`."""

    name = "rt.yield"

    assembly_format = "attr-dict"

    traits = lazy_traits_def(lambda: (IsTerminator(), HasParent(ParallelTilesOp)))

    def __init__(self):
        super().__init__()


class _TilesCanonicalization(HasCanonicalizationPatternsTrait):
    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        return (CaptureConstant(), DropCapture())


@irdl_op_definition
class ParallelTilesOp(IRDLOperation):
    """Runs its body for each tile in [0, count), in any order and on any thread.

    ```
    rt.parallel_tiles %n captures(%x, %y : memref<?xf32>, memref<?xf32>) {
    ^bb0(%tile: index, %a: memref<?xf32>, %b: memref<?xf32>):
      ...
      rt.yield
    }
    ```

    The body uses nothing but the tile and the captures; tiles write disjoint memory.
    """

    name = "rt.parallel_tiles"

    count = operand_def(IndexType)
    captures = var_operand_def()
    body = region_def()

    assembly_format = (
        "$count (`captures` `(` $captures^ `:` type($captures) `)`)? attr-dict-with-keyword $body"
    )

    traits = traits_def(IsolatedFromAbove(), _TilesCanonicalization())

    def __init__(
        self,
        count: SSAValue | Operation,
        captures: Sequence[SSAValue | Operation],
        body: Region | None = None,
    ):
        """`body` is one empty block with the right arguments where it is not given."""
        values = [SSAValue.get(value) for value in captures]
        if body is None:
            body = Region(Block(arg_types=[IndexType(), *(value.type for value in values)]))
        super().__init__(operands=[count, values], regions=[body])

    @property
    def tile(self) -> SSAValue:
        """The argument of the body that is the number of the tile."""
        return self.body.blocks[0].args[0]

    @property
    def captured(self) -> tuple[BlockArgument, ...]:
        """The arguments of the body that stand for the captures, in order."""
        return tuple(self.body.blocks[0].args[1:])

    def verify_(self) -> None:
        if not self.body.blocks:
            raise VerifyException(f"{self.name}: empty body, expected one block")
        expected = (IndexType(), *(value.type for value in self.captures))
        got = tuple(argument.type for argument in self.body.blocks[0].args)
        if expected != got:
            raise VerifyException(
                f"{self.name}: body arguments differ from the captures, expected "
                f"({', '.join(map(str, expected))}), got ({', '.join(map(str, got))})"
            )
        if not any(isinstance(block.last_op, YieldOp) for block in self.body.blocks):
            raise VerifyException(f"{self.name}: body does not end, expected rt.yield")


@irdl_op_definition
class CallTilesOp(IRDLOperation):
    """Calls a function for each tile in [0, count): the tile, then the arguments.

    `rt.call_tiles %n, @dense_tile(%x, %y) : memref<?xf32>, memref<?xf32>`

    `rt.parallel_tiles` after its body has become a function.
    """

    name = "rt.call_tiles"

    count = operand_def(IndexType)
    arguments = var_operand_def()
    callee = prop_def(FlatSymbolRefAttrConstr)

    assembly_format = "$count `,` $callee `(` $arguments `)` attr-dict (`:` type($arguments)^)?"

    traits = traits_def(CalleeExists())

    LEADING_TYPES: ClassVar[tuple[Attribute, ...]] = (IndexType(),)

    def __init__(
        self,
        count: SSAValue | Operation,
        callee: str,
        arguments: Sequence[SSAValue | Operation],
    ):
        super().__init__(operands=[count, arguments], properties={"callee": SymbolRefAttr(callee)})


def verify_contiguous(op: Operation, buffer: MemRefType) -> None:
    """Raise where a buffer has a layout or a memory space: compiled code has neither."""
    if isinstance(buffer.layout, NoneAttr) and isinstance(buffer.memory_space, NoneAttr):
        return
    raise VerifyException(f"{op.name}: buffer is not contiguous, expected no layout, got {buffer}")


def verify_index_buffer(op: Operation, buffer: MemRefType) -> None:
    """Raise where a buffer does not hold i32 or i64."""
    verify_contiguous(op, buffer)
    if buffer.element_type not in (i32, i64):
        raise VerifyException(
            f"{op.name}: wrong element type, expected i32 or i64, got {buffer.element_type}"
        )


def failing_operations(function: Operation) -> list[FailingOp]:
    """The operations that can end a call of `function`; number n is entry n - 1."""
    return [op for op in operations_in(function) if isinstance(op, FailingOp)]


@Exactness.EXACT
class DropTrueCheck(RewritePattern):
    # check(true) ==
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: CheckOp, rewriter: PatternRewriter) -> None:
        value = ConstantLike.get_constant_value(op.condition)
        if not isinstance(value, IntegerAttr) or not value.value.data:
            return
        rewriter.erase(op)


@Exactness.EXACT
class CaptureConstant(RewritePattern):
    # tiles captures(constant c) { use(arg) } == tiles { use(constant c) }
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ParallelTilesOp, rewriter: PatternRewriter) -> None:
        for value, argument in zip(op.captures, op.captured, strict=True):
            owner = value.owner
            if not isinstance(owner, Operation) or not owner.has_trait(ConstantLike):
                continue
            if not argument.uses:
                continue
            inside = owner.clone()
            block = op.body.blocks[0]
            first = block.first_op
            assert first is not None
            block.insert_op_before(inside, first)
            rewriter.replace_all_uses_with(argument, inside.results[0])
            rewriter.notify_op_modified(op)


@Exactness.EXACT
class DropCapture(RewritePattern):
    # tiles captures(a, b, a) { use(x, z) } == tiles captures(a) { use(x, x) }   for b unused
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ParallelTilesOp, rewriter: PatternRewriter) -> None:
        first: dict[SSAValue, SSAValue] = {}
        for value, argument in zip(op.captures, op.captured, strict=True):
            if argument.uses:
                rewriter.replace_all_uses_with(argument, first.setdefault(value, argument))
        kept = list(first)
        if len(kept) == len(op.captures):
            return
        for argument in op.captured:
            if not argument.uses:
                rewriter.erase_block_argument(argument)
        body = op.detach_region(op.body)
        rewriter.replace(op, ParallelTilesOp(op.count, kept, body))


Rt = Dialect(
    "rt",
    [
        ConstantOp,
        ArenaOp,
        CallOp,
        CallPackedOp,
        CheckOp,
        CheckCsrOp,
        CheckIndexOp,
        ParallelTilesOp,
        CallTilesOp,
        ClockOp,
        RecordOp,
        YieldOp,
    ],
    [ContextType],
)
