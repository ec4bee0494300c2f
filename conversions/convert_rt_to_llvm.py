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
from xdsl.dialects import cf, func, llvm
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    MemRefType,
    ModuleOp,
    SymbolRefAttr,
    UnrealizedConversionCastOp,
    i1,
    i32,
    i64,
)
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from ..core.errors import explain
from ..core.ir.context import index_bits_of, known_to
from ..core.ir.refusal import refused
from ..core.ir.typed import integer_type, memref_type, owned
from ..core.pipelines.budgets import EXACT
from ..core.threads import SOME_THREADS, are_threads
from ..dialects.loop.ops import KernelOp
from ..dialects.program import PARTS, needs_attributes
from ..dialects.rt import ops as rt
from .to_llvm import checks
from .to_llvm.addresses import bytes_of, element_address, number_of_elements, sizes_of
from .to_llvm.calls import plain_call
from .to_llvm.lowering import Lowering, LoweringTable, Parts, lower_module
from .to_llvm.searches import Function, first_decrease, first_outside
from .to_llvm.tiles import (
    lower_barrier,
    lower_call_tiles,
    lower_copy_async,
    lower_on_threads,
    lower_shuffle,
)
from .to_llvm.types import PTR
from .to_llvm.words import WORD, as_word, on_stack, store_word, word_address, word_at

RT = LoweringTable()
"""How to lower each operation of `rt`."""
RT.on(rt.CallTilesOp)(lower_call_tiles)
RT.on(rt.BarrierOp)(lower_barrier)
RT.on(rt.ShuffleOp)(lower_shuffle)
RT.on(rt.CopyAsyncOp)(lower_copy_async)

_WORD_BITS = 64
"""The width of the words that contexts hold."""


@RT.on(rt.ConstantOp)
def lower_constant(constant: rt.ConstantOp, low: Lowering) -> SSAValue:
    table = word_at(low, low.value(constant.context), rt.Word.CONSTANTS)
    return word_at(low, table, constant.slot.value.data)


@RT.on(rt.IterationOp)
def lower_iteration(op: rt.IterationOp, low: Lowering) -> SSAValue:
    return low.value(op.context)


@RT.on(rt.ArenaOp)
def lower_arena(arena: rt.ArenaOp, low: Lowering) -> Parts:
    context, wanted = low.value(arena.context), low.value(arena.bytes)
    have = word_at(low, context, rt.Word.ARENA_BYTES, i64)
    enough = low.compare("sle", as_word(low, wanted), have)
    base, asked = word_at(low, context, rt.Word.ARENA), wanted
    if arena.growing is not None:
        asked = as_word(low, wanted)
        half = low.emit(llvm.LShrOp, (asked, low.integer(1, i64)), i64)
        asked = low.emit(llvm.AddOp, (asked, half), i64)
    _return_unless(low, enough, rt.ARENA_TOO_SMALL, context, (asked,))
    return (base, wanted)


@RT.on(rt.SliceOp)
def lower_slice(part: rt.SliceOp, low: Lowering) -> Parts:
    address = element_address(low, part.source, [part.index])
    if PARTS in part.attributes:
        owned(address, llvm.GEPOp).attributes[PARTS] = part.attributes[PARTS]
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
            store_word(low, context, word, detail)
        around = rt.iterations_around(op) if isinstance(op, rt.FailingOp) else []
        for word, iteration in enumerate(around, rt.Word.ITERATIONS):
            store_word(low, context, word, low.value(iteration.number))


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
    made = (checks.check_place if check.from_front else checks.check_index)(element, low.index)
    name = _provide(low, made)
    _call_check(low, check, name, [_row(low, check.indices), check.extent])


@RT.on(rt.CheckOffsetsOp)
def lower_check_offsets(check: rt.CheckOffsetsOp, low: Lowering, divided: bool = False) -> None:
    element = integer_type(memref_type(check.offsets).element_type)
    _provide(low, *first_outside(element, divided))
    _provide(low, *first_decrease(element, divided))
    name = _provide(low, checks.check_offsets(element, low.index))
    _call_check(low, check, name, [_row(low, check.offsets), check.extent])


