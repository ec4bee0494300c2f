"""Machine code of the call boundary, and the entry function of a program."""

from __future__ import annotations

import ctypes
import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir

from ....core.target import host
from ....dialects.rt import ops as rt
from ..linking import FRAMES, PTR, Definitions, linked
from ..machine import machine
from .layout import Layout
from .plan import (
    ARGUMENTS,
    IN_ARENA,
    LARGE_RESULT,
    LARGEST_ARENA,
    LINE,
    POLYNOMIAL,
    RECORDS,
    Plan,
)

ENTRY = "stepwell_entry"
"""The name of the function that `add_entry` makes, which takes a frame."""

_FILES = [
    *(
        Path(__file__).with_name(f"{name}.ll")
        for name in ("reader", "arguments", "results", "call")
    ),
    FRAMES,
]
_OF_NUMPY = "PyArray_"
"""What the names of NumPy's functions begin with, which are not symbols of the process."""

_EXPORTED = ("stepwell_call", "stepwell_frame")


def add_entry(module: ir.Module, name: str) -> None:
    """Add a function that calls a public one with the contents of a frame, and returns its
    status."""
    callee = module.get_global(name)
    frame_type, word = ir.PointerType(), ir.IntType(64)
    function = ir.Function(module, ir.FunctionType(ir.IntType(32), [frame_type]), ENTRY)
    function.attributes.add("nounwind")
    builder = ir.IRBuilder(function.append_basic_block())
    frame = function.args[0]
    arguments: list[Any] = [frame]
    for number, argument in enumerate(callee.args[1:], ARGUMENTS):
        at = builder.gep(frame, [ir.Constant(word, number)], source_etype=word)
        arguments.append(builder.load(at, typ=argument.type))
    builder.ret(builder.call(callee, arguments))


@dataclass(frozen=True)
class Boundary:
    """Addresses of the functions of the boundary."""

    call: int
    """The vectorcall of executables."""
    frame: int
    """`(address of the head of a list) -> a free frame or null`."""


def _definitions(layout: Layout) -> Definitions:
    """Definitions that the files of the boundary declare."""
    made = Definitions()
    for name in ("type", "shape", "dtype"):
        made.field(f"{name}_of", getattr(layout, name), PTR)
    for name, bits in (("data", 64), ("kind", 64), ("rank", 32), ("flags", 32)):
        made.field(f"{name}_of", getattr(layout, name), ir.IntType(bits))
    made.field("plan_of", layout.plan, PTR)
    made.number("dtype_mask", layout.dtype_mask)
    made.number("readable", layout.readable, 32)
    made.number("writable", layout.writable, 32)
    for name, address in layout.objects:
        made.address(name, address)
    for word in Plan:
        addresses = (Plan.CODE, Plan.FRAMES, Plan.SLOW, Plan.FAIL)
        kind = PTR if word in addresses else ir.IntType(64)
        made.field(f"plan_{word.name.lower()}", 8 * word, kind)
    made.place("plan_records", 8 * RECORDS)
    made.place("frame_busy", 8 * rt.Word.BUSY)
    made.place("frame_next", 8 * rt.Word.NEXT)
    made.place("frame_arguments", 8 * ARGUMENTS)
    made.field("frame_arena", 8 * rt.Word.ARENA, PTR)
    made.number("in_arena", IN_ARENA)
    made.number("polynomial", POLYNOMIAL)
    made.number("largest_arena", LARGEST_ARENA)
    made.number("large_result", LARGE_RESULT)
    made.number("line", LINE)
    made.number("arena_too_small", rt.ARENA_TOO_SMALL, 32)
    return made


_ENGINES: list[Any] = []
"""Keeps the machine code alive until the process ends."""


@functools.cache
def install(layout: Layout) -> Boundary:
    """The boundary as machine code, compiled once per process and layout."""
    # Optimised code generation takes three times as long, for a tenth of the time of a call.
    target_machine = machine(host(), jit=True, level=0)
    module = linked(_FILES, _definitions(layout), _EXPORTED, target_machine)
    called = [f.name for f in module.functions if f.is_declaration and f.name.startswith("Py")]
    for name in called:
        if not name.startswith(_OF_NUMPY):
            function = getattr(ctypes.pythonapi, name)
            llvm.add_symbol(name, ctypes.cast(function, ctypes.c_void_p).value)
    for name, address in layout.functions:
        llvm.add_symbol(name, address)
    tuning = llvm.create_pipeline_tuning_options(speed_level=1)
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.run(module, llvm.create_pass_builder(target_machine, tuning))
    engine = llvm.create_mcjit_compiler(module, target_machine)
    engine.finalize_object()
    _ENGINES.append(engine)
    return Boundary(*map(engine.get_function_address, _EXPORTED))
