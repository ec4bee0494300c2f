"""Each ONNX operator against the reference evaluator of the onnx package."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import ModelProto, NodeProto
from onnx.helper import (
    make_graph,
    make_model,
    make_node,
    make_opsetid,
    make_tensor_value_info,
    np_dtype_to_tensor_dtype,
)
from onnx.numpy_helper import from_array

from stepwell.api.compiler import compile
from stepwell.api.imported import from_onnx

from ..harness import as_onnx, results

NEWEST = onnx.defs.onnx_opset_version()


def array(*shape: int, dtype: str = "float32", low: float = -3, high: float = 3) -> np.ndarray:
    """Numbers that are the same for the same shape, some of them negative."""
    rng = np.random.default_rng(sum(shape) + len(shape))
    values = rng.uniform(low, high, shape)
    return values.astype(dtype) if dtype[0] == "f" else np.round(values * 3).astype(dtype)


def model(
    nodes: Sequence[NodeProto],
    inputs: Mapping[str, tuple[np.ndarray, Sequence[int | str]]],
    constants: Mapping[str, np.ndarray],
    opset: int,
    outputs: Sequence[str] = ("y",),
) -> ModelProto:
    infos = [
        make_tensor_value_info(name, np_dtype_to_tensor_dtype(x.dtype), shape)
        for name, (x, shape) in inputs.items()
    ]
    results = [onnx.ValueInfoProto(name=name) for name in outputs]
    weights = [from_array(value, name) for name, value in constants.items()]
    graph = make_graph(list(nodes), "g", infos, results, weights)
    return make_model(graph, opset_imports=[make_opsetid("", opset)])


def agrees_with_onnx(
    nodes: NodeProto | Sequence[NodeProto],
    xs: Mapping[str, np.ndarray],
    constants: Mapping[str, np.ndarray] | None = None,
    *,
    opset: int = NEWEST,
    outputs: Sequence[str] = ("y",),
    symbolic: Mapping[str, Sequence[int | str]] | None = None,
    rtol: float = 1e-5,
) -> None:
    """Compare with the reference; 1e-5 relative because sums are taken in another order."""
    nodes = [nodes] if isinstance(nodes, NodeProto) else nodes
    shapes = symbolic or {}
    inputs = {name: (x, shapes.get(name, x.shape)) for name, x in xs.items()}
    source = model(nodes, inputs, constants or {}, opset, outputs)
    as_onnx(source, *xs.values(), rtol=rtol, atol=1e-6)


UNARY = {
    "Neg": 7, "Exp": 7, "Tanh": 7, "Sigmoid": 7, "Relu": 7, "Erf": 9, "Reciprocal": 7, "Abs": 7,
    "Sin": 7, "Cos": 7, "Sign": 9, "Ceil": 7, "Floor": 7, "Round": 11, "ThresholdedRelu": 10,
    "Shrink": 9, "LeakyRelu": 7, "Elu": 7, "Selu": 7, "Celu": 12, "HardSigmoid": 7, "HardSwish": 14,
    "Softplus": 7, "Softsign": 7, "Mish": 18, "Gelu": 20, "Swish": 24, "Identity": 7, "Clip": 7,
    "Atan": 7, "Sinh": 9, "Cosh": 9, "Asinh": 9, "Tan": 7,
}  # fmt: skip


@pytest.mark.parametrize(("operator", "since"), UNARY.items())
def test_unary(operator: str, since: int) -> None:
    for opset in {since, 13 if since < 13 else since, NEWEST}:
        agrees_with_onnx(make_node(operator, ["x"], ["y"]), {"x": array(3, 5)}, opset=opset)
        agrees_with_onnx(
            make_node(operator, ["x"], ["y"]),
            {"x": array(0, 5)},
            opset=opset,
            symbolic={"x": ("n", 5)},
        )


@pytest.mark.parametrize("operator", ["Sqrt", "Log"])
def test_unary_of_positive(operator: str) -> None:
    agrees_with_onnx(make_node(operator, ["x"], ["y"]), {"x": array(3, 5, low=0.1)})


@pytest.mark.parametrize("operator", ["Acos", "Asin", "Atanh", "Acosh"])
def test_unary_of_a_part_of_the_numbers(operator: str) -> None:
    x = np.linspace(-0.99, 0.99, 15, dtype=np.float32)
    agrees_with_onnx(make_node(operator, ["x"], ["y"]), {"x": x + 2 if operator == "Acosh" else x})


@pytest.mark.parametrize(
    "attributes",
    [
        ("LeakyRelu", {"alpha": 0.3}),
        ("Elu", {"alpha": 2.5}),
        ("Selu", {"alpha": 2.0, "gamma": 0.5}),
        ("Celu", {"alpha": 2.0}),
        ("HardSigmoid", {"alpha": 0.6, "beta": 0.1}),
        ("Gelu", {"approximate": "tanh"}),
        ("Swish", {"alpha": 1.7}),
        ("ThresholdedRelu", {"alpha": 0.5}),
        ("Shrink", {"lambd": 1.0, "bias": 0.3}),
    ],
)
def test_unary_with_attributes(attributes: tuple[str, dict[str, object]]) -> None:
    operator, values = attributes
    agrees_with_onnx(make_node(operator, ["x"], ["y"], **values), {"x": array(4, 7)})


def test_far_values() -> None:
    """Activations made of several operators do not overflow on the way."""
    x = np.array([-1e4, -100, -1, 0, 1, 100, 1e4], np.float32)
    wide = x.astype(np.float64)
    elu = np.where(x > 0, wide, np.expm1(np.minimum(wide, 0)))
    expected = {
        "Elu": elu,
        "Selu": 1.05070102 * np.where(x > 0, wide, 1.67326324 * elu),
        "Celu": elu,
        "Softplus": np.logaddexp(0, wide),
        "Softsign": wide / (1 + np.abs(wide)),
        "Mish": wide * np.tanh(np.logaddexp(0, wide)),
    }
    for operator, want in expected.items():
        source = model([make_node(operator, ["x"], ["y"])], {"x": (x, x.shape)}, {}, NEWEST)
        np.testing.assert_allclose(from_onnx(source).run_reference(x), want, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("operator", ["Add", "Sub", "Mul", "Div", "Max", "Min", "Sum"])
def test_binary(operator: str, dtype: str) -> None:
    if operator == "Sum" and dtype[0] == "i":
        return
    a, b = array(2, 1, 3, dtype=dtype), array(4, 1, dtype=dtype)
    b = np.where(b == 0, 1, b).astype(dtype)
    agrees_with_onnx(make_node(operator, ["a", "b"], ["y"]), {"a": a, "b": b})
    agrees_with_onnx(make_node(operator, ["a", "b"], ["y"]), {"a": a}, {"b": b}, opset=8)


def test_integer_division_truncates() -> None:
    a, b = np.array([-7, 7, -7, 7]), np.array([2, 2, -2, -2])
    source = model([make_node("Div", ["a", "b"], ["y"])], {"a": (a, (4,)), "b": (b, (4,))}, {}, 14)
    np.testing.assert_array_equal(from_onnx(source).run_reference(a, b), [-3, 3, 3, -3])


@pytest.mark.parametrize("operator", ["Sum", "Mean", "Max", "Min"])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_variadic(operator: str, count: int) -> None:
    xs = {f"x{i}": array(3, i + 1)[:, :1] * (i - 1) for i in range(count)}
    agrees_with_onnx(make_node(operator, list(xs), ["y"]), xs)


@pytest.mark.parametrize("exponent", ["float32", "int64", "int32"])
def test_pow(exponent: str) -> None:
    base, power = array(3, 4, low=0.5), array(4, dtype=exponent)
    agrees_with_onnx(make_node("Pow", ["a", "b"], ["y"]), {"a": base, "b": power})


def test_pow_of_integers() -> None:
    base, power = np.array([2, 3, -2]), np.array([2.5, 2.0, 3.0], np.float32)
    agrees_with_onnx(make_node("Pow", ["a", "b"], ["y"]), {"a": base, "b": power})


def test_prelu() -> None:
    agrees_with_onnx(
        make_node("PRelu", ["x", "s"], ["y"]), {"x": array(2, 3, 4)}, {"s": array(3, 1)}
    )


@pytest.mark.parametrize("bounds", [{}, {"min": -1.0}, {"max": 0.5}, {"min": -1.0, "max": 0.5}])
def test_clip_attributes(bounds: dict[str, float]) -> None:
    agrees_with_onnx(make_node("Clip", ["x"], ["y"], **bounds), {"x": array(3, 5)}, opset=6 + 1)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(("low", "high"), [(-1, 1), (None, 0.5), (-0.5, None), (2, -2)])
def test_clip_operands(known: bool, low: float | None, high: float | None) -> None:
    bounds = {"low": low, "high": high}
    given = {k: np.array(v, np.float32) for k, v in bounds.items() if v is not None}
    node = make_node("Clip", ["x", *(k if k in given else "" for k in bounds)], ["y"])
    x = {"x": array(3, 5)}
    agrees_with_onnx(node, x if known else x | given, given if known else {})


def test_clip_of_integers() -> None:
    low = np.array(-(2**60) - 1)
    agrees_with_onnx(
        make_node("Clip", ["x", "low"], ["y"]), {"x": np.array([-(2**62), 3])}, {"low": low}
    )


@pytest.mark.parametrize("target", ["float64", "float16", "int64", "int8", "bool"])
def test_cast(target: str) -> None:
    to = np_dtype_to_tensor_dtype(np.dtype(target))
    agrees_with_onnx(make_node("Cast", ["x"], ["y"], to=to), {"x": array(3, 5)})
    agrees_with_onnx(
        make_node("CastLike", ["x", "t"], ["y"]), {"x": array(3, 5)}, {"t": np.ones(1, target)}
    )


# Contractions


@settings(max_examples=settings().max_examples * 40 // 100, deadline=None)
@given(st.data())
def test_gemm(data: st.DataObject) -> None:
    m, k, n = (data.draw(st.sampled_from([1, 2, 5])) for _ in range(3))
    trans_a, trans_b = data.draw(st.booleans()), data.draw(st.booleans())
    shape = data.draw(st.sampled_from([None, (), (1,), (n,), (1, n), (m, 1), (m, n)]))
    a = array(k, m) if trans_a else array(m, k)
    b = array(n, k) if trans_b else array(k, n)
    c = {} if shape is None else {"c": array(*shape)}
    node = make_node(
        "Gemm",
        ["a", "b", *c],
        ["y"],
        transA=int(trans_a),
        transB=int(trans_b),
        alpha=data.draw(st.sampled_from([1.0, 0.5])),
        beta=data.draw(st.sampled_from([1.0, 0.0, 2.0])),
    )
    constant = data.draw(st.booleans())
    agrees_with_onnx(
        node, {"a": a} if constant else {"a": a, "b": b} | c, {"b": b} | c if constant else {}
    )


@pytest.mark.parametrize("beta", [0.0, 2.0])
def test_gemm_scales_both_terms(beta: float) -> None:
    node = make_node("Gemm", ["a", "b", "c"], ["y"], alpha=0.5, beta=beta)
    agrees_with_onnx(node, {"a": array(2, 5), "b": array(5, 3), "c": array(2, 3)})


def test_gemm_with_symbolic_batch() -> None:
    node = make_node("Gemm", ["x", "w", "c"], ["y"], transB=1)
    for n in (0, 1, 5):
        agrees_with_onnx(
            node,
            {"x": array(n, 4)},
            {"w": array(3, 4), "c": array(3)},
            symbolic={"x": ("n", 4)},
        )


@pytest.mark.parametrize(
    ("a", "b"),
    [((3, 4), (4, 5)), ((4,), (4, 5)), ((3, 4), (4,)), ((4,), (4,)), ((2, 3, 4), (4, 5)),
     ((2, 1, 3, 4), (6, 4, 5)), ((2, 3, 4), (4,)), ((4,), (2, 4, 5)), ((1, 1), (1, 1))],
)  # fmt: skip
def test_matmul(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    node = make_node("MatMul", ["a", "b"], ["y"])
    agrees_with_onnx(node, {"a": array(*a), "b": array(*b)})
    agrees_with_onnx(node, {"a": array(*a)}, {"b": array(*b)}, opset=9)


def test_matmul_of_symbolic_vector() -> None:
    node = make_node("MatMul", ["a", "b"], ["y"])
    xs = {"a": array(5), "b": array(2, 5, 3)}
    agrees_with_onnx(node, xs, symbolic={"a": ("k",), "b": ("n", "k", "m")})


# Reductions


REDUCTIONS = ["Sum", "Mean", "Max", "Min", "Prod", "SumSquare", "L1", "L2", "LogSumExp"]


@pytest.mark.parametrize("kind", REDUCTIONS)
@pytest.mark.parametrize("axes", [None, [0], [-1], [0, 2], [0, 1, 2]])
@pytest.mark.parametrize("keepdims", [0, 1])
def test_reduce(kind: str, axes: list[int] | None, keepdims: int) -> None:
    x = {"x": array(2, 3, 4)}
    attributes = {} if axes is None else {"axes": axes}
    node = make_node(f"Reduce{kind}", ["x"], ["y"], keepdims=keepdims, **attributes)
    agrees_with_onnx(node, x, opset=11)
    constants = {} if axes is None else {"a": np.array(axes)}
    node = make_node(f"Reduce{kind}", ["x", *constants], ["y"], keepdims=keepdims)
    agrees_with_onnx(node, x, constants)
    agrees_with_onnx(node, x, constants, symbolic={"x": ("n", 3, "m")})


@pytest.mark.parametrize("kind", ["Sum", "L1", "L2", "Max", "Prod"])
def test_reduce_integers(kind: str) -> None:
    agrees_with_onnx(make_node(f"Reduce{kind}", ["x"], ["y"]), {"x": array(3, 4, dtype="int64")})


def test_reduce_nothing() -> None:
    node = make_node("ReduceSum", ["x"], ["y"], noop_with_empty_axes=1)
    agrees_with_onnx(node, {"x": array(2, 3)})


def test_reduce_infinities() -> None:
    x = np.array([[-np.inf, -np.inf], [np.inf, 1], [1e4, -np.inf], [-1e4, -1e4]], np.float32)
    source = model(
        [make_node("ReduceLogSumExp", ["x", "a"], ["y"], keepdims=0)],
        {"x": (x, x.shape)},
        {"a": np.array([1])},
        NEWEST,
    )
    expected = np.logaddexp(x[:, 0].astype(np.float64), x[:, 1])
    np.testing.assert_allclose(from_onnx(source).run_reference(x), expected, rtol=1e-6)


@pytest.mark.parametrize("operator", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("opset", [7, 11, 13, NEWEST])
@pytest.mark.parametrize("axis", [None, 0, 1, 2])
def test_softmax(operator: str, opset: int, axis: int | None) -> None:
    """Before opset 13 the dimensions from the axis on are one; checked against NumPy."""
    x = array(2, 3, 4)
    attributes = {} if axis is None else {"axis": axis}
    node = make_node(operator, ["x"], ["y"], **attributes)
    if opset < 13:
        first = 1 if axis is None else axis
        rows = x.reshape(int(np.prod(x.shape[:first])), -1)
    else:
        first = -1 if axis is None else axis
        rows = np.moveaxis(x, first, -1)
    e = np.exp(rows - rows.max(axis=-1, keepdims=True))
    expected = e / e.sum(axis=-1, keepdims=True)
    expected = expected.reshape(x.shape) if opset < 13 else np.moveaxis(expected, -1, first)
    if operator == "LogSoftmax":
        expected = np.log(expected)
    for shape in (x.shape, ("n", 3, 4)):
        got = from_onnx(model([node], {"x": (x, shape)}, {}, opset)).run_reference(x)
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


# Shapes


@pytest.mark.parametrize("perm", [None, [0, 1, 2], [2, 0, 1], [0, 2, 1]])
def test_transpose(perm: list[int] | None) -> None:
    attributes = {} if perm is None else {"perm": perm}
    agrees_with_onnx(make_node("Transpose", ["x"], ["y"], **attributes), {"x": array(2, 3, 4)})


@pytest.mark.parametrize(
    "target", [[6, 4], [-1], [0, -1], [2, 0, 2, 2], [4, -1, 1, 3], [1, 2, 3, 4], [0, 0, 0]]
)
def test_reshape(target: list[int]) -> None:
    node = make_node("Reshape", ["x", "t"], ["y"])
    agrees_with_onnx(node, {"x": array(2, 3, 4)}, {"t": np.array(target)})


def test_reshape_of_nothing() -> None:
    for shape, target, allow in (((0, 4), [0, -1], 0), ((0, 3), [3, 0], 1), ((3, 0), [0, 5], 1)):
        node = make_node("Reshape", ["x", "t"], ["y"], allowzero=allow)
        source = model([node], {"x": (array(*shape), shape)}, {"t": np.array(target)}, 14)
        expected = tuple(4 if n == -1 else n for n in target)
        assert from_onnx(source).run_reference(array(*shape)).shape == expected


def test_reshape_to_a_computed_shape() -> None:
    """What exporters write for x.reshape(x.shape[0], -1, 2) with a symbolic batch."""
    nodes = [
        make_node("Shape", ["x"], ["s"]),
        make_node("Gather", ["s", "zero"], ["n"], axis=0),
        make_node("Unsqueeze", ["n", "axes"], ["head"]),
        make_node("Concat", ["head", "rest"], ["target"], axis=0),
        make_node("Reshape", ["x", "target"], ["y"]),
    ]
    constants = {"zero": np.array(0), "axes": np.array([0]), "rest": np.array([-1, 2])}
    for batch in (1, 3):
        x = array(batch, 3, 4)
        agrees_with_onnx(nodes, {"x": x}, constants, symbolic={"x": ("batch", 3, 4)})


def test_arithmetic_on_shapes() -> None:
    """x.reshape(x.shape[0] * x.shape[1] // 2, 8), by way of a 32-bit cast and a slice."""
    nodes = [
        make_node("Shape", ["x"], ["s"], start=0, end=2),
        make_node("Cast", ["s"], ["s32"], to=onnx.TensorProto.INT32),
        make_node("ReduceProd", ["s32"], ["p32"], keepdims=1),
        make_node("Cast", ["p32"], ["p"], to=onnx.TensorProto.INT64),
        make_node("Div", ["p", "two"], ["rows"]),
        make_node("Slice", ["rest", "one", "end", "first"], ["columns"]),
        make_node("Concat", ["rows", "columns"], ["target"], axis=0),
        make_node("Reshape", ["x", "target"], ["y"]),
    ]
    constants = {
        "two": np.array([2]), "rest": np.array([7, 8]), "one": np.array([1]),
        "end": np.array([2**40]), "first": np.array([0]),
    }  # fmt: skip
    agrees_with_onnx(nodes, {"x": array(3, 2, 4)}, constants)
    agrees_with_onnx(nodes, {"x": array(3, 2, 4)}, constants, symbolic={"x": ("n", 2, 4)})


@pytest.mark.parametrize("axis", [-2, 0, 1, 2, 3])
def test_flatten(axis: int) -> None:
    node = make_node("Flatten", ["x"], ["y"], axis=axis)
    agrees_with_onnx(node, {"x": array(2, 3, 4)})
    agrees_with_onnx(node, {"x": array(2, 3, 4)}, symbolic={"x": ("n", 3, 4)})


def test_squeeze_and_unsqueeze() -> None:
    x = {"x": array(2, 1, 3, 1)}
    agrees_with_onnx(make_node("Squeeze", ["x"], ["y"]), x)
    agrees_with_onnx(make_node("Squeeze", ["x", "a"], ["y"]), x, {"a": np.array([-1])})
    agrees_with_onnx(make_node("Squeeze", ["x"], ["y"], axes=[1, 3]), x, opset=11)
    agrees_with_onnx(make_node("Unsqueeze", ["x", "a"], ["y"]), x, {"a": np.array([0, -1, 3])})
    agrees_with_onnx(make_node("Unsqueeze", ["x"], ["y"], axes=[2]), x, opset=11)


def test_ones_between_symbols() -> None:
    """Several symbolic dimensions keep their order while ones come and go."""
    x, symbolic = {"x": array(2, 3, 5)}, {"x": ("a", "b", "c")}
    for axes in ([0], [1], [0, 1, 3], [3]):
        node = make_node("Unsqueeze", ["x", "axes"], ["y"])
        agrees_with_onnx(node, x, {"axes": np.array(axes)}, symbolic=symbolic)
    x, symbolic = {"x": array(1, 2, 1, 3)}, {"x": (1, "a", 1, "b")}
    for axes in ([0], [2], [0, 2]):
        node = make_node("Squeeze", ["x", "axes"], ["y"])
        agrees_with_onnx(node, x, {"axes": np.array(axes)}, symbolic=symbolic)


@pytest.mark.parametrize("target", [[4], [2, 1, 4], [1], [3, 4], [5, 2, 3, 4]])
def test_expand(target: list[int]) -> None:
    node = make_node("Expand", ["x", "t"], ["y"])
    agrees_with_onnx(node, {"x": array(3, 1)}, {"t": np.array(target)})


def test_tile() -> None:
    node = make_node("Tile", ["x", "r"], ["y"])
    agrees_with_onnx(node, {"x": array(2, 3)}, {"r": np.array([2, 3])})
    agrees_with_onnx(node, {"x": array(2, 3)}, {"r": np.array([1, 1])})


def test_concat() -> None:
    xs = {"a": array(2, 3), "b": array(2, 1), "c": array(2, 4)}
    agrees_with_onnx(make_node("Concat", list(xs), ["y"], axis=-1), xs)
    agrees_with_onnx(make_node("Concat", ["a"], ["y"], axis=0), {"a": array(2, 3)})
    symbolic = {"a": ("n", 3), "b": ("n", 1), "c": ("n", 4)}
    agrees_with_onnx(make_node("Concat", list(xs), ["y"], axis=1), xs, symbolic=symbolic)
    xs = {"a": array(2, 3), "b": array(4, 3)}
    agrees_with_onnx(
        make_node("Concat", list(xs), ["y"], axis=0), xs, symbolic={"a": ("n", 3), "b": ("m", 3)}
    )


SLICES = st.tuples(
    st.integers(-9, 9) | st.sampled_from([-(2**63), 2**63 - 1, 2**31 - 1]),
    st.integers(-9, 9) | st.sampled_from([-(2**63), 2**63 - 1, 2**31 - 1]),
    st.sampled_from([1, 2, 3, -1, -2]),
)


@settings(max_examples=settings().max_examples * 60 // 100, deadline=None)
@given(st.lists(SLICES, min_size=1, max_size=3), st.permutations([0, 1, -1]))
def test_slice(parts: list[tuple[int, int, int]], axes: list[int]) -> None:
    starts, ends, steps = (np.array(column) for column in zip(*parts, strict=True))
    constants = {"s": starts, "e": ends, "a": np.array(axes[: len(parts)]), "p": steps}
    x = array(4, 5, 3)
    source = model(
        [make_node("Slice", ["x", *constants], ["y"])], {"x": (x, x.shape)}, constants, 13
    )
    index = [slice(None)] * 3
    for axis, (start, end, step) in zip(axes, parts, strict=False):
        index[axis] = slice(start, end, step)
    np.testing.assert_array_equal(from_onnx(source).run_reference(x), x[tuple(index)])


def test_slice_attributes() -> None:
    node = make_node("Slice", ["x"], ["y"], starts=[1, -2], ends=[9, 4], axes=[0, 1])
    agrees_with_onnx(node, {"x": array(4, 5)}, opset=9)
    agrees_with_onnx(
        make_node("Slice", ["x"], ["y"], starts=[1], ends=[-1]), {"x": array(4, 5)}, opset=9
    )


def test_slice_beside_a_symbol() -> None:
    node = make_node("Slice", ["x", "s", "e", "a"], ["y"])
    constants = {"s": np.array([0, 1]), "e": np.array([2**62, 3]), "a": np.array([0, 1])}
    agrees_with_onnx(node, {"x": array(4, 5)}, constants, symbolic={"x": ("n", 5)})


def test_split() -> None:
    x, outputs = {"x": array(2, 6)}, ["a", "b", "c"]
    agrees_with_onnx(make_node("Split", ["x"], outputs, axis=1), x, opset=11, outputs=outputs)
    node = make_node("Split", ["x"], outputs, axis=1, split=[1, 2, 3])
    agrees_with_onnx(node, x, opset=11, outputs=outputs)
    sizes = {"s": np.array([1, 0, 5])}
    agrees_with_onnx(make_node("Split", ["x", "s"], outputs, axis=-1), x, sizes, outputs=outputs)
    x = {"x": array(2, 7)}
    node = make_node("Split", ["x"], outputs, axis=1, num_outputs=3)
    agrees_with_onnx(node, x, outputs=outputs, symbolic={"x": ("n", 7)})


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("indices", [np.array(1), np.array([-1, 0, 1]), np.array([[0], [-2]])])
def test_gather(axis: int, indices: np.ndarray) -> None:
    node = make_node("Gather", ["x", "i"], ["y"], axis=axis)
    agrees_with_onnx(node, {"x": array(2, 3, 4)}, {"i": indices})
    agrees_with_onnx(node, {"x": array(2, 3, 4), "i": indices.astype(np.int32)})


def test_shapes_as_results() -> None:
    x = {"x": array(2, 3, 4)}
    agrees_with_onnx(make_node("Shape", ["x"], ["y"]), x)
    agrees_with_onnx(make_node("Shape", ["x"], ["y"], start=-2, end=-1), x)
    agrees_with_onnx(make_node("Size", ["x"], ["y"]), x)


def test_constants_as_results() -> None:
    x = {"x": array(2)}
    nodes = [make_node("Constant", [], ["y"], value=from_array(array(3, 4)))]
    agrees_with_onnx(nodes, x)
    agrees_with_onnx([make_node("Constant", [], ["y"], value_float=1.5)], x)
    agrees_with_onnx([make_node("Constant", [], ["y"], value_ints=[1, 2])], x)
    fill = from_array(np.array([7], np.int32))
    agrees_with_onnx(
        make_node("ConstantOfShape", ["s"], ["y"], value=fill), x, {"s": np.array([2, 3])}
    )
    agrees_with_onnx(make_node("ConstantOfShape", ["s"], ["y"]), x, {"s": np.array([300, 300])})
    agrees_with_onnx(make_node("ConstantOfShape", ["s"], ["y"]), x, {"s": np.array([0, 3])})


def test_space_and_depth() -> None:
    x = {"x": array(2, 8, 4, 6)}
    agrees_with_onnx(make_node("SpaceToDepth", ["x"], ["y"], blocksize=2), x)
    agrees_with_onnx(make_node("DepthToSpace", ["x"], ["y"], blocksize=2), x)
    agrees_with_onnx(make_node("DepthToSpace", ["x"], ["y"], blocksize=2, mode="CRD"), x)
    agrees_with_onnx(
        make_node("DepthToSpace", ["x"], ["y"], blocksize=2), x, symbolic={"x": ("n", 8, 4, 6)}
    )


# Layers


@pytest.mark.parametrize("opset", [7, 9, 14, 15, NEWEST])
@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 4), (1, 3, 1, 5)])
def test_batch_normalization(opset: int, shape: tuple[int, ...]) -> None:
    """Against the formula: before opset 14 the evaluator takes momentum for training."""
    constants = {"s": array(3), "b": array(3) * 2, "m": array(3) + 1, "v": abs(array(3)) + 1}
    node = make_node("BatchNormalization", ["x", *constants], ["y"], epsilon=1e-3, momentum=0.7)
    scale, bias, mean, variance = (
        v.reshape(3, *[1] * (len(shape) - 2)) for v in constants.values()
    )
    x = array(*shape)
    expected = (x - mean) / np.sqrt(variance + np.float32(1e-3)) * scale + bias
    for dims in (shape, ("n", *shape[1:])):
        got = from_onnx(model([node], {"x": (x, dims)}, constants, opset)).run_reference(x)
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("opset", [14, 15, NEWEST])
@pytest.mark.parametrize("outputs", [["y"], ["y", "mean", "variance"], ["y", "", "variance"]])
def test_batch_normalization_in_training(opset: int, outputs: list[str]) -> None:
    """By the statistics of the batch, which the running ones move towards."""
    constants = {"s": array(3), "b": array(3) * 2, "m": array(3) + 1, "v": abs(array(3)) + 1}
    attributes = {"epsilon": 1e-3, "momentum": 0.7, "training_mode": 1}
    node = make_node("BatchNormalization", ["x", *constants], outputs, **attributes)
    x = array(2, 3, 4, 5)
    mean, variance = x.mean((0, 2, 3)), x.var((0, 2, 3))
    scale, bias, m, v = (c.reshape(3, 1, 1) for c in constants.values())
    y = (x - mean.reshape(3, 1, 1)) / np.sqrt(variance + 1e-3).reshape(3, 1, 1) * scale + bias
    want = {
        "y": y,
        "mean": m.reshape(3) * 0.7 + mean * 0.3,
        "variance": v.reshape(3) * 0.7 + variance * 0.3,
    }
    names = [name for name in outputs if name]
    for dims in (x.shape, ("n", *x.shape[1:])):
        source = model([node], {"x": (x, dims)}, constants, opset, outputs=names)
        module = from_onnx(source)
        runs = [module.run_reference]
        if opset == NEWEST and "mean" in names:
            runs.append(compile(module, threads=1))
        for run in runs:
            for name, array_ in zip(names, results(run(x)), strict=True):
                np.testing.assert_allclose(array_, want[name], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("opset", [7, 10, 12, NEWEST])
def test_dropout(opset: int) -> None:
    outputs = ["y"] if opset < 10 else ["y", "mask"]
    agrees_with_onnx(
        make_node("Dropout", ["x"], outputs), {"x": array(2, 3)}, opset=opset, outputs=outputs
    )


def test_normalizations() -> None:
    x, scale, bias = {"x": array(2, 4, 3, 5)}, {"s": array(5)}, {"b": array(5) * 2}
    outputs = ["y", "mean", "inverse"]
    node = make_node("LayerNormalization", ["x", "s", "b"], outputs, axis=-1)
    agrees_with_onnx(node, x, scale | bias, outputs=outputs)
    node = make_node("LayerNormalization", ["x", "s"], ["y"], axis=2)
    agrees_with_onnx(node, x, {"s": array(3, 5)})
    agrees_with_onnx(make_node("RMSNormalization", ["x", "s"], ["y"]), x, scale)
    channels = {"s": array(4), "b": array(4) * 2}
    agrees_with_onnx(make_node("InstanceNormalization", ["x", *channels], ["y"]), x, channels)
    node = make_node("GroupNormalization", ["x", *channels], ["y"], num_groups=2)
    agrees_with_onnx(node, x, channels)
    agrees_with_onnx(make_node("MeanVarianceNormalization", ["x"], ["y"]), x, rtol=1e-4)


def test_global_pools() -> None:
    for operator in ("GlobalAveragePool", "GlobalMaxPool"):
        agrees_with_onnx(make_node(operator, ["x"], ["y"]), {"x": array(2, 3, 4, 5)})


# Computed at import


def test_constants_are_folded() -> None:
    """A mask as exporters write it: operators that the dialect lacks, on constants."""
    nodes = [
        make_node("Range", ["zero", "n", "one"], ["r"]),
        make_node("Unsqueeze", ["r", "last"], ["column"]),
        make_node("LessOrEqual", ["r", "column"], ["below"]),
        make_node("Where", ["below", "yes", "no"], ["mask"]),
        make_node("Add", ["x", "mask"], ["y"]),
    ]
    constants = {
        "zero": np.array(0), "n": np.array(4), "one": np.array(1), "last": np.array([1]),
        "yes": np.array(0, np.float32), "no": np.array(-9, np.float32),
    }  # fmt: skip
    agrees_with_onnx(nodes, {"x": array(2, 4, 4)}, constants)


def test_expand_target_computed_with_where() -> None:
    """What exporters write for x.expand(3, -1, 4)."""
    nodes = [
        make_node("ConstantOfShape", ["three"], ["ones"], value=from_array(np.array([1]))),
        make_node("Mul", ["ones", "minus"], ["all"]),
        make_node("Equal", ["t", "all"], ["free"]),
        make_node("Where", ["free", "ones", "t"], ["target"]),
        make_node("Expand", ["x", "target"], ["y"]),
    ]
    constants = {"three": np.array([3]), "minus": np.array(-1), "t": np.array([3, -1, 4])}
    agrees_with_onnx(nodes, {"x": array(1, 5, 1)}, constants)


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_element_types(dtype: str) -> None:
    """A small network in other precisions; 1e-2 relative because f16 has 11 bits."""
    nodes = [
        make_node("Gemm", ["x", "w", "b"], ["h"], transB=1),
        make_node("Relu", ["h"], ["r"]),
        make_node("Softmax", ["r"], ["y"], axis=-1),
    ]
    constants = {"w": array(3, 4, dtype=dtype), "b": array(3, dtype=dtype)}
    agrees_with_onnx(nodes, {"x": array(5, 4, dtype=dtype)}, constants, rtol=1e-2)


# Windows


def sizes(*numbers: int) -> dict[str, Any]:
    """Pads before and after each dimension, in ONNX's order."""
    return {"pads": list(numbers)}


CONVOLUTIONS: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((2, 3, 7, 8), (4, 3, 3, 3), {}),
    ((2, 3, 7, 8), (4, 3, 3, 2), sizes(1, 0, 2, 1)),
    ((2, 3, 7, 8), (4, 3, 3, 3), {"strides": [2, 3], "kernel_shape": [3, 3]} | sizes(1, 1, 1, 1)),
    ((2, 3, 7, 8), (4, 3, 2, 3), {"dilations": [2, 2]}),
    ((2, 4, 7, 8), (6, 2, 3, 3), {"group": 2}),
    ((2, 4, 7, 8), (8, 1, 3, 3), {"group": 4} | sizes(1, 1, 1, 1)),
    ((2, 3, 7, 8), (4, 3, 3, 3), {"auto_pad": "VALID"}),
    ((2, 3, 7, 8), (4, 3, 3, 2), {"auto_pad": "SAME_UPPER", "strides": [2, 2]}),
    ((2, 3, 7, 8), (4, 3, 2, 4), {"auto_pad": "SAME_LOWER", "strides": [2, 2]}),
    ((2, 3, 9), (4, 3, 4), {"strides": [2]} | sizes(2, 1)),
    ((1, 2, 4, 5, 6), (3, 2, 2, 3, 3), sizes(1, 0, 1, 0, 2, 1)),
]


