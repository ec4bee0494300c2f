"""Definitions of operations: formats are read when first used."""

from __future__ import annotations

import re

import pytest
from xdsl.dialects import test
from xdsl.dialects.builtin import i32
from xdsl.irdl import IRDLOperation, operand_def, result_def
from xdsl.parser import Parser
from xdsl.utils.exceptions import PyRDLOpDefinitionError

from stepwell.core.ir.definitions import irdl_op_definition
from stepwell.core.registry import make_context, own_dialects


class Moved(IRDLOperation):
    name = "test.moved"
    x = operand_def(i32)
    y = result_def(i32)


def moved(assembly_format: str) -> type[IRDLOperation]:
    """An operation with a format."""
    return irdl_op_definition(type("MovedOp", (Moved,), {"assembly_format": assembly_format}))


def test_format_prints_and_parses() -> None:
    kind, ctx = moved("$x attr-dict `to` type($y)"), make_context()
    op = kind.build(operands=[test.TestOp(result_types=[i32])], result_types=[i32])
    assert str(op) == "%0 = test.moved %1 to i32"
    ctx.load_registered_dialect("builtin")
    ctx.load_op(kind)
    ctx.load_op(test.TestOp)
    text = '%1 = "test.op"() : () -> i32\n%0 = test.moved %1 to i32'
    found = list(Parser(ctx, text).parse_module().ops)[1]
    assert isinstance(found, kind)
    assert (found.operands[0].type, found.results[0].type) == (i32, i32)


def test_wrong_format_is_an_error_when_it_is_read() -> None:
    kind = moved("$nothing attr-dict")
    op = kind.build(operands=[test.TestOp(result_types=[i32])], result_types=[i32])
    match = re.escape("test.moved: error in the assembly format: ")
    with pytest.raises(PyRDLOpDefinitionError, match=match):
        str(op)


def test_format_and_print_are_refused() -> None:
    members = {"assembly_format": "$x attr-dict `to` type($y)", "print": lambda *_: None}
    with pytest.raises(PyRDLOpDefinitionError, match="Cannot define both an assembly format"):
        irdl_op_definition(type("MovedOp", (Moved,), members))


@pytest.mark.parametrize("dialect", own_dialects())
def test_formats_are_right(dialect: str) -> None:
    """Where one is wrong, all operations of a dialect used to be."""
    from xdsl.irdl.declarative_assembly_format import FormatProgram

    for op in own_dialects()[dialect]().operations:
        definition = op.get_irdl_definition()  # type: ignore[attr-defined]
        if definition.assembly_format is not None:
            FormatProgram.from_str(definition.assembly_format, definition)
