"""NumPy references of the operators against formulas that were written by others."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import scipy.special
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, SSAValue
from xdsl.utils.exceptions import VerifyException

from stepwell.core.dtypes import element_type_of
from stepwell.core.errors import CompileError, InputError, UnsupportedError
from stepwell.core.ir.weights import WeightStore
from stepwell.dialects import sparse_tensor
from stepwell.dialects.graph import ops as graph
from stepwell.dialects.graph.interfaces import GraphOp

from ..harness import close, floats


def value(array: Any) -> SSAValue:
    """A block argument of the type of an array."""
    element = element_type_of(array.dtype)
    if isinstance(array, np.ndarray):
        return Block(arg_types=[TensorType(element, array.shape)]).args[0]
    return Block(arg_types=[TensorType(element, array.shape, sparse_tensor.csr())]).args[0]


def run(make: Callable[..., GraphOp], *arrays: Any) -> Any:
    """The reference of an operator on arrays; checks that its type says what comes out."""
    op = make(*[value(array) for array in arrays])
    op.verify()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (result,) = op.reference(*arrays)
    kind = op.results[0].type
    assert isinstance(kind, TensorType)
    assert kind.get_shape() == result.shape
    assert kind.element_type == element_type_of(result.dtype)
    return result


def onnx(name: str, *arrays: np.ndarray, opset: int = 18, **attributes: Any) -> np.ndarray:
    """What ONNX's own reference gives for one node."""
    from onnx import helper
    from onnx.reference import ReferenceEvaluator

    names = [f"x{i}" for i in range(len(arrays))]
    node = helper.make_node(name, names, ["y"], **attributes)
    inputs = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in zip(names, arrays, strict=True)
    ]
    output = helper.make_tensor_value_info("y", inputs[0].type.tensor_type.elem_type, None)
    model = helper.make_model(
        helper.make_graph([node], "g", inputs, [output]),
        opset_imports=[helper.make_opsetid("", opset)],
    )
    (result,) = ReferenceEvaluator(model).run(None, dict(zip(names, arrays, strict=True)))
    assert isinstance(result, np.ndarray)
    return result


class TestLogic:
    @pytest.mark.parametrize(
        ("make", "name"),
        [
            (graph.EqualOp, "Equal"),
            (graph.LessOp, "Less"),
            (graph.LessEqualOp, "LessOrEqual"),
            (graph.GreaterOp, "Greater"),
            (graph.GreaterEqualOp, "GreaterOrEqual"),
        ],
    )
    def test_comparisons(self, make: Callable[..., GraphOp], name: str) -> None:
        a, b = np.array([[1.0], [np.nan], [-np.inf]], np.float32), floats(4)
        a, b = np.append(a, b[:1, None], axis=0), np.append(b, np.float32(np.nan))
        np.testing.assert_array_equal(run(make, a, b), onnx(name, a, b))

    @pytest.mark.parametrize(
        ("make", "name"),
        [(graph.LogicalAndOp, "And"), (graph.LogicalOrOp, "Or"), (graph.LogicalXorOp, "Xor")],
    )
    def test_truth_values(self, make: Callable[..., GraphOp], name: str) -> None:
        a, b = np.array([[True], [False]]), np.array([True, False])
        np.testing.assert_array_equal(run(make, a, b), onnx(name, a, b))
        np.testing.assert_array_equal(run(graph.LogicalNotOp, a), onnx("Not", a))
        np.testing.assert_array_equal(run(graph.EqualOp, a, b), ~(a ^ b))

    def test_where(self) -> None:
        condition, a, b = np.array([[True], [False]]), floats(3), floats(2, 3)
        np.testing.assert_array_equal(run(graph.WhereOp, condition, a, b), [a, b[1]])

    @pytest.mark.parametrize("name", ["Abs", "Sign", "Ceil", "Floor", "Round", "Sin", "Cos"])
    def test_signs_and_whole_numbers(self, name: str) -> None:
        x = np.array([-2.5, -1.5, -0.5, -0.0, 0.0, 0.5, 1.5, 2.5, 2.4, np.nan], np.float32)
        make = {
            "Abs": graph.AbsOp,
            "Sign": graph.SignOp,
            "Ceil": graph.CeilOp,
            "Floor": graph.FloorOp,
            "Round": graph.RoundOp,
            "Sin": graph.SinOp,
            "Cos": graph.CosOp,
        }[name]
        np.testing.assert_array_equal(run(make, x), onnx(name, x, opset=22))

    def test_the_smallest_integer_has_no_opposite(self) -> None:
        x = np.array([-128, -127, 0, 5], np.int8)
        np.testing.assert_array_equal(run(graph.AbsOp, x), [-128, 127, 0, 5])
        np.testing.assert_array_equal(run(graph.SignOp, x), [-1, -1, 0, 1])


