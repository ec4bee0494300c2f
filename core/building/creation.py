"""Making operations in half of the time that `Operation.create` takes.

Lowering a model makes tens of thousands of operations, most with few operands and no regions. What
is left out is generality: successors, and calls for each use of a value. A test compares with the
constructor of xDSL.
"""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import TypeVar

from xdsl.dialects.builtin import UNKNOWN_LOC, LocationAttr
from xdsl.ir import Attribute, Operation, OpResult, Region, SSAValue, Use
from xdsl.ir.core import SSAValues
from xdsl.irdl import IRDLOperation, OptionalDef

OpT = TypeVar("OpT", bound=Operation)


def created(
    kind: type[OpT],
    operands: Sequence[SSAValue],
    results: Sequence[Attribute] = (),
    properties: Mapping[str, Attribute] = {},
    attributes: Mapping[str, Attribute] = {},
    location: LocationAttr = UNKNOWN_LOC,
    regions: Sequence[Region] = (),
) -> OpT:
    """What `kind.create` returns for these arguments."""
    op = kind.__new__(kind)
    initialize(op, operands, results, properties, attributes, location, regions)
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
    op._operands, op._operand_uses = SSAValues(operands), tuple(uses)
    op.results = SSAValues([OpResult(type, op, n) for n, type in enumerate(results)])
    op.properties, op.attributes, op.location = dict(properties), dict(attributes), location
    for region in regions:
        op.add_region(region)
    for name, default in _defaults(type(op)):
        op.properties.setdefault(name, default)


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
