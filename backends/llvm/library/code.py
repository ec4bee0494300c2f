"""The object file of a program: its kernels, its C functions, and parts of the run time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir

from ....core.target import Target
from ....dialects.rt.abi import (
    PARALLEL_TILES,
    SYSTEM_ABORT,
    SYSTEM_ALLOCATE,
    SYSTEM_FREE,
    WORDS,
    Word,
    rounded_up,
)
from ...c.interface import CInterface
from .. import thread_pool
from ..jit import Effort, object_code, optimized
from ..linking import FRAMES, PTR, Definitions, compiled_for, linked, parsed_for
from .calls import CallFunctions, program_function
from .emitter import CONSTANTS, HEAD
from .features import BASELINE, FILE, checked_features
from .lives import LifeFunctions
from .sizes import SizeFunctions
from .weights import Weights

_FILES = [Path(__file__).with_name(f"{name}.ll") for name in ("memory", "ranges", "text")]
_LOCALS, _TILES, _MAPPING = (
    Path(__file__).with_name(f"{name}.ll") for name in ("locals", "local_tiles", "mapping")
)
_REDIRECTED = {
    SYSTEM_ALLOCATE: "allocate_local",
    SYSTEM_FREE: "release_local",
    SYSTEM_ABORT: "never",
    PARALLEL_TILES: "run_tiles",
}
"""What kernels call that take memory, by the functions of the C library and of the run time."""


@dataclass(frozen=True)
class ProgramText:
    """The LLVM IR of a program for a target, and the LLVM passes to run on it."""

    text: str
    effort: Effort


def object_file(
    programs: Sequence[ProgramText], public: str, interface: CInterface, weights: Weights
) -> bytes:
    """The object file of a library, with its weights if they are linked.

    Args:
        programs: the program for each target of the interface.
        public: the public function of all of them.
        interface: their interface in C.
        weights: their constants.

    Raises:
        InternalError: if the IR is invalid.
        TargetError: if LLVM does not know the target.
    """
    functions = ir.Module()
    sizes = SizeFunctions(functions, interface)
    CallFunctions(functions, interface, sizes)
    LifeFunctions(functions, interface, weights)

    def joined(least: Any, target_machine: Any) -> Any:
        better = zip(texts[:-1], interface.targets, efforts, strict=False)
        modules = [*(optimized(*facts) for facts in better), least]
        for number, program in enumerate(modules):
            program.get_function(public).name = program_function(number)
            for function in program.functions if interface.takes_memory else ():
                # Kernels take memory from the hooks of the caller, which threads of the pool know.
                if function.is_declaration and function.name in _REDIRECTED:
                    function.name = _REDIRECTED[function.name]
        facts = interface.target, weights, interface.pooled, interface.takes_memory
        definitions = definitions_for(*facts)
        checked = any(map(checked_features, interface.targets))
        cpu = BASELINE if checked else None
        others = *modules, parsed_for(cpu, str(functions))
        # The files of the run time that the program needs.
        mapping = [_MAPPING] if interface.maps_files and not interface.linked_weights else []
        pool = thread_pool.files(interface.target.triple) if interface.pooled else []
        locals = [_LOCALS] if interface.takes_memory else []
        tiles = [_TILES] if interface.takes_memory and interface.pooled else []
        features = [FILE] if checked else []
        files = [*_FILES, FRAMES, *features, *locals, *tiles, *mapping, *pool]
        whole = linked(files, definitions, interface.functions, target_machine, others, cpu)
        passes = llvm.create_new_module_pass_manager()
        passes.add_always_inliner_pass()
        tuning = llvm.create_pipeline_tuning_options()
        passes.run(whole, llvm.create_pass_builder(target_machine, tuning))
        return whole

    texts, efforts = [program.text for program in programs], [one.effort for one in programs]
    if interface.chooses:
        # Each function says which processor it is for, as the module does not.
        named = zip(texts, interface.targets, strict=True)
        texts = [compiled_for(text, target.cpu, target.features) for text, target in named]
    code = object_code(texts[-1], interface.target, efforts[-1], joined)
    return bytes(weights.filled(code)) if interface.linked_weights else code


def definitions_for(
    target: Target, weights: Weights, pooled: bool, takes_memory: bool
) -> Definitions:
    """Definitions that these files declare."""
    made = Definitions()
    made.place("frame_busy", 8 * Word.BUSY)
    made.place("frame_next", 8 * Word.NEXT)
    made.place("frame_constants", 8 * Word.CONSTANTS)
    made.place("frame_arena", 8 * Word.ARENA)
    made.place("frame_arena_bytes", 8 * Word.ARENA_BYTES)
    made.place("program_head", 8 * HEAD)
    made.place("program_constants", 8 * CONSTANTS)
    made.number("frame_bytes", rounded_up(8 * WORDS))
    constants = max((len(slots) for slots in weights.slots), default=0)
    made.number("program_bytes", rounded_up(8 * (CONSTANTS + constants)))
    size = ir.IntType(target.index_bits)
    # The C library's function for numbers of 64 bits: its own are as wide as an address.
    word = ir.IntType(64)
    builder, arguments = made.function("system_allocate", PTR, word, word)
    kind = ir.FunctionType(PTR, (size, size))
    function = ir.Function(made.module, kind, SYSTEM_ALLOCATE)
    narrow = [value if size == word else builder.trunc(value, size) for value in arguments]
    builder.ret(builder.call(function, narrow))
    if takes_memory:
        _define_locals(made, size, target.triple)
    if pooled:
        thread_pool.define(made, target.triple)
    return made


def _define_locals(made: Definitions, size: ir.IntType, triple: str) -> None:
    """What `locals.ll` needs, and the functions that kernels call instead of the C library's."""
    word, status = ir.IntType(64), ir.IntType(32)
    builder, (_, bytes) = made.function(_REDIRECTED[SYSTEM_ALLOCATE], PTR, size, size)
    take = ir.Function(made.module, ir.FunctionType(PTR, (word,)), "take_local")
    builder.ret(builder.call(take, [bytes if size == word else builder.zext(bytes, word)]))
    # Memory is never null.
    builder, _ = made.function(_REDIRECTED[SYSTEM_ABORT], ir.VoidType())
    builder.unreachable()
    if triple.startswith("wasm"):
        # WebAssembly cannot leave functions from within: without memory, the call traps.
        builder, _ = made.function("_setjmp", status, PTR)
        builder.ret(status(0))
        builder, _ = made.function("_longjmp", ir.VoidType(), PTR, status)
        trap = ir.Function(made.module, ir.FunctionType(ir.VoidType(), ()), "llvm.trap")
        builder.call(trap, ())
        builder.unreachable()
