"""The code of a program for a device: its kernels as PTX.

A kernel calls the function of a thread, which is inlined, in each thread whose number is below that
of the launch; the function of a block is called by all threads of the block of its number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, cast

import llvmlite.binding as llvm
from llvmlite import ir
from xdsl.dialects import llvm as llvm_dialect
from xdsl.dialects.builtin import DYNAMIC_INDEX, IntegerAttr, MemRefType, ModuleOp, UnknownLoc
from xdsl.ir import Attribute, Operation

from ...core.dtypes import dtype_of
from ...core.errors import CompileError, UnsupportedError, explain
from ...core.exclusive import exclusive
from ...core.ir.printing import Listing
from ...core.ir.provenance import origin
from ...core.ir.symbols import symbol_of
from ...core.ir.walks import operations_in
from ...core.target import Device, Target
from ...dialects.program import BLOCK, KERNEL, kernel_arguments
from ...dialects.rt.abi import BARRIER, COPY, SHUFFLE, THREAD, THREADS
from ..ptx.kernels import DeviceCode, DeviceKernel, KernelArgument
from .debug import DebugInfo
from .machine import initialize
from .operations import SHARED_ADDRESS
from .remainders import define_remainders
from .translate import translate

_SHARED_PLACE, _GLOBAL_PLACE = ir.PointerType(addrspace=3), ir.PointerType(addrspace=1)
_THREADS_TOGETHER = 1024
"""The threads that a multiprocessor runs at a time, each with up to 64 of its 65,536 registers."""
_WORD, _NARROW = ir.IntType(64), ir.IntType(32)
_KNOWN = re.compile(
    r"(fma|sqrt|fabs|floor|ceil|trunc|rint|roundeven|copysign|minnum|maxnum|minimum|maximum|smin|"
    r"smax|umin|umax|abs|ctpop|ctlz|cttz|bswap|bitreverse|fshl|fshr|fptosi\.sat|fptoui\.sat|"
    r"memcpy|memset|memmove|nvvm|lifetime|assume)\."
)
"""The intrinsics that LLVM's back end for devices has. It ends the process at others."""
_INTRINSIC = re.compile(r"^declare .*@\"?llvm\.([\w.]+)", re.MULTILINE)

_SHARED = re.compile(
    rf"^define weak( .*@\"?{re.escape(SHARED_ADDRESS)}.*\(\)).*(?= #)", re.MULTILINE
)
"""The functions that return where shared memory is: weak ones, which passes do not look into."""

_EXTERNAL = re.compile(r"^\.extern \.func\s+(?:\([^)]*\)\s*)?([\w$.]+)", re.MULTILINE)
"""The functions that code calls, and that are in no module."""

_PLAIN = (
    (re.compile(r"^(\.target \w+), debug$", re.MULTILINE), r"\1"),
    (re.compile(r"^(\s*\.loc[\s\d]+),.*$", re.MULTILINE), r"\1"),
    (re.compile(r"^\s*\.section\s+\S+\s*\{[^{}]*\}\n", re.MULTILINE), ""),
)
"""The debug information that is removed, since drivers optimise less with it; lines are left."""


def device_code(module: ModuleOp, target: Target, source: Listing | None = None) -> DeviceCode:
    """The code for the device of a target, of a module at stage `llvm`.

    With `source`, the lines of nodes, it has their lines.

    Raises:
        CompileError: if the target has no device, or the code cannot be translated.
        UnsupportedError: if the device lacks a function that it calls.
    """
    device = target.device
    if device is None:
        fact, expected = "the target has no device", "one such as cuda:sm_90,emulated"
        raise CompileError(explain("ptx", fact, expected=expected, got=target.name))
    functions = [op for op in module.ops if KERNEL in op.attributes]
    kernels = [_kernel(op) for op in functions]
    needed = ModuleOp([op.clone() for op in _with_callees(module, functions)])
    described: list[DebugInfo] = []

    class Described(DebugInfo):
        """Debug information to which that of kernels is added."""

        def __init__(self, module: ir.Module, source: Listing) -> None:
            super().__init__(module, source)
            described.append(self)

    translated = translate(needed, target, source, Described)
    translated.triple = device.triple
    _define_block(translated, device)
    define_remainders(translated)
    for op, kernel in zip(functions, kernels, strict=True):
        thread, debug = cast(llvm_dialect.FuncOp, op), described[0] if described else None
        _add_kernel(translated, thread, kernel, debug)
    text = str(translated)
    for name in _INTRINSIC.findall(text):
        if not _KNOWN.match(f"{name}."):
            op = f"llvm.intr.{name.partition('.')[0]}"
            where = next((origin(one) for one in operations_in(needed) if one.name == op), None)
            fact = f"the device has no function llvm.{name}"
            raise UnsupportedError(explain(device.name, fact, origin=where))
    assembly, parameters = _assembly(text, device)
    for name in _EXTERNAL.findall(assembly):
        # Local buffers of sizes that are not known, for which the host's code allocates memory.
        raise UnsupportedError(explain(device.name, f"the device has no function {name}"))
    made = tuple(_with_accesses(kernel, parameters[kernel.name]) for kernel in kernels)
    return DeviceCode(device.name, device.emulated, device.block, made, assembly)