def slow_conv(
    x: np.ndarray,
    w: np.ndarray,
    strides: Sequence[int],
    dilations: Sequence[int],
    groups: int,
) -> np.ndarray:
    """The sum in the definition of a convolution, term by term."""
    sizes = [
        (n - d * (k - 1) - 1) // s + 1
        for n, k, s, d in zip(x.shape[2:], w.shape[2:], strides, dilations, strict=True)
    ]
    y = np.zeros((x.shape[0], w.shape[0], *sizes), np.float64)
    for n, m, *p in np.ndindex(*y.shape):
        for c, *k in np.ndindex(*w.shape[1:]):
            channel = m // (w.shape[0] // groups) * w.shape[1] + c
            at = [i * s + j * d for i, j, s, d in zip(p, k, strides, dilations, strict=True)]
            y[(n, m, *p)] += float(x[(n, channel, *at)]) * float(w[(m, c, *k)])
    return y


class TestWindows:
    @pytest.mark.parametrize(
        ("x", "w", "strides", "dilations", "groups"),
        [
            ((2, 3, 5, 6), (4, 3, 3, 2), (1, 1), (1, 1), 1),
            ((1, 4, 6, 7), (6, 2, 2, 2), (2, 3), (2, 1), 2),
            ((2, 3, 4, 4), (6, 1, 2, 3), (1, 2), (1, 1), 3),
            ((2, 3, 9), (2, 3, 4), (2,), (2,), 1),
            ((1, 2, 4, 3, 4), (2, 2, 2, 1, 3), (1, 2, 1), (2, 1, 1), 1),
        ],
    )
    def test_conv(
        self,
        x: tuple[int, ...],
        w: tuple[int, ...],
        strides: tuple[int, ...],
        dilations: tuple[int, ...],
        groups: int,
    ) -> None:
        image, filters = floats(*x), floats(*w)
        steps = {"strides": strides, "dilations": dilations}

        def make(*operands: SSAValue) -> GraphOp:
            return graph.ConvOp(*operands, **steps, groups=groups)

        expected = slow_conv(image, filters, strides, dilations, groups).astype(np.float32)
        close(run(make, image, filters), expected)
        close(onnx("Conv", image, filters, **steps, group=groups), expected)
        bias = floats(w[0])
        shifted = expected + bias.reshape(-1, *[1] * len(strides))
        close(run(make, image, filters, bias), shifted)

    def test_integers_wrap_in_a_conv(self) -> None:
        x, w = np.full((1, 1, 3), 1 << 30, np.int32), np.full((1, 1, 2), 3, np.int32)
        np.testing.assert_array_equal(run(graph.ConvOp, x, w), [[[(6 << 30) - (2 << 32)] * 2]])

    @pytest.mark.parametrize("name", ["MaxPool", "AveragePool"])
    @pytest.mark.parametrize(
        ("shape", "window", "strides"),
        [
            ((1, 2, 7), [3], [2]),
            ((2, 3, 5, 6), [2, 3], [1, 2]),
            ((1, 1, 4, 3, 5), [2, 1, 3], [2, 1, 1]),
        ],
    )
    def test_pool(
        self, name: str, shape: tuple[int, ...], window: list[int], strides: list[int]
    ) -> None:
        x, kind = floats(*shape), {"MaxPool": "max", "AveragePool": "mean"}[name]
        result = run(lambda x: graph.PoolOp(x, kind, window, strides), x)
        close(result, onnx(name, x, kernel_shape=window, strides=strides))

    def test_pool_of_everything_reduces(self) -> None:
        x = floats(2, 3, 4, 5)
        for kind in ("sum", "mean", "max", "min", "prod"):
            pooled = run(lambda x, kind=kind: graph.PoolOp(x, kind, [4, 5]), x)
            reduced = run(lambda x, kind=kind: graph.ReduceOp(x, kind, [2, 3], True), x)
            close(pooled, reduced)

    def test_pool_with_dilations(self) -> None:
        x = np.arange(7, dtype=np.int64)
        np.testing.assert_array_equal(
            run(lambda x: graph.PoolOp(x, "sum", [2], [2], [3]), x), [0 + 3, 2 + 5]
        )
        np.testing.assert_array_equal(
            run(lambda x: graph.PoolOp(x, "mean", [2], [1], [1]), np.array([-3, 0, 4])), [-1, 2]
        )

    @pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
    def test_pad(self, mode: str) -> None:
        x, pads = floats(3, 4), np.array([1, 2, 0, 3])
        result = run(lambda x: graph.PadOp(x, [1, 2], [0, 3], 1.5, mode), x)
        value = np.array(1.5, np.float32)
        np.testing.assert_array_equal(result, onnx("Pad", x, pads, value, opset=19, mode=mode))

    def test_pad_value_is_rounded_to_half(self) -> None:
        x = np.zeros(1, np.float16)
        result = run(lambda x: graph.PadOp(x, [1], [1], 1e6), x)
        np.testing.assert_array_equal(result, [np.inf, 0, np.inf])


