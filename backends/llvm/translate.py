"""The LLVM dialect to LLVM IR, as a module of llvmlite.

xDSL translates most of the dialect (`xdsl.backend.llvm`); what differs is in `operations`.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from xdsl.backend.llvm.convert import convert_module
from xdsl.dialects import llvm
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, Region
from xdsl.utils.exceptions import LLVMTranslationException

from ...core.errors import CompileError, explain
from ...core.ir.control_flow import definitions_first
from ...core.ir.printing import Listing
from ...core.ir.provenance import origin
from ...core.target import Target
from ...dialects.program import EFFORT, UNROLL
from .debug import DebugInfo
from .operations import Blocks, Values, emit, type_of


def translate(
    module: ModuleOp,
    target: Target,
    source: Listing | None = None,
    description: type[DebugInfo] = DebugInfo,
) -> ir.Module:
    """The LLVM IR of a module in the LLVM dialect.

    With `source`, the lines of nodes, locations become debug locations, as `description` says.

    Raises:
        CompileError: naming the first operation that has no translation.
    """
    declarations = ModuleOp([_declaration(op) for op in module.ops])
    try:
        result = convert_module(declarations, fallback_target_triple=target.triple)
        debug = None if source is None else description(result, source)
        for op in module.ops:
            if isinstance(op, llvm.FuncOp):
                _translate_function(op, result.get_global(op.sym_name.data), debug)
    except (NotImplementedError, LLVMTranslationException) as error:
        raise CompileError(explain("llvm", f"cannot be translated: {error}")) from error
    return result


def _declaration(op: Operation) -> Operation:
    if not isinstance(op, llvm.FuncOp):
        return op.clone()
    return llvm.FuncOp.create(properties=op.properties, regions=[Region()])


def _translate_function(op: llvm.FuncOp, function: Any, debug: DebugInfo | None) -> None:
    function.attributes.add("nounwind")
    for mark in (UNROLL, EFFORT):
        if mark in op.attributes:
            # llvmlite knows no attributes of other tools, which are strings.
            set.add(function.attributes, f'"{mark}"')
    if not op.body.blocks:
        return
    if op.linkage.linkage.data != "external":
        function.linkage = op.linkage.linkage.data
    at = None if debug is None else debug.function(op, function)
    values: Values = {}
    blocks: Blocks = {block: function.append_basic_block() for block in op.body.blocks}
    for number, (block, made) in enumerate(blocks.items()):
        if number == 0:
            values.update(zip(block.args, function.args, strict=True))
            continue
        builder = ir.IRBuilder(made)
        for argument in block.args:
            values[argument] = builder.phi(type_of(argument.type))
    for block in definitions_first(op.body.blocks):
        builder = ir.IRBuilder(blocks[block])
        for inner in block.ops:
            if at is not None:
                builder.debug_metadata = at(inner.location)
            try:
                emit(inner, builder, values, blocks)
            except (NotImplementedError, LLVMTranslationException) as error:
                fact = "has no translation to LLVM IR"
                raise CompileError(explain(inner.name, fact, origin=origin(inner))) from error
