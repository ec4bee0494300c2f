"""Strings in a model: numbers in a table, which callers see as strings.

Operators that move strings move their numbers, and some compare them. Others are refused, such as
those that read the characters of strings, or order them.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..importing.values import Value
from .nodes import Node

_MOVING = (
    *("ArrayFeatureExtractor", "Concat", "Expand", "Flatten", "Gather", "GatherElements"),
    *("GatherND", "Identity", "Reshape", "Slice", "Split", "Squeeze", "Tile", "Transpose"),
    *("Unsqueeze", "Where"),
)
_READING = ("Equal", "LabelEncoder", "OneHotEncoder", "Shape", "Size")


def with_texts(node: Node, results: Sequence[Value | None]) -> Sequence[Value | None]:
    """The results of a node, which are strings where it moves strings.

    Raises:
        UnsupportedNodeError: if it does something else with strings.
    """
    if not any(value is not None and value.is_text for value in node.inputs):
        return results
    if node.operator not in (*_MOVING, *_READING):
        raise node.unsupported("operands that are strings", "operators that move or compare them")
    if node.operator == "Equal" and all(value.contents is None for value in node.inputs if value):
        # Strings that are in no table have one number.
        raise node.unsupported("strings of the call that are compared", "strings of the model")
    for value in results:
        if value is not None and node.operator in _MOVING:
            value.is_text = True
    return results
