"""GridSample: elements at places that a grid gives, interpolated."""

from __future__ import annotations

from ...importing.grids import FILTERS, PADDINGS, Sampling, sampled
from ...importing.values import Value
from ..nodes import Node
from ..registry import converts

_OLD_NAMES = {"bilinear": "linear", "bicubic": "cubic"}


@converts("GridSample", since=16)
def grid_sample(node: Node) -> Value:
    x, grid, mode = node.input(0), node.input(1), node.attr_string("mode", "linear")
    mode, padding = _OLD_NAMES.get(mode, mode), node.attr_string("padding_mode", "zeros")
    if mode not in (*FILTERS, "nearest"):
        raise node.broken("mode is unknown", "linear, nearest or cubic", mode)
    if padding not in PADDINGS:
        raise node.broken("padding_mode is unknown", ", ".join(PADDINGS), padding)
    return sampled(node, x, grid, Sampling(mode, padding, bool(node.attr_int("align_corners"))))
