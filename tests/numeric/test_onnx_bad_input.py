"""Models and operands of ONNX that do not fit: one error that names the node."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import GraphProto, ModelProto, NodeProto, TensorProto
from onnx.helper import make_graph, make_model, make_node, make_opsetid
from onnx.helper import make_tensor_value_info as info
from onnx.numpy_helper import from_array

import stepwell as sw

F32, F64, I64, BOOL = TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT64, TensorProto.BOOL
X = np.arange(12, dtype=np.float32).reshape(3, 4)


def model(
    nodes: Sequence[NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    constants: dict[str, np.ndarray] | None = None,
    outputs: Sequence[str] = ("y",),
    opset: int = 24,
) -> ModelProto:
    weights = [from_array(array, name) for name, array in (constants or {}).items()]
    results = [onnx.ValueInfoProto(name=name) for name in outputs]
    graph = make_graph(nodes, "g", inputs, results, weights)
    imports = [make_opsetid("", opset), make_opsetid("ai.onnx.ml", 1)]
    return make_model(graph, opset_imports=imports)


def refused(program: ModelProto, message: str, node: str = "n") -> None:
    with pytest.raises(sw.ImportModelError, match=message) as error:
        sw.from_onnx(program)
    assert f'node "{node}"' in str(error.value)


INDEXED: dict[str, tuple[list[str], dict[str, Any], np.ndarray, int]] = {
    "Gather": (["x", "@"], {}, np.array([0, -3]), 3),
    "GatherElements": (["x", "@"], {"axis": 1}, np.array([[0], [3], [-4]]), 4),
    "GatherND": (["x", "@"], {}, np.array([[2, 3], [-3, -4]]), 5),
    "GatherND_of_rows": (["x", "@"], {"batch_dims": 1}, np.array([[0], [3], [-4]]), -5),
    "ScatterElements": (["x", "@", "x"], {"axis": 0}, np.zeros((3, 4), np.int64), -4),
    "ScatterND": (["x", "@", "rows"], {}, np.array([[0], [-1]]), 3),
    "TensorScatter": (["cache", "more", "@"], {"axis": 1}, np.array([0, 2, 1]), 3),
    "ArrayFeatureExtractor": (["x", "@"], {}, np.array([3, 0]), 4),
    "MaxUnpool": (
        ["maxima", "@"],
        {"kernel_shape": [2], "strides": [2]},
        np.array([[[5, 0, 3]]]),
        6,
    ),
    "ReverseSequence": (["x", "@"], {}, np.array([1, 2, 3, 3]), 4),
    "SequenceAt": (["s", "@"], {}, np.array(-2), 2),
}


def test_indices_out_of_range() -> None:
    """Of all operators with indices, each in its turn; those of the others fit."""
    constants = {
        "rows": X[:2],
        "cache": np.zeros((3, 4, 2), np.float32),
        "more": np.ones((3, 2, 2), np.float32),
        "maxima": np.ones((1, 1, 3), np.float32),
    }
    nodes, inputs = [make_node("SequenceConstruct", ["x", "x"], ["s"])], [info("x", F32, [3, 4])]
    for name, (operands, attributes, fitting, _) in INDEXED.items():
        operator = name.removesuffix("_of_rows")
        domain = "ai.onnx.ml" if operator == "ArrayFeatureExtractor" else ""
        own = [operand.replace("@", f"i.{name}") for operand in operands]
        nodes.append(make_node(operator, own, [f"y.{name}"], name, domain=domain, **attributes))
        inputs.append(info(f"i.{name}", I64, fitting.shape))
    module = sw.from_onnx(model(nodes, inputs, constants, [f"y.{name}" for name in INDEXED]))
    given = {f"i.{name}": fitting for name, (_, _, fitting, _) in INDEXED.items()}
    for run in (module.run_reference, sw.compile(module, threads=1)):
        assert len(run(X, *given.values())) == len(INDEXED)
        for name, (_, _, fitting, wrong) in INDEXED.items():
            changed = fitting.copy()
            changed.flat[-1] = wrong
            operands = {**given, f"i.{name}": changed}
            with pytest.raises(sw.InputError, match=f'node "{name}": index out of range'):
                run(X, *operands.values())


def test_a_mask_that_is_too_long() -> None:
    node = make_node("Compress", ["x", "m"], ["y"], "n", axis=0)
    module = sw.from_onnx(model([node], [info("x", F32, [3, 4]), info("m", BOOL, [5])]))
    with pytest.raises(sw.InputError, match='node "n": index out of range'):
        module.run_reference(X, np.ones(5, bool))


def test_more_elements_than_an_axis_has() -> None:
    node, x = make_node("TopK", ["x", "k"], ["y", ""], "n"), info("x", F32, [3, 4])
    refused(model([node], [x], {"k": np.array([5])}), "wrong k, expected 0 to 4, got 5")
    exe = sw.compile(sw.from_onnx(model([node], [x, info("k", I64, [1])])), threads=1)
    for k in (5, -1):
        with pytest.raises(sw.InputError, match=f'node "n": .* expected 0 to 4, got {k}'):
            exe(X, np.array([k]))
    symbolic = model([node], [info("x", F32, [3, "n"])], {"k": np.array([5])})
    with pytest.raises(sw.InputError, match=r'expected 5 or more, got 4 \(node "n"\)'):
        sw.compile(sw.from_onnx(symbolic), threads=1)(X)


def test_images_without_elements() -> None:
    x, sizes = info("x", F32, ["n", 4]), np.array([0, 4])
    by_size = make_node("Resize", ["x", "", "", "s"], ["y"], "n")
    by_scale = make_node("Resize", ["x", "", "s"], ["y"], "n")
    static = info("x", F32, [3, 4])
    refused(model([by_size], [static], {"s": sizes}), "expected 1 or more, got 0")
    scales = np.array([0, 1], np.float32)
    refused(model([by_scale], [static], {"s": scales}), "expected 2 positive numbers")
    for node, given, kind in ((by_size, sizes, I64), (by_scale, scales, F32)):
        module = sw.from_onnx(model([node], [x, info("s", kind, [2])]))
        text = 'node "n": an empty dimension grows, or one becomes empty, expected 3, got 0'
        for run in (module.run_reference, sw.compile(module, threads=1)):
            with pytest.raises(sw.InputError, match=text):
                run(X, given)


EQUATIONS = ("ij,jk->il", "i-j->ij", "ij,jk,kl->il", "ij->i->j", "i$->i", "...i,...->...j", "")


@pytest.mark.parametrize("equation", EQUATIONS)
def test_equations_that_do_not_fit(equation: str) -> None:
    node = make_node("Einsum", ["x", "z"], ["y"], "n", equation=equation)
    inputs = [info("x", F32, [3, 4]), info("z", F32, [4, 2])]
    refused(model([node], inputs), f"equation .*expected .*, got {re.escape(equation)}")


def branch(nodes: list[NodeProto], outputs: list[onnx.ValueInfoProto]) -> GraphProto:
    return make_graph(nodes, "b", [], outputs)


def test_branches_that_differ() -> None:
    own = branch([make_node("Relu", ["x"], ["u"])], [info("u", F32, [3, 4])])
    others = {
        r"different results 0: float32 \[3, 4\] and float64 \[3, 4\]": branch(
            [make_node("Cast", ["x"], ["v"], to=F64)], [info("v", F64, [3, 4])]
        ),
        "different numbers of results, expected 1, got 2": branch(
            [make_node("Neg", ["x"], ["v"]), make_node("Abs", ["x"], ["w"])],
            [info("v", F32, [3, 4]), info("w", F32, [3, 4])],
        ),
    }
    inputs = [info("p", BOOL, []), info("x", F32, [3, 4])]
    for message, other in others.items():
        node = make_node("If", ["p"], ["y"], "n", then_branch=own, else_branch=other)
        refused(model([node], inputs), message)


def test_a_loop_that_changes_what_it_carries() -> None:
    inputs = [info("i", I64, []), info("c", BOOL, []), info("h", F32, [3, 4])]
    for step, kind, shape in (
        (make_node("Concat", ["h", "h"], ["k"], axis=0), F32, r"float32 \[2\*size.0, 4\]"),
        (make_node("Cast", ["h"], ["k"], to=F64), F64, r"float64 \[3, 4\]"),
    ):
        nodes = [step, make_node("Identity", ["c"], ["d"])]
        results = [info("d", BOOL, []), info("k", kind, [3, 4])]
        body = make_graph(nodes, "b", inputs, results)
        node = make_node("Loop", ["m", "", "x"], ["y"], "n", body=body)
        program = model([node], [info("m", I64, []), info("x", F32, [3, 4])])
        refused(program, rf"loop state 0 changes from float32 \[3, 4\] to {shape}")


def test_a_scan_over_different_lengths() -> None:
    add = make_node("Add", ["a", "b"], ["c"])
    body = make_graph([add], "b", [info("a", F32, []), info("b", F32, [])], [info("c", F32, [])])
    node = make_node("Scan", ["x", "z"], ["y"], "n", body=body, num_scan_inputs=2)
    program = model([node], [info("x", F32, [3]), info("z", F32, [4])])
    refused(program, "numbers of iterations differ, expected 3, got 4")
    module = sw.from_onnx(model([node], [info("x", F32, ["n"]), info("z", F32, ["m"])]))
    for run in (module.run_reference, sw.compile(module, threads=1)):
        with pytest.raises(sw.InputError, match=r"n and m .*expected 3, got 4"):
            run(np.ones(3, np.float32), np.ones(4, np.float32))
