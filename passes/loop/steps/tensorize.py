"""Compute a short reduction by an instruction of the processor.

Before:

```mlir
loop.kernel @dot(%x: memref<2xi8>, %w: memref<4x2xi8>, %b: memref<4xi32>) -> (%y: memref<4xi32>) {
  %z = loop.load %b ()[s0] -> (s0)() : memref<4xi32>, vector<4xi32>
  %s = loop.for "k" %k to 2 reduction carry(%acc = %z : vector<4xi32> add) {
    %p = loop.load %x (d0)[s0] -> (d0)(%k) : memref<2xi8>, vector<1xi8>
    %q = loop.load %w (d0)[s0] -> (s0, d0)(%k) : memref<4x2xi8>, vector<4xi8>
    %a = arith.extui %p : vector<1xi8> to vector<1xi32>
    %v = vector.broadcast %a : vector<1xi32> to vector<4xi32>
    %c = arith.extsi %q : vector<4xi8> to vector<4xi32>
    %m = arith.muli %v, %c : vector<4xi32> %t = arith.addi %m, %acc : vector<4xi32>
    loop.yield %t : vector<4xi32> }
  loop.store %s, %y ()[s0] -> (s0)() : vector<4xi32>, memref<4xi32> }
```

Options: `loop=k instruction=vpmaddwd`

After:

```mlir
loop.kernel @dot(%x: memref<2xi8>, %w: memref<4x2xi8>, %b: memref<4xi32>) -> (%y: memref<4xi32>)
    attributes {loop.schedule = "tensorize(k, vpmaddwd)"} {
  %z = loop.load %b ()[s0] -> (s0)() : memref<4xi32>, vector<4xi32>
  %p = loop.load %x ()[s0] -> (s0)() : memref<2xi8>, vector<2xi8>
  %a = arith.extui %p : vector<2xi8> to vector<2xi16>
  %q = loop.load %w ()[s0] -> (s0 floordiv 2, s0 mod 2)() : memref<4x2xi8>, vector<8xi8>
  %c = arith.extsi %q : vector<8xi8> to vector<8xi16>
  %m = loop.instruction "vpmaddwd"(%a, %c) : (vector<2xi16>, vector<8xi16>) -> vector<4xi32>
  %t = arith.addi %m, %z : vector<4xi32>
  loop.store %t, %y ()[s0] -> (s0)() : vector<4xi32>, memref<4xi32> }
```

Requires: a reduction of blocks whose body is that of the instruction: vectorise other loops before.
Leaves: a `loop.instruction`, and loads of all elements that it combines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import IntegerType, VectorType
from xdsl.dialects.func import ReturnOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineExpr

from ....core.instructions import INSTRUCTIONS, Instruction
from ....core.pipelines.budgets import EXACT
from ....dialects.bodies import accumulator_of, body_of, depth_of
from ....dialects.loop.attrs import Combine
from ....dialects.loop.loops import extent_of
from ....dialects.loop.nests import Consumed, loop_named, refusal
from ....dialects.loop.ops import (
    ForOp,
    InstructionOp,
    KernelOp,
    LoadOp,
    block_shape,
    element_type,
)
from ....dialects.loop.rebuild import Rebuild
from ....dialects.loop.trace import noted
from ....dialects.upstream import ops as upstream
from ...primitive import primitive

STEP = "loop-tensorize"

_EXTENSIONS = {op.name: op for op in (upstream.ExtSIOp, upstream.ExtUIOp)}
"""The classes for blocks; scalars are extended by those of xDSL."""
_COMMUTE = ("arith.muli", "arith.addi")


@dataclass(frozen=True)
class TermFactor:
    """What stands for an operand in groups: a load, and how its elements become as wide."""

    load: LoadOp
    extension: Operation
    """From the elements of the load; to those of the operand, unless they are as wide."""


Factors = Mapping[SSAValue, TermFactor]
"""By argument of the body of an instruction."""


@primitive(EXACT)
def tensorize(kernel: Consumed, loop: str, instruction: str) -> KernelOp:
    """Compute a short reduction by an instruction of the processor.

        s = reduce k to 2: s + x[i, k] * w[j, k]  ->  s = s + vpmaddwd(x[i, 0 : 2], w[j, 0 : 2])

    The instruction is a row of `core/instructions.py`. It computes the same numbers: what it
    combines has to be extended, with or without a sign, from elements that its operands hold.
    A processor without it computes what its row says.

    Args:
        loop: the reduction.
        instruction: the name of the row.

    Raises:
        ScheduleError: if there is no such instruction, or none that combines groups; if the loop
            is no reduction of blocks by `add` of as many iterations as a group has elements, or if
            its body is another one.
    """
    target, row = loop_named(STEP, kernel, loop), INSTRUCTIONS.get(instruction)
    groups = {name: row for name, row in INSTRUCTIONS.items() if depth_of(row) > 1}
    if row is None or instruction not in groups:
        fact = f"no such instruction, {instruction}"
        raise refusal(STEP, kernel, target, fact, " or ".join(groups))
    if (size := extent_of(target)) != depth_of(row):
        raise refusal(STEP, kernel, target, "wrong size", depth_of(row), size)
    factors = factors_of(target, row)
    if factors is None:
        raise refusal(STEP, kernel, target, f"its body is not that of {instruction}")
    shape = block_shape(target.carried[0].type)
    if not shape or shape[-1] < 2:
        fact = "it carries no block of several lanes"
        raise refusal(STEP, kernel, target, fact, hint="vectorize loops around it before")
    for factor in factors.values():
        own = block_shape(factor.load.result.type)
        if own and (len(own) != len(shape) or own[-1] not in (1, shape[-1])):
            raise refusal(STEP, kernel, target, "reads other blocks than it carries", shape, own)
        if own and len(shape) - 1 in factor.load.limited.get_values():
            raise refusal(STEP, kernel, target, "reads lanes beyond the end of a buffer")
    return noted(_Tensorize(kernel, target, row, factors).run(), "tensorize", loop, instruction)


def factors_of(loop: ForOp, row: Instruction) -> Factors | None:
    """What the operands of an instruction stand for in the body of a reduction of scalars or
    blocks; None if the body is another one.
    """
    body = loop.body.block
    if not loop.is_reduction or loop.over_entries or list(loop.combines) != [Combine.ADD]:
        return None
    if any(op.regions for op in body.ops):
        return None
    total, (accumulator,) = loop.yielded[0].owner, loop.carried
    if not isinstance(total, arith.AddiOp) or accumulator not in total.operands:
        return None
    term = next((operand for operand in total.operands if operand is not accumulator), None)
    result = body_of(row).body.block.last_op
    assert isinstance(result, ReturnOp)
    reduction = result.arguments[0].owner
    if term is None or not isinstance(reduction, upstream.ReductionOp):
        return None
    return next(_matches(reduction.vector, term), None)


def _matches(pattern: SSAValue, value: SSAValue) -> Iterator[Factors]:
    """What the arguments of a body may stand for, so that `pattern` computes a value."""
    wanted, found = pattern.owner, _unstretched(value).owner
    if not isinstance(wanted, Operation) or not isinstance(found, Operation):
        return
    if wanted.name in _EXTENSIONS:
        if (factor := _factor(wanted, found)) is not None:
            yield {wanted.operands[0]: factor}
        return
    if wanted.name != found.name or len(wanted.operands) != 2:
        return
    orders: list[Sequence[SSAValue]] = [tuple(found.operands)]
    if wanted.name in _COMMUTE:
        orders.append(orders[0][::-1])
    for left, right in orders:
        for first in _matches(wanted.operands[0], left):
            for second in _matches(wanted.operands[1], right):
                yield {**first, **second}


# The numbers of i8 and of ui8 are among those of i16, those of i8 not among those of ui16.
def _factor(wanted: Operation, found: Operation) -> TermFactor | None:
    """A load that is extended as an operand of an instruction is, or to it."""
    if found.name not in _EXTENSIONS:
        return None
    load = _unstretched(found.operands[0]).owner
    if not isinstance(load, LoadOp):
        return None
    widths: list[int] = []
    for op in (wanted, found):
        elements = [element_type(value.type) for value in (op.operands[0], op.results[0])]
        if not all(isinstance(element, IntegerType) for element in elements):
            return None
        widths += [element.width.data for element in elements if isinstance(element, IntegerType)]
    operand, result, own, extended = widths
    fits = own <= operand if wanted.name == found.name else own < operand
    if wanted.name == "arith.extui" != found.name:
        fits = False
    return TermFactor(load, found) if fits and result == extended else None


def _unstretched(value: SSAValue) -> SSAValue:
    """What has been broadcast to a block."""
    while isinstance(value.owner, upstream.BroadcastOp | vector.BroadcastOp):
        value = value.owner.operands[0]
    return value


class _Tensorize(Rebuild):
    def __init__(self, kernel: KernelOp, target: ForOp, row: Instruction, factors: Factors) -> None:
        super().__init__(kernel, [target])
        self.target, self.row, self.factors = target, row, factors

    def visit_for(self, op: ForOp) -> None:
        if op is not self.target:
            super().visit_for(op)
            return
        function = body_of(self.row)
        (init,), kind = self.inits(op), op.carried[0].type
        operands = [
            self._operand(self.factors[argument]) if argument in self.factors else init
            for argument in function.args
        ]
        assert isinstance(kind, VectorType)
        made = self.emit(InstructionOp(self.row, operands, kind), op).results[0]
        if accumulator_of(self.row) is not None:
            self.bind(op.results[0], made)
            return
        total = op.yielded[0].owner
        assert isinstance(total, Operation)
        added = type(total).create(
            operands=[made, init], result_types=[kind], properties=dict(total.properties)
        )
        self.bind(op.results[0], self.emit(added, total).results[0])

    def _operand(self, factor: TermFactor) -> SSAValue:
        """All elements of the groups: those of a lane, or of each lane."""
        load, extension, depth = factor.load, factor.extension, depth_of(self.row)
        axes = len(block_shape(self.target.carried[0].type))
        *rows, lanes = block_shape(load.result.type) or (1,) * axes
        symbols = [AffineExpr.symbol(axis) for axis in range(axes)]
        last = symbols[-1]
        self.bind(self.target.variable, last if lanes == 1 else last % depth)
        symbols[-1] = AffineExpr.constant(0) if lanes == 1 else last // depth
        shape, kind = [*rows, lanes * depth], load.result.type
        exprs = self.composed(load.map.data, load.indices, symbols)
        self.load_like(load, exprs, kind=VectorType(element_type(kind), shape))
        value = self.value(load.result)
        (argument,) = [a for a, one in self.factors.items() if one is factor]
        wide: Attribute = VectorType(element_type(argument.type), shape)
        if value.type == wide:
            return value
        extended = _EXTENSIONS[extension.name].create(
            operands=[value], result_types=[wide], properties=dict(extension.properties)
        )
        return self.emit(extended, extension).results[0]
