"""Operations on machine vectors to LLVM instructions.

A machine vector has one fixed dimension. Accesses are aligned like an element of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.context import Context
from xdsl.dialects import arith, llvm, vector
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IntegerAttr,
    ModuleOp,
    VectorType,
    i32,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass

from ..core.ir.typed import vector_type
from ..core.pipelines.budgets import SUMS
from ..dialects import x86vector
from ..dialects.upstream import ops as upstream
from .to_llvm.addresses import (
    element_address,
    from_memory,
    in_memory,
    load,
    offset_properties,
    store,
    store_lane,
    to_memory,
)
from .to_llvm.lowering import Lowering, LoweringTable, lower_module
from .to_llvm.types import (
    NO_FASTMATH,
    PTR,
    alignment,
    dense,
    element_of,
    fastmath_of,
    lanes_of,
    numbers_attr,
    stored,
    vector_of,
)

VECTOR = LoweringTable()
"""How to lower each operation of `vector` and `x86vector`."""


def _lanes(low: Lowering, type: Attribute) -> int:
    lanes = lanes_of(type)
    if lanes is None:
        low.refuse("not a machine vector", "one fixed dimension", type)
    return lanes


def _masked(low: Lowering, type: Attribute) -> dict[str, Attribute]:
    return {"alignment": alignment(element_of(type), low.index, 32)}


@VECTOR.on(vector.LoadOp)
def lower_load(op: vector.LoadOp, low: Lowering) -> SSAValue:
    _lanes(low, op.result.type)
    return load(low, op.base, op.indices, op.result.type)


@VECTOR.on(vector.StoreOp)
def lower_store(op: vector.StoreOp, low: Lowering) -> None:
    _lanes(low, op.vector.type)
    store(low, op.vector, op.base, op.indices)


@VECTOR.on(vector.MaskedLoadOp)
def lower_maskedload(load: vector.MaskedLoadOp, low: Lowering) -> SSAValue:
    address = element_address(low, load.base, load.indices)
    return _masked_load(load, low, upstream.MaskedLoadOp, address)


@VECTOR.on(upstream.GatherOp)
def lower_gather(gather: upstream.GatherOp, low: Lowering) -> SSAValue:
    type = gather.result.type
    base = element_address(low, gather.base, gather.indices)
    element = stored(element_of(type), low.index)
    operands = (base, low.value(gather.offsets))
    pointers, properties = vector_of(PTR, _lanes(low, type)), offset_properties(None, element)
    addresses = low.emit(upstream.GEPOp, operands, pointers, properties)
    return _masked_load(gather, low, upstream.MaskedGatherOp, addresses)


def _masked_load(
    op: vector.MaskedLoadOp | upstream.GatherOp,
    low: Lowering,
    kind: type[Operation],
    address: SSAValue,
) -> SSAValue:
    type = op.result.type
    _lanes(low, type)
    operands = (address, low.value(op.mask), to_memory(low, low.value(op.pass_thru)))
    loaded = low.emit(kind, operands, in_memory(low, type), _masked(low, type))
    return from_memory(low, loaded, type)


@VECTOR.on(vector.MaskedStoreOp)
def lower_maskedstore(store: vector.MaskedStoreOp, low: Lowering) -> None:
    type = store.value_to_store.type
    _lanes(low, type)
    address = element_address(low, store.base, store.indices)
    value, mask = to_memory(low, low.value(store.value_to_store)), low.value(store.mask)
    lane = _only_lane(mask)
    if lane is not None:
        store_lane(low, value, lane, address, element_of(type))
        return
    operands = [value, address, mask]
    low.perform(upstream.MaskedStoreOp.create(operands=operands, properties=_masked(low, type)))


# Of a truncation and a masked store of one lane LLVM 22 makes a store of the type before the
# truncation, which writes behind the lane (llvm-project 179489). One element is no vector anyway.
def _only_lane(mask: SSAValue) -> int | None:
    """The one lane that a constant mask sets; None for others."""
    op = mask.owner
    if not isinstance(op, llvm.ConstantOp | arith.ConstantOp):
        return None
    if not isinstance(op.value, DenseIntOrFPElementsAttr):
        return None
    lanes = [lane for lane, is_set in enumerate(op.value.get_values()) if is_set]
    return lanes[0] if len(lanes) == 1 else None


# create_mask(n)[lane] == lane < n == clamp(n, 0, lanes) > lane, which needs 32 bits only
@VECTOR.on(vector.CreateMaskOp)
def lower_create_mask(op: Operation, low: Lowering) -> SSAValue:
    type = op.results[0].type
    lanes = _lanes(low, type)
    wide = vector_of(i32, lanes)
    count = low.value(op.operands[0])
    known = low.known_integer(count)
    if known is not None:
        mask = [int(lane < known) for lane in range(lanes)]
        return low.constant(dense(type, mask), type)
    count = low.emit(upstream.INTRINSICS["smax"], (count, low.integer(0)), low.index)
    count = low.emit(upstream.INTRINSICS["smin"], (count, low.integer(lanes)), low.index)
    if low.index != i32:
        count = low.emit(llvm.TruncOp, (count,), i32)
    counts = _splat(low, count, wide)
    numbers = low.constant(dense(wide, range(lanes)), wide)
    return low.compare("sgt", counts, numbers)


@VECTOR.on(vector.BroadcastOp, upstream.BroadcastOp)
def lower_broadcast(op: Operation, low: Lowering) -> SSAValue:
    (target,) = low.parts_of(op.results[0].type)
    lanes = _lanes(low, target)
    value = low.value(op.operands[0])
    if not isinstance(value.type, VectorType):
        return _splat(low, value, cast(VectorType, target))
    if value.type == target:
        return value
    if _lanes(low, value.type) != 1:
        low.refuse("cannot stretch", target, value.type)
    return _shuffle(low, value, value, [0] * lanes)


def _splat(low: Lowering, value: SSAValue, type: VectorType) -> SSAValue:
    owner = value.owner
    if isinstance(owner, llvm.ConstantOp) and isinstance(owner.value, IntegerAttr | FloatAttr):
        return low.number(owner.value.value.data, type)
    poison = low.hoist(("poison", type), upstream.PoisonOp, (), type)
    first = low.emit(llvm.InsertElementOp, (poison, value, low.integer(0)), type)
    return _shuffle(low, first, poison, [0] * type.get_shape()[0])


def _shuffle(low: Lowering, one: SSAValue, other: SSAValue, mask: Sequence[int]) -> SSAValue:
    type = vector_of(vector_type(one).element_type, len(mask))
    properties = {"mask": numbers_attr(*mask)}
    return low.emit(llvm.ShuffleVectorOp, (one, other), type, properties)


@VECTOR.on(vector.ExtractOp)
def lower_extract(extract: vector.ExtractOp, low: Lowering) -> SSAValue:
    _lanes(low, extract.vector.type)
    value = low.value(extract.vector)
    if not extract.static_position.get_values():
        return value
    operands = (value, _position(low, extract))
    return low.emit(upstream.ExtractElementOp, operands, low.parts_of(extract.result.type)[0])


@VECTOR.on(vector.InsertOp)
def lower_insert(insert: vector.InsertOp, low: Lowering) -> SSAValue:
    _lanes(low, insert.dest.type)
    if not insert.static_position.get_values():
        return low.value(insert.source)
    target = low.value(insert.dest)
    operands = (target, low.value(insert.source), _position(low, insert))
    return low.emit(llvm.InsertElementOp, operands, target.type)


def _position(low: Lowering, op: vector.ExtractOp | vector.InsertOp) -> SSAValue:
    (position,) = op.static_position.get_values()
    if position == DYNAMIC_INDEX:
        return low.value(op.dynamic_position[0])
    return low.integer(position)


@VECTOR.on(vector.FMAOp)
def lower_fma(op: Operation, low: Lowering) -> SSAValue:
    _lanes(low, op.results[0].type)
    operands = [low.value(operand) for operand in op.operands]
    return low.emit(llvm.FMAOp, operands, op.results[0].type, NO_FASTMATH)


# With an accumulator, fadd and fmul start from it; the others join it at the end.
_FLOAT_REDUCTIONS: dict[str, tuple[str, type[Operation]]] = {
    "maxnumf": ("vector.reduce.fmax", llvm.VectorFMaxOp),
    "minnumf": ("vector.reduce.fmin", llvm.VectorFMinOp),
    "maximumf": ("vector.reduce.fmaximum", upstream.INTRINSICS["maximum"]),
    "minimumf": ("vector.reduce.fminimum", upstream.INTRINSICS["minimum"]),
}
_INT_REDUCTIONS: dict[str, tuple[str, type[Operation]]] = {
    "add": ("vector.reduce.add", llvm.AddOp),
    "mul": ("vector.reduce.mul", llvm.MulOp),
    "and": ("vector.reduce.and", llvm.AndOp),
    "or": ("vector.reduce.or", llvm.OrOp),
    "xor": ("vector.reduce.xor", llvm.XOrOp),
    "maxsi": ("vector.reduce.smax", upstream.INTRINSICS["smax"]),
    "minsi": ("vector.reduce.smin", upstream.INTRINSICS["smin"]),
    "maxui": ("vector.reduce.umax", upstream.INTRINSICS["umax"]),
    "minui": ("vector.reduce.umin", upstream.INTRINSICS["umin"]),
}


@VECTOR.on(upstream.ReductionOp)
def lower_reduction(reduction: upstream.ReductionOp, low: Lowering) -> SSAValue:
    _lanes(low, reduction.vector.type)
    kind = reduction.kind.data.value
    value = low.value(reduction.vector)
    start = low.value(reduction.acc) if reduction.acc is not None else None
    type = low.parts_of(reduction.dest.type)[0]
    is_float = isinstance(type, upstream.FLOAT_TYPES)
    flags = fastmath_of(reduction)
    if is_float and kind in ("add", "mul"):
        if start is None:
            start = low.number(-0.0 if kind == "add" else 1.0, type)
        reduce = llvm.VectorReduceFAddOp if kind == "add" else llvm.VectorReduceFMulOp
        return low.emit(reduce, (start, value), type, flags)
    table = _FLOAT_REDUCTIONS if is_float else _INT_REDUCTIONS
    if kind not in table:
        low.refuse("no such reduction of this type", ", ".join(table), f"{kind} of {type}")
    name, join = table[kind]
    properties = flags if is_float else {}
    result = low.emit(upstream.INTRINSICS[name], (value,), type, properties)
    return result if start is None else low.emit(join, (result, start), type, properties)


@VECTOR.on(vector.ShuffleOp)
def lower_shuffle(shuffle: vector.ShuffleOp, low: Lowering) -> SSAValue:
    one, other = low.value(shuffle.v1), low.value(shuffle.v2)
    have, more = _lanes(low, one.type), _lanes(low, other.type)
    mask = list(shuffle.mask.get_values())
    if have == more:
        return _shuffle(low, one, other, mask)
    # LLVM requires operands of one length: the shorter one is padded with unused lanes.
    lanes = max(have, more)
    one, other = (
        value if count == lanes else _shuffle(low, value, value, _padded(count, lanes))
        for value, count in ((one, have), (other, more))
    )
    return _shuffle(low, one, other, [at if at < have else at - have + lanes for at in mask])


def _padded(count: int, lanes: int) -> list[int]:
    return [lane if lane < count else -1 for lane in range(lanes)]


@VECTOR.on(vector.BitcastOp)
def lower_bitcast(op: Operation, low: Lowering) -> SSAValue:
    (target,) = low.parts_of(op.results[0].type)
    _lanes(low, target)
    value = low.value(op.operands[0])
    return value if value.type == target else low.emit(llvm.BitcastOp, (value,), target)


@VECTOR.on(x86vector.Avx512MaskScalefOp)
def lower_scale(op: Operation, low: Lowering) -> SSAValue:
    src, a, b, k, rounding = (low.value(operand) for operand in op.operands)
    call = llvm.CallIntrinsicOp(x86vector.SCALE, [a, b, src, k, rounding], op.result_types)
    return low.perform(call).results[0]


class ConvertVectorToLlvmPass(ModulePass):
    """Lower operations on machine vectors to the LLVM dialect.

    Before:
    ```mlir
    func.func @f(%x: f32, %v: vector<4xf32>) -> vector<4xf32> {
      %0 = vector.broadcast %x : f32 to vector<4xf32>
      %1 = vector.shuffle %0, %v [0, 4, 1, 5] : vector<4xf32>, vector<4xf32>
      func.return %1 : vector<4xf32>
    }
    ```
    After:
    ```mlir
    func.func @f(%x: f32, %v: vector<4xf32>) -> vector<4xf32> {
      %0 = llvm.mlir.poison : vector<4xf32>
      %1 = llvm.mlir.constant(0) : i64
      %2 = llvm.insertelement %x, %0[%1 : i64] : vector<4xf32>
      %3 = llvm.shufflevector %2, %0 [0, 0, 0, 0] : vector<4xf32>
      %4 = llvm.shufflevector %3, %v [0, 4, 1, 5] : vector<4xf32>
      func.return %4 : vector<4xf32>
    }
    ```
    Requires: vectors of one fixed dimension, contiguous buffers.
    Leaves: no operation of `vector` or `x86vector`.
    """

    name = "convert-vector-to-llvm"
    budget = SUMS

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        lower_module(ctx, op, VECTOR, ["vector", "x86vector"])
