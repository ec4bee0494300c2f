"""Convolutions that are polynomials in the adjacency matrix of the graph.

Each is torch-geometric's layer of the same name, at inference, with its weights as arrays. A layer
normalises the matrix A of edge weights as `GCNConv` does: D^-1/2 A D^-1/2, D its row sums.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..builder import Value
from .context import Context
from .layers import Layer, Linear, add_bias, apply
from .weights import bias_of, error, number, require_dense, shaped, whole


class SGConv(Layer):
    """Simplified graph convolution of Wu et al. (2019): P^K X W^T + b, P the normalised A + I.

    Args:
        weight: W, shape (out, in).
        bias: b, shape (out,), or None.
        K: how often neighbours are summed.
        add_self_loops: whether to add I.

    Raises:
        InputError: for wrong shapes or dtypes.
    """

    _state = {"weight": "lin.weight", "bias": "lin.bias"}

    def __init__(
        self,
        weight: np.ndarray,
        bias: np.ndarray | None = None,
        *,
        K: int = 1,
        add_self_loops: bool = True,
    ) -> None:
        self.lin = Linear(weight, bias)
        self.steps = whole("SGConv", "K", K)
        self.add_self_loops = add_self_loops

    @property
    def parts(self) -> tuple[Layer, ...]:
        return (self.lin,)

    def emit(self, context: Context, x: Value, name: str) -> Value:
        b = context.builder
        a = b.normalize(context.adjacency, self_loops=self.add_self_loops)
        # The product commutes with the sums, so the narrower rows are summed.
        out, width = self.lin.weight.shape
        y = apply(context, Linear(self.lin.weight), x, f"{name}.lin") if out < width else x
        require_dense("SGConv", f'layer "{name}"', y)
        for _ in range(self.steps):
            y = b.spmm(a, y)
        if out < width:
            return add_bias(context, y, self.lin.bias, f"{name}.lin")
        return apply(context, self.lin, y, f"{name}.lin")


class APPNP(Layer):
    """Propagation by personalised PageRank of Gasteiger et al. (2019).

    K times y = (1 - alpha) P y + alpha X, beginning with X, for the normalised A + I as P.

    Args:
        K: the number of steps.
        alpha: the probability of a return to the node, in [0, 1].
        add_self_loops: whether to add I.

    Raises:
        InputError: if `K` or `alpha` is out of range.
    """

    def __init__(self, K: int, alpha: float, *, add_self_loops: bool = True) -> None:
        self.steps, self.alpha = whole("APPNP", "K", K), number("APPNP", "alpha", alpha)
        if not 0 <= self.alpha <= 1:
            raise error("APPNP", "alpha is not a probability", "0 to 1", alpha)
        self.add_self_loops = add_self_loops

    def emit(self, context: Context, x: Value, name: str) -> Value:
        require_dense("APPNP", f'layer "{name}"', x)
        b, y = context.builder, x
        a = b.normalize(context.adjacency, self_loops=self.add_self_loops)
        rest = x * self.alpha
        for _ in range(self.steps):
            y = b.spmm(a, y) * (1.0 - self.alpha) + rest
        return y


class TAGConv(Layer):
    """Topology adaptive convolution of Du et al. (2017): sum of P^k X W_k^T, plus b.

    P is the normalised matrix A, without self loops that are not there.

    Args:
        weights: W_0 to W_K, each of shape (out, in).
        bias: b, shape (out,), or None.
        normalize: False takes A as P.

    Raises:
        InputError: for wrong shapes or dtypes, or if there is no weight.
    """

    _state = {"weights": "lins.*.weight", "bias": "bias"}

    def __init__(
        self,
        weights: Sequence[np.ndarray],
        bias: np.ndarray | None = None,
        *,
        normalize: bool = True,
    ) -> None:
        self.lins = _linears("TAGConv", weights)
        self.bias = bias_of("TAGConv", bias, self.lins[0].weight.shape[0])
        self.normalize = normalize

    @property
    def parts(self) -> tuple[Layer, ...]:
        return self.lins

    def emit(self, context: Context, x: Value, name: str) -> Value:
        require_dense("TAGConv", f'layer "{name}"', x)
        b, a = context.builder, context.adjacency
        if self.normalize:
            a = b.normalize(a, self_loops=False)
        y = apply(context, self.lins[0], x, f"{name}.lins_0")
        for power, lin in enumerate(self.lins[1:], 1):
            x = b.spmm(a, x)
            y = y + apply(context, lin, x, f"{name}.lins_{power}")
        return add_bias(context, y, self.bias, name)


class ChebConv(Layer):
    """Chebyshev convolution of Defferrard et al. (2016): sum of T_k(-P) X W_k^T, plus b.

    T_0 = 1, T_1(x) = x, T_k(x) = 2 x T_{k-1}(x) - T_{k-2}(x), and P is D^-1/2 A D^-1/2, where A is
    without its self loops and D has the sums of its columns: torch-geometric's layer with
    ``normalization="sym"`` and the largest eigenvalue 2.

    Args:
        weights: W_0, W_1, ..., each of shape (out, in).
        bias: b, shape (out,), or None.

    Raises:
        InputError: for wrong shapes or dtypes, or if there is no weight.
    """

    _state = {"weights": "lins.*.weight", "bias": "bias"}

    def __init__(self, weights: Sequence[np.ndarray], bias: np.ndarray | None = None) -> None:
        self.lins = _linears("ChebConv", weights)
        self.bias = bias_of("ChebConv", bias, self.lins[0].weight.shape[0])

    @property
    def parts(self) -> tuple[Layer, ...]:
        return self.lins

    def emit(self, context: Context, x: Value, name: str) -> Value:
        require_dense("ChebConv", f'layer "{name}"', x)
        b, weights = context.builder, self._normalised(context, x)
        before, now = None, x
        y = apply(context, self.lins[0], x, f"{name}.lins_0")
        for power, lin in enumerate(self.lins[1:], 1):
            made = b.aggregate(context.adjacency, now, weights)
            before, now = now, -made if before is None else made * -2.0 - before
            y = y + apply(context, lin, now, f"{name}.lins_{power}")
        return add_bias(context, y, self.bias, name)

    @staticmethod
    def _normalised(context: Context, x: Value) -> Value:
        """The normalised weight of each edge; that of a self loop is 0."""
        b, numbers = context.builder, context.numbers(x)
        sources, targets = context.at_sources(numbers), context.at_targets(numbers)
        rest = b.cast(b.logical_not(b.equal(sources, targets)), x.dtype)
        weights = b.entries(context.adjacency) * rest
        zeros = b.cast(numbers * 0.0, x.dtype)
        degree = b.scatter_nd(zeros, weights, [b.cast(sources, "i64")], kind="add")
        scale = b.where(b.equal(degree, 0.0), 0.0, b.rsqrt(degree))
        return context.at_sources(scale) * weights * context.at_targets(scale)


def _linears(subject: str, weights: Sequence[np.ndarray]) -> tuple[Linear, ...]:
    """Linear layers of one shape."""
    if not len(weights):
        raise error(subject, "there is no weight")
    first = Linear(weights[0])
    return tuple(Linear(shaped(subject, "weight", w, first.weight.shape)) for w in weights)
