"""Graph convolutions that sum, average or compare what neighbours have.

Each is torch-geometric's layer of the same name, at inference, with its weights as arrays. A
repeated edge counts as several edges.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...dialects.sparse_tensor import is_sparse
from ..builder import Value
from .context import Context
from .layers import (
    Convolution,
    Layer,
    Linear,
    add_bias,
    apply,
    chained,
    layers_of,
    linear,
    linear_of_pair,
)
from .weights import (
    AGGREGATES,
    bias_of,
    check_width,
    error,
    matrix_of,
    number,
    one_of,
    require_dense,
    shaped,
)


class GCNConv(Layer):
    """Graph convolution of Kipf and Welling (2017): D^-1/2 (A + I) D^-1/2 X W + b.

    As torch-geometric's layer of the same name: row i of A holds the weights of the edges into node
    i, I is added only for nodes without a self loop (of several self loops the last one counts), D
    is the diagonal of the row sums of A + I, and D^-1/2 is 0 where such a sum is 0.

    Args:
        weight: W, shape (in, out): the transpose of torch-geometric's ``lin.weight``.
        bias: b, shape (out,), or None.
        normalize: False multiplies by A instead.
        add_self_loops: whether to add I; by default the same as `normalize`.

    Raises:
        InputError: for wrong shapes or dtypes, or self loops without normalization.
    """

    _state = {"weight": "lin.weight.T", "bias": "bias"}

    def __init__(
        self,
        weight: np.ndarray,
        bias: np.ndarray | None = None,
        *,
        normalize: bool = True,
        add_self_loops: bool | None = None,
    ) -> None:
        if add_self_loops and not normalize:
            raise error("GCNConv", "add_self_loops requires normalize")
        self.weight = matrix_of("GCNConv", weight)
        self.bias = bias_of("GCNConv", bias, self.weight.shape[1])
        self.normalize = normalize
        self.add_self_loops = normalize if add_self_loops is None else add_self_loops

    def emit(self, context: Context, x: Value, name: str) -> Value:
        check_width("GCNConv", name, x, self.weight.shape[0])
        b, a = context.builder, context.adjacency
        weight = b.constant(self.weight, f"{name}.weight", x.dtype)
        y = b.spmm(x, weight) if is_sparse(x.ssa.type) else b.matmul(x, weight)
        if self.normalize:
            a = b.normalize(a, kind="symmetric", self_loops=self.add_self_loops)
        return add_bias(context, b.spmm(a, y), self.bias, name)


def _arrived(
    context: Context,
    layer: Linear,
    sent: Value,
    aggr: str,
    names: tuple[str, str, str],
    weight: Value | None = None,
) -> Value:
    """What the neighbours of each node send, combined, through a linear layer.

    `names` are those of the class, of the convolution, and of the layer in it.
    """
    (out, width), b = layer.weight.shape, context.builder
    subject, name, own = names

    def combined(x: Value) -> Value:
        return b.aggregate(context.adjacency, x, weight, aggr)

    # Aggregation commutes with the product, so the narrower rows are aggregated.
    if aggr in ("sum", "mean") and (is_sparse(sent.ssa.type) or out < width):
        narrow = apply(context, linear(subject, own, layer.weight), sent, f"{name}.{own}")
        return add_bias(context, combined(narrow), layer.bias, f"{name}.{own}")
    require_dense(subject, f'aggr "{aggr}" in layer "{name}"', sent)
    check_width(subject, name, sent, width)
    return apply(context, layer, combined(sent), f"{name}.{own}")


class SAGEConv(Convolution):
    """GraphSAGE of Hamilton et al. (2017): aggregate(x_j) W_l^T + b + x_i W_r^T.

    Args:
        weight_l: W_l, shape (out, in), for the aggregated neighbours.
        bias: b, shape (out,), or None.
        weight_r: W_r, shape (out, in), for the node itself, or None to omit that term
            (torch-geometric's ``root_weight=False``).
        aggr: "mean", "sum" (or "add"), "max" or "min"; a node without neighbours gets 0.
        normalize: whether each row of the result is divided by its Euclidean norm.
        project: weight (in, in) and bias (in,) of torch-geometric's ``project=True``: neighbours
            send relu(x W^T + b).

    Raises:
        InputError: for wrong shapes or dtypes, or an unknown `aggr`.
    """

    _state = {
        "weight_l": "lin_l.weight",
        "bias": "lin_l.bias",
        "weight_r": "lin_r.weight",
        "project": "lin.weight lin.bias",
    }

    def __init__(
        self,
        weight_l: np.ndarray,
        bias: np.ndarray | None = None,
        weight_r: np.ndarray | None = None,
        *,
        aggr: str = "mean",
        normalize: bool = False,
        project: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> None:
        self.aggr = AGGREGATES[one_of("SAGEConv", "aggr", aggr, list(AGGREGATES))]
        self.left = linear("SAGEConv", "weight_l", weight_l, bias)
        self.right = None
        if weight_r is not None:
            self.right = linear("SAGEConv", "weight_r", weight_r)
        if self.right is not None and self.right.weight.shape[0] != self.left.weight.shape[0]:
            fact = "weight_l and weight_r differ in outputs"
            raise error("SAGEConv", fact, self.left.weight.shape, self.right.weight.shape)
        self.project = None
        if project is not None:
            self.project = linear_of_pair("SAGEConv", "project", project)
        self.normalize = normalize

    @property
    def parts(self) -> tuple[Layer, ...]:
        return tuple(p for p in (self.left, self.right, self.project) if p is not None)

    def convolve(self, context: Context, sources: Value, targets: Value, name: str) -> Value:
        b, sent = context.builder, sources
        if self.project is not None:
            sent = b.relu(apply(context, self.project, sources, f"{name}.lin"))
        names = "SAGEConv", name, "lin_l"
        y = _arrived(context, self.left, sent, self.aggr, names)
        if self.right is not None:
            y = y + apply(context, self.right, targets, f"{name}.lin_r")
        if not self.normalize:
            return y
        length = b.sqrt(b.reduce(y * y, "sum", [1], True))
        return y / b.clip(length, minimum=1e-12)


class GraphConv(Convolution):
    """The convolution of Morris et al. (2019): aggregate(w_ij x_j) W_rel^T + b + x_i W_root^T.

    w_ij is the weight of the edge from j to i.

    Args:
        weight_rel: W_rel, shape (out, in), for the aggregated neighbours.
        bias: b, shape (out,), or None.
        weight_root: W_root, shape (out, in), for the node itself, or None to omit that term.
        aggr: "sum" (or "add"), "mean", "max" or "min"; a node without neighbours gets 0.

    Raises:
        InputError: for wrong shapes or dtypes, or an unknown `aggr`.
    """

    _state = {
        "weight_rel": "lin_rel.weight",
        "bias": "lin_rel.bias",
        "weight_root": "lin_root.weight",
    }

    def __init__(
        self,
        weight_rel: np.ndarray,
        bias: np.ndarray | None = None,
        weight_root: np.ndarray | None = None,
        *,
        aggr: str = "sum",
    ) -> None:
        self.aggr = AGGREGATES[one_of("GraphConv", "aggr", aggr, list(AGGREGATES))]
        self.rel = linear("GraphConv", "weight_rel", weight_rel, bias)
        self.root = None
        if weight_root is not None:
            out = self.rel.weight.shape[0]
            root = shaped("GraphConv", "weight_root", weight_root, (out, None))
            self.root = linear("GraphConv", "weight_root", root)

    @property
    def parts(self) -> tuple[Layer, ...]:
        return (self.rel,) if self.root is None else (self.rel, self.root)

    def convolve(self, context: Context, sources: Value, targets: Value, name: str) -> Value:
        names = "GraphConv", name, "lin_rel"
        y = _arrived(context, self.rel, sources, self.aggr, names, context.edge_weight)
        if self.root is None:
            return y
        return y + apply(context, self.root, targets, f"{name}.lin_root")


class GINConv(Convolution):
    """Graph isomorphism of Xu et al. (2019): nn((1 + eps) x_i + sum of x_j).

    Args:
        nn: the layers applied to the sum, in order.
        eps: the additional weight of the node itself.

    Raises:
        InputError: if `nn` is not a layer or a list of layers.
    """

    _state = {"eps": "eps"}

    def __init__(self, nn: Layer | Sequence[Layer], eps: float = 0.0) -> None:
        self.nn = layers_of("GINConv", nn)
        self.eps = number("GINConv", "eps", eps)

    @property
    def parts(self) -> tuple[Layer, ...]:
        return self.nn

    def convolve(self, context: Context, sources: Value, targets: Value, name: str) -> Value:
        require_dense("GINConv", f'layer "{name}"', sources)
        arrived = context.builder.aggregate(context.adjacency, sources)
        return chained(context, self.nn, arrived + targets * (1.0 + self.eps), f"{name}.nn")
