"""Machine code of the call boundary, and the form in which it calls a program."""

from __future__ import annotations

import ctypes
import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir

from ....core.target import host
from ....dialects import rt
from ..machine import machine
from .arguments import ARGUMENTS_IR
from .call import CALL_IR
from .plan import ARGUMENTS, LARGEST_ARENA, POLYNOMIAL, Plan
from .results import RESULTS_IR

ENTRY = "stepwell_entry"
"""What the function of a frame is called that `add_entry` makes."""

_PYTHON_IR = """
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare void @PyErr_Clear()
declare ptr @PyErr_NoMemory()
declare ptr @PyErr_Occurred()
declare i32 @PyErr_ExceptionMatches(ptr)
declare ptr @PyLong_FromLongLong(i64)
declare i64 @PyLong_AsSsize_t(ptr)
declare ptr @PyMem_Malloc(i64)
declare void @PyMem_Free(ptr)
declare ptr @PyObject_GetAttr(ptr, ptr)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare ptr @PyObject_VectorcallMethod(ptr, ptr, i64, ptr)
declare ptr @PyTuple_New(i64)
declare ptr @PyTuple_GetItem(ptr, i64)
declare i32 @PyTuple_SetItem(ptr, i64, ptr)
declare i64 @PyTuple_Size(ptr)
declare ptr @PyArray_NewFromDescr(ptr, ptr, i32, ptr, ptr, ptr, i32, ptr)
declare { i64, i1 } @llvm.smul.with.overflow.i64(i64, i64)
declare { i64, i1 } @llvm.sadd.with.overflow.i64(i64, i64)
"""

_NUMBERS = {
    "$BUSY": rt.Word.BUSY,
    "$NEXT": rt.Word.NEXT,
    "$ARENA_TOO_SMALL": rt.ARENA_TOO_SMALL,
    "$ARGUMENTS": ARGUMENTS,
    "$POLYNOMIAL": POLYNOMIAL,
    "$LARGEST_ARENA": LARGEST_ARENA,
    **{f"${word.name}": word for word in Plan if word is not Plan.SHAPE},
    "$SHAPE_IN_FRAME": Plan.SHAPE,
}


def add_entry(module: ir.Module, name: str) -> None:
    """Add a function that calls a public one with what is in a frame, and returns its status."""
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


@functools.cache
def _compiled(text: str) -> tuple[Any, Boundary]:
    """The machine code of the boundary's IR, and where it is."""
    # Better code generation takes three times as long and saves a tenth of a call.
    target_machine = machine(host(), jit=True, level=0)
    module = llvm.parse_assembly(text)
    module.verify()
    tuning = llvm.create_pipeline_tuning_options(speed_level=1)
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.run(module, llvm.create_pass_builder(target_machine, tuning))
    engine = llvm.create_mcjit_compiler(module, target_machine)
    engine.finalize_object()
    address = engine.get_function_address
    return engine, Boundary(address("stepwell_call"), address("stepwell_frame"))


def install(objects: Mapping[str, int], plan: int, new_array: int) -> Boundary:
    """The boundary as machine code, made once in a process.

    Args:
        objects: where things are in objects of Python, by the names of the IR.
        plan: where in an executable the address of its plan is.
        new_array: the address of NumPy's `PyArray_NewFromDescr`.
    """
    for name in re.findall(r"@(Py\w+)", _PYTHON_IR):
        if name != "PyArray_NewFromDescr":
            function = getattr(ctypes.pythonapi, name)
            llvm.add_symbol(name, ctypes.cast(function, ctypes.c_void_p).value)
    llvm.add_symbol("PyArray_NewFromDescr", new_array)
    numbers = {**_NUMBERS, **objects, "$PLAN": plan}
    text = _PYTHON_IR + ARGUMENTS_IR + RESULTS_IR + CALL_IR
    return _compiled(re.sub(r"\$[A-Z_]+", lambda name: str(numbers[name[0]]), text))[1]
