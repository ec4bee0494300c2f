"""What the run time has to know of a program besides its code, at every stage.

While a function holds operations of `rt`, they say it: the constants and registered functions
that it takes from its context, and how it may end early. The conversions that replace these
operations leave the same in attributes of the function, all of them builtin ones, which
upstream's tools accept on an `llvm.func` too:

    rt.constants   {slot = 0, weight = "w0", type = memref<16x8xf32>, packing = affine_map<...>}
    rt.functions   {slot = 0, callee = "env.linear", type = (tensor<4xf32>) -> tensor<4xf32>}
    rt.failures    {kind = "csr", subject = "input \\"graph\\""}, failure n + 1 as entry n
    rt.effort      on a function, "light": it has buffers on the stack, which passes of LLVM make
                   registers of; on the module: the effort for all of its functions
    rt.unroll      LLVM unrolls the loops of the function
    rt.kernel      [memref<4xf32>, index]: each thread of a device calls the function, with its
                   number and arguments of these types

From stage `buffers` on, attributes describe the inputs and results of a program; see
`graph.signature`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar, cast

from xdsl.context import Context
from xdsl.dialects import llvm
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    Builtin,
    DenseResourceAttr,
    DictionaryAttr,
    FunctionType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    ModuleOp,
    StringAttr,
    TensorType,
    i32,
    i64,
)
from xdsl.ir import Attribute, Operation
from xdsl.parser import Parser

from ..core.boundary.signature import Signature
from ..core.errors import CompileError, explain
from ..core.ir.public_function import Program, face_of
from ..core.ir.symbols import symbol_of
from ..core.ir.walks import operations_in
from .graph.buffers import buffer_types
from .graph.signature import COMPUTED, arguments_of, signature_of
from .rt.abi import ITERATION_WORDS
from .rt.attrs import ContextType
from .rt.failures import failing_operations
from .rt.ops import CallPackedOp, ConstantOp
from .rt.statuses import CallFailure

CONSTANTS, FUNCTIONS, FAILURES = "rt.constants", "rt.functions", "rt.failures"
EFFORT = "rt.effort"
UNROLL = "rt.unroll"
"""The attribute of a function whose innermost loops LLVM unrolls."""
KERNEL = "rt.kernel"
"""The attribute of a function that threads of a device call: the types of its arguments after the
number of the thread."""
BLOCK = "rt.block"
"""The attribute of such a function that a block of threads calls together, with the number of the
block: how many threads a block has."""
SHARED = "rt.shared"
"""The attribute of memory on the stack of such a function that its threads have in common."""
PARTS = "rt.parts"
"""The attribute of memory on its stack of which each thread has a part, by its number, and of the
address of the part: how many parts there are. A device keeps one for each thread."""
EXTREMES = "extremes"
"""`w.extremes` is the smallest and the largest element of the array `w` of the weight store."""

KEPT = ("rt.", "graph.")
"""The prefix of the attributes that a function keeps when it becomes an `llvm.func`."""

_FORMS = {
    CONSTANTS: '{slot = 0 : i64, weight = "w", type = memref<4xf32>}',
    FUNCTIONS: '{slot = 0 : i64, callee = "f", type = (tensor<4xf32>) -> tensor<4xf32>}',
    FAILURES: '{kind = "csr", subject = "x"}',
}


@dataclass(frozen=True)
class Constant:
    """An array that a program takes from its context: a weight, in the layout of its packing."""

    weight: str
    type: MemRefType
    packing: Attribute | None


@dataclass(frozen=True)
class Function:
    """A registered function that a program calls, with tensors of these types."""

    callee: str
    type: FunctionType


@dataclass(frozen=True)
class Needs:
    """What a program takes from its context by slot, and how failure n + 1 is worded."""

    constants: tuple[Constant, ...]
    functions: tuple[Function, ...]
    failures: tuple[CallFailure, ...]


_Entry = TypeVar("_Entry", Constant, Function)
_Slots: TypeAlias = list[tuple[int, _Entry]]


def needs_of(module: ModuleOp, main: Operation) -> Needs:
    """What a module declares: its constants, registered functions, and failures of `main`.

    Raises:
        CompileError: if a slot is left out or is two things at once, or an attribute is malformed.
    """
    functions = list(module.ops)
    constants = [slot for function in functions for slot in _constants(function)]
    callees = [slot for function in functions for slot in _functions(function)]
    return Needs(
        _in_order(ConstantOp.name, constants),
        _in_order(CallPackedOp.name, callees),
        tuple(_failures(main)),
    )


def named_weights(module: ModuleOp) -> Iterator[str]:
    """The names of the arrays of the store that a module names, at any stage."""
    for op in operations_in(module):
        for attr in (*op.properties.values(), *op.attributes.values()):
            if isinstance(attr, DenseResourceAttr):
                yield attr.resource_handle.data
    for function in module.ops:
        for _, constant in _constants(function):
            # A constant may be a part of a sparse matrix, or say something of an array: `w.indptr`.
            yield from (constant.weight, constant.weight.rpartition(".")[0])


def is_on_buffers(main: Program) -> bool:
    """Whether a public function takes buffers, not tensors."""
    return isinstance(main, llvm.FuncOp) or ContextType() in main.function_type.inputs.data


def check_interface(main: Program) -> None:
    """Check what a public function declares about its inputs and results, at any stage.

    Raises:
        CompileError: if callers cannot pass one of them, or it contradicts its own type.
    """
    if is_on_buffers(main):
        checked_signature(main)
    else:
        arguments_of(main)


def checked_signature(main: Program) -> Signature:
    """The signature of the public function, which its buffers must fit.

    Raises:
        CompileError: if it states none, or one that contradicts its type.
    """
    signature, buffers = signature_of(main), buffers_of(main)
    if isinstance(main, llvm.FuncOp):
        # The width of an index is that of the target, which the module does not state.
        known = [_llvm_type(buffers, index) for index in (i64, i32)]
    else:
        known = [FunctionType.from_lists([ContextType(), *buffers], [i32])]
    if main.function_type not in known:
        subject = f"{main.name} @{main.sym_name.data}"
        fact = f"its type does not fit graph.signature = {face_of(main).type}"
        raise CompileError(explain(subject, fact, expected=known[0], got=main.function_type))
    return signature


def buffers_of(main: Program) -> list[Attribute]:
    """The types of the arguments that stand for tensors, and for the sizes that are computed."""
    face = face_of(main)
    tensors = cast("list[TensorType]", [*face.type.inputs, *face.type.outputs])
    buffers = [buffer for kind in tensors for buffer in buffer_types(kind)]
    count = signature_of(main).reported if COMPUTED in main.attributes else 0
    return [*buffers, MemRefType(i64, [count])] if count else buffers


def needs_attributes(function: Operation) -> dict[str, Attribute]:
    """The attributes equivalent to the `rt` operations in a function."""
    entries: dict[str, Iterable[DictionaryAttr]] = {
        CONSTANTS: dict.fromkeys(_constant_entry(*slot) for slot in _constants(function)),
        FUNCTIONS: dict.fromkeys(_function_entry(*slot) for slot in _functions(function)),
        FAILURES: [_failure_entry(failure) for failure in _failures(function)],
    }
    return {name: ArrayAttr(found) for name, found in entries.items() if found}


def kernel_arguments(function: Operation) -> tuple[Attribute, ...]:
    """The types of the arguments of a function that threads of a device call, after their number.

    Raises:
        CompileError: if the attribute does not say them.
    """
    types = function.attributes[KERNEL]
    if not isinstance(types, ArrayAttr):
        raise CompileError(explain(KERNEL, "malformed", expected="[memref<4xf32>]", got=types))
    return cast("ArrayAttr[Attribute]", types).data


def launched_arguments(
    kinds: Iterable[Attribute], words: Iterator[int]
) -> Iterator[tuple[Attribute, int, tuple[int, ...]]]:
    """The arguments of a launch, of the words that compiled code passes.

    Each is its type, its first word, which is an address or has a scalar in its first bytes, and
    the sizes that the type leaves open.
    """
    for kind in kinds:
        first, shape = next(words), kind.get_shape() if isinstance(kind, MemRefType) else ()
        yield kind, first, tuple(next(words) for size in shape if size == DYNAMIC_INDEX)


def kept_attributes(function: Operation) -> dict[str, Attribute]:
    """The attributes of a function that hold at every later stage as well."""
    return {k: value for k, value in function.attributes.items() if k.startswith(KEPT)}


def called_as(op: CallPackedOp) -> FunctionType:
    """The tensors that the buffers of a call stand for."""
    if op.tensors is not None:
        return op.tensors
    inputs, outputs = (
        [TensorType(t.element_type, t.get_shape()) for t in types if isinstance(t, MemRefType)]
        for types in (op.inputs.types, op.outputs.types)
    )
    return FunctionType.from_lists(inputs, outputs)


def _llvm_type(buffers: Sequence[Attribute], index: IntegerType) -> llvm.LLVMFunctionType:
    """The type of an `llvm.func` with these buffers: each is an address and its symbolic sizes."""
    words: list[Attribute] = [llvm.LLVMPointerType()]
    for buffer in buffers:
        shape = buffer.get_shape() if isinstance(buffer, MemRefType) else ()
        words += [llvm.LLVMPointerType() if isinstance(buffer, MemRefType) else index]
        words += [index] * shape.count(DYNAMIC_INDEX)
    return llvm.LLVMFunctionType(words, i32)


def _in_order(name: str, slots: Sequence[tuple[int, _Entry]]) -> tuple[_Entry, ...]:
    """The entries of a table, one for each of its slots."""
    used: dict[int, _Entry] = {}
    for slot, entry in slots:
        if used.setdefault(slot, entry) != entry:
            raise CompileError(explain(name, f"slot {slot} is used for two things"))
    if sorted(used) != list(range(len(used))):
        got = ", ".join(map(str, sorted(used)))
        fact = "slots are not numbered from 0"
        raise CompileError(explain(name, fact, expected=len(used), got=got))
    return tuple(used[slot] for slot in range(len(used)))


# Operations derive from an ABC, for which isinstance is slow.
def _constants(function: Operation) -> _Slots[Constant]:
    if CONSTANTS in function.attributes:
        return [_read_constant(*entry) for entry in _entries(function, CONSTANTS)]
    return [
        (op.slot.value.data, Constant(op.weight.data, op.result.type, op.packing))
        for op in operations_in(function)
        if type(op) is ConstantOp and isinstance(op.result.type, MemRefType)
    ]


def _functions(function: Operation) -> _Slots[Function]:
    if FUNCTIONS in function.attributes:
        return [_read_function(*entry) for entry in _entries(function, FUNCTIONS)]
    return [
        (op.slot.value.data, Function(op.callee.data, called_as(op)))
        for op in operations_in(function)
        if type(op) is CallPackedOp
    ]


def _failures(function: Operation) -> list[CallFailure]:
    if FAILURES in function.attributes:
        return [_read_failure(*entry) for entry in _entries(function, FAILURES)]
    return [op.failure for op in failing_operations(function)]


def _constant_entry(slot: int, constant: Constant) -> DictionaryAttr:
    data = {"slot": IntegerAttr(slot, i64), "weight": StringAttr(constant.weight)}
    packing = {} if constant.packing is None else {"packing": constant.packing}
    return DictionaryAttr({**data, "type": constant.type, **packing})


def constants_text(constants: Sequence[Constant]) -> str:
    """The text of the attribute that declares the constants of a program."""
    return str(ArrayAttr([_constant_entry(*slot) for slot in enumerate(constants)]))


def constants_in(text: str) -> tuple[Constant, ...]:
    """The constants that the text of an attribute declares; see `constants_text`."""
    ctx = Context()
    ctx.load_dialect(Builtin)
    entries = cast("ArrayAttr[DictionaryAttr]", Parser(ctx, text or "[]").parse_attribute())

    def wrong() -> CompileError:
        return CompileError(explain(CONSTANTS, "malformed text", got=text))

    return tuple(_read_constant(entry.data, wrong)[1] for entry in entries)


def _function_entry(slot: int, function: Function) -> DictionaryAttr:
    data = {"slot": IntegerAttr(slot, i64), "callee": StringAttr(function.callee)}
    return DictionaryAttr({**data, "type": function.type})


def _failure_entry(failure: CallFailure) -> DictionaryAttr:
    data: dict[str, Attribute] = {"kind": StringAttr(failure.kind)}
    data["subject"] = StringAttr(failure.subject)
    if failure.details:
        data["details"] = IntegerAttr(failure.details, i64)
    if failure.loops:
        data["loops"] = ArrayAttr([StringAttr(loop) for loop in failure.loops])
    return DictionaryAttr(data)


_Read: TypeAlias = tuple[Mapping[str, Attribute], Callable[[], CompileError]]


def _entries(function: Operation, name: str) -> list[_Read]:
    """The entries of an attribute, each with the error that it is malformed."""

    def wrong(got: Attribute) -> Callable[[], CompileError]:
        def error() -> CompileError:
            symbol = symbol_of(function)
            label = "" if symbol is None else f" @{symbol}"
            subject, fact = f"{function.name}{label}", f"wrong {name}"
            return CompileError(explain(subject, fact, expected=_FORMS[name], got=got))

        return error

    attr = function.attributes[name]
    if not isinstance(attr, ArrayAttr):
        raise wrong(attr)()
    found: list[_Read] = []
    for entry in attr:
        if not isinstance(entry, DictionaryAttr):
            raise wrong(entry)()
        found.append((entry.data, wrong(entry)))
    return found


def _read_constant(
    data: Mapping[str, Attribute], wrong: Callable[[], CompileError]
) -> tuple[int, Constant]:
    match data:
        case {"slot": IntegerAttr() as slot, "weight": StringAttr() as weight, "type": kind} if (
            isinstance(kind, MemRefType) and kind.has_static_shape()
        ):
            return slot.value.data, Constant(weight.data, kind, data.get("packing"))
        case _:
            raise wrong()


def _read_function(
    data: Mapping[str, Attribute], wrong: Callable[[], CompileError]
) -> tuple[int, Function]:
    match data:
        case {"slot": IntegerAttr() as slot, "callee": StringAttr() as callee, "type": kind} if (
            isinstance(kind, FunctionType)
            and all(isinstance(one, TensorType) for one in (*kind.inputs, *kind.outputs))
        ):
            return slot.value.data, Function(callee.data, kind)
        case _:
            raise wrong()


def _read_failure(data: Mapping[str, Attribute], wrong: Callable[[], CompileError]) -> CallFailure:
    count, loops = data.get("details", IntegerAttr(0, i64)), data.get("loops", ArrayAttr([]))
    match data:
        case {"kind": StringAttr() as kind, "subject": StringAttr() as subject} if (
            kind.data in CallFailure.KINDS
            and isinstance(count, IntegerAttr)
            and isinstance(loops, ArrayAttr)
            and len(loops) <= ITERATION_WORDS
        ):
            names = [loop for loop in loops if isinstance(loop, StringAttr)]
            if len(names) == len(loops):
                around = tuple(name.data for name in names)
                return CallFailure(kind.data, subject.data, count.value.data, around)
            raise wrong()
        case _:
            raise wrong()
