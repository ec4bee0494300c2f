"""Support vector machines of `ai.onnx.ml` and transforms of scores, against ONNX's reference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.helper import make_graph, make_model, make_node, make_opsetid, make_tensor_value_info

import stepwell as sw

from ..harness import RNG, close, floats, onnx_results

X = floats(9, 4)
PARAMETERS = [0.3, 0.5, 2.0]
KERNELS = ("LINEAR", "POLY", "RBF", "SIGMOID")


def model(operator: str, outputs: Sequence[str], **attributes: Any) -> onnx.ModelProto:
    node = make_node(operator, ["x"], outputs, "n", domain="ai.onnx.ml", **attributes)
    x = make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n", X.shape[1]])
    results = [onnx.ValueInfoProto(name=name) for name in outputs]
    imports = [make_opsetid("", 18), make_opsetid("ai.onnx.ml", 1)]
    return make_model(make_graph([node], "g", [x], results), opset_imports=imports)


def machine_as_onnx(program: onnx.ModelProto, x: np.ndarray = X, compiled: bool = False) -> None:
    # The evaluator of onnx writes to its operand.
    want, module = onnx_results(program, x.copy()), sw.from_onnx(program)
    run = sw.compile(module, threads=1) if compiled else module.run_reference
    close(run(x), want, 1e-4, 1e-5)


def classifier(classes: int, **attributes: Any) -> dict[str, Any]:
    """The attributes of a classifier with random vectors."""
    counts = [2, 1, 3][:classes]
    total, pairs = sum(counts), classes * (classes - 1) // 2
    return {
        "classlabels_ints": [7, 8, 9][:classes],
        "vectors_per_class": counts,
        "coefficients": floats(total * (classes - 1)).tolist(),
        "support_vectors": floats(4 * total).tolist(),
        "rho": floats(pairs).tolist(),
        "kernel_type": "RBF",
        "kernel_params": PARAMETERS,
        **attributes,
    }


@pytest.mark.parametrize("kernel", KERNELS)
def test_regressors(kernel: str) -> None:
    options = {
        "n_supports": 5,
        "coefficients": floats(5).tolist(),
        "support_vectors": floats(20).tolist(),
        "rho": [0.2],
        "kernel_type": kernel,
        "kernel_params": PARAMETERS,
    }
    for one_class in (0, 1):
        program = model("SVMRegressor", ["y"], one_class=one_class, **options)
        machine_as_onnx(program, compiled=kernel == "RBF" and not one_class)
    machine_as_onnx(model("SVMClassifier", ["l", "y"], **classifier(3, kernel_type=kernel)))


def test_products_with_coefficients() -> None:
    options: dict[str, Any] = {"kernel_type": "LINEAR", "rho": [0.3]}
    coefficients = floats(12).tolist()
    machine_as_onnx(
        model("SVMRegressor", ["y"], coefficients=coefficients[:4], n_supports=0, **options)
    )
    # Of one shift the reference takes two classes.
    options |= {"classlabels_ints": [4, 2, 3], "rho": [0.3, 0.3, 0.3]}
    machine_as_onnx(
        model("SVMClassifier", ["l", "y"], coefficients=coefficients, **options), compiled=True
    )


@pytest.mark.parametrize("kind", ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"])
def test_transforms_of_scores(kind: str) -> None:
    for classes in (2, 3):
        if (classes, kind) != (2, "LOGISTIC"):  # where the reference fails
            program = model("SVMClassifier", ["l", "y"], **classifier(classes, post_transform=kind))
            machine_as_onnx(program, compiled=(kind, classes) == ("NONE", 3))


@pytest.mark.parametrize("kind", ["PROBIT", "SOFTMAX_ZERO"])
def test_transforms_of_linear_scores(kind: str) -> None:
    x = RNG.random((6, 4)).astype(np.float32) * 0.9 + 0.05
    x[:3, :2] = 0.5 if kind == "PROBIT" else 0
    x[3] = x[3, 0] if kind == "PROBIT" else 0
    options = {"coefficients": np.eye(4).ravel().tolist(), "intercepts": [0.0] * 4}
    labels = {"classlabels_ints": [0, 1, 2, 3], "post_transform": kind}
    machine_as_onnx(
        model("LinearClassifier", ["l", "y"], **options, **labels), x, compiled=kind == "PROBIT"
    )


def test_chances_of_two_classes() -> None:
    """1 / (1 + exp(a * score + b)), as libsvm has them."""
    options = classifier(2)
    scores = sw.from_onnx(model("SVMClassifier", ["l", "y"], **options)).run_reference(X)[1]
    program = model("SVMClassifier", ["l", "y"], prob_a=[-1.3], prob_b=[0.2], **options)
    label, chances = sw.from_onnx(program).run_reference(X)
    first = 1 / (1 + np.exp(-1.3 * scores[:, 1] + 0.2))
    np.testing.assert_allclose(chances, np.stack([first, 1 - first], 1), rtol=1e-5)
    np.testing.assert_array_equal(label, np.where(scores[:, 1] > 0, 7, 8))


def coupled(r: np.ndarray) -> np.ndarray:
    """The chances of classes, of those of pairs: LIBSVM's `multiclass_probability`."""
    k = len(r)
    q = np.diag((r.T**2).sum(1)) - r * r.T
    p = np.full(k, 1 / k)
    for _ in range(max(100, k)):
        each = q @ p
        total = p @ each
        if np.abs(each - total).max() < 0.005 / k:
            break
        for t in range(k):
            change = (total - each[t]) / q[t, t]
            p[t] += change
            total = (total + change * (change * q[t, t] + 2 * each[t])) / (1 + change) ** 2
            each = (each + change * q[t]) / (1 + change)
            p /= 1 + change
    return p


