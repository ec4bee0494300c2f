"""Sequences and optional values, which vanish: how many tensors there are is known at import."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ....core.algebra.dims import Dim
from ...importing.selection import apart
from ...importing.shapes import reshaped, squeezed, unsqueezed
from ...importing.values import Value
from ..dtypes import numpy_dtype
from ..dynamic import Element, static_sizes
from ..extents import split_by
from ..nodes import Node
from ..registry import converts
from ..sequences import EmptyOptional


def _sequence(node: Node, items: Sequence[Value], dtype: np.dtype) -> Value:
    """A sequence of tensors, which have one element type."""
    others = [item.dtype for item in items if item.dtype != dtype]
    if others:
        raise node.broken("element types of a sequence differ", dtype.name, others[0].name)
    return Value("", dtype, (), items=list(items))


def _items(node: Node, index: int = 0) -> list[Value]:
    """The tensors of an operand that is a sequence."""
    value = node.operand(index)
    if value.items is None:
        raise node.broken(f"operand {index} is not a sequence", "a sequence", "a tensor")
    return list(value.items)


def _position(node: Node, index: int, count: int, most: int) -> int:
    """A place in a sequence of `count` tensors, counted from the front."""
    given = node.integers(index)
    if most < 0:
        raise node.broken("the sequence is empty", "1 tensor or more")
    if len(given) != 1 or not -count <= given[0] <= most:
        got = given[0] if len(given) == 1 else given
        raise node.broken("position out of range", f"-{count} to {most}", got)
    return given[0] % count if given[0] < 0 else given[0]


@converts("SequenceEmpty", since=11)
def sequence_empty(node: Node) -> Value:
    return _sequence(node, [], node.attr_dtype("dtype", np.dtype(np.float32)))


@converts("SequenceConstruct", since=11)
def sequence_construct(node: Node) -> Value:
    items = node.variadic()
    return _sequence(node, items, items[0].dtype)


@converts("SequenceInsert", since=11)
def sequence_insert(node: Node) -> Value:
    items, new = _items(node), node.input(1)
    count = len(items)
    place = count if node.optional(2) is None else _position(node, 2, count, count)
    return _sequence(node, [*items[:place], new, *items[place:]], node.operand(0).dtype)


@converts("SequenceErase", since=11)
def sequence_erase(node: Node) -> Value:
    items = _items(node)
    last = len(items) - 1
    if node.optional(1) is None and items:
        place = last
    else:
        place = _position(node, 1, len(items), last)
    return _sequence(node, [*items[:place], *items[place + 1 :]], node.operand(0).dtype)


@converts("SequenceLength", since=11)
def sequence_length(node: Node) -> Value:
    return node.known(np.array(len(_items(node)), np.int64))


@converts("SequenceAt", since=11)
def sequence_at(node: Node) -> Value:
    items, position = _items(node), node.input(1)
    if position.contents is not None:
        return items[_position(node, 1, len(items), len(items) - 1)]
    if not items or any(item.shape != items[0].shape for item in items):
        raise node.unsupported("a position that comes at run time, of tensors of different shapes")
    rows = node.concat([unsqueezed(node, item, [0]) for item in items], axis=0)
    return node.gather(rows, reshaped(node, position, []), axis=0)


@converts("ConcatFromSequence", since=11)
def concat_from_sequence(node: Node) -> Value:
    items, is_new = _items(node), bool(node.attr_int("new_axis"))
    if not items:
        raise node.broken("the sequence is empty", "1 tensor or more")
    axis = node.axis(node.attr_int("axis"), items[0].rank + is_new)
    parts = [unsqueezed(node, item, [axis]) for item in items] if is_new else items
    return parts[0] if len(parts) == 1 else node.concat(parts, axis=axis)


@converts("SplitToSequence", since=11)
def split_to_sequence(node: Node) -> Value:
    x, split = node.input(0), node.optional(1)
    axis = node.axis(node.attr_int("axis"), x.rank)
    keep = bool(node.attr_int("keepdims", 1)) or split is not None
    if split is not None and split.rank == 1:
        parts = _parts(node, x, axis, node.elements(1))
    else:
        (size,) = [1] if split is None else node.integers(1)
        parts = _parts(node, x, axis, _chunks(node, x.shape[axis], size))
    items = parts if keep else [squeezed(node, part, [axis]) for part in parts]
    return _sequence(node, items, x.dtype)


def _chunks(node: Node, dim: Dim, size: int) -> list[Element]:
    """Parts of one size, of which the last one may be smaller."""
    if not dim.is_static:
        fact = f"the length of the sequence depends on symbolic dimension {dim}"
        raise node.unsupported(f"{fact}; give the sizes of all parts")
    if size < 1:
        raise node.broken("wrong size of the parts", "1 or more", size)
    return [Dim.of(min(size, dim.value - start)) for start in range(0, dim.value, size)]


def _parts(node: Node, x: Value, axis: int, given: Sequence[Element]) -> list[Value]:
    sizes, dim = static_sizes(given), x.shape[axis]
    if sizes is None or not dim.is_static:
        return split_by(node, x, axis, given, are_results=False)
    if sum(sizes) != dim.value or any(n < 0 for n in sizes):
        raise node.broken("parts do not fit the axis", dim, sizes)
    return apart(node, x, axis, sizes)


@converts("SequenceMap", since=17)
def sequence_map(node: Node) -> list[Value]:
    body, first = node.attr_graph("body"), _items(node)
    others = [node.operand(index) for index in range(1, len(node.inputs))]
    if any(value.items is not None and len(value.items) != len(first) for value in others):
        raise node.broken("the sequences differ in length", len(first))
    rows = [
        node.convert(body, [item, *(v if v.items is None else v.items[n] for v in others)])
        for n, item in enumerate(first)
    ]
    if not rows:
        kinds = [numpy_dtype(info.type.tensor_type.elem_type) for info in body.output]
        return [_sequence(node, [], kind) for kind in kinds]
    return [_sequence(node, column, column[0].dtype) for column in zip(*rows, strict=True)]


@converts("Optional", since=15)
def optional(node: Node) -> Value:
    if node.optional(0) is not None:
        return node.operand(0)
    node.ignore("type")
    return EmptyOptional("", np.dtype(np.float32), (), items=[])


@converts("OptionalHasElement", since=15)
def optional_has_element(node: Node) -> Value:
    value = node.optional(0)
    return node.known(np.array(value is not None and not isinstance(value, EmptyOptional)))


@converts("OptionalGetElement", since=15)
def optional_get_element(node: Node) -> Value:
    value = node.operand(0)
    if isinstance(value, EmptyOptional):
        raise node.broken("the optional value has no element")
    return value
