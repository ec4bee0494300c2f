"""Convolutions of images in blocks of channels with fewer multiplications: Winograd's algorithm."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, f64, i64
from xdsl.irdl import operand_def, opt_operand_def, prop_def, result_def

from .....core.algebra.dims import Dim, Shape
from .....core.dtypes import dtype_of
from .....core.ir.typed import dense_array
from ...attrs import FLOAT_TENSOR
from ...constructors import operator
from ...interfaces import FusionKind, GraphOp, ShapeFacts, Sizes, tensor_type, text, widened
from ...nests.body import KernelBody
from ...nests.buffers import Buffer, Index, Scalar
from .contraction import same_element_types
from .minimal_filtering import MOST, MinimalFiltering, minimal_filtering
from .window import block_groups, check_bias, groups_in_blocks

if TYPE_CHECKING:
    from ...interfaces import Array

CACHED = 1 << 18
"""So many transformed numbers and products of a band of tiles stay in a cache."""
FEWEST_TILES = 32
"""A band has so many tiles: each transformed number of a filter that is read is used for all."""
FEWEST_PARTS = 4
"""There are so many bands, or parts of the filters, if possible: threads share them."""
FEWEST_FILTERS = 64
"""A part of the filters has at least so many, since each transforms the image again."""


@operator()
class WinogradFilterOp(GraphOp):
    """The filters of `graph.winograd_conv` for w of shape [M, C, r, r]: u of [n * n, C, M].

    u[i * n + j, c, m] = sum over a, b of G[i, a] * w[m, c, a, b] * G[j, b]

    n is tile + r - 1, and G the matrix of filters of `minimal_filtering`. It is computed in f64. A
    NaN or an infinity in w may make elements of its channel NaN that do not depend on it.

    %u = graph.winograd_filter %w tile = 2 : (tensor<4x2x3x3xf32>) -> tensor<16x2x4xf32>
    """

    name = "graph.winograd_filter"
    FUSION: ClassVar[FusionKind] = FusionKind.NEST

    w = operand_def(FLOAT_TENSOR)
    tile = prop_def(IntegerAttr.constr(i64))
    result = result_def(FLOAT_TENSOR)

    assembly_format = "$w `tile` `=` $tile attr-dict `:` functional-type(operands, results)"

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        (w,) = shapes
        if len(w) != 4 or not w[2].is_static:
            facts.fail("w has the wrong shape", "4 dimensions, with a window of a number", text(w))
        facts.equal(w[2], w[3], "the window is not square")
        tile, side = self.tile.value.data, self.tile.value.data + w[2].value - 1
        if tile < 1 or w[2].value < 1 or side > MOST:
            fact = "no algorithm for the tile and the window"
            facts.fail(fact, f"sizes of 1 or more, of at most {MOST} + 1", f"{tile} and {w[2]}")
        return [(Dim.of(side**2), w[1], w[0])]

    @property
    def matrix(self) -> np.ndarray:
        """G."""
        return minimal_filtering(self.tile.value.data, tensor_type(self.w).get_shape()[2]).filter

    def flops(self, sizes: Sizes) -> Dim:
        """Two for each product with an element of G that is not 0, along both axes."""
        filters, channels, window, _ = sizes.shape(self.w)
        both = self.matrix.shape[0] + window.value
        return filters * channels * (2 * both * int(np.count_nonzero(self.matrix)))

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        w = dense_array(arrays[0])
        filters, channels, *_ = w.shape
        # One product of matrices for both axes, of one channel at a time, which a cache keeps.
        both = np.kron(self.matrix, self.matrix)
        parts = w.reshape(filters, channels, both.shape[1]).transpose(1, 2, 0)
        parts = parts.astype(np.float64, order="C")
        u = np.empty((len(both), channels, filters), dtype_of(*self.infer_element_types()))
        with np.errstate(all="ignore"):
            for channel, part in enumerate(parts):
                u[:, channel] = both @ part
        return (u,)

    def write(self, k: KernelBody, w: Buffer, u: Buffer) -> None:
        filters, channels, *_ = w.shape
        sides = range(self.matrix.shape[1])
        with k.loops(channels, filters) as (c, m):
            at = [[k.cast(w[m, c, a, b], f64) for b in sides] for a in sides]
            half = [_products(k, self.matrix, row) for row in at]
            columns = [_products(k, self.matrix, column) for column in zip(*half, strict=True)]
            for i, row in enumerate(zip(*columns, strict=True)):
                for j, value in enumerate(row):
                    u[i * len(row) + j, c, m] = k.cast(value, w.type)


@operator(bias=None)
class WinogradConvOp(GraphOp):
    """`graph.blocked_conv` without strides and dilations, by Winograd's minimal filtering.

    x has the shape [N, C/b, H, W, b], the result [N, M/block, H - r + 1, W - r + 1, block]. Windows
    of r x r at `tile` x `tile` places are computed from n x n products for each channel and
    filter, n = tile + r - 1, instead of tile * tile * r * r. u has the shape [n * n, C, M], as
    `graph.winograd_filter` makes it of the filters. If C is less than x has, there are groups.

    All sizes but N are numbers. A NaN or an infinity in x makes results of its tile NaN that do not
    depend on it. Rounding errors are up to twice those of `graph.blocked_conv` for n = 4, and 5 to
    16 times as large for n = 6.

    %y = graph.winograd_conv %x, %u, %b tile = 2 block = 2
        : (tensor<1x1x6x4x2xf32>, tensor<16x2x4xf32>, tensor<4xf32>) -> tensor<1x2x4x2x2xf32>
    """

    name = "graph.winograd_conv"
    FUSION: ClassVar[FusionKind] = FusionKind.NEST

    x = operand_def(FLOAT_TENSOR)
    u = operand_def(FLOAT_TENSOR)
    bias = opt_operand_def(FLOAT_TENSOR)
    tile = prop_def(IntegerAttr.constr(i64))
    block = prop_def(IntegerAttr.constr(i64))
    result = result_def(FLOAT_TENSOR)

    assembly_format = (
        "$x `,` $u (`,` $bias^)? `tile` `=` $tile `block` `=` $block attr-dict `:` "
        "functional-type(operands, results)"
    )

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        same_element_types(self, facts)
        x, u, *bias = shapes
        if len(x) != 5 or not all(dim.is_static for dim in x[1:]):
            expected = "5 dimensions, whose sizes are numbers but for the first"
            facts.fail("x has the wrong shape", expected, text(x))
        if len(u) != 3 or not all(dim.is_static and dim.value > 0 for dim in u):
            facts.fail("u has the wrong shape", "3 sizes of 1 or more", text(u))
        check_bias(bias, u[2], "u", facts)
        tile, block, filters = self.tile.value.data, self.block.value.data, u[2].value
        block_groups(x, u[1], filters, block, "u", facts)
        side = math.isqrt(u[0].value)
        if side**2 != u[0].value or not 1 <= tile <= side <= MOST:
            expected = f"n x n transformed numbers of a filter, with tile <= n <= {MOST}"
            facts.fail("the tile does not fit u", expected, f"{u[0]} numbers, and a tile of {tile}")
        window = side - tile + 1
        for axis in (2, 3):
            if x[axis].value < window:
                facts.fail(f"the window is larger than axis {axis}", f"at most {x[axis]}", window)
        places = (Dim.of(size.value - window + 1) for size in x[2:4])
        return [(x[0], Dim.of(filters // block), *places, Dim.of(block))]

    @property
    def algorithm(self) -> MinimalFiltering:
        """The algorithm along one axis."""
        return minimal_filtering(self.tile.value.data, self.window)

    @property
    def window(self) -> int:
        """The side of a filter, before it is transformed."""
        return math.isqrt(tensor_type(self.u).get_shape()[0]) - self.tile.value.data + 1

    @property
    def groups(self) -> int:
        """The number of groups of channels, of which a filter reads one."""
        return groups_in_blocks(self.x, tensor_type(self.u).get_shape()[1])

    def flops(self, sizes: Sizes) -> Dim:
        """Two for each of the products."""
        (images, _, *places, _), u = sizes.shape(self.result), sizes.shape(self.u)
        tiles = math.prod(-(-size.value // self.tile.value.data) for size in places)
        return images * math.prod(size.value for size in u) * (2 * tiles)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x, u, *bias = (widened(dense_array(array)) for array in arrays)
        tile, block = self.tile.value.data, self.block.value.data
        by, side = self.algorithm, tile + self.window - 1
        places = [size - self.window + 1 for size in x.shape[2:4]]
        more = [(0, -size % tile) for size in places]
        x = np.pad(np.moveaxis(x, -1, 2), [(0, 0)] * 3 + more)
        parts = np.lib.stride_tricks.sliding_window_view(x, (side, side), (-2, -1))
        parts = parts[..., ::tile, ::tile, :, :]
        down, across = parts.shape[3:5]
        signal, result = by.signal.astype(x.dtype), by.result.astype(x.dtype)
        with np.errstate(all="ignore"):
            images = np.moveaxis(signal @ parts @ signal.T, (-2, -1), (0, 1))
            images = images.reshape(side**2, x.shape[0], -1, down * across)
            groups = zip(np.split(images, self.groups, 2), np.split(u, self.groups, 2), strict=True)
            parts = [np.matmul(np.swapaxes(x, -1, -2), u[:, None]) for x, u in groups]
            products = np.concatenate(parts, axis=-1)
            products = products.reshape(side, side, x.shape[0], down, across, -1)
            y = result @ np.moveaxis(products, (0, 1), (-2, -1)) @ result.T
            if bias:
                y = y + bias[0][:, None, None]
            # From [N, down, across, M, tile, tile].
            y = y.transpose(0, 3, 1, 4, 2, 5).reshape(x.shape[0], -1, down * tile, across * tile)
            y = y[..., : places[0], : places[1]]
            y = y.reshape(x.shape[0], -1, block, *places)
            return self.stored(np.ascontiguousarray(np.moveaxis(y, 2, -1)))

    def write(self, k: KernelBody, x: Buffer, u: Buffer, bias: Buffer | None, y: Buffer) -> None:
        tile = self.tile.value.data
        _, blocks, rows, columns, _ = tensor_type(self.result).get_shape()
        points, channels, filters = tensor_type(self.u).get_shape()
        across, groups = -(-columns // tile), self.groups
        of_row = points * (channels + filters // groups) * across
        bands = bands_of(rows, tile, max(CACHED // of_row, FEWEST_TILES // across))
        parts = groups
        if bands[0].count < FEWEST_PARTS:
            several = [n for n in range(groups, FEWEST_PARTS + 1, groups) if blocks % n == 0]
            parts = max((n for n in several if filters // n >= FEWEST_FILTERS), default=groups)
        for band in bands:
            writer = _BandWriter(k, self, (x, u, bias, y), band.rows, parts)
            with k.loops(x.shape[0], band.count, parts) as (image, number, part):
                # A loop that runs once has a variable, of which less is known than of a number.
                first = band.start + (number * band.rows if band.count > 1 else 0)
                writer.write(image, first, part if parts > 1 else 0)


@dataclass(frozen=True)
class Bands:
    """Bands of rows of the result, of one height: `count` bands of `rows` rows from `start` on."""

    start: int
    count: int
    rows: int


def bands_of(rows: int, tile: int, best: int) -> list[Bands]:
    """Cut rows into bands of whole tiles, of about `best` rows of tiles.

    They are equal where that takes no more than twice or half as many, since each kind of band has
    loops of its own. Otherwise the last one is smaller.
    """
    down = -(-rows // tile)
    best = min(max(best, 1), down)
    equal = [n for n in range(1, down + 1) if rows % (n * tile) == 0 or n == down]
    fewer = [n for n in equal if best <= 2 * n <= 2 * best]
    more = [n for n in equal if best < n <= 2 * best]
    height = tile * (fewer[-1] if fewer else more[0] if more else best)
    whole, rest = divmod(rows, height)
    bands = [Bands(0, whole, height), Bands(whole * height, 1, rest)]
    return [band for band in bands if band.count and band.rows]


class _BandWriter:
    """Writes the loops of bands of `rows` rows, each for one of `parts` parts of the filters.

    `buffers` are x, u, the bias and the result.
    """

    def __init__(
        self,
        k: KernelBody,
        op: WinogradConvOp,
        buffers: tuple[Buffer, Buffer, Buffer | None, Buffer],
        rows: int,
        parts: int,
    ) -> None:
        self.k, self.rows, self.parts = k, rows, parts
        self.x, self.u, self.bias, self.y = buffers
        self.kind = self.x.type
        self.tile, self.window, self.by = op.tile.value.data, op.window, op.algorithm
        *_, self.width, self.block_read = tensor_type(op.x).get_shape()
        _, blocks, _, self.columns, self.block = tensor_type(op.result).get_shape()
        self.side = self.tile + self.window - 1
        self.down, self.across = -(-rows // self.tile), -(-self.columns // self.tile)
        self.points, self.channels, filters = tensor_type(op.u).get_shape()
        self.blocks, self.filters = blocks // parts, filters // parts
        self.groups, self.blocks_read = op.groups, self.channels // self.block_read

    def write(self, image: Index, first: int | Index, part: int | Index) -> None:
        """Write the loops of the band of an image that begins at a row."""
        k, tiles = self.k, self.down * self.across
        # Whole parts of the filters read the same group of channels.
        first_read = part // (self.parts // self.groups) * self.blocks_read
        first_filter, first_block = part * self.filters, part * self.blocks
        images = self._transformed(self._read(image, first, first_read))
        products = k.local((self.points, tiles, self.filters), self.kind)
        with k.loops(self.points, tiles, self.filters) as (point, place, own):
            products[point, place, own] = k.reduce(
                self.channels,
                "add",
                k.scalar(0.0, self.kind),
                lambda channel, total: k.fma(
                    images[point, place, channel],
                    self.u[point, channel, first_filter + own],
                    total,
                ),
            )
        found = self._interpolated(products)
        with k.loops(self.blocks, self.rows, self.columns, self.block) as (b, row, column, own):
            value = found[b, row, column, own]
            if self.bias is not None:
                value = value + self.bias[first_filter + b * self.block + own]
            self.y[image, first_block + b, first + row, column, own] = value

    def _read(
        self, image: Index, first: int | Index, first_read: int | Index
    ) -> Callable[[Index, Index, Index, Index], Scalar]:
        """The part of an image that the band reads: a copy with zeros up to the last whole tile.

        Of whole tiles it is the image itself.
        """
        k, around, blocks = self.k, self.window - 1, self.blocks_read
        if self.rows % self.tile == 0 and self.columns % self.tile == 0:
            return lambda b, row, column, own: self.x[
                image, first_read + b, first + row, column, own
            ]
        width, block = self.width, self.block_read
        sizes = (blocks, self.down * self.tile + around, self.across * self.tile + around, block)
        copied, height = k.local(sizes, self.kind), self.rows + around
        with k.loops(blocks, height, width, block) as (b, row, column, own):
            value = self.x[image, first_read + b, first + row, column, own]
            copied[b, row, column, own] = value
        zero = k.scalar(0.0, self.kind)
        with k.loops(blocks, height, sizes[2] - width, block) as (b, row, column, own):
            copied[b, row, width + column, own] = zero
        with k.loops(blocks, sizes[1] - height, sizes[2], block) as (b, row, column, own):
            copied[b, height + row, column, own] = zero
        return lambda b, row, column, own: copied[b, row, column, own]

    def _transformed(self, read: Callable[[Index, Index, Index, Index], Scalar]) -> Buffer:
        """The tiles d of an image, as B d B^T: [n * n, tiles, C]."""
        k, n, tile, blocks = self.k, self.side, self.tile, self.blocks_read
        block = self.block_read
        wide = self.across * tile + self.window - 1
        half = k.local((n, self.down, wide, self.channels), self.kind)
        with k.loops(self.down, wide, blocks, block) as (row, column, b, own):
            part = [read(b, row * tile + i, column, own) for i in range(n)]
            for i, value in enumerate(_products(k, self.by.signal, part)):
                half[i, row, column, b * block + own] = value
        found = k.local((self.points, self.down * self.across, self.channels), self.kind)
        with k.loops(n, self.down, self.across, self.channels) as (i, row, column, channel):
            part = [half[i, row, column * tile + j, channel] for j in range(n)]
            for j, value in enumerate(_products(k, self.by.signal, part)):
                found[i * n + j, row * self.across + column, channel] = value
        return found

    def _interpolated(self, products: Buffer) -> Buffer:
        """The results of whole tiles by blocks of channels, A p A^T for the products p of each."""
        k, n, tile, tiles = self.k, self.side, self.tile, self.down * self.across
        half = k.local((tile, n, tiles, self.filters), self.kind)
        with k.loops(n, tiles, self.filters) as (j, place, filter):
            part = [products[i * n + j, place, filter] for i in range(n)]
            for i, value in enumerate(_products(k, self.by.result, part)):
                half[i, j, place, filter] = value
        sizes = (self.blocks, self.down * tile, self.across * tile, self.block)
        found, inner = k.local(sizes, self.kind), (self.blocks, self.block)
        with k.loops(tile, self.down, self.across, *inner) as (i, row, column, b, own):
            place, filter = row * self.across + column, b * self.block + own
            part = [half[i, j, place, filter] for j in range(n)]
            for j, value in enumerate(_products(k, self.by.result, part)):
                found[b, row * tile + i, column * tile + j, own] = value
        return found


def _products(k: KernelBody, matrix: np.ndarray, values: Sequence[Scalar]) -> list[Scalar]:
    """A matrix times a vector."""
    return [_combined(k, factors, values) for factors in matrix]


def _combined(k: KernelBody, factors: np.ndarray, values: Sequence[Scalar]) -> Scalar:
    """The sum of values times factors, most of which are 0, 1 and -1."""
    pairs = [(float(f), value) for f, value in zip(factors, values, strict=True) if f]
    # A sum that begins with a factor of 1 saves a multiplication.
    (factor, value), *others = sorted(pairs, key=lambda pair: pair[0] != 1)
    total = value if factor == 1 else value * factor
    for factor, value in others:
        if abs(factor) == 1:
            total = total + value if factor == 1 else total - value
        else:
            total = k.fma(value, factor, total)
    return total
