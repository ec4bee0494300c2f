"""The run time's operations to the LLVM dialect, with `cf` and `func` for control flow.

A check that fails stores its details in the context, and the public function returns its number
at once. Attributes of a function keep what it reads from its context and the texts of its failures:
see `dialects/program.py`.
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
from ..core.walks import operations_in
from ..dialects.loop.ops import KernelOp
from ..dialects.program import needs_attributes
from ..dialects.rt import ops as rt
from .convert_func_to_llvm import plain_call
from .to_llvm import checks
from .to_llvm.addresses import element_address, neighbour, number_of_elements, sizes_of
from .to_llvm.lowering import Lowering, LoweringTable, Parts, lower_module
from .to_llvm.searches import Function, first_decrease, first_outside
from .to_llvm.types import PTR, int_attr, words_of

RT = LoweringTable()
"""How to lower each operation of `rt`."""

_MONOTONIC = 2
"""A number of `ATOMIC_ORDERING_KEYWORDS`, for operations on one word that do not order others."""
_WORD = {"alignment": int_attr(8, 64), "ordering": int_attr(0, 64)}
_ATOMIC_WORD = {"alignment": int_attr(8, 64), "ordering": int_attr(_MONOTONIC, 64)}
_INDEX = IndexType()
_HOST_BITS = 64
"""The width of the words that callers pass and contexts hold."""


def _word_address(low: Lowering, base: SSAValue, word: int) -> SSAValue:
    return neighbour(low, base, word, i64) if word else base


# The words of the context and its tables do not change during a call.
def _word(low: Lowering, base: SSAValue, word: int, type: Attribute = PTR) -> SSAValue:
    address = _word_address(low, base, word)
    return low.hoist(("load", address, type), llvm.LoadOp, (address,), type, _WORD)


def _store_word(low: Lowering, base: SSAValue, word: int, value: SSAValue) -> None:
    operands = [value, _word_address(low, base, word)]
    low.perform(llvm.StoreOp.create(operands=operands, properties=_WORD))


@RT.on(rt.ConstantOp)
def lower_constant(constant: rt.ConstantOp, low: Lowering) -> SSAValue:
    table = _word(low, low.value(constant.context), rt.Word.CONSTANTS)
    return _word(low, table, constant.slot.value.data)


@RT.on(rt.IterationOp)
def lower_iteration(op: rt.IterationOp, low: Lowering) -> SSAValue:
    return low.value(op.context)


@RT.on(rt.ArenaOp)
def lower_arena(arena: rt.ArenaOp, low: Lowering) -> Parts:
    context, wanted = low.value(arena.context), low.value(arena.bytes)
    have = _word(low, context, rt.Word.ARENA_BYTES, i64)
    enough = low.compare("sle", wanted, have)
    base = _word(low, context, rt.Word.ARENA)
    _return_unless(low, enough, rt.ARENA_TOO_SMALL, context, (wanted,))
    return (base, wanted)


@RT.on(rt.SliceOp)
def lower_slice(part: rt.SliceOp, low: Lowering) -> Parts:
    address = element_address(low, part.source, [part.index])
    sizes, kind = sizes_of(low, part.source)[1:], memref_type(part.result)
    symbolic = zip(sizes, kind.get_shape(), strict=True)
    return (address, *(size for size, known in symbolic if known == DYNAMIC_INDEX))


def _return_unless(
    low: Lowering,
    condition: SSAValue,
    number: int,
    context: SSAValue,
    details: Sequence[SSAValue] = (),
) -> None:
    """Return an error number from the function, with details in the context, unless a condition."""
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
    end = func.ReturnOp(low.integer(number, i32))
    end.location = op.location
    failed.add_op(end)
    with low.before(end):
        for word, detail in enumerate(details, rt.Word.DETAILS):
            _store_word(low, context, word, detail)
        around = rt.iterations_around(op) if isinstance(op, rt.FailingOp) else []
        for word, iteration in enumerate(around, rt.Word.ITERATIONS):
            _store_word(low, context, word, low.value(iteration.number))


def _number(op: rt.FailingOp) -> int:
    """The number of an operation that can fail, counted in its function from 1."""
    function = op.parent_op()
    assert function is not None
    return rt.failing_operations(function).index(op) + 1


@RT.on(rt.CheckOp)
def lower_check(check: rt.CheckOp, low: Lowering) -> None:
    context, details = low.value(check.context), [low.value(d) for d in check.details]
    _return_unless(low, low.value(check.condition), _number(check), context, details)


def _provide(low: Lowering, *functions: Function) -> str:
    """Add copies of functions that the module does not have; return the name of the last one."""
    for function in functions:
        if not low.is_declared(function.sym_name.data):
            new = function.clone()
            low.add_symbol(new)
            with low.before(low.op):
                low.walk_function(new.body)
    return functions[-1].sym_name.data


@RT.on(rt.CheckIndexOp)
def lower_check_index(check: rt.CheckIndexOp, low: Lowering, divided: bool = False) -> None:
    element = integer_type(memref_type(check.indices).element_type)
    _provide(low, *first_outside(element, divided))
    made = checks.check_place(element) if check.from_front else checks.check_index(element)
    name = _provide(low, made)
    _call_check(low, check, name, [_row(low, check.indices), check.extent])


@RT.on(rt.CheckOffsetsOp)
def lower_check_offsets(check: rt.CheckOffsetsOp, low: Lowering, divided: bool = False) -> None:
    element = integer_type(memref_type(check.offsets).element_type)
    _provide(low, *first_outside(element, divided))
    _provide(low, *first_decrease(element, divided))
    name = _provide(low, checks.check_offsets(element))
    _call_check(low, check, name, [_row(low, check.offsets), check.extent])


@RT.on(rt.CheckCsrOp)
def lower_check_csr(check: rt.CheckCsrOp, low: Lowering, divided: bool = False) -> None:
    arrays = check.indptr, check.indices
    pointer, index = (integer_type(memref_type(array).element_type) for array in arrays)
    _provide(low, *first_outside(index, divided))
    _provide(low, *first_decrease(pointer, divided))
    name = _provide(low, checks.check_csr(pointer, index))
    _call_check(low, check, name, [*(_row(low, array) for array in arrays), check.columns])


# On threads, the arrays of these checks are searched in tiles.
_CHECKS: dict[type[Operation], Callable[..., SSAValue | Parts | None]] = {
    rt.CheckIndexOp: lower_check_index,
    rt.CheckOffsetsOp: lower_check_offsets,
    rt.CheckCsrOp: lower_check_csr,
}


def _call_check(
    low: Lowering,
    check: rt.CheckIndexOp | rt.CheckOffsetsOp | rt.CheckCsrOp,
    name: str,
    arguments: Sequence[SSAValue],
) -> None:
    """Call a compiled check, which stores its details itself."""
    context = low.value(check.context)
    address = _word_address(low, context, rt.Word.DETAILS)
    details = low.emit(UnrealizedConversionCastOp, (address,), MemRefType(_INDEX, [3]))
    good = low.perform(func.CallOp(name, [*arguments, details], [i1])).results[0]
    _return_unless(low, good, _number(check), context)


def _row(low: Lowering, buffer: SSAValue) -> SSAValue:
    """A buffer, collapsed to one dimension."""
    parts = low.parts(buffer)[0], number_of_elements(low, buffer)
    row = MemRefType(memref_type(buffer).element_type, [DYNAMIC_INDEX])
    return low.emit(UnrealizedConversionCastOp, parts, row)


@RT.on(rt.CallOp)
def lower_call(call: rt.CallOp, low: Lowering) -> None:
    low.perform(func.CallOp(call.callee, call.arguments, []))


@RT.on(rt.CallPackedOp)
def lower_call_packed(call: rt.CallPackedOp, low: Lowering) -> None:
    words: list[SSAValue] = []
    for passed in call.operands[1:]:
        words.append(low.value(passed))
        words += sizes_of(low, passed) if isinstance(passed.type, MemRefType) else ()
    array, context = _on_stack(low, words, alignment=8), low.value(call.context)
    table = _word(low, context, rt.Word.FUNCTIONS)
    function = _word(low, table, call.slot.value.data)
    status = low.perform(plain_call(None, [function, array], i32)).results[0]
    good = low.compare("eq", status, low.integer(0, i32))
    _return_unless(low, good, _number(call), context)


def _on_stack(low: Lowering, values: Sequence[SSAValue], alignment: int) -> SSAValue:
    """The address of an array on the stack that holds values, each from a word on."""
    count = low.integer(max(1, sum(words_of(value.type) for value in values)))
    properties = {"elem_type": i64, "alignment": int_attr(alignment, 64)}
    array = low.hoist(low.op, llvm.AllocaOp, (count,), PTR, properties)
    word = 0
    for value in values:
        _store_word(low, array, word, value)
        word += words_of(value.type)
    return array


@RT.on(rt.ClockOp)
def lower_clock(op: Operation, low: Lowering) -> SSAValue:
    return _now(low)


def _now(low: Lowering) -> SSAValue:
    low.declare(rt.SYSTEM_CLOCK, llvm.LLVMFunctionType([i32, PTR], i32))
    clock = SymbolRefAttr(_provide(low, checks.clock()))
    return low.perform(plain_call(clock, [], i64)).results[0]


@RT.on(rt.RecordOp)
def lower_record(record: rt.RecordOp, low: Lowering) -> None:
    passed = low.emit(llvm.SubOp, (_now(low), low.value(record.since)), i64)
    table = low.parts(record.times)[0]
    for word, more in enumerate((passed, low.integer(1))):
        place = record.row.value.data * rt.RECORD_WORDS + word
        before = low.emit(llvm.LoadOp, (_word_address(low, table, place),), i64, _WORD)
        _store_word(low, table, place, low.emit(llvm.AddOp, (before, more), i64))


# tiles(n, f) == for t in 0..n: f(t)
@RT.on(rt.CallTilesOp)
def lower_call_tiles(call: rt.CallTilesOp, low: Lowering) -> None:
    block, region = call.parent, call.parent_region()
    following = call.next_op
    if block is None or region is None or following is None:
        low.refuse("not in a block that goes on", "a terminator after it")
    rest = block.split_before(following)
    turned: SSAValue | None = None
    if call.alternating is not None:
        turned = low.compare("ne", _turn(call, low), low.integer(0, i64))
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
    if turned is not None:
        mirrored = arith.SubiOp(call.count, step)
        chosen = arith.SelectOp(turned, mirrored, tile)
        run.operands[0] = chosen.result
        again = [one, step, mirrored, chosen, run, again[-1]]
    for made in (*ends, *again):
        made.location = call.location
    head.add_ops(ends)
    body.add_ops(again)


def _turn(call: rt.CallTilesOp, low: Lowering) -> SSAValue:
    """0 where alternating tiles run forwards now, 1 where they run backwards."""
    name = f"{call.callee.root_reference.data}_turn"
    if not low.is_declared(name):
        low.add_symbol(llvm.GlobalOp(i64, name, "internal", value=IntegerAttr(0, i64)))
    place = {"global_name": SymbolRefAttr(name)}
    address = low.hoist(("turn", name), llvm.AddressOfOp, (), PTR, place)
    # Several callers at once may take the same turn: any order is right, and the other one still
    # follows. xDSL's text of a store leaves out that it is atomic.
    turn = low.emit(llvm.LoadOp, (address,), i64, _ATOMIC_WORD)
    operands = [low.emit(llvm.XOrOp, (turn, low.integer(1, i64)), i64), address]
    low.perform(llvm.StoreOp.create(operands=operands, properties=_ATOMIC_WORD))
    return turn


# tiles(n, f, x) == parallel_tiles(entry of f, &{x}, n)
def _lower_on_threads(call: rt.CallTilesOp, low: Lowering, threads: int) -> None:
    callee = call.callee.root_reference.data
    parts = [part for argument in call.arguments for part in low.parts(argument)]
    entry = f"{callee}_entry"
    if not low.is_declared(entry):
        _add_entry(low, entry, callee, [value.type for value in call.arguments])
    order = low.integer(rt.TileOrder.ANY, i64)
    if call.alternating is not None:
        forwards = low.integer(rt.TileOrder.FORWARDS, i64)
        order = low.emit(llvm.AddOp, (_turn(call, low), forwards), i64)
    low.declare(rt.PARALLEL_TILES, llvm.LLVMFunctionType([PTR, PTR, i64, i64, i64]))
    context = _on_stack(low, parts, alignment=64)
    name = {"global_name": SymbolRefAttr(entry)}
    body = low.hoist(("entry", entry), llvm.AddressOfOp, (), PTR, name)
    arguments = [body, context, low.value(call.count), low.integer(threads), order]
    low.perform(plain_call(SymbolRefAttr(rt.PARALLEL_TILES), arguments, None))


def _add_entry(low: Lowering, name: str, callee: str, types: Sequence[Attribute]) -> None:
    """Add a function (context, tile) that reads arguments from the context and calls `callee`."""
    end = func.ReturnOp()
    end.location = low.op.location
    block = Block([end], arg_types=[PTR, i64])
    context, tile = block.args
    function = func.FuncOp(name, ([PTR, i64], []), Region(block), "private")
    function.location = low.op.location
    low.add_symbol(function)
    with low.function(block), low.before(end):
        values, word = [_cast(low, [tile], _INDEX)], 0
        for type in types:
            parts: list[SSAValue] = []
            for part in low.parts_of(type):
                parts.append(_word(low, context, word, part))
                word += words_of(part)
            values.append(_cast(low, parts, type))
        low.perform(func.CallOp(callee, values, []))


def _cast(low: Lowering, parts: Sequence[SSAValue], type: Attribute) -> SSAValue:
    if len(parts) == 1 and parts[0].type == type:
        return parts[0]
    return low.emit(UnrealizedConversionCastOp, parts, type)


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
      %0 = llvm.mlir.constant(1 : i32) : i32
      cf.cond_br %ok, ^bb1, ^bb2
    ^bb1:
      %1 = arith.constant 0 : i32
      func.return %1 : i32
    ^bb2:
      func.return %0 : i32
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
            for inner in operations_in(op):
                if inner.name.startswith("rt."):
                    fact = "wrong width of an index"
                    raise refused(inner, fact, expected=f"{_HOST_BITS} bits, as the host", got=bits)
        table = RT
        if self.threads > 1:
            on_threads = functools.partial(_lower_on_threads, threads=self.threads)
            divided = {op: functools.partial(lower, divided=True) for op, lower in _CHECKS.items()}
            table = RT | {rt.CallTilesOp: on_threads} | divided
        for function in op.ops:
            function.attributes |= needs_attributes(function)
        lower_module(ctx, op, table, ["rt"])
