"""LLVM IR to machine code in this process, and its text.

`compile_module` returns a `CompiledModule`: the addresses of visible functions, and the text of the
IR and of the assembly. The machine code lives as long as the object; it is read-only, so any number
of threads may use it.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum
from typing import Any

import llvmlite.binding as llvm
from llvmlite.binding.newpassmanagers import NewPassManager
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Attribute

from ...core.errors import CompileError, InternalError, explain
from ...core.exclusive import close_after, exclusive
from ...core.ir.printing import Listing
from ...core.target import Target, host
from ...dialects.program import EFFORT, UNROLL
from ...dialects.rt.abi import PARALLEL_TILES
from . import thread_pool
from .boundary.code import add_entry
from .machine import check_runs_here, machine
from .translate import translate


class Effort(Enum):
    """The LLVM passes that run before code generation."""

    NONE = "none"
    """None: kernels are scheduled already, and LLVM's passes cannot improve a register tile."""
    LIGHT = "light"
    """instcombine and sroa: small buffers on the stack become registers. These passes run on the
    functions that have such buffers at any effort."""
    O1 = "1"
    O2 = "2"
    O3 = "3"


def effort_of(module: ModuleOp) -> Effort:
    """The effort that a module of the LLVM dialect states; `NONE` by default.

    Raises:
        CompileError: if there is no such effort.
    """
    stated = module.attributes.get(EFFORT)
    if stated is None:
        return Effort.NONE
    found: dict[Attribute, Effort] = {StringAttr(e.value): e for e in Effort}
    if stated not in found:
        expected = ", ".join(map(str, found))
        raise CompileError(explain(EFFORT, "unknown effort", expected=expected, got=stated))
    return found[stated]


_DEBUG = (
    re.compile(r"\n!llvm\.(?:dbg\.cu|module\.flags) = .*"),
    re.compile(r", !dbg !\d+"),
    re.compile(r" !dbg !\d+"),
)
"""Debug information in the text of LLVM IR, and the flags that state its version: of instructions,
then of functions. Patterns that begin with a literal are found in a tenth of the time of others."""

_UNROLL, _LIGHT = (f'"{mark}"'.encode() for mark in (UNROLL, EFFORT))

_CALL = re.compile(r"^\s+(?:callq?|jmp|bl?)\s+(\w+)", re.MULTILINE)
"""A call of a function by name, in the assembly of x86-64 and AArch64."""


class CompiledModule:
    """Machine code in this process. It stays valid while this object lives."""

    def __init__(self, text: str, target: Target, effort: Effort):
        """Compile the text of LLVM IR.

        Raises:
            CompileError: if the text is not valid LLVM IR.
            TargetError: if this processor cannot run code for the target.
        """
        check_runs_here(target)
        self.target = target
        self.effort = effort
        self.llvm_ir = text
        """The IR before any of LLVM's passes."""
        self.object_code: bytes
        """The object file that is linked into this process."""
        self.addresses: Mapping[str, int]
        """The address of each visible function."""
        self.object_code, self.addresses = self._linked()

    @exclusive
    def _linked(self) -> tuple[bytes, Mapping[str, int]]:
        """Compile and link the text."""
        target_machine = machine(self.target, jit=True)
        # A context of its own: types and constants are freed with the module.
        context = llvm.create_context()
        module = _optimized(self.llvm_ir, self.target, target_machine, self.effort, context)
        object_code = target_machine.emit_object(module)
        linked = library(module, object_code)
        names = [
            f.name
            for f in module.functions
            if not f.is_declaration and f.linkage == llvm.Linkage.external
        ]
        for name in names:
            linked.export_symbol(name)
        linker = llvm.create_lljit_compiler(target_machine, suppress_errors=True)
        try:
            code = linked.link(linker, "module")
        except RuntimeError as error:
            raise _unlinked(module, self.target, error) from error
        close_after(self, code, linker)
        return object_code, {name: code[name] for name in names}

    def address(self, name: str) -> int:
        """The address of a function.

        Raises:
            CompileError: if there is no such function.
        """
        found = self.addresses.get(name)
        if found is None:
            known = ", ".join(self.addresses)
            raise CompileError(explain("llvm", "no such function", expected=known, got=name))
        return found

    def optimized_ir(self) -> str:
        """The IR after LLVM's passes."""
        return optimized_ir(self.llvm_ir, self.target, self.effort)

    def assembly(self) -> str:
        """The assembly of the machine code."""
        return assembly(self.llvm_ir, self.target, self.effort)