class TestElementwise:
    @pytest.mark.parametrize(
        ("make", "name"),
        [
            (graph.AddOp, "Add"),
            (graph.SubOp, "Sub"),
            (graph.MulOp, "Mul"),
            (graph.DivOp, "Div"),
            (graph.MaxOp, "Max"),
            (graph.MinOp, "Min"),
        ],
    )
    def test_binary(self, make: Callable[..., GraphOp], name: str) -> None:
        a, b = floats(2, 1, 3), floats(4, 1)
        np.testing.assert_array_equal(run(make, a, b), onnx(name, a, b))

    def test_integer_division_truncates(self) -> None:
        a = np.array([7, -7, 7, -7, 5, -128, -128], np.int8)
        b = np.array([2, 2, -2, -2, 0, -1, 1], np.int8)
        np.testing.assert_array_equal(run(graph.DivOp, a, b), [3, -3, -3, 3, 0, -128, -128])

    def test_integers_wrap(self) -> None:
        a, b = np.array([127, -128], np.int8), np.array([1, -1], np.int8)
        np.testing.assert_array_equal(run(graph.AddOp, a, b), [-128, 127])
        np.testing.assert_array_equal(run(graph.MulOp, a, a), [1, 0])
        np.testing.assert_array_equal(run(graph.NegOp, b), [-1, 1])

    def test_power_of_integers(self) -> None:
        a = np.array([2, 3, -1, -1, 1, 0, 0, 5, 7], np.int64)
        b = np.array([10, 0, -3, -4, -9, -1, 0, -2, 70], np.int64)
        wrapped = (7**70 + 2**63) % 2**64 - 2**63
        np.testing.assert_array_equal(run(graph.PowOp, a, b), [1024, 1, -1, 1, 1, 0, 1, 0, wrapped])

    def test_halves_are_computed_in_f32(self) -> None:
        a, b = np.array([1.0], np.float16), np.array([3.0], np.float16)
        expected = np.float16(np.float32(1) / np.float32(3))
        np.testing.assert_array_equal(run(graph.DivOp, a, b), [expected])
        big = np.array([60000.0], np.float16)
        np.testing.assert_array_equal(run(graph.AddOp, big, big), [np.inf])

    def test_functions(self) -> None:
        x = floats(3, 4, dtype="float64")
        close(run(graph.SigmoidOp, x), scipy.special.expit(x), 1e-12)
        close(run(graph.ErfOp, x), scipy.special.erf(x), 1e-12)
        close(run(graph.GeluOp, x), x * scipy.special.ndtr(x), 1e-12)
        close(run(graph.RsqrtOp, abs(x)), abs(x) ** -0.5, 1e-12)
        close(run(graph.TanhOp, x), 2 * scipy.special.expit(2 * x) - 1, 1e-12)
        close(run(graph.LogOp, run(graph.ExpOp, x)), x, 1e-12)
        close(run(graph.SqrtOp, x * x), abs(x), 1e-12)

    def test_onnx_functions(self) -> None:
        x = floats(3, 4)
        close(run(graph.LeakyReluOp, x), onnx("LeakyRelu", x, alpha=0.01))
        close(run(graph.ReluOp, x), onnx("Relu", x))
        gelu = onnx("Gelu", x, opset=20, approximate="tanh")
        close(run(lambda x: graph.GeluOp(x, "tanh"), x), gelu)

    def test_nan_stays(self) -> None:
        x = np.array([np.nan, -np.inf, np.inf, -1.0], np.float32)
        zero = np.zeros(4, np.float32)
        np.testing.assert_array_equal(run(graph.ReluOp, x), [np.nan, 0, np.inf, 0])
        np.testing.assert_array_equal(run(graph.MaxOp, zero, x), [np.nan, 0, np.inf, 0])
        clipped = run(lambda x: graph.ClipOp(x, 0, 6), x)
        np.testing.assert_array_equal(clipped, [np.nan, 0, 6, 0])

    def test_clip_of_integers_at_large_bounds(self) -> None:
        x = np.array([2**62 + 1, -(2**62), 5], np.int64)
        result = run(lambda x: graph.ClipOp(x, 2**62 - 1, 2**62), x)
        np.testing.assert_array_equal(result, [2**62, 2**62 - 1, 2**62 - 1])

    def test_cast(self) -> None:
        def to(kind: str) -> Callable[[SSAValue], GraphOp]:
            return lambda x: graph.CastOp(x, element_type_of(np.dtype(kind)))

        x = np.array([1.9, -1.9, 0.0, 300.0, np.nan, 1e20], np.float32)
        np.testing.assert_array_equal(run(to("int8"), x), [1, -1, 0, 44, 0, 0])
        lowest = np.iinfo(np.int32).min
        np.testing.assert_array_equal(run(to("int32"), x), [1, -1, 0, 300, lowest, lowest])
        np.testing.assert_array_equal(run(to("bool"), x), [True, True, False, True, True, True])
        integers = np.array([-1, 256, 2**40], np.int64)
        np.testing.assert_array_equal(run(to("int8"), integers), [-1, 0, 0])
        np.testing.assert_array_equal(run(to("float16"), integers[:2]), [-1, 256])

    def test_batch_norm(self) -> None:
        x, (s, b, m), v = floats(2, 3, 4), floats(3, 3), abs(floats(3))
        expected = onnx("BatchNormalization", x, s, b, m, v, epsilon=1e-3)
        close(run(lambda *a: graph.BatchNormOp(*a, epsilon=1e-3), x, s, b, m, v), expected)

    def test_dropout_is_the_identity(self) -> None:
        x = floats(3)
        np.testing.assert_array_equal(run(graph.DropoutOp, x), x)