@RT.on(rt.CheckCsrOp)
def lower_check_csr(check: rt.CheckCsrOp, low: Lowering, divided: bool = False) -> None:
    arrays = check.indptr, check.indices
    pointer, index = (integer_type(memref_type(array).element_type) for array in arrays)
    _provide(low, *first_outside(index, divided))
    _provide(low, *first_decrease(pointer, divided))
    name = _provide(low, checks.check_csr(pointer, index, low.index))
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
    address = word_address(low, context, rt.Word.DETAILS)
    details = low.emit(UnrealizedConversionCastOp, (address,), MemRefType(i64, [3]))
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


# to_device(x) == stepwell_to_device(&x, bytes of x)
@RT.on(rt.ToDeviceOp, rt.ToHostOp)
def lower_transfer(copy: rt.ToDeviceOp | rt.ToHostOp, low: Lowering) -> None:
    """Have the run time copy a buffer between the host and the device."""
    name = rt.TO_DEVICE if isinstance(copy, rt.ToDeviceOp) else rt.TO_HOST
    low.declare(name, llvm.LLVMFunctionType([PTR, i64]))
    arguments = [low.parts(copy.buffer)[0], as_word(low, bytes_of(low, copy.buffer))]
    low.perform(plain_call(SymbolRefAttr(name), arguments, None))


def _nothing(op: Operation, low: Lowering) -> None:
    """Leave an operation out."""


@RT.on(rt.CallPackedOp)
def lower_call_packed(call: rt.CallPackedOp, low: Lowering) -> None:
    words: list[SSAValue] = []
    for passed in call.operands[1:]:
        words.append(low.value(passed))
        words += sizes_of(low, passed) if isinstance(passed.type, MemRefType) else ()
    array, context = on_stack(low, words, alignment=8), low.value(call.context)
    table = word_at(low, context, rt.Word.FUNCTIONS)
    function = word_at(low, table, call.slot.value.data)
    status = low.perform(plain_call(None, [function, array], i32)).results[0]
    good = low.compare("eq", status, low.integer(0, i32))
    _return_unless(low, good, _number(call), context)


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
    for word, more in enumerate((passed, low.integer(1, i64))):
        place = record.row.value.data * rt.RECORD_WORDS + word
        before = low.emit(llvm.LoadOp, (word_address(low, table, place),), i64, WORD)
        store_word(low, table, place, low.emit(llvm.AddOp, (before, more), i64))


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
    Requires: functions of `func`.
    Order: after `rt-outline-tiles`, which makes functions of parallel regions; after
        `convert-scf-to-cf`, as none of its operations is inside of `scf`; before `convert-to-llvm`,
        which converts `func`.
    Leaves: no operation of `rt`.
    """

    name = "convert-rt-to-llvm"
    budget = EXACT

    threads: int = 1
    """How many threads run the tiles of a parallel region; one calls tile after tile."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if not are_threads(self.threads):
            fact = explain(self.name, "wrong threads", expected=SOME_THREADS, got=self.threads)
            raise PassFailedException(fact)
        if self.threads > 1 and (bits := index_bits_of(ctx)) != _WORD_BITS:
            fact = f"no threads on a target with addresses of {bits} bits"
            raise PassFailedException(explain(self.name, fact, expected="threads=1"))
        for kernel in [inner for inner in op.ops if isinstance(inner, KernelOp)]:
            fact, hint = "it is a loop nest still", "run convert-loop-to-scf first"
            raise refused(kernel, fact, expected="a function", hint=hint)
        table = RT
        if self.threads > 1:
            on_threads = functools.partial(lower_on_threads, threads=self.threads)
            divided = {op: functools.partial(lower, divided=True) for op, lower in _CHECKS.items()}
            table = RT | {rt.CallTilesOp: on_threads} | divided
        target = known_to(ctx).target
        if target is not None and target.device is None:
            # Kernels for a device run on the host, which has all memory.
            table = table | dict.fromkeys((rt.ToDeviceOp, rt.ToHostOp), _nothing)
        for function in op.ops:
            function.attributes |= needs_attributes(function)
        lower_module(ctx, op, table, ["rt"])
