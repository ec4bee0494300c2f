"""The names of a graph of the model, or of one call of a function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from onnx import AttributeProto, NodeProto

from ..importing.values import Value
from .diagnostics import broken


@dataclass
class NameScope:
    """The names of one graph, or of one call of a function of the model."""

    opsets: Mapping[str, int]
    values: dict[str, Value | None] = field(default_factory=dict)  # None for unsupported nodes
    prefix: str = ""
    attributes: Mapping[str, AttributeProto] = field(default_factory=dict)
    absent: set[str] = field(default_factory=set)  # operands that a call omits
    depth: int = 0
    declared: Mapping[str, Sequence[int | None]] = field(default_factory=dict)

    def results(self, names: Sequence[str]) -> list[Value | None]:
        """The results of a call, which are all defined."""
        missing = [name for name in names if name not in self.values or name in self.absent]
        if missing:
            origin = f'node "{self.prefix[:-1]}"'
            raise broken(f'value "{missing[0]}" is not defined', origin=origin)
        return [self.values[name] for name in names]


def attributes_of(proto: NodeProto, name: str, scope: NameScope) -> dict[str, AttributeProto]:
    """The attributes of a node by name, with references resolved to those of the enclosing call."""
    result: dict[str, AttributeProto] = {}
    for attribute in proto.attribute:
        if attribute.name in result:
            fact = f'attribute "{attribute.name}" is given twice'
            raise broken(fact, subject=f"onnx.{proto.op_type}", origin=f'node "{name}"')
        if not attribute.ref_attr_name:
            result[attribute.name] = attribute
        elif attribute.ref_attr_name in scope.attributes:
            result[attribute.name] = scope.attributes[attribute.ref_attr_name]
    return result
