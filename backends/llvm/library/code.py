"""The object file of a program: its kernels, its C functions, and parts of the run time."""

from __future__ import annotations

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
)
from ...c.interface import CInterface
from .. import thread_pool
from ..jit import Effort, object_code
from ..linking import FRAMES, PTR, Definitions, linked, parsed_for
from .calls import CallFunctions
from .features import BASELINE, FILE, checked_features
from .lives import CONSTANTS, HEAD, LifeFunctions
from .sizes import SizeFunctions
from .weights import Weights

_ALIGNMENT = 64
_PROGRAM = "stepwell.program"
"""The function that runs the kernels: a name that no function of C has."""
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


def object_file(
    text: str, public: str, effort: Effort, interface: CInterface, weights: Weights
) -> bytes:
    """The object file of a program, with its weights if they are linked.

    Args:
        text: the LLVM IR of the program.
        public: its public function.
        effort: the LLVM passes to run on it.
        interface: its interface in C.
        weights: its constants.

    Raises:
        InternalError: if the IR is invalid.
        TargetError: if LLVM does not know the target.
    """
    functions = ir.Module()
    sizes = SizeFunctions(functions, interface)
    CallFunctions(functions, interface, sizes, _PROGRAM)
    LifeFunctions(functions, interface, weights)

    def joined(program: Any, target_machine: Any) -> Any:
        program.get_function(public).name = _PROGRAM
        if interface.takes_memory:
            # Kernels take memory from the hooks of the caller, and threads of the pool know them.
            for function in program.functions:
                if function.is_declaration and function.name in _REDIRECTED:
                    function.name = _REDIRECTED[function.name]
        facts = interface.target, weights, interface.pooled, interface.takes_memory
        definitions = definitions_for(*facts)
        cpu = BASELINE if checked_features(interface.target) else None
        others = program, parsed_for(cpu, str(functions))
        # The files of the run time that the program needs.
        mapping = [_MAPPING] if interface.maps_files and not interface.linked_weights else []
        pool = thread_pool.files(interface.target.triple) if interface.pooled else []
        locals = [_LOCALS] if interface.takes_memory else []
        tiles = [_TILES] if interface.takes_memory and interface.pooled else []
        features = [FILE] if checked_features(interface.target) else []
        files = [*_FILES, FRAMES, *features, *locals, *tiles, *mapping, *pool]
        whole = linked(files, definitions, interface.functions, target_machine, others, cpu)
        passes = llvm.create_new_module_pass_manager()
        passes.add_always_inliner_pass()
        tuning = llvm.create_pipeline_tuning_options()
        passes.run(whole, llvm.create_pass_builder(target_machine, tuning))
        return whole

    code = object_code(text, interface.target, effort, joined)
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
    made.number("frame_bytes", _rounded(8 * WORDS))
    made.number("program_bytes", _rounded(8 * (CONSTANTS + len(weights.arrays))))
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


def _rounded(bytes: int) -> int:
    return -(-bytes // _ALIGNMENT) * _ALIGNMENT
