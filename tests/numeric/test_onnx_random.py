"""Random numbers of ONNX with a seed: the same in each call, in their range, evenly spread."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto
from onnx.helper import make_graph, make_model, make_node, make_opsetid, make_tensor_value_info

import stepwell as sw

from ..harness import floats

F32, F64, BOOL = TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.BOOL


def model(operator: str, inputs: dict[str, tuple[int, Any]], **attributes: Any) -> ModelProto:
    names = [name if name in inputs else "" for name in ("x", "ratio", "training")]
    names = names[: max((n + 1 for n, name in enumerate(names) if name), default=0)]
    outputs = ["y", "mask"] if operator == "Dropout" else ["y"]
    node = make_node(operator, names, outputs, "n", **attributes)
    infos = [make_tensor_value_info(name, *kind) for name, kind in inputs.items()]
    results = [
        make_tensor_value_info(name, BOOL if name == "mask" else F32, None) for name in outputs
    ]
    for result in results:
        result.type.tensor_type.elem_type = 0
    graph = make_graph([node], "g", infos, results)
    return make_model(graph, opset_imports=[make_opsetid("", 22)])


def compiled(operator: str, inputs: dict[str, tuple[int, Any]], **attributes: Any) -> Any:
    return sw.compile(sw.from_onnx(model(operator, inputs, **attributes)), threads=1)


def test_uniform_numbers() -> None:
    exe = compiled("RandomUniform", {}, shape=[40, 50], low=2.0, high=5.0, seed=3.0)
    y = exe()
    np.testing.assert_array_equal(exe(), y)
    assert y.dtype == np.float32
    assert 2 <= y.min() < 2.01
    assert 4.99 < y.max() < 5
    np.testing.assert_allclose([y.mean(), y.std()], [3.5, 3 / 12**0.5], atol=0.05)
    other = compiled("RandomUniform", {}, shape=[40, 50], low=2.0, high=5.0, seed=4.0)()
    assert (other != y).mean() > 0.99


def test_normal_numbers_like_others() -> None:
    exe = compiled("RandomNormalLike", {"x": (F64, ["n", 9])}, mean=1.0, scale=2.0, seed=1.5)
    y = exe(np.zeros((400, 9)))
    assert y.dtype == np.float64
    assert np.isfinite(y).all()
    np.testing.assert_allclose([y.mean(), y.std()], [1, 2], atol=0.1)
    # Those of the normal distribution.
    quantiles = np.array([-2.326, -1.2816, -0.6745, 0, 0.6745, 1.2816, 2.326])
    found = np.quantile((y - 1) / 2, [0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99])
    np.testing.assert_allclose(found, quantiles, atol=0.15)
    options = {"shape": [3, 0, 2], "seed": 0.0, "dtype": TensorProto.FLOAT16}
    empty = compiled("RandomNormal", {}, **options)()
    assert (empty.shape, empty.dtype) == ((3, 0, 2), np.float16)


def test_truth_values_by_their_chances() -> None:
    exe = compiled("Bernoulli", {"x": (F32, ["n", 5])}, seed=7.0, dtype=TensorProto.INT32)
    chances = np.tile(np.array([0, 0.1, 0.5, 0.9, 1], np.float32), (2000, 1))
    y = exe(chances)
    assert y.dtype == np.int32
    np.testing.assert_allclose(y.mean(0), chances[0], atol=0.04)
    assert set(y[:, 0]) == {0}
    assert set(y[:, 4]) == {1}


def test_dropout_in_training() -> None:
    inputs = {"x": (F32, ["n", 50]), "ratio": (F32, []), "training": (BOOL, [])}
    exe = compiled("Dropout", inputs, seed=0)
    x = floats(40, 50)
    y, mask = exe(x, np.float32(0.25), np.array(True))
    np.testing.assert_allclose(y, np.where(mask, x / np.float32(0.75), 0), rtol=1e-6)
    assert abs(mask.mean() - 0.75) < 0.04
    for ratio, training in ((0.0, True), (0.25, False)):
        y, mask = exe(x, np.float32(ratio), np.array(training))
        np.testing.assert_array_equal(y, x)
        assert mask.all()


@pytest.mark.parametrize(
    ("operator", "inputs", "attributes", "message"),
    [
        ("RandomUniform", {}, {"shape": [3]}, "numbers differ from call to call"),
        ("RandomNormal", {}, {"seed": 1.0}, 'attribute "shape" is wrong'),
        ("Bernoulli", {"x": (F32, [3])}, {}, "closest supported: a node with a seed"),
        (
            "Dropout",
            {"x": (F32, [3]), "ratio": (F32, []), "training": (BOOL, [])},
            {},
            "numbers differ from call to call",
        ),
    ],
)
def test_what_is_refused(operator: str, inputs: Any, attributes: Any, message: str) -> None:
    with pytest.raises(sw.ImportModelError, match=message) as error:
        sw.from_onnx(model(operator, inputs, **attributes))
    assert 'node "n"' in str(error.value)