@pytest.mark.parametrize(("x", "w", "attributes"), CONVOLUTIONS)
def test_conv(x: tuple[int, ...], w: tuple[int, ...], attributes: dict[str, Any]) -> None:
    node = make_node("Conv", ["x", "w", "b"], ["y"], **attributes)
    agrees_with_onnx(node, {"x": array(*x)}, {"w": array(*w) / 10, "b": array(w[0])}, opset=13)
    node = make_node("Conv", ["x", "w"], ["y"], **attributes)
    agrees_with_onnx(node, {"x": array(*x), "w": array(*w) / 10})
    symbolic = {"x": ("batch", *x[1:])}
    agrees_with_onnx(node, {"x": array(*x)}, {"w": array(*w) / 10}, symbolic=symbolic)


def test_conv_of_points_with_symbolic_sizes() -> None:
    node = make_node("Conv", ["x", "w"], ["y"])
    symbolic = {"x": ("n", 3, "h", "w")}
    agrees_with_onnx(node, {"x": array(2, 3, 4, 5)}, {"w": array(6, 3, 1, 1)}, symbolic=symbolic)


TRANSPOSED: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((1, 3, 4, 5), (3, 2, 3, 3), {}),
    ((2, 3, 4, 5), (3, 2, 3, 2), {"strides": [2, 3]}),
    ((1, 3, 4, 5), (3, 2, 3, 3), {"strides": [2, 2]} | sizes(1, 0, 0, 1)),
    ((1, 3, 4, 5), (3, 2, 2, 2), {"dilations": [2, 2]}),
    ((1, 3, 4, 5), (3, 2, 3, 3), {"strides": [3, 2], "output_padding": [1, 1]}),
    ((1, 3, 4, 5), (3, 2, 3, 3), {"strides": [2, 2], "auto_pad": "SAME_UPPER"}),
    ((1, 3, 4), (3, 2, 3), {"strides": [2]}),
    ((1, 1, 2, 3, 2), (1, 2, 2, 2, 3), {"strides": [1, 2, 2]}),
    ((1, 4, 3, 4), (4, 2, 4, 4), {"strides": [2, 2]} | sizes(1, 1, 1, 1)),
    ((1, 3, 4, 5), (3, 2, 2, 3), {"strides": [3, 1], "dilations": [1, 2]} | sizes(1, 2, 0, 1)),
]


