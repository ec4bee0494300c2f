"""Sizes that an operator needs, where they are known at run time only: a clear error in each call.

The same holds for the reference, and for the stages that the interpreter runs.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from onnx.helper import make_node

import stepwell as sw
from stepwell.dialects.graph.ops import AssembleOp, SortEdgesOp
from stepwell.driver.compilation import Compilation
from stepwell.driver.request import Request

from .test_control_flow import at_stages
from .test_onnx_operators import model


def module_of_all() -> tuple[sw.Module, dict[str, str]]:
    """A program with every operator that refuses an empty axis, and what each says."""
    b = sw.Builder("main")
    x, flat = b.input("x", ("n", 4), "f32"), b.input("flat", ("m",), "i32")
    offsets = b.input("offsets", ("k",), "i64")
    b.output(b.reduce(b.relu(x), "max", [0], name="largest") + 1.0, name="a")
    b.output(b.reduce(x, "min", [0, 1], name="small"), name="b")
    b.output(b.arg_reduce(flat, "max", 0, name="place"), name="c")
    b.output(b.top_k(flat, 2, name="two")[0], name="d")
    b.output(b.segment_reduce(x, offsets, "sum", name="segments"), name="e")
    none = "dimension 0 of"
    return b.module(), {
        "x": f'graph.reduce: {none} x is too small, expected 1 or more, got 0 .*"(largest|small)"',
        "flat": f'graph.(arg_reduce|top_k): {none} x is too small, .*"(place|two)"',
        "offsets": f'segment_reduce: {none} offsets is.*"segments"|"e": a size is negative',
    }


def test_an_empty_axis_is_an_error_in_the_call() -> None:
    module, messages = module_of_all()
    exe = sw.compile(module, threads=1)
    arrays = {
        "x": np.arange(12, dtype=np.float32).reshape(3, 4),
        "flat": np.array([3, 9, 4], np.int32),
        "offsets": np.array([0, 1, 3]),
    }
    for have, want in zip(exe(**arrays), module.run_reference(*arrays.values()), strict=True):
        np.testing.assert_array_equal(have, want)
    runs = [exe, module.run_reference, *at_stages(module, STAGES).values()]
    for name, message in messages.items():
        none = {**arrays, name: arrays[name][:0], "offsets": np.array([0])}
        if name == "offsets":
            none["offsets"] = np.zeros(0, np.int64)
        for run in runs:
            with pytest.raises(sw.InputError, match=message):
                run(*none.values())


STAGES = ("optimized", "kernels", "loops", "llvm")


def test_an_empty_batch_is_none() -> None:
    b = sw.Builder("main")
    x = b.input("x", ("n", "m"), "f32")
    b.output(b.reduce(x, "max", [1]))
    b.output(b.arg_reduce(x, "min", 1))
    exe = sw.compile(b.module(), threads=1)
    assert [y.shape for y in exe(np.zeros((0, 3), np.float32))] == [(0,), (0,)]


def test_a_computed_size() -> None:
    b = sw.Builder("main")
    x = b.input("x", (5,), "f32")
    places, _ = b.nonzero(x)
    b.output(b.reduce(places, "max", [0], name="last"))
    exe = sw.compile(b.module(), threads=1)
    assert exe(np.array([0, 1, 0, 2, 0], np.float32)) == 3
    with pytest.raises(sw.InputError, match=r"graph.reduce: dimension 0 of x is too small.*last"):
        exe(np.zeros(5, np.float32))


def test_a_kernel_in_place_of_the_operator() -> None:
    @sw.kernel
    def largest(k, x, y):  # type: ignore[no-untyped-def]
        with k.loops(*y.shape) as i:
            y[i] = k.max(x.shape[1], lambda t: x[i, t])

    b = sw.Builder("main")
    x = b.input("x", (2, "n"), "f32")
    b.output(b.relu(b.reduce(x, "max", [1], name="largest")))
    exe = sw.compile(b.module(), threads=1, legalize={"graph.reduce": largest})
    assert exe(np.ones((2, 3), np.float32)).tolist() == [1.0, 1.0]
    with pytest.raises(
        sw.InputError, match=r'graph.reduce: dimension 1 of x is too small.*"largest"'
    ):
        exe(np.ones((2, 0), np.float32))


def test_neutral_elements() -> None:
    b = sw.Builder("main")
    x, i = b.input("x", ("n", 2), "f32"), b.input("i", ("n", 2), "i32")
    for value, kind in ((x, "max"), (x, "min"), (i, "max"), (i, "min")):
        b.output(b.reduce(value, kind, [0], neutral=True))
    b.output(b.reduce(b.reduce(x, "max", [0], True, True), "max", [1], True, True))
    module = b.module()
    exe, none = sw.compile(module, threads=1), [np.zeros((0, 2), t) for t in ("f4", "i4")]
    limits = np.iinfo(np.int32)
    expected = [[-np.inf] * 2, [np.inf] * 2, [limits.min] * 2, [limits.max] * 2, [[-np.inf]]]
    for run in (exe, module.run_reference):
        assert [y.tolist() for y in run(*none)] == expected


def test_the_extremum_of_nothing_in_onnx() -> None:
    for kind, neutral, truth in (("Max", -np.inf, False), ("Min", np.inf, True)):
        node = make_node(f"Reduce{kind}", ["x", "axes"], ["y"], keepdims=0)
        for dtype, value in ((np.float32, neutral), (np.bool_, truth)):
            none, axes = np.zeros((0, 3), dtype), {"axes": np.array([0])}
            symbolic, static = (
                sw.from_onnx(model([node], {"x": (none, shape)}, axes, 20))
                for shape in (("n", 3), (0, 3))
            )
            for run in (
                symbolic.run_reference,
                static.run_reference,
                sw.compile(symbolic, threads=1),
            ):
                assert run(none).tolist() == [value] * 3


def test_an_axis_that_is_too_long_for_places_of_32_bits() -> None:
    b = sw.Builder("main")
    x = b.input("x", ("n",), "ui8")
    b.output(b.top_k(x, 2, name="two")[0])
    module = b.module()
    exe = sw.compile(module, threads=1)
    # Memory that is never touched takes no room.
    long = np.zeros(1 << 31, np.uint8)
    message = "dimension 0 of x is too large, expected at most 2147483647, got 2147483648"
    for run in (exe, module.run_reference, lambda x: exe.run_at("loops", x)):
        with pytest.raises(sw.InputError, match=f'graph.top_k: {message} .*"two"'):
            run(long)


def test_all_that_count_in_32_bits_have_a_limit() -> None:
    b = sw.Builder("main")
    x, i = b.input("x", ("n",), "f32"), b.input("i", ("e",), "i64")
    j, y = b.input("j", ("e",), "i64"), b.input("y", ("k",), "f32")
    b.output(b.sort(x)[0])
    b.output(b.unique(x)[0])
    b.output(b.apply(SortEdgesOp, i, j, x, y)[2])
    # Of what is computed, the upper bound is checked.
    b.output(b.sort(b.compress(x, b.greater(x, 0.0)))[1])
    text = Compilation.of(Request(b.module(), threads=1)).text("kernels")
    found = re.findall(r"([\w.]+, dimension 0 of \w+: x\d.0 <= \d+)", text)
    assert sorted({re.sub(": x.", ": x", text) for text in found}) == [
        "graph.sort, dimension 0 of x: x.0 <= 2147483647",
        "graph.sort_edges, dimension 0 of rows: x.0 <= 2147483647",
        "graph.sort_edges, dimension 0 of sources: x.0 <= 2147483648",
        "graph.unique, dimension 0 of x: x.0 <= 2147483647",
    ]


def test_row_pointers_need_a_first_element() -> None:
    b = sw.Builder("main")
    p, j = b.input("p", ("m",), "i32"), b.input("j", ("e",), "i32")
    v, x = b.input("v", ("e",), "f32"), b.input("x", (3, 200), "f32")
    rows = b.spmm(b.apply(AssembleOp, p, j, v, x, name="matrix"), x)
    b.output(b.reduce(b.exp(b.cumulative(rows, "sum", 0)), "sum", [0]))
    module = b.module()
    exe = sw.compile(module, threads=1)
    none = [np.zeros(0, np.int32)] * 2, np.zeros(0, np.float32), np.ones((3, 200), np.float32)
    message = 'graph.assemble: dimension 0 of indptr is too small.* got 0 .*"matrix"'
    for run in (exe, module.run_reference, lambda *a: exe.run_at("buffers", *a)):
        with pytest.raises(sw.InputError, match=message):
            run(*none[0], *none[1:])
        assert not run(np.zeros(1, np.int32), *none[0][1:], *none[1:]).any()
