"""ONNX models compiled to machine code: a real network, and shapes that only a call knows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto
from onnx.helper import make_graph, make_model, make_node, make_opsetid, make_tensor_value_info
from onnx.numpy_helper import from_array

import stepwell as sw

from ..harness import cases


def model(
    nodes: Sequence[NodeProto],
    inputs: Mapping[str, Sequence[int | str]],
    weights: Mapping[str, np.ndarray],
    opset: int = 17,
) -> ModelProto:
    infos = [make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs.items()]
    stored = [from_array(value, name) for name, value in weights.items()]
    graph = make_graph(list(nodes), "g", infos, [ValueInfoProto(name="y")], stored)
    return make_model(graph, opset_imports=[make_opsetid("", opset)])


def array(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("batch", cases(["batch", 1, 64, 900], ["batch", 1]))
def test_fashion_mnist(real_data: Callable[[str], Path], batch: int | str) -> None:
    """797 of 900 right; logits within 1e-4 of NumPy, whose sums have another order."""
    with np.load(real_data("fashion_mlp_weights.npz")) as file:
        weights = {name: file[name] for name in ("w0", "b0", "w1", "b1")}
    with np.load(real_data("fashion_mnist_900.npz")) as file:
        images, labels = file["images"].reshape(900, 784) / np.float32(255), file["labels"]
    nodes = [
        make_node("Gemm", ["x", "w0", "b0"], ["h"], name="fc0", transB=1),
        make_node("Relu", ["h"], ["r"], name="act"),
        make_node("Gemm", ["r", "w1", "b1"], ["y"], name="fc1", transB=1),
    ]
    source = model(nodes, {"x": ("batch", 784)}, weights)
    shapes = None if isinstance(batch, str) else {"x": (batch, 784)}
    exe = sw.compile(sw.from_onnx(source, shapes=shapes), threads=1)
    hidden = np.maximum(images @ weights["w0"].T + weights["b0"], 0)
    expected = hidden @ weights["w1"].T + weights["b1"]
    sizes = [900, 1, 7] if isinstance(batch, str) else [batch]
    for size in sizes:
        np.testing.assert_allclose(exe(images[:size]), expected[:size], rtol=0, atol=1e-4)
        if size == 900:
            assert int((exe(images).argmax(axis=1) == labels).sum()) == 797


def test_reshape_to_a_computed_shape() -> None:
    """x.reshape(x.shape[0], -1, 2), the way exporters write it, at several batch sizes."""
    nodes = [
        make_node("Shape", ["x"], ["s"]),
        make_node("Gather", ["s", "zero"], ["n"], axis=0),
        make_node("Unsqueeze", ["n", "axes"], ["head"]),
        make_node("Concat", ["head", "rest"], ["target"], axis=0),
        make_node("Reshape", ["x", "target"], ["r"]),
        make_node("Tanh", ["r"], ["y"]),
    ]
    weights = {"zero": np.array(0), "axes": np.array([0]), "rest": np.array([-1, 2])}
    exe = sw.compile(sw.from_onnx(model(nodes, {"x": ("n", 3, 4)}, weights)), threads=1)
    for n in (0, 1, 5):
        x = array(n, 3, 4)
        np.testing.assert_allclose(exe(x), np.tanh(x.reshape(n, 6, 2)), rtol=1e-5, atol=1e-6)


def test_softmax_over_joined_dimensions() -> None:
    """Before opset 13 the dimensions from the axis on are one."""
    source = model([make_node("Softmax", ["x"], ["y"], axis=1)], {"x": ("n", 3, 5)}, {}, opset=11)
    exe = sw.compile(sw.from_onnx(source), threads=1)
    x = array(4, 3, 5)
    e = np.exp(x - x.max(axis=(1, 2), keepdims=True))
    expected = e / e.sum(axis=(1, 2), keepdims=True)
    np.testing.assert_allclose(exe(x), expected, rtol=1e-5, atol=1e-6)


def test_bounds_at_run_time() -> None:
    source = model(
        [make_node("Clip", ["x", "low", "high"], ["y"])], {"x": (3, 5), "low": (), "high": ()}, {}
    )
    exe = sw.compile(sw.from_onnx(source), threads=1)
    x, low, high = array(3, 5), np.array(-0.5, np.float32), np.array(0.25, np.float32)
    np.testing.assert_array_equal(exe(x, low, high), np.clip(x, low, high))


def test_layer_normalization() -> None:
    weights = {"s": array(7), "b": array(7) + 1}
    source = model(
        [make_node("LayerNormalization", ["x", "s", "b"], ["y"])], {"x": ("n", 7)}, weights
    )
    exe = sw.compile(sw.from_onnx(source), threads=1)
    x = array(5, 7)
    deviation = x - x.mean(axis=1, keepdims=True)
    scaled = deviation / np.sqrt((deviation**2).mean(axis=1, keepdims=True) + 1e-5)
    expected = scaled * weights["s"] + weights["b"]
    np.testing.assert_allclose(exe(x), expected, rtol=1e-4, atol=1e-5)