@pytest.mark.parametrize(("x", "w", "attributes"), TRANSPOSED)
def test_conv_transpose(
    x: tuple[int, ...], w: tuple[int, ...], attributes: dict[str, object]
) -> None:
    node = make_node("ConvTranspose", ["x", "w"], ["y"], **attributes)
    agrees_with_onnx(node, {"x": array(*x)}, {"w": array(*w)})
    node = make_node("ConvTranspose", ["x", "w", "b"], ["y"], **attributes)
    agrees_with_onnx(node, {"x": array(*x), "w": array(*w)}, {"b": array(w[1])}, opset=11)


def scattered(x: np.ndarray, w: np.ndarray, stride: int, groups: int) -> np.ndarray:
    """Each element of a sequence times its filters, added to where they lie in the result."""
    length = stride * (x.shape[2] - 1) + w.shape[2]
    y = np.zeros((x.shape[0], w.shape[1] * groups, length), np.float32)
    channels, filters = x.shape[1] // groups, w.shape[1]
    for c, p in np.ndindex(*x.shape[1:]):
        first = c // channels * filters
        to = y[:, first : first + filters, p * stride : p * stride + w.shape[2]]
        to += x[:, c, p, None, None] * w[c]
    return y


def test_conv_transpose_with_groups() -> None:
    x, w = array(2, 6, 5), array(6, 2, 4)
    for stride in (1, 3):
        node = make_node("ConvTranspose", ["x", "w"], ["y"], group=3, strides=[stride])
        source = model([node], {"x": (x, x.shape)}, {"w": w}, 11)
        expected = scattered(x, w, stride, 3)
        np.testing.assert_allclose(from_onnx(source).run_reference(x), expected, atol=1e-5)


