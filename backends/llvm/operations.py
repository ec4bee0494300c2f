"""How operations of the LLVM dialect are emitted, where xDSL's translation does not fit.

That cannot be extended, so functions `_emit_*` have additions and differences:

- operations that xDSL's dialect does not have (`dialects/upstream`);
- intrinsics are declared with the types of their uses, because xDSL's bare names allow only one
  type of each per module, and keep their fast-math flags;
- the address of a stack slot is an opaque pointer, to which a vector can be stored;
- addresses are computed without a cast for each;
- calls through a pointer;
- shuffles with undefined lanes;
- constants, loads, stores and branches, which are most of a module: xDSL tries classes one by
  one;
- a branch with two equal targets selects its arguments, because LLVM requires one value for each
  predecessor of a block.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar, cast

from llvmlite import ir
from llvmlite.ir.instructions import StoreAtomicInstr
from xdsl.backend.llvm.convert_op import convert_op, create_constant
from xdsl.backend.llvm.convert_type import convert_type
from xdsl.dialects import llvm
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    IntegerAttr,
    IntegerType,
    VectorType,
    i1,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...core.bounded_cache import bounded_cache
from ...dialects.program import PARTS, SHARED
from ...dialects.upstream import ops as upstream
from .checked import alignment_of, atomic_access, check, check_branch, check_types

Values: TypeAlias = dict[SSAValue, Any]
Blocks: TypeAlias = dict[Block, ir.Block]
Emit: TypeAlias = Callable[[Any, ir.IRBuilder, Values, Blocks], Any]
"""Emits an operation and returns the value of its result."""
EmitT = TypeVar("EmitT", bound=Emit)

_I32 = ir.IntType(32)
_OPAQUE = ir.PointerType()
SHARED_ADDRESS = "address.of."
"""Begins the names of functions that return where shared memory of a block is."""
_AGGREGATES = (llvm.LLVMStructType, llvm.LLVMArrayType)
_MOST_ON_STACK = 1 << 20
_EMIT: dict[str, Emit] = {}


def _emits(*names: str) -> Callable[[EmitT], EmitT]:
    """Let a function emit the operations with these names."""

    def register(function: EmitT) -> EmitT:
        _EMIT.update(dict.fromkeys(names, function))
        return function

    return register


def emit(op: Operation, builder: ir.IRBuilder, values: Values, blocks: Blocks) -> None:
    """Emit an operation, and set the value of its result.

    Raises:
        CompileError: if it breaks a rule of LLVM.
        NotImplementedError, LLVMTranslationException: if it has no translation.
    """
    own = _EMIT.get(op.name)
    if own is not None:
        value = own(op, builder, values, blocks)
        if op.results:
            values[op.results[0]] = value
    elif op.name.startswith("llvm.intr.") and op.operands and op.results:
        # All operands have one type, but a reduction may have a scalar before its vector.
        arguments = [values[operand] for operand in op.operands]
        name = f"llvm.{op.name.removeprefix('llvm.intr.')}.{_suffix(arguments[-1].type)}"
        values[op.results[0]] = _call_intrinsic(
            builder, name, type_of(op.results[0].type), arguments, _flags(op)
        )
    else:
        convert_op(op, builder, values, blocks)


class _Poison(ir.Constant):
    """The constant `poison`, for which llvmlite only has `undef`, which means something else."""

    def _get_reference(self) -> str:
        return "poison"


_TYPES: dict[Attribute, ir.Type] = {}


def type_of(type: Attribute) -> ir.Type:
    """The type in LLVM IR."""
    found = _TYPES.get(type)
    if found is None:
        found = _TYPES[type] = convert_type(type)
    return found


@bounded_cache
def _number(value: int) -> ir.Constant:
    """A constant of 32 bits, of which addresses have thousands."""
    return ir.Constant(_I32, value)


def _suffix(type: ir.Type) -> str:
    """The spelling of a type in the name of an intrinsic: `v16f32`, `p0`."""
    if isinstance(type, ir.VectorType):
        return f"v{type.count}{_suffix(cast(ir.Type, type.element))}"
    if isinstance(type, ir.PointerType):
        return "p0"
    return cast(Any, type).intrinsic_name


def _call_intrinsic(
    builder: ir.IRBuilder,
    name: str,
    result: ir.Type,
    arguments: list[Any],
    fastmath: tuple[str, ...] = (),
) -> Any:
    module = builder.module
    function = module.globals.get(name)
    if function is None:
        type = ir.FunctionType(result, [argument.type for argument in arguments])
        function = ir.Function(module, type, name=name)
    return builder.call(function, arguments, fastmath=fastmath)


def _flags(op: Operation) -> tuple[str, ...]:
    flags = op.properties.get("fastmathFlags")
    if not isinstance(flags, llvm.FastMathAttr):
        return ()
    return tuple(flag.value for flag in flags.data)


@_emits("llvm.intr.masked.load")
def _emit_masked_load(
    op: upstream.MaskedLoadOp, builder: ir.IRBuilder, values: Values, blocks: Blocks
) -> Any:
    type = type_of(op.res.type)
    align = ir.Constant(_I32, alignment_of(op, op.alignment))
    arguments = [values[op.data], align, values[op.mask], values[op.pass_thru]]
    return _call_intrinsic(builder, f"llvm.masked.load.{_suffix(type)}.p0", type, arguments)


@_emits("llvm.intr.masked.store")
def _emit_masked_store(
    op: upstream.MaskedStoreOp, builder: ir.IRBuilder, values: Values, blocks: Blocks
) -> Any:
    value = values[op.value]
    align = ir.Constant(_I32, alignment_of(op, op.alignment))
    arguments = [value, values[op.data], align, values[op.mask]]
    name = f"llvm.masked.store.{_suffix(value.type)}.p0"
    return _call_intrinsic(builder, name, ir.VoidType(), arguments)


@_emits("llvm.intr.masked.gather")
def _emit_masked_gather(
    op: upstream.MaskedGatherOp, builder: ir.IRBuilder, values: Values, blocks: Blocks
) -> Any:
    type, addresses = type_of(op.res.type), values[op.ptrs]
    align = ir.Constant(_I32, alignment_of(op, op.alignment))
    arguments = [addresses, align, values[op.mask], values[op.pass_thru]]
    name = f"llvm.masked.gather.{_suffix(type)}.{_suffix(addresses.type)}"
    return _call_intrinsic(builder, name, type, arguments)


@_emits("llvm.fcmp")
def _emit_fcmp(op: upstream.FCmpOp, builder: ir.IRBuilder, values: Values, blocks: Blocks) -> Any:
    predicate = llvm.FCmpPredicateFlag.from_int(op.predicate.value.data).value.lstrip("_")
    instruction = ir.instructions.FCMPInstr(
        builder.block, predicate, values[op.lhs], values[op.rhs], flags=_flags(op)
    )
    builder._insert(instruction)
    return instruction


# An undefined lane of a mask may be any lane; llvmlite requires one.
@_emits("llvm.shufflevector")
def _emit_shuffle(
    op: llvm.ShuffleVectorOp, builder: ir.IRBuilder, values: Values, blocks: Blocks
) -> Any:
    mask = _mask(tuple(op.mask.get_values()))
    return builder.shuffle_vector(values[op.v1], values[op.v2], mask)


@bounded_cache
def _mask(lanes: tuple[int, ...]) -> ir.Constant:
    return ir.Constant(ir.VectorType(_I32, len(lanes)), [max(lane, 0) for lane in lanes])


@_emits("llvm.fptosi", "llvm.fptoui", "llvm.uitofp")
def _emit_cast(op: Operation, builder: ir.IRBuilder, values: Values, blocks: Blocks) -> Any:
    instruction = ir.instructions.CastInstr(
        builder.block,
        op.name.removeprefix("llvm."),
        values[op.operands[0]],
        type_of(op.results[0].type),
    )
    builder._insert(instruction)
    return instruction


@_emits("llvm.mlir.poison")
def _emit_poison(
    op: upstream.PoisonOp, builder: ir.IRBuilder, values: Values, blocks: Blocks
) -> Any:
    return _Poison(type_of(op.res.type), ir.Undefined)


@_emits("llvm.select")
def _emit_select(op: llvm.SelectOp, builder: ir.IRBuilder, values: Values, blocks: Blocks) -> Any:
    condition, one, other = (values[operand] for operand in (op.cond, op.lhs, op.rhs))
    return builder.select(condition, one, other, flags=_flags(op))


@_emits("llvm.extractelement")
def _emit_extract(
    op: upstream.ExtractElementOp, builder: ir.IRBuilder, values: Values, blocks: Blocks
) -> Any:
    return builder.extract_element(values[op.vector], values[op.position])


@_emits("llvm.mlir.constant")
def _emit_constant(
    op: llvm.ConstantOp, builder: ir.IRBuilder, values: Values, blocks: Blocks
) -> Any:
    kind, value = op.result.type, op.value
    if isinstance(kind, VectorType):
        elements = len(value) if isinstance(value, DenseIntOrFPElementsAttr) else 1
        check(op, "value", elements == math.prod(kind.get_shape()), kind, value)
    elif isinstance(kind, IntegerType):
        check(op, "value", isinstance(value, IntegerAttr), kind, value)
    return create_constant(kind, value)


@_emits("llvm.load")
def _emit_load(op: llvm.LoadOp, builder: ir.IRBuilder, values: Values, blocks: Blocks) -> Any:
    source, kind = values[op.ptr], type_of(op.results[0].type)
    if atomic := atomic_access(op):
        return builder.load_atomic(source, *atomic, typ=kind)
    result: Any = builder.load(source, typ=kind)
    if op.alignment is not None:
        result.align = alignment_of(op, op.alignment)
    return result


@_emits("llvm.store")
def _emit_store(op: llvm.StoreOp, builder: ir.IRBuilder, values: Values, blocks: Blocks) -> None:
    value, target = values[op.value], values[op.ptr]
    if atomic := atomic_access(op):
        # The builder needs the pointee type of an address; opaque pointers have none.
        builder._insert(StoreAtomicInstr(builder.block, value, target, *atomic))
        return
    made: Any = builder.store(value, target)
    if op.alignment is not None:
        made.align = alignment_of(op, op.alignment)


@_emits("llvm.br")
def _emit_br(op: llvm.BrOp, builder: ir.IRBuilder, values: Values, blocks: Blocks) -> None:
    check_branch(op, op.successor, op.arguments)
    for argument, given in zip(op.successor.args, op.arguments, strict=True):
        values[argument].add_incoming(values[given], builder.block)
    builder.branch(blocks[op.successor])


@_emits("llvm.getelementptr")
def _emit_gep(op: llvm.GEPOp, builder: ir.IRBuilder, values: Values, blocks: Blocks) -> Any:
    numbers = op.rawConstantIndices.get_values()
    # Further indices go into what has members.
    most = 1 if not isinstance(op.elem_type, _AGGREGATES) else len(numbers)
    check(op, "number of indices", 0 < len(numbers) <= max(1, most), most, len(numbers))
    ssa = iter(op.operands[1:])
    indices = [
        values[next(ssa)] if index == llvm.GEP_USE_SSA_VAL else _number(index) for index in numbers
    ]
    if PARTS in op.attributes:
        return values[op.operands[0]]
    result = builder.gep(
        values[op.operands[0]],
        indices,
        inbounds="inbounds" in op.properties,
        source_etype=type_of(op.elem_type),
    )
    result.type = type_of(op.results[0].type)
    return result


def _shared(op: llvm.AllocaOp, builder: ir.IRBuilder, count: int) -> Any:
    """The memory that the threads of a block of a device have in common."""
    kind = ir.ArrayType(type_of(op.elem_type), count)
    name = builder.module.get_unique_name("shared")
    made: Any = ir.GlobalVariable(builder.module, kind, name, addrspace=3)
    made.linkage, made.initializer = "internal", ir.Constant(kind, ir.Undefined)
    made.align = alignment_of(op, op.alignment) if op.alignment is not None else 16
    # LLVM knows the alignment of a result, but not that of a cast between address spaces.
    function = ir.Function(builder.module, ir.FunctionType(_OPAQUE, ()), f"{SHARED_ADDRESS}{name}")
    function.linkage = "weak"
    function.return_value.add_attribute("noalias")
    function.return_value.attributes.align = made.align
    for attribute in ("nounwind", "readnone"):
        function.attributes.add(attribute)
    inside = ir.IRBuilder(function.append_basic_block())
    inside.ret(inside.addrspacecast(made, _OPAQUE))
    return builder.call(function, ())


@_emits("llvm.alloca")
def _emit_alloca(op: llvm.AllocaOp, builder: ir.IRBuilder, values: Values, blocks: Blocks) -> Any:
    count = values[op.size]
    if isinstance(count, ir.Constant):
        fits = 0 <= count.constant <= _MOST_ON_STACK
        check(op, "size", fits, f"at most {_MOST_ON_STACK} elements", count.constant)
    if SHARED in op.attributes and isinstance(count, ir.Constant):
        return _shared(op, builder, count.constant)
    if isinstance(parts := op.attributes.get(PARTS), IntegerAttr):
        # A thread of a device has its own stack, with its part.
        count = ir.Constant(count.type, count.constant // parts.value.data)
    result: Any = builder.alloca(type_of(op.elem_type), size=count)
    if op.alignment is not None:
        result.align = alignment_of(op, op.alignment)
    result.type = _OPAQUE
    return result


@_emits("llvm.call")
def _emit_call(op: llvm.CallOp, builder: ir.IRBuilder, values: Values, blocks: Blocks) -> Any:
    arguments = [values[operand] for operand in op.operands]
    if op.callee is not None:
        name = op.callee.string_value()
        function = builder.module.globals.get(name)
        known = isinstance(function, ir.Function)
        check(op, "callee", known, "a function of the module", f"@{name}")
        wanted, types = function.function_type.args, [argument.type for argument in arguments]
        if types != list(wanted):
            texts = (", ".join(map(str, one)) for one in (wanted, types))
            check(op, "types of operands", False, *texts)
    else:
        result = type_of(op.returned.type) if op.returned is not None else ir.VoidType()
        type = ir.FunctionType(result, [argument.type for argument in arguments[1:]])
        function = ir.instructions.CastInstr(
            builder.block, "bitcast", arguments.pop(0), type.as_pointer()
        )
        builder._insert(function)
    return builder.call(function, arguments, cconv=op.CConv.cconv_name, fastmath=_flags(op))


@_emits("llvm.mlir.addressof")
def _emit_address(
    op: llvm.AddressOfOp, builder: ir.IRBuilder, values: Values, blocks: Blocks
) -> Any:
    name = op.global_name.string_value()
    found = builder.module.globals.get(name)
    check(op, "symbol", found is not None, "a function or a global of the module", f"@{name}")
    return found


@_emits("llvm.cond_br")
def _emit_cond_br(op: llvm.CondBrOp, builder: ir.IRBuilder, values: Values, blocks: Blocks) -> None:
    check_types(op, "condition", [op.cond], [i1])
    check_branch(op, op.then_block, op.then_arguments)
    check_branch(op, op.else_block, op.else_arguments)
    if op.then_block is not op.else_block:
        convert_op(op, builder, values, blocks)
        return
    condition, block = values[op.cond], builder.block
    pairs = zip(op.then_arguments, op.else_arguments, strict=True)
    for argument, (one, other) in zip(op.then_block.args, pairs, strict=True):
        chosen = values[one]
        if one is not other:
            chosen = builder.select(condition, chosen, values[other])
        values[argument].add_incoming(chosen, block)
    builder.branch(blocks[op.then_block])
