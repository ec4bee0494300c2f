"""Making operations in half of the time that `Operation.create` and `Operation.clone` take.

Lowering a model makes tens of thousands of operations, most with few operands and no regions. What
is left out is generality, and calls for each use of a value. A test compares with the constructor
of xDSL.
"""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeVar

from xdsl.dialects.builtin import UNKNOWN_LOC, LocationAttr
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue, Use
from xdsl.ir.core import SSAValues
from xdsl.irdl import IRDLOperation, OptionalDef

OpT = TypeVar("OpT", bound=Operation)

_NO_VALUES = SSAValues[Any]()


def created(
    kind: type[OpT],
    operands: Sequence[SSAValue],
    results: Sequence[Attribute] = (),
    properties: Mapping[str, Attribute] = {},
    attributes: Mapping[str, Attribute] = {},
    location: LocationAttr = UNKNOWN_LOC,
    regions: Sequence[Region] = (),
    successors: Sequence[Block] = (),
) -> OpT:
    """What `kind.create` returns for these arguments."""
    op = kind.__new__(kind)
    initialize(op, operands, results, properties, attributes, location, regions)
    if successors:
        op.successors = successors
    return op


def initialize(
    op: Operation,
    operands: Sequence[SSAValue],
    results: Sequence[Attribute] = (),
    properties: Mapping[str, Attribute] = {},
    attributes: Mapping[str, Attribute] = {},
    location: LocationAttr = UNKNOWN_LOC,
    regions: Sequence[Region] = (),
) -> None:
    """What `Operation.__init__` does with these arguments."""
    uses: list[Use] = []
    for number, operand in enumerate(operands):
        first = operand.first_use
        use = Use(op, number, None, first)
        if first is not None:
            first._prev_use = use
        operand.first_use = use
        uses.append(use)
    op._operands, op._operand_uses = SSAValues(operands) if uses else _NO_VALUES, tuple(uses)
    made = [OpResult(type, op, n) for n, type in enumerate(results)]
    op.results = SSAValues(made) if made else _NO_VALUES
    op.properties, op.attributes, op.location = dict(properties), dict(attributes), location
    for region in regions:
        op.add_region(region)
    for name, default in _defaults(type(op)):
        op.properties.setdefault(name, default)


def copied(op: OpT, values: dict[SSAValue, SSAValue] | None = None) -> OpT:
    """The same as `op.clone(values)`."""
    values = {} if values is None else values
    free = set[SSAValue]()
    new = _copied(op, values, {}, free)
    if not free.isdisjoint(values):
        # Some are used before their definitions.
        for before, after in zip(op.walk(), new.walk(), strict=True):
            after.operands = [values.get(operand, operand) for operand in before._operands]
    return new


def _copied(
    op: OpT, values: dict[SSAValue, SSAValue], blocks: dict[Block, Block], free: set[SSAValue]
) -> OpT:
    """A copy on the new values and blocks; operands without a new value yet are added to `free`."""
    operands: list[SSAValue] = []
    for operand in op._operands:
        if (new := values.get(operand)) is None:
            free.add(operand)
        operands.append(new or operand)
    types = [result.type for result in op.results]
    successors = [blocks.get(block, block) for block in op._successors]
    made = created(
        type(op),
        operands,
        types,
        op.properties,
        op.attributes,
        op.location,
        successors=successors,
    )
    _map(op.results, made.results, values)
    for region in op.regions:
        copies = {block: Block(arg_types=block.arg_types) for block in region.blocks}
        blocks |= copies
        made.add_region(Region(copies.values()))
        for block, copy in copies.items():
            _map(block._args, copy._args, values)
            for argument, other in zip(block._args, copy._args, strict=True):
                other.location = argument.location
            inner = [_copied(inner, values, blocks, free) for inner in block.ops]
            _fill(copy, inner)
    return made


def _map(
    old: Sequence[SSAValue], new: Sequence[SSAValue], values: dict[SSAValue, SSAValue]
) -> None:
    for before, after in zip(old, new, strict=True):
        values[before] = after
        if before._name is not None:
            after.name_hint = before._name


def _fill(block: Block, ops: Sequence[Operation]) -> None:
    """The same as `block.add_ops(ops)`, for an empty block and operations in no block."""
    if not ops:
        return
    block._first_op, block._last_op = ops[0], ops[-1]
    for op in ops:
        op.parent = block
    for before, after in pairwise(ops):
        before._next_op, after._prev_op = after, before


@functools.cache
def _defaults(kind: type[Operation]) -> Sequence[tuple[str, Attribute]]:
    """The properties that an operation has if they are not given."""
    if not issubclass(kind, IRDLOperation):
        return ()
    properties = kind.get_irdl_definition().properties.items()
    return [
        (name, known.default_value)
        for name, known in properties
        if known.default_value is not None and not isinstance(known, OptionalDef)
    ]
