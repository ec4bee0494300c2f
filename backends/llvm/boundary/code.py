"""Machine code of the call boundary, and the entry function of a program."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir

from ....core.exclusive import exclusive
from ....core.target import host, named
from ....dialects.rt import ops as rt
from ..elf import image_of
from ..images import Image, can_be_mapped
from ..linking import FRAMES, PTR, Definitions, linked
from ..machine import machine
from .layout import CALL, ENTRIES, FRAME, OBJECTS, PLAN, Boundary, Layout, address_of, fill, mapped
from .plan import (
    ARGUMENTS,
    IN_ARENA,
    LARGE_RESULT,
    LARGEST_ARENA,
    LINE,
    POLYNOMIAL,
    RECORDS,
    CallPlan,
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
_LEVEL = 0
"""Optimised code generation takes three times as long, for a tenth of the time of a call."""


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


def _definitions(layout: Layout) -> Definitions:
    """Definitions that the files of the boundary declare."""
    made = Definitions()
    for name in ("type", "shape", "dtype"):
        made.field(f"{name}_of", getattr(layout, name), PTR)
    for name, bits in (("data", 64), ("kind", 64), ("rank", 32), ("flags", 32)):
        made.field(f"{name}_of", getattr(layout, name), ir.IntType(bits))
    made.number("dtype_mask", layout.dtype_mask)
    made.number("readable", layout.readable, 32)
    made.number("writable", layout.writable, 32)
    made.table(OBJECTS, ENTRIES, {PLAN: "plan_of"})
    for word in CallPlan:
        addresses = (CallPlan.CODE, CallPlan.FRAMES, CallPlan.SLOW, CallPlan.FAIL)
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


def install(layout: Layout, entries: Sequence[int], functions: Mapping[str, int]) -> Boundary:
    """The boundary for this process.

    Args:
        layout: the layout of objects.
        entries: what its table has, see `ENTRIES`.
        functions: those of functions of NumPy, by their names.
    """
    if can_be_mapped():
        return mapped(image(layout), entries, functions)
    return _linked(layout, entries, functions)


@functools.cache
@exclusive
def image(layout: Layout) -> Image:
    """The boundary as an image, for any processor of x86-64."""
    target_machine = machine(named("x86-64"), level=_LEVEL)
    return image_of(target_machine.emit_object(_module(layout, target_machine)))


def _module(layout: Layout, target_machine: Any) -> Any:
    """The boundary as a module of LLVM."""
    module = linked(_FILES, _definitions(layout), (CALL, FRAME, OBJECTS), target_machine)
    tuning = llvm.create_pipeline_tuning_options(speed_level=1)
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.run(module, llvm.create_pass_builder(target_machine, tuning))
    return module


@exclusive
def _linked(layout: Layout, entries: Sequence[int], functions: Mapping[str, int]) -> Boundary:
    """The boundary, loaded by LLVM."""
    target_machine = machine(host(), jit=True, level=_LEVEL)
    module = _module(layout, target_machine)
    for function in module.functions:
        name = function.name
        if function.is_declaration and name.startswith("Py"):
            llvm.add_symbol(name, functions.get(name) or address_of(name))
    engine = llvm.create_mcjit_compiler(module, target_machine)
    engine.finalize_object()
    _ENGINES.append(engine)
    fill(engine.get_global_value_address(OBJECTS), entries)
    return Boundary(engine.get_function_address(CALL), engine.get_function_address(FRAME))
