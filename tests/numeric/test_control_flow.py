"""Conditions and loops: compiled results against NumPy, at both levels."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import stepwell as sw
from stepwell.core.boundary.specs import SparseSpec
from stepwell.core.errors import InputError
from stepwell.driver.compilation import Compilation
from stepwell.driver.request import Request

from ..harness import cases, close, floats, is_quick


def flag(value: bool) -> np.ndarray:
    return np.array(value)


def at_stages(
    module: sw.Module, stages: Collection[str], threads: int = 1
) -> dict[str, Callable[..., Any]]:
    """The interpreted program of each of some stages; it is lowered once for all of them."""
    compilation, found = Compilation.of(Request(module, threads=threads)), {}
    work, ctx = compilation.begin()
    for stage in compilation.descend(work, ctx):
        if stage in stages:
            found[stage] = functools.partial(_interpreted, work.clone(), stage)
    return found


def _interpreted(module: sw.Module, stage: str, *inputs: object) -> Any:
    return Compilation.of(Request(module)).run(stage, inputs)


def checked(
    b: sw.Builder, *calls: tuple[Sequence[Any], Sequence[np.ndarray]], stages: bool = False
) -> sw.Executable:
    """Compile a program in several ways, and compare the results of calls with those expected.

    The calls are made in turn and then again, so that what one leaves behind would be seen. Quick
    tests of stages compile with the schedule alone.
    """
    module = b.module()
    text = module.text()
    assert sw.from_mlir(text, weights=module.weights).text() == text
    for inputs, expected in calls:
        assert_same(module.run_reference(*inputs), expected)
    others = [(0, 1)] if not stages else [] if is_quick() else [(0, 1), (3, 1)]
    for level, threads in (*others, (3, 2)):
        exe = sw.compile(module, opt_level=level, threads=threads, verify_each=stages)
        for inputs, expected in (*calls, *calls):
            assert_same(exe(*inputs), expected)
    inputs, expected = calls[-1]
    some = ("fused", "llvm") if is_quick() else ("fused", "kernels", "buffers", "llvm")
    for run in at_stages(module, some, threads=2).values() if stages else ():
        assert_same(run(*inputs), expected)
    return exe


def assert_same(got: Any, expected: Sequence[np.ndarray]) -> None:
    # The order of the terms of products may differ.
    close(got, expected, 1e-4, 1e-5)


def test_a_condition_gives_computed_values_inputs_constants_and_repeats() -> None:
    b = sw.Builder()
    p, x, y = b.input("p", (), "i1"), b.input("x", (5, 3)), b.input("y", (5, 3))
    w = floats(5, 3)

    def then() -> Any:
        total = x + y
        return total, x, w, total, total

    def orelse() -> Any:
        return b.relu(x), y, y, x * y, b.constant(np.float32(2.0)) * x

    for result in b.cond(p, then, orelse):
        b.output(result)
    a, c = floats(5, 3), floats(5, 3)
    checked(
        b,
        ((flag(True), a, c), (a + c, a, w, a + c, a + c)),
        ((flag(False), a, c), (np.maximum(a, 0), c, c, a * c, 2 * a)),
        stages=True,
    )


def test_operands_of_a_condition_are_passed_and_one_result_is_one_value() -> None:
    b = sw.Builder()
    p, x = b.input("p", (), "i1"), b.input("x", (7,))
    b.output(b.cond(p, lambda v, n: v + n, lambda v, n: v * n, x, 3.0))
    a = floats(7)
    checked(b, ((flag(True), a), (a + 3,)), ((flag(False), a), (a * 3,)))


CAPTURED = """
func.func @main(%p: tensor<i1>) -> tensor<f32> {
  %0 = graph.constant dense<1.0> : tensor<f32>
  %1 = graph.constant dense<2.0> : tensor<f32>
  %2 = graph.if %p captures(%0, %1 : tensor<f32>, tensor<f32>) -> (tensor<f32>) {
  ^bb0(%3: tensor<f32>, %4: tensor<f32>):
    graph.yield %4 : tensor<f32>
  } else {
  ^bb0(%5: tensor<f32>, %6: tensor<f32>):
    graph.yield %6 : tensor<f32>
  }
  func.return %2 : tensor<f32>
}
"""


def test_a_constant_is_captured_that_nothing_reads() -> None:
    exe = sw.compile(sw.from_mlir(CAPTURED), opt_level=0, threads=1)
    assert exe.ir("buffers").count("rt.constant") == 1
    assert exe(flag(True)) == np.float32(2)


@pytest.mark.parametrize("count", cases([0, 1, 2, 3, 7], [0, 3]))
def test_carried_values_swap_places(count: int) -> None:
    b = sw.Builder()
    x, y, n = b.input("x", (3, 5)), b.input("y", (3, 5)), b.input("n", (), "i64")
    bodies: list[Callable[..., Any]] = [
        lambda i, a, c: (c, a * 0.5 + c),
        lambda i, a, c: (c, a),
        lambda i, a, c: (c, c),
        lambda i, a, c: (a * 0.5 + c, a),
    ]
    for body in bodies:
        for result in (*b.loop(count, body, x, y), *b.loop(n, body, x, y)):
            b.output(result)
    # Through a longer chain: what is computed now is read in each of three iterations.
    chain = b.loop(n, lambda i, a, c, d: (c, d, a + c * 0.5), x, y, x)
    for result in chain:
        b.output(result)
    given, expected = (floats(3, 5), floats(3, 5)), list[np.ndarray]()
    steps: list[Callable[..., Any]] = [
        lambda a, c: (c, a * np.float32(0.5) + c),
        lambda a, c: (c, a),
        lambda a, c: (c, c),
        lambda a, c: (a * np.float32(0.5) + c, a),
    ]
    for step in steps:
        state = given
        for _ in range(count):
            state = step(*state)
        expected += [*state, *state]
    a, c, d = (*given, given[0])
    for _ in range(count):
        a, c, d = c, d, a + c * np.float32(0.5)
    checked(b, ((*given, np.array(count)), (*expected, a, c, d)), stages=count == 3)


def test_a_run_time_count_may_be_negative_and_the_number_is_a_value() -> None:
    b = sw.Builder()
    n, x = b.input("n", (), "i64"), b.input("x", (4,))
    total, last = b.loop(n, lambda i, h, k: (h + b.cast(i, "f32") * x, i), x, np.int64(-1))
    b.output(total)
    b.output(last)
    a = floats(4)
    checked(
        b,
        ((np.array(-3), a), (a, np.array(-1))),
        ((np.array(1), a), (a, np.array(0))),
        ((np.array(5), a), (a * 11, np.array(4))),
    )


def test_as_many_outputs_as_a_value_says() -> None:
    b = sw.Builder()
    n, x, most = b.input("n", (), "i64"), b.input("x", (2,)), b.input("most", ())
    last, rows = b.scan(lambda h, _: (h + x, h), x, count=n)
    below = b.scan(lambda h, _: (h, h), x, count=n, condition=lambda h: b.less(n, 4))[1]
    b.output(last * most, name="last")
    b.output(rows, name="rows")
    b.output(below, name="below")
    a, one = floats(2), np.ones((), np.float32)
    results = {
        count: (a * (max(count, 0) + 1), np.outer(range(1, count + 1), a).astype(np.float32))
        for count in (3, 0, -2, 5)
    }
    calls = [
        ((np.array(n), a, one), (*own, np.tile(a, (max(n, 0) if n < 4 else 0, 1))))
        for n, own in results.items()
    ]
    checked(b, *calls, stages=True)


def test_a_condition_ends_a_loop_before_it_begins_early_or_with_its_count() -> None:
    b = sw.Builder()
    x, most = b.input("x", ()), b.input("most", ())

    def below(h: Any, k: Any) -> Any:
        return b.less(h, most)

    def double(i: Any, h: Any, k: Any) -> Any:
        return h * 2.0, i + 1

    for count in (None, 4):
        for result in b.loop(count, double, x, np.int64(0), condition=below):
            b.output(result)

    def state(h: float, k: int) -> list[np.ndarray]:
        return [np.array(h, np.float32), np.array(k)]

    one = np.array(1, np.float32)
    checked(
        b,
        ((one, np.float32(0)), [*state(1, 0), *state(1, 0)]),
        ((one, np.float32(7)), [*state(8, 3), *state(8, 3)]),
        ((one, np.float32(1000)), [*state(1024, 10), *state(16, 4)]),
        stages=True,
    )


def test_a_loop_beyond_its_limit_fails() -> None:
    b = sw.Builder()
    x = b.input("x", ())
    more = {"condition": lambda h: b.greater(h, 0.0), "limit": 10}
    b.output(b.loop(None, lambda i, h: h - 1.0, x, **more))
    module = b.module()
    exe = sw.compile(module)
    message = r"graph.loop: no end after 10 iterations \(node"
    assert exe(np.float32(10)) == 0
    for run in (exe, module.run_reference, lambda x: exe.run_at("buffers", x)):
        with pytest.raises(InputError, match=message):
            run(np.float32(11))
    assert exe(np.float32(3)) == 0


@pytest.mark.parametrize("reverse", [False, True])
def test_a_scan_carries_and_stacks(reverse: bool) -> None:
    b = sw.Builder()
    xs, h = b.input("xs", ("n", 3, 4)), b.input("h", (3, 4))

    def step(state: Any, x: Any) -> Any:
        following = b.tanh(state * 0.5 + x)
        # The state itself, what it was before, and a slice that is not changed.
        return following, (following, state, x, following * 2.0)

    last, outputs = b.scan(step, h, xs, reverse=reverse)
    for result in (last, *outputs):
        b.output(result)
    calls: list[tuple[Sequence[Any], Sequence[np.ndarray]]] = []
    for count in (0, 1, 6):
        given = floats(count, 3, 4), floats(3, 4)
        state = given[1]
        stacks = [np.empty((count, 3, 4), np.float32) for _ in range(4)]
        for place in range(count)[::-1] if reverse else range(count):
            x = given[0][place]
            following = np.tanh(state * np.float32(0.5) + x)
            for stack, row in zip(stacks, (following, state, x, following * 2), strict=True):
                stack[place] = row
            state = following
        calls.append((given, (state, *stacks)))
    checked(b, *calls, stages=reverse)


def test_a_scan_along_another_axis_over_several_tensors_without_a_state() -> None:
    b = sw.Builder()
    xs, ys = b.input("xs", (3, 6)), b.input("ys", (4, 6))
    _, product = b.scan(
        lambda state, rows: ((), b.reduce(rows[0], "sum", axes=[0], keepdims=True) * rows[1]),
        (),
        (xs, ys),
        axis=1,
    )
    b.output(product)
    a, c = floats(3, 6), floats(4, 6)
    checked(b, ((a, c), (a.sum(0) * c,)))


def test_loops_and_conditions_are_nested_and_capture() -> None:
    b = sw.Builder()
    x, xs, n = b.input("x", ("m", 3)), b.input("xs", (4, 3)), b.input("n", (), "i64")
    w = floats(3, 3)

    def inner(k: Any, h: Any) -> Any:
        return b.cond(
            b.less(k, n),
            lambda: b.relu(h @ w) + x,
            # Carried on as it is, by one branch only.
            lambda: h,
        )

    def outer(h: Any, row: Any) -> Any:
        following = b.loop(3, inner, h)
        scaled = b.cond(
            b.greater(b.reduce(row, "sum", axes=[0], keepdims=False), 0.0),
            lambda: b.loop("m", lambda k, v: v * 0.5 + row, following),
            lambda: following,
        )
        return scaled, b.reduce(scaled, "sum", axes=[0], keepdims=False)

    last, sums = b.scan(outer, x, xs)
    b.output(last)
    b.output(sums)

    def expected(a: np.ndarray, rows: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        h, found = a, list[np.ndarray]()
        for row in rows:
            for k in range(3):
                h = np.maximum(h @ w, 0) + a if k < count else h
            if row.sum() > 0:
                for _ in range(len(a)):
                    h = h * np.float32(0.5) + row
            found.append(h.sum(0))
        return h, np.stack(found)

    rows, calls = floats(4, 3), list[Any]()
    for size, count in ((5, 1), (1, 0), (2, 3)):
        a = floats(size, 3)
        calls.append(((a, rows, np.array(count)), expected(a, rows, count)))
    checked(b, *calls, stages=True)


def test_a_nested_loop_hands_its_results_on() -> None:
    b = sw.Builder()
    x = b.input("x", (2, 3))

    def outer(i: Any, h: Any, before: Any) -> Any:
        once, twice = b.loop(2, lambda k, a, c: (c, a + c), h, before)
        return twice, once

    for result in b.loop(4, outer, x, x * 2.0):
        b.output(result)
    a = floats(2, 3)
    h, before = a, 2 * a
    for _ in range(4):
        once, twice = h, before
        for _ in range(2):
            once, twice = twice, once + twice
        h, before = twice, once
    checked(b, ((a,), (h, before)))


def test_a_captured_matrix_stays_sparse_and_indices_are_checked() -> None:
    b = sw.Builder()
    spec = SparseSpec(("n", "n"), "f32", nnz="e")
    a, x, at = b.input("a", spec), b.input("x", ("n", 4)), b.input("at", (3, 2), "i64")
    b.output(b.loop(3, lambda i, h: b.spmm(a, h), x))
    _, rows = b.scan(lambda state, i: ((), b.gather(x, i, axis=0)), (), at)
    b.output(rows)
    matrix = sp.random_array((6, 6), density=0.4, format="csr", dtype=np.float32, rng=0)
    values, places = floats(6, 4), np.array([[0, 5], [2, 2], [-1, 1]])
    expected = matrix @ (matrix @ (matrix @ values))
    exe = checked(b, ((matrix, values, places), (expected, values[places])), stages=True)
    copying = sw.compile(b.module(), copy_indices=True)
    assert_same(copying(matrix, values, places), (expected, values[places]))
    places[1, 1] = 6
    message = "index out of range at position 1, expected -6 to 5, got 6; iteration 1 of node ."
    stages = at_stages(b.module(), ("fused", "buffers", "llvm"))
    for program in (exe, copying, *stages.values()):
        with pytest.raises(InputError, match=message):
            program(matrix, values, places)


def test_an_error_names_the_iterations_of_all_loops_around_it() -> None:
    b = sw.Builder()
    x, at, n = b.input("x", (4,)), b.input("at", (3, 2), "i64"), b.input("n", (), "i64")

    def picked(number: Any, sums: Any) -> Any:
        return sums + b.gather(x, b.gather(at, number, axis=0), axis=0)

    def steps(number: Any, sums: Any) -> Any:
        first = b.less(number, 1)
        return b.cond(first, lambda: sums, lambda: b.loop(n, picked, sums, name="inner"))

    b.output(b.loop(n, steps, b.constant(np.zeros(2, np.float32)), name="outer"))
    values, places, count = floats(4), np.array([[0, 1], [2, 3], [-4, 0]]), np.array(3)
    exe = checked(b, ((values, places, count), (2 * values[places].sum(axis=0),)), stages=True)
    places[2, 1] = 4
    message = "got 4; iteration 2 of node .inner.; iteration 1 of node .outer.$"
    stages = at_stages(b.module(), ("fused", "buffers", "llvm"))
    for program in (b.module().run_reference, exe, *stages.values()):
        with pytest.raises(InputError, match=message):
            program(values, places, count)


def test_a_registered_function_runs_once_an_iteration() -> None:
    seen: list[float] = []

    @sw.register_function("control_flow.note")
    def note(x: np.ndarray, y: np.ndarray) -> None:
        seen.append(float(x[0]))
        y[...] = x + 1

    b = sw.Builder()
    x, p = b.input("x", ("n",)), b.input("p", (), "i1")
    call = {"results": sw.TensorSpec(("n",), "f32")}
    h = b.loop(3, lambda i, h: b.call_packed("control_flow.note", h, **call), x)
    b.cond(p, lambda: b.call_packed("control_flow.note", h, **call), lambda: h)
    b.output(h)
    exe = sw.compile(b.module(), threads=1)
    for holds, expected in ((False, [0, 1, 2]), (True, [0, 1, 2, 3])):
        seen.clear()
        np.testing.assert_array_equal(exe(np.zeros(2, np.float32), flag(holds)), [3, 3])
        assert seen == expected


def test_large_tensors_and_packed_weights_in_a_loop_on_two_threads() -> None:
    b = sw.Builder()
    x, w = b.input("x", (64, 128)), floats(128, 128) / np.float32(12)
    bias = floats(128)
    first = b.relu(b.dense(x, w, bias=bias))
    b.output(b.loop(5, lambda i, h: b.relu(b.dense(h, w, bias=bias)), first))
    a = floats(64, 128)
    h = a
    for _ in range(6):
        h = np.maximum(h @ w.T + bias, 0)
    exe = checked(b, ((a,), (h,)))
    # The product before the loop and that in it read one packed array.
    assert exe.ir("buffers").count('"dense_w"') == 1


def test_what_is_known_is_folded_and_what_does_not_change_is_hoisted() -> None:
    b = sw.Builder()
    x, w, at = b.input("x", (3, 4)), b.input("w", (4, 4)), b.input("at", (2,), "i64")
    yes = b.constant(np.array(True))

    def product(i: Any, h: Any, same: Any) -> Any:
        scaled = b.cond(yes, lambda: w * 0.25, lambda: w - 1.0)
        return b.tanh(h @ b.transpose(scaled, permutation=[1, 0])), same

    b.output(b.loop(4, product, x, w, condition=lambda h, same: yes)[0])
    row, stack = b.scan(lambda h, r: (h + r, h * r), w, b.reshape(w, [1, 4, 4]))
    b.output(row)
    b.output(stack)
    # The gather would fail if it ran.
    b.output(
        b.loop(
            b.input("n", (), "i64"),
            lambda i, h: h + b.gather(x, at, axis=0),
            b.slice(x, [0, 0], [2, 4]),
        )
    )
    b.output(b.loop(0, lambda i, h: h + 1.0, x))
    a, m = floats(3, 4), floats(4, 4)
    h = a
    for _ in range(4):
        h = np.tanh(h @ (m * np.float32(0.25)).T)
    wrong = np.array([0, 9])
    calls = ((a, m, wrong, np.array(0)), (h, m + m, (m * m)[None], a[:2], a))
    exe = checked(b, calls)
    loops = exe.ir("optimized").split("graph.loop")[1:]
    assert len(loops) == 2
    assert "graph.mul" not in loops[0].partition("graph.yield")[0]
    assert "graph.if" not in exe.ir("optimized")


def test_checks_profiles_and_fates_of_a_program_with_a_loop() -> None:
    @sw.kernel
    def twice(k: Any, x: Any, y: Any) -> None:
        with k.loops(*y.shape) as (i, j):
            y[i, j] = x[i, j] + x[i, j]

    b = sw.Builder()
    x, p = b.input("x", (5, 8)), b.input("p", (), "i1")
    shape = sw.TensorSpec((5, 8), "f32")

    def body(i: Any, h: Any) -> Any:
        chosen = b.cond(p, lambda: b.tanh(h, name="then"), lambda: b.exp(-h, name="else"))
        return b.call_kernel(twice, chosen, results=shape, name="doubled") * 0.25

    b.output(b.loop(7, body, x, name="repeat"))
    a, module = floats(5, 8), b.module()
    h = a
    for _ in range(7):
        h = np.tanh(h) * np.float32(0.5)
    exe = sw.compile(module, check=[a, flag(True)], threads=1)
    np.testing.assert_allclose(exe(a, flag(True)), h, rtol=1e-5)
    assert sw.bisect(module, [a, flag(False)], threads=1) is None
    calls = {node.name: node.calls for node in exe.profile(a, flag(True), repeat=2).nodes}
    assert (calls["then"], calls["doubled"]) == (7, 7)
    assert calls.get("else", 0) == 0
    fate = str(exe.why("then"))
    assert "graph.tanh" in fate
    assert "then" in exe.explain() or "fused" in exe.explain()


def test_values_of_a_body_stay_in_it() -> None:
    b = sw.Builder()
    x, p, n = b.input("x", (3,)), b.input("p", (), "i1"), b.input("n", ("m",))
    kept: list[Any] = []

    def keeps(i: Any, h: Any) -> Any:
        kept.append(h + 1.0)
        return h

    b.loop(2, keeps, x)

    @sw.kernel
    def copy(k: Any, x: Any, y: Any) -> None:
        with k.loops(*y.shape) as (i,):
            y[i] = x[i]

    spec = sw.TensorSpec(("m",), "f32")
    wrong: dict[str, Callable[[], object]] = {
        "the value belongs to the body of a loop or condition": lambda: kept[0] + x,
        r"input\(\) in the body": lambda: b.loop(2, lambda i, h: b.input("z", (3,)), x),
        r"output\(\) in the body": lambda: b.loop(2, lambda i, h: b.output(h), x),
        "return different numbers, expected 2, got 1": lambda: b.cond(p, lambda: (x, x), lambda: x),
        "graph.if: a branch yields other types": lambda: b.cond(p, lambda: x, lambda: p),
        "another number of carried values, expected 1, got 2": lambda: b.loop(
            2, lambda i, h: (h, h), x
        ),
        "the loop has no end": lambda: b.loop(None, lambda i, h: h, x),
        "wrong count, expected an integer, a name or a value, got 1.5": lambda: b.loop(
            1.5,  # type: ignore[arg-type]
            lambda i, h: h,
            x,
        ),
        "wrong limit, expected 1 or more": lambda: b.loop(
            None, lambda i, h: h, x, condition=lambda h: p, limit=0
        ),
        "no end, expected count, times, slices or while": lambda: b.scan(
            lambda h, r: (h, h), x, ()
        ),
        "stacked results of an unknown size, expected count, slices or a limit": lambda: b.scan(
            lambda h, r: (h, h), x, condition=lambda h: p
        ),
        "scan: condition: not a value of a builder": lambda: b.scan(
            lambda h, r: (h, r), x, x, condition=lambda h: True
        ),
        "a scalar has no slices": lambda: b.scan(lambda h, r: (h, r), x, p),
        "the region yields other types": lambda: b.loop(2, lambda i, h: b.cast(h, "f64"), x),
        r"Expected attribute tensor<i1> but got tensor<3xf32>": lambda: b.loop(
            None, lambda i, h: h, x, condition=lambda h: h
        ),
        "numbers of iterations differ, expected 5, got 3": lambda: b.scan(
            lambda h, r: (h, r), x, x, count=5
        ),
        "the body returns no pair": lambda: b.scan(lambda h, r: h, x, x),
        "axis out of range, expected -1 <= axis < 1, got 2": lambda: b.scan(
            lambda h, r: (h, r), x, x, axis=2
        ),
        "loop: condition: not a value of a builder": lambda: b.loop(
            None,
            lambda i, h: h,
            x,
            condition=lambda h: True,
        ),
        "operands of symbolic sizes in the body": lambda: b.loop(
            2, lambda i, h: b.call_kernel(copy, h, results=spec), n
        ),
    }
    for message, build in wrong.items():
        with pytest.raises(InputError, match=message):
            build()
    # What failed leaves the builder as it was.
    b.output(x + 1.0)
    a = floats(3)
    assert_same(b.module().run_reference(a, flag(True), floats(2)), (a + 1,))


def test_a_size_that_does_not_exist_and_a_size_that_changes_are_errors() -> None:
    b = sw.Builder()
    x = b.input("x", ("n", 2))
    b.output(b.loop("m", lambda i, h: h * 2.0, x))
    with pytest.raises(sw.CompileError, match='size "m" is not that of an argument'):
        sw.compile(b.module())
    b = sw.Builder()
    x = b.input("x", ("n", 2))
    b.output(b.loop(3, lambda i, h: b.concat([h, h], axis=0), x))
    message = r"graph.loop: what the loop carries changes its size, expected n, got 2\*n \(node"
    with pytest.raises(sw.CompileError, match=message):
        b.module()
