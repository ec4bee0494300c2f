"""Machine code of a program in parts: each kernel by itself, so that others can use it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from xdsl.dialects import llvm
from xdsl.dialects.builtin import ModuleOp, StringAttr, SymbolRefAttr
from xdsl.ir import Operation, Region

from ..backends.llvm import jit, thread_pool
from ..backends.llvm.assembled import KERNEL, Assembled, MappedProgram
from ..backends.llvm.boundary.code import ENTRY
from ..backends.llvm.elf import image_of
from ..backends.llvm.images import Image, system_function
from ..core.ir.module import Module
from ..core.ir.symbols import symbol_of
from ..core.ir.walks import operations_in
from ..core.target import Target
from ..dialects.rt.abi import PARALLEL_TILES
from .functions import callback
from .loaded import Program
from .lowered import lowered

_EXTERNAL = llvm.LinkageAttr("external")


def assembled(
    module: Module, target: Target, known: Mapping[str, Image], apart: Collection[str]
) -> tuple[Program, Mapping[str, Image]]:
    """The machine code of a module at stage `llvm`, and the images made of its kernels, by name.

    Args:
        module: the module, which is changed.
        target: the target of the code, for which images can be mapped.
        known: the images of kernels that the module only declares.
        apart: the kernels to make images of.

    Raises:
        CompileError: if it is not a program, cannot be translated, or code needs a linker.
        StepwellError: if the system does not allow memory that is executable.
    """
    found = lowered(module)
    made = {name: _image(part, target, None) for name, part in _taken_out(module.op, apart)}
    images = Assembled(_image(module.op, target, found.name), {**known, **made})
    code = MappedProgram(images, _address)
    functions = tuple(map(callback, found.interface.functions))
    entry = code.address(ENTRY)
    return Program(found.interface, found.constants, functions, entry, code), made


def _image(module: ModuleOp, target: Target, public: str | None) -> Image:
    text = jit.program_ir(module, target, public)
    return image_of(jit.object_code(text, target, jit.effort_of(module)))


def _address(name: str) -> int:
    return thread_pool.install() if name == PARALLEL_TILES else system_function(name)


def _taken_out(module: ModuleOp, names: Collection[str]) -> Iterator[tuple[str, ModuleOp]]:
    """Take kernels with all that they use out of a module, which then declares them."""
    functions = {symbol: op for op in module.ops if (symbol := symbol_of(op)) is not None}
    used = {name: _used(functions, name) for name in names}
    for name in names:
        old = functions[name]
        assert isinstance(old, llvm.FuncOp)
        declared = llvm.FuncOp(old.sym_name, old.function_type, linkage=_EXTERNAL, body=Region())
        module.body.block.insert_op_before(declared, old)
    public = [
        name
        for name, op in functions.items()
        if isinstance(op, llvm.FuncOp) and op.linkage == _EXTERNAL and bool(op.body.blocks)
    ]
    outside = {other for name in public for other in _used(functions, name, names)}
    for name in names:
        # A function that others use as well stays where it is.
        others = outside.union(*(used[other] for other in names if other != name))
        ops = [_part(functions[other], other in others) for other in used[name]]
        kernel = ops[0]
        assert isinstance(kernel, llvm.FuncOp)
        kernel.sym_name, kernel.linkage = StringAttr(KERNEL), _EXTERNAL
        yield name, ModuleOp(ops, dict(module.attributes))


def _part(op: Operation, is_used_elsewhere: bool) -> Operation:
    if is_used_elsewhere:
        return op.clone()
    op.detach()
    return op


def _used(
    functions: Mapping[str, Operation], name: str, without: Collection[str] = ()
) -> list[str]:
    """A function and those that it uses, also indirectly, but for some and what these use."""
    found = [name]
    for each in found:
        for op in operations_in(functions[each]):
            for attribute in op.properties.values():
                if isinstance(attribute, SymbolRefAttr):
                    other = attribute.root_reference.data
                    if other in functions and other not in found and other not in without:
                        found.append(other)
    return found
