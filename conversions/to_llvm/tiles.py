"""Calls of tiles, one after the other or on threads."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, cf, func, llvm
from xdsl.dialects.builtin import (
    IndexType,
    IntegerAttr,
    SymbolRefAttr,
    UnrealizedConversionCastOp,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ...core.building.creation import created
from ...core.dtypes import byte_size
from ...core.ir.symbols import symbol_of
from ...core.ir.typed import function_around, memref_type, owned
from ...dialects.program import KERNEL, PARTS, SHARED
from ...dialects.rt import ops as rt
from ...dialects.rt.abi import ALIGNMENT
from ...dialects.upstream import ops as upstream
from .addresses import element_address, load, neighbour, offset_properties
from .calls import plain_call
from .lowering import Lowering
from .types import PTR, alignment, int_attr, stored, words_of
from .words import ATOMIC_WORD, as_word, on_stack, word_at

_INDEX = IndexType()


# tiles(n, f) == for t in 0..n: f(t)
def lower_call_tiles(call: rt.CallTilesOp, low: Lowering) -> None:
    """Call tile after tile, or launch them on a device."""
    together = _is_in_kernel(call)
    if call.device is not None and not together:
        lower_launch(call, low)
        return
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
    # In a block of n threads of a device, each runs every n-th tile, from its own number on.
    first, by = (_of_block(low, name) if together else None for name in (rt.THREAD, rt.THREADS))
    zero = arith.ConstantOp(IntegerAttr(0, _INDEX))
    if first is None:
        low.perform(zero)
    low.perform(cf.BranchOp(head, zero if first is None else first))
    tile = head.args[0]
    more = arith.CmpiOp(tile, call.count, "slt")
    ends = [more, cf.ConditionalBranchOp(more, body, (), rest, ())]
    one = arith.ConstantOp(IntegerAttr(1, _INDEX))
    step = arith.AddiOp(tile, one if by is None else by)
    run = func.CallOp(call.callee, [tile, *call.arguments], [])
    again = [run, *([one] if by is None else []), step, cf.BranchOp(head, step)]
    if turned is not None:
        mirrored = arith.SubiOp(call.count, step)
        chosen = arith.SelectOp(turned, mirrored, tile)
        run.operands[0] = chosen.result
        again = [one, step, mirrored, chosen, run, again[-1]]
    for made in (*ends, *again):
        made.location = call.location
    head.add_ops(ends)
    body.add_ops(again)


def _is_in_kernel(op: Operation) -> bool:
    function = function_around(op)
    return function is not None and KERNEL in function.attributes


def _of_block(low: Lowering, name: str) -> SSAValue:
    """The result of a function of the run time about the threads of a block."""
    low.declare(name, llvm.LLVMFunctionType([], i64))
    number = low.perform(plain_call(SymbolRefAttr(name), [], i64)).results[0]
    return _cast(low, [number], _INDEX)


# barrier == barrier()
def lower_barrier(barrier: rt.BarrierOp, low: Lowering) -> None:
    """Wait for the other threads of the block, if there is one."""
    if not _is_in_kernel(barrier):
        return
    low.declare(rt.BARRIER, llvm.LLVMFunctionType([]))
    low.perform(plain_call(SymbolRefAttr(rt.BARRIER), [], None))


# shuffle(p, t) == p[t]
def lower_shuffle(shuffle: rt.ShuffleOp, low: Lowering) -> SSAValue:
    """Read what another thread of the warp has, in words of 4 bytes."""
    if PARTS not in shuffle.attributes:
        return load(low, shuffle.parts, [shuffle.thread], shuffle.result.type)
    (base,), thread = low.parts(shuffle.parts), low.value(shuffle.thread)
    kind = memref_type(shuffle.parts)
    element = stored(kind.element_type, low.index)
    place = low.emit(upstream.GEPOp, (base, thread), PTR, offset_properties(None, element))
    owned(place, upstream.GEPOp).attributes[PARTS] = shuffle.attributes[PARTS]
    low.declare(rt.SHUFFLE, llvm.LLVMFunctionType([PTR, i64], i32))
    words: list[SSAValue] = []
    for number in range(byte_size(element) // 4):
        address = neighbour(low, place, number, i32) if number else place
        call = plain_call(SymbolRefAttr(rt.SHUFFLE), [address, as_word(low, thread)], i32)
        words.append(low.perform(call).results[0])
    bits = words[0]
    if len(words) > 1:
        first, second = (low.emit(llvm.ZExtOp, (word,), i64) for word in words)
        shifted = low.emit(llvm.ShlOp, (second, low.integer(32, i64)), i64)
        bits = low.emit(llvm.OrOp, (first, shifted), i64)
    return bits if bits.type == element else low.emit(llvm.BitcastOp, (bits,), element)


# copy(x, y) == y[0 : n] = x[0 : n]
def lower_copy_async(copy: rt.CopyAsyncOp, low: Lowering) -> None:
    """Begin a copy by a thread of a device; elsewhere, copy element by element."""
    source = element_address(low, copy.source, copy.indices)
    target = element_address(low, copy.target, copy.places)
    if SHARED in copy.attributes:
        low.declare(rt.COPY, llvm.LLVMFunctionType([PTR, PTR]))
        low.perform(plain_call(SymbolRefAttr(rt.COPY), [target, source], None))
        return
    element = stored(memref_type(copy.source).element_type, low.index)
    access = {"alignment": alignment(element, low.index), "ordering": int_attr(0, 64)}
    for number in range(copy.count):
        places = [neighbour(low, p, number, element) if number else p for p in (source, target)]
        value = low.emit(llvm.LoadOp, places[:1], element, access)
        low.perform(created(llvm.StoreOp, [value, places[1]], properties=access))


def _turn(call: rt.CallTilesOp, low: Lowering) -> SSAValue:
    """0 where alternating tiles run forwards now, 1 where they run backwards."""
    name = f"{call.callee.root_reference.data}_turn"
    if not low.is_declared(name):
        low.add_symbol(llvm.GlobalOp(i64, name, "internal", value=IntegerAttr(0, i64)))
    place = {"global_name": SymbolRefAttr(name)}
    address = low.hoist(("turn", name), llvm.AddressOfOp, (), PTR, place)
    # Several callers at once may take the same turn: any order is right, and the other one still
    # follows. xDSL's text of a store leaves out that it is atomic.
    turn = low.emit(llvm.LoadOp, (address,), i64, ATOMIC_WORD)
    operands = [low.emit(llvm.XOrOp, (turn, low.integer(1, i64)), i64), address]
    low.perform(llvm.StoreOp.create(operands=operands, properties=ATOMIC_WORD))
    return turn


# tiles(n, f, x) == launch(number of f, &{x}, n)
def lower_launch(call: rt.CallTilesOp, low: Lowering) -> None:
    """Have the threads of a device call the tiles."""
    kernels = [symbol_of(op) for op in low.module.ops if KERNEL in op.attributes]
    callee = call.callee.root_reference.data
    if callee not in kernels:
        low.refuse(f"@{callee} is not for the threads of a device", f"a function with {KERNEL}")
    parts = [part for argument in call.arguments for part in low.parts(argument)]
    low.declare(rt.LAUNCH, llvm.LLVMFunctionType([i64, PTR, i64]))
    number = low.integer(kernels.index(callee), i64)
    arguments = [number, on_stack(low, parts, alignment=8), low.value(call.count)]
    low.perform(plain_call(SymbolRefAttr(rt.LAUNCH), arguments, None))


# tiles(n, f, x) == parallel_tiles(entry of f, &{x}, n)
def lower_on_threads(call: rt.CallTilesOp, low: Lowering, threads: int) -> None:
    """Have threads of the run time call the tiles."""
    if call.device is not None:
        lower_call_tiles(call, low)
        return
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
    context = on_stack(low, parts, alignment=ALIGNMENT)
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
                parts.append(word_at(low, context, word, part))
                word += words_of(part)
            values.append(_cast(low, parts, type))
        low.perform(func.CallOp(callee, values, []))


def _cast(low: Lowering, parts: Sequence[SSAValue], type: Attribute) -> SSAValue:
    if len(parts) == 1 and parts[0].type == type:
        return parts[0]
    return low.emit(UnrealizedConversionCastOp, parts, type)
