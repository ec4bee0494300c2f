"""Reshapes of ONNX by fixed numbers, of sizes that they divide in a call."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto
from onnx.helper import make_graph, make_model, make_node, make_opsetid, make_tensor_value_info
from onnx.numpy_helper import from_array

import stepwell as sw

from ..harness import floats

Step = list[int] | tuple[int, ...]
"""The target of a reshape, or the permutation of a transpose."""

SIZES = (0, 1, 2, 3, 4, 5, 6, 8, 12, 24)


def model(*steps: Step, ends: tuple[NodeProto, ...] = ()) -> ModelProto:
    """The steps on an operand [N, 3, 5], then the nodes `ends`, which make y of "steps"."""
    names = ["x", *(f"t{i}" for i in range(1, len(steps))), "steps"]
    nodes: list[NodeProto] = []
    for i, step in enumerate(steps):
        if isinstance(step, tuple):
            nodes.append(make_node("Transpose", names[i : i + 1], [names[i + 1]], perm=step))
        else:
            nodes.append(make_node("Reshape", [names[i], f"s{i}"], [names[i + 1]]))
    targets = [from_array(np.array(s), f"s{i}") for i, s in enumerate(steps) if isinstance(s, list)]
    graph = make_graph(
        [*nodes, *(ends or [make_node("Relu", ["steps"], ["y"])])],
        "main",
        [make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3, 5])],
        [make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [*targets, from_array(np.ones((10, 4), np.float32), "w")],
    )
    return make_model(graph, opset_imports=[make_opsetid("", 18)], ir_version=9)


def stepped(x: np.ndarray, steps: tuple[Step, ...]) -> np.ndarray | None:
    """What the steps make of an array; None where a number does not divide a size."""
    for step in steps:
        if isinstance(step, tuple):
            x = x.transpose(step)
        elif x.size % abs(np.prod(step)):
            return None
        else:
            x = x.reshape([x.size // abs(np.prod(step)) if n == -1 else n for n in step])
    return x


COMBINED: list[tuple[Step, ...]] = [
    ([2, -1],),
    ([6, -1],),
    ([-1, 10],),
    ([2, -1], [-1, 3, 5]),
    ([2, -1], [4, -1]),
    ([4, -1], [2, -1], [-1, 15]),
    ([-1, 10], (1, 0), [6, -1], [-1]),
    ((1, 2, 0), [3, 2, -1], (2, 0, 1), [-1, 6], (1, 0)),
    ([2, -1, 5], (1, 0, 2), [-1, 4], [3, -1]),
]


@pytest.mark.parametrize("steps", COMBINED, ids=str)
def test_steps(steps: tuple[Step, ...], all_tests: bool) -> None:
    module = sw.from_onnx(model(*steps))
    exe = sw.compile(module, threads=1, opt_level=3 if all_tests or len(steps) == 1 else 0)
    for n in SIZES:
        x = floats(n, 3, 5)
        want = stepped(x, steps)
        for run in (exe, module.run_reference):
            if want is not None:
                np.testing.assert_array_equal(run(x), np.maximum(want, 0))
                continue
            number = r"expected a multiple of [24], got"
            with pytest.raises(sw.InputError, match=f"size N is not divisible, {number} {n}$"):
                run(x)


def softmax(x: np.ndarray, axis: int) -> np.ndarray:
    e = np.exp(x - x.max(axis, keepdims=True, initial=-np.inf))
    return e / e.sum(axis, keepdims=True)


def test_products_and_softmax() -> None:
    """A product with the transpose, softmax along a quotient, and the shape of x once more."""
    ends = (
        make_node("MatMul", ["steps", "w"], ["p"]),
        make_node("Softmax", ["p"], ["q"], axis=0),
        make_node("Transpose", ["q"], ["t"], perm=(1, 0)),
        make_node("MatMul", ["t", "steps"], ["r"]),
        make_node("Shape", ["x"], ["shape"]),
        make_node("Reshape", ["steps", "shape"], ["back"]),
        make_node("ReduceSum", ["r"], ["sum"], keepdims=0),
        make_node("Add", ["back", "sum"], ["z"]),
        make_node("Add", ["z", "x"], ["y"]),
    )
    module = sw.from_onnx(model([2, -1], [-1, 10], ends=ends))
    exe = sw.compile(module, threads=1)
    assert exe.outputs[0].shape == ("N", 3, 5)
    for n in (2, 4, 12, 0):
        x = floats(n, 3, 5)
        rows = x.reshape(-1, 10)
        total = (softmax(rows @ np.ones((10, 4), np.float32), 0).T @ rows).sum()
        for run in (exe, module.run_reference):
            # Sums of at most 360 products, in another order.
            np.testing.assert_allclose(run(x), 2 * x + total, rtol=1e-4, atol=1e-4)
    with pytest.raises(sw.InputError, match="size N is not divisible, expected a multiple of 2"):
        exe(np.zeros((7, 3, 5), np.float32))


def test_a_size_that_is_a_quotient_and_an_inferred_one() -> None:
    """Half of the rows, each as long as that makes it: of one row, and of 3, the half is one."""
    nodes = [
        make_node("Shape", ["x"], ["n"], start=0, end=1),
        make_node("Div", ["n", "two"], ["half"]),
        make_node("Concat", ["half", "rest"], ["target"], axis=0),
        make_node("Reshape", ["x", "target"], ["y"]),
    ]
    graph = make_graph(
        nodes,
        "main",
        [make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3, 5])],
        [make_tensor_value_info("y", TensorProto.FLOAT, [None, None])],
        [from_array(np.array([2]), "two"), from_array(np.array([-1]), "rest")],
    )
    module = sw.from_onnx(make_model(graph, opset_imports=[make_opsetid("", 18)], ir_version=9))
    exe = sw.compile(module, threads=1)
    for n in (2, 3, 4, 12):
        x = np.arange(n * 15, dtype=np.float32).reshape(n, 3, 5)
        for run in (exe, module.run_reference):
            np.testing.assert_array_equal(run(x), x.reshape(n // 2, -1))
    for run in (exe, module.run_reference):
        with pytest.raises(sw.InputError, match=r"sizes 15\*N and size\.0\*size\.1 "):
            run(np.zeros((5, 3, 5), np.float32))


def test_sizes_that_the_program_is_compiled_for() -> None:
    module = sw.from_onnx(model([2, -1]), shapes={"x": (4, 3, 5)})
    assert sw.compile(module, threads=1).outputs[0].shape == (2, 30)
    with pytest.raises(sw.ImportModelError, match=r"a divisor of 45, got 2"):
        sw.from_onnx(model([2, -1]), shapes={"x": (3, 3, 5)})