class TestContractions:
    def test_dense(self) -> None:
        x, w, b = floats(2, 5), floats(3, 5), floats(3)
        close(run(graph.DenseOp, x, w, b), onnx("Gemm", x, w, b, transB=1))
        close(run(graph.DenseOp, x, w), np.einsum("mk,nk->mn", x, w))

    def test_dense_of_halves_sums_in_f32(self) -> None:
        x, w = np.ones((1, 4096), np.float16), np.ones((1, 4096), np.float16)
        np.testing.assert_array_equal(run(graph.DenseOp, x, w), [[4096]])
        large = np.full((1, 2), 60000, np.float16)
        ends = np.array([[1, -1]], np.float16)
        np.testing.assert_array_equal(run(graph.DenseOp, large, ends), [[0]])

    def test_matmul(self) -> None:
        a, b = floats(2, 1, 3, 4), floats(5, 4, 2)
        close(run(graph.MatmulOp, a, b), np.einsum("abij,bjk->abik", np.repeat(a, 5, 1), b))

    def test_matmul_of_few_bits_sums_in_i32(self) -> None:
        a, b = np.full((1, 3), 100, np.int8), np.full((3, 1), 2, np.int8)
        np.testing.assert_array_equal(run(graph.MatmulOp, a, b), [[600]])

    def test_matmul_of_integers_wraps(self) -> None:
        a, b = np.full((1, 3), 1 << 30, np.int32), np.full((3, 1), 2, np.int32)
        np.testing.assert_array_equal(run(graph.MatmulOp, a, b), [[(6 << 30) - (2 << 32)]])