def library(module: Any, code: bytes) -> Any:
    """The object file of a module, linked against its declarations and the process.

    Guards of the tests replace this function, to link another module in place of it.
    """
    made = llvm.JITLibraryBuilder().add_current_process()
    for function in module.functions:
        name = function.name
        if not function.is_declaration or name.startswith("llvm."):
            continue
        if name == PARALLEL_TILES:
            thread_pool.install()
        address = _address_of(name)
        if address is None:
            raise CompileError(explain("llvm", f"function {name} is declared but nowhere defined"))
        made.import_symbol(name, address)
    return made.add_object_img(code)


class LinkedObject:
    """An object file, linked into this process by LLVM. It stays valid while this object lives.

    Args:
        code: the object file.
        functions: the functions that are seen outside.
        imports: those that it calls.

    Raises:
        CompileError: if one that it calls is nowhere defined.
    """

    def __init__(self, code: bytes, functions: Sequence[str], imports: Sequence[str]) -> None:
        self._addresses = self._linked(code, functions, imports)

    @exclusive
    def _linked(
        self, code: bytes, functions: Sequence[str], imports: Sequence[str]
    ) -> Mapping[str, int]:
        """The addresses of the functions, once all are linked."""
        library = llvm.JITLibraryBuilder().add_current_process()
        for name in imports:
            if name == PARALLEL_TILES:
                thread_pool.install()
            if (address := _address_of(name)) is not None:
                library.import_symbol(name, address)
        for name in functions:
            library.export_symbol(name)
        linker = llvm.create_lljit_compiler(machine(host(), jit=True), suppress_errors=True)
        try:
            linked = library.add_object_img(code).link(linker, "object")
        except RuntimeError as error:
            reason = " ".join(str(error).split())[:200]
            fact = f"machine code cannot be linked: {reason}"
            raise CompileError(explain("llvm", fact)) from error
        close_after(self, linked, linker)
        return {name: linked[name] for name in functions}

    def address(self, name: str) -> int:
        """The address of a function."""
        return self._addresses[name]


@exclusive
def add_function(name: str, address: int) -> None:
    """Let machine code that is compiled from now on call a function of the process by its name."""
    llvm.add_symbol(name, address)


def _address_of(name: str) -> int | None:
    """The address of a function registered with LLVM or in the process; None if there is none.

    LLVM alone searches the process only after something else has caused it to.
    """
    registered = llvm.address_of_symbol(name)
    if registered is not None:
        return registered
    try:
        function = ctypes.CDLL(None)[name]
    except AttributeError:
        return None
    return ctypes.cast(function, ctypes.c_void_p).value


def _unlinked(module: Any, target: Target, error: RuntimeError) -> CompileError:
    """The error that names the functions that machine code calls but this process lacks.

    LLVM emits such calls for operations without an instruction.
    """
    text = machine(target).emit_assembly(module)
    called = dict.fromkeys(_CALL.findall(text))
    defined = {function.name for function in module.functions if not function.is_declaration}
    missing = [n for n in called if n not in defined and _address_of(n) is None]
    if not missing:
        reason = " ".join(str(error).split())[:200]
        return CompileError(explain("llvm", f"machine code cannot be linked: {reason}"))
    fact = f"machine code for {target.name} calls {', '.join(missing)}, which is nowhere defined"
    hint = "the processor has no instruction for it"
    return CompileError(explain("llvm", fact, hint=hint))


def compile_module(
    module: ModuleOp,
    target: Target,
    effort: Effort | None = None,
    public: str | None = None,
    source: Listing | None = None,
) -> CompiledModule:
    """Machine code for a module of the LLVM dialect.

    Args:
        module: the module.
        target: the target of the code.
        effort: the LLVM passes to run; None for those that the module states.
        public: the function that `boundary.code.ENTRY` calls, if any.
        source: the lines of the nodes of the model; None for no debug information.

    Raises:
        CompileError: if the module cannot be translated, or states an unknown effort.
        TargetError: if this processor cannot run code for the target.
    """
    text = program_ir(module, target, public, source)
    return CompiledModule(text, target, effort or effort_of(module))


def program_ir(
    module: ModuleOp, target: Target, public: str | None, source: Listing | None = None
) -> str:
    """The text of the LLVM IR of a module, with `boundary.code.ENTRY`; see `compile_module`."""
    translated = translate(module, target, source)
    if public is not None:
        add_entry(translated, public)
    return str(translated)


def llvm_ir(module: ModuleOp, target: Target, source: Listing | None = None) -> str:
    """The text of the LLVM IR of a module of the LLVM dialect, before any of LLVM's passes."""
    return str(translate(module, target, source))


