"""The weights of layers: arrays of floats, checked when a layer is made."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...core.boundary.arrays import is_integer, refuse_mask
from ...core.errors import InputError, explain
from ...dialects.sparse_tensor import is_sparse
from ..builder import Value

AGGREGATES = {"mean": "mean", "sum": "sum", "add": "sum", "max": "max", "min": "min"}
"""How messages are combined, by torch-geometric's names."""


def error(subject: str, fact: str, expected: object = None, got: object = None) -> InputError:
    """An error of a layer, in uniform wording."""
    return InputError(explain(subject, fact, expected=expected, got=got))


def array_of(subject: str, what: str, values: Any) -> np.ndarray:
    """The array of an argument.

    Raises:
        InputError: if its parts differ in shape.
    """
    try:
        return np.asarray(values)
    except ValueError as problem:
        raise error(subject, f"{what} is not an array: {problem}") from problem


def floats(subject: str, what: str, values: Any) -> np.ndarray:
    """The array of a weight.

    Raises:
        InputError: if it is not an array of floats.
    """
    refuse_mask(f"{subject}: {what}", values)
    array = array_of(subject, f"the {what}", values)
    if array.dtype.kind != "f" or array.dtype.itemsize > 8:
        raise error(subject, f"the {what} has the wrong dtype", "f16, f32 or f64", array.dtype)
    return array


def shaped(subject: str, what: str, values: Any, shape: tuple[int | None, ...]) -> np.ndarray:
    """The array of a weight of a shape, in which None is any size.

    Raises:
        InputError: if it has another shape, or is not an array of floats.
    """
    array = floats(subject, what, values)
    pairs = zip(array.shape, shape, strict=False)
    if array.ndim != len(shape) or any(known not in (None, size) for size, known in pairs):
        sizes = ", ".join("any" if size is None else str(size) for size in shape)
        expected = f"({sizes},)" if len(shape) == 1 else f"({sizes})"
        raise error(subject, f"the {what} has the wrong shape", expected, array.shape)
    return array


def matrix_of(subject: str, weight: Any, what: str = "weight") -> np.ndarray:
    """The matrix of a weight.

    Raises:
        InputError: if it is not a matrix of floats.
    """
    array = floats(subject, what, weight)
    if array.ndim != 2:
        raise error(subject, f"the {what} is not a matrix", "two dimensions", array.shape)
    return array


def bias_of(subject: str, bias: Any, width: int, what: str = "bias") -> np.ndarray | None:
    """The vector of a bias of `width` elements, or None.

    Raises:
        InputError: if it has another shape, or is not an array of floats.
    """
    return None if bias is None else shaped(subject, what, bias, (width,))


def number(subject: str, what: str, value: Any) -> float:
    """A real number; an array of one element counts as one.

    Raises:
        InputError: if it is anything else.
    """
    array = array_of(subject, what, value)
    if array.size != 1 or array.dtype.kind not in "fiu":
        raise error(subject, f"{what} is not a number", "a number", repr(value))
    return float(array.reshape(()))


def whole(subject: str, what: str, value: Any, least: int = 1) -> int:
    """An integer that is at least `least`.

    Raises:
        InputError: if it is anything else.
    """
    if not is_integer(value) or value < least:
        raise error(subject, f"{what} is wrong", f"an integer of {least} or more", repr(value))
    return int(value)


def one_of(subject: str, what: str, name: object, known: Sequence[str]) -> str:
    """One of some names.

    Raises:
        InputError: if it is another one.
    """
    if not isinstance(name, str) or name not in known:
        raise error(subject, f"unknown {what}", ", ".join(known), repr(name))
    return name


def check_width(subject: str, name: str, x: Value, width: int) -> None:
    """Check that features have as many columns as a weight has inputs."""
    if x.shape[1] not in (None, width):
        fact = f'the weight of layer "{name}" does not fit the features'
        raise error(subject, fact, f"{x.shape[1]} inputs", width)


def require_dense(subject: str, what: str, x: Value) -> None:
    """Check that features are not a sparse matrix."""
    if is_sparse(x.ssa.type):
        raise error(subject, f"{what} gets sparse features", "dense ones")


def from_state(
    subject: str, table: Mapping[str, str], state: Mapping[str, Any], prefix: str
) -> dict[str, Any]:
    """The arguments of a layer that a `state_dict` of torch has.

    Args:
        subject: the layer.
        table: for each argument its keys in the `state_dict`, after the prefix, separated by
            spaces. `*` stands for the numbers from 0 on, which make a list, `.T` at the end for the
            transpose, `|` for another name of the same.
        state: the `state_dict`.
        prefix: what the keys of the layer begin with.

    Raises:
        InputError: if a weight under the prefix belongs to no argument.
    """
    found, read = dict[str, Any](), set[str]()
    for parameter, keys in table.items():
        parts = [_first(state, prefix, key.split("|"), read) for key in keys.split()]
        if all(part is not None for part in parts):
            found[parameter] = parts[0] if len(parts) == 1 else tuple(parts)
    for name in state:
        rest = name.removeprefix(prefix)
        # A weight of a network that is given as a layer, or a count of training.
        is_apart = rest.startswith("nn.") or rest.endswith("num_batches_tracked")
        if name.startswith(prefix) and name not in read and not is_apart:
            known = ", ".join(table.values())
            raise error(subject, f'"{name}" is none of its weights', known, np.shape(state[name]))
    return found


def _first(state: Mapping[str, Any], prefix: str, keys: Sequence[str], read: set[str]) -> Any:
    """What the first of some keys has that is there."""
    found = (_read(state, prefix + key, read) for key in keys)
    return next((value for value in found if value is not None), None)


def _read(state: Mapping[str, Any], key: str, read: set[str]) -> Any:
    """The array of a key, or the arrays of a key with `*`; None if there is none."""
    name = key.removesuffix(".T")
    if "*" in name:
        keys = (key.replace("*", str(number)) for number in itertools.count())
        known = itertools.takewhile(lambda one: one.removesuffix(".T") in state, keys)
        return [_read(state, one, read) for one in known] or None
    if state.get(name) is None:
        return None
    read.add(name)
    array = np.asarray(state[name])
    return np.ascontiguousarray(array.T) if key.endswith(".T") else array
