"""Operations are made as by xDSL: `core/building/creation.py` writes its private fields."""

from __future__ import annotations

import hashlib
import inspect
from importlib import metadata

import pytest
from xdsl.dialects import arith, func
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, StringAttr, UnitAttr, i64
from xdsl.ir import Block, Operation, OpResult, Region
from xdsl.ir.core import IRWithUses, Use
from xdsl.irdl import IRDLOperation

from stepwell.core import patched
from stepwell.core.building.creation import created, initialize
from stepwell.core.registry import dialects

READ = (Operation.__init__, IRDLOperation.__post_init__, Use, IRWithUses.add_use, OpResult)
DIGEST = "fd77b37fd14502dd1371f7d4f98c4ad85569d3b8ded0ac636ddf7c1b7bbd7348"


def test_the_constructor_is_the_one_that_was_read() -> None:
    """Look at the new constructor before the digest is changed."""
    assert metadata.version("xdsl").startswith(f"{patched.CHECKED_VERSION}.")
    setter = Operation.operands.fset  # type: ignore[attr-defined]
    source = "".join(map(inspect.getsource, (*READ, setter)))
    assert hashlib.sha256(source.encode()).hexdigest() == DIGEST


STANDARD = ("affine", "arith", "cf", "func", "llvm", "math", "memref", "scf", "vector")


@pytest.mark.parametrize("name", ["graph", "loop", "rt", "x86vector", *STANDARD])
def test_no_operation_of_the_staircase_needs_more(name: str) -> None:
    """None adds to the constructor, or has attributes by default."""
    for kind in dialects()[name]().operations:
        if issubclass(kind, IRDLOperation):
            definition = kind.get_irdl_definition()
            assert kind.__post_init__ is IRDLOperation.__post_init__
            assert all(a.default_value is None for a in definition.attributes.values()), kind


def test_an_operation_is_that_of_xdsl() -> None:
    block, place = (
        Block(arg_types=[i64, i64]),
        FileLineColLoc(StringAttr("f"), IntAttr(1), IntAttr(2)),
    )
    a, b = block.args
    attributes = {"note": UnitAttr()}
    own = created(arith.AddiOp, [a, a], [i64], {}, attributes, place)
    same = arith.AddiOp.create(
        operands=[a, a], result_types=[i64], attributes=attributes, location=place
    )
    assert vars(own).keys() <= vars(same).keys()
    assert own.is_structurally_equivalent(same)
    assert own.properties == same.properties != {}
    assert (own.attributes, own.location) == (attributes, place)
    assert own.attributes is not attributes
    assert [(use.operation, use.index) for use in a.uses] == [
        *((same, 1), (same, 0), (own, 1), (own, 0)),
    ]
    own.operands[0] = b
    same.erase()
    own.operands[1] = b
    assert a.first_use is None
    assert [use.index for use in b.uses] == [1, 0]
    assert (own.results[0].op, own.results[0].index) == (own, 0)


def test_regions_belong_to_an_operation_that_is_initialized() -> None:
    region, op = Region(Block()), func.FuncOp.__new__(func.FuncOp)
    initialize(op, [], regions=[region])
    assert op.regions == (region,)
    assert region.parent is op
