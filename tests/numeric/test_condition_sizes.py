"""Conditions whose branches give results of different sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import stepwell as sw
from stepwell.core.errors import InputError
from stepwell.dialects.graph.ops.moves.select import WHOLE_END

from ..harness import close, floats
from .test_control_flow import at_stages, checked, flag


def test_each_branch_gives_a_size_of_its_own(all_tests: bool) -> None:
    b = sw.Builder("main")
    p, x, y = b.input("p", (), "i1"), b.input("x", ("n", 4)), b.input("y", ("m", 4))
    w, v = floats(3, 4), floats(4, 5)

    def then() -> Any:
        return x * 2.0, x, w, x + 1.0

    def orelse() -> Any:
        both = b.concat([y, x], axis=0)
        return both, both, y, b.concat([x, y], axis=0)

    rows, same, known, others = b.cond(p, then, orelse)
    b.output(b.relu(rows) + others)  # their sizes are known to agree
    b.output(rows)
    b.output(b.matmul(known, v))
    b.output(b.reduce(same, "sum", axes=[0]))
    calls = list[Any]()
    for holds in (True, False):
        for n, m in ((5, 2), (0, 3), (1, 0)):
            a, c = floats(n, 4), floats(m, 4)
            both = np.concatenate([c, a])
            one, two, three = (a * 2, w, a) if holds else (both, c, both)
            four = a + 1 if holds else np.concatenate([a, c])
            expected = np.maximum(one, 0) + four, one, two @ v, three.sum(0)
            calls.append(((flag(holds), a, c), expected))
    checked(b, *calls, stages=all_tests)


def test_other_dimensions_and_several_of_them_differ() -> None:
    b = sw.Builder("main")
    p, x = b.input("p", (), "i1"), b.input("x", (3, "n"))
    turned, wide = b.cond(
        p,
        lambda: (b.transpose(x, [1, 0]), b.concat([x, x], axis=1)),
        lambda: (x, b.slice(x, starts=[0, 0], ends=[2, WHOLE_END])),
    )
    b.output(b.reduce(turned, "sum", axes=[1], keepdims=False))
    b.output(b.exp(wide))
    a, c = floats(3, 7), floats(3, 3)
    calls = [
        ((flag(True), a), (a.sum(0), np.exp(np.concatenate([a, a], 1)))),
        ((flag(False), a), (a.sum(1), np.exp(a[:2]))),
        ((flag(True), c), (c.sum(0), np.exp(np.concatenate([c, c], 1)))),
    ]
    checked(b, *calls, stages=True)


def test_a_branch_computes_its_size_and_holds_another_condition() -> None:
    b = sw.Builder("main")
    p, q, x = b.input("p", (), "i1"), b.input("q", (), "i1"), b.input("x", ("n",))

    def chosen() -> Any:
        def doubled() -> Any:
            return b.loop(2, lambda i, h: h * 2.0, x)

        return b.cond(q, lambda: b.concat([x, x], axis=0), doubled)

    def positive() -> Any:
        return b.compress(x, b.greater(x, 0.0), axis=0)

    y = b.cond(p, positive, chosen)
    b.output(b.reduce(y, "sum", axes=[0], keepdims=False))
    b.output(y)
    a = floats(9)
    found = {(True, True): a[a > 0], (False, True): np.concatenate([a, a]), (False, False): 4 * a}
    calls = [((flag(p), flag(q), a), (y.sum(), y)) for (p, q), y in found.items()]
    checked(b, *calls, stages=True)


@pytest.mark.parametrize("bound", ["n+2", "n+1"])
def test_a_loop_carries_what_a_condition_gives(bound: str) -> None:
    """Two iterations append a row each, up to a bound."""
    b = sw.Builder("main")
    x, row = b.input("x", ("n", 3)), b.input("row", (1, 3))

    def body(i: Any, h: Any) -> Any:
        return b.cond(b.less(i, 2), lambda: b.concat([h, row], axis=0), lambda: h * 2.0)

    b.output(b.loop(3, body, x, bounds={0: (bound, None)}))
    one, two = floats(4, 3), floats(1, 3)
    if bound == "n+2":
        checked(b, ((one, two), (2 * np.concatenate([one, two, two]),)), stages=True)
        return
    for run in (sw.compile(b.module()), b.module().run_reference):
        with pytest.raises(InputError, match="size is out of range, expected 0 to 5, got 6"):
            run(one, two)


def test_a_known_condition_keeps_the_declared_size_and_unused_results_are_dropped() -> None:
    b = sw.Builder("main")
    x = b.input("x", (4, 3))

    def head(size: int) -> Any:
        return b.slice(x, starts=[0, 0], ends=[size, 3])

    used, _ = b.cond(
        b.constant(np.array(True)), lambda: (x * 2.0, x), lambda: (head(2), b.exp(head(1)))
    )
    b.output(used)
    a = floats(4, 3)
    exe = checked(b, ((a,), (a * 2,)), stages=True)
    assert "graph.exp" not in exe.ir("fused")
    with pytest.raises(InputError, match=r"graph\.if: a branch yields other types"):
        b.cond(b.constant(np.array(True)), lambda: x, lambda: b.reshape(x, shape=[12]))


CUT = """
func.func @main(%p: tensor<i1>, %x: tensor<?xf32> {graph.dims = ["n"]}) -> tensor<f32> {
  %y = graph.if %p captures(%x : tensor<?xf32>) -> (tensor<f32>) {
  ^bb0(%a: tensor<?xf32>):
    %r = graph.call_dps @cut(%a) dims [["n-2"]] : (tensor<?xf32>) -> tensor<?xf32>
    %e = graph.softmax %r axis = 0 : (tensor<?xf32>) -> tensor<?xf32>
    %s = graph.reduce sum %e axes = [0] keepdims = false : (tensor<?xf32>) -> tensor<f32>
    graph.yield %s : tensor<f32>
  } else {
  ^bb0(%a: tensor<?xf32>):
    %e = graph.exp %a : (tensor<?xf32>) -> tensor<?xf32>
    %f = graph.softmax %e axis = 0 : (tensor<?xf32>) -> tensor<?xf32>
    %s = graph.reduce sum %f axes = [0] keepdims = false : (tensor<?xf32>) -> tensor<f32>
    graph.yield %s : tensor<f32>
  }
  func.return %y : tensor<f32>
}
loop.kernel @cut(%x: memref<?xf32>) -> (%y: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : memref<?xf32>
  loop.for "i" %i to %n {
    %v = loop.load %x (d0) -> (d0 + 2)(%i) : memref<?xf32>, f32
    loop.store %v, %y (d0) -> (d0)(%i) : f32, memref<?xf32>
  }
}
"""


def test_only_a_branch_that_runs_may_not_have_negative_sizes(all_tests: bool) -> None:
    module = sw.from_mlir(CUT)
    exe = sw.compile(module, threads=1)
    stages = at_stages(module, ("fused", "buffers", "llvm") if all_tests else ("buffers",))
    for run in (module.run_reference, exe, *stages.values()):
        for size in (0, 1, 3, 40) if run is exe else (1, 3):
            x = floats(size)
            close(run(flag(False), x), np.float32(size > 0))
            if size > 1:
                close(run(flag(True), x), np.float32(1))
                continue
            text = f"the size n-2 is negative, expected 0 or more, got {size - 2}"
            with pytest.raises(InputError, match=text):
                run(flag(True), x)