@given(st.data())
def test_transposed_conv_by_phases(data: st.DataObject) -> None:
    """Filters that no stride divides, or that are shorter, pads of any size, more at the end."""
    stride, window = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 6))
    groups, length = data.draw(st.integers(1, 2)), data.draw(st.integers(1, 4))
    more = data.draw(st.integers(0, stride - 1))
    whole = stride * (length - 1) + window + more
    low = data.draw(st.integers(0, whole - 1))
    high = data.draw(st.integers(0, whole - 1 - low))
    x, w = array(1, 2 * groups, length), array(2 * groups, 3, window)
    attributes = {"group": groups, "strides": [stride], "pads": [low, high]}
    node = make_node("ConvTranspose", ["x", "w"], ["y"], output_padding=[more], **attributes)
    source = model([node], {"x": (x, x.shape)}, {"w": w}, 11)
    full = np.pad(scattered(x, w, stride, groups), [(0, 0), (0, 0), (0, more)])
    np.testing.assert_allclose(
        from_onnx(source).run_reference(x), full[..., low : whole - high], atol=1e-5
    )


@pytest.mark.parametrize(
    ("shape", "mode", "cut"),
    [
        (13, "NOTSET", (2, 1)),
        (13, "SAME_UPPER", (1, 2)),
        (16, "NOTSET", (0, 0)),
        (18, "NOTSET", (-1, -1)),
    ],
)
def test_conv_transpose_to_a_shape(shape: int, mode: str, cut: tuple[int, int]) -> None:
    x, w = array(2, 3, 5), array(3, 2, 4)
    attributes = {"strides": [3], "output_shape": [shape], "auto_pad": mode}
    node = make_node("ConvTranspose", ["x", "w"], ["y"], **attributes)
    source = model([node], {"x": (x, x.shape)}, {"w": w}, 11)
    full = np.pad(scattered(x, w, 3, 1), [(0, 0), (0, 0), (1, 1)])
    expected = full[:, :, 1 + cut[0] : 1 + cut[0] + shape]
    np.testing.assert_allclose(from_onnx(source).run_reference(x), expected, atol=1e-5)


