"""Quantised and fused operators of com.microsoft, compared with their meaning in NumPy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.helper import make_graph, make_model, make_node, make_opsetid, make_tensor_value_info
from onnx.numpy_helper import from_array

import stepwell as sw

from ..harness import RNG, close, floats, is_quick, results

DOMAIN = "com.microsoft"


def node(kind: str, operands: str, result: str, **attributes: Any) -> onnx.NodeProto:
    """A node of the domain; operands are separated by spaces, and "-" is an omitted one."""
    names = ["" if name == "-" else name for name in operands.split()]
    return make_node(kind, names, result.split(), f"n_{kind}", domain=DOMAIN, **attributes)


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, np.ndarray],
    constants: Mapping[str, Any],
    symbolic: Mapping[str, Sequence[int | str]] | None = None,
) -> onnx.ModelProto:
    kinds = {name: onnx.helper.np_dtype_to_tensor_dtype(x.dtype) for name, x in inputs.items()}
    shapes = {name: x.shape for name, x in inputs.items()} | dict(symbolic or {})
    infos = [make_tensor_value_info(name, kinds[name], shapes[name]) for name in inputs]
    results = [onnx.ValueInfoProto(name=name) for n in nodes for name in n.output]
    weights = [from_array(np.asarray(value), name) for name, value in constants.items()]
    graph = make_graph(list(nodes), "g", infos, results, weights)
    return make_model(graph, opset_imports=[make_opsetid("", 18), make_opsetid(DOMAIN, 1)])


def compiled(proto: onnx.ModelProto, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    """The results of compiled code, which are those of the reference."""
    module = sw.from_onnx(proto)
    got = sw.compile(module, threads=1)(*arrays)
    close(got, module.run_reference(*arrays))
    return results(got)


def computed(proto: onnx.ModelProto, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    """The results of the reference and, where slow tests run too, of compiled code."""
    return (
        results(sw.from_onnx(proto).run_reference(*arrays))
        if is_quick()
        else compiled(proto, *arrays)
    )


def f32(number: float) -> np.float32:
    return np.float32(number)


def real(x: np.ndarray, scale: float, zero: int = 0) -> np.ndarray:
    return (x.astype(np.int32) - zero).astype(np.float32) * np.float32(scale)


def stored(y: np.ndarray, scale: float, zero: int, dtype: Any) -> np.ndarray:
    limits = np.iinfo(dtype)
    return np.clip(np.rint(y / np.float32(scale)) + zero, limits.min, limits.max).astype(dtype)


def integers(dtype: Any, *shape: int) -> np.ndarray:
    limits = np.iinfo(dtype)
    return RNG.integers(limits.min, limits.max, shape, dtype, endpoint=True)


# Scales are powers of two, so that no sum is rounded before the last step.
SCALES = {"half": f32(0.5), "quarter": f32(0.25), "small": np.array([2**-8], np.float32)}


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_elementwise_operators(dtype: Any) -> None:
    x, y = integers(dtype, 3, 7), integers(dtype, 7)
    constants = SCALES | {"three": dtype(3), "five": np.array([5], dtype), "zero": dtype(0)}
    nodes = [
        node("QLinearAdd", "x half three y quarter five half three", "sum"),
        node("QLinearAdd", "x half - y quarter - half -", "plain"),
        node("QLinearMul", "x half three y quarter five half five", "product"),
        node("QLinearSigmoid", "x quarter three small zero", "sigmoid"),
        node("QLinearLeakyRelu", "x quarter three half five", "leaky", alpha=0.25),
        node("QLinearConcat", "half three x half three x quarter five", "joined", axis=1),
    ]
    a, b, c = real(x, 0.5, 3), real(y, 0.25, 5), real(x, 0.25, 3)
    expected = [
        stored(a + b, 0.5, 3, dtype),
        stored(real(x, 0.5) + real(y, 0.25), 0.5, 0, dtype),
        stored(a * b, 0.5, 5, dtype),
        stored(1 / (1 + np.exp(-c)), 2**-8, 0, dtype),
        stored(np.where(c < 0, c * 0.25, c), 0.5, 5, dtype),
        np.concatenate([x, stored(real(x, 0.25, 5), 0.5, 3, dtype)], 1),
    ]
    close(
        compiled(model(nodes, {"x": x, "y": y}, constants, {"x": ("n", 7)}), x, y),
        expected,
        1e-4,
        1e-5,
    )


def test_softmax() -> None:
    x = integers(np.uint8, 2, 3, 4)
    nodes = [
        node("QLinearSoftmax", "x step three small zero", "last", axis=-1, opset=13),
        node("QLinearSoftmax", "x step three small zero", "rows", axis=1, opset=12),
    ]
    constants = SCALES | {"step": f32(2**-6), "three": np.uint8(3), "zero": np.uint8(0)}
    powers = np.exp(real(x, 2**-6, 3))
    parts = [powers / powers.sum(axes, keepdims=True) for axes in (-1, (1, 2))]
    got = computed(model(nodes, {"x": x}, constants), x)
    close(got, [stored(part, 2**-8, 0, np.uint8) for part in parts])


def test_pools() -> None:
    x = integers(np.uint8, 2, 3, 4, 6)
    constants = SCALES | {"three": np.uint8(3), "five": np.uint8(5)}
    window = {"kernel_shape": [2, 3], "strides": [2, 3]}
    nodes = [
        node("QLinearAveragePool", "x half three half five", "first", **window),
        node("QLinearAveragePool", "x half three half five", "last", channels_last=1, **window),
        node("QLinearGlobalAveragePool", "x half three half five", "all_first"),
        node("QLinearGlobalAveragePool", "x half three half five", "all_last", channels_last=1),
        node("NhwcMaxPool", "x", "largest", kernel_shape=[3, 2], strides=[1, 2], pads=[1, 0, 0, 0]),
    ]
    a = real(x, 0.5, 3)
    means = [
        a.reshape(2, 3, 2, 2, 2, 3).mean((3, 5)),
        # Images of 3 x 4 with 6 channels.
        a[:, :2, :3].reshape(2, 1, 2, 1, 3, 6).mean((2, 4)),
        a.mean((2, 3), keepdims=True),
        a.mean((1, 2), keepdims=True),
    ]
    largest = np.stack([x[:, max(0, n - 1) : n + 2].max(1) for n in range(2)], 1)
    expected = [stored(mean, 0.5, 5, np.uint8) for mean in means]
    expected.append(largest.reshape(2, 2, 2, 2, 6).max(3))
    close(computed(model(nodes, {"x": x}, constants), x), expected, 1e-4, 1e-5)


def dynamic(x: np.ndarray) -> tuple[np.ndarray, np.float32, int]:
    """A tensor in ui8 by its own range, with its scale and zero point."""
    low, high = min(x.min(), f32(0)), max(x.max(), f32(0))
    scale = f32((high - low) / f32(255)) or f32(1)
    zero = int(np.rint(-low / scale))
    return stored(x, scale, zero, np.uint8), scale, zero


def test_products_to_floats() -> None:
    x, a, bias = floats(4, 5), integers(np.uint8, 4, 5), floats(3)
    w, scales, zeros = integers(np.int8, 5, 3), np.abs(floats(3)), integers(np.int8, 3)
    constants = {"w": w, "s": scales, "z": zeros, "b": bias, "one": f32(0.1), "k": np.uint8(9)}
    nodes = [
        node("DynamicQuantizeMatMul", "x w s z b", "dynamic"),
        node("DynamicQuantizeMatMul", "x w one", "plain"),
        node("MatMulIntegerToFloat", "a w one s k z b", "columns"),
        node("MatMulIntegerToFloat", "a w one one", "alone"),
    ]
    q, scale, zero = dynamic(x)
    left, right = q.astype(int) - zero, w.astype(int) - zeros
    expected = [
        left @ right * (scale * scales) + bias,
        left @ w.astype(int) * (scale * f32(0.1)),
        (a.astype(int) - 9) @ right * (f32(0.1) * scales) + bias,
        a.astype(int) @ w.astype(int) * f32(0.01),
    ]
    got = compiled(model(nodes, {"x": x, "a": a}, constants, {"x": ("n", 5)}), x, a)
    close(got, [y.astype(np.float32) for y in expected], 1e-4, 1e-5)


def test_gemm_of_integers() -> None:
    a, w, c = integers(np.uint8, 5, 4), integers(np.int8, 3, 5), RNG.integers(-99, 99, 3, np.int32)
    scales, zeros = np.float32([0.5, 0.25, 0.125]), integers(np.int8, 3)
    constants = SCALES | {"w": w, "s": scales, "z": zeros, "c": c, "k": np.uint8(9), "four": f32(4)}
    options = {"transA": 1, "transB": 1, "alpha": 0.5}
    nodes = [
        node("QGemm", "a half k w s z c four k", "bytes", **options),
        node("QGemm", "a half k w s z", "floats", **options),
    ]
    product = (a.astype(int).T - 9) @ (w.astype(int).T - zeros)
    factor = f32(0.5) * f32(0.5) * scales
    expected = [stored((product + c) * factor, 4, 9, np.uint8), product * factor]
    got = computed(model(nodes, {"a": a}, constants), a)
    close(got, [expected[0], expected[1].astype(np.float32)], 1e-4, 1e-5)


def cell(x: np.ndarray, h: np.ndarray, c: np.ndarray, w: Any, r: Any, bias: Any) -> Any:
    """A step of an LSTM of numbers in bytes; its products are exact."""
    rows = [real(*dynamic(row)).astype(float) for row in h]
    gates = x @ w + np.stack(rows) @ r + bias
    i, o, f, u = np.split(gates, 4, -1)
    sigmoid = lambda v: 1 / (1 + np.exp(-v))  # noqa: E731
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(u)
    return (sigmoid(o) * np.tanh(c)).astype(np.float32), c.astype(np.float32)


@pytest.mark.parametrize("per_column", [False, True])
def test_lstm(per_column: bool) -> None:
    steps, batch, inputs, hidden = 3, 2, 5, 4
    x, bias = floats(steps, batch, inputs), floats(2, 8 * hidden)
    w, r = integers(np.int8, 2, inputs, 16), integers(np.int8, 2, hidden, 16)
    shape = (2, 16) if per_column else (2,)
    scales = [0.01 * (np.abs(floats(*shape)) + 0.5) for _ in range(2)]
    zeros = (
        [integers(np.int8, *shape) for _ in range(2)] if per_column else [np.zeros(2, np.int8)] * 2
    )
    names = {"w": w, "r": r, "b": bias, "sw": scales[0], "zw": zeros[0], "sr": scales[1]}
    own = node(
        "DynamicQuantizeLSTM",
        "x w r b - - - - sw zw sr zr",
        "y h c",
        hidden_size=hidden,
        direction="bidirectional",
    )
    proto = model([own], {"x": x}, names | {"zr": zeros[1]})
    got = compiled(proto, x) if per_column else computed(proto, x)
    q, scale, zero = dynamic(x)
    seen, y = real(q, scale, zero).astype(float), np.zeros((steps, 2, batch, hidden), np.float32)
    for direction, order in enumerate((range(steps), reversed(range(steps)))):
        weights = [
            (a[direction].astype(float) - z[direction]) * s[direction]
            for a, s, z in zip((w, r), scales, zeros, strict=True)
        ]
        total = bias[direction, :16] + bias[direction, 16:]
        h, c = np.zeros((2, batch, hidden), np.float32)
        for step in order:
            h, c = cell(seen[step], h, c, *weights, total)
            y[step, direction] = h
        close(got[1][direction], h, 1e-4, 1e-5)
        close(got[2][direction], c, 1e-4, 1e-5)
    close(got[:1], [y], 1e-4, 1e-5)


def test_products_with_activations() -> None:
    a, b, c = floats(4, 5), floats(5, 3), floats(3)
    x, w, z = floats(1, 2, 5, 6), floats(3, 2, 3, 3), floats(1, 3, 3, 4)
    nodes = [
        node(
            "FusedGemm", "a b c", "leaky", activation="LeakyRelu", activation_alpha=0.3, alpha=2.0
        ),
        node("FusedGemm", "a b", "sigmoid", activation="Sigmoid"),
        node("FusedConv", "x w c z", "relu", activation="Relu"),
        node("FusedConv", "x w c", "clip", activation="Clip", activation_params=[-0.5, 2.0]),
        node("FusedConv", "x w", "hard", activation="HardSigmoid", activation_params=[0.3, 0.4]),
        node("FusedConv", "x w", "tanh", activation="Tanh"),
        node("FusedConv", "x w", "plain"),
    ]
    product = a @ b
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (2, 3))
    conv = np.einsum("ncyxij,mcij->nmyx", windows, w)
    biased = conv + c[:, None, None]
    gemm = 2 * product + c
    expected = [
        np.where(gemm < 0, f32(0.3) * gemm, gemm),
        1 / (1 + np.exp(-product)),
        np.maximum(biased + z, 0),
        np.clip(biased, -0.5, 2),
        np.clip(f32(0.3) * conv + f32(0.4), 0, 1),
        np.tanh(conv),
        conv,
    ]
    arrays = {"a": a, "b": b, "c": c, "x": x, "w": w, "z": z}
    close(computed(model(nodes, arrays, {}), *arrays.values()), expected, 1e-4, 1e-5)


def test_the_domain_has_the_quantisers_of_onnx() -> None:
    x = 100 * floats(3, 4)
    constants = {"s": f32(0.5), "z": np.uint16(7)}
    nodes = [node("QuantizeLinear", "x s z", "q"), node("DequantizeLinear", "q s z", "y")]
    q = stored(x, 0.5, 7, np.uint16)
    close(computed(model(nodes, {"x": x}, constants), x), [q, real(q, 0.5, 7)], 1e-4, 1e-5)


@pytest.mark.parametrize(
    ("own", "fact"),
    [
        (node("FusedGemm", "m m", "y", activation="Swish"), "activation Swish is not supported"),
        (
            node("FusedConv", "i i", "y", activation="Clip", activation_params=[1.0]),
            "wrong number of parameters of activation Clip, expected 2, got 1",
        ),
        (node("QLinearSigmoid", "q v z s z", "y"), "operand 1 is not the scale of a whole tensor"),
        (node("QLinearSigmoid", "q s v s z", "y"), "scale and zero point differ"),
        (
            node("QLinearConcat", "s z q s", "y", axis=0),
            "wrong number of operands, expected 2, and",
        ),
        (node("QLinearConcat", "s z q s z", "y"), 'attribute "axis" is missing'),
        (
            node("NhwcMaxPool", "q", "y", kernel_shape=[1]),
            "operand has no spatial dimension, expected rank >= 3, got rank 2",
        ),
        (node("MatMulIntegerToFloat", "q q m s", "y"), "operand 2: scales of columns of several"),
        (
            node("QGemm", "i s z q s z", "y"),
            "an operand is not a matrix, expected rank 2, got rank 4",
        ),
        (
            node("DynamicQuantizeLSTM", "i q q - - - - - s z s z", "y"),
            "operand 1 has the wrong rank",
        ),
        (
            node("DynamicQuantizeLSTM", "i b b - - - - - s z s z", "y"),
            "scales or zero points have the wrong rank, expected 1 or 2, got 0",
        ),
    ],
    ids=lambda value: value.op_type if isinstance(value, onnx.NodeProto) else "",
)
def test_refused(own: onnx.NodeProto, fact: str) -> None:
    inputs = {"q": integers(np.uint8, 2, 2), "m": floats(2, 2), "i": floats(1, 1, 2, 2)}
    inputs["b"] = integers(np.int8, 1, 2, 8)
    constants = {"s": f32(0.5), "z": np.uint8(3), "v": np.float32([1, 2])}
    with pytest.raises(sw.ImportModelError) as caught:
        sw.from_onnx(model([own], inputs, constants))
    assert fact in str(caught.value)
