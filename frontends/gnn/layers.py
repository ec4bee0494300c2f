"""The layers of a graph neural network, with trained weights.

Each row of X holds the features of a node. Weights are arrays of floats; a layer computes in the
element type of its features.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core.arrays import refuse_mask
from ...core.errors import InputError, explain
from ...dialects.sparse_tensor import is_sparse
from ..builder import Builder, Value


@dataclass(frozen=True)
class Context:
    """The builder to which layers append operators, and the adjacency matrix (CSR).

    `with_self_loops` returns the matrix with an entry at each position of the diagonal; it is None
    if the graph is only known at run time.
    """

    builder: Builder
    adjacency: Value
    with_self_loops: Callable[[], Value] | None = None


class Layer(ABC):
    """A layer of a `Sequential`."""

    @property
    def parts(self) -> tuple[Layer, ...]:
        """The layers that this one consists of, by default none."""
        return ()

    @abstractmethod
    def emit(self, context: Context, x: Value, name: str) -> Value:
        """Append the operators of the layer on features `x` (N, in); returns (N, out).

        `name` is the name of the layer in the model, after which operators and weights are named.

        Raises:
            InputError: if the layer does not fit the features.
        """


class GCNConv(Layer):
    """Graph convolution of Kipf and Welling (2017): D^-1/2 (A + I) D^-1/2 X W + b.

    As torch-geometric's layer of the same name: row i of A holds the weights of the edges into node
    i, I is added only for nodes without a self loop (of several self loops the last one counts), D
    is the diagonal of the row sums of A + I, and D^-1/2 is 0 where such a sum is 0.

    Args:
        weight: W, shape (in, out).
        bias: b, shape (out,), or None.
        normalize: False multiplies by A instead.
        add_self_loops: whether to add I; by default the same as `normalize`.

    Raises:
        InputError: for wrong shapes or dtypes, or self loops without normalization.
    """

    def __init__(
        self,
        weight: np.ndarray,
        bias: np.ndarray | None = None,
        *,
        normalize: bool = True,
        add_self_loops: bool | None = None,
    ) -> None:
        if add_self_loops and not normalize:
            raise _error("GCNConv", "add_self_loops requires normalize")
        self.weight = matrix_of("GCNConv", weight)
        self.bias = bias_of("GCNConv", bias, self.weight.shape[1])
        self.normalize = normalize
        self.add_self_loops = normalize if add_self_loops is None else add_self_loops

    def emit(self, context: Context, x: Value, name: str) -> Value:
        check_width("GCNConv", name, x, self.weight.shape[0])
        b, a = context.builder, context.adjacency
        weight = b.constant(self.weight, f"{name}.weight", x.dtype)
        product = b.spmm if is_sparse(x.ssa.type) else b.matmul
        y = product(x, weight, name=name)
        if self.normalize:
            a = b.normalize(a, kind="symmetric", self_loops=self.add_self_loops, name=name)
        y = b.spmm(a, y, name=name)
        return _add_bias(b, y, self.bias, name)


class Linear(Layer):
    """X W^T + b, like torch's layer of the same name.

    Args:
        weight: W, shape (out, in).
        bias: b, shape (out,), or None.

    Raises:
        InputError: for wrong shapes or dtypes.
    """

    def __init__(self, weight: np.ndarray, bias: np.ndarray | None = None) -> None:
        self.weight = matrix_of("Linear", weight)
        self.bias = bias_of("Linear", bias, self.weight.shape[0])

    def emit(self, context: Context, x: Value, name: str) -> Value:
        check_width("Linear", name, x, self.weight.shape[1])
        b = context.builder
        if is_sparse(x.ssa.type):
            weight = b.constant(self.weight.T, f"{name}.weight", x.dtype)
            return _add_bias(b, b.spmm(x, weight, name=name), self.bias, name)
        weight = b.constant(self.weight, f"{name}.weight", x.dtype)
        if self.bias is None:
            return b.dense(x, weight, name=name)
        return b.dense(x, weight, b.constant(self.bias, f"{name}.bias", x.dtype), name=name)


class ReLU(Layer):
    """max(x, 0) for each element."""

    def emit(self, context: Context, x: Value, name: str) -> Value:
        return context.builder.relu(x, name=name)


class Dropout(Layer):
    """The identity: dropout has an effect in training only.

    Args:
        p: the fraction of elements that training sets to 0, in [0, 1].

    Raises:
        InputError: if `p` is not a probability.
    """

    def __init__(self, p: float = 0.5) -> None:
        if isinstance(p, bool) or not isinstance(p, (int, float)) or not 0 <= p <= 1:
            raise _error("Dropout", "p is not a probability", "0 to 1", repr(p))
        self.p = float(p)

    def emit(self, context: Context, x: Value, name: str) -> Value:
        return context.builder.dropout(x, self.p, name=name)


def _add_bias(builder: Builder, y: Value, bias: np.ndarray | None, name: str) -> Value:
    if bias is None:
        return y
    return builder.add(y, builder.constant(bias, f"{name}.bias", y.dtype), name=name)


def _error(subject: str, fact: str, expected: object = None, got: object = None) -> InputError:
    return InputError(explain(subject, fact, expected=expected, got=got))


def floats(subject: str, what: str, values: Any) -> np.ndarray:
    """The array of a weight.

    Raises:
        InputError: if it is not an array of floats.
    """
    refuse_mask(f"{subject}: {what}", values)
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise _error(subject, f"the {what} is not an array: {error}") from error
    if array.dtype.kind != "f" or array.dtype.itemsize > 8:
        raise _error(subject, f"the {what} has the wrong dtype", "f16, f32 or f64", array.dtype)
    return array


def matrix_of(subject: str, weight: Any) -> np.ndarray:
    """The matrix of a weight.

    Raises:
        InputError: if it is not a matrix of floats.
    """
    array = floats(subject, "weight", weight)
    if array.ndim != 2:
        raise _error(subject, "the weight is not a matrix", "two dimensions", array.shape)
    return array


def bias_of(subject: str, bias: Any, width: int) -> np.ndarray | None:
    """The vector of a bias of `width` elements, or None.

    Raises:
        InputError: if it has another shape, or is not an array of floats.
    """
    if bias is None:
        return None
    array = floats(subject, "bias", bias)
    if array.shape != (width,):
        raise _error(subject, "the bias has the wrong shape", (width,), array.shape)
    return array


def check_width(subject: str, name: str, x: Value, width: int) -> None:
    """Check that features have as many columns as a weight has inputs."""
    if x.shape[1] not in (None, width):
        fact = f'the weight of layer "{name}" does not fit the features'
        raise _error(subject, fact, f"{x.shape[1]} inputs", width)