class TestReductions:
    @pytest.mark.parametrize("keep", [False, True])
    @pytest.mark.parametrize("kind", ["sum", "mean", "max", "min", "prod"])
    def test_reduce(self, kind: str, keep: bool) -> None:
        x, axes = floats(2, 3, 4), np.array([0, -1])
        expected = onnx(f"Reduce{kind.capitalize()}", x, axes, keepdims=int(keep))
        close(run(lambda x: graph.ReduceOp(x, kind, [0, -1], keep), x), expected)

    def test_reduce_of_integers(self) -> None:
        x = np.array([[100, 100, -3], [-7, 0, 0]], np.int8)
        np.testing.assert_array_equal(run(_reduce("sum"), x), [200 - 3 - 256, -7])
        np.testing.assert_array_equal(run(_reduce("mean"), x), [-19, -2])
        np.testing.assert_array_equal(run(_reduce("max"), x), [100, 0])
        np.testing.assert_array_equal(run(_reduce("prod"), x), [(-30000 + 128) % 256 - 128, 0])

    def test_reduce_of_nothing(self) -> None:
        x = np.zeros((2, 0), np.float32)
        np.testing.assert_array_equal(run(_reduce("sum"), x), [0, 0])
        np.testing.assert_array_equal(run(_reduce("prod"), x), [1, 1])
        np.testing.assert_array_equal(run(_reduce("mean"), x), [np.nan, np.nan])
        with pytest.raises(VerifyException, match="max of an empty axis, expected a size of 1"):
            run(_reduce("max"), x)

    @pytest.mark.parametrize("axis", [0, 1, -1])
    def test_softmax(self, axis: int) -> None:
        x = floats(2, 3, 4, dtype="float64") * 300
        softmax = run(lambda x: graph.SoftmaxOp(x, axis), x)
        close(softmax, scipy.special.softmax(x, axis), 1e-12)
        logarithm = run(lambda x: graph.LogSoftmaxOp(x, axis), x)
        close(logarithm, scipy.special.log_softmax(x, axis), 1e-12)

    def test_softmax_of_infinities(self) -> None:
        inf, nan = np.inf, np.nan
        x = np.array([[0, -inf], [-inf, -inf], [inf, 0], [nan, 0]], np.float32)
        expected = [[1, 0], [nan, nan], [nan, nan], [nan, nan]]
        np.testing.assert_array_equal(run(graph.SoftmaxOp, x), expected)

    def test_softmax_of_nothing(self) -> None:
        assert run(graph.SoftmaxOp, np.zeros((3, 0), np.float32)).shape == (3, 0)