def host_module(module: ModuleOp) -> ModuleOp:
    """A module without the functions that only a device runs."""
    kernels = [op for op in module.ops if KERNEL in op.attributes]
    device = set(_with_callees(module, kernels))
    own = [op for op in module.ops if op not in device]
    called = set(_with_callees(module, [op for op in own if isinstance(op, llvm_dialect.FuncOp)]))
    kept = [op.clone() for op in module.ops if op not in device or op in called]
    return ModuleOp(kept, dict(module.attributes))


def _kernel(op: Operation) -> DeviceKernel:
    block = op.attributes.get(BLOCK)
    threads = block.value.data if isinstance(block, IntegerAttr) else None
    return DeviceKernel(f"{_name(op)}_kernel", tuple(map(_argument, kernel_arguments(op))), threads)


def _argument(kind: Attribute) -> KernelArgument:
    if not isinstance(kind, MemRefType):
        return KernelArgument(str(kind), 0, None)
    shape = tuple(None if size == DYNAMIC_INDEX else size for size in kind.get_shape())
    return KernelArgument(str(kind), dtype_of(kind.element_type).itemsize, shape)


def _name(op: Operation) -> str:
    return cast(llvm_dialect.FuncOp, op).sym_name.data


def _with_callees(module: ModuleOp, functions: list[Operation]) -> Iterator[Operation]:
    """Functions, those that they call, and the variables of both, in the order of the module."""
    symbols = {name: op for op in module.ops if (name := symbol_of(op)) is not None}
    found, left = set[str](), [_name(op) for op in functions]
    while left:
        name = left.pop()
        if name in found or name not in symbols:
            continue
        found.add(name)
        for op in operations_in(symbols[name]):
            if isinstance(op, llvm_dialect.CallOp) and op.callee is not None:
                left.append(op.callee.root_reference.data)
            elif isinstance(op, llvm_dialect.AddressOfOp):
                left.append(op.global_name.root_reference.data)
    return (op for op in module.ops if symbol_of(op) in found)


