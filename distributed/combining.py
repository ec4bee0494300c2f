"""Results over all nodes, of those over the nodes of each part."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..dialects.graph.attrs import ReduceKind
from ..dialects.graph.combiners import COMBINER_OF
from ..dialects.graph.interfaces import widened


def combined(kind: ReduceKind, partials: Sequence[np.ndarray], counts: Sequence[int]) -> np.ndarray:
    """What `graph.combine` stands for.

    Args:
        kind: how partial results are combined.
        partials: those of the parts, of one shape and dtype.
        counts: the numbers of nodes of the parts. One without nodes has no say.
    """
    known = [(array, n) for array, n in zip(partials, counts, strict=True) if n]
    if not known:
        return np.array(partials[0])
    arrays, weights = [array for array, _ in known], [n for _, n in known]
    with np.errstate(all="ignore"):
        if kind == ReduceKind.MEAN:
            wide = np.stack(arrays).astype(np.float64)
            result = np.average(wide, axis=0, weights=weights)
        else:
            result = COMBINER_OF[kind].reduced(widened(np.stack(arrays)), (0,))
    return np.asarray(result).astype(partials[0].dtype)
