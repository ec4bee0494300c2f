"""Quantised operators: compiled code gives the bits of the reference, at each level."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

import stepwell as sw
from stepwell.core.dtype_names import dtype_named

from ..harness import RNG, as_onnx, cases, close, floats, onnx_results, restart, same

LEVELS = (0, 3)
NARROW = ("i8", "ui8", "i16", "ui16")
BYTES = ("i8", "ui8")


def drawn(name: str, shape: tuple[int, ...]) -> np.ndarray:
    limits = np.iinfo(dtype_named(name))
    numbers = RNG.integers(limits.min, limits.max, shape, endpoint=True)
    return np.asarray(numbers, dtype_named(name))


def of_all_levels(module: sw.Module, *inputs: np.ndarray, levels: Any = LEVELS) -> Any:
    """The results of the reference, after comparing them with those of compiled code."""
    expected = module.run_reference(*inputs)
    for level in levels:
        got = sw.compile(module, threads=1, opt_level=level)(*inputs)
        same(got, expected, f"level {level}")
    return expected


@pytest.mark.parametrize("name", NARROW)
def test_rounding_and_saturation(name: str) -> None:
    limits = np.iinfo(dtype_named(name))
    b = sw.Builder("main")
    x = b.input("x", (12,), "f32")
    b.output(b.quantize(x, np.float32(0.5), dtype_named(name).type(3)))
    nan, inf = np.nan, np.inf
    values = [0.25, 0.75, 1.25, -0.25, -0.75, 0.2, -0.0, 1e30, -1e30, inf, -inf, nan]
    wanted = [3, 5, 5, 3, 1, 3, 3, limits.max, limits.min, limits.max, limits.min, 3]
    got = of_all_levels(b.module(), np.array(values, np.float32))
    np.testing.assert_array_equal(got, np.clip(wanted, limits.min, limits.max))


@pytest.mark.parametrize("name", cases([*NARROW, "i32"], ["i8", "ui16", "i32"]))
def test_dequantize(name: str, all_tests: bool) -> None:
    b = sw.Builder("main")
    x, wanted = drawn(name, (5, 7)), []
    known, symbolic = b.input("y", (5, 7), name), b.input("x", ("n", 7), name)
    for axis in (None, 0, -1):
        size = () if axis is None else (x.shape[axis],)
        scale, zero_point = np.asarray(RNG.uniform(0.01, 1, size), "f4"), drawn(name, size)
        b.output(b.dequantize(symbolic, scale, zero_point, axis=axis))
        b.output(b.dequantize(known, scale.astype("f2"), zero_point, axis=axis))
        if axis == 0:
            scale, zero_point = scale[:, None], zero_point[:, None]
        difference = (x.astype("i8") - zero_point).astype("i4")
        wanted.append((difference * scale.astype("f8")).astype("f4"))
    got = of_all_levels(b.module(), x, x, levels=LEVELS if all_tests or name == "i8" else (3,))
    close(got[::2], wanted, 3e-7, atol=0)


@pytest.mark.parametrize("name", cases(NARROW, ["i16", "ui8"]))
def test_quantize_along_an_axis(name: str, all_tests: bool) -> None:
    b = sw.Builder("main")
    scale, zero_point = RNG.uniform(0.01, 1, 3).astype("f4"), drawn(name, (3,))
    x = b.input("x", ("n", 3, 5), "f32")
    b.output(b.quantize(x, scale, zero_point, axis=1))
    b.output(b.quantize(b.cast(x, "f16"), scale.astype("f2"), zero_point, axis=1))
    total = b.cast(b.mul(x, np.float32(1000)), "i32")
    b.output(b.requantize(total, scale, zero_point, axis=1))
    levels = LEVELS if all_tests or name == "i16" else (3,)
    of_all_levels(b.module(), floats(4, 3, 5) * 30, levels=levels)


@dataclass(frozen=True)
class Product:
    """A random product of quantised tensors."""

    kind: str
    types: tuple[str, str, str]
    sizes: tuple[int, int, int]
    per_channel: bool
    with_bias: bool
    zero_points: str
    seed: int

    def module(self) -> tuple[sw.Module, np.ndarray]:
        restart(self.seed)
        rows, inner, channels = self.sizes
        b = sw.Builder("main")
        x_type, w_type, y_type = self.types
        size = (channels,) if self.per_channel else ()
        shape = {
            "dense": (channels, inner),
            "matmul": (inner, channels),
            "conv": (channels, inner, 2),
        }[self.kind]
        x_shape = ("n", inner, 5) if self.kind == "conv" else ("n", inner)
        scales = [np.asarray(RNG.uniform(0.01, 0.1, s), "f4") for s in ((), size)]
        y_scale = np.float32(scales[0] * np.mean(scales[1]) * np.sqrt(inner) * 60)
        zero = [drawn(t, s) for t, s in ((x_type, ()), (w_type, size), (y_type, ()))]
        if self.zero_points == "none":
            zero = [np.zeros_like(z) for z in zero]
        bias = RNG.integers(-(1 << 14), 1 << 14, channels).astype("i4") if self.with_bias else None
        operator = getattr(b, f"quantized_{self.kind}")
        x = b.input("x", x_shape, x_type)
        w = b.constant(drawn(w_type, shape))
        y = operator(x, scales[0], zero[0], w, scales[1], zero[1], y_scale, zero[2], bias)
        b.output(y)
        given = (rows, *x_shape[1:])
        return b.module(), drawn(x_type, given)


PRODUCTS = st.builds(
    Product,
    kind=st.sampled_from(["dense", "matmul", "conv"]),
    types=st.tuples(*[st.sampled_from(BYTES)] * 3),
    sizes=st.tuples(*[st.integers(1, 40)] * 3),
    per_channel=st.booleans(),
    with_bias=st.booleans(),
    zero_points=st.sampled_from(["none", "any"]),
    seed=st.integers(0, 1000),
)


@settings(
    max_examples=settings().max_examples * 12 // 100,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
@given(PRODUCTS)
def test_products(product: Product) -> None:
    module, x = product.module()
    of_all_levels(module, x)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["dense", "matmul", "conv"])
def test_products_without_aligned_rows(kind: str) -> None:
    types = ("ui8", "i8", "ui8")
    module, x = Product(kind, types, (3, 20, 7), True, True, "any", 0).module()
    of_all_levels(module, x, levels=[1])


def test_products_are_exact_before_they_are_rounded() -> None:
    b = sw.Builder("main")
    x, w, bias = drawn("ui8", (6, 50)), drawn("i8", (9, 50)), drawn("i16", (9,))
    scales = RNG.uniform(0.01, 0.1, 9).astype("f4")
    y = b.quantized_dense(
        *(b.input("x", (6, 50), "ui8"), np.float32(0.5), np.uint8(128)),
        *(w, scales, np.int8(-5), np.float32(2.5), np.uint8(100), bias.astype("i4")),
    )
    b.output(y)
    total = (x.astype("i8") - 128) @ (w.astype("i8") + 5).T + bias
    exact = total * (np.float64(0.5) * scales / 2.5)
    assert np.abs(exact % 1 - 0.5).min() > 1e-5
    wanted = np.clip(np.rint(exact) + 100, 0, 255)
    np.testing.assert_array_equal(of_all_levels(b.module(), x), wanted)


def test_parameters_that_come_at_run_time() -> None:
    b = sw.Builder("main")
    f32 = [b.input(name, (), "f32") for name in ("xs", "ys")]
    x_zero, y_zero = b.input("xz", (), "ui8"), b.input("yz", (), "i8")
    x, w = b.input("x", (3, 10), "ui8"), b.input("w", (4, 10), "i8")
    ws, wz = b.input("ws", (4,), "f32"), b.input("wz", (4,), "i8")
    b.output(b.quantized_dense(x, f32[0], x_zero, w, ws, wz, f32[1], y_zero))
    scale = [np.array(v, "f4") for v in (0.1, 3.0)]
    zero = np.array(77, "u1"), np.array(-4, "i1")
    channels = RNG.uniform(0.1, 1, 4).astype("f4"), drawn("i8", (4,))
    arrays = drawn("ui8", (3, 10)), drawn("i8", (4, 10))
    of_all_levels(b.module(), *scale, *zero, *arrays, *channels)


# ONNX.


def model(
    nodes: list[onnx.NodeProto], x: np.ndarray, constants: dict[str, Any], *outputs: tuple[str, int]
) -> onnx.ModelProto:
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    graph = helper.make_graph(
        nodes,
        "quantised",
        [helper.make_tensor_value_info("x", kind, x.shape)],
        [helper.make_tensor_value_info(name, kind, None) for name, kind in outputs],
        [numpy_helper.from_array(np.asarray(v), name) for name, v in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])


F, U8, I8, I32 = TensorProto.FLOAT, TensorProto.UINT8, TensorProto.INT8, TensorProto.INT32
X = floats(2, 3, 8, 8)
Q = drawn("ui8", (2, 3, 8, 8))


@pytest.mark.parametrize(
    ("scale", "zero", "options"),
    [
        (np.float32(0.02), np.uint8(90), {}),
        (np.array([0.02], "f4"), np.array([90], "u1"), {}),
        (np.array([0.02, 0.03, 0.5], "f4"), np.array([9, 0, 255], "u1"), {}),
        (np.array([0.02, 0.03], "f4"), np.array([-9, 0], "i1"), {"axis": -4}),
        (np.float32(0.002), np.int16(-1000), {}),
        (np.float32(0.02), None, {"output_dtype": TensorProto.INT8}),
        (np.float32(0.02), None, {}),
    ],
)
def test_quantize_and_dequantize_linear(scale: Any, zero: Any, options: dict[str, int]) -> None:
    names = ["s"] if zero is None else ["s", "z"]
    back = {key: value for key, value in options.items() if key == "axis"}
    nodes = [
        helper.make_node("QuantizeLinear", ["x", *names], ["q"], **options),
        helper.make_node("DequantizeLinear", ["q", *names], ["y"], **back),
    ]
    constants = {"s": scale} | ({} if zero is None else {"z": zero})
    wanted = options.get("output_dtype", U8)
    kind = wanted if zero is None else helper.np_dtype_to_tensor_dtype(zero.dtype)
    as_onnx(model(nodes, X, constants, ("q", kind), ("y", F)), X, rtol=1e-6, atol=0)


@pytest.mark.parametrize("shape", [(8, 5), (3, 8, 5)])
@pytest.mark.parametrize("per_column", [False, True])
def test_qlinear_matmul(per_column: bool, shape: tuple[int, ...]) -> None:
    size = (5,) if per_column else ()
    constants = {
        "xs": np.float32(0.07),
        "xz": np.uint8(120),
        "b": drawn("i8", shape),
        "bs": RNG.uniform(0.01, 0.1, size).astype("f4"),
        "bz": drawn("i8", size),
        "ys": np.float32(1.7),
        "yz": np.int8(-7),
    }
    names = ["x", "xs", "xz", "b", "bs", "bz", "ys", "yz"]
    proto = model([helper.make_node("QLinearMatMul", names, ["y"])], Q, constants, ("y", I8))
    as_onnx(proto, Q, rtol=1e-6, atol=0)
    if per_column:
        of_all_levels(sw.from_onnx(proto), Q)


@pytest.mark.parametrize("options", [{}, {"pads": [1, 2, 0, 1], "strides": [2, 1]}])
def test_qlinear_conv(options: dict[str, Any]) -> None:
    constants = {
        "xs": np.float32(0.07),
        "xz": np.uint8(120),
        "w": drawn("ui8", (4, 3, 3, 2)),
        "ws": np.float32(0.03),
        "wz": np.uint8(130),
        "ys": np.float32(5.1),
        "yz": np.uint8(100),
        "b": np.arange(4, dtype="i4") * 1000,
    }
    names = ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz", "b"]
    node = helper.make_node("QLinearConv", names, ["y"], **options)
    proto = model([node], Q, constants, ("y", U8))
    as_onnx(proto, Q, rtol=1e-6, atol=0)
    if options:
        of_all_levels(sw.from_onnx(proto), Q)


@pytest.mark.parametrize("zero_points", [[], ["az"], ["az", "bz"]])
def test_matmul_integer(zero_points: list[str]) -> None:
    constants = {"b": drawn("i8", (8, 5)), "az": np.uint8(13), "bz": drawn("i8", (5,))}
    used = {name: constants[name] for name in ("b", *zero_points)}
    node = helper.make_node("MatMulInteger", ["x", "b", *zero_points], ["y"])
    proto = model([node], Q, used, ("y", I32))
    as_onnx(proto, Q)
    if "bz" in used:
        of_all_levels(sw.from_onnx(proto), Q)


def test_matmul_integer_with_zero_points_of_rows() -> None:
    constants = {"b": drawn("ui8", (8, 5)), "az": drawn("ui8", (6,))}
    x = drawn("ui8", (6, 8))
    node = helper.make_node("MatMulInteger", ["x", "b", "az"], ["y"])
    got = of_all_levels(sw.from_onnx(model([node], x, constants, ("y", I32))), x)
    left = x.astype("i4") - constants["az"][:, None].astype("i4")
    np.testing.assert_array_equal(got, left @ constants["b"].astype("i4"))


@pytest.mark.parametrize("options", [{}, {"pads": [1, 1, 1, 1]}])
def test_conv_integer(options: dict[str, Any]) -> None:
    constants = {"w": drawn("ui8", (4, 3, 3, 2)), "xz": np.uint8(9), "wz": np.uint8(2)}
    node = helper.make_node("ConvInteger", ["x", "w", "xz", "wz"], ["y"], **options)
    module = sw.from_onnx(model([node], Q, constants, ("y", I32)))
    got = of_all_levels(module, Q) if options else module.run_reference(Q)
    wide_arrays = [Q.astype("f8") - 9, constants["w"].astype("f8") - 2]
    plain = helper.make_node("Conv", ["x", "w"], ["y"], **options)
    x, w = wide_arrays
    wide = model([plain], x, {"w": w}, ("y", TensorProto.DOUBLE))
    np.testing.assert_array_equal(got, onnx_results(wide, x)[0])


def test_dynamic_quantize_linear() -> None:
    node = helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"])
    module = sw.from_onnx(model([node], X, {}, ("q", U8), ("s", F), ("z", U8)))
    exes = [sw.compile(module, threads=1, opt_level=level) for level in LEVELS]
    for x in (X, np.abs(X), -np.abs(X), 0 * X):
        span = max(x.max(), np.float32(0)) - min(x.min(), np.float32(0))
        scale = span / np.float32(255) if span else np.float32(1)
        zero = np.rint(-min(x.min(), np.float32(0)) / scale)
        for exe in exes:
            q, s, z = exe(x)
            # graph-simplify computes span / 255 as span * (1 / 255), which rounds once more.
            np.testing.assert_allclose(s, scale, rtol=2e-7)
            assert z == zero
            np.testing.assert_array_equal(q, np.clip(np.rint(x / s) + zero, 0, 255))


@pytest.mark.parametrize(
    ("node", "constants", "message"),
    [
        (
            helper.make_node("QuantizeLinear", ["x", "s"], ["y"], axis=2),
            {"s": np.ones((2, 3, 2, 8), "f4")},
            "quantisation in blocks is not supported without block_size",
        ),
        (
            helper.make_node("QuantizeLinear", ["x", "s"], ["y"], axis=2, block_size=9),
            {"s": np.ones((2, 3, 2, 8), "f4")},
            "the blocks do not cover x, expected 1, got 2",
        ),
        (
            helper.make_node("QuantizeLinear", ["x", "s"], ["y"], axis=7),
            {"s": np.ones(3, "f4")},
            "axis out of range, expected -4 <= axis < 4, got 7",
        ),
        (
            helper.make_node("QuantizeLinear", ["x", "s", "z"], ["y"]),
            {"s": np.ones(3, "f4"), "z": np.uint8(3)},
            "scale and zero point differ, expected rank 1, got 0",
        ),
        (
            helper.make_node("QuantizeLinear", ["x", "s", "z"], ["y"], output_dtype=I8),
            {"s": np.float32(1), "z": np.uint8(3)},
            "output_dtype differs from the zero point, expected uint8, got int8",
        ),
        (
            helper.make_node("QuantizeLinear", ["x", "s"], ["y"], output_dtype=I32),
            {"s": np.float32(1)},
            "not supported for int32",
        ),
        (
            helper.make_node("QuantizeLinear", ["x", "s"], ["y"]),
            {"s": np.ones(4, "f4")},
            "length of scale differs from axis 1 of x, expected 3, got 4",
        ),
    ],
)
def test_refused(node: onnx.NodeProto, constants: dict[str, Any], message: str) -> None:
    with pytest.raises(sw.StepwellError, match=message):
        sw.from_onnx(model([node], X, constants, ("y", U8)))
