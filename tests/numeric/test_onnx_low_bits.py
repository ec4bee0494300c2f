"""Low-bit types of ONNX: packed weights, casts that saturate, and quantisation in blocks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import stepwell as sw

from ..harness import RNG, close, onnx_results

X = np.array([0.3, -1.7, 447, 449, 1e6, -1e6, np.nan, np.inf, -np.inf, 1e-7, 0, 5.9], np.float32)


def model(node: onnx.NodeProto, x: np.ndarray, weights: Mapping[str, Any]) -> onnx.ModelProto:
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    given = helper.make_tensor_value_info("x", kind, x.shape)
    tensors = [
        w if isinstance(w, onnx.TensorProto) else numpy_helper.from_array(w, name)
        for name, w in weights.items()
    ]
    graph = helper.make_graph([node], "g", [given], [onnx.ValueInfoProto(name="y")], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)])


def node_as_onnx(
    node: onnx.NodeProto, x: np.ndarray, weights: Mapping[str, Any] | None = None
) -> None:
    """Compare numbers: that of NaN in a type without it is a zero of any sign."""
    source = model(node, x, weights or {})
    exe = sw.compile(sw.from_onnx(source), threads=1)
    close(exe(x), onnx_results(source, x), rtol=0)


@pytest.mark.parametrize("saturate", [0, 1])
@pytest.mark.parametrize("kind", ["FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT4E2M1"])
def test_casts_saturate(kind: str, saturate: int) -> None:
    to = getattr(TensorProto, kind)
    node_as_onnx(helper.make_node("Cast", ["x"], ["y"], to=to, saturate=saturate), X)


@pytest.mark.parametrize("mode", ["up", "down", "nearest"])
def test_powers_of_two_are_rounded(mode: str) -> None:
    x = np.array([1, 1.1, 1.5, 1.49, 3, 2.0**127, 1.7 * 2.0**126, 0.3, np.nan], np.float32)
    to = TensorProto.FLOAT8E8M0
    node_as_onnx(helper.make_node("Cast", ["x"], ["y"], to=to, round_mode=mode), x)


@pytest.mark.parametrize("kind", ["INT4", "UINT2", "FLOAT4E2M1", "FLOAT6E2M3", "FLOAT8E5M2"])
def test_packed_weights(kind: str) -> None:
    number = getattr(TensorProto, kind)
    w = np.array([1, 0, 3, 2, 1], np.float32).astype(helper.tensor_dtype_to_np_dtype(number))
    node = helper.make_node("CastLike", ["w", "x"], ["y"])
    node_as_onnx(node, np.zeros(1, np.float32), {"w": numpy_helper.from_array(w, "w")})
    short = numpy_helper.from_array(w, "w")
    short.raw_data = short.raw_data[:-1]
    with pytest.raises(sw.StepwellError, match="data does not fill shape"):
        sw.from_onnx(model(node, np.zeros(1, np.float32), {"w": short}))


def test_quantisation_in_blocks() -> None:
    x = RNG.uniform(-9, 9, (3, 7)).astype(np.float32)
    scale = RNG.uniform(0.5, 2, (3, 3)).astype(np.float32)
    zero = np.arange(9).reshape(3, 3).astype(helper.tensor_dtype_to_np_dtype(TensorProto.UINT4))
    for axis, given, shift in ((1, scale, zero), (0, scale[:2].repeat(3, 1)[:, :7], None)):
        size = 3 if axis else 2
        names = {"s": given} | ({} if shift is None else {"z": shift})
        node = helper.make_node("QuantizeLinear", ["x", *names], ["y"], axis=axis, block_size=size)
        node_as_onnx(node, x, names)
    q = np.arange(21).reshape(3, 7).astype(zero.dtype)
    node = helper.make_node("DequantizeLinear", ["x", "s", "z"], ["y"], axis=1, block_size=3)
    node_as_onnx(node, q, {"s": scale, "z": zero})
