"""Where operations go in the scopes that are open."""

from __future__ import annotations

import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr, MemRefType, f32
from xdsl.ir import Block, Operation, SSAValue

from stepwell.conversions.loop_to_scf.scopes import ScopedEmitter
from stepwell.core.building.scopes import Scope, Scopes

INDEX = IndexType()


class Nest(Scopes[Scope]):
    """A function with a loop in it that may not run, and in that one a loop that does."""

    def __init__(self) -> None:
        super().__init__(Scope(Block(arg_types=[INDEX, INDEX, MemRefType(f32, [4])])))
        self.scopes.append(Scope(Block(arg_types=[INDEX]), 1, conditional=True))
        self.scopes.append(Scope(Block(arg_types=[INDEX]), 2))
        self.a, self.b, self.buffer = self.scopes[0].block.args
        self.i, self.j = (scope.block.args[0] for scope in self.scopes[1:])

    def depth_of(self, values: list[SSAValue]) -> int:
        depths = {self.i: 1, self.j: 2}
        return max((depths.get(value, 0) for value in values), default=0)


def constant(number: int) -> SSAValue:
    return arith.ConstantOp(IntegerAttr(number, INDEX)).result


def test_an_operation_is_as_far_outside_as_its_operands() -> None:
    nest = Nest()
    assert nest.home(arith.AddiOp, [nest.a, nest.b]) == 0
    assert nest.home(arith.AddiOp, [nest.a, nest.i]) == 1
    assert nest.home(arith.AddiOp, [nest.i, nest.j]) == 2


@pytest.mark.parametrize("kind", [arith.DivSIOp, arith.RemUIOp, arith.FloorDivSIOp])
def test_a_division_stays_in_what_may_not_run(kind: type[Operation]) -> None:
    nest = Nest()
    assert nest.home(kind, [nest.a, nest.b]) == 1
    assert nest.home(kind, [nest.a, nest.j]) == 2
    assert nest.home(kind, [nest.a, constant(0)]) == 1
    assert nest.home(kind, [nest.a, constant(-1)]) == 1


def test_a_division_that_cannot_trap_is_like_any_other() -> None:
    nest = Nest()
    at_least_one = arith.MaxSIOp(nest.b, constant(1)).result
    special = [arith.CmpiOp(nest.b, constant(n), "eq").result for n in (0, -1)]
    replaced = arith.SelectOp(arith.OrIOp(*special).result, constant(1), nest.b).result
    only_zero = arith.SelectOp(special[0], constant(1), nest.b).result
    divisors = [constant(3), at_least_one, replaced, only_zero]
    depths = [nest.home(arith.DivSIOp, [nest.a, divisor]) for divisor in divisors]
    assert depths == [0, 0, 0, 1]


def test_the_largest_unsigned_number_is_minus_one() -> None:
    nest = Nest()
    not_zero = arith.MaxUIOp(nest.b, constant(1)).result
    kinds = [arith.DivUIOp, arith.RemUIOp, arith.DivSIOp, arith.RemSIOp]
    assert [nest.home(kind, [nest.a, not_zero]) for kind in kinds] == [0, 0, 1, 1]


def test_a_read_stays_in_the_loop_that_writes() -> None:
    nest = Nest()
    operands = [nest.buffer, nest.a]
    assert nest.home_of_read(nest.buffer, operands) == 0
    inner = nest.scopes.pop()
    nest.note_write(nest.buffer)
    assert nest.home_of_read(nest.buffer, operands) == 1
    nest.scopes.append(inner)
    assert nest.home_of_read(nest.buffer, operands) == 1
    nest.note_write(nest.buffer)
    assert nest.home_of_read(nest.buffer, operands) == 2
    assert nest.home_of_read(nest.a, operands) == 0


def test_an_equal_operation_is_made_once_in_a_scope() -> None:
    entry = Block(arg_types=[INDEX, INDEX])
    emitter = ScopedEmitter(entry)
    a, b = entry.args
    body = Block(arg_types=[INDEX])
    emitter.open(body)
    total = emitter.pure(arith.AddiOp, [a, b], INDEX)
    quotient = emitter.pure(arith.DivUIOp, [a, b], INDEX)
    assert emitter.pure(arith.AddiOp, [a, b], INDEX) is total
    assert (total.owner.parent, quotient.owner.parent) == (entry, body)
