"""Compute convolutions of images by fewer multiplications, where that pays off."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import PassFailedException

from ...core.errors import explain
from ...core.ir.context import decide
from ...core.pipelines.actions import allowed
from ...core.pipelines.budgets import SUMS
from ...core.pipelines.exactness import Exactness
from ...dialects.graph import ops as graph
from ...dialects.graph.attrs import ints
from ...dialects.graph.known import is_constant, sizes_of
from ...dialects.graph.ops.products.minimal_filtering import MOST, minimal_filtering
from .rules.blocks import bodies
from .rules.permission import Permission

_ALGORITHM = "Winograd's algorithm"
_LEAST_USES = 16
"""Multiply-adds of a vector that take as long as reading it from memory."""
_GAIN = 1.1
"""Convolutions that would be less than so many times as fast stay as they are."""


@dataclass(frozen=True)
class _Work:
    """The cycles of a convolution with r x r filters, in multiply-adds of a vector.

    Args:
        channels: how many numbers a filter reads at a place of its operand.
        filters: how many read them.
        places: the height and the width of its result.
        window: r.
    """

    channels: int
    filters: int
    places: tuple[int, int]
    window: int

    def direct(self) -> float:
        """By r x r products for each place, channel and filter."""
        height, width = self.places
        return self._products(self.window**2, height * width)

    def by_tiles(self, tile: int) -> float:
        """By n x n products for each tile, channel and filter, n = tile + r - 1."""
        by, side = minimal_filtering(tile, self.window), tile + self.window - 1
        height, width = (-(-size // tile) for size in self.places)
        # Each number is read and written twice: as it is, and transformed.
        of_channel = 2 * side * np.count_nonzero(by.signal) + 4 * side**2
        of_filter = (side + tile) * np.count_nonzero(by.result) + 2 * side**2 + 4 * tile**2
        transforms = of_channel * self.channels + of_filter * self.filters
        return self._products(side**2, height * width) + height * width * transforms

    def _products(self, weights: int, uses: int) -> float:
        """Products with so many weights for each channel and filter, each used so many times."""
        return weights * max(uses, _LEAST_USES) * self.channels * self.filters


def _work_of(op: graph.BlockedConvOp) -> _Work | None:
    """The work of a convolution of an image that is not strided; None for others."""
    image, (filters, channels, *window) = sizes_of(op.x)[2:-1], sizes_of(op.w)
    steps = {*ints(op.strides), *ints(op.dilations)}
    if len(image) != 2 or min(image) < 0 or window[0] != window[1] or steps != {1}:
        return None
    if window[0] < 3 or window[0] >= MOST or op.is_depthwise or not is_constant(op.w):
        return None
    height, width = (size - window[0] + 1 for size in image)
    return _Work(channels, filters // op.groups, (height, width), window[0])


@Exactness.SPECIAL
@dataclass(frozen=True)
class GraphWinogradConv2dPass(ModulePass):
    """Compute convolutions of images by fewer multiplications, where that pays off.

    Winograd's algorithm needs 2.25 times fewer multiplications for windows of 3 x 3 and tiles of
    2 x 2 places, and 4 times fewer for 4 x 4 places, and transforms images, filters and products.

    Before:

    ```mlir
    func.func @main(%x: tensor<1x1x18x18x16xf32>) -> tensor<1x1x16x16x16xf32> {
      %w = graph.constant dense<0.5> : tensor<16x16x3x3xf32>
      %y = graph.blocked_conv %x, %w strides = [1, 1] dilations = [1, 1] block = 16
          : (tensor<1x1x18x18x16xf32>, tensor<16x16x3x3xf32>) -> tensor<1x1x16x16x16xf32>
      func.return %y : tensor<1x1x16x16x16xf32>
    }
    ```

    After:

    ```mlir
    func.func @main(%x: tensor<1x1x18x18x16xf32>) -> tensor<1x1x16x16x16xf32> {
      %w = graph.constant dense<0.5> : tensor<16x16x3x3xf32>
      %u = graph.winograd_filter %w tile = 4 : (tensor<16x16x3x3xf32>) -> tensor<36x16x16xf32>
      %y = graph.winograd_conv %x, %u tile = 4 block = 16
          : (tensor<1x1x18x18x16xf32>, tensor<36x16x16xf32>) -> tensor<1x1x16x16x16xf32>
      func.return %y : tensor<1x1x16x16x16xf32>
    }
    ```

    Requires: convolutions on blocks of channels.
    Order: after `graph-alter-op-layout`, which blocks channels; followed by `graph-fold-constant`,
        which transforms constant filters.
    Leaves: convolutions with strides, dilations, computed filters, or sizes of images that
        are not known; windows that are not square, or smaller than 3 or larger than 5; those
        whose transformed filters would be read for too few places.
    """

    name = "graph-winograd-conv2d"
    budget = SUMS

    largest: int = 4
    """The largest side of a tile: 4, or 2 for smaller errors, or 1 for none."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.largest not in (1, 2, 4):
            fact = "no tile of this size"
            raise PassFailedException(
                explain(self.name, fact, expected="largest=1, 2 or 4", got=self.largest)
            )
        permission = Permission(op)
        for ops in bodies(op):
            for conv in ops:
                if isinstance(conv, graph.BlockedConvOp) and (work := _work_of(conv)) is not None:
                    self._replace(ctx, conv, work, permission)

    def _replace(
        self, ctx: Context, conv: graph.BlockedConvOp, work: _Work, permission: Permission
    ) -> None:
        """Replace a convolution if one with tiles is faster and may round as it does."""
        costs = {
            tile: work.by_tiles(tile)
            for tile in (2, 4)
            if tile <= self.largest and tile + work.window - 1 <= MOST
        }
        if not costs:
            return
        tile = min(costs, key=lambda tile: costs[tile])
        gain = work.direct() / costs[tile]
        why = f"it takes about {1 / gain:.2f} of the time, on tiles of {tile} x {tile}"
        if gain < _GAIN:
            decide(ctx, conv, f"{_ALGORITHM} is not used", why, kind="missed")
            return
        if not permission.allows(Exactness.SPECIAL, conv) or not allowed(f"use {_ALGORITHM}", conv):
            return
        filters = graph.WinogradFilterOp(conv.w, tile)
        block = conv.block.value.data
        new = graph.WinogradConvOp(conv.x, filters, tile, block, bias=conv.bias)
        filters.location = new.location = conv.location
        decide(ctx, conv, f"use {_ALGORITHM}", why)
        Rewriter.replace_op(conv, [filters, new], new.results)
