"""Loops that compute sizes: how many slices are stacked, and what they carry up to a bound."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import stepwell as sw
from stepwell.core.errors import CompileError, InputError

from .test_control_flow import at_stages, checked, floats


def test_what_is_stacked_has_as_many_rows_as_there_were_iterations(all_tests: bool) -> None:
    b = sw.Builder()
    x, n, most = b.input("x", (3,)), b.input("n", (), "i64"), b.input("most", ())

    def below(h: Any) -> Any:
        return b.less(b.reduce(h, "sum", axes=[0], keepdims=False), most)

    def double(h: Any, _: Any) -> Any:
        return h * 2.0, (h * 2.0, h)

    ends: list[dict[str, Any]] = [
        {"count": 7, "condition": below},
        {"count": n, "condition": below, "limit": 20},
        {"condition": below, "limit": 20},
        {"count": n, "limit": 20, "reverse": True},
    ]
    if all_tests:
        ends.append({"count": n, "limit": 20})
    for end in ends:
        last, (after, before) = b.scan(double, x, **end)
        for result in (last, after, b.relu(after) + before):
            b.output(result)

    def expected(h: np.ndarray, n: int, most: float) -> list[np.ndarray]:
        found: list[np.ndarray] = []
        for end in ends:
            given, state = end.get("count", 1000), [h]
            count = given if isinstance(given, int) else n
            while len(state) <= count and ("condition" not in end or state[-1].sum() < most):
                state.append(state[-1] * 2)
            stacks = (np.array(rows, np.float32) for rows in (state[1:], state[:-1]))
            after, before = (stack.reshape(-1, 3) for stack in stacks)
            order = -1 if "reverse" in end else 1
            found += [state[-1], after[::order], (np.maximum(after, 0) + before)[::order]]
        return found

    ones, calls = np.ones(3, np.float32), list[Any]()
    for count, largest in ((20, 3e6), (0, 100), (-4, 1), (3, 20)):
        call = ones, np.array(count), np.float32(largest)
        calls.append((call, expected(ones, count, largest)))
    exe = checked(b, *calls, stages=True)
    for count, largest in ((21, 9), (1, 1e30)):
        for run in (exe, b.module().run_reference):
            with pytest.raises(InputError, match=r"graph\.loop: no end after 20 iterations"):
                run(ones, np.array(count), np.float32(largest))


def test_rows_of_a_run_time_number_are_used_in_a_loop() -> None:
    b = sw.Builder()
    xs, n = b.input("xs", ("m", 3)), b.input("n", (), "i64")

    def step(state: Any, x: Any) -> Any:
        _, rows = b.scan(lambda k, _: (k + 1, x * b.cast(k, "f32")), np.int64(1), count=n, limit=6)
        return state + b.reduce(rows, "sum", axes=[0], keepdims=False), ()

    b.output(b.scan(step, np.zeros(3, np.float32), xs)[0])
    a = floats(4, 3)
    calls = [((a, np.array(n)), (a.sum(0) * (n * (n + 1) // 2),)) for n in (6, 0, 3)]
    checked(b, *calls, stages=True)


def test_what_a_loop_carries_grows_shrinks_and_doubles(all_tests: bool) -> None:
    b = sw.Builder()
    x, n, most = b.input("x", ("m", 3)), b.input("n", (), "i64"), b.input("most", ())
    row = b.input("row", (1, 3))

    def grow(i: Any, h: Any) -> Any:
        return b.concat([h, row * b.cast(i, "f32")], axis=0)

    def both(i: Any, k: Any, v: Any, before: Any) -> Any:
        longer = b.concat([k, row], axis=0)
        return longer, b.concat([v, row * 2.0], axis=0) + longer, k

    def below(k: Any, v: Any, before: Any) -> Any:
        return b.less(b.reduce(k, "sum", axes=[0, 1], keepdims=False), most)

    def keep(i: Any, h: Any) -> Any:
        positive = b.greater(b.reduce(h, "sum", axes=[1], keepdims=False), 0.0)
        return b.compress(h - 1.0, positive, axis=0)

    grown = b.loop(n, grow, x, bounds={0: ("m+5", None)})
    doubled = b.loop(3, lambda i, h: b.concat([h, h], axis=1) + 1.0, row, bounds={0: (None, 24)})
    # Two sizes that agree in each iteration, and one that is that of the iteration before.
    bounds = {0: (50, None), 1: (50, None), 2: ("50", None)}
    caches = b.loop(None, both, row, row, row, condition=below, limit=100, bounds=bounds)
    kept = b.loop(2, keep, x, bounds={0: ("m", None)})
    for result in (grown, b.relu(grown) * 2.0, doubled, *caches, kept):
        b.output(result)

    def expected(a: np.ndarray, count: int, largest: float, one: np.ndarray) -> list[np.ndarray]:
        h = np.concatenate([a, *(one * np.float32(i) for i in range(count))])
        d = one
        for _ in range(3):
            d = np.concatenate([d, d], 1) + np.float32(1)
        k = v = before = one
        while k.sum() < largest:
            longer = np.concatenate([k, one])
            k, v, before = longer, np.concatenate([v, one * 2]) + longer, k
        f = a
        for _ in range(2):
            f = (f - 1)[f.sum(1) > 0]
        return [h, np.maximum(h, 0) * 2, d, k, v, before, f]

    one, calls = np.ones((1, 3), np.float32), list[Any]()
    for rows, count, largest in ((6, 3, 149), (0, 5, 100), (1, 0, 1), (4, 2, 7)):
        a = floats(rows, 3) + np.float32(1)
        call = a, np.array(count), np.float32(largest), one
        calls.append((call, expected(a, count, largest, one)))
    exe = checked(b, *calls, stages=all_tests)
    a, module = floats(2, 3), b.module()
    at_buffers = at_stages(module, ("buffers",), 2).values()
    for count, largest, message in ((6, 1, "0 to 7, got 8"), (1, 1e9, "0 to 50, got 51")):
        for run in (exe, module.run_reference, *at_buffers):
            with pytest.raises(InputError, match=f"a size is out of range, expected {message}"):
                run(a, np.array(count), np.float32(largest), one)


def test_what_a_scan_carries_grows_with_the_iterations_of_the_call(all_tests: bool) -> None:
    b = sw.Builder()
    x, row, n = b.input("x", ("m", 3)), b.input("row", (1, 3)), b.input("n", (), "i64")

    def longer(h: Any, _: Any) -> Any:
        return b.concat([h, row], axis=0), ()

    last, _ = b.scan(longer, x, count=n, bounds={0: ("m+loop.iterations", None)})
    b.output(last)
    a, one, calls = floats(4, 3), floats(1, 3), list[Any]()
    for count in (7, 0, -2, 40):
        expected = np.concatenate([a, *[one] * max(count, 0)])
        calls.append(((a, one, np.array(count)), [expected]))
    checked(b, *calls, stages=all_tests)

    double, _ = b.scan(
        lambda h, _: (b.concat([h, h], axis=0), ()),
        x,
        count=n,
        bounds={0: ("m+loop.iterations", None)},
    )
    b.output(double)
    module = b.module()
    for run in (sw.compile(module, threads=1), module.run_reference):
        with pytest.raises(InputError, match="a size is out of range, expected 0 to 6, got 8"):
            run(a[:4], one, np.array(2))


def test_what_changes_its_size_leaves_an_inner_loop_and_a_sparse_product(
    all_tests: bool,
) -> None:
    b = sw.Builder()
    xs, n = b.input("xs", ("t", 2)), b.input("n", (), "i64")

    def outer(state: Any, x: Any) -> Any:
        # The inner loop begins with what the outer one carries, and gives it back longer.
        inner = b.loop(
            n,
            lambda i, h: b.concat([h, b.reshape(x, [1, 2])], axis=0),
            state,
            bounds={0: ("3*t", None)},
        )
        return inner, b.reduce(inner, "sum", axes=[0], keepdims=False)

    start = np.zeros((0, 2), np.float32)
    last, sums = b.scan(outer, start, xs, bounds={0: ("3*t", None)})
    b.output(last)
    b.output(sums)
    calls = list[Any]()
    for steps, count in ((4, 3), (4, 0), (0, 2), (1, 1)):
        a = floats(steps, 2)
        long = np.repeat(a, count, axis=0)
        calls.append(((a, np.array(count)), (long, np.cumsum(a * np.float32(count), axis=0))))
    exe = checked(b, *calls, stages=all_tests)
    with pytest.raises(InputError, match="expected 0 to 6, got 7"):
        exe(floats(2, 2), np.array(7))


def test_bounds_that_do_not_fit() -> None:
    b = sw.Builder()
    x = b.input("x", (4, 2))

    def double(i: Any, h: Any) -> Any:
        return b.concat([h, h], axis=0)

    def build(bounds: Any) -> Any:
        return lambda: b.loop(3, double, x, bounds=bounds)

    wrong = {
        "loop: wrong bounds, expected the number of a carried value, below 1, got 1": {1: (4, 2)},
        "loop: wrong bounds of carried value 0, expected 2 sizes": {0: (4,)},
        'graph.loop: bound is not a size, expected a size, got "n/2"': {0: ("n/2", None)},
        "graph.loop: a bound is negative, expected 0 or more, got -1": {0: (-1, None)},
    }
    for message, bounds in wrong.items():
        with pytest.raises(InputError, match=message):
            build(bounds)()
    b.output(build({0: (3, None)})())
    message = "what the loop carries is larger than its bound, expected at most 3, got 4"
    with pytest.raises(CompileError, match=message):
        b.module()