def _reduce(kind: str) -> Callable[[SSAValue], GraphOp]:
    return lambda x: graph.ReduceOp(x, kind, [1])


sizes = st.lists(st.integers(0, 4), min_size=0, max_size=4)


class TestShapes:
    @given(sizes, st.data())
    def test_broadcasting(self, shape: list[int], data: st.DataObject) -> None:
        """Cut leading dimensions and set others to 1: what is left broadcasts back."""

        def part() -> np.ndarray:
            cut = data.draw(st.integers(0, len(shape)))
            ones = data.draw(st.lists(st.booleans(), min_size=len(shape), max_size=len(shape)))
            own = [1 if one else n for n, one in zip(shape, ones, strict=True)][cut:]
            return np.arange(np.prod(own, dtype=int), dtype=np.int64).reshape(own)

        a, b = part(), part()
        np.testing.assert_array_equal(run(graph.AddOp, a, b), a + b)

    @given(sizes, sizes)
    def test_what_does_not_broadcast_is_refused(self, a: list[int], b: list[int]) -> None:
        left, right = np.zeros(a, np.int8), np.zeros(b, np.int8)
        try:
            expected = np.broadcast_shapes(a, b)
        except ValueError:
            with pytest.raises(VerifyException, match="do not broadcast"):
                run(graph.AddOp, left, right)
            return
        assert run(graph.AddOp, left, right).shape == expected

    @given(st.lists(st.integers(1, 6), min_size=1, max_size=3), st.data())
    def test_slices(self, shape: list[int], data: st.DataObject) -> None:
        x = np.arange(np.prod(shape)).reshape(shape)
        steps = [data.draw(st.integers(-3, 3).filter(bool)) for _ in shape]
        bounds = st.one_of(st.none(), st.integers(-8, 8))
        taken = [slice(data.draw(bounds), data.draw(bounds), step) for step in steps]
        cut = [s.indices(n) for s, n in zip(taken, shape, strict=True)]
        starts, ends, _ = zip(*cut, strict=True)
        result = run(lambda x: graph.SliceOp(x, starts, ends, steps), x)
        np.testing.assert_array_equal(result, x[tuple(taken)])

    @given(st.lists(st.integers(1, 5), min_size=0, max_size=4), st.data())
    def test_reshapes(self, shape: list[int], data: st.DataObject) -> None:
        x = np.arange(np.prod(shape, dtype=int)).reshape(shape)
        factors = data.draw(st.permutations([f for n in shape for f in _factors(n)]))
        target = [int(n) for n in factors]
        if target and data.draw(st.booleans()):
            target[data.draw(st.integers(0, len(target) - 1))] = -1
        for i in range(min(len(shape), len(target))):
            if target[i] == shape[i] and data.draw(st.booleans()):
                target[i] = 0
        kept = [shape[i] if n == 0 else n for i, n in enumerate(target)]
        result = run(lambda x: graph.ReshapeOp(x, target), x)
        np.testing.assert_array_equal(result, x.reshape(kept))

    @given(st.permutations([0, 1, 2]))
    def test_transposes(self, permutation: list[int]) -> None:
        x = np.arange(24).reshape(2, 3, 4)
        result = run(lambda x: graph.TransposeOp(x, permutation), x)
        np.testing.assert_array_equal(result, np.transpose(x, permutation))
        assert result.flags.c_contiguous

    @pytest.mark.parametrize(
        ("shape", "target"), [((3, 1), [2, -1, 4]), ((), [2]), ((1,), [0]), ((3,), [3])]
    )
    def test_broadcast_to(self, shape: tuple[int, ...], target: list[int]) -> None:
        x = floats(*shape)
        kept = [3 if n == -1 else n for n in target]
        result = run(lambda x: graph.BroadcastToOp(x, target), x)
        np.testing.assert_array_equal(result, np.broadcast_to(x, kept))

    def test_concat(self) -> None:
        parts = [floats(2, n) for n in (3, 0, 1)]
        result = run(lambda *v: graph.ConcatOp(v, -1), *parts)
        np.testing.assert_array_equal(result, np.hstack(parts))

    @pytest.mark.parametrize("axis", [0, 1, -1])
    def test_gather(self, axis: int) -> None:
        x, i = floats(3, 4), np.array([[0, -1], [2, 1]])
        result = run(lambda x, i: graph.GatherOp(x, i, axis), x, i)
        np.testing.assert_array_equal(result, onnx("Gather", x, i, axis=axis))

    @pytest.mark.parametrize("index", [3, -4])
    def test_gather_out_of_range(self, index: int) -> None:
        message = f"graph.gather: index out of range at position 1, expected -3 to 2, got {index}"
        with pytest.raises(InputError, match=f"^{message}$"):
            run(graph.GatherOp, floats(3, 4), np.array([0, index]))


