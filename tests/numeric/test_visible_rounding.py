"""What comes before a comparison, a rounding or a cast to integers is rounded as the model says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import stepwell as sw
from stepwell.core.errors import CompileError
from stepwell.core.pipelines.staircase import run_passes
from stepwell.core.registry import make_context
from stepwell.dialects.graph.ops import FloorOp
from stepwell.dialects.graph.plan.visibility import Visibility

from ..harness import RNG, floats, onnx_results, same

DIVISORS = np.arange(2, 1001, dtype=np.float32)
AFFECTED = DIVISORS[DIVISORS * (np.float32(1) / DIVISORS) != 1]
"""The divisors whose product with their inverse is not 1."""


@pytest.mark.parametrize("kind", ["floor", "cast"])
def test_quotients_of_equal_numbers_are_one(kind: str, all_tests: bool) -> None:
    """All divisors from 2 to 1000, at the dividend that is the divisor and at its neighbours.

    Where slow tests are left out, those whose inverse is not exact enough.
    """
    whole: dict[str, Callable[[sw.Builder, Any], Any]] = {
        "floor": lambda b, q: b.floor(q),
        "cast": lambda b, q: b.cast(q, "i64"),
    }
    assert len(AFFECTED) == 135
    x = np.concatenate([AFFECTED, np.nextafter(AFFECTED, 0), np.nextafter(AFFECTED, 2000)])
    b = sw.Builder()
    dividend = b.input("x", x.shape)
    divisors = DIVISORS if all_tests else AFFECTED
    for divisor in divisors:
        b.output(whole[kind](b, dividend / float(divisor)))
    module = b.module()
    run_passes(make_context(module.weights), module.op, "graph-simplify,canonicalize")
    for divisor, result in zip(divisors, module.run_reference(x), strict=True):
        np.testing.assert_array_equal(result, np.floor(x / divisor))


def test_quotients_of_equal_numbers_are_one_in_machine_code() -> None:
    few = AFFECTED[:3]
    b = sw.Builder()
    x = b.input("x", (3,))
    b.output(b.floor(b.concat([x / float(d) for d in few], axis=0)))
    result = sw.compile(b.module(), threads=1)(few).reshape(3, 3)
    np.testing.assert_array_equal(np.diagonal(result), np.ones(3, np.float32))


PATHS: dict[str, Callable[[sw.Builder, Any], Any]] = {
    "through a sum": lambda b, q: b.floor(b.reduce(q, "sum", axes=[0])),
    "through a product": lambda b, q: b.round(b.matmul(q, np.eye(1, dtype=np.float32))),
    "through a choice": lambda b, q: b.ceil(b.relu(b.abs(q))),
    "through a transpose": lambda b, q: b.floor(b.transpose(b.concat([q, q], axis=0), [1, 0])),
    "into a comparison": lambda b, q: b.equal(q, 1.0),
    "into an order": lambda b, q: b.less(q, 1.0),
    "into a truth value": lambda b, q: b.cast(q - 1.0, "i1"),
    "into a sign": lambda b, q: b.sign(q - 1.0),
    "into a scale": lambda b, q: b.quantize(np.ones(3, np.float32), b.reshape(q, []), np.int8(0)),
    "into an exponent": lambda b, q: b.pow(np.float32(-2), q),
}


def of_one(build: Callable[[sw.Builder, Any], Any], rounding: str | None = None) -> Any:
    """A program of one number."""
    b = sw.Builder()
    b.output(build(b, b.input("x", (1, 1))))
    return sw.compile(b.module(), threads=1, rounding=rounding)


@pytest.mark.parametrize("path", PATHS)
def test_a_quotient_that_shows_stays_one(path: str) -> None:
    def build(b: sw.Builder, x: Any) -> Any:
        return PATHS[path](b, x / 41.0)

    exe, x = of_one(build), np.array([[41]], np.float32)
    assert "graph.div" in exe.ir("optimized")
    np.testing.assert_array_equal(exe(x), of_one(PATHS[path])(np.ones((1, 1), np.float32)))


def test_a_quotient_that_does_not_show_is_a_product() -> None:
    """Not even where something else is compared; and everywhere, where one says so."""

    def smooth(b: sw.Builder, x: Any) -> Any:
        powers = b.sqrt(x / 43.0) + b.pow(x / 47.0, x)  # which jump with the exponent alone
        return b.where(b.less(x, 0.0), b.softmax(x / 41.0, 1), powers)

    def rough(b: sw.Builder, x: Any) -> Any:
        return b.floor(x / 41.0)

    # One more is 1 / sum in the softmax.
    assert of_one(smooth).ir("optimized").count("graph.div") == 1
    assert of_one(smooth, "kept").ir("optimized").count("graph.div") == 4
    assert "graph.div" in of_one(rough, "unseen").ir("optimized")
    assert "graph.div" not in of_one(rough, "free").ir("optimized")


def test_powers_of_two_are_products_everywhere() -> None:
    exe = of_one(lambda b, x: b.floor(x / -8.0), "kept")
    assert "graph.div" not in exe.ir("optimized")


def test_rounding_shows_through_calls() -> None:
    """A function that is called is looked into, and where it is called from."""
    text = """
    func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
      %a = func.call @third(%x) : (tensor<4xf32>) -> tensor<4xf32>
      %f = graph.floor %a : (tensor<4xf32>) -> tensor<4xf32>
      %c = graph.constant dense<5.0> : tensor<f32>
      %q = graph.div %x, %c : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
      %b = func.call @smooth(%q) : (tensor<4xf32>) -> tensor<4xf32>
      func.return %f, %b : tensor<4xf32>, tensor<4xf32>
    }
    func.func private @third(%x: tensor<4xf32>) -> tensor<4xf32> {
      %c = graph.constant dense<3.0> : tensor<f32>
      %q = graph.div %x, %c : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
      func.return %q : tensor<4xf32>
    }
    func.func private @smooth(%x: tensor<4xf32>) -> tensor<4xf32> {
      %c = graph.constant dense<7.0> : tensor<f32>
      %q = graph.div %x, %c : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
      func.return %q : tensor<4xf32>
    }
    """
    module = sw.from_mlir(text)
    run_passes(make_context(module.weights), module.op, "graph-simplify")
    main, third, smooth = (str(op) for op in module.op.ops)
    assert "graph.div" in third
    assert "graph.div" not in main
    assert "graph.div" not in smooth


def test_dynamic_quantization_has_the_scale_of_the_standard() -> None:
    """Scale, zero point and elements, as the reference of ONNX computes them."""
    node = helper.make_node("DynamicQuantizeLinear", ["x"], ["y", "scale", "zero"])
    kinds = (TensorProto.UINT8, TensorProto.FLOAT, TensorProto.UINT8)
    outputs = [
        helper.make_tensor_value_info(name, kind, shape)
        for name, kind, shape in zip(node.output, kinds, (["n"], [], []), strict=True)
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])
    graph = helper.make_graph([node], "quantize", [x], outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    onnx.checker.check_model(model)
    exe = sw.compile(sw.from_onnx(model), threads=1)
    for size in range(1, 31):
        array = (floats(size, dtype=float) * 10 ** RNG.uniform(-2, 2)).astype(np.float32)
        same(exe(array), onnx_results(model, array))


def test_unknown_rounding_is_refused() -> None:
    with pytest.raises(CompileError) as caught:
        of_one(lambda b, x: x, "some")
    expected = 'compile: unknown rounding, expected kept, unseen, free, got "some"'
    assert str(caught.value) == expected


def test_unknown_rounding_of_a_module_is_refused() -> None:
    text = """
    builtin.module attributes {graph.rounding = "some"} {
      func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
        func.return %x : tensor<4xf32>
      }
    }
    """
    with pytest.raises(CompileError) as caught:
        sw.compile(sw.from_mlir(text))
    expected = 'graph.rounding: unknown value, expected kept, unseen, free, got "some"'
    assert expected in str(caught.value)


def test_answers_take_linear_time() -> None:
    """A long chain whose values are used twice each has exponentially many paths."""
    b = sw.Builder()
    y = b.input("x", (1,))
    for _ in range(2000):
        y = b.add(y, b.tanh(y))
    b.output(b.floor(y / 41.0))
    module = b.module()
    visibility = Visibility()
    values = [result for op in module.main.walk() for result in op.results]
    shown = [visibility.shows(value) for value in values]
    assert shown == [not isinstance(value.owner, FloorOp) for value in values]
