"""Convolutions with weights of their own for each type of edge."""

from __future__ import annotations

import numpy as np

from ..builder import Value
from .context import Context
from .layers import Convolution, add_bias
from .weights import AGGREGATES, bias_of, check_width, error, floats, one_of, require_dense, shaped


class RGCNConv(Convolution):
    """Relational convolution of Schlichtkrull et al. (2018).

    For each relation r what arrives by edges of type r is combined and multiplied by W_r; these are
    summed, plus x_i W_root and b. Types are integers from 0 on; another one is an error of the
    call.

    Args:
        weight: W, shape (R, in, out); or bases (B, in, out) with `comp`; or blocks
            (R, N, in / N, out / N) of matrices that are 0 outside of N blocks on the diagonal.
        root: W_root, shape (in, out), or None to omit that term.
        bias: b, shape (out,), or None.
        comp: the coefficients of the bases, shape (R, B): W_r is their sum.
        aggr: "mean", "sum" (or "add"), "max" or "min".

    Raises:
        InputError: for wrong shapes or dtypes, or an unknown `aggr`.
    """

    _state = {key: key for key in ("weight", "root", "bias", "comp")}

    def __init__(
        self,
        weight: np.ndarray,
        root: np.ndarray | None = None,
        bias: np.ndarray | None = None,
        comp: np.ndarray | None = None,
        *,
        aggr: str = "mean",
    ) -> None:
        self.aggr = AGGREGATES[one_of("RGCNConv", "aggr", aggr, list(AGGREGATES))]
        self.weight = _relations(floats("RGCNConv", "weight", weight), comp)
        if not len(self.weight):
            raise error("RGCNConv", "there is no relation")
        out = self.weight.shape[2]
        self.root = None if root is None else shaped("RGCNConv", "root", root, (None, out))
        self.bias = bias_of("RGCNConv", bias, out)

    def convolve(self, context: Context, sources: Value, targets: Value, name: str) -> Value:
        require_dense("RGCNConv", f'layer "{name}"', sources)
        check_width("RGCNConv", name, sources, self.weight.shape[1])
        b = context.builder
        a = _by_relation(context, sources, targets, len(self.weight), name)
        weight = b.constant(self.weight, f"{name}.weight", sources.dtype)
        y = b.aggregate_dense(a, sources, weight, kind=self.aggr)
        if self.root is not None:
            y = y + b.matmul(targets, b.constant(self.root, f"{name}.root", targets.dtype))
        return add_bias(context, y, self.bias, name)


def _relations(weight: np.ndarray, comp: np.ndarray | None) -> np.ndarray:
    """The weights of each relation, (R, in, out), of bases or of blocks on the diagonal."""
    if weight.ndim == 4 and comp is None:
        relations, blocks, inputs, outputs = weight.shape
        whole = np.zeros((relations, blocks, inputs, blocks, outputs), weight.dtype)
        number = np.arange(blocks)
        whole[:, number, :, number] = weight.swapaxes(0, 1)
        return whole.reshape(relations, blocks * inputs, blocks * outputs)
    if weight.ndim != 3:
        expected = "(relations, in, out), or four sizes for blocks"
        raise error("RGCNConv", "the weight has the wrong shape", expected, weight.shape)
    if comp is None:
        return weight
    return np.tensordot(shaped("RGCNConv", "comp", comp, (None, len(weight))), weight, 1)


def _by_relation(
    context: Context, sources: Value, targets: Value, relations: int, name: str
) -> Value:
    """The matrix that has a row for each relation and target, one relation after the other."""
    b = context.builder
    if context.edge_type is None or context.ends is None:
        fact = f'layer "{name}" needs types of edges'
        raise error("RGCNConv", fact, "edge_type=... of to_module", "none")
    source, target = context.ends()
    kind = b.check_indices(context.edge_type, size=relations)
    # An index that is out of range would be a row of another relation.
    target = b.check_indices(target, targets)
    rows = b.cast(kind, "i64") * b.dim(targets, 0) + b.cast(target, "i64")
    # Only its size is read.
    first = b.slice(targets, starts=[0, 0], ends=[_ALL, 1])
    nodes = b.reshape(b.equal(first, first), [1, -1])
    all_rows = b.reshape(b.broadcast_to(nodes, [relations, -1]), [-1])
    a, _ = b.csr_from_edges(rows, b.cast(source, "i64"), (all_rows, sources), dtype=sources.dtype)
    return a


_ALL = (1 << 63) - 1