def test_chances_of_three_classes(all_tests: bool) -> None:
    slopes, shifts, options = [-1.3, -0.7, -2.0], [0.2, -0.1, 0.4], classifier(3)
    scores = sw.from_onnx(model("SVMClassifier", ["l", "y"], **options)).run_reference(X)[1]
    module = sw.from_onnx(
        model("SVMClassifier", ["l", "y"], prob_a=slopes, prob_b=shifts, **options)
    )
    first = np.clip(1 / (1 + np.exp(scores * slopes + shifts)), 1e-7, 1 - 1e-7)
    table = np.zeros((len(X), 3, 3))
    for number, (i, j) in enumerate(((0, 1), (0, 2), (1, 2))):
        table[:, i, j], table[:, j, i] = first[:, number], 1 - first[:, number]
    for run in (module.run_reference, *([sw.compile(module, threads=1)] if all_tests else [])):
        chances = run(X)[1]
        np.testing.assert_allclose(chances, [coupled(r) for r in table], rtol=1e-4)
        np.testing.assert_allclose(chances.sum(1), 1, rtol=1e-5)
        assert run(X[:0])[1].shape == (0, 3)


WRONG: dict[str, dict[str, Any]] = {
    "prob_a and prob_b do not fit, expected 3, got 1 and 3": {"prob_a": [1.0], "prob_b": [0.0] * 3},
    "vectors_per_class does not fit the labels, expected 3, got 2": {"vectors_per_class": [1, 2]},
    "coefficients do not fit the vectors, expected 12, got 3": {"coefficients": [1.0] * 3},
    "support_vectors do not fit, expected a multiple of 6": {"support_vectors": [1.0] * 23},
    "support_vectors do not fit the operand, expected 4, got 3": {"support_vectors": [1.0] * 18},
    "rho has the wrong length, expected 3, got 1": {"rho": [1.0]},
    "kernel_type is unknown, expected LINEAR, POLY, RBF, SIGMOID": {"kernel_type": "CUBIC"},
    "kernel_params are wrong, expected gamma, coef0 and degree": {"kernel_params": [1.0]},
    "post_transform is unknown, expected NONE, SOFTMAX, LOGISTIC": {"post_transform": "EXP"},
}


@pytest.mark.parametrize("message", WRONG)
def test_machines_that_are_none(message: str) -> None:
    program = model("SVMClassifier", ["l", "y"], **classifier(3, **WRONG[message]))
    with pytest.raises(sw.ImportModelError, match=message) as error:
        sw.from_onnx(program)
    assert 'node "n"' in str(error.value)


def test_coefficients_that_do_not_fit() -> None:
    program = model("SVMClassifier", ["l", "y"], classlabels_ints=[0, 1], coefficients=[1.0] * 3)
    with pytest.raises(sw.ImportModelError, match="coefficients do not fit the labels"):
        sw.from_onnx(program)
    program = model("SVMRegressor", ["y"], coefficients=[1.0] * 3, rho=[0.0])
    with pytest.raises(sw.ImportModelError, match="coefficients do not fit the operand"):
        sw.from_onnx(program)
