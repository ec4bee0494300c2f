"""Operations are made as by xDSL: `core/building/creation.py` writes its private fields."""

from __future__ import annotations

import hashlib
import inspect
from importlib import metadata

import pytest
from xdsl.dialects import arith, cf, func
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, StringAttr, UnitAttr, i64
from xdsl.ir import Block, BlockArgument, Operation, OpResult, Region, SSAValue
from xdsl.ir.core import IRWithUses, Use
from xdsl.irdl import IRDLOperation
from xdsl.parser import Parser

from stepwell.core.building.creation import copied, created, initialize
from stepwell.core.ir import patched
from stepwell.core.ir.printing import module_text
from stepwell.core.ir.walks import blocks_in
from stepwell.core.registry import dialects, make_context

READ = (
    Operation.__init__,
    Operation.clone_without_regions,
    Operation.clone,
    IRDLOperation.__post_init__,
    Use,
    IRWithUses.add_use,
    OpResult,
    BlockArgument,
    Block.__init__,
    Block.add_op,
    Region.clone_into,
)
DIGEST = "6881558ab9b9a64aaac800bd3e43ff55b0a9588a6fefac6914c223b85f0f1fcb"


def test_the_constructor_is_the_one_that_was_read() -> None:
    """Look at the new constructor before the digest is changed."""
    assert metadata.version("xdsl").rpartition(".")[0] in patched.CHECKED_VERSIONS
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


def test_successors_of_an_operation_that_is_created_are_used_by_it() -> None:
    block = Block()
    branch = created(cf.BranchOp, (), successors=[block])
    assert tuple(branch.successors) == (block,)
    assert [use.operation for use in block.uses] == [branch]


FUNCTIONS = """
func.func @a_path(%x_1_2: i64, %c: i1) -> i64 {
  %one = arith.constant 1 : i64 loc("one")
  cf.br ^middle(%x_1_2 : i64)
^last(%y: i64):
  %z = arith.addi %late, %y {note} : i64
  func.return %z : i64
^middle(%m: i64):
  %late = arith.addi %m, %one : i64
  cf.cond_br %c, ^last(%late : i64), ^middle(%one : i64)
}
func.func @a_loop(%n: index, %x: f32) -> f32 {
  %zero = arith.constant 0 : index
  %r = scf.for %i = %zero to %n step %n iter_args(%sum = %x) -> (f32) {
    %t = arith.addf %sum, %x : f32
    scf.yield %t : f32
  }
  func.return %r : f32
}
"""


def _uses(value: SSAValue | Block) -> list[tuple[str, int]]:
    return [(use.operation.name, use.index) for use in value.uses]


def _value(value: SSAValue) -> object:
    return value.type, value.name_hint, _uses(value)


def test_a_copy_is_that_of_xdsl() -> None:
    """Also of values that are used before their definitions, and of names that it shortens."""
    module = Parser(make_context(), FUNCTIONS).parse_module()
    own, same = copied(module), module.clone()
    assert module_text(own, locations=True) == module_text(same, locations=True)
    for op, wanted in zip(own.walk(), same.walk(), strict=True):
        assert list(map(_value, op.results)) == list(map(_value, wanted.results))
    for block, wanted in zip(blocks_in(own), blocks_in(same), strict=True):
        assert list(map(_value, block.args)) == list(map(_value, wanted.args))
        assert [a.location for a in block.args] == [a.location for a in wanted.args]
        assert _uses(block) == _uses(wanted)
        assert all(arg.block is block for arg in block.args)
        assert all(op.parent is block for op in block.ops)
