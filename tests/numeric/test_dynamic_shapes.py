"""Shapes, starts and ends that come at run time, and sizes without an upper bound."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto
from onnx.helper import make_graph, make_model, make_node, make_opsetid, make_tensor_value_info
from onnx.helper import np_dtype_to_tensor_dtype as tensor_dtype

import stepwell as sw
from stepwell.core.dtype_names import dtype_named
from stepwell.core.ir.module import Module
from stepwell.core.pipelines.stages import TEXT_STAGES
from stepwell.frontends.builder import Value
from stepwell.runtime.frames import Frame

from ..harness import RNG, cases, close
from .test_computed_sizes import program, same_text
from .test_operators import random

F32, I64 = np.dtype(np.float32), np.dtype(np.int64)


def number(value: int) -> np.ndarray:
    return np.array(value, np.int64)


def numbers(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def test_buffers_of_small_sizes_are_apart() -> None:
    """Of fewer bytes than a line; one is read after another one was written."""

    def own(b: sw.Builder, x: Value) -> tuple[Value, ...]:
        first = b.cumulative(x, "sum", axis=0)
        second = b.cumulative(first, "sum", axis=0)
        return (b.cumulative(first + second, "sum", axis=0),)

    module = program(own, x=(("n",),))
    exe = sw.compile(module, threads=1)
    for n in (1, 5, 17):
        x = random((n,))
        close(exe(x), module.run_reference(x))


# Sizes without an upper bound


def chained() -> Module:
    """Ranges of sizes that follow from one another, and what follows from them."""

    def own(b: sw.Builder, n: Value, x: Value) -> tuple[Value, ...]:
        first = b.range(1, n)
        total = b.reduce(first, "sum", axes=[0], keepdims=False)
        second = b.range(0, total, 2)
        found, count = b.nonzero(b.greater(second, 4))
        pairs = b.dynamic_broadcast(x, [total, n], shape=[-1, -1, 3])
        return second * 2, found, count, b.reduce(pairs, "sum", axes=[0, 2], keepdims=False)

    return program(own, n=((), "i64"), x=((3,),))


def test_sizes_without_an_upper_bound(all_tests: bool) -> None:
    module = chained()
    exe = sw.compile(module, threads=2, check=all_tests)
    for n in (0, 1, 2, 30, 5):
        inputs = number(n), random((3,))
        got = exe(*inputs)
        close(got, module.run_reference(*inputs))
        total = sum(range(1, n))
        np.testing.assert_array_equal(got[0], np.arange(0, total, 2) * 2)
        assert got[3].shape == (n,)
    for stage in exe.stages if all_tests else ("optimized", "scheduled"):
        close(exe.run_at(stage, *inputs), got)
        if stage not in TEXT_STAGES:
            text = exe.ir(stage)
            again = sw.from_mlir(text, weights=exe.weights(stage), trusted=True)
            assert same_text(again, text)
    close(sw.compile(again, threads=1)(*inputs), got)
    assert len(re.findall("arena of . slots?", exe.explain())) == 3
    assert exe.profile(*inputs, repeat=1)
    if all_tests:
        assert sw.bisect(module, list(inputs), threads=1) is None


@pytest.mark.parametrize("dtype", ["i32", "f32"])
def test_range_without_a_bound(dtype: str) -> None:
    inputs = dict.fromkeys(("start", "limit", "delta"), ((), dtype))
    module = program(lambda b, *ends: b.range(*ends), **inputs)
    exe = sw.compile(module, threads=1)
    for case in ((0, 5, 1), (3, -4, -2), (5, 5, 1), (2, 9, 3), (9, 2, 1), (0, 20_000, 1)):
        ends = [np.array(value, dtype_named(dtype)) for value in case]
        close(exe(*ends), np.arange(*case).astype(dtype_named(dtype)))
        close(exe(*ends), module.run_reference(*ends))
    ends = [np.array(value, dtype_named(dtype)) for value in (1, 4, 0)]
    text = r"a size is out of range, expected 0 to 140737488355328, got 4611686018427387904$"
    for run in (exe, module.run_reference, lambda *given: exe.run_at("llvm", *given)):
        with pytest.raises(sw.InputError, match=text):
            run(*ends)


@pytest.mark.unguarded("slots are no larger than their distance")
def test_memory_that_there_is_not() -> None:
    def square(b: sw.Builder, n: Value) -> Value:
        return b.dynamic_broadcast(b.cast(n, "f64"), [n, n, n], shape=[-1, -1, -1])

    exe = sw.compile(program(square, n=((), "i64")), threads=1)
    assert exe(number(3)).shape == (3, 3, 3)
    text = "a size is too large, expected one of a tensor of at most 72057594037927936 bytes, got"
    with pytest.raises(sw.InputError, match=text):
        exe(number(1 << 22))
    with pytest.raises(sw.StepwellError, match="not enough memory for an arena of"):
        exe(number(1 << 17))
    assert exe(number(2)).shape == (2, 2, 2)


def test_products_of_sizes_do_not_wrap_around() -> None:
    def folded(b: sw.Builder, x: Value, n: Value) -> Value:
        square = b.dynamic_reshape(x, [n, n], shape=[-1, -1])
        return b.reduce(square, "sum", axes=[0, 1], keepdims=False)

    exe = sw.compile(program(folded, x=(("m",),), n=((), "i64")), threads=1)
    assert exe(np.ones(9, np.float32), number(3)) == 9
    with pytest.raises(sw.InputError, match="a size is too large"):
        exe(np.zeros(0, np.float32), number(1 << 32))


def softest(b: sw.Builder, k: Value) -> Value:
    """The largest element of a softmax of the first sums of numbers, for which memory is needed."""
    running = b.cast(b.cumulative(b.range(0, k + 1), kind="sum", axis=0), "f32") * 0.01
    return b.reduce(b.softmax(running, axis=0), "max", axes=[0], keepdims=False)


def test_memory_for_sizes_of_a_region(all_tests: bool) -> None:
    """Conditions and loops in one another; the sizes of each iteration are other ones."""

    def inside(b: sw.Builder, n: Value, flag: Value) -> tuple[Value, ...]:
        one = b.cond(flag, lambda k: softest(b, k), lambda k: b.cast(k, "f32"), n)

        def step(i: Value, h: Value) -> tuple[Value, Value]:
            def inner(j: Value, g: Value) -> Value:
                return g * 0.5 + softest(b, i - j + 3)

            own = b.cond(
                b.equal(i - b.div(i, 3) * 3, 1), lambda: h * 0.5, lambda: b.loop(2, inner, h)
            )
            return own + softest(b, i + 1), own

        state, rows = b.scan(lambda h, i: step(i, h), b.cast(n, "f32"), b.arange(n))
        return one, state, rows, b.cast(b.range(0, n + 2), "f32") + state

    module = program(inside, n=((), "i64"), flag=((), "i1"))
    exe = sw.compile(module, threads=1, check=all_tests)
    for n in (0, 1, 9, 4):
        for flag in (True, False):
            inputs = number(n), np.array(flag)
            close(exe(*inputs), module.run_reference(*inputs))
    for stage in ("kernels", "buffers", "loops", "llvm") if all_tests else ("buffers",):
        close(exe.run_at(stage, *inputs), module.run_reference(*inputs))


@pytest.mark.parametrize("level", cases([0, 3], [3]))
def test_branches_give_what_has_no_upper_bound(level: int) -> None:
    """One of two ranges, a short tensor beside one, and what two conditions around one give."""

    def chosen(b: sw.Builder, n: Value, flag: Value, x: Value) -> tuple[Value, ...]:
        def ranges(k: Value) -> Value:
            return b.cumulative(b.range(0, k), kind="sum", axis=0)

        one = b.cond(flag, lambda: ranges(n), lambda: ranges(n + 5) * 2)
        first, same = b.cond(flag, lambda: (x, x), lambda: (b.range(0, n) * 3, x))
        less = b.less(n, 4)
        own, second = b.cond(
            flag,
            lambda: (b.cond(less, lambda: ranges(n + 1), lambda: x), ranges(n)),
            lambda: (x, ranges(b.reduce(ranges(n), "sum", [0], keepdims=False))),
        )
        total = b.reduce(b.cumulative(own, "sum", axis=0), "max", axes=[0], keepdims=False)

        def step(i: Value, h: Value) -> Value:
            found = b.cond(b.less(i, 3), lambda: ranges(i + n), lambda: x)
            sums = b.cumulative(b.concat([found, found], axis=0), "sum", axis=0)
            return h + b.reduce(sums, "sum", axes=[0], keepdims=False)

        after = b.reduce(ranges(n + 7), "sum", axes=[0], keepdims=False)
        return one, first + 1, same, own, -second, total, b.loop(6, step, total), after

    module = program(chosen, n=((), "i64"), flag=((), "i1"), x=((3,), "i64"))
    exe = sw.compile(module, threads=1, opt_level=level)
    for n in (0, 1, 9, 3):
        for flag in (True, False):
            inputs = number(n), np.array(flag), numbers(5, -7, 2)
            close(exe(*inputs), module.run_reference(*inputs))
    for stage in ("kernels", "buffers", "loops", "llvm") if level == 0 else ():
        close(exe.run_at(stage, *inputs), module.run_reference(*inputs))
    again = sw.from_mlir(exe.ir("kernels"), weights=exe.weights("kernels"), trusted=True)
    close(sw.compile(again, threads=1)(*inputs), exe(*inputs))


def test_growing_sizes_of_a_loop_rarely_begin_a_call_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def growing(b: sw.Builder, n: Value) -> Value:
        return b.loop(n, lambda i, h: h + softest(b, i * 16), b.cast(n, "f32"))

    module = program(growing, n=((), "i64"))
    exe, grown, grow = sw.compile(module, threads=1), [], Frame.grow

    def noted(frame: Frame, size: int) -> None:
        grown.append(size)
        grow(frame, size)

    monkeypatch.setattr(Frame, "grow", noted)
    close(exe(number(100)), module.run_reference(number(100)))
    assert 1 < len(grown) < 16
    grown.clear()
    close(exe(number(90)), module.run_reference(number(90)))
    assert not grown
    close(exe.run_at("buffers", number(20)), module.run_reference(number(20)))
    assert 1 < len(grown) < 16


def test_what_cannot_be_allocated_during_a_call() -> None:
    sw.register_function("test.count")(lambda x, count: None)
    spec = sw.TensorSpec((), "i64")

    def registered(b: sw.Builder, x: Value) -> Value:
        return b.arange(b.call_packed("test.count", x, results=spec))

    def before(b: sw.Builder, x: Value) -> Value:
        """The call is after the range, in the iteration before."""

        def step(i: Value, h: Value) -> Value:
            own = b.reduce(b.cumulative(b.range(0, h), "sum", axis=0), "max", axes=[0])
            return b.call_packed("test.count", own, results=spec)

        return b.loop(3, step, b.cast(b.reduce(x, "sum", axes=[0], keepdims=False), "i64"))

    def outside(b: sw.Builder, x: Value) -> Value:
        count = b.call_packed("test.count", x, results=spec)
        return b.cond(
            b.less(count, 3),
            lambda: softest(b, count),
            lambda: b.reduce(x, "max", [0], keepdims=False),
        )

    for built in (registered, before, outside):
        message = "a registered function is called before memory for a size can be allocated"
        with pytest.raises(sw.StepwellError, match=message):
            sw.compile(program(built, x=((3,),)))


def test_regions_capture_what_has_no_upper_bound() -> None:
    def summed(b: sw.Builder, n: Value, flag: Value) -> tuple[Value, ...]:
        own = b.cast(b.range(0, n), "f32")
        chosen = b.cond(flag, lambda k: b.cumulative(k, kind="sum", axis=0), lambda k: -k, own)
        return chosen, b.loop(3, lambda i, h: b.tanh(h) + 1, chosen)

    module = program(summed, n=((), "i64"), flag=((), "i1"))
    exe = sw.compile(module, threads=1, check=True)
    for n in (0, 7, 40):
        inputs = number(n), np.array(n == 7)
        close(exe(*inputs), module.run_reference(*inputs))
    close(exe.run_at("buffers", *inputs), module.run_reference(*inputs))


# Operators whose shapes are operands


def test_operators(all_tests: bool) -> None:
    def shaped(b: sw.Builder, x: Value, n: Value, at: Value) -> tuple[Value, ...]:
        rows, columns = b.dim(x, axis=0), b.dim(x, axis=-1)
        half = b.div(rows, 2)
        return (
            b.relu(b.dynamic_reshape(x, [columns, rows], shape=[-1, -1])) + 1,
            b.dynamic_reshape(b.tanh(x), [rows], shape=[-1, 2, 3]),
            b.dynamic_broadcast(
                b.reduce(x, "max", axes=[1], keepdims=True), [rows, n], shape=[-1, -1]
            ),
            b.softmax(b.dynamic_slice(x, at, 1, half, axis=0), axis=0),
            b.dynamic_slice(x, 5, -2, 3, axis=1) * 2,
            b.dynamic_slice(x, half, n, half, axis=0),
            columns + n,
        )

    module = program(shaped, x=(("m", 6),), n=((), "i64"), at=((), "i64"))
    exe = sw.compile(module, threads=2, check=all_tests)
    for m, n, at in ((0, 2, 0), (1, 1, 0), (7, 1, 4), (7, 3, 100), (40, 5, 3), (8, -2, -3)):
        x = random((m, 6), seed=m)
        if n < 0:
            with pytest.raises(sw.InputError, match=r"a size is out of range, .*, got -2"):
                exe(x, number(n), number(at))
            continue
        got = exe(x, number(n), number(at))
        close(got, module.run_reference(x, number(n), number(at)))
        close(got[0], np.maximum(x.reshape(6, m), 0) + 1)
        assert got[2].shape == (m, n)
        close(got[4], x[:, 5::-2] * 2)
    close(exe.run_at("buffers", x, number(3), number(1)), exe(x, number(3), number(1)))


def test_a_slice_by_one_is_read_as_vectors() -> None:
    def first(b: sw.Builder, x: Value, n: Value) -> Value:
        return b.dynamic_slice(x, 1, 1, n, axis=0) + 1

    exe = sw.compile(program(first, x=((1000,),), n=((), "i64")), threads=1)
    assert re.search(r"loop\.load %x.*vector<\d+xf32>", exe.ir("scheduled"))
    for n in (0, 1, 998):
        close(exe(np.arange(1000, dtype=np.float32), number(n)), np.arange(2, n + 2, dtype="f4"))


# ONNX models


def model(
    nodes: Sequence[Any],
    inputs: dict[str, tuple[np.dtype, Sequence[int | str]]],
    outputs: dict[str, tuple[np.dtype, Sequence[int | str | None] | None]],
) -> ModelProto:
    given, made = (
        [make_tensor_value_info(n, tensor_dtype(d), shape) for n, (d, shape) in infos.items()]
        for infos in (inputs, outputs)
    )
    return make_model(
        make_graph(list(nodes), "g", given, made), opset_imports=[make_opsetid("", 20)]
    )


def both_ways(source: ModelProto, level: int = 3) -> Callable[..., Any]:
    """Runs the compiled model and compares it with the reference."""
    module = sw.from_onnx(source)
    exe = sw.compile(module, threads=1, opt_level=level)

    def run(*inputs: np.ndarray) -> Any:
        try:
            expected = module.run_reference(*inputs)
        except sw.InputError as error:
            with pytest.raises(sw.InputError):
                exe(*inputs)
            raise error
        got = exe(*inputs)
        close(got, expected)
        return got

    return run


def test_slices(all_tests: bool) -> None:
    inputs = {"x": (F32, ("n", 4)), **dict.fromkeys(("s", "e", "a", "t"), (I64, (2,)))}
    run = both_ways(
        model([make_node("Slice", ["x", "s", "e", "a", "t"], ["y"])], inputs, {"y": (F32, None)})
    )
    x = random((7, 4))
    ends = [-(2**63), -9, -8, -7, -3, -1, 0, 1, 3, 6, 7, 8, 2**63 - 1]
    for _ in range(60 if all_tests else 25):
        s, e = RNG.choice(ends, (2, 2))
        t, a = RNG.choice([-3, -2, -1, 1, 2, 9], 2), RNG.permutation([0, 1]) - RNG.choice([0, 2], 2)
        parts = [slice(None)] * 2
        for axis, *part in zip(a, s, e, t, strict=True):
            parts[axis] = slice(*map(int, part))
        np.testing.assert_array_equal(run(x, s, e, a, t), x[tuple(parts)])
    assert run(x[:0], numbers(0, 1), numbers(5, 3), numbers(0, 1), numbers(1, 1)).shape == (0, 2)
    with pytest.raises(sw.InputError, match=r'node "Slice:y": a size is out of range, .*, got -1'):
        run(x, numbers(0, 0), numbers(1, 1), numbers(0, 2), numbers(1, 1))
    with pytest.raises(sw.InputError, match='node "Slice:y": a size is out of range'):
        run(x, numbers(0, 0), numbers(1, 1), numbers(0, 1), numbers(1, 0))


def test_slices_of_symbolic_axes() -> None:
    nodes = [
        make_node("Constant", [], ["one"], value_ints=[1]),
        make_node("Constant", [], ["back"], value_ints=[-2]),
        make_node("Slice", ["x", "one", "back"], ["y"]),
        make_node("Slice", ["x", "k", "back", "one"], ["z"]),
    ]
    inputs = {"x": (F32, ("n", 4)), "k": (I64, (1,))}
    run = both_ways(model(nodes, inputs, {"y": (F32, None), "z": (F32, ["n", 1])}))
    for n in (0, 2, 9):
        x = random((n, 4))
        y, z = run(x, numbers(1))
        np.testing.assert_array_equal(y, x[1:-2])
        np.testing.assert_array_equal(z, x[:, 1:-2])
    text = (
        'node "Slice:z": a size that is computed differs from the declared one, expected 1, got 2'
    )
    with pytest.raises(sw.InputError, match=text):
        run(x, numbers(0))


def test_reshapes() -> None:
    inputs = {"x": (F32, ("n", 6)), "s": (I64, (3,))}
    run = both_ways(model([make_node("Reshape", ["x", "s"], ["y"])], inputs, {"y": (F32, None)}))
    x = random((4, 6))
    for shape in ((2, 3, 4), (0, 0, 1), (0, -1, 2), (-1, 1, 1), (24, 1, 1)):
        resolved = [x.shape[i] if i < 2 and n == 0 else n for i, n in enumerate(shape)]
        np.testing.assert_array_equal(run(x, numbers(*shape)), x.reshape(resolved))
    assert run(x[:0], numbers(0, 7, 5)).shape == (0, 7, 5)
    for shape in ((2, 3, 5), (-1, -1, 1), (-2, -12, 1), (1 << 40, 1 << 40, 1 << 40)):
        with pytest.raises(sw.InputError, match='node "Reshape:y"'):
            run(x, numbers(*shape))


def test_a_declared_shape() -> None:
    nodes = [
        make_node("Reshape", ["x", "s"], ["y"], name="apart"),
        make_node("Expand", ["v", "s"], ["w"], name="wide"),
        make_node("ConstantOfShape", ["s"], ["z"], name="filled"),
        make_node("Range", ["k", "k2", "one"], ["r"], name="counted"),
    ]
    scalars = dict.fromkeys(("k", "k2", "one"), (I64, ()))
    inputs = {"x": (F32, (6, 4)), "v": (F32, (8, 1)), "s": (I64, (2,)), **scalars}
    outputs = dict.fromkeys(("y", "w", "z"), (F32, (8, 3))) | {"r": (I64, (4,))}
    run = both_ways(model(nodes, inputs, outputs))
    x, v = random((6, 4)), random((8, 1))
    y, w, z, r = run(x, v, numbers(8, 3), number(1), number(5), number(1))
    np.testing.assert_array_equal(y, x.reshape(8, 3))
    np.testing.assert_array_equal(w, np.broadcast_to(v, (8, 3)))
    assert (z.tolist(), r.tolist()) == (np.zeros((8, 3)).tolist(), [1, 2, 3, 4])
    text = "a size that is computed differs from the declared one"
    with pytest.raises(
        sw.InputError, match=f'node "(apart|wide|filled)": {text}, expected 8, got 4'
    ):
        run(x, v, numbers(4, 6), number(1), number(5), number(1))
    with pytest.raises(sw.InputError, match=f'node "counted": {text}, expected 4, got 8'):
        run(x, v, numbers(8, 3), number(1), number(9), number(1))
    exe = sw.compile(sw.from_onnx(model(nodes, inputs, outputs)), threads=1)
    with pytest.raises(sw.InputError, match=f'node "counted": {text}, expected 4, got 8'):
        exe(x, v, numbers(8, 3), number(1), number(9), number(1))


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        ((8, 3, 1), '"y" is declared with another rank, expected 2, got 3'),
        ((8, 5), '"y" is declared with another size, expected 3, got 5'),
    ],
)
def test_a_declared_shape_that_cannot_be(shape: tuple[int, ...], text: str) -> None:
    nodes = [
        make_node("Constant", [], ["c"], value_ints=[3]),
        make_node("Concat", ["k", "c"], ["s"], axis=0),
        make_node("Reshape", ["x", "s"], ["y"]),
    ]
    source = model(nodes, {"x": (F32, (24,)), "k": (I64, (1,))}, {"y": (F32, shape)})
    with pytest.raises(sw.ImportModelError, match=re.escape(text)):
        sw.from_onnx(source)


def test_expansions() -> None:
    nodes = [
        make_node("Cast", ["k"], ["wide"], to=tensor_dtype(I64)),
        make_node("Shape", ["x"], ["own"]),
        make_node("Concat", ["wide", "own"], ["s"], axis=0),
        make_node("Expand", ["v", "s"], ["y"]),
        make_node("Cast", ["own"], ["data"], to=tensor_dtype(F32)),
        make_node("Add", ["x", "data"], ["z"]),
    ]
    inputs = {"x": (F32, ("n",)), "v": (F32, ("m", 1)), "k": (np.dtype(np.int32), (1,))}
    run = both_ways(model(nodes, inputs, {"y": (F32, None), "z": (F32, None)}))
    x, v = random((5,)), random((3, 1))
    for k in (3, 1):
        y, z = run(x, v, np.array([k], np.int32))
        np.testing.assert_array_equal(y, np.broadcast_to(v, (3, 5)))
        np.testing.assert_array_equal(z, x + 5)
    with pytest.raises(sw.InputError, match=r'node "Expand:y": a size is out of range, .*, got 4'):
        run(x, v, np.array([4], np.int32))


def test_an_unknown_number_of_sizes() -> None:
    inputs = {"x": (F32, (24,)), "s": (I64, ("k",))}
    source = model([make_node("Reshape", ["x", "s"], ["y"])], inputs, {"y": (F32, None)})
    with pytest.raises(sw.ImportModelError, match="operand 1 has a symbolic number of elements"):
        sw.from_onnx(source)


def test_axes_of_reductions() -> None:
    nodes = [
        make_node("ReduceSum", ["x", "a"], ["kept"], name="kept"),
        make_node("ReduceMax", ["x", "a"], ["gone"], name="gone", keepdims=0),
        make_node("ReduceL2", ["x", "both"], ["all"], name="all", keepdims=0),
    ]
    inputs = {"x": (F32, (3, 5, 3)), "a": (I64, (1,)), "both": (I64, (3,))}
    outputs = {"kept": (F32, (3, 5, 1)), "gone": (F32, (3, 5)), "all": (F32, ())}
    run = both_ways(model(nodes, inputs, outputs))
    x, every = random((3, 5, 3)), numbers(0, -2, 2)
    for axis in (2, -1):
        kept, gone, norm = run(x, numbers(axis), every)
        close(kept, x.sum(axis=2, keepdims=True))
        close(gone, x.max(axis=2))
        close(norm, np.sqrt((x**2).sum()))
    for wrong in (1, 0, 3):
        with pytest.raises(sw.InputError, match='node "kept": axes out of range'):
            run(x, numbers(wrong), every)
    with pytest.raises(sw.InputError, match='node "all": axes out of range'):
        run(x, numbers(2), numbers(0, 1, 1))
    square = model(nodes[1:2], {"x": (F32, (4, 4)), "a": (I64, (1,))}, {"gone": (F32, (4,))})
    run, x = both_ways(square), random((4, 4))
    for axis in (0, 1, -1, -2):
        close(run(x, numbers(axis)), x.max(axis=axis))
    outputs = {"gone": (F32, (3,))}
    with pytest.raises(sw.ImportModelError, match="without a declared shape that they can give"):
        sw.from_onnx(model(nodes[1:2], {"x": (F32, (4, 5)), "a": (I64, (1,))}, outputs))
