"""Ensembles of decision trees of `ai.onnx.ml`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...importing.elementwise import cast
from ...importing.values import Value
from .. import trees
from ..learning import TRANSFORMS, classified, number_type, transformed
from ..nodes import Node
from ..registry import converts

_ML = "ai.onnx.ml"
_F32 = np.dtype(np.float32)
_AGGREGATES = {"SUM": "sum", "AVERAGE": "sum", "MIN": "min", "MAX": "max"}


@converts("TreeEnsembleRegressor", since=1, domain=_ML)
def tree_ensemble_regressor(node: Node) -> Value:
    forest, rows = _older_trees(node, "target")
    aggregate = node.attr_string("aggregate_function", "SUM")
    targets = node.attr_int("n_targets", 1)
    weights = _weights(node, "target", rows, targets)
    total = cast(node, _total(node, forest, weights, aggregate), _F32)
    scores = _with_base(node, total, targets)
    return transformed(node, scores, node.attr_string("post_transform", "NONE"))


@converts("TreeEnsembleClassifier", since=1, domain=_ML)
def tree_ensemble_classifier(node: Node) -> Sequence[Value | None]:
    forest, rows = _older_trees(node, "class")
    labels = node.attr_ints("classlabels_int64s") or node.attr_strings("classlabels_strings") or []
    ids = node.attr_ints("class_ids") or []
    weights = _weights(node, "class", rows, len(labels))
    kind = node.attr_string("post_transform", "NONE")
    if len(labels) == 2 and len(set(ids)) == 1:
        # The score of one class is that of the other one as well.
        total = cast(node, _total(node, forest, weights[:, ids[:1]], "SUM"), _F32)
        score = _with_base(node, total, 1)
        is_chance = bool((weights >= 0).all())
        other = node.sub(1.0, score) if is_chance else node.neg(score)
        is_second = node.less(0.5 if is_chance else 0.0, score)
        scores = node.concat([other, score], axis=1)
        if not is_chance:
            scores = transformed(node, scores, kind)
        return classified(node, scores, labels, is_second)
    total = cast(node, _total(node, forest, weights, "SUM"), _F32)
    scores = _with_base(node, total, len(labels))
    return classified(node, scores, labels, kind=kind)


@converts("TreeEnsemble", since=5, domain=_ML)
def tree_ensemble(node: Node) -> Value:
    forest, values = _newer_trees(node)
    aggregate = _chosen(node, "aggregate_function", ["AVERAGE", "SUM", "MIN", "MAX"], 1)
    scores = _total(node, forest, values, aggregate)
    return transformed(node, scores, _chosen(node, "post_transform", TRANSFORMS, 0))


def _chosen(node: Node, name: str, names: Sequence[str], default: int) -> str:
    number = node.attr_int(name, default)
    if not 0 <= number < len(names):
        raise node.broken(f"{name} is unknown", f"0 to {len(names) - 1}", number)
    return names[number]


def _total(node: Node, forest: trees.Trees, values: np.ndarray, aggregate: str) -> Value:
    """The values of the leaves that rows reach, over all trees."""
    x = node.input(0)
    if aggregate not in _AGGREGATES:
        raise node.broken("aggregate_function is unknown", ", ".join(_AGGREGATES), aggregate)
    features = x.shape[1] if x.rank == 2 else None
    if features is None or not features.is_static or not _fit(forest, features.value):
        got = [str(dim) for dim in x.shape]
        most = int(forest.feature.max(initial=-1)) + 1
        raise node.broken("the trees do not fit the operand", f"{most} features or more", got)
    if not forest.is_forest():
        raise node.broken("nodes are not those of trees", "one path to each node")
    numbers = cast(node, x, forest.threshold.dtype)
    threshold, feature, following, leaf, root, depth = map(node.known, forest.arrays())
    total = node.tree_ensemble(
        numbers,
        threshold,
        feature,
        following,
        leaf,
        node.known(values),
        root,
        depth,
        kind=_AGGREGATES[aggregate],
    )
    if aggregate != "AVERAGE":
        return total
    return node.mul(total, 1 / max(len(forest.root), 1))


def _fit(forest: trees.Trees, features: int) -> bool:
    """Whether nodes and features are there that the nodes name."""
    asks = forest.mode != trees.LEAF
    named = np.concatenate([forest.when_true[asks], forest.when_false[asks], forest.root])
    count, own = len(forest.mode), forest.feature[asks]
    return bool(((named >= 0) & (named < count)).all() and ((own >= 0) & (own < features)).all())


def _array(node: Node, name: str, dtype: np.dtype, count: int) -> np.ndarray:
    """An attribute of numbers, as a list or a tensor; zeros where it is left out."""
    found = node.attr_tensor(f"{name}_as_tensor")
    given = found if found is not None else node.attr_floats(name)
    array = np.zeros(count) if given is None else np.asarray(given)
    return _checked(node, name, array.astype(dtype), count)


def _integers(node: Node, name: str, count: int | None = None, default: int = 0) -> np.ndarray:
    given = node.attr_ints(name)
    if given is None and count is None:
        raise node.broken(f'attribute "{name}" is missing')
    array = np.full(count or 0, default) if given is None else np.array(given, np.int64)
    return array if count is None else _checked(node, name, array, count)


def _checked(node: Node, name: str, array: np.ndarray, count: int) -> np.ndarray:
    if array.shape != (count,):
        raise node.broken(f'attribute "{name}" has the wrong length', count, array.size)
    return array


def _older_trees(node: Node, kind: str) -> tuple[trees.Trees, np.ndarray]:
    """The trees, whose nodes are named by numbers, and the row of values of each weight."""
    node.ignore("nodes_hitrates", "nodes_hitrates_as_tensor")
    tree, own = _integers(node, "nodes_treeids"), _integers(node, "nodes_nodeids")
    count = len(tree)
    _checked(node, "nodes_nodeids", own, count)
    names = node.attr_strings("nodes_modes") or []
    unknown = [name for name in names if name not in trees.MODES]
    if len(names) != count or unknown:
        raise node.broken("nodes_modes is wrong", f"{count} of {', '.join(trees.MODES)}", unknown)
    mode = np.array([trees.MODES[name] for name in names], np.int64)
    places = {
        pair: place for place, pair in enumerate(zip(tree.tolist(), own.tolist(), strict=True))
    }
    if len(places) < count:
        raise node.broken("two nodes have one name", "one number each in a tree")

    def named(name: str, of: np.ndarray) -> np.ndarray:
        pairs = zip(of.tolist(), _integers(node, name, len(of)).tolist(), strict=True)
        return np.array([places.get(pair, -1) for pair in pairs], np.int64)

    leaf = np.zeros(count, np.int64)
    is_leaf = mode == trees.LEAF
    leaf[is_leaf] = np.arange(is_leaf.sum())
    reached = named(f"{kind}_nodeids", _integers(node, f"{kind}_treeids"))
    if (reached < 0).any() or not is_leaf[reached].all():
        raise node.broken("a weight is not that of a leaf", "nodes that are leaves")
    when_true, when_false = named("nodes_truenodeids", tree), named("nodes_falsenodeids", tree)
    is_child = np.zeros(count, np.bool_)
    for child in (when_true, when_false):
        inner = child[~is_leaf]
        is_child[inner[inner >= 0]] = True
    forest = trees.Trees(
        mode,
        _integers(node, "nodes_featureids", count),
        _array(node, "nodes_values", number_type(node.input(0).dtype), count),
        when_true,
        when_false,
        _integers(node, "nodes_missing_value_tracks_true", count).astype(np.bool_),
        leaf,
        np.flatnonzero(~is_child),
    )
    if len(forest.root) != len(set(tree.tolist())):
        raise node.broken("nodes are not those of trees", "one root for each tree")
    return forest, leaf[reached]


def _weights(node: Node, kind: str, rows: np.ndarray, columns: int) -> np.ndarray:
    """The values of leaves: a row for each, a column for each target or class."""
    targets = _integers(node, f"{kind}_ids", len(rows))
    weights = _array(node, f"{kind}_weights", _F32, len(rows))
    if len(rows) and (targets.min() < 0 or targets.max() >= columns):
        raise node.broken(f"{kind}_ids out of range", f"0 to {columns - 1}", int(targets.max()))
    values = np.zeros((int(rows.max(initial=-1)) + 1, columns), np.float32)
    np.add.at(values, (rows, targets), weights)
    return values


def _with_base(node: Node, scores: Value, columns: int) -> Value:
    """Scores with the base values, of which there is one for each, or for all."""
    given = node.attr_tensor("base_values_as_tensor")
    base = np.asarray(node.attr_floats("base_values") or [] if given is None else given)
    if not base.size:
        return scores
    if base.size not in (1, columns):
        raise node.broken("base_values has the wrong length", f"1 or {columns}", base.size)
    return node.add(scores, node.known(base.ravel().astype(np.float32)))


def _newer_trees(node: Node) -> tuple[trees.Trees, np.ndarray]:
    """The trees, whose leaves are apart from the other nodes, and the values of leaves."""
    node.ignore("nodes_hitrates")
    feature = _integers(node, "nodes_featureids")
    count, kind = len(feature), node.input(0).dtype
    target = _integers(node, "leaf_targetids")
    leaves, columns = len(target), node.attr_int("n_targets", 1)
    if leaves and not 0 <= target.min() <= target.max() < columns:
        raise node.broken("leaf_targetids out of range", f"0 to {columns - 1}", int(target.max()))
    values = np.zeros((leaves, columns), kind)
    values[np.arange(leaves), target] = _tensor(node, "leaf_weights", leaves).astype(kind)
    mode = _tensor(node, "nodes_modes", count).astype(np.int64)
    if count and not 0 <= mode.min() <= mode.max() < trees.LEAF:
        raise node.broken("nodes_modes out of range", "0 to 6", int(mode.max()))

    def after(side: str) -> np.ndarray:
        child = _integers(node, f"nodes_{side}nodeids", count)
        is_leaf = _integers(node, f"nodes_{side}leafs", count) != 0
        bad = (child < 0) | (child >= np.where(is_leaf, leaves, count))
        return np.where(bad, -1, child + np.where(is_leaf, count, 0))

    def with_leaves(array: np.ndarray, value: float = 0) -> np.ndarray:
        return np.concatenate([array, np.full(leaves, value, array.dtype)])

    forest = trees.Trees(
        with_leaves(mode, trees.LEAF),
        with_leaves(feature),
        with_leaves(_tensor(node, "nodes_splits", count).astype(kind)),
        with_leaves(after("true")),
        with_leaves(after("false")),
        with_leaves(_integers(node, "nodes_missing_value_tracks_true", count)) != 0,
        np.concatenate([np.zeros(count, np.int64), np.arange(leaves)]),
        _integers(node, "tree_roots"),
        _sets(node, int((mode == trees.MEMBER).sum())),
    )
    return forest, values


def _tensor(node: Node, name: str, count: int) -> np.ndarray:
    found = node.attr_tensor(name)
    if found is None:
        raise node.broken(f'attribute "{name}" is missing')
    return _checked(node, name, found, count)


def _sets(node: Node, count: int) -> Sequence[np.ndarray]:
    """The sets of `membership_values`, each of which ends with a NaN."""
    found = node.attr_tensor("membership_values")
    members = np.zeros(0) if found is None else found
    ends = np.flatnonzero(np.isnan(members))
    sets = [part[~np.isnan(part)] for part in np.split(members, ends)]
    if len(ends) and ends[-1] == len(members) - 1:
        sets.pop()
    sets = sets if members.size else []
    if len(sets) != count:
        raise node.broken("membership_values has the wrong number of sets", count, len(sets))
    return sets