@exclusive
def optimized_ir(text: str, target: Target, effort: Effort) -> str:
    """LLVM IR after LLVM's passes."""
    return str(_optimized(text, target, machine(target), effort, llvm.create_context()))


def optimized(text: str, target: Target, effort: Effort) -> Any:
    """The module of LLVM IR after LLVM's passes, which can be joined with others."""
    return _optimized(text, target, machine(target), effort)


@exclusive
def assembly(text: str, target: Target, effort: Effort = Effort.NONE) -> str:
    """The assembly of LLVM IR, for any target that this build of LLVM knows."""
    target_machine = machine(target)
    module = _optimized(text, target, target_machine, effort, llvm.create_context())
    return target_machine.emit_assembly(module)


@exclusive
def object_code(
    text: str,
    target: Target,
    effort: Effort = Effort.NONE,
    joined: Callable[[Any, Any], Any] | None = None,
) -> bytes:
    """The relocatable object file of LLVM IR.

    Args:
        text: the IR.
        target: the target of the code.
        effort: the LLVM passes to run.
        joined: makes of the module after these passes, and of LLVM's target machine, the module to
            emit; None for the same.
    """
    target_machine = machine(target)
    # Other modules can only be joined with one in the context of the process.
    context = None if joined else llvm.create_context()
    module = _optimized(text, target, target_machine, effort, context)
    return target_machine.emit_object(joined(module, target_machine) if joined else module)


def _optimized(
    text: str, target: Target, target_machine: Any, effort: Effort, context: Any = None
) -> Any:
    """The module of a text after LLVM's passes, by default in the context of the process."""
    module = _parsed(text, context)
    module.triple = target_machine.triple
    module.data_layout = str(target_machine.target_data)
    marks = [(function, b"".join(function.attributes)) for function in module.functions]
    if effort is not Effort.NONE:
        _run_passes(module, target, effort)
    else:
        _run_on([f for f, text in marks if _LIGHT in text], _add_light, target)
    _run_on([f for f, text in marks if _UNROLL in text], _add_unrolling, target)
    return module


def _parsed(text: str, context: Any) -> Any:
    """The module of a text, which LLVM's verifier accepts.

    Raises:
        InternalError: if it does not.
    """
    try:
        # LLVM ends the process while it parses an invalid module that has debug information.
        plain = text
        for pattern in _DEBUG:
            plain = pattern.sub("", plain)
        llvm.parse_assembly(plain, llvm.create_context()).verify()
        return llvm.parse_assembly(text, context)
    except RuntimeError as error:
        reason = " ".join(str(error).split())[:200]
        raise InternalError(explain("llvm", f"invalid LLVM IR: {reason}")) from error


def _run_on(functions: Sequence[Any], add: Callable[[Any], None], target: Target) -> None:
    """Run passes on some functions."""
    if not functions:
        return
    with _freed(llvm.create_new_function_pass_manager()) as passes:
        add(passes)
        for function in functions:
            passes.run(function, _pass_builder(target, 2))


def _add_light(passes: Any) -> None:
    """Add the passes of `Effort.LIGHT`."""
    passes.add_instruction_combine_pass()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()


def _add_unrolling(passes: Any) -> None:
    passes.add_loop_rotate_pass()
    passes.add_loop_unroll_pass()


def _run_passes(module: Any, target: Target, effort: Effort) -> None:
    builder = _pass_builder(target, 1 if effort is Effort.LIGHT else int(effort.value))
    is_light = effort is Effort.LIGHT
    made = llvm.create_new_module_pass_manager() if is_light else builder.getModulePassManager()
    with _freed(made) as passes:
        if is_light:
            _add_light(passes)
        passes.run(module, builder)


@contextmanager
def _freed(manager: Any) -> Iterator[Any]:
    """A pass manager, which is freed at the end.

    llvmlite does not: its classes inherit a method for it that does nothing, before the one that
    does.
    """
    try:
        yield manager
    finally:
        NewPassManager._dispose(manager)
        manager.detach()


def _pass_builder(target: Target, level: int) -> Any:
    """The pass builder for a target and an optimisation level from 0 to 3.

    It is made once, because llvmlite does not free all of it; one thread at a time may use it.
    """
    key = target.triple, target.cpu, target.features, level
    if key not in _BUILDERS:
        tuning = llvm.create_pipeline_tuning_options(speed_level=level)
        _BUILDERS[key] = llvm.create_pass_builder(machine(target), tuning)
    return _BUILDERS[key]


_BUILDERS: dict[tuple[str, str, str, int], Any] = {}
