"""Images put together from blocks, whose sizes may come at run time."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...core.algebra.dims import Dim
from ..importing.nodes import Number
from ..importing.selection import apart
from ..importing.shapes import broadcast, places_of, reshaped, transposed, unsqueezed
from ..importing.values import Value
from .dynamic import Element
from .nodes import Node


def summed_at(node: Node, x: Value, channels: int, places: Value, image: Sequence[int]) -> Value:
    """Images with the elements of columns added at places; the size of an image is for none."""
    size = math.prod(image)
    columns = reshaped(node, x, [x.shape[0], Dim.of(channels), places.shape[0]])
    updates = transposed(node, columns, [2, 0, 1])
    # What is outside is added to an element after the last one.
    shape = [Dim.of(size + 1), x.shape[0], Dim.of(channels)]
    zeros = broadcast(node, node.known(np.zeros((), x.dtype)), shape)
    found = node.scatter_nd(zeros, updates, [places], kind="add")
    inside = transposed(node, apart(node, found, 0, [size])[0], [1, 2, 0])
    return reshaped(node, inside, [*shape[1:], *map(Dim.of, image)])


def image_of_blocks_by(
    node: Node, x: Value, image: Sequence[Element], block: Sequence[Element]
) -> Value:
    """Col2Im with sizes of which some are scalars, into an image of the declared shape."""
    count = len(image)
    steps = [node.attr_ints(name) or [1] * count for name in ("strides", "dilations")]
    pads = node.attr_ints("pads") or [0] * (2 * count)
    if [len(block), *map(len, steps), len(pads)] != [count] * 3 + [2 * count]:
        raise node.broken("sizes of blocks, strides, dilations or pads do not fit", f"{count} axes")
    channels, *declared = node.declared_sizes(count + 2)[1:]
    sizes = [size for size in declared if size is not None]
    if channels is None or len(sizes) < count or x.rank != 3:
        raise node.unsupported("sizes of images that come at run time, without a declared shape")
    elements = x.shape[1].exact_div(channels)
    if elements is None or not (elements.is_static and x.shape[2].is_static):
        raise node.unsupported(f"blocks of symbolic shape {[str(dim) for dim in x.shape]}")
    found = _ImageBlocks(node, sizes, block, steps, pads).places(elements, x.shape[2])
    for own, size in zip(image, sizes, strict=True):
        found = node.check(found, node.equal(own, size), [], "the image has not the declared shape")
    return summed_at(node, x, channels, found, sizes)


class _ImageBlocks:
    """Blocks of an image, whose sizes are numbers of a node."""

    def __init__(
        self,
        node: Node,
        image: Sequence[int],
        block: Sequence[Number],
        steps: Sequence[Sequence[int]],
        pads: Sequence[int],
    ) -> None:
        self.node = node
        self.image, self.block = image, block
        self.strides, self.dilations = steps
        self.pads = pads

    def places(self, elements: Dim, blocks: Dim) -> Value:
        """The place in the image of each element of each block; its size for those outside."""
        node, count = self.node, len(self.image)
        counts = [self._count(axis) for axis in range(count)]
        own = unsqueezed(node, places_of(node, elements), [1])
        rows = self._digits(own, self.block, elements, "elements of a block")
        columns = self._digits(places_of(node, blocks), counts, blocks, "blocks")
        place: Number = Dim.of(0)
        inside: Value | None = None
        for axis, size in enumerate(self.image):
            start = node.sub(node.mul(columns[axis], self.strides[axis]), self.pads[axis])
            at = node.add(node.mul(rows[axis], self.dilations[axis]), start)
            fits = node.logical_and(node.less_equal(0, at), node.less(at, size))
            inside = fits if inside is None else node.logical_and(inside, fits)
            place = node.add(node.mul(place, size), at)
        assert inside is not None
        found = node.where(inside, place, math.prod(self.image))
        return reshaped(node, found, [elements * blocks])

    def _count(self, axis: int) -> Value:
        """The number of blocks along an axis."""
        node = self.node
        extent = node.add(node.mul(node.sub(self.block[axis], 1), self.dilations[axis]), 1)
        room = self.image[axis] + self.pads[axis] + self.pads[len(self.image) + axis]
        return node.max(node.add(node.div(node.sub(room, extent), self.strides[axis]), 1), 0)

    def _digits(
        self, numbers: Value, sizes: Sequence[Number], total: Dim, what: str
    ) -> list[Value]:
        """The index of each number in an array of some sizes, which has `total` elements."""
        node = self.node
        inner, digits = node.value(Dim.of(1), np.dtype(np.int64)), list[Value]()
        for size in reversed(sizes):
            whole = node.div(numbers, inner)
            digits.insert(0, node.sub(whole, node.mul(node.div(whole, size), size)))
            inner = node.mul(inner, size)
        text = f"wrong number of {what}, expected {{0}}, got {{1}}"
        details = [inner, node.value(total, np.dtype(np.int64))]
        digits[0] = node.check(digits[0], node.equal(*details), details, text)
        return digits
