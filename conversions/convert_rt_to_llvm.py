"""The run time's operations to the LLVM dialect, with `cf` and `func` for control flow.

A check that fails leaves its details in the context and returns its number from the public
function at once. What a function takes from its context, and how its failures are worded, is
left in its attributes: see `dialects/program.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, cf, func, llvm
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    IndexType,
    IntegerAttr,
    IntegerType,
    LocationAttr,
    MemRefType,
    ModuleOp,
    SymbolRefAttr,
    UnrealizedConversionCastOp,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from ..core.budgets import EXACT
from ..core.context import index_bits_of
from ..core.errors import explain
from ..core.refusal import refused
from ..core.typed import integer_type, memref_type
from ..dialects.loop.ops import KernelOp
from ..dialects.program import needs_attributes
from ..dialects.rt import ops as rt
from ..dialects.upstream import ops as upstream
from .convert_func_to_llvm import direct_call
from .to_llvm import checks, clock
from .to_llvm.addresses import number_of_elements
from .to_llvm.checks import Assembler
from .to_llvm.lowering import Lowering, LoweringTable, Parts, lower_module
from .to_llvm.types import NO_FLAGS, PTR, int_attr, numbers_attr, parts_of, words_of

RT = LoweringTable()
"""How to lower each operation of `rt`."""

_WORD = {"alignment": int_attr(8, 64), "ordering": int_attr(0, 64)}
_EQUAL, _NOT_ABOVE = int_attr(0, 64), int_attr(3, 64)
_INDEX = IndexType()
_HOST_BITS = 64
"""The width of the words that callers pass and contexts hold."""


def _word_address(low: Lowering, base: SSAValue, word: int) -> SSAValue:
    if not word:
        return base
    return low.hoist(
        ("word", base, word),
        upstream.GEPOp,
        (base,),
        PTR,
        {
            "rawConstantIndices": numbers_attr(word),
            "elem_type": i64,
            "noWrapFlags": int_attr(0, 32),
        },
    )


# The words of the context do not change during a call, nor do the tables it leads to.
def _word(low: Lowering, base: SSAValue, word: int, type: Attribute = PTR) -> SSAValue:
    address = _word_address(low, base, word)
    return low.hoist(("load", address, type), llvm.LoadOp, (address,), type, _WORD)


@RT.on(rt.ConstantOp)
def lower_constant(constant: rt.ConstantOp, low: Lowering) -> SSAValue:
    table = _word(low, low.value(constant.context), rt.Word.CONSTANTS)
    return _word(low, table, constant.slot.value.data)


@RT.on(rt.ArenaOp)
def lower_arena(arena: rt.ArenaOp, low: Lowering) -> Parts:
    context, wanted = low.value(arena.context), low.value(arena.bytes)
    have = _word(low, context, rt.Word.ARENA_BYTES, i64)
    enough = low.emit(llvm.ICmpOp, (wanted, have), i1, {"predicate": _NOT_ABOVE})
    base = _word(low, context, rt.Word.ARENA)
    _return_unless(low, enough, rt.ARENA_TOO_SMALL, _leave(context, (wanted,)))
    return (base, wanted)


def _leave(context: SSAValue, details: Sequence[SSAValue]) -> Callable[[Assembler], None]:
    """Writes details into the context."""

    def write(at: Assembler) -> None:
        for number, detail in enumerate(details):
            at.store_word(context, rt.Word.DETAILS + number, detail)

    return write


def _return_unless(
    low: Lowering, condition: SSAValue, number: int, leave: Callable[[Assembler], None]
) -> None:
    """End the function with an error number where `condition` is false."""
    op = low.op
    block, region = op.parent, op.parent_region()
    function = op.parent_op()
    if block is None or region is None or not isinstance(function, func.FuncOp):
        low.refuse("not at the top of a function", "func.func", function and function.name)
    if tuple(function.function_type.outputs) != (i32,):
        low.refuse("function cannot return an error number", "-> i32", function.function_type)
    following = op.next_op
    if following is None:
        low.refuse("nothing follows in the block", "a terminator")
    rest = block.split_before(following)
    failed = Block()
    region.insert_block(failed, len(region.blocks))
    low.perform(cf.ConditionalBranchOp(condition, rest, (), failed, ()))
    at = Assembler(failed, op.location)
    leave(at)
    at.perform(func.ReturnOp(at.integer(number, i32)))


def _number(op: rt.FailingOp) -> int:
    """The number of an operation that can fail: its place among those of its function."""
    function = op.parent_op()
    assert function is not None
    return rt.failing_operations(function).index(op) + 1


@RT.on(rt.CheckOp)
def lower_check(check: rt.CheckOp, low: Lowering) -> None:
    details = [low.value(detail) for detail in check.details]
    leave = _leave(low.value(check.context), details)
    _return_unless(low, low.value(check.condition), _number(check), leave)


def _nothing(at: Assembler) -> None:
    """The compiled check left the details itself."""


def _provide(
    low: Lowering, name: str, make: Callable[..., llvm.FuncOp], *types: IntegerType
) -> None:
    if not low.is_declared(name):
        low.add_function(make(*types))


@RT.on(rt.CheckIndexOp)
def lower_check_index(check: rt.CheckIndexOp, low: Lowering) -> None:
    element = integer_type(memref_type(check.indices).element_type)
    _provide(low, f"rt_first_outside_{element}", checks.first_outside, element)
    name = checks.check_index_name(element)
    _provide(low, name, checks.check_index, element)
    address = low.parts(check.indices)[0]
    count, extent = number_of_elements(low, check.indices), low.value(check.extent)
    details = _word_address(low, low.value(check.context), rt.Word.DETAILS)
    good = _call(low, name, (address, count, extent, details))
    _return_unless(low, good, _number(check), _nothing)


@RT.on(rt.CheckCsrOp)
def lower_check_csr(check: rt.CheckCsrOp, low: Lowering) -> None:
    pointer, index = (
        integer_type(memref_type(buffer).element_type) for buffer in (check.indptr, check.indices)
    )
    _provide(low, f"rt_first_outside_{index}", checks.first_outside, index)
    _provide(low, f"rt_first_decrease_{pointer}", checks.first_decrease, pointer)
    name = checks.check_csr_name(pointer, index)
    _provide(low, name, checks.check_csr, pointer, index)
    arguments: list[SSAValue] = []
    for buffer in (check.indptr, check.indices):
        arguments += [low.parts(buffer)[0], number_of_elements(low, buffer)]
    arguments.append(low.value(check.columns))
    arguments.append(_word_address(low, low.value(check.context), rt.Word.DETAILS))
    good = _call(low, name, arguments)
    _return_unless(low, good, _number(check), _nothing)


def _call(low: Lowering, name: str, arguments: Sequence[SSAValue]) -> SSAValue:
    return low.perform(direct_call(SymbolRefAttr(name), arguments, i1)).results[0]


@RT.on(rt.CallOp)
def lower_call(call: rt.CallOp, low: Lowering) -> None:
    low.perform(func.CallOp(call.callee, call.arguments, []))


@RT.on(rt.CallPackedOp)
def lower_call_packed(call: rt.CallPackedOp, low: Lowering) -> None:
    words = [word for buffer in call.operands[1:] for word in _words(low, buffer)]
    properties = {"elem_type": i64, "alignment": int_attr(8, 64)}
    count = low.integer(max(1, len(words)))
    array = low.hoist(call, llvm.AllocaOp, (count,), PTR, properties)
    for number, word in enumerate(words):
        operands = [word, _word_address(low, array, number)]
        low.perform(llvm.StoreOp.create(operands=operands, properties=_WORD))
    table = _word(low, low.value(call.context), rt.Word.FUNCTIONS)
    function = _word(low, table, call.slot.value.data)
    called = llvm.CallOp.create(
        operands=[function, array],
        result_types=[i32],
        properties={
            "fastmathFlags": NO_FLAGS,
            "CConv": llvm.CallingConventionAttr("ccc"),
            "TailCallKind": llvm.TailCallKindAttr(llvm.TailCallKind.NONE),
            "op_bundle_sizes": numbers_attr(),
            "operandSegmentSizes": numbers_attr(2, 0),
        },
    )
    status = low.perform(called).results[0]
    operands = (status, low.integer(0, i32))
    good = low.emit(llvm.ICmpOp, operands, i1, {"predicate": _EQUAL})
    _return_unless(low, good, _number(call), _nothing)


def _words(low: Lowering, buffer: SSAValue) -> list[SSAValue]:
    """The address of a buffer and all its sizes; of an index itself."""
    if not isinstance(buffer.type, MemRefType):
        return [low.value(buffer)]
    address, *symbolic = low.parts(buffer)
    sizes = iter(symbolic)
    shape = memref_type(buffer).get_shape()
    return [
        address,
        *(next(sizes) if size == DYNAMIC_INDEX else low.integer(size) for size in shape),
    ]


@RT.on(rt.ClockOp)
def lower_clock(op: Operation, low: Lowering) -> SSAValue:
    return _now(low)


def _now(low: Lowering) -> SSAValue:
    low.declare(rt.SYSTEM_CLOCK, clock.SYSTEM_CLOCK_TYPE)
    _provide(low, clock.CLOCK, clock.clock)
    return low.perform(direct_call(SymbolRefAttr(clock.CLOCK), [], i64)).results[0]


@RT.on(rt.RecordOp)
def lower_record(record: rt.RecordOp, low: Lowering) -> None:
    passed = low.emit(llvm.SubOp, (_now(low), low.value(record.since)), i64)
    table = low.parts(record.times)[0]
    for word, more in enumerate((passed, low.integer(1))):
        address = _word_address(low, table, record.row.value.data * rt.RECORD_WORDS + word)
        before = low.emit(llvm.LoadOp, (address,), i64, _WORD)
        after = low.emit(llvm.AddOp, (before, more), i64)
        low.perform(llvm.StoreOp.create(operands=[after, address], properties=_WORD))


# tiles(n, f) == for t in 0..n: f(t)
@RT.on(rt.CallTilesOp)
def lower_call_tiles(call: rt.CallTilesOp, low: Lowering) -> None:
    block, region = call.parent, call.parent_region()
    following = call.next_op
    if block is None or region is None or following is None:
        low.refuse("not in a block that goes on", "a terminator after it")
    rest = block.split_before(following)
    head, body = Block(arg_types=[_INDEX]), Block()
    region.insert_block_before(head, rest)
    region.insert_block_before(body, rest)
    zero = arith.ConstantOp(IntegerAttr(0, _INDEX))
    low.perform(zero)
    low.perform(cf.BranchOp(head, zero))
    tile = head.args[0]
    more = arith.CmpiOp(tile, call.count, "slt")
    ends = [more, cf.ConditionalBranchOp(more, body, (), rest, ())]
    one = arith.ConstantOp(IntegerAttr(1, _INDEX))
    step = arith.AddiOp(tile, one)
    run = func.CallOp(call.callee, [tile, *call.arguments], [])
    again = [run, one, step, cf.BranchOp(head, step)]
    for made in (*ends, *again):
        made.location = call.location
    head.add_ops(ends)
    body.add_ops(again)


# tiles(n, f, x) == parallel_tiles(entry of f, &{x}, n)
def _lower_on_threads(call: rt.CallTilesOp, low: Lowering, threads: int) -> None:
    callee = call.callee.root_reference.data
    parts = [part for argument in call.arguments for part in low.parts(argument)]
    entry = f"{callee}_entry"
    if not low.is_declared(entry):
        types = [value.type for value in call.arguments]
        low.add_function(_entry(entry, callee, types, call.location))
    pool = llvm.LLVMFunctionType([PTR, PTR, i64, i64])
    low.declare(rt.PARALLEL_TILES, pool)

    count = low.integer(max(1, sum(words_of(part.type) for part in parts)))
    properties = {"elem_type": i64, "alignment": int_attr(64, 64)}
    context = low.hoist(call, llvm.AllocaOp, (count,), PTR, properties)
    word = 0
    for part in parts:
        operands = [part, _word_address(low, context, word)]
        low.perform(llvm.StoreOp.create(operands=operands, properties=_WORD))
        word += words_of(part.type)
    name = {"global_name": SymbolRefAttr(entry)}
    body = low.hoist(("entry", entry), llvm.AddressOfOp, (), PTR, name)
    arguments = [body, context, low.value(call.count), low.integer(threads)]
    low.perform(direct_call(SymbolRefAttr(rt.PARALLEL_TILES), arguments, None))


def _entry(
    name: str, callee: str, types: Sequence[Attribute], location: LocationAttr
) -> func.FuncOp:
    """A function (context, tile) that takes arguments from the context and calls `callee`."""
    block = Block(arg_types=[PTR, i64])
    context, tile = block.args
    at = Assembler(block, location)
    values = [_cast(at, [tile], _INDEX)]
    word = 0
    for type in types:
        parts: list[SSAValue] = []
        for part in parts_of(type):
            address = at.at(context, at.integer(word), i64)
            parts.append(at.load(address, part, 8))
            word += words_of(part)
        values.append(_cast(at, parts, type))
    at.perform(func.CallOp(callee, values, []))
    at.perform(func.ReturnOp())
    result = func.FuncOp(name, ([PTR, i64], []), Region(block), "private")
    result.location = location
    return result


def _cast(at: Assembler, parts: Sequence[SSAValue], type: Attribute) -> SSAValue:
    if len(parts) == 1 and parts[0].type == type:
        return parts[0]
    return at.emit(UnrealizedConversionCastOp, parts, type)


@dataclass(frozen=True)
class ConvertRtToLlvmPass(ModulePass):
    """Lower the run time's operations to the LLVM dialect, with `cf` and `func` around it.

    Before:
    ```mlir
    func.func @main(%ctx: !rt.context, %ok: i1) -> i32 {
      rt.check %ctx, %ok, "sizes differ"
      %0 = arith.constant 0 : i32
      func.return %0 : i32
    }
    ```
    After:
    ```mlir
    func.func @main(%ctx: !rt.context, %ok: i1) -> i32
        attributes {rt.failures = [{kind = "check", subject = "sizes differ"}]} {
      cf.cond_br %ok, ^bb1, ^bb2
    ^bb1:
      %0 = arith.constant 0 : i32
      func.return %0 : i32
    ^bb2:
      %1 = llvm.mlir.constant(1 : i32) : i32
      func.return %1 : i32
    }
    ```
    Requires: `rt-outline-tiles`, no `scf` around (`convert-scf-to-cf`), `func` not yet converted.
    Leaves: no operation of `rt`.
    """

    name = "convert-rt-to-llvm"
    budget = EXACT

    threads: int = 1
    """How many threads run the tiles of a parallel region; one calls tile after tile."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.threads < 1:
            fact = explain(self.name, "wrong threads", expected="1 or more", got=self.threads)
            raise PassFailedException(fact)
        for kernel in [inner for inner in op.ops if isinstance(inner, KernelOp)]:
            fact, hint = "it is a loop nest still", "run convert-loop-to-scf first"
            raise refused(kernel, fact, expected="a function", hint=hint)
        bits = index_bits_of(ctx)
        if bits != _HOST_BITS:
            for inner in op.walk():
                if inner.name.startswith("rt."):
                    fact = "wrong width of an index"
                    raise refused(inner, fact, expected=f"{_HOST_BITS} bits, as the host", got=bits)
        table = RT
        if self.threads > 1:
            on_threads = functools.partial(_lower_on_threads, threads=self.threads)
            table = RT | {rt.CallTilesOp: on_threads}
        for function in op.ops:
            function.attributes |= needs_attributes(function)
        lower_module(ctx, op, table, ["rt"])
