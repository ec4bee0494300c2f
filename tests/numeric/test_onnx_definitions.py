"""Operators without a conversion of their own, by ONNX's definition of them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto
from onnx.helper import (
    make_graph,
    make_model,
    make_node,
    make_opsetid,
    make_tensor_value_info,
    np_dtype_to_tensor_dtype,
)

import stepwell as sw

from ..harness import floats


def model(
    operator: str,
    xs: dict[str, tuple[np.dtype, tuple[int | str, ...]]],
    outputs: tuple[str, ...] = ("y",),
    *,
    domain: str = "",
    **attributes: Any,
) -> ModelProto:
    infos = [
        make_tensor_value_info(name, np_dtype_to_tensor_dtype(dtype), shape)
        for name, (dtype, shape) in xs.items()
    ]
    node = make_node(operator, list(xs), list(outputs), name="n", domain=domain, **attributes)
    results = [make_tensor_value_info(name, 0, None) for name in outputs if name]
    imports = [make_opsetid("", 24), *([make_opsetid(domain, 1)] if domain else [])]
    return make_model(make_graph([node], "g", infos, results), opset_imports=imports)


F32, I64 = np.dtype(np.float32), np.dtype(np.int64)


def test_an_attribute_that_is_not_given_has_its_default() -> None:
    x = floats(3, 8)
    scores, labels = {"x": (F32, ("n", 8)), "t": (I64, ("n",))}, np.array([1, 7, 0])
    losses = -(x - np.log(np.exp(x).sum(1, keepdims=True)))[np.arange(3), labels]
    for given, want in (({}, losses.mean()), ({"reduction": "sum"}, losses.sum())):
        exe = sw.compile(sw.from_onnx(model("SoftmaxCrossEntropyLoss", scores, **given)), threads=1)
        np.testing.assert_allclose(exe(x, labels), want, rtol=1e-5)
        (line,) = [line for line in exe.explain().splitlines() if "SoftmaxCrossEntropyLoss" in line]
        assert 'SoftmaxCrossEntropyLoss "n": expanded, because ONNX defines it by other' in line


@pytest.mark.slow
def test_a_definition_for_the_types_of_operands() -> None:
    q, k, v = (floats(2, 3, n, 8) for n in (4, 5, 5))
    shapes = {"q": (F32, (2, 3, "n", 8)), "k": (F32, (2, 3, "m", 8)), "v": (F32, (2, 3, "m", 8))}
    exe = sw.compile(sw.from_onnx(model("Attention", shapes)), threads=1)
    scores = np.exp(q @ k.swapaxes(2, 3) / np.sqrt(8))
    want = scores / scores.sum(3, keepdims=True) @ v
    np.testing.assert_allclose(exe(q, k, v), want, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("operator", "domain", "text"),
    [
        ("Nothing", "ai.onnx.preview", "no such operator in ai.onnx.preview"),
        ("Nothing", "a.b", 'domain "a.b" is not supported'),
    ],
)
def test_what_has_no_definition_either(operator: str, domain: str, text: str) -> None:
    source = model(operator, {"x": (F32, (3,))}, domain=domain)
    with pytest.raises(sw.ImportModelError, match=re.escape(text)) as error:
        sw.from_onnx(source)
    assert 'node "n"' in str(error.value)


def test_a_part_of_a_definition_that_is_not_supported() -> None:
    source = model("HannWindow", {"x": (I64, ())}, output_datatype=int(TensorProto.COMPLEX64))
    text = r'"n": HannWindow .* no conversion; Cast \(opset 17\) of its definition: complex64 is'
    with pytest.raises(sw.ImportModelError, match=text):
        sw.from_onnx(source)


def test_a_result_that_a_definition_does_not_give() -> None:
    """One that is not used need not be there: the mask of this node, and its new keys."""
    shapes = dict.fromkeys("qkv", (F32, (1, 2, 3, 4)))
    source = model("Attention", shapes, ("y", "", "", "scores"))
    assert [spec.name for spec in sw.from_onnx(source).outputs] == ["y", "scores"]
