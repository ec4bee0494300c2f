"""What the layers of a graph neural network have in common, and those without neighbours.

Each row of X holds the features of a node. Weights are arrays of floats; a layer computes in the
element type of its features.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from ...dialects.sparse_tensor import is_sparse
from ..builder import Value
from .context import Context
from .weights import bias_of, check_width, error, from_state, matrix_of


class Layer(ABC):
    """A layer of a `Sequential`."""

    _state: ClassVar[Mapping[str, str]] = {}
    """The keys of weights in the `state_dict` of torch's layer, by parameter of the constructor."""

    @classmethod
    def from_state_dict(
        cls, state: Mapping[str, Any], prefix: str = "", /, *args: Any, **options: Any
    ) -> Self:
        """The layer with the weights of the layer of torch or torch-geometric of the same name.

        Args:
            state: what `state_dict()` of the layer, or of a model with it, returns: tensors of
                torch, or arrays.
            prefix: what the names of the layer's weights begin with, such as ``"conv1."``.
            args: further arguments of the constructor, such as the layers of `GINConv`.
            options: the same by name, such as ``heads``.

        Raises:
            InputError: if weights are missing, or are none of this layer.
        """
        found = from_state(cls.__name__, cls._state, state, prefix)
        return cls._made(prefix, args, {**found, **options})

    @classmethod
    def _made(cls, prefix: str, args: Sequence[Any], options: Mapping[str, Any]) -> Self:
        """The layer of these arguments, some of which are weights under a prefix."""
        try:
            return cls(*args, **options)
        except TypeError as problem:
            fact = f'the weights under "{prefix}" do not fit: {problem}'
            raise error(cls.__name__, fact) from problem

    @property
    def parts(self) -> tuple[Layer, ...]:
        """The layers that this one consists of, by default none."""
        return ()

    @abstractmethod
    def emit(self, context: Context, x: Value, name: str) -> Value:
        """Append the operators of the layer on features `x` (N, in); returns (N, out).

        `name` is the name of the layer in the model, after which weights are named.

        Raises:
            InputError: if the layer does not fit the features.
        """


class Convolution(Layer):
    """A layer that sends messages along edges, from the nodes of one set to those of another."""

    def emit(self, context: Context, x: Value, name: str) -> Value:
        return self.convolve(context, x, x, name)

    @abstractmethod
    def convolve(self, context: Context, sources: Value, targets: Value, name: str) -> Value:
        """Append the operators of the layer.

        Args:
            context: the edges; the adjacency matrix has a row for each target and a column for each
                source.
            sources: the features of the nodes where edges begin, (M, in).
            targets: the features of those where they end, (N, in); `sources` itself, where nodes
                are of one set.
            name: the name of the layer in the model.

        Returns:
            The new features of the targets, (N, out).

        Raises:
            InputError: if the layer does not fit the features.
        """


class Linear(Layer):
    """X W^T + b, like torch's layer of the same name.

    Args:
        weight: W, shape (out, in).
        bias: b, shape (out,), or None.

    Raises:
        InputError: for wrong shapes or dtypes.
    """

    _state = {"weight": "weight", "bias": "bias"}
    _owner = "Linear"
    """The layer that errors name."""

    def __init__(self, weight: np.ndarray, bias: np.ndarray | None = None) -> None:
        self.weight = matrix_of("Linear", weight)
        self.bias = bias_of("Linear", bias, self.weight.shape[0])

    def emit(self, context: Context, x: Value, name: str) -> Value:
        if len(x.shape) == 2:
            check_width(self._owner, name, x, self.weight.shape[1])
        b = context.builder
        bias = None if self.bias is None else b.constant(self.bias, f"{name}.bias", x.dtype)
        if is_sparse(x.ssa.type):
            y = b.spmm(x, b.constant(self.weight.T, f"{name}.weight", x.dtype))
            return y if bias is None else y + bias
        return b.dense(x, b.constant(self.weight, f"{name}.weight", x.dtype), bias)


def linear(owner: str, what: str, weight: Any, bias: Any = None, bias_name: str = "bias") -> Linear:
    """A linear layer that is part of another one, with the names that its arguments have there.

    Raises:
        InputError: for wrong shapes or dtypes.
    """
    matrix = matrix_of(owner, weight, what)
    made = Linear(matrix, bias_of(owner, bias, len(matrix), bias_name))
    made._owner = owner
    return made


def linear_of_pair(owner: str, what: str, given: Any) -> Linear:
    """The linear layer of an argument of another layer that is its weight and its bias.

    Raises:
        InputError: if it is no pair of them, or for wrong shapes or dtypes.
    """
    is_tuple = isinstance(given, (tuple, list))
    if not is_tuple or not 1 <= len(given) <= 2:
        got = f"{len(given)} values" if is_tuple else type(given).__name__
        raise error(owner, f"{what} is not a weight and a bias", "(weight, bias)", got)
    return linear(owner, f"weight of {what}", *given, bias_name=f"bias of {what}")


class Dropout(Layer):
    """The identity: dropout has an effect in training only.

    Args:
        p: the fraction of elements that training sets to 0, in [0, 1].

    Raises:
        InputError: if `p` is not a probability.
    """

    def __init__(self, p: float = 0.5) -> None:
        if isinstance(p, bool) or not isinstance(p, (int, float)) or not 0 <= p <= 1:
            raise error("Dropout", "p is not a probability", "0 to 1", repr(p))
        self.p = float(p)

    def emit(self, context: Context, x: Value, name: str) -> Value:
        return context.builder.dropout(x, self.p)


def layers_of(subject: str, nn: Layer | Sequence[Layer]) -> tuple[Layer, ...]:
    """The layers of a network that is part of a layer.

    Raises:
        InputError: if `nn` is not a layer or a sequence of layers.
    """
    found = tuple(nn) if isinstance(nn, Iterable) else (nn,)
    for layer in found:
        if not isinstance(layer, Layer):
            got = getattr(layer, "__name__", type(layer).__name__)
            raise error(subject, "nn must hold layers only", "a layer", got)
    return found


def checked(subject: str, layers: tuple[Layer, ...]) -> tuple[Layer, ...]:
    """The layers of a model.

    Raises:
        InputError: if there are none, or one of them is not a layer.
    """
    if not layers:
        raise error(subject, "there is no layer")
    for layer in layers:
        if not isinstance(layer, Layer):
            got = getattr(layer, "__name__", type(layer).__name__)
            raise error(subject, "not a layer", "GCNConv(...), Linear(...), ReLU(), ...", got)
    return layers


def named(layers: Sequence[Layer], prefix: str) -> Iterator[tuple[Layer, str]]:
    """The layers of a model and their names, which have the kind and the number of each."""
    for number, layer in enumerate(layers):
        name = f"{type(layer).__name__.lower()}_{number}"
        yield layer, f"{prefix}.{name}" if prefix else name


def chained(context: Context, layers: Sequence[Layer], x: Value, name: str) -> Value:
    """Each layer on the result of the one before it, called `name` and its number."""
    for number, layer in enumerate(layers):
        x = apply(context, layer, x, f"{name}_{number}")
    return x


def apply(context: Context, layer: Layer, x: Value, name: str) -> Value:
    """A layer as a node of the model with a name of its own."""
    with context.builder.node(name):
        return layer.emit(context, x, name)


def add_bias(context: Context, y: Value, bias: np.ndarray | None, name: str) -> Value:
    """y + bias, unless that is None."""
    return y if bias is None else y + context.builder.constant(bias, f"{name}.bias", y.dtype)