POOLS: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    ((2, 3, 7, 8), {"kernel_shape": [3, 2]}),
    ((2, 3, 7, 8), {"kernel_shape": [3, 3], "strides": [2, 2]} | sizes(1, 1, 1, 1)),
    ((2, 3, 7, 8), {"kernel_shape": [3, 3], "strides": [2, 3], "ceil_mode": 1}),
    ((2, 3, 7, 8), {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1} | sizes(0, 1, 1, 1)),
    ((1, 1, 2, 2), {"kernel_shape": [1, 1], "strides": [3, 3], "ceil_mode": 1}),
    ((2, 3, 7, 8), {"kernel_shape": [3, 2], "auto_pad": "SAME_UPPER", "strides": [2, 2]}),
    ((2, 3, 7, 8), {"kernel_shape": [2, 3], "auto_pad": "SAME_LOWER"}),
    ((2, 3, 7, 8), {"kernel_shape": [2, 3], "auto_pad": "VALID", "strides": [2, 2]}),
    ((2, 3, 9), {"kernel_shape": [4], "strides": [3]} | sizes(1, 2)),
    ((1, 2, 4, 5, 6), {"kernel_shape": [2, 1, 3], "strides": [2, 2, 1]}),
]


@pytest.mark.parametrize(("shape", "attributes"), POOLS)
@pytest.mark.parametrize("operator", ["MaxPool", "AveragePool"])
def test_pool(operator: str, shape: tuple[int, ...], attributes: dict[str, Any]) -> None:
    symbolic = {"x": ("batch", *shape[1:])}
    node = make_node(operator, ["x"], ["y"], **attributes)
    for opset in (11, NEWEST):
        agrees_with_onnx(node, {"x": array(*shape)}, opset=opset, symbolic=symbolic)
    if operator == "AveragePool":
        node = make_node(operator, ["x"], ["y"], count_include_pad=1, **attributes)
        agrees_with_onnx(node, {"x": array(*shape)}, symbolic=symbolic)


