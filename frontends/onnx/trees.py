"""Decision trees of ONNX in the form of `graph.tree_ensemble`: each node asks whether x <= t."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

LEQ, LT, GTE, GT, EQ, NEQ, MEMBER, LEAF = range(8)
MODES = {
    "BRANCH_LEQ": LEQ,
    "BRANCH_LT": LT,
    "BRANCH_GTE": GTE,
    "BRANCH_GT": GT,
    "BRANCH_EQ": EQ,
    "BRANCH_NEQ": NEQ,
    "LEAF": LEAF,
}
"""The modes of nodes by the names of the older operators."""


@dataclass(frozen=True)
class Trees:
    """Nodes of trees; all but `root` and `sets` have an element for each node.

    A node leads to `when_true` if x compares with `threshold` as `mode` says, or is NaN and
    `takes_nan` holds. A leaf has the values of row `leaf`. Nodes that ask for the membership of a
    set have one in `sets`, in their order.
    """

    mode: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    when_true: np.ndarray
    when_false: np.ndarray
    takes_nan: np.ndarray
    leaf: np.ndarray
    root: np.ndarray
    sets: Sequence[np.ndarray] = ()

    def is_forest(self) -> bool:
        """Whether no path meets a node that asks again, nor one of another path."""
        node, seen = self.root, np.zeros(len(self.mode), np.bool_)
        while node.size:
            node = node[self.mode[node] != LEAF]
            if seen[node].any() or len(np.unique(node)) < len(node):
                return False
            seen[node] = True
            node = np.concatenate([self.when_true[node], self.when_false[node]])
        return True

    def arrays(self) -> list[np.ndarray]:
        """`threshold`, `feature`, `next`, `leaf`, `root` and `depth` of a forest."""
        trees = self._without_sets()
        threshold, feature, following, leaf, root = trees._as_comparisons()
        integers = [feature, following, leaf, root, _depths(following, root)]
        return [threshold, *(array.astype(np.int32) for array in integers)]

    def _without_sets(self) -> Trees:
        """The trees with a node for each member of a set, which asks whether x is that one."""
        count, sets = len(self.mode), iter(self.sets)
        mode, threshold = self.mode.copy(), self.threshold.copy()
        origin, when_false = list(range(count)), self.when_false.tolist()
        more: list[float] = []
        for node in np.flatnonzero(self.mode == MEMBER):
            # x == nan  for no x
            first, *others = [*next(sets), np.nan]
            mode[node], threshold[node] = EQ, first
            before = node
            for member in others:
                when_false[before] = len(origin)
                before = len(origin)
                origin.append(int(node))
                when_false.append(int(self.when_false[node]))
                more.append(member)
        return Trees(
            mode[origin],
            self.feature[origin],
            np.concatenate([threshold, np.array(more, threshold.dtype)]),
            self.when_true[origin],
            np.array(when_false, np.int64),
            self.takes_nan[origin],
            self.leaf[origin],
            self.root,
        )

    def _as_comparisons(self) -> tuple[np.ndarray, ...]:
        """`threshold`, `feature`, `next`, `leaf` and `root` of nodes that ask whether x <= t.

        What x is that is NaN leads to the second of `next`.
        """
        mode, count = self.mode, len(self.mode)
        own, least = np.arange(count), np.array(-np.inf, self.threshold.dtype)
        # x < t  is  x <= the number before t, and never where there is none
        before = np.nextafter(self.threshold, least)
        before[self.threshold == least] = np.nan
        is_leaf, is_equal = mode == LEAF, np.isin(mode, [EQ, NEQ])
        swapped = np.isin(mode, [GTE, GT, NEQ])
        low = np.where(swapped, self.when_false, self.when_true)
        high = np.where(swapped, self.when_true, self.when_false)
        # NaN is not equal to t
        takes_nan = self.takes_nan | (mode == NEQ)
        for_nan = np.where(takes_nan, self.when_true, self.when_false)
        guarded = np.flatnonzero(~is_leaf & (for_nan != high))
        equal = np.flatnonzero(is_equal)
        entry = own.copy()
        entry[guarded] = count + np.arange(len(guarded))
        # x == t  is  x <= t  and not  x < t
        below = count + len(guarded) + np.arange(len(equal))
        following = np.stack([entry[low], entry[high]], axis=1)
        following[is_leaf] = own[is_leaf, None]
        seconds = following[equal][:, ::-1]
        following[equal, 0] = below
        guards = np.stack([guarded, entry[for_nan[guarded]]], axis=1)
        bound = np.where(np.isin(mode, [LT, GTE]), before, self.threshold)
        bounds = bound, np.full(len(guarded), np.inf, bound.dtype), before[equal]
        origin = np.concatenate([own, guarded, equal])
        feature = np.where(is_leaf, 0, self.feature)[origin]
        following = np.concatenate([following, guards, seconds])
        return np.concatenate(bounds), feature, following, self.leaf[origin], entry[self.root]


def _depths(following: np.ndarray, root: np.ndarray) -> np.ndarray:
    """How many nodes the longest path of each tree has before its leaf."""
    depth, level = np.zeros(len(root), np.int64), 0
    node, tree = root, np.arange(len(root))
    while True:
        asks = following[node, 0] != node
        node, tree = node[asks], tree[asks]
        if not node.size:
            return depth
        level += 1
        depth[tree] = level
        node, places = np.unique(following[node].ravel(), return_index=True)
        tree = np.repeat(tree, 2)[places]
