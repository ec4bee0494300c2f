"""Tests verify each declared combination of types once: what is wrong is refused all the same."""

from __future__ import annotations

from typing import Any

import pytest
from xdsl.dialects import test
from xdsl.dialects.builtin import IntegerAttr, StringAttr, UnitAttr, f32, i32
from xdsl.ir import Block, Operation, Region
from xdsl.irdl import (
    IRDLOperation,
    attr_def,
    eq,
    irdl_op_definition,
    operand_def,
    prop_def,
    region_def,
    result_def,
    successor_def,
    traits_def,
)
from xdsl.traits import OpTrait
from xdsl.utils.exceptions import VerifyException

seen: list[str] = []


class Noting(OpTrait):
    def verify(self, op: Operation) -> None:
        seen.append("trait")


@irdl_op_definition
class DeclaredOp(IRDLOperation):
    """An operation with one of everything that can be declared."""

    name = "test.declared"
    operand = operand_def(i32)
    result = result_def(i32)
    property = prop_def(IntegerAttr)
    attribute = attr_def(StringAttr)
    body = region_def("single_block", entry_args=eq(i32))
    after = successor_def()
    traits = traits_def(Noting())

    def verify_(self) -> None:
        seen.append("verify_")


def declared(**changed: Any) -> Operation:
    usual = {
        "operands": test.TestOp(result_types=[i32]).results,
        "result_types": [i32],
        "properties": {"property": IntegerAttr(1, i32)},
        "attributes": {"attribute": StringAttr("a")},
        "regions": [Region(Block(arg_types=[i32]))],
        "successors": [Block()],
    }
    return DeclaredOp.create(**(usual | changed))


@pytest.mark.parametrize(
    "changed",
    [
        {"operands": test.TestOp(result_types=[f32]).results},
        {"operands": ()},
        {"result_types": [f32]},
        {"result_types": [i32, i32]},
        {"properties": {}},
        {"properties": {"property": UnitAttr()}},
        {"properties": {"property": IntegerAttr(1, i32), "other": UnitAttr()}},
        {"attributes": {}},
        {"attributes": {"attribute": UnitAttr()}},
        {"regions": []},
        {"regions": [Region()]},
        {"regions": [Region([Block(arg_types=[i32]), Block()])]},
        {"regions": [Region(Block(arg_types=[f32]))]},
        {"successors": []},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_a_wrong_operation_is_refused_after_a_right_one(changed: dict[str, Any]) -> None:
    declared().verify_()
    with pytest.raises(VerifyException):
        declared(**changed).verify_()


def test_traits_and_verify_run_every_time() -> None:
    op = declared()
    op.verify_()
    seen.clear()
    op.verify_()
    assert seen == ["trait", "verify_"]