@pytest.mark.parametrize("operator", ["MaxPool", "AveragePool"])
def test_pool_with_dilations(operator: str) -> None:
    node = make_node(operator, ["x"], ["y"], kernel_shape=[2, 3], dilations=[3, 2])
    agrees_with_onnx(node, {"x": array(2, 3, 7, 8)})


def test_pool_of_integers() -> None:
    """What is padded is smaller than all there is."""
    node = make_node("MaxPool", ["x"], ["y"], kernel_shape=[3], pads=[1, 1])
    x = np.array([[[-128, -50, -70, -90]]], np.int8)
    source = model([node], {"x": (x, x.shape)}, {}, 13)
    np.testing.assert_array_equal(from_onnx(source).run_reference(x), [[[-50, -50, -50, -70]]])


@pytest.mark.parametrize("p", [1, 2, 3])
def test_norms(p: int) -> None:
    x = {"x": array(2, 3, 7, 8)}
    window = {"kernel_shape": [2, 3], "strides": [2, 1], "pads": [1, 0, 0, 2]}
    agrees_with_onnx(make_node("LpPool", ["x"], ["y"], p=p, **window), x, rtol=1e-4)
    norm = (np.abs(x["x"].astype(np.float64)) ** p).sum((2, 3), keepdims=True) ** (1 / p)
    source = model(
        [make_node("GlobalLpPool", ["x"], ["y"], p=p)], {"x": (x["x"], (2, 3, 7, 8))}, {}, 13
    )
    np.testing.assert_allclose(from_onnx(source).run_reference(x["x"]), norm, rtol=1e-4)


