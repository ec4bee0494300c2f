"""Single functions of a module as machine code, called while the rest is interpreted."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from xdsl.dialects import llvm
from xdsl.dialects.builtin import IntegerType, ModuleOp, f32, f64
from xdsl.ir import Attribute

from ...core.target import Target
from .jit import CompiledModule, compile_module

Native = Callable[..., Any]
"""A function of numbers that returns a number; an address is an integer."""

_EXTERNAL = llvm.LinkageAttr("external")
_INTEGERS = {1: ctypes.c_bool, 8: ctypes.c_int8, 16: ctypes.c_int16, 32: ctypes.c_int32}


def native_functions(module: ModuleOp, target: Target) -> dict[str, Native]:
    """The functions of a module of the LLVM dialect, by name, as functions of Python.

    Functions with arguments or results other than numbers and addresses are left out.

    Raises:
        CompileError: if the module cannot be translated.
        TargetError: if this processor cannot run code for the target.
    """
    work = module.clone()
    functions = [op for op in work.ops if isinstance(op, llvm.FuncOp) and op.body.blocks]
    for function in functions:
        function.linkage = _EXTERNAL
    code = compile_module(work, target)
    found: dict[str, Native] = {}
    for function in functions:
        name, kind = function.sym_name.data, function.function_type
        types = [_type(one) for one in (kind.output, *kind.inputs)]
        if _UNKNOWN not in types:
            found[name] = _called(ctypes.CFUNCTYPE(*types)(code.address(name)), code)
    return found


def _called(function: Any, code: CompiledModule) -> Native:
    """A function that keeps its code alive."""

    def call(*arguments: Any) -> Any:
        assert code.addresses, "the code is needed for as long"
        return function(*arguments)

    return call


_UNKNOWN = object()
"""Marks a type that C functions cannot take."""


def _type(kind: Attribute) -> Any:
    if isinstance(kind, llvm.LLVMVoidType):
        return None
    if isinstance(kind, llvm.LLVMPointerType):
        return ctypes.c_void_p
    if isinstance(kind, IntegerType):
        return _INTEGERS.get(kind.width.data, ctypes.c_int64)
    if kind == f32:
        return ctypes.c_float
    return ctypes.c_double if kind == f64 else _UNKNOWN
