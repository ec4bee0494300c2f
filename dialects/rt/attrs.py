"""Types of the `rt` dialect: the context of a call, and the arena."""

from __future__ import annotations

from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, i8
from xdsl.ir import ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition

ARENA_TYPE = MemRefType(i8, [DYNAMIC_INDEX])
"""The type of the arena."""


@irdl_attr_definition
class ContextType(ParametrizedAttribute, TypeAttribute):
    """`!rt.context`: the run time's side of one call: constants, functions, arena, details."""

    name = "rt.context"