def test_directions_of_vectors() -> None:
    x = np.array([[3, -4], [0, 0]], np.float32)
    for p, expected in ((2, [[0.6, -0.8], [0, 0]]), (1, [[3 / 7, -4 / 7], [0, 0]])):
        node = make_node("LpNormalization", ["x"], ["y"], p=p)
        source = model([node], {"x": (x, x.shape)}, {}, 13)
        np.testing.assert_allclose(from_onnx(source).run_reference(x), expected, rtol=1e-6)


@pytest.mark.parametrize("size", [1, 3, 4])
def test_local_response_normalization(size: int) -> None:
    x = array(2, 7, 3, 4)
    node = make_node("LRN", ["x"], ["y"], size=size, alpha=0.1, beta=0.5, bias=2.0)
    source = model([node], {"x": (x, x.shape)}, {}, 13)
    before, after = (size - 1) // 2, size // 2
    total = np.stack(
        [(x[:, max(0, c - before) : c + after + 1] ** 2).sum(1) for c in range(7)], axis=1
    )
    expected = x / np.sqrt(2 + 0.1 / size * total)
    np.testing.assert_allclose(from_onnx(source).run_reference(x), expected, rtol=1e-5)


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
def test_pad(mode: str) -> None:
    x, pads = {"x": array(3, 5, 4)}, {"pads": np.array([1, 0, 2, 0, 3, 1])}
    agrees_with_onnx(make_node("Pad", ["x", "pads"], ["y"], mode=mode), x, pads)
    axes = {"pads": np.array([1, 2, 3, 0]), "axes": np.array([-1, 1])}
    agrees_with_onnx(make_node("Pad", ["x", "pads", "", "axes"], ["y"], mode=mode), x, axes)


