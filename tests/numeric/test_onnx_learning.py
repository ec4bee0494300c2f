"""Operators of `ai.onnx.ml`: trees, linear models, scalers, encoders; against ONNX's reference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.helper import make_graph, make_model, make_node, make_opsetid
from onnx.numpy_helper import from_array

import stepwell as sw

from ..harness import RNG, as_onnx, close, floats

X = floats(7, 4)
INTERIOR = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")


def info(name: str, x: np.ndarray, rows: str | None = None) -> onnx.ValueInfoProto:
    kind = onnx.helper.np_dtype_to_tensor_dtype(x.dtype)
    shape = list(x.shape) if rows is None else [rows, *x.shape[1:]]
    return onnx.helper.make_tensor_value_info(name, kind, shape)


def model(
    operator: str,
    inputs: Sequence[np.ndarray],
    results: int = 1,
    opset: int = 3,
    rows: str | None = None,
    **attributes: Any,
) -> onnx.ModelProto:
    names = [f"x{n}" for n in range(len(inputs))]
    outputs = [f"y{n}" for n in range(results)]
    node = make_node(operator, names, outputs, "n", domain="ai.onnx.ml", **attributes)
    infos = [info(name, x, rows) for name, x in zip(names, inputs, strict=True)]
    graph = make_graph([node], "g", infos, [onnx.ValueInfoProto(name=name) for name in outputs])
    return make_model(
        graph, opset_imports=[make_opsetid("", 18), make_opsetid("ai.onnx.ml", opset)]
    )


def node_as_onnx(program: onnx.ModelProto, *inputs: np.ndarray, compiled: bool = False) -> None:
    as_onnx(program, *inputs, ways=["compiled" if compiled else "reference"], threads=1)


def forest(trees: int, depth: int, modes: Sequence[str] = INTERIOR) -> dict[str, list[Any]]:
    """The attributes of random nodes, and the names of leaves."""
    names = ("treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids")
    found: dict[str, list[Any]] = {f"nodes_{name}": [] for name in names}
    found["nodes_missing_value_tracks_true"], found["leaves"] = [], []

    def grow(tree: int, count: list[int], left: int) -> int:
        own, place = count[0], len(found["nodes_modes"])
        count[0] += 1
        is_leaf = left == 0 or RNG.random() < 0.2
        mode = "LEAF" if is_leaf else str(RNG.choice(list(modes)))
        # Values of X, so that some are equal.
        value = 0.0 if is_leaf else float(RNG.choice(X.ravel()))
        row = [tree, own, int(RNG.integers(4)), mode, value, 0, 0]
        for name, item in zip(names, row, strict=True):
            found[f"nodes_{name}"].append(item)
        found["nodes_missing_value_tracks_true"].append(int(RNG.integers(2)))
        if is_leaf:
            found["leaves"].append((tree, own))
            return own
        found["nodes_truenodeids"][place] = grow(tree, count, left - 1)
        found["nodes_falsenodeids"][place] = grow(tree, count, left - 1)
        return own

    for tree in range(trees):
        grow(tree, [0], depth)
    return found


def weighted(nodes: dict[str, list[Any]], kind: str, columns: int) -> dict[str, Any]:
    """The attributes of nodes and of the weights of their leaves."""
    given = dict(nodes)
    leaves = [leaf for leaf in given.pop("leaves") for _ in range(columns)]
    given[f"{kind}_treeids"], given[f"{kind}_nodeids"] = map(list, zip(*leaves, strict=True))
    given[f"{kind}_ids"] = list(range(columns)) * (len(leaves) // columns)
    given[f"{kind}_weights"] = floats(len(leaves)).tolist()
    return given


def with_nan(x: np.ndarray) -> np.ndarray:
    missing = x.copy()
    missing[RNG.random(x.shape) < 0.2] = np.nan
    return missing


@pytest.mark.parametrize("mode", INTERIOR)
def test_a_mode_of_nodes(mode: str) -> None:
    given = weighted(forest(4, 3, [mode]), "target", 1)
    node_as_onnx(model("TreeEnsembleRegressor", [X], n_targets=1, **given), X)
    # Comparisons with NaN are those of C, which the reference does not always follow.
    given["nodes_missing_value_tracks_true"] = [1] * len(given["nodes_modes"])
    program = model("TreeEnsembleRegressor", [X], n_targets=1, **given)
    x = X.copy()
    x[:, 1] = np.nan
    node_as_onnx(program, x)


@pytest.mark.parametrize("threads", [1, 2])
def test_any_number_of_rows(threads: int) -> None:
    """More than a tile of rows, a few, whose trees are walked in groups, and none."""
    given = weighted(forest(70, 3), "target", 3)
    options = {"n_targets": 3, "base_values": [0.5, -1.0, 2.0]}
    module = sw.from_onnx(model("TreeEnsembleRegressor", [X], rows="n", **options, **given))
    exe = sw.compile(module, threads=threads)
    for rows in (1, 0, 3, 7, 63, 64, 65, 200):
        x = with_nan(RNG.choice(X.ravel(), (rows, 4)))
        np.testing.assert_allclose(exe(x), module.run_reference(x), rtol=1e-5, atol=1e-5)


def test_aggregates_and_transforms() -> None:
    for aggregate in ("SUM", "AVERAGE", "MIN", "MAX"):
        given = weighted(forest(5, 3), "target", 2)
        options = {"n_targets": 2, "aggregate_function": aggregate, "post_transform": "NONE"}
        node_as_onnx(model("TreeEnsembleRegressor", [X], **options, **given), X)
    given = weighted(forest(5, 3), "target", 2)
    module = sw.from_onnx(model("TreeEnsembleRegressor", [X], n_targets=2, **given))
    scores = module.run_reference(X)
    given |= {"n_targets": 2, "post_transform": "SOFTMAX"}
    found = sw.from_onnx(model("TreeEnsembleRegressor", [X], **given)).run_reference(X)
    assert isinstance(scores, np.ndarray)
    want = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found, want, rtol=1e-5)


def test_numbers_of_other_types() -> None:
    given = weighted(forest(3, 3, ["BRANCH_LEQ"]), "target", 1)
    whole = RNG.integers(-2, 3, X.shape)
    found = sw.from_onnx(model("TreeEnsembleRegressor", [whole], **given)).run_reference(whole)
    numbers = whole.astype(np.float32)
    want = sw.from_onnx(model("TreeEnsembleRegressor", [numbers], **given)).run_reference(numbers)
    np.testing.assert_array_equal(found, want)
    # 0.1 as an f32 is larger than as an f64.
    tree = {"nodes_treeids": [0] * 3, "nodes_nodeids": [0, 1, 2], "nodes_featureids": [0, 0, 0]}
    tree |= {"nodes_truenodeids": [1, 0, 0], "nodes_falsenodeids": [2, 0, 0]}
    leaves = {"target_treeids": [0, 0], "target_nodeids": [1, 2], "target_ids": [0, 0]}
    modes, values = ["BRANCH_LEQ", "LEAF", "LEAF"], np.array([0.1, 0, 0])
    options: dict[str, Any] = {**tree, **leaves, "target_weights": [1.0, 2.0]}
    options["nodes_values_as_tensor"] = from_array(values, "t")
    x = np.array([[0.1], [np.float64(np.float32(0.1))]])
    program = model("TreeEnsembleRegressor", [x], nodes_modes=modes, **options)
    np.testing.assert_array_equal(sw.from_onnx(program).run_reference(x), [[1], [2]])


@pytest.mark.parametrize("kind", ["NONE", "LOGISTIC", "SOFTMAX"])
def test_classes(kind: str) -> None:
    given = weighted(forest(4, 3), "class", 3)
    options = {"classlabels_int64s": [7, -2, 5], "post_transform": kind}
    node_as_onnx(
        model("TreeEnsembleClassifier", [X], 2, **options, **given), X, compiled=kind == "NONE"
    )


def test_one_score_for_two_classes() -> None:
    """The other class has what is left of 1, or the opposite score."""
    given = weighted(forest(4, 3), "class", 1)
    given["classlabels_int64s"] = [0, 1]
    for positive in (False, True):
        if positive:
            given["class_weights"] = [abs(w) / 4 for w in given["class_weights"]]
        program = model("TreeEnsembleClassifier", [X], 2, post_transform="LOGISTIC", **given)
        labels, scores = sw.from_onnx(program).run_reference(X)
        given_total = {k.replace("class_", "target_"): v for k, v in given.items()}
        del given_total["classlabels_int64s"]
        sums = sw.from_onnx(model("TreeEnsembleRegressor", [X], **given_total)).run_reference(X)
        assert isinstance(sums, np.ndarray)
        other = 1 - sums if positive else -sums
        want = np.concatenate([other, sums], axis=1)
        if not positive:
            want = 1 / (1 + np.exp(-want))
        np.testing.assert_allclose(scores, want, rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(labels, sums[:, 0] > (0.5 if positive else 0))


def ensemble(**changes: Any) -> onnx.ModelProto:
    """Two trees of the newest form, which ask for membership, for less, and for equality."""
    arrays = {
        "nodes_modes": np.array([6, 1, 4], np.uint8),
        "nodes_splits": np.array([np.nan, 0.5, 2.0], np.float32),
        "leaf_weights": np.array([1, 10, 100, 1000], np.float32),
        "membership_values": np.array([1.5, 2.5, -3.0, np.nan], np.float32),
    }
    given: dict[str, Any] = {
        "n_targets": 2,
        "aggregate_function": 1,
        "tree_roots": [0, 2],
        "nodes_featureids": [0, 1, 2],
        "nodes_truenodeids": [0, 1, 2],
        "nodes_trueleafs": [1, 1, 1],
        "nodes_falsenodeids": [1, 2, 3],
        "nodes_falseleafs": [0, 1, 1],
        "leaf_targetids": [0, 1, 0, 1],
        **{name: from_array(array, name) for name, array in arrays.items()},
        **changes,
    }
    return model("TreeEnsemble", [np.zeros((8, 3), np.float32)], opset=5, **given)


def test_sets_and_leaves_apart() -> None:
    x = np.array(np.meshgrid([1.5, -3.0, 0.0], [0.5, 0.0], [2.0, 7.0]), np.float32)
    x = np.ascontiguousarray(x.reshape(3, -1).T)
    module = sw.from_onnx(ensemble(nodes_missing_value_tracks_true=[0, 1, 0]))
    member = np.isin(x[:, 0], [1.5, 2.5, -3.0])
    first = np.where(member[:, None], [1, 0], np.where(x[:, 1:2] < 0.5, [0, 10], [100, 0]))
    second = np.where(x[:, 2:] == 2.0, [100, 0], [0, 1000])
    exe = sw.compile(sw.from_onnx(ensemble()), threads=1)
    np.testing.assert_array_equal(exe(x[:8]), (first + second)[:8])
    np.testing.assert_array_equal(module.run_reference(x[4:]), (first + second)[4:])
    missing = np.full((8, 3), np.nan, np.float32)
    np.testing.assert_array_equal(module.run_reference(missing), [[0, 1010]] * 8)
    np.testing.assert_array_equal(exe(missing), [[100, 1000]] * 8)


WRONG: dict[str, dict[str, Any]] = {
    "aggregate_function is unknown": {"aggregate_function": 4},
    "nodes are not those of trees": {"nodes_falsenodeids": [0, 2, 3]},
    "the trees do not fit the operand": {"nodes_featureids": [0, 1, 3]},
    "the trees do not fit the operand, expected 3 features": {"tree_roots": [0, 3_000]},
    "leaf_targetids out of range": {"leaf_targetids": [0, 1, 0, 2]},
    "has the wrong length": {"nodes_trueleafs": [1, 1]},
    "wrong number of sets": {"membership_values": from_array(np.zeros(0, np.float32), "m")},
    "post_transform is unknown": {"post_transform": 5},
}


@pytest.mark.parametrize("message", WRONG)
def test_trees_that_are_none(message: str) -> None:
    with pytest.raises(sw.ImportModelError, match=message) as error:
        sw.from_onnx(ensemble(**WRONG[message]))
    assert 'node "n"' in str(error.value)


def test_linear_models() -> None:
    weights = floats(12).tolist()
    options = {"coefficients": weights, "intercepts": [0.5, -1.0, 2.0]}
    node_as_onnx(model("LinearRegressor", [X], targets=3, **options), X)
    for kind in ("NONE", "LOGISTIC", "SOFTMAX"):
        given = {"classlabels_ints": [4, 2, 9], "post_transform": kind, **options}
        node_as_onnx(model("LinearClassifier", [X], 2, **given), X, compiled=kind == "SOFTMAX")
    given = {"coefficients": weights[:4], "intercepts": [0.5], "classlabels_ints": [3, 8]}
    node_as_onnx(model("LinearClassifier", [X], 2, post_transform="LOGISTIC", **given), X)


def test_preparation_of_features() -> None:
    row = [0.5, -1.0, 2.0, 4.0]
    node_as_onnx(model("Scaler", [X], offset=row, scale=row[::-1]), X, compiled=True)
    node_as_onnx(model("Scaler", [X], offset=row[:1], scale=row[:1]), X)
    some = np.abs(X)
    some[2] = 0
    for norm in ("MAX", "L1", "L2"):
        node_as_onnx(model("Normalizer", [some], norm=norm), some)
    node_as_onnx(model("Binarizer", [X], threshold=0.25), X)
    x = with_nan(X)
    node_as_onnx(model("Imputer", [x], imputed_value_floats=row, replaced_value_float=np.nan), x)
    whole = RNG.integers(0, 3, (5, 4))
    node_as_onnx(model("Imputer", [whole], imputed_value_int64s=[9], replaced_value_int64=2), whole)
    parts = [X, whole[:, :1].repeat(2, axis=0)[:7].astype(np.float32)]
    node_as_onnx(model("FeatureVectorizer", parts, inputdimensions=[4, 1]), *parts)
    node_as_onnx(model("ArrayFeatureExtractor", [X, np.array([2, 0])]), X, np.array([2, 0]))


def test_encoders_of_labels() -> None:
    x = np.array([[5, 2, 5], [7, -1, 0]])
    node_as_onnx(model("LabelEncoder", [x], keys_int64s=[7, 5, 2], values_int64s=[1, 2, 3]), x)
    y = np.array([0.5, np.nan, 3.0, -0.0], np.float32)
    keys = from_array(np.array([np.nan, 3.0, 0.0], np.float32), "k")
    values = from_array(np.array([4.0, 5.0, 6.0]), "v")
    options = {"default_tensor": from_array(np.array([9.0]), "d")}
    found = sw.from_onnx(
        model("LabelEncoder", [y], opset=4, keys_tensor=keys, values_tensor=values, **options)
    ).run_reference(y)
    np.testing.assert_array_equal(found, [9, 4, 5, 6])


def test_one_hot_codes_of_categories() -> None:
    x = np.array([[5, 2, 7], [7, 5, 5]])
    for given in (x, x.astype(np.float32) + np.float32(0.25)):
        program = model("OneHotEncoder", [given], rows="rows", cats_int64s=[7, 5])
        for run in (sw.from_onnx(program).run_reference, sw.compile(sw.from_onnx(program))):
            np.testing.assert_array_equal(run(given), x[..., None] == [7, 5])
            assert run(given[:0]).shape == (0, 3, 2)
    program = model("OneHotEncoder", [x], rows="rows", cats_int64s=[7, 5, 2], zeros=0)
    for run in (sw.from_onnx(program).run_reference, sw.compile(sw.from_onnx(program))):
        np.testing.assert_array_equal(run(x), x[..., None] == [7, 5, 2])
        with pytest.raises(sw.InputError, match=r'node "n": an element is none of the categories'):
            run(x + 1)


def test_scores_of_a_map_are_an_array() -> None:
    scores = make_node("Scaler", ["x"], ["s"], domain="ai.onnx.ml", offset=[1.0], scale=[2.0])
    names = make_node("ZipMap", ["s"], ["y"], domain="ai.onnx.ml", classlabels_int64s=[1, 2, 3, 4])
    graph = make_graph([scores, names], "g", [info("x", X)], [onnx.ValueInfoProto(name="y")])
    program = make_model(graph, opset_imports=[make_opsetid("ai.onnx.ml", 1)])
    found = sw.from_onnx(program).run_reference(X)
    np.testing.assert_allclose(found, (X - 1) * 2, rtol=1e-6)


def test_features_of_another_number_are_refused() -> None:
    for operator, options, text in (
        ("Scaler", {"offset": [1.0, 2.0]}, "has the wrong length, expected 1 or 4, got 2"),
        ("LinearRegressor", {"coefficients": [1.0] * 3}, "coefficients do not fit the operand"),
        ("Normalizer", {"norm": "L3"}, "norm is unknown"),
        ("Imputer", {}, "imputed values do not fit"),
        ("LabelEncoder", {"keys_int64s": [1], "values_int64s": [2]}, "keys have another type"),
        ("LabelEncoder", {"keys_strings": ["a"], "values_int64s": [2]}, "keys have another"),
    ):
        with pytest.raises(sw.ImportModelError, match=text):
            sw.from_onnx(model(operator, [X], **options))


def test_each_tree_takes_as_many_steps_as_it_is_deep() -> None:
    """Of any nodes, where no leaf is followed by itself."""
    nodes, trees = 50, 70
    thresholds, features = floats(nodes), RNG.integers(-4, 4, nodes)
    tables = RNG.integers(-nodes, nodes, (nodes, 2)), RNG.integers(-6, 6, nodes)
    values, depths = floats(6, 2), RNG.integers(-1, 9, trees)
    b = sw.Builder("main")
    x = b.input("x", ("n", 4), "f32")
    roots = RNG.integers(-nodes, nodes, trees)
    given = (thresholds, features, *tables, values, roots, depths)
    b.output(b.tree_ensemble(x, *map(b.constant, given)), name="y")
    module = b.module()
    exe = sw.compile(module)
    for rows in (1, 5, 40):
        given = floats(rows, 4)
        close(exe(given), module.run_reference(given))