def _add_kernel(
    module: ir.Module, op: llvm_dialect.FuncOp, what: DeviceKernel, debug: DebugInfo | None
) -> None:
    """Add a kernel that calls the function of a thread, if there is a thread of its number.

    A function of a block is called by each of its threads.
    """
    thread: Any = module.get_global(op.sym_name.data)
    thread.linkage = "internal"
    thread.attributes.add("alwaysinline")
    kinds = [argument.type for argument in thread.args]
    kernel = ir.Function(module, ir.FunctionType(ir.VoidType(), kinds), what.name)
    kernel.calling_convention = "ptx_kernel"
    entry, run, end = (kernel.append_basic_block() for _ in range(3))
    builder = ir.IRBuilder(entry)
    if debug is not None:
        builder.debug_metadata = debug.function(op, kernel)(UnknownLoc())
    block, threads, own = (
        builder.zext(builder.call(_register(module, register), ()), _WORD)
        for register in ("ctaid", "ntid", "tid")
    )
    if what.block is None:
        number = builder.add(builder.mul(block, threads), own)
        builder.cbranch(builder.icmp_signed("<", number, kernel.args[0]), run, end)
    else:
        number = block
        builder.branch(run)
        _define_threads(module, thread, what.block)
        set.add(kernel.attributes, f'"nvvm.reqntid"="{what.block}"')
        # Without it, the assembler may spill registers to run more blocks at a time.
        together = min(2, max(1, _THREADS_TOGETHER // what.block))
        set.add(kernel.attributes, f'"nvvm.minctasm"="{together}"')
        for function in (kernel, thread):
            set.add(function.attributes, "convergent")
    builder.position_at_end(run)
    builder.call(thread, [number, *kernel.args[1:]])
    builder.branch(end)
    builder.position_at_end(end)
    builder.ret_void()
    for given, argument in zip(thread.args, kernel.args, strict=True):
        if "noalias" in given.attributes:
            argument.attributes.add("noalias")
        argument.attributes.align = given.attributes.align


def _with_accesses(kernel: DeviceKernel, parameters: Sequence[set[bytes]]) -> DeviceKernel:
    """A kernel with what it reads and may write to, of the attributes of its parameters."""
    found, place = list[KernelArgument](), 1
    for argument in kernel.arguments:
        marks = parameters[place] if argument.shape is not None else {b"readnone"}
        written = marks.isdisjoint({b"readonly", b"readnone"})
        found.append(replace(argument, read=b"readonly" in marks, written=written))
        place += 1 + (argument.shape or ()).count(None)
    return replace(kernel, arguments=tuple(found))


def _register(module: ir.Module, register: str) -> ir.Function:
    name = f"llvm.nvvm.read.ptx.sreg.{register}.x"
    if name in module.globals:
        return module.get_global(name)
    return ir.Function(module, ir.FunctionType(_NARROW, ()), name)


def _define_block(module: ir.Module, device: Device) -> None:
    """Define the functions by which the threads of a block copy, wait and shuffle."""
    copies = module.globals.get(COPY)
    if copies is not None:
        _define_copy(module, copies, asynchronous=device.copies_asynchronously)
    if (function := module.globals.get(BARRIER)) is not None:
        builder = _defined(function)
        if copies is not None and device.copies_asynchronously:
            name = "llvm.nvvm.cp.async.wait.all"
            builder.call(ir.Function(module, ir.FunctionType(ir.VoidType(), ()), name), ())
        wait = ir.Function(module, ir.FunctionType(ir.VoidType(), ()), "llvm.nvvm.barrier0")
        builder.call(wait, ())
        builder.ret_void()
        set.add(function.attributes, "convergent")
    if (function := module.globals.get(SHUFFLE)) is not None:
        builder = _defined(function)
        kind = ir.FunctionType(_NARROW, [_NARROW] * 4)
        shuffle = ir.Function(module, kind, "llvm.nvvm.shfl.sync.idx.i32")
        address, thread = function.args
        own, lane = builder.load(address, typ=_NARROW), builder.trunc(thread, _NARROW)
        everyone, last = ir.Constant(_NARROW, -1), ir.Constant(_NARROW, 31)
        builder.ret(builder.call(shuffle, (everyone, own, lane, last)))
        # The functions of nests, which call it, as well.
        for caller in (one for one in module.functions if not one.is_declaration):
            set.add(caller.attributes, "convergent")


def _define_copy(module: ir.Module, function: Any, *, asynchronous: bool) -> None:
    """Define the function that copies 16 bytes, where older devices wait for them."""
    builder, (target, source) = _defined(function), function.args
    if asynchronous:
        name, kinds = "llvm.nvvm.cp.async.cg.shared.global.16", [_SHARED_PLACE, _GLOBAL_PLACE]
        copy = ir.Function(module, ir.FunctionType(ir.VoidType(), kinds), name)
        places = zip((target, source), kinds, strict=True)
        builder.call(copy, [builder.addrspacecast(place, kind) for place, kind in places])
    else:
        kind = ir.VectorType(_NARROW, 4)
        builder.store(builder.load(source, typ=kind, align=16), target, align=16)
    builder.ret_void()


def _define_threads(module: ir.Module, block: Any, threads: int) -> None:
    """Define the functions by which the function of a block of so many threads knows them.

    The number of a thread has a range, so that LLVM knows which tiles each one runs.
    """
    for call in (op for part in block.blocks for op in part.instructions):
        if not isinstance(call, ir.CallInstr) or call.callee.name not in (THREAD, THREADS):
            continue
        name = f"{call.callee.name}_of_{threads}"
        if name not in module.globals:
            builder = _defined(ir.Function(module, ir.FunctionType(_WORD, ()), name))
            if call.callee.name == THREADS:
                builder.ret(ir.Constant(_WORD, threads))
            else:
                number = builder.call(_register(module, "tid"), ())
                ends = [ir.Constant(_NARROW, 0), ir.Constant(_NARROW, threads)]
                number.set_metadata("range", module.add_metadata(ends))
                builder.ret(builder.zext(number, _WORD))
        call.callee = module.globals[name]


def _defined(function: Any) -> ir.IRBuilder:
    """A builder of the body of a function that is inlined."""
    function.linkage = "internal"
    function.attributes.add("alwaysinline")
    return ir.IRBuilder(function.append_basic_block())


@exclusive
def _assembly(text: str, device: Device) -> tuple[str, dict[str, list[set[bytes]]]]:
    """The assembly of LLVM IR for a device, after LLVM's passes, and the attributes that parameters
    of functions have then, such as `readonly`."""
    initialize()
    target = llvm.Target.from_triple(device.triple)
    machine = target.create_target_machine(cpu=device.name, features=device.features, opt=3)
    module = llvm.parse_assembly(text, llvm.create_context())
    module.data_layout = str(machine.target_data)
    module.verify()
    tuning = llvm.create_pipeline_tuning_options(speed_level=2)
    builder = llvm.create_pass_builder(machine, tuning)
    builder.getModulePassManager().run(module, builder)
    if SHARED_ADDRESS in text:
        # Loads and stores have their alignment now, by which neighbours are merged.
        text = _SHARED.sub(r"define internal\1 alwaysinline", str(module))
        module = llvm.parse_assembly(text, llvm.create_context())
        passes = llvm.create_new_module_pass_manager()
        passes.add_always_inliner_pass()
        passes.run(module, builder)
    found = machine.emit_assembly(module)
    for pattern, replacement in _PLAIN:
        found = pattern.sub(replacement, found)
    parameters: dict[str, list[set[bytes]]] = {
        function.name: [set(argument.attributes) for argument in function.arguments]
        for function in module.functions
    }
    return found, parameters