def _factors(number: int) -> list[int]:
    return [2, 2] if number == 4 else [number]


def graph_matrix(nodes: int, seed: int, loops: bool) -> csr_array:
    """A directed graph with weights, self loops, an isolated node and a row of weight 0."""
    rng = np.random.default_rng(seed)
    dense = np.where(rng.random((nodes, nodes)) < 0.4, rng.random((nodes, nodes)), 0)
    if not loops:
        np.fill_diagonal(dense, 0)
    dense[nodes // 2] = 0
    return csr_array(dense.astype(np.float32))


def gcn_norm(edge_index: np.ndarray, weight: np.ndarray, nodes: int) -> np.ndarray:
    """torch-geometric's gcn_norm with add_remaining_self_loops, dense, entry by entry."""
    edges = {(int(s), int(t)): float(w) for s, t, w in zip(*edge_index, weight, strict=True)}
    for node in range(nodes):
        edges.setdefault((node, node), 1.0)
    degree = np.zeros(nodes)
    for (_, target), w in edges.items():
        degree[target] += w
    scale = np.array([d**-0.5 if d else 0.0 for d in degree])
    result = np.zeros((nodes, nodes))
    for (source, target), w in edges.items():
        result[target, source] = scale[source] * w * scale[target]
    return result


class TestSparse:
    def test_spmm(self) -> None:
        a, x = graph_matrix(6, 0, True), floats(6, 3)
        close(run(graph.SpmmOp, a, x), a.toarray() @ x)
        empty = csr_array((6, 6), dtype=np.float32)
        np.testing.assert_array_equal(run(graph.SpmmOp, empty, x), np.zeros((6, 3)))

    @pytest.mark.parametrize("loops", [False, True])
    def test_normalize_symmetric(self, loops: bool) -> None:
        a = graph_matrix(7, 1, loops)
        target, source = a.nonzero()
        expected = gcn_norm(np.array([source, target]), a.data, 7)
        result = run(graph.NormalizeOp, a)
        close(result.toarray(), expected.astype(np.float32))
        assert result.has_sorted_indices
        assert result.nnz == a.nnz + int((a.diagonal() == 0).sum())

    def test_normalize_row(self) -> None:
        a = graph_matrix(7, 2, True)
        sums = a.toarray().sum(axis=1, keepdims=True)
        expected = np.divide(a.toarray(), sums, where=sums != 0, out=np.zeros((7, 7), "f"))
        close(run(lambda a: graph.NormalizeOp(a, "row", False), a).toarray(), expected)

    def test_a_stored_zero_on_the_diagonal_is_a_self_loop(self) -> None:
        a = csr_array((np.array([0.0, 2.0], "f"), np.array([0, 1]), np.array([0, 2, 2])), (2, 2))
        np.testing.assert_array_equal(run(graph.MissingSelfLoopsOp, a), [0, 1])
        np.testing.assert_array_equal(
            run(lambda a: graph.DegreeOp(a, True), a), np.array([2, 1], "f")
        )
        np.testing.assert_array_equal(run(graph.NormalizeOp, a).diagonal(), [0, 1])

    @pytest.mark.parametrize("power", [1.0, -1.0, -0.5])
    def test_degree(self, power: float) -> None:
        a = graph_matrix(6, 3, False)
        sums = a.toarray().sum(axis=1)
        expected = np.where(sums == 0, 0, np.where(sums == 0, 1, sums) ** power)
        close(run(lambda a: graph.DegreeOp(a, power=power), a), expected)

    def test_normalize_is_spmm_of_its_parts(self) -> None:
        """The identity by which a run-time normalisation is decomposed."""
        a, x = graph_matrix(6, 4, True), floats(6, 2)
        d = run(lambda a: graph.DegreeOp(a, True, -0.5), a).reshape(-1, 1)
        missing = run(graph.MissingSelfLoopsOp, a).reshape(-1, 1)
        scaled = d * x
        expected = d * (run(graph.SpmmOp, a, scaled) + missing * scaled)
        close(run(graph.SpmmOp, run(graph.NormalizeOp, a), x), expected)


class TestConstants:
    @pytest.mark.parametrize(
        "array",
        [
            floats(2, 3),
            floats(2, 3, dtype="float16"),
            np.arange(-3, 3, dtype=np.int16),
            np.array([True, False, True]),
            np.array(2.5),
            np.zeros((0, 3), np.float32),
        ],
        ids=lambda a: f"{a.dtype}{list(a.shape)}",
    )
    def test_literal(self, array: np.ndarray) -> None:
        op = graph.ConstantOp.literal(array)
        op.verify()
        (result,) = op.reference()
        np.testing.assert_array_equal(result, array)
        assert result.dtype == array.dtype

    def test_resource(self) -> None:
        weights = WeightStore()
        array = floats(2, 3)
        name = weights.add("w", array)
        op = graph.ConstantOp.resource(name, value(array).type)
        assert op.array(weights) is array
        with pytest.raises(CompileError, match='the elements of "w" are in the weight store'):
            op.reference()
        with pytest.raises(CompileError, match='the weight store has no array "w"'):
            op.array(WeightStore())

    def test_resource_that_differs(self) -> None:
        weights = WeightStore()
        weights.add("w", floats(2, 4))
        op = graph.ConstantOp.resource("w", value(floats(2, 3)).type)
        message = (
            r'array "w" differs from the type, expected \[2, 3\] float32, got \[2, 4\] float32'
        )
        with pytest.raises(CompileError, match=message):
            op.array(weights)

    def test_dense_array_for_a_sparse_constant(self) -> None:
        weights = WeightStore()
        weights.add("a", floats(4, 4))
        op = graph.ConstantOp.resource("a", value(graph_matrix(4, 0, True)).type)
        with pytest.raises(CompileError, match='array "a" is stored as ndarray'):
            op.array(weights)

    def test_unknown_dtype(self) -> None:
        with pytest.raises(UnsupportedError, match="no element type for this dtype"):
            graph.ConstantOp.literal(np.zeros(2, np.complex64))

    def test_calls_have_no_reference(self) -> None:
        op = graph.CallPackedOp("env.f", [], [value(floats(2)).type])
        with pytest.raises(UnsupportedError, match="the meaning of a call is that of its callee"):
            op.reference()


@pytest.mark.parametrize("arrays", [(floats(2, 3), floats(4, 5))])
def test_constructors_verify(arrays: Sequence[np.ndarray]) -> None:
    with pytest.raises(VerifyException, match="inner dimensions differ, expected 5, got 3"):
        graph.DenseOp(*[value(array) for array in arrays])
