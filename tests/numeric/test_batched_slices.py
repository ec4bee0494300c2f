"""Products of slices in a loop, which are one product before it where they have few rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import stepwell as sw

from ..harness import cases, floats
from .test_control_flow import checked


@pytest.mark.parametrize("reverse", cases([False, True], [True]))
def test_products_of_slices(reverse: bool) -> None:
    b = sw.Builder()
    rows, pairs = b.input("rows", ("t", 1, 6)), b.input("pairs", ("t", 2, 6))
    vectors, many = b.input("vectors", ("t", 6)), b.input("many", ("t", 9, 6))
    w, v, bias = floats(6, 6), b.input("v", (6, 6)), floats(6)

    def step(h: Any, slices: Any) -> Any:
        row, pair, vector, nine = slices
        following = b.tanh(h @ w + row @ (v * 0.5))
        return following, (b.dense(vector, v, bias=bias), pair @ w + following, nine @ w)

    given = (rows, pairs, vectors, many)
    last, stacks = b.scan(step, np.zeros((1, 6), np.float32), given, reverse=reverse)
    for result in (last, *stacks):
        b.output(result)
    calls = list[Any]()
    for steps in (0, 1, 5):
        arrays = [floats(steps, *s) for s in ((1, 6), (2, 6), (6,), (9, 6))]
        u, h, states = floats(6, 6), np.zeros((1, 6), np.float32), np.empty((steps, 1, 6))
        for place in range(steps)[::-1] if reverse else range(steps):
            states[place] = h = np.tanh(h @ w + arrays[0][place] @ (u * np.float32(0.5)))
        results = arrays[2] @ u.T + bias, arrays[1] @ w + states, arrays[3] @ w
        calls.append(((*arrays, u), (h, *(array.astype(np.float32) for array in results))))
    exe = checked(b, *calls, stages=True)
    before, _, inside = exe.ir("optimized").partition("graph.loop")
    assert (before.count("graph.matmul"), before.count("graph.dense")) == (2, 1)
    assert inside.count("graph.matmul") + inside.count("graph.dense") == 2
