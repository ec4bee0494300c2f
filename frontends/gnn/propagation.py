"""Convolutions that are polynomials in the adjacency matrix of the graph.

Each is torch-geometric's layer of the same name, at inference, with its weights as arrays. A layer
normalises the matrix A of edge weights as `GCNConv` does: D^-1/2 A D^-1/2, D its row sums.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...dialects.graph.ops.moves.select import WHOLE_END
from ..builder import Builder, Value
from .activations import ReLU
from .context import Context
from .layers import Layer, Linear, add_bias, apply, chained, layers_of, linear
from .weights import (
    bias_of,
    check_width,
    error,
    matrix_of,
    number,
    require_dense,
    shaped,
    whole,
)


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
        self.lin = linear("SGConv", "weight", weight, bias)
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
        y, product = x, linear("SGConv", "weight", self.lin.weight)
        if out < width:
            y = apply(context, product, x, f"{name}.lin")
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


class ARMAConv(Layer):
    """Auto-regressive moving average filters of Bianchi et al. (2019): the mean of K stacks.

    A stack repeats y = act(P y W + X V + b), beginning with y = X, where P is the normalised
    matrix A, without self loops that are not there.

    Args:
        init_weight: W of the first step, shape (K, in, out).
        root_weight: V of each of T steps, shape (T, K, in, out); T is 1 where steps share weights.
        weight: W of later steps, shape (T - 1, K, out, out), or (1, K, out, out) where they share
            weights; None where there are none.
        bias: b, shape (T, K, 1, out), or None.
        num_layers: the number of steps; by default T.
        act: the layer after each step, by default `ReLU`; () for none.

    Raises:
        InputError: for wrong shapes or dtypes, or if there are no weights for each step.
    """

    _state = {key: key for key in ("init_weight", "root_weight", "weight", "bias")}

    def __init__(
        self,
        init_weight: np.ndarray,
        root_weight: np.ndarray,
        weight: np.ndarray | None = None,
        bias: np.ndarray | None = None,
        *,
        num_layers: int | None = None,
        act: Layer | Sequence[Layer] | None = None,
    ) -> None:
        subject = "ARMAConv"
        self.init = shaped(subject, "init_weight", init_weight, (None, None, None))
        stacks, width, out = self.init.shape
        self.root = shaped(subject, "root_weight", root_weight, (None, stacks, width, out))
        given = len(self.root)
        self.steps = whole(subject, "num_layers", given if num_layers is None else num_layers)
        if given not in (1, self.steps):
            fact = "root_weight does not have weights of each step"
            raise error(subject, fact, f"{self.steps} or 1", given)
        # torch-geometric keeps weights of a second step where there is none.
        later = 0 if self.steps == 1 else 1 if given == 1 else self.steps - 1
        if later and weight is None:
            raise error(subject, "weight is missing", f"those of {later} steps", "none")
        self.weight = None
        if later:
            self.weight = shaped(subject, "weight", weight, (later, stacks, out, out))
        self.bias = None
        if bias is not None:
            self.bias = shaped(subject, "bias", bias, (given, stacks, 1, out))
        self.act = layers_of(subject, ReLU() if act is None else act)

    @property
    def parts(self) -> tuple[Layer, ...]:
        return self.act

    def emit(self, context: Context, x: Value, name: str) -> Value:
        require_dense("ARMAConv", f'layer "{name}"', x)
        check_width("ARMAConv", name, x, self.init.shape[1])
        b, (stacks, _, out) = context.builder, self.init.shape
        a = b.normalize(context.adjacency, self_loops=False)
        y = b.matmul(x, self._constant(b, x, self.init, f"{name}.init_weight"))
        for step in range(self.steps):
            own = min(step, len(self.root) - 1)
            if step:
                y = self._products(b, y, step, name)
            root = self._constant(b, x, self.root[own], f"{name}.root_weight_{own}")
            y = b.spmm(a, y) + b.matmul(x, root)
            if self.bias is not None:
                y = add_bias(context, y, self.bias[own].reshape(-1), f"{name}.bias_{own}")
            y = chained(context, self.act, y, f"{name}.act_{step}")
        if stacks == 1:
            return y
        return b.reduce(b.reshape(y, [-1, stacks, out]), "mean", [1], False)

    def _products(self, b: Builder, y: Value, step: int, name: str) -> Value:
        """The features of each stack times the weights of a later step."""
        assert self.weight is not None
        own, (stacks, _, out) = min(step, len(self.weight)) - 1, self.init.shape
        parts = [
            b.matmul(
                b.slice(y, starts=[0, k * out], ends=[WHOLE_END, (k + 1) * out]),
                b.constant(self.weight[own, k], f"{name}.weight_{own}_{k}", y.dtype),
            )
            for k in range(stacks)
        ]
        return parts[0] if stacks == 1 else b.concat(parts, axis=1)

    @staticmethod
    def _constant(b: Builder, x: Value, weight: np.ndarray, name: str) -> Value:
        """The weights (K, in, out) of all stacks beside one another, (in, K out)."""
        wide = np.ascontiguousarray(weight.swapaxes(0, 1)).reshape(weight.shape[1], -1)
        return b.constant(wide, name, x.dtype)


def _linears(subject: str, weights: Sequence[np.ndarray]) -> tuple[Linear, ...]:
    """Linear layers of one shape."""
    if not isinstance(weights, (list, tuple)):
        raise error(subject, "weights are no list of matrices", got=type(weights).__name__)
    if not weights:
        raise error(subject, "there is no weight")
    first = matrix_of(subject, weights[0], "first weight")
    return tuple(
        linear(subject, "weight", shaped(subject, "weight", w, first.shape)) for w in weights
    )