def test_pad_with_a_number() -> None:
    x = {"x": array(3, 5)}
    constants = {"pads": np.array([1, 0, 2, 0]), "value": np.array(-2.5, np.float32)}
    symbolic = {"x": ("n", 5)}
    agrees_with_onnx(
        make_node("Pad", ["x", "pads", "value"], ["y"]), x, constants, symbolic=symbolic
    )
    node = make_node("Pad", ["x"], ["y"], pads=[1, 0, 2, 0], value=1.5)
    source = model([node], {"x": (x["x"], (3, 5))}, {}, 9)
    expected = np.pad(x["x"], [(1, 2), (0, 0)], constant_values=1.5)
    np.testing.assert_array_equal(from_onnx(source).run_reference(x["x"]), expected)


def test_pad_that_cuts() -> None:
    x = array(4, 5)
    source = model(
        [make_node("Pad", ["x", "pads"], ["y"])],
        {"x": (x, (4, 5))},
        {"pads": np.array([-1, 2, 1, -3])},
        NEWEST,
    )
    expected = np.pad(x[1:, :2], [(0, 1), (2, 0)])
    np.testing.assert_array_equal(from_onnx(source).run_reference(x), expected)


# Logic


@pytest.mark.parametrize("operator", ["Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "int64"])
def test_comparisons(operator: str, dtype: str) -> None:
    x, y = array(3, 5, dtype=dtype), array(5, dtype=dtype)
    x[1] = y
    agrees_with_onnx(
        make_node(operator, ["x", "z"], ["y"]), {"x": x, "z": y}, symbolic={"x": ("n", 5)}
    )


@pytest.mark.parametrize("operator", ["And", "Or", "Xor"])
def test_truth_values(operator: str) -> None:
    x = {"x": array(3, 5) > 0, "z": array(5) > 0}
    agrees_with_onnx(make_node(operator, ["x", "z"], ["y"]), x)
    agrees_with_onnx(make_node("Not", ["x"], ["y"]), {"x": x["x"]})


def test_where() -> None:
    x = {"c": array(3, 1) > 0, "a": array(3, 5), "b": array(5)}
    symbolic = {"c": ("n", 1), "a": ("n", 5)}
    agrees_with_onnx(make_node("Where", ["c", "a", "b"], ["y"]), x, symbolic=symbolic)


@pytest.mark.parametrize("attributes", [{}, {"detect_negative": 0}, {"detect_positive": 0}])
def test_what_is_no_number(attributes: dict[str, int]) -> None:
    x = {"x": np.array([1, np.nan, np.inf, -np.inf, 0], np.float32)}
    agrees_with_onnx(make_node("IsNaN", ["x"], ["y"]), x)
    agrees_with_onnx(make_node("IsInf", ["x"], ["y"], **attributes), x)


def test_neither_infinity() -> None:
    x = {"x": np.array([1, np.nan, np.inf, -np.inf], np.float32)}
    source = model(
        [make_node("IsInf", ["x"], ["y"], detect_negative=0, detect_positive=0)],
        {"x": (x["x"], (4,))},
        {},
        NEWEST,
    )
    assert not np.any(from_onnx(source).run_reference(x["x"]))


def test_no_integer_is_infinite() -> None:
    x = np.array([1, 0, -(2**31)], np.int32)
    source = model([make_node("IsInf", ["x"], ["y"])], {"x": (x, (3,))}, {}, NEWEST)
    assert not np.any(from_onnx(source).run_reference(x))


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
@pytest.mark.parametrize("fmod", [0, 1])
def test_mod(dtype: str, fmod: int) -> None:
    a = np.arange(-7, 8, dtype=dtype).reshape(-1, 1)
    b = np.array([-3, -2, -1, 1, 2, 5], dtype)
    agrees_with_onnx(make_node("Mod", ["a", "b"], ["y"], fmod=fmod), {"a": a, "b": b})


@pytest.mark.parametrize("upper", [0, 1])
@pytest.mark.parametrize("k", [0, 2, -1, 99])
def test_triangle(upper: int, k: int) -> None:
    node = make_node("Trilu", ["x", "k"], ["y"], upper=upper)
    symbolic = {"x": ("n", 4, 5)}
    agrees_with_onnx(node, {"x": array(2, 4, 5)}, {"k": np.array(k)}, symbolic=symbolic)
    agrees_with_onnx(
        make_node("Trilu", ["x"], ["y"], upper=upper), {"x": array(4, 3, dtype="int64")}
    )


@pytest.mark.parametrize("operator", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("keepdims", [0, 1])
def test_place_of_the_extremum(operator: str, last: int, keepdims: int) -> None:
    x = np.round(array(4, 6, 5))
    for axis in (0, 1, -1):
        attributes = {"axis": axis, "keepdims": keepdims, "select_last_index": last}
        agrees_with_onnx(make_node(operator, ["x"], ["y"], **attributes), {"x": x})
    agrees_with_onnx(
        make_node(operator, ["x"], ["y"]), {"x": x.astype(np.int32)}, symbolic={"x": (4, 6, "n")}
    )


def test_place_of_nan() -> None:
    x = np.array([[1, np.nan, 3, np.nan], [1, 5, 5, 0]], np.float32)
    source = model(
        [make_node("ArgMax", ["x"], ["y"], axis=1, keepdims=0)], {"x": (x, (2, 4))}, {}, 13
    )
    np.testing.assert_array_equal(from_onnx(source).run_reference(x), [1, 1])


def test_hardmax() -> None:
    x = np.round(array(4, 6, 5))
    for axis in (0, 1, -1):
        agrees_with_onnx(make_node("Hardmax", ["x"], ["y"], axis=axis), {"x": x})


@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_one_hot(axis: int) -> None:
    constants = {"depth": np.array(4.0, np.float32)}
    x = {"x": np.array([[0, 3, -1], [-4, 2, 9]]), "v": np.array([2.5, -1], np.float32)}
    source = model(
        [make_node("OneHot", ["x", "depth", "v"], ["y"], axis=axis)],
        {name: (value, value.shape) for name, value in x.items()},
        constants,
        13,
    )
    hot = np.eye(4, dtype=bool)[np.array([[0, 3, 3], [0, 2, 0]])]
    hot[1, 2] = False
    expected = np.where(np.moveaxis(hot, -1, axis), np.float32(-1), np.float32(2.5))
    np.testing.assert_array_equal(from_onnx(source).run_reference(*x.values()), expected)
