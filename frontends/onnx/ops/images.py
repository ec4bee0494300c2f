"""Images put together and sampled: MaxUnpool, Col2Im, AffineGrid, RoiAlign."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence

import numpy as np

from ....core.algebra.dims import Dim, product
from ...importing.formulas import FormulaTerm
from ...importing.reductions import reduced
from ...importing.resizing import Numbers
from ...importing.selection import apart, padded
from ...importing.shapes import broadcast, matrix_product, reshaped, transposed, unsqueezed
from ...importing.values import Value, is_static
from ..blocks import image_of_blocks_by, summed_at
from ..dynamic import static_sizes
from ..nodes import Node
from ..registry import converts


@converts("MaxUnpool", since=9)
def max_unpool(node: Node) -> Value:
    # zeros with x[i] at places[i], for images of the size before the pool
    x, places, window = node.input(0), node.input(1), node.attr_ints("kernel_shape")
    count = x.rank - 2
    strides = node.attr_ints("strides") or [1] * count
    pads = node.attr_ints("pads") or [0] * (2 * count)
    if window is None or [len(window), len(strides), len(pads)] != [count, count, 2 * count]:
        raise node.broken("kernel_shape, strides or pads do not fit", f"{count} axes", window)
    if places.shape != x.shape or not is_static(x.shape):
        shapes = [[str(dim) for dim in value.shape] for value in (x, places)]
        raise node.unsupported(f"places of shape {shapes[1]} for maxima of shape {shapes[0]}")
    sizes = [
        (dim.value - 1) * strides[n] - pads[n] - pads[count + n] + window[n]
        for n, dim in enumerate(x.shape[2:])
    ]
    batch, channels = (dim.value for dim in x.shape[:2])
    zeros = node.known(np.zeros(batch * channels * math.prod(sizes), x.dtype))
    values, at = (reshaped(node, value, [product(x.shape)]) for value in (x, places))
    found = node.scatter_nd(zeros, values, [at], kind="none")
    image = reshaped(node, found, [Dim.of(n) for n in (batch, channels, *sizes)])
    wanted = _wanted(node, len(sizes))
    if wanted is None:
        return image
    margins = [0, 0, *(want - own for want, own in zip(wanted, sizes, strict=True))]
    return padded(node, image, [0] * x.rank, margins)


def _wanted(node: Node, count: int) -> Sequence[int] | None:
    """The sizes of the images of a MaxUnpool, if they are given."""
    if node.optional(2) is None:
        return None
    given = static_sizes(node.elements(2)) or list(node.declared_sizes(count + 2))
    sizes = [n for n in given[2:] if n is not None]
    if len(given) != count + 2 or len(sizes) != count:
        raise node.unsupported("an output_shape that is not known")
    return sizes


@converts("Col2Im", since=18)
def col2im(node: Node) -> Value:
    # Each element of a block is added to its place in the image.
    x = node.input(0)
    image, block = (static_sizes(node.elements(index)) for index in (1, 2))
    if image is None or block is None:
        return image_of_blocks_by(node, x, node.elements(1), node.elements(2))
    count = len(image)
    strides = node.attr_ints("strides") or [1] * count
    dilations = node.attr_ints("dilations") or [1] * count
    pads = node.attr_ints("pads") or [0] * (2 * count)
    if [len(block), len(strides), len(dilations), len(pads)] != [count] * 3 + [2 * count]:
        raise node.broken("sizes of blocks, strides, dilations or pads do not fit", f"{count} axes")
    if min([*image, *block, *strides, *dilations]) < 1:
        raise node.broken("a size, a stride or a dilation is not positive", ">= 1")
    tables: list[np.ndarray] = []
    for axis in range(count):
        extent = dilations[axis] * (block[axis] - 1) + 1
        room = image[axis] + pads[axis] + pads[count + axis] - extent
        starts = np.arange(max(room // strides[axis] + 1, 0)) * strides[axis] - pads[axis]
        tables.append(np.arange(block[axis])[:, None] * dilations[axis] + starts)
    elements, blocks = math.prod(block), math.prod(table.shape[1] for table in tables)
    if x.rank != 3 or x.shape[2] != Dim.of(blocks) or not x.shape[1].is_static:
        got = [str(dim) for dim in x.shape]
        raise node.broken("blocks do not fit the image", f"{blocks} blocks", got)
    channels, rest = divmod(x.shape[1].value, elements)
    if rest:
        raise node.broken("channels do not fit blocks", f"a multiple of {elements}", x.shape[1])
    return summed_at(node, x, channels, node.known(_places(tables, image)), image)


def _places(tables: Sequence[np.ndarray], image: Sequence[int]) -> np.ndarray:
    """The places of the elements of all blocks in an image; its size for those outside."""
    count = len(image)
    place, inside = np.zeros([1] * (2 * count), np.int64), np.array(True)
    for axis, (table, size) in enumerate(zip(tables, image, strict=True)):
        shape = [1] * (2 * count)
        shape[axis], shape[count + axis] = table.shape
        own = table.reshape(shape)
        place = place * size + own
        inside = inside & (own >= 0) & (own < size)
    return np.where(inside, place, math.prod(image)).ravel()


@converts("AffineGrid", since=20)
def affine_grid(node: Node) -> Value:
    # grid[n, i, j] == theta[n] @ (x[j], y[i], 1), for places from -1 to 1
    theta, count = node.input(0), node.input(1).shape[0].value - 2
    known = static_sizes(node.elements(1))
    declared = list(node.declared_sizes(count + 2))
    sizes = [n for n in (declared[1:-1] if known is None else known[2:]) if n is not None]
    if len(sizes) != count:
        raise node.unsupported("sizes of images that are not known")
    if theta.rank != 3 or theta.shape[1:] != (Dim.of(count), Dim.of(count + 1)):
        got = [str(dim) for dim in theta.shape]
        raise node.broken("theta has the wrong shape", f"[n, {count}, {count + 1}]", got)
    if min(sizes) < 1:
        raise node.broken("an image is empty", "sizes >= 1", sizes)
    align = bool(node.attr_int("align_corners"))
    axes = [_middles(size, align) for size in sizes]
    places = [*reversed(np.meshgrid(*axes, indexing="ij")), np.ones(sizes)]
    points = np.stack([place.ravel() for place in places], axis=1).astype(theta.dtype)
    found = matrix_product(node, node.known(points), transposed(node, theta, [0, 2, 1]))
    return reshaped(node, found, [theta.shape[0], *map(Dim.of, sizes), Dim.of(count)])


def _middles(size: int, align_corners: bool) -> np.ndarray:
    """Places of elements in [-1, 1], at the ends or in the middle of as many parts."""
    if align_corners:
        return np.linspace(-1, 1, size) if size > 1 else np.zeros(1)
    return (2 * np.arange(size) + 1) / size - 1


@converts("RoiAlign", since=10)
def roi_align(node: Node) -> Value:
    return _roi_align(node, "output_half_pixel")


@converts("RoiAlign", since=16)
def roi_align_16(node: Node) -> Value:
    return _roi_align(node, node.attr_string("coordinate_transformation_mode", "half_pixel"))


def _roi_align(node: Node, transformation: str) -> Value:
    x, rois, batches = node.input(0), node.input(1), node.input(2)
    mode, samples = node.attr_string("mode", "avg"), node.attr_int("sampling_ratio")
    if mode not in ("avg", "max") or transformation not in ("half_pixel", "output_half_pixel"):
        raise node.broken("mode is unknown", "avg or max; half_pixel or output_half_pixel", mode)
    if samples < 1:
        raise node.unsupported("a sampling_ratio of 0, which depends on the regions")
    if x.rank != 4 or rois.rank != 2 or rois.shape[1] != Dim.of(4):
        shapes = [[str(dim) for dim in value.shape] for value in (x, rois)]
        raise node.broken("regions do not fit the operand", "images, and [regions, 4]", shapes)
    scale, shift = node.attr_float("spatial_scale", 1.0), 0.5 * (transformation == "half_pixel")
    ends = [
        FormulaTerm.of(node, part, x.dtype) * scale - shift
        for part in apart(node, rois, 1, [1] * 4)
    ]
    bins = [node.attr_int(f"output_{name}", 1) for name in ("height", "width")]
    taps = [
        _taps(
            ends[1 - axis],
            ends[3 - axis] if shift else np.maximum(ends[3 - axis], ends[1 - axis] + 1.0),
            bins[axis],
            samples,
            FormulaTerm.of(node, x.shape[2 + axis], x.dtype),
        )
        for axis in range(2)
    ]
    image = transposed(node, x, [0, 2, 3, 1])
    shape = [rois.shape[0], Dim.of(bins[0] * samples), Dim.of(bins[1] * samples)]
    own = broadcast(node, unsqueezed(node, node.wide(batches), [1, 2]), shape)
    terms: list[Value] = []
    for (rows, row_weights), (columns, column_weights) in itertools.product(*taps):
        places = [
            broadcast(node, unsqueezed(node, place.as_type(np.int64), [axis]), shape)
            for place, axis in ((rows, 2), (columns, 1))
        ]
        found = node.gather_nd(image, [own, *places])
        weights = [
            unsqueezed(node, weight.value, [axis, 3])
            for weight, axis in ((row_weights, 2), (column_weights, 1))
        ]
        terms.append(functools.reduce(node.mul, weights, found))
    total = functools.reduce(node.add if mode == "avg" else node.max, terms)
    sizes = [Dim.of(n) for n in (bins[0], samples, bins[1], samples)]
    parts = reshaped(node, total, [shape[0], *sizes, x.shape[1]])
    pooled = reduced(node, parts, [2, 4], False, "mean" if mode == "avg" else "max")
    return transposed(node, pooled, [0, 3, 1, 2])


def _taps(
    start: Numbers, end: Numbers, bins: int, samples: int, size: Numbers
) -> list[tuple[Numbers, Numbers]]:
    """The places of the two elements around each sample of a region along an axis, and weights."""
    step, number = (end - start) / bins, np.arange(bins * samples)
    place = start + (number // samples) * step + (number % samples + 0.5) * (step / samples)
    is_near = (place >= -1.0) & (place <= size)
    place = np.minimum(np.maximum(place, 0.0), size - 1)
    low = np.floor(place)
    far = place - low
    weights = [np.where(is_near, weight, 0.0) for weight in (1 - far, far)]
    return [(low, weights[0]), (np.minimum(low + 1, size - 1), weights[1])]
