"""DFT, STFT and MelWeightMatrix of ONNX, against NumPy and against ONNX's reference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto
from onnx.helper import make_graph, make_model, make_node, make_opsetid, make_tensor_value_info
from onnx.numpy_helper import from_array

import stepwell as sw

from ..harness import close, floats, onnx_results


def model(
    operator: str,
    inputs: dict[str, np.ndarray | Sequence[int | str]],
    constants: dict[str, Any],
    operands: Sequence[str],
    result: Sequence[int | str | None],
    opset: int = 20,
    **attributes: Any,
) -> onnx.ModelProto:
    kinds = {np.dtype(np.float64): TensorProto.DOUBLE, np.dtype(np.int64): TensorProto.INT64}
    infos = [
        make_tensor_value_info(name, kinds.get(x.dtype, TensorProto.FLOAT), x.shape)
        if isinstance(x, np.ndarray)
        else make_tensor_value_info(name, TensorProto.FLOAT, x)
        for name, x in inputs.items()
    ]
    weights = [from_array(np.asarray(value), name) for name, value in constants.items()]
    node = make_node(operator, operands, ["y"], name="n", **attributes)
    kind = TensorProto.UNDEFINED if not result else TensorProto.FLOAT
    y = make_tensor_value_info("y", kind, result) if result else onnx.ValueInfoProto(name="y")
    graph = make_graph([node], "g", infos, [y], weights)
    return make_model(graph, opset_imports=[make_opsetid("", opset)])


def node_as_onnx(
    program: onnx.ModelProto, *inputs: np.ndarray, tolerance: float = 1e-5, compiled: bool = False
) -> None:
    """Compare one result, whose type the evaluator of onnx does not always keep."""
    (want,), module = onnx_results(program, *inputs), sw.from_onnx(program)
    run = sw.compile(module, threads=1) if compiled else module.run_reference
    got = run(*inputs)
    close(got, want.astype(got.dtype), 0, tolerance, scaled=True)


def signal(*shape: int, dtype: Any = np.float64) -> np.ndarray:
    return floats(*shape, dtype=dtype)


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("options", [{}, {"onesided": 1}, {"inverse": 1}])
def test_transforms(parts: int, options: dict[str, int]) -> None:
    if parts == 2 and "onesided" in options:
        options = {"onesided": 1, "inverse": 1}
    for size in (1, 2, 7, 10):
        x = signal(2, size, 3, parts)
        for wanted in (None, 6, 9):
            given: dict[str, Any] = {"axis": np.int64(1)}
            if wanted is not None:
                given["length"] = np.int64(wanted)
            elif options == {"onesided": 1, "inverse": 1} and size == 1:
                continue
            operands = ["x", "length" if wanted else "", "axis"]
            node_as_onnx(model("DFT", {"x": x}, given, operands, (), **options), x, tolerance=1e-12)


@pytest.mark.parametrize("size", [520, 1018, 4096, 521])
def test_long_transforms(size: int) -> None:
    """Of 520 = 20 * 26, 1018 = 2 * 509, 4096 = 64 * 64 and 521 points, which is prime."""
    x = signal(2, size, 2)
    for options in ({}, {"inverse": 1}):
        node_as_onnx(model("DFT", {"x": x}, {}, ["x"], (), **options), x, tolerance=1e-12)


def test_there_and_back() -> None:
    x = signal(3, 1000, 1)
    program = model("DFT", {"x": x}, {}, ["x"], (), onesided=1)
    back = make_node("DFT", ["y"], ["z"], onesided=1, inverse=1)
    program.graph.node.append(back)
    program.graph.output[0].name = "z"
    node_as_onnx(program, x, tolerance=1e-12, compiled=True)


def test_an_axis_in_the_older_form_and_one_that_comes_at_run_time() -> None:
    x = signal(2, 8, 8, 1)
    node_as_onnx(model("DFT", {"x": x}, {}, ["x"], (), opset=17, axis=2), x)
    program = model("DFT", {"x": x, "axis": np.array(0)}, {}, ["x", "", "axis"], (2, 8, 8, 2))
    program.graph.output[0].type.tensor_type.elem_type = TensorProto.DOUBLE
    exe = sw.compile(sw.from_onnx(program), threads=1)
    for axis in (0, 1, 2, -2, -3):
        parts = np.fft.fft(x[..., 0], axis=axis if axis >= 0 else axis + 1)
        want = np.stack([parts.real, parts.imag], -1)
        np.testing.assert_allclose(exe(x, np.array(axis)), want, atol=1e-12)
    with pytest.raises(sw.InputError, match="axis out of range, got 3"):
        exe(x, np.array(3))


def test_any_number_of_signals() -> None:
    program = model("DFT", {"x": ["n", 16, "m", 1]}, {"axis": np.int64(1)}, ["x", "", "axis"], ())
    exe = sw.compile(sw.from_onnx(program), threads=1)
    x = signal(3, 16, 2, 1, dtype=np.float32)
    parts = np.fft.fft(x[..., 0], axis=1)
    np.testing.assert_allclose(exe(x), np.stack([parts.real, parts.imag], -1), atol=1e-5)


def test_frames_of_a_signal() -> None:
    x, window = signal(2, 130, 1), np.hanning(16)
    for step in (1, 7):
        given = {"step": np.int64(step), "window": window}
        node_as_onnx(model("STFT", {"x": x}, given, ["x", "step", "window"], (), 17), x)
        given = {"step": np.int64(step), "length": np.int64(9)}
        operands = ["x", "step", "", "length"]
        node_as_onnx(model("STFT", {"x": x}, given, operands, (), 17, onesided=0), x)
    z = signal(1, 20, 2)
    given = {"step": np.int64(4), "window": np.ones(6)}
    node_as_onnx(model("STFT", {"x": z}, given, ["x", "step", "window"], (), 17, onesided=0), z)


def test_a_step_that_comes_at_run_time() -> None:
    x, window = signal(1, 40, 1, dtype=np.float32), np.ones(8, np.float32)
    inputs = {"x": x, "step": np.array(4)}
    program = model("STFT", inputs, {"window": window}, ["x", "step", "window"], (1, 5, 5, 2), 17)
    exe = sw.compile(sw.from_onnx(program), threads=1)
    frames = np.stack([np.fft.rfft(x[0, n : n + 8, 0]) for n in range(0, 40, 8)])
    want = np.stack([frames.real, frames.imag], -1)[None]
    np.testing.assert_allclose(exe(x, np.array(8)), want, atol=1e-5)
    with pytest.raises(sw.InputError, match="out of range"):
        exe(x, np.array(9))


@pytest.mark.parametrize("onesided", [0, 1])
def test_a_length_of_frames_that_comes_at_run_time(onesided: int) -> None:
    """Of halves of spectra the length is one of two, of which one fits the whole signal."""
    inputs = {"x": signal(1, 32, 1, dtype=np.float32), "length": np.array(0)}
    count, operands = 5 if onesided else 8, ["x", "step", "", "length"]
    given = {"step": np.int64(23)}
    program = model("STFT", inputs, given, operands, (1, 2, count, 2), 17, onesided=onesided)
    exe = sw.compile(sw.from_onnx(program), threads=1)
    for length in (8, 9)[: 1 + onesided]:
        x = inputs["x"][0, :, 0]
        found = np.stack([np.fft.fft(x[n : n + length])[:count] for n in (0, 23)])
        want = np.stack([found.real, found.imag], -1)[None]
        np.testing.assert_allclose(exe(inputs["x"], np.array(length)), want, atol=1e-4)
    with pytest.raises(sw.InputError, match="frame_length 7 does not give the declared shape"):
        exe(inputs["x"], np.array(7))
    if onesided:
        short = {**inputs, "x": inputs["x"][:, :31]}
        program = model("STFT", short, given, operands, (1, 2, count, 2), 17, onesided=onesided)
        exe = sw.compile(sw.from_onnx(program), threads=1)
        with pytest.raises(sw.InputError, match="frame_length 9 does not give the declared"):
            exe(np.ascontiguousarray(short["x"]), np.array(9))
    program = model("STFT", inputs, given, operands, (), 17, onesided=onesided)
    with pytest.raises(sw.ImportModelError, match="without a declared shape"):
        sw.from_onnx(program)


def test_mel_scales() -> None:
    for numbers in (
        (8, 16, 8192, 0.0, 4096.0),
        (80, 400, 16000, 20.0, 8000.0),
        (3, 5, 9, 0.0, 2.0),
    ):
        *sizes, low, high = numbers
        values = [*map(np.int64, sizes), np.float32(low), np.float32(high)]
        given = dict(zip("abcde", values, strict=True))
        program = model("MelWeightMatrix", {}, given, list("abcde"), (), 17)
        node_as_onnx(program, tolerance=1e-6)
    names = {"b": np.array(16), "c": np.array(8192)}
    given = {"a": np.int64(8), "d": np.float32(0), "e": np.float32(4096)}
    program = model("MelWeightMatrix", names, given, list("abcde"), (9, 8), 17)
    node_as_onnx(program, *names.values(), tolerance=1e-6, compiled=True)


REFUSED = {
    "operand is no signal": ("DFT", (2, 8, 3), {}, ["x"], {}),
    "axis out of range": ("DFT", (2, 8, 1), {"axis": np.int64(2)}, ["x", "", "axis"], {}),
    "the transform has no points": ("DFT", (2, 8, 1), {"n": np.int64(0)}, ["x", "n"], {}),
    "2053 points, which is a prime": ("DFT", (1, 2053, 1), {}, ["x"], {}),
    "symbolic dimension n": ("DFT", (1, "n", 1), {}, ["x"], {}),
    "the signal has the wrong rank": ("STFT", (8, 1), {"s": np.int64(1)}, ["x", "s"], {}),
    "the window has the wrong shape": (
        "STFT",
        (1, 8, 1),
        {"s": np.int64(1), "w": np.ones((2, 2), np.float32)},
        ["x", "s", "w"],
        {},
    ),
    "frame_step >= 1": ("STFT", (1, 8, 1), {"s": np.int64(0)}, ["x", "s"], {}),
    "there is no frame": (
        "STFT",
        (1, 8, 1),
        {"s": np.int64(1), "w": np.ones(9, np.float32)},
        ["x", "s", "w"],
        {},
    ),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_is_refused(message: str) -> None:
    operator, shape, given, operands, options = REFUSED[message]
    program = model(operator, {"x": shape}, given, operands, (), **options)
    with pytest.raises(sw.ImportModelError, match=message) as error:
        sw.from_onnx(program)
    assert 'node "n"' in str(error.value)
