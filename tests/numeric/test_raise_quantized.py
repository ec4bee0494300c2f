"""Quantised models compute in integers: the bits of the operators, or what exact numbers give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

import stepwell as sw
from stepwell.driver.compilation import Compilation
from stepwell.driver.request import Request

from ..harness import RNG


@dataclass
class Model:
    """A model as a static quantiser writes it: each tensor is quantised and dequantised."""

    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: dict[str, np.ndarray] = field(default_factory=dict)
    last: str = "x"
    scale: float = 1.0

    def constant(self, array: Any) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(array)
        return name

    def node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        output = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [output], name=output, **attributes))
        return output

    def requantised(self, scale: float, zero: np.generic) -> None:
        parameters = self.constant(np.float32(scale)), self.constant(zero)
        q = self.node("QuantizeLinear", self.last, *parameters)
        self.last, self.scale = self.node("DequantizeLinear", q, *parameters), scale

    def weights(self, w: np.ndarray, scale: np.ndarray, zero: np.ndarray, axis: int) -> str:
        names = [self.constant(v) for v in (w, scale, zero)]
        return self.node("DequantizeLinear", *names, axis=axis)

    def bias(self, b: np.ndarray, scale: np.ndarray) -> str:
        full = np.broadcast_to(np.float32(self.scale) * scale, b.shape)
        return self.node("DequantizeLinear", self.constant(b), self.constant(full), axis=0)

    def then(self, kind: str, *others: str, **attributes: Any) -> None:
        self.last = self.node(kind, self.last, *others, **attributes)

    def module(self, shape: Sequence[int]) -> sw.Module:
        graph = helper.make_graph(
            self.nodes,
            "quantised",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
            [helper.make_tensor_value_info(self.last, TensorProto.FLOAT, None)],
            [numpy_helper.from_array(v, name) for name, v in self.constants.items()],
        )
        return sw.from_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]))


def bytes_of(shape: tuple[int, ...], dtype: str = "i1") -> np.ndarray:
    limits = np.iinfo(np.dtype(dtype))
    return RNG.integers(limits.min, limits.max, shape, dtype, endpoint=True)


def network() -> sw.Module:
    """Convolution, relu, pooling, and two layers with the two ways to hold weights."""
    m = Model()
    m.requantised(0.02, np.uint8(128))
    scale = RNG.uniform(0.001, 0.01, 6).astype("f4")
    w = m.weights(bytes_of((6, 3, 3, 3)), scale, np.zeros(6, "i1"), 0)
    m.then("Conv", w, m.bias(bytes_of((6,), "i2").astype("i4"), scale), pads=[1, 1, 1, 1])
    m.then("Relu")
    m.requantised(0.05, np.uint8(0))
    m.then("MaxPool", kernel_shape=[2, 2], strides=[2, 2])
    m.requantised(0.05, np.uint8(0))
    m.then("Flatten")
    m.requantised(0.05, np.uint8(0))
    scale = RNG.uniform(0.001, 0.01, 10).astype("f4")
    w = m.weights(bytes_of((96, 10)), scale, np.zeros(10, "i1"), 1)
    m.then("Gemm", w, m.bias(bytes_of((10,), "i2").astype("i4"), scale))
    m.then("Clip", m.constant(np.float32(-1)), m.constant(np.float32(6)))
    m.requantised(0.06, np.uint8(90))
    one = np.float32(0.004)
    w = m.weights(bytes_of((5, 10), "u1"), np.asarray(one), np.asarray(np.uint8(120)), 0)
    m.then("Gemm", w, m.bias(bytes_of((5,), "i2").astype("i4"), one), transB=1)
    m.requantised(0.05, np.uint8(120))
    return m.module(("n", 3, 8, 8))


@pytest.mark.slow
def test_a_network_of_a_static_quantiser_computes_in_integers() -> None:
    module = network()
    exe = sw.compile(module)
    optimized = exe.ir("optimized")
    assert "f32" not in "".join(
        line for line in optimized.splitlines() if "graph.conv" in line or "graph.dense" in line
    )
    assert optimized.count("graph.requantize") == 3
    assert optimized.count("graph.quantize ") == optimized.count("graph.dequantize ") == 1
    # The quantisation and its border, one kernel for each layer, a pooling; a reshape is a view.
    fused = [line for line in exe.ir("kernels").splitlines() if "loop.kernel @" in line]
    assert len(fused) == 5
    x = RNG.normal(size=(4, 3, 8, 8)).astype("f4")
    got, floats = exe(x), module.run_reference(x)
    assert np.abs(got - floats).max() < 0.1001  # two steps: each layer may be one away
    assert np.mean(got == floats) > 0.9


def exact_steps(
    x: np.ndarray, w: np.ndarray, b: np.ndarray, scales: Sequence[np.ndarray], zero: Sequence[int]
) -> np.ndarray:
    """Steps of the result in float64, which has all integers and errors of 2^-50."""
    total = (x.astype("i8") - zero[0]) @ (w.astype("i8") - zero[1]).T + b
    return total * (np.float64(scales[0]) * scales[1].astype("f8") / np.float64(scales[2]))


@settings(
    max_examples=settings().max_examples * 10 // 100,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
@given(
    st.integers(1, 30), st.integers(1, 200), st.integers(1, 40), st.integers(0, 99), st.booleans()
)
def test_a_recognised_product_is_exact(
    rows: int, inner: int, columns: int, seed: int, signed: bool
) -> None:
    rng = np.random.default_rng(seed)
    dtype, z = ("i1", -3) if signed else ("u1", 77)
    limits = np.iinfo(np.dtype(dtype))
    x, w = (
        rng.integers(limits.min, limits.max, s, dtype, endpoint=True)
        for s in ((rows, inner), (columns, inner))
    )
    zero = [np.dtype(dtype).type(z), np.dtype(dtype).type(-z if signed else z + 9)]
    scales = [np.float32(0.03), rng.uniform(0.01, 0.1, columns).astype("f4"), np.float32(inner)]
    bias = rng.integers(-5000, 5000, columns).astype("i4")
    b = sw.Builder("main")
    left = b.dequantize(b.input("x", (rows, inner), "i8" if signed else "ui8"), scales[0], zero[0])
    right = b.dequantize(w, scales[1], np.full(columns, zero[1]), axis=0)
    sums = b.dequantize(bias, scales[0] * scales[1], np.zeros(columns, "i4"), axis=0)
    b.output(b.quantize(b.dense(left, right, sums), scales[2], zero[0]))
    module = b.module()
    exe = sw.compile(module, threads=1)
    assert "graph.requantize" in exe.ir("optimized")
    got = exe(x).astype("i8")
    exact = exact_steps(x, w, bias, scales, [int(v) for v in zero])
    wanted = np.clip(np.rint(exact) + z, limits.min, limits.max)
    tie = np.abs(np.abs(exact - np.floor(exact)) - 0.5) < 2.0**-14
    assert np.abs(got - wanted)[tie].max(initial=0) <= 1
    np.testing.assert_array_equal(got[~tie], wanted[~tie])


def dense_in_floats(inner: int, **other: Any) -> sw.Module:
    """A product between quantisations, with something that is not recognised."""
    given = {"scale": np.float32(0.5), "bias_scale": np.float32(0.25), "w_axis": None} | other
    b = sw.Builder("main")
    zero = np.uint8(0)
    x = b.dequantize(b.input("x", ("n", inner), "ui8"), np.float32(0.5), zero)
    size = () if given["w_axis"] is None else (inner,)
    ones, zeros = np.full(size, 0.5, "f4"), np.zeros(size, "u1")
    w = b.dequantize(bytes_of((3, inner), "u1") | 1, ones, zeros, axis=given["w_axis"])
    bias = b.dequantize(np.ones(3, "i4"), given["bias_scale"], np.int32(0))
    b.output(b.quantize(b.dense(x, w, bias), given["scale"], zero))
    return b.module()


@pytest.mark.parametrize(
    ("inner", "other"),
    [
        (8, {"bias_scale": np.float32(0.3)}),
        (8, {"w_axis": 1}),
        (8, {"scale": np.float32(-0.5)}),
        (8, {"scale": np.float32(2.0**-60)}),
        (80_000, {}),
    ],
    ids=["bias", "axis", "negative", "tiny", "sums"],
)
def test_what_is_not_recognised_stays_in_floats(inner: int, other: dict[str, Any]) -> None:
    module = dense_in_floats(inner, **other)
    exe = sw.compile(module, threads=1)
    assert "graph.requantize" not in exe.ir("optimized")
    x = np.full((2, inner), 255, np.uint8)
    got, wanted = exe(x), module.run_reference(x)
    assert np.abs(got.astype(int) - wanted.astype(int)).max() <= 1


def test_the_same_with_nothing_wrong_is_recognised() -> None:
    assert "graph.requantize" in Compilation.of(Request(dense_in_floats(8), threads=1)).text(
        "optimized"
    )


def test_nan_and_infinities_between_a_cut_and_a_quantisation() -> None:
    b = sw.Builder("main")
    x = b.input("x", (6,), "f32")
    for low, high in ((0.0, 6.0), (None, 3.0), (-2.0, None), (1.0, 6.0)):
        b.output(b.quantize(b.clip(x, low, high), np.float32(0.1), np.uint8(30)))
    b.output(b.quantize(b.relu(x), np.float32(0.1), np.uint8(30)))
    module = b.module()
    exe = sw.compile(module, threads=1)
    assert "graph.relu" not in exe.ir("optimized")
    values = np.array([np.nan, np.inf, -np.inf, 0.25, -1.05, 5.95], "f4")
    for got, wanted in zip(exe(values), module.run_reference(values), strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_dynamic_quantisation_keeps_bytes_in_the_product() -> None:
    w = bytes_of((40, 9), "u1")
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        helper.make_node("MatMulInteger", ["q", "w", "z", "wz"], ["t"]),
        helper.make_node("Cast", ["t"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["f", "s"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "dynamic",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ("n", 40))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(w, "w"), numpy_helper.from_array(np.asarray(np.uint8(99)), "wz")],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    module = sw.from_onnx(proto)
    exe = sw.compile(module, threads=1)
    assert "(tensor<?x40xui8>, tensor<40x9xi16>) -> tensor<?x9xi32>" in exe.ir("optimized")
    x = RNG.normal(size=(7, 40)).astype("f4")
    got = exe(x)
    np.testing.assert_allclose(got, module.run_reference(x), rtol=1e-6, atol=1e-3)
    weights = w.astype("f4") - 99
    np.testing.assert_allclose(got, x @ weights, atol=40 * 130 * np.ptp(x) / 255 / 4)


def test_chains_of_integer_products_keep_their_order() -> None:
    b = sw.Builder("main")
    x = b.input("x", (2, 30), "i8")
    wide = b.matmul(x, bytes_of((30, 3)))
    b.output(b.matmul(wide, b.constant(bytes_of((3, 40)).astype("i4"))))
    module, values = b.module(), bytes_of((2, 30))
    got, wanted = sw.compile(module)(values), module.run_reference(values)
    np.testing.assert_array_equal(got, wanted)
