"""Strings in models of ONNX: numbers in a table, which callers see as strings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.helper import (
    make_graph,
    make_model,
    make_node,
    make_opsetid,
    make_tensor,
    make_tensor_value_info,
)

import stepwell as sw

from ..harness import import_level

STRING, FLOAT, INT = onnx.TensorProto.STRING, onnx.TensorProto.FLOAT, onnx.TensorProto.INT64
COLOURS = make_tensor("colours", STRING, [3], [b"red", b"green", b"blue"])
X = np.array([["red", "blue"], ["black", "green"]])


def model(
    nodes: Sequence[onnx.NodeProto], inputs: dict[str, Any], outputs: dict[str, int]
) -> sw.Module:
    graph = make_graph(
        nodes,
        "g",
        [make_tensor_value_info(name, kind, shape) for name, (kind, shape) in inputs.items()],
        [make_tensor_value_info(name, kind, None) for name, kind in outputs.items()],
        [COLOURS],
    )
    imports = [make_opsetid("", 19), make_opsetid("ai.onnx.ml", 3)]
    return sw.from_onnx(make_model(graph, opset_imports=imports))


def ml(operator: str, inputs: Sequence[str], outputs: Sequence[str], **facts: Any) -> Any:
    return make_node(operator, inputs, outputs, "n", domain="ai.onnx.ml", **facts)


def calls(module: sw.Module, folder: Path) -> list[Callable[..., Any]]:
    """All that run a program: the reference, compiled code, a stage, a file."""
    exe = sw.compile(module, threads=1, opt_level=import_level())
    exe.save(folder / "m.stepwell")
    again = sw.from_mlir(module.text(), weights=module.weights)
    stage = lambda *args: exe.run_at("buffers", *args)  # noqa: E731
    return [module.run_reference, exe, stage, sw.load(folder / "m.stepwell"), again.run_reference]


def test_labels_of_a_classifier(tmp_path: Path) -> None:
    facts = {"coefficients": np.eye(3).ravel().tolist(), "intercepts": [0.0] * 3}
    names = ["a", "b", "ü"]
    node = ml("LinearClassifier", ["x"], ["l", "s"], classlabels_strings=names, **facts)
    module = model([node], {"x": (FLOAT, ["n", 3])}, {"l": STRING, "s": FLOAT})
    assert [spec.dtype for spec in module.outputs] == ["i64", "f32"]
    assert module.outputs[0].labels == ("red", "green", "blue", *names)
    x = np.array([[1, 0, 3], [5, 2, 1], [0, 2, 1], [0, 0, 4]], np.float32)
    for call in calls(module, tmp_path):
        label, scores = call(x)
        assert label.tolist() == ["ü", "a", "b", "ü"]
        np.testing.assert_array_equal(scores, x)
        assert call(x[:0])[0].shape == (0,)
    numbers, scores = np.zeros(4, np.int64), np.zeros((4, 3), np.float32)
    sw.compile(module)(x, out=(numbers, scores))
    assert numbers.tolist() == [5, 3, 4, 5]


def test_arrays_for_results_that_are_strings() -> None:
    node = ml("LabelEncoder", ["x"], ["w"], keys_int64s=[7], values_strings=["seven"])
    relu = make_node("Relu", ["z"], ["y"])
    inputs = {"x": (INT, ["n"]), "z": (FLOAT, ["n"])}
    exe = sw.compile(model([node, relu], inputs, {"w": STRING, "y": FLOAT}))
    x, z = np.array([7, 8]), np.array([-1, 2], np.float32)
    texts, relus = np.empty(2, object), np.empty(2, np.float32)
    got = exe(x, z, out=(texts, relus))
    assert got[0] is texts
    assert got[1] is relus
    assert (texts.tolist(), relus.tolist()) == (["seven", "_Unused"], [0, 2])
    names, _ = exe(x, z, out=(None, relus))
    assert names.tolist() == ["seven", "_Unused"]
    for wrong, fact in (
        (np.empty(2, "U7"), "wrong dtype, expected int64, or object for strings, got <U7"),
        (np.empty(1, object), r"wrong shape, expected \[2\], got \[1\]"),
        (np.empty(4, object)[::2], "not contiguous"),
    ):
        with pytest.raises(sw.InputError, match=f'output "w": {fact}'):
            exe(x, z, out=(wrong, None))


def test_strings_that_are_moved_and_compared(tmp_path: Path) -> None:
    nodes = [
        make_node("Transpose", ["x"], ["t"]),
        make_node("Equal", ["t", "colours"], ["same"]),
        make_node("Where", ["same", "t", "colours"], ["w"]),
        make_node("Gather", ["w", "i"], ["y"], axis=0),
    ]
    inputs = {"x": (STRING, [3, "n"]), "i": (INT, ["m"])}
    module = model(nodes, inputs, {"y": STRING, "same": onnx.TensorProto.BOOL})
    x = np.array([["red", "blue"], ["green", "green"], ["black", "?"]], object)
    for call in calls(module, tmp_path):
        y, same = call(x, np.array([1, 0]))
        assert y.tolist() == [["red", "green", "blue"], ["red", "green", "blue"]]
        assert same.tolist() == [[True, True, False], [False, True, False]]


def test_encoders_of_strings(tmp_path: Path) -> None:
    nodes = [
        ml("OneHotEncoder", ["x"], ["h"], cats_strings=["blue", "red"]),
        ml("LabelEncoder", ["x"], ["k"], keys_strings=["red", "blue"], values_floats=[2.0, 4.0]),
        ml("LabelEncoder", ["x"], ["v"], keys_strings=["red"], values_strings=["RED"]),
        ml("LabelEncoder", ["i"], ["w"], keys_int64s=[7], values_strings=["seven"]),
    ]
    inputs = {"x": (STRING, ["n", 2]), "i": (INT, ["n"])}
    module = model(nodes, inputs, {"h": FLOAT, "k": FLOAT, "v": STRING, "w": STRING})
    for call in calls(module, tmp_path):
        h, k, v, w = call(X, np.array([7, 8]))
        np.testing.assert_array_equal(h, X[..., None] == ["blue", "red"])
        np.testing.assert_array_equal(k, [[2, 4], [0, 0]])
        assert v.tolist() == [["RED", "_Unused"], ["_Unused", "_Unused"]]
        assert w.tolist() == ["seven", "_Unused"]


def test_arguments_that_are_no_strings() -> None:
    node = ml("OneHotEncoder", ["x"], ["h"], cats_strings=["a"], zeros=0)
    module = model([node], {"x": (STRING, ["n"])}, {"h": FLOAT})
    for call in (module.run_reference, sw.compile(module)):
        assert call(np.array(["a", "a"])).tolist() == [[1.0], [1.0]]
        with pytest.raises(sw.InputError, match='node "n": an element is none of the categories'):
            call(np.array(["a", "b"]))
        assert call(np.array([3, 0])[:1]).tolist() == [[1.0]]
        for x, got in ((np.zeros(2), "float64"), (np.array(["a", 1], object), "ndarray")):
            with pytest.raises(
                sw.InputError, match=f'input "x": wrong dtype, expected strings, got {got}'
            ):
                call(x)
        with pytest.raises(sw.InputError, match='input "x": wrong rank, expected 1'):
            call(X)


def test_a_string_that_is_only_passed_on() -> None:
    module = model([make_node("Identity", ["x"], ["y"])], {"x": (STRING, [2])}, {"y": STRING})
    for call in (module.run_reference, sw.compile(module)):
        assert call(np.array(["red", "blue"])).tolist() == ["red", "blue"]
        with pytest.raises(sw.InputError, match='output "y": a string of an input that the model'):
            call(np.array(["red", "black"]))


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (make_node("Cast", ["x"], ["y"], "n", to=FLOAT), "Cast .*: operands that are strings"),
        (make_node("Unique", ["x"], ["y"], "n"), "Unique .*: operands that are strings"),
        (make_node("Equal", ["x", "x"], ["y"], "n"), "Equal .*: strings of the call that are comp"),
        (make_node("Cast", ["i"], ["y"], "n", to=STRING), "string is not an IR element type"),
        (make_node("Identity", ["i"], ["y"], "n"), 'output "y": strings that are made in the mod'),
        (
            ml("LabelEncoder", ["i"], ["y"], keys_strings=["a"], values_strings=["b"]),
            "keys have another type than the operand, expected int64, got string",
        ),
        (
            ml("LabelEncoder", ["x"], ["y"], keys_int64s=[1], values_strings=["b"]),
            "keys have another type than the operand, expected string, got int64",
        ),
    ],
)
def test_what_is_refused(node: onnx.NodeProto, message: str) -> None:
    inputs = {"x": (STRING, [3]), "i": (INT, [3])}
    with pytest.raises(sw.ImportModelError, match=message):
        model([node], inputs, {"y": STRING if message[:4] != "Cast" else FLOAT})


def test_a_model_without_strings_of_its_own() -> None:
    node = make_node("Shape", ["x"], ["y"])
    x, y = make_tensor_value_info("x", STRING, [2]), make_tensor_value_info("y", INT, None)
    program = make_model(make_graph([node], "g", [x], [y]))
    with pytest.raises(
        sw.ImportModelError, match='input "x": strings that the model compares with'
    ):
        sw.from_onnx(program)
