"""Sizes that the program computes: what is selected, and everything that follows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
import pytest
from onnx import NodeProto
from onnx.helper import make_node
from xdsl.dialects.builtin import i64
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.irdl import irdl_op_definition, operand_def, result_def

import stepwell as sw
from stepwell.core.algebra.dims import Dim, Shape
from stepwell.core.building.arithmetic import INDEX
from stepwell.core.dtype_names import dtype_named
from stepwell.core.ir.module import Module
from stepwell.core.pipelines.stages import TEXT_STAGES
from stepwell.dialects.graph.attrs import FLOAT_TENSOR, I64_TENSOR
from stepwell.dialects.graph.demands import DemandInterface, SizeResult
from stepwell.dialects.graph.interfaces import (
    FusionKind,
    GraphOp,
    ShapeFacts,
    element_type,
)
from stepwell.dialects.graph.nests import scalars
from stepwell.dialects.graph.nests.nest import WritingNest
from stepwell.dialects.graph.sizes.shapes import SymbolicShapes
from stepwell.frontends.builder import Value

from ..harness import RNG, as_onnx, cases, close, same
from .test_control_flow import at_stages
from .test_onnx_operators import model
from .test_operators import random

Arrays = Sequence[np.ndarray]


def same_text(read: sw.Module, text: str) -> bool:
    """Whether a module was read from a text, but for the marks of trusted kernels."""
    mark = r" attributes \{loop\.trusted\}|, loop\.trusted|loop\.trusted, "
    return re.sub(mark, "", str(read)) == text


def sparse(shape: tuple[int, ...], share: float, dtype: str = "f4", seed: int = 0) -> np.ndarray:
    """An array in which this share of the elements is not 0."""
    rng = np.random.default_rng(seed)
    return ((1 + rng.integers(0, 100, shape)) * (rng.random(shape) < share)).astype(dtype)


def program(*results: Callable[..., Value | tuple[Value, ...]], **inputs: Any) -> Module:
    """A program with a result, or several, from each function of its inputs."""
    b = sw.Builder("main")
    values = [b.input(name, *spec) for name, spec in inputs.items()]
    for result in results:
        made = result(b, *values)
        for value in made if isinstance(made, tuple) else (made,):
            b.output(value)
    return b.module()


@pytest.mark.parametrize("dtype", ["i1", "f16", "bf16", "f32", "f64", "i8", "ui8", "i32", "i64"])
def test_nonzero(dtype: str) -> None:
    module = program(lambda b, x: b.nonzero(x), x=(("n", 3, 5), dtype))
    exe = sw.compile(module, threads=1)
    for n, share in [(0, 0.5), (1, 0.0), (1, 1.0), (7, 0.0), (7, 0.4), (7, 1.0), (70, 0.01)]:
        x = sparse((n, 3, 5), share, "f4").astype(dtype_named(dtype))
        *indices, count = exe(x)
        close((*indices, count), (*np.nonzero(x), np.array(np.count_nonzero(x))))
        close((*indices, count), module.run_reference(x))


def test_nonzero_of_special_values() -> None:
    x = np.array([np.nan, 0.0, -0.0, np.inf, 1e-45], np.float32)
    exe = sw.compile(program(lambda b, x: b.nonzero(x), x=((5,),)), threads=1)
    assert exe(x)[0].tolist() == [0, 3, 4]


UNIQUE = [(dtype, "n") for dtype in ("i1", "f16", "bf16", "f32", "i8", "ui32", "i64", "f64")]
UNIQUE += [("f32", 37), ("i64", 37)]
USUAL = [("i1", "n"), ("bf16", "n"), ("f32", 37), ("ui32", "n"), ("i64", "n")]


@pytest.mark.parametrize("case", cases(UNIQUE, USUAL), ids=str)
def test_unique(case: tuple[str, int | str]) -> None:
    dtype, size = case
    orders = [lambda b, x, order=order: b.unique(x, sorted=order) for order in (True, False)]
    module = program(*orders, x=((size,), dtype))
    exe = sw.compile(module, threads=1)
    for n in (0, 1, 2, 37, 600) if size == "n" else (37,):
        x = RNG.integers(0, 1 + n // 3, n).astype(dtype_named(dtype))
        got = exe(x)
        same(got, module.run_reference(x))
        expected = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
        same(got[:5], (*expected, np.array(len(expected[0]))))
        same(got[6], np.sort(got[6]))
        same(got[5][got[7]], x)


def test_unique_of_special_values() -> None:
    x = np.array([np.nan, 0.0, 1.0, -0.0, np.nan, -np.inf, 0.0], np.float32)
    exe = sw.compile(program(lambda b, x: b.unique(x, sorted=False), x=(("n",),)), threads=1)
    values, first, inverse, counts, count = exe(x)
    np.testing.assert_array_equal(values, np.array([np.nan, 0, 1, -np.inf], np.float32))
    assert first.tolist() == [0, 1, 2, 5]
    assert inverse.tolist() == [0, 1, 2, 1, 0, 3, 1]
    assert (counts.tolist(), count) == ([2, 3, 1, 1], 4)


def test_what_follows_unique(all_tests: bool) -> None:
    """The mean of the elements of each group."""

    def means(b: sw.Builder, x: Value, group: Value) -> tuple[Value, ...]:
        labels, _, inverse, counts, _ = b.unique(group)
        nothing = b.cast(labels * 0, "f32")
        sums = b.scatter_nd(nothing, x, [inverse], kind="add")
        return labels, b.softmax(sums / b.cast(counts, "f32"), axis=0)

    module = program(means, x=(("n",),), group=(("n",), "i64"))
    exe = sw.compile(module, threads=2, check=all_tests)
    buffers = at_stages(module, ("buffers",), threads=2)["buffers"]
    for n in (1, 50):
        inputs = random((n,)), random((n,), "i64")
        close(exe(*inputs), module.run_reference(*inputs))
        close(buffers(*inputs), module.run_reference(*inputs))


@pytest.mark.parametrize("dtype", ["i32", "f32"])
def test_range(dtype: str) -> None:
    def numbers(b: sw.Builder, *given: Value) -> tuple[Value, ...]:
        own = b.range(*given, bound=20)
        places = b.gather(own * 2, np.zeros(0, np.int64))
        return own, b.reduce(own, "sum", axes=[0], keepdims=False), places

    module = program(numbers, start=((), dtype), limit=((), dtype), delta=((), dtype))
    exe = sw.compile(module, threads=1)
    for case in ((0, 5, 1), (3, -4, -2), (5, 5, 1), (2, 9, 3), (2, 9, -3), (9, 2, 1), (0, 20, 1)):
        inputs = [np.array(number, dtype_named(dtype)) for number in case]
        close(exe(*inputs), module.run_reference(*inputs))
        close(exe(*inputs)[0], np.arange(*case).astype(dtype_named(dtype)))
    stages = at_stages(module, ("kernels", "llvm"))
    close(stages["kernels"](*inputs), module.run_reference(*inputs))
    for case in ((0, 21, 1), (1, 4, 0)):
        inputs = [np.array(number, dtype_named(dtype)) for number in case]
        text = r"a size is out of range, expected 0 to 20, got (21|4611686018427387904)$"
        for run in (exe, module.run_reference, stages["llvm"]):
            with pytest.raises(sw.InputError, match=text):
                run(*inputs)


def test_as_many_numbers_as_are_found() -> None:
    def numbered(b: sw.Builder, x: Value) -> tuple[Value, ...]:
        places, count = b.nonzero(x)
        numbers = b.arange(count, at_most=0)  # the size is known better
        last = b.range(count - 1, count, bound=1)
        chosen = b.gather(numbers * 3, last)
        return places + numbers, b.concat([places, numbers * 2], axis=0), chosen

    module = program(numbered, x=(("n",),))
    exe = sw.compile(module, threads=1)
    for n in (1, 9):
        x = np.arange(1, n + 1, dtype=np.float32)
        close(exe(x), module.run_reference(x))
    close(exe.run_at("buffers", x), module.run_reference(x))
    assert "must agree" not in exe.ir("buffers")


def test_wrong_operands_of_a_range() -> None:
    b = sw.Builder("main")
    with pytest.raises(sw.InputError, match=r"range: wrong operands, .*, got numbers alone"):
        b.range(0, 5, bound=9)
    with pytest.raises(sw.InputError, match=r"range: wrong operands, .*, got \(4,\)"):
        b.range(0, b.input("x", (4,), "i64"), bound=9)


def selections() -> Module:
    """Selected rows and elements, and operators of all kinds that follow."""
    weights, more = random((6, 3)), np.arange(4, dtype=np.float32)

    def rows(b: sw.Builder, x: Value, m: Value, c: Value) -> tuple[Value, ...]:
        taken = b.compress(x, c, axis=0)
        return (
            b.softmax(taken @ weights, axis=-1),
            b.reduce(taken, "sum", axes=[0], keepdims=False),
            b.reduce(taken, "max", axes=[1], keepdims=False),
            b.reshape(taken, shape=[-1, 2, 3]),
            b.transpose(taken, permutation=[1, 0]) * 2,
            b.matmul(b.transpose(taken, permutation=[1, 0]), taken),
        )

    def elements(b: sw.Builder, x: Value, m: Value, c: Value) -> tuple[Value, ...]:
        taken = b.masked_select(x, m)
        i, j, count = b.nonzero(m)
        return (
            b.concat([taken, more, taken], axis=0),
            b.softmax(taken, axis=0),
            b.relu(taken) + b.gather_nd(x, [i, j]),
            b.concat([i, j * 2], axis=0),
            b.reduce(taken, "mean", axes=[0], keepdims=False),
            b.cumulative(taken, kind="sum", axis=0),
            count * 2,
        )

    def chosen(b: sw.Builder, x: Value, m: Value, c: Value) -> Value:
        again = b.compress(b.masked_select(x, m), b.relu(b.masked_select(x, m)))
        return b.scatter_nd(b.reshape(x, shape=[-1]), again, [b.nonzero(b.relu(again))[0]])

    return program(rows, elements, chosen, x=(("n", 6),), m=(("n", 6), "i1"), c=(("n",), "i1"))


def masks() -> Iterator[Arrays]:
    for n in (1, 5, 40):
        for share in (0.0, 0.3, 1.0):
            mask = sparse((n, 6), share, "?", seed=n)
            mask[0, 0] = True  # NumPy warns about the mean of nothing
            yield random((n, 6), seed=n), mask, sparse((n,), share, "?", seed=n + 1)


def test_what_follows(all_tests: bool) -> None:
    module = selections()
    exe = sw.compile(module, threads=2, check=all_tests)
    for inputs in masks():
        close(exe(*inputs), module.run_reference(*inputs))
    x, mask, rows = inputs
    got = exe(x, mask, rows)
    np.testing.assert_array_equal(got[3], x[rows].reshape(-1, 2, 3))
    np.testing.assert_array_equal(got[6][: mask.sum()], x[mask])


def test_every_stage_runs_and_is_read_back(all_tests: bool) -> None:
    def some(b: sw.Builder, x: Value, m: Value) -> tuple[Value, ...]:
        i, j, count = b.nonzero(m)
        return b.softmax(b.gather(x, i), axis=0) + 1, b.concat([i, j], axis=0), count

    module = program(some, x=(("n",),), m=(("n", 1), "i1"))
    exe = sw.compile(module, threads=1)
    inputs = random((7,)), sparse((7, 1), 0.5, "?")
    expected = module.run_reference(*inputs)
    for stage in exe.stages if all_tests else ("fused", "scheduled", "llvm"):
        close(exe.run_at(stage, *inputs), expected)
        if stage not in TEXT_STAGES and (all_tests or stage == "scheduled"):
            text = exe.ir(stage)
            again = sw.from_mlir(text, exe.weights(stage), trusted=True)
            assert same_text(again, text)
            close(sw.compile(again, threads=1)(*inputs), expected)


def test_results_have_no_more_memory_than_elements() -> None:
    exe = sw.compile(program(lambda b, x: b.nonzero(x)[0], x=((100_000,),)), threads=1)
    x = np.zeros(100_000, np.float32)
    x[[7, 99_999]] = 1
    got = exe(x)
    assert got.tolist() == [7, 99_999]
    assert (got.base, got.nbytes) == (None, 16)


def test_a_result_of_a_computed_size_is_always_a_new_array() -> None:
    exe = sw.compile(program(lambda b, x: b.nonzero(x), x=((5,),)), threads=1)
    x, count = np.ones(5, np.float32), np.zeros((), np.int64)
    assert exe(x, out=(None, count))[1] is count
    assert count == 5
    wrong = 'output "result0": its size is known only after the call, expected None, got an array'
    with pytest.raises(sw.InputError, match=re.escape(wrong)):
        exe(x, out=(np.zeros(5, np.int64), None))


def test_checked_results() -> None:
    def unbounded(b: sw.Builder, n: Value, fits: Value) -> tuple[Value, ...]:
        numbers = b.arange(n)
        return b.check(b.check_indices(numbers, size=9), fits, message="no"), numbers

    def bounded(b: sw.Builder, x: Value, m: Value) -> tuple[Value, ...]:
        columns = b.gather(x, b.nonzero(m)[0], axis=1)
        return b.check_indices(columns, size=9), columns

    module = program(unbounded, n=((), "i64"), fits=((), "i1"))
    exe = sw.compile(module, threads=1)
    for n in (0, 1, 9):
        first, second = exe(np.array(n), np.array(True))
        close((first, second), (np.arange(n), np.arange(n)))
        assert not np.shares_memory(first, second)
    text = r"index out of range at position 9, expected 0 to 8, got 9$"
    for run in (exe, module.run_reference):
        with pytest.raises(sw.InputError, match=text):
            run(np.array(10), np.array(True))
        with pytest.raises(sw.InputError, match=r": no$"):
            run(np.array(9), np.array(False))
    exe = sw.compile(program(bounded, x=((2, 4), "i64"), m=((4,),)), threads=1)
    x = np.arange(8).reshape(2, 4)
    for kept in ([], [1, 3], [0, 1, 2, 3]):
        inputs = x, np.isin(np.arange(4), kept).astype(np.float32)
        expected = x[:, np.array(kept, np.int64)]
        for got in (exe(*inputs), exe.run_at("buffers", *inputs)):
            close(got, (expected, expected))


def test_one_size_for_all_that_is_selected_by_one_mask() -> None:
    def both(b: sw.Builder, x: Value, m: Value) -> Value:
        return b.masked_select(x, m) + b.masked_select(x * 2, m)

    def apart(b: sw.Builder, x: Value, m: Value) -> Value:
        return b.masked_select(x, m) + b.masked_select(x, b.relu(x))

    x, mask = random((9,)), sparse((9,), 0.5, "?")
    exe = sw.compile(program(both, x=((9,),), m=((9,), "i1")), threads=1)
    assert "must agree" not in exe.ir("buffers")
    np.testing.assert_allclose(exe(x, mask), 3 * x[mask], rtol=1e-6)
    module = program(apart, x=((9,),), m=((9,), "i1"))
    exe = sw.compile(module, threads=1)
    np.testing.assert_array_equal(exe(x, x > 0), 2 * x[x > 0])
    stages = at_stages(module, ("kernels", "buffers", "llvm"))
    for run in stages.values():
        np.testing.assert_array_equal(run(x, x > 0), 2 * x[x > 0])
    text = f"sizes size.0 and size.1 must agree, expected {mask.sum()}, got {np.sum(x > 0)}"
    for run in (exe, stages["llvm"]):
        with pytest.raises(sw.InputError, match=re.escape(text)):
            run(x, mask)
    with pytest.raises(sw.InputError, match=r"sizes size.0 and size.1 differ, expected \d, got \d"):
        module.run_reference(x, mask)


def test_in_regions(all_tests: bool) -> None:
    def kept(b: sw.Builder, x: Value, m: Value, flag: Value) -> tuple[Value, ...]:
        taken = b.cond(flag, lambda k: b.relu(k) * 2, lambda k: k + 1, b.masked_select(x, m))

        def more(i: Value, total: Value) -> Value:
            chosen = b.masked_select(b.tanh(x), b.greater(b.sin(x) + b.cast(i, "f32"), 0.5))
            both = b.cumulative(b.concat([chosen, -chosen], axis=0), kind="sum", axis=0)
            return total + b.reduce(both, "sum", axes=[0], keepdims=False)

        total = b.loop(3, more, b.constant(np.float32(0)))
        return taken, b.loop(4, lambda i, h: b.tanh(h) + 1, taken), total

    module = program(kept, x=(("n",),), m=(("n",), "i1"), flag=((), "i1"))
    exe = sw.compile(module, threads=1)
    for n in (0, 1, 30):
        inputs = random((n,)), sparse((n,), 0.5, "?"), np.array(n == 30)
        close(exe(*inputs), module.run_reference(*inputs))
    for run in at_stages(module, ("kernels", "buffers") if all_tests else ("buffers",)).values():
        close(run(*inputs), module.run_reference(*inputs))


def test_a_loop_stacks_no_size_that_an_iteration_computes() -> None:
    def kept(b: sw.Builder, x: Value) -> Value:
        return b.scan(lambda _, row: ((), b.nonzero(row)[0]), (), x)[1]

    text = "graph.loop: result 0 has a size that a region computes, expected sizes that are known"
    with pytest.raises(sw.StepwellError, match=text):
        sw.compile(program(kept, x=((5, 3),)))


SOME = """
func.func @main(%x: tensor<?xf32> {graph.name = "x", graph.dims = ["n"]}) -> tensor<?xf32> {
  %y, %k = graph.call_packed "test.some"(%x) dims [["k"], []]
    sizes [#graph.size<"k" in result 1 at_most "n">]
    : (tensor<?xf32>) -> (tensor<?xf32>, tensor<i64>)
  func.return %y : tensor<?xf32>
}
"""


def test_a_registered_function_computes_a_size() -> None:
    def some(x: np.ndarray, y: np.ndarray, count: np.ndarray) -> None:
        assert y.shape == x.shape
        kept = x[x > 0]
        y[: len(kept)], count[()] = kept, int(x[0]) or len(kept)

    sw.register_function("test.some")(some)
    module = sw.from_mlir(SOME)
    exe = sw.compile(module, threads=1)
    x = np.array([0, 3, -1, 5], np.float32)
    for run in (exe, module.run_reference, lambda x: exe.run_at("llvm", x)):
        np.testing.assert_array_equal(run(x), [3, 5])
        for wrong in (5, -1):
            text = rf"a size is out of range, expected 0 to 4, got {wrong}\b"
            with pytest.raises(sw.InputError, match=text):
                run(np.array([wrong, 3, -1, 5], np.float32))


def test_a_computed_size_must_be_that_of_an_input() -> None:
    def added(b: sw.Builder, x: Value, m: Value, y: Value) -> Value:
        return b.masked_select(x, m) + y

    module = program(added, x=(("n",),), m=(("n",), "i1"), y=(("k",),))
    assert SymbolicShapes(module.main).solve({0: [4], 2: [3]}) == {"n": 4, "k": 3}
    exe = sw.compile(module, threads=1)
    x, mask = random((4,)), np.array([True, False, True, True])
    np.testing.assert_array_equal(exe(x, mask, x[:3]), x[mask] + x[:3])
    for run in (exe, module.run_reference):
        with pytest.raises(sw.InputError, match=r"sizes (size\.0 and k|k and size\.0)"):
            run(x, mask, x[:2])


@irdl_op_definition
class PositiveOp(GraphOp, DemandInterface):
    """The positive elements of a vector, and how many they are."""

    name = "tests.positive"
    FUSION: ClassVar = FusionKind.NEST

    x = operand_def(FLOAT_TENSOR)
    result = result_def(FLOAT_TENSOR)
    count = result_def(I64_TENSOR)

    assembly_format = "$x attr-dict `:` functional-type(operands, results)"

    def __init__(self, x: SSAValue, result_type: Attribute | None = None) -> None:
        super().__init__(operands=[x], result_type=result_type)

    @property
    def demands(self) -> tuple[SizeResult, ...]:
        return (SizeResult(self.count),)

    def infer_element_types(self) -> list[Attribute]:
        return [element_type(self.x), i64]

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        return [(facts.size(self.count, shapes[0][0]),), ()]

    def reference(self, *arrays: Any) -> tuple[Any, ...]:
        kept = arrays[0][arrays[0] > 0]
        return self.stored(kept, np.array(len(kept)))

    def write(self, k: Any, *_: Any) -> None:
        nest: WritingNest = k.nest
        kind = nest.compute_type(element_type(self.x))
        zero, ends = scalars.zero(nest, kind), [nest.constant(n, INDEX) for n in (0, 1)]

        def step(place: AffineExpr, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            x, (count,) = nest.at(self.x, (place,)), carried
            is_kept = scalars.less(nest, zero, x)

            def keep(_: AffineExpr, none: Sequence[SSAValue]) -> Sequence[SSAValue]:
                nest.write(0, (nest.index(count),), x)
                return none

            nest.serial(nest.index(scalars.select(nest, is_kept, ends[1], ends[0])), [], keep)
            more = scalars.add(nest, count, nest.constant(1, i64))
            return [scalars.select(nest, is_kept, more, count)]

        (count,) = nest.serial(nest.extent(self.x, 0), [nest.constant(0, i64)], step)
        nest.write(1, (), count)


def test_what_follows_elementwise_is_computed_where_an_operator_writes() -> None:
    def chosen(b: sw.Builder, x: Value) -> Value:
        kept, _ = b.apply(PositiveOp, b.tanh(x))
        return b.exp(kept * 2)

    module = program(chosen, x=(("n",),))
    exe = sw.compile(module, threads=1, check=True)
    assert "loop.kernel @fused_positive_mul_exp" in exe.ir("kernels")
    for n in (0, 1, 37):
        x = random((n,), seed=n)
        close(exe(x), np.exp(np.tanh(x[x > 0]) * 2))
        close(exe.run_at("buffers", x), module.run_reference(x))


def test_text_of_a_size() -> None:
    text = '#graph.size: wrong size, expected a text such as "2*n", got "n/2"'
    with pytest.raises(sw.StepwellError, match=re.escape(text)):
        sw.from_mlir(SOME.replace('at_most "n"', 'at_most "n/2"'))


def test_upper_bounds() -> None:
    n, k, m = map(Dim.symbol, "nkm")
    bounds = {"k": n * 2, "m": k + 1}
    assert (k * 3 + n).at_most(bounds) == n * 7
    assert (m * k - k + 4).at_most(bounds) == n * 4 * n + n * 2 + 4
    assert (n - 1).at_most(bounds) == n - 1


def test_a_mask_that_does_not_fit() -> None:
    b = sw.Builder("main")
    x, mask = b.input("x", (4, 3)), b.input("m", (4, 2), "i1")
    with pytest.raises(sw.InputError, match=r"masked_select: the mask does not fit"):
        b.masked_select(x, mask)
    with pytest.raises(sw.InputError, match="compress: the condition has the wrong rank"):
        b.compress(x, mask, axis=0)
    b.output(b.compress(x, b.input("c", ("k",), "i1"), axis=1))
    exe = sw.compile(b.module(), threads=1)
    values, unused = random((4, 3)), np.zeros((4, 2), bool)
    np.testing.assert_array_equal(exe(values, unused, np.array([True, False])), values[:, :1])
    with pytest.raises(sw.InputError, match="index"):
        exe(values, unused, np.array([False, False, False, True]))


def imported_as_onnx(
    node: NodeProto,
    arrays: dict[str, np.ndarray],
    symbolic: dict[str, Sequence[int | str]] | None = None,
) -> None:
    inputs = {name: (x, (symbolic or {}).get(name, x.shape)) for name, x in arrays.items()}
    as_onnx(model([node], inputs, {}, 17, list(node.output)), *arrays.values(), rtol=0)


@pytest.mark.parametrize("symbolic", [False, True])
def test_onnx(symbolic: bool) -> None:
    x = sparse((3, 4, 5), 0.3, "float32")
    shapes: dict[str, Sequence[int | str]] = {"x": ("a", "b", 5)} if symbolic else {}
    imported_as_onnx(make_node("NonZero", ["x"], ["y"]), {"x": x}, shapes)
    flags = np.array([0, 1, 1], bool)
    for axis in (None, 0, -2):
        node = make_node("Compress", ["x", "c"], ["y"], **({} if axis is None else {"axis": axis}))
        imported_as_onnx(node, {"x": x, "c": flags}, shapes)


@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_unique_of_onnx(dtype: str) -> None:
    x = RNG.integers(0, 2, (6, 3, 2)).astype(dtype)
    outputs = ["y", "first", "inverse", "counts"]
    # Without an axis, the evaluator of onnx fails.
    node = make_node("Unique", ["x"], outputs)
    got = sw.from_onnx(model([node], {"x": (x, x.shape)}, {}, 17, outputs)).run_reference(x)
    flat = x.reshape(-1)
    close(got, np.unique(flat, return_index=True, return_inverse=True, return_counts=True))
    for flags in ({"axis": 0, "sorted": 0}, {"axis": -2}):
        imported_as_onnx(make_node("Unique", ["x"], outputs, **flags), {"x": x})
    node, symbolic = make_node("Unique", ["x"], outputs, axis=0), {"x": ("n", 3, 2)}
    imported_as_onnx(node, {"x": x}, symbolic)
    source = model([make_node("Unique", ["x"], ["y"], axis=1)], {"x": (x, ("n", 3, 2))}, {}, 17)
    with pytest.raises(sw.StepwellError, match=r"slices of 2\*n elements along axis 1 are not"):
        sw.from_onnx(source)
