"""Recurrent layers, built and read from ONNX, against NumPy."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.helper import make_graph, make_model, make_node, make_opsetid, make_tensor_value_info
from onnx.numpy_helper import from_array

import stepwell as sw
from stepwell.core.errors import ImportModelError
from stepwell.driver.compilation import Compilation
from stepwell.driver.request import Request

from ..harness import cases, close, floats
from .recurrent import Layer

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
DIRECTIONS = {"forward": 1, "reverse": 1, "bidirectional": 2}
WIDTH, HIDDEN = 3, 5


def weights(kind: str, directions: int) -> list[np.ndarray]:
    rows = GATES[kind] * HIDDEN
    shapes = [(directions, rows, WIDTH), (directions, rows, HIDDEN), (directions, 2 * rows)]
    return [floats(*shape) / 2 for shape in shapes]


def built(kind: str, steps: int | str, batch: int | str, **options: Any) -> sw.Module:
    """A layer whose inputs are x and, if `options` has none, nothing else."""
    b = sw.Builder("main")
    x = b.input("x", (steps, batch, WIDTH), "f32")
    names = [name for name in ("lengths", "h", "c") if options.get(name) is True]
    count = DIRECTIONS.get(options.get("direction", "forward"), 1)
    for name in names:
        lengths = name == "lengths"
        shape = (batch,) if lengths else (count, batch, HIDDEN)
        options[name] = b.input(name, shape, "i32" if lengths else "f32")
    for number, result in enumerate(getattr(b, kind.lower())(x, **options)):
        b.output(result, name=f"y{number}")
    return b.module()


TWO_WAYS = [("LSTM", "bidirectional"), ("GRU", "reverse")]


@pytest.mark.parametrize(
    "layer",
    cases([*TWO_WAYS, ("LSTM", "forward"), ("RNN", "bidirectional")], TWO_WAYS),
    ids="-".join,
)
def test_a_layer_of_symbolic_sizes(layer: tuple[str, str]) -> None:
    """Sequences of different lengths, none and all of the steps, and first states."""
    kind, direction = layer
    count = DIRECTIONS[direction]
    w, r, bias = weights(kind, count)
    states = ["h", "c"][: 2 if kind == "LSTM" else 1]
    given: dict[str, Any] = {"lengths": True} | dict.fromkeys(states, True)
    module = built(kind, "t", "n", w=w, r=r, bias=bias, direction=direction, **given)
    programs = [sw.compile(module, threads=2, verify_each=kind == "GRU"), module.run_reference]
    for steps, lengths in ((4, [4, 0, 2]), (1, [1]), (0, [0, 0])):
        n = np.array(lengths, np.int32)
        first = [floats(count, len(n), HIDDEN) for _ in states]
        x = floats(steps, len(n), WIDTH)
        expected = Layer(kind, w, r, bias, direction, n, first).run(x)
        for program in programs:
            close(program(x, n, *first), expected, atol=2e-6)


@pytest.mark.parametrize("layer", cases(TWO_WAYS, TWO_WAYS[1:]), ids="-".join)
def test_many_rows_multiply_the_input_in_each_step(layer: tuple[str, str], all_tests: bool) -> None:
    """Up to 15 rows do it before the loop, and so does a batch of any size."""
    kind, direction = layer
    count = DIRECTIONS[direction]
    w, r, bias = weights(kind, count)
    for batch, inside in ((17, True), (16, True), (15, False), ("n", False)):
        given: dict[str, Any] = {"w": w, "r": r, "bias": bias, "direction": direction}
        module = built(kind, 3, batch, lengths=True, **given)
        before = str(module).split("graph.loop")[0]
        assert ("graph.matmul" in before) != inside
        if batch in (16, 15):
            continue
        lengths = np.arange(17, dtype=np.int32) % 4
        x, first = floats(3, 17, WIDTH), [np.zeros((count, 17, HIDDEN), np.float32)] * 2
        expected = Layer(kind, w, r, bias, direction, lengths, first[: 2 if kind == "LSTM" else 1])
        is_compiled = all_tests or batch == 17
        exes = [sw.compile(module, threads=2)] if is_compiled else []
        for program in (*exes, module.run_reference):
            close(program(x, lengths), expected.run(x), atol=2e-6)


def test_states_begin_with_zeros(all_tests: bool) -> None:
    """And sizes may be numbers, or one of them may."""
    w, r, _ = weights("RNN", 1)
    for sizes in ((3, 2), ("t", 2), (3, "n"), ("t", 1), (1, "n"), ("t", "n")):
        x = floats(*(n if isinstance(n, int) else 2 for n in sizes), WIDTH)
        expected = Layer("RNN", w, r).run(x)
        module = built("RNN", *sizes, w=w, r=r)
        close(module.run_reference(x), expected, atol=2e-6)
        if sizes in ((3, "n"), ("t", 1)) or all_tests:
            close(sw.compile(module, threads=1)(x), expected, atol=2e-6)


def test_weights_may_be_inputs() -> None:
    b, arrays = sw.Builder("main"), [floats(4, 2, WIDTH), *weights("GRU", 1)]
    values = [b.input(f"x{n}", a.shape, "f32") for n, a in enumerate(arrays)]
    for number, result in enumerate(b.gru(*values, linear_before_reset=True)):
        b.output(result, name=f"y{number}")
    expected = Layer("GRU", *arrays[1:], linear_before_reset=True).run(arrays[0])
    close(sw.compile(b.module(), threads=1)(*arrays), expected, atol=2e-6)


def test_double_precision() -> None:
    b = sw.Builder("main")
    x = b.input("x", (6, 1, WIDTH), "f64")
    w, r, bias = weights("RNN", 1)
    y, h = b.rnn(x, w, r, bias, activations=[b.relu], clip=0.5)
    b.output(y, name="y")
    b.output(h, name="h")
    given = floats(6, 1, WIDTH).astype(np.float64)
    expected = Layer("RNN", w, r, bias, functions=[relu], clip=0.5).run(given)
    close(sw.compile(b.module(), threads=1)(given), expected, atol=2e-6)


def relu(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0)


@pytest.mark.parametrize(
    ("kind", "options", "kernels"),
    [
        ("LSTM", {"c": True}, ["matmul"]),
        ("GRU", {}, ["matmul", "mul", "matmul"]),
        ("GRU", {"linear_before_reset": True}, ["matmul"]),
        ("RNN", {}, ["matmul_add_tanh"]),
    ],
)
def test_a_step_is_few_kernels(kind: str, options: dict[str, Any], kernels: list[str]) -> None:
    """The input is multiplied in front of the loop, which takes packed weights as they are."""
    w, r, bias = weights(kind, 1)
    module = built(kind, "t", "n", w=w, r=r, bias=bias, h=True, **options)
    compilation = Compilation.of(Request(module))
    text = compilation.text("kernels")
    before, step, after = re.split(r"graph\.loop|graph\.yield", text, maxsplit=2)
    assert len(re.findall(r"call_dps @\w*matmul", before)) == 1
    assert "matmul" not in after.partition("loop.kernel")[0]
    called = re.findall(r"call_dps @fused_(\w+)", step)
    assert len(called) == len(kernels)
    assert all(part in name or "more" in name for part, name in zip(kernels, called, strict=True))
    loop = compilation.text("buffers").partition("scf.for")[2].partition("scf.yield")[0]
    assert set(re.findall(r"\b(?:rt|memref|scf)\.\w+", loop)) == {"rt.slice", "rt.call"}


W, R, B = weights("LSTM", 1)
ERRORS = [
    ({"w": W[:, :, :2]}, "w has the wrong shape, expected (1, 20, 3), got (1, 20, 2)"),
    ({"r": R[0]}, "r has the wrong shape, expected 3 static sizes, got (20, 5)"),
    ({"direction": "both"}, "unknown direction, expected forward, reverse, bidirectional"),
    ({"direction": "bidirectional"}, "r has the wrong shape, expected (2, 20, 5)"),
    ({"bias": B[:, :20]}, "bias has the wrong shape, expected (1, 40), got (1, 20)"),
    ({"h": floats(2, 2, 5)}, "h has the wrong shape, expected (1, 2, 5), got (2, 2, 5)"),
    ({"lengths": np.ones(3, np.int32)}, "lengths has the wrong shape, expected (2,), got (3,)"),
    ({"activations": [abs]}, "wrong number of activations, expected 3, got 1"),
]


@pytest.mark.parametrize(("options", "message"), ERRORS)
def test_arguments_that_do_not_fit(options: dict[str, Any], message: str) -> None:
    with pytest.raises(sw.InputError, match=re.escape(f"lstm: {message}")):
        built("LSTM", 4, 2, **({"w": W, "r": R} | options))


def test_a_sequence_has_three_dimensions() -> None:
    b = sw.Builder("main")
    with pytest.raises(sw.InputError, match="gru: x has the wrong rank, expected 3, got 2"):
        b.gru(b.input("x", (4, WIDTH), "f32"), W, R)


# ONNX


def read(
    kind: str,
    arrays: Sequence[np.ndarray | None],
    sizes: Sequence[int | str] = ("t", "n", WIDTH),
    results: Sequence[str] = ("y", "h"),
    opset: int = 14,
    **attributes: Any,
) -> sw.Module:
    """A model of one node, whose operands beyond x are weights; `""` is a result not wanted."""
    names = ["" if a is None else f"w{n}" for n, a in enumerate(arrays)]
    node = make_node(kind, ["x", *names], list(results), name="layer", **attributes)
    kept = [from_array(a, f"w{n}") for n, a in enumerate(arrays) if a is not None]
    inputs = [make_tensor_value_info("x", onnx.TensorProto.FLOAT, sizes)]
    outputs = [make_tensor_value_info(n, onnx.TensorProto.FLOAT, None) for n in results if n]
    graph = make_graph([node], "main", inputs, outputs, kept)
    opsets = [make_opsetid("", opset)]
    return sw.from_onnx(make_model(graph, opset_imports=opsets, ir_version=9))


FUNCTIONS: dict[str, tuple[float | None, float | None, Any]] = {
    "Relu": (None, None, relu),
    "Tanh": (None, None, np.tanh),
    "Sigmoid": (None, None, lambda x: 1 / (1 + np.exp(-x))),
    "Affine": (0.5, 0.25, lambda x: 0.5 * x + 0.25),
    "LeakyRelu": (0.1, None, lambda x: np.where(x < 0, 0.1 * x, x)),
    "ThresholdedRelu": (0.3, None, lambda x: np.where(x > 0.3, x, 0)),
    "ScaledTanh": (0.7, 1.5, lambda x: 0.7 * np.tanh(1.5 * x)),
    "HardSigmoid": (0.3, 0.4, lambda x: np.clip(0.3 * x + 0.4, 0, 1)),
    "Elu": (0.6, None, lambda x: np.where(x < 0, 0.6 * (np.exp(x) - 1), x)),
    "Softsign": (None, None, lambda x: x / (1 + np.abs(x))),
    "softPLUS": (None, None, lambda x: np.log1p(np.exp(x))),
    # The lists are used up: the usual parameters follow.
    "hardsigmoid": (None, None, lambda x: np.clip(0.2 * x + 0.5, 0, 1)),
}


def test_all_activations(all_tests: bool) -> None:
    """Two directions of three activations each, in two models."""
    names = list(FUNCTIONS)
    w, r, bias = weights("LSTM", 2)
    x = floats(3, 2, WIDTH)
    for chosen in (names[:6], names[6:]):
        found = [FUNCTIONS[name] for name in chosen]
        alpha, beta = ([f[n] for f in found if f[n] is not None] for n in (0, 1))
        module = read(
            "LSTM",
            [w, r, bias],
            direction="bidirectional",
            activations=chosen,
            activation_alpha=alpha,
            activation_beta=beta,
        )
        functions = [f[2] for f in found]
        expected = Layer("LSTM", w, r, bias, "bidirectional", functions=functions).run(x)
        close(module.run_reference(x), expected[:2], atol=2e-6)
        if all_tests:
            close(sw.compile(module, threads=1)(x), expected[:2], atol=2e-6)


def test_lstm_with_everything(all_tests: bool) -> None:
    w, r, bias = weights("LSTM", 2)
    states, peepholes = [floats(2, 3, HIDDEN) for _ in "hc"], floats(2, 3 * HIDDEN)
    lengths, x = np.array([2, 4, 1], np.int32), floats(4, 3, WIDTH)
    operands = [w, r, bias, lengths, *states, peepholes]
    attributes = {"direction": "bidirectional", "clip": 0.4, "hidden_size": HIDDEN}
    for forget in (0, 1):
        layer = Layer(
            "LSTM", w, r, bias, "bidirectional", lengths, states, peepholes, (), 0.4, bool(forget)
        )
        results = ["y", "h", "c"]
        options = attributes | {"input_forget": forget}
        module = read("LSTM", operands, ("t", 3, WIDTH), results, opset=7, **options)
        close(module.run_reference(x), layer.run(x), atol=2e-6)
        if forget or all_tests:
            close(sw.compile(module, threads=1)(x), layer.run(x), atol=2e-6)


@pytest.mark.parametrize("linear", [0, 1])
def test_gru_with_a_batch_in_front(linear: int, all_tests: bool) -> None:
    w, r, bias = weights("GRU", 2)
    first, lengths = floats(2, 3, HIDDEN), np.array([4, 1, 3], np.int32)
    module = read(
        "GRU",
        [w, r, bias, lengths, first.transpose(1, 0, 2)],
        (3, "t", WIDTH),
        direction="bidirectional",
        linear_before_reset=linear,
        layout=1,
    )
    x = floats(4, 3, WIDTH)
    layer = Layer("GRU", w, r, bias, "bidirectional", lengths, [first])
    layer.linear_before_reset = bool(linear)
    y, h = layer.run(x)
    expected = [y.transpose(2, 0, 1, 3), h.transpose(1, 0, 2)]
    given = x.transpose(1, 0, 2)
    close(module.run_reference(given), expected, atol=2e-6)
    if linear or all_tests:
        close(sw.compile(module, threads=1)(given), expected, atol=2e-6)


def test_results_are_optional() -> None:
    w, r, bias = weights("LSTM", 1)
    x = floats(3, 2, WIDTH)
    expected = Layer("LSTM", w, r, bias).run(x)
    for results in (["y"], ["", "h"], ["", "", "c"]):
        module = read("LSTM", [w, r, bias], results=results)
        close(module.run_reference(x), expected[len(results) - 1], atol=2e-6)


V = weights("GRU", 1)
REFUSED = [
    ({"direction": "up"}, V, 'attribute "direction" is unknown'),
    ({"hidden_size": 4}, V, 'attribute "hidden_size" does not fit, expected 5, got 4'),
    ({"activations": ["Tanh"]}, V, "wrong number of activations, expected 2, got 1"),
    ({"activations": ["Tanh", "Sine"]}, V, "activation Sine is not supported"),
    ({}, [V[0][0], V[1]], "operand 1 has the wrong rank, expected 3, got 2"),
    ({}, [V[0], V[1][:, :9]], "operand 2 has the wrong shape"),
    ({}, [*V[:2], V[2].astype(float)], "operand 3 has the wrong element type, expected float32"),
]


@pytest.mark.parametrize(("attributes", "arrays", "message"), REFUSED)
def test_nodes_that_are_refused(
    attributes: dict[str, Any], arrays: list[np.ndarray], message: str
) -> None:
    with pytest.raises(ImportModelError, match=re.escape(message)) as error:
        read("GRU", arrays, **attributes)
    assert "layer" in str(error.value)


def test_sizes_that_are_fixed_in_one_place_only() -> None:
    lengths = np.array([1, 1], np.int32)
    with pytest.raises(ImportModelError, match=r"operand 4 is fixed: \[2\], that of"):
        read("GRU", [*V, lengths])
    with pytest.raises(sw.InputError, match=r"gru: the batch of x is symbolic, .* expected 2, got"):
        built("GRU", "t", "n", w=V[0], r=V[1], lengths=lengths)
    # A state whose batch is symbolic has to fit at each call.
    b, x = sw.Builder("main"), floats(3, 2, WIDTH)
    first = b.input("h", (1, "n", HIDDEN), "f32")
    b.output(b.gru(b.input("x", x.shape, "f32"), V[0], V[1], h=first)[0])
    exe, state = sw.compile(b.module(), threads=1), floats(1, 2, HIDDEN)
    expected = Layer("GRU", V[0], V[1], states=[state]).run(x)[0]
    close(exe(state, x), expected, atol=2e-6)
    with pytest.raises(sw.StepwellError):
        exe(floats(1, 3, HIDDEN), x)


@pytest.mark.parametrize("kind", cases(["GRU", "LSTM"], ["LSTM"]))
def test_sizes_of_weights_and_inputs_that_are_symbolic(kind: str, all_tests: bool) -> None:
    """Rows are a number of gates times that of hidden units, which an attribute may have alone."""
    w, r = weights(kind, 1)[:2]
    x = floats(3, 2, WIDTH)
    expected = Layer(kind, w, r).run(x)[0]
    f32, rows = onnx.TensorProto.FLOAT, w.shape[1]

    def made(*shapes: Sequence[int | str], **attributes: int) -> sw.Module:
        node = make_node(kind, ["x", "w", "r"], ["y"], name="layer", **attributes)
        infos = [make_tensor_value_info(n, f32, s) for n, s in zip("xwr", shapes, strict=True)]
        y = make_tensor_value_info("y", f32, [None] * 4)
        graph = make_graph([node], "g", infos, [y])
        return sw.from_onnx(make_model(graph))

    own = (1, rows, HIDDEN)
    for shapes in (
        (("t", "n", "i"), (1, rows, WIDTH), own),
        (("t", "n", "i"), (1, rows, "i"), own),
        (("t", "n", "i"), (1, rows, "k"), own),
        (("t", 2, WIDTH), (1, "g", "k"), (1, rows, "h")),
        (("t", "n", "i"), ("d", "g", "i"), ("d", "g", "h")),
    ):
        module = made(*shapes, hidden_size=HIDDEN)
        close(module.run_reference(x, w, r), expected, atol=2e-6)
        if all_tests or shapes[1][0] == "d":
            exe = sw.compile(module, threads=1)
            close(exe(x, w, r), expected, atol=2e-6)
    with pytest.raises(sw.InputError, match='dimension "g" differs from that of "w"'):
        exe(x, w[:, :-1], r)
    with pytest.raises(ImportModelError, match="a symbolic number of hidden units; closest"):
        made(("t", "n", "i"), (1, "g", "i"), (1, "g", "h"))
