"""Windows on symbolic sizes: as many, and padded by as much, as those on each fixed size."""

from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st

from stepwell.core.algebra.dims import Dim
from stepwell.dialects.graph.ops.moves.pad_same import same_padding
from stepwell.frontends.importing.windows import Axis

axes = st.builds(
    Axis,
    st.just(Dim.symbol("h")),
    window=st.integers(1, 5),
    stride=st.integers(1, 5),
    dilation=st.integers(1, 3),
    low=st.integers(0, 4),
    high=st.integers(0, 4),
)


@given(axes, st.integers(0, 30))
def test_windows_of_any_size(axis: Axis, size: int) -> None:
    assume(size + axis.low + axis.high >= axis.extent)
    known = Axis(Dim.of(size), axis.window, axis.stride, axis.dilation, axis.low, axis.high)
    sizes = {"h": size}
    assert axis.positions.evaluate(sizes) == known.positions
    assert axis.rest.evaluate(sizes) == known.rest
    assert axis.rounded_up().positions.evaluate(sizes) == known.rounded_up().positions


@given(st.integers(1, 12), st.integers(1, 7), st.integers(0, 40))
def test_padding_for_windows_of_any_size(extent: int, stride: int, size: int) -> None:
    positions = -(-size // stride)
    needed = max(0, (positions - 1) * stride + extent - size)
    assert same_padding(Dim.symbol("h"), extent, stride).evaluate({"h": size}) == needed
    assert same_padding(Dim.of(size), extent, stride) == needed
