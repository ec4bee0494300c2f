"""Random numbers, which are a function of the seed of a node: the same ones in each call."""

from __future__ import annotations

import math

import numpy as np

from ....core.algebra.dims import Dim, Shape
from ...importing.elementwise import cast
from ...importing.shapes import broadcast
from ...importing.values import Value
from ..nodes import Node
from ..registry import converts

_F32 = np.dtype(np.float32)


def _uniform(node: Node, shape: Shape, stream: int = 0) -> Value:
    """f32 in [0, 1) for the seed of a node; each stream has other numbers."""
    _check_seed(node)
    number = int(np.array(node.attr_float("seed"), np.float32).view(np.uint32))
    return _uniform_of(node, shape, number | stream << 32)


def _uniform_of(node: Node, shape: Shape, seed: int) -> Value:
    known = node.known(np.array(seed, np.int64))
    return node.random_uniform(broadcast(node, known, shape))


def _check_seed(node: Node) -> None:
    """Require a seed: without one, ONNX has other numbers in each call."""
    if not node.has("seed"):
        raise node.unsupported("its numbers differ from call to call", "a node with a seed")


def _shape(node: Node) -> Shape:
    _check_seed(node)
    given = node.attr_ints("shape")
    if given is None or any(size < 0 for size in given):
        raise node.broken('attribute "shape" is wrong', "sizes of 0 or more", given)
    return tuple(map(Dim.of, given))


def _between(node: Node, shape: Shape, dtype: np.dtype) -> Value:
    found = _uniform(node, shape)
    low, high = node.attr_float("low", 0.0), node.attr_float("high", 1.0)
    return cast(node, node.add(node.mul(found, high - low), low), dtype)


# G. E. P. Box and M. E. Muller, A note on the generation of random normal deviates, 1958
def _normal(node: Node, shape: Shape, dtype: np.dtype) -> Value:
    (first, second) = (_uniform(node, shape, stream) for stream in range(2))
    radius = node.sqrt(node.mul(node.log(node.sub(1.0, first)), -2.0))
    found = node.mul(radius, node.cos(node.mul(second, 2 * math.pi)))
    mean, scale = node.attr_float("mean", 0.0), node.attr_float("scale", 1.0)
    return cast(node, node.add(node.mul(found, scale), mean), dtype)


@converts("RandomUniform", since=1)
def random_uniform(node: Node) -> Value:
    return _between(node, _shape(node), node.attr_dtype("dtype", _F32))


@converts("RandomNormal", since=1)
def random_normal(node: Node) -> Value:
    return _normal(node, _shape(node), node.attr_dtype("dtype", _F32))


@converts("RandomUniformLike", since=1)
def random_uniform_like(node: Node) -> Value:
    x = node.input(0)
    return _between(node, x.shape, node.attr_dtype("dtype", x.dtype))


@converts("RandomNormalLike", since=1)
def random_normal_like(node: Node) -> Value:
    x = node.input(0)
    return _normal(node, x.shape, node.attr_dtype("dtype", x.dtype))


@converts("Bernoulli", since=15)
def bernoulli(node: Node) -> Value:
    x = node.input(0)
    is_one = node.less(_uniform(node, x.shape), cast(node, x, _F32))
    return cast(node, is_one, node.attr_dtype("dtype", x.dtype))


def dropped(node: Node, x: Value, ratio: Value, training: Value | None) -> list[Value | None]:
    """Dropout in training, where a scalar says so: elements with their mask.

    Elements stay with the probability 1 - ratio, and are divided by it.
    """
    _check_seed(node)
    chance = cast(node, ratio, _F32)
    stays = node.less_equal(chance, _uniform_of(node, x.shape, node.attr_int("seed")))
    scale = cast(node, node.div(1.0, node.sub(1.0, chance)), x.dtype)
    found = node.where(stays, node.mul(x, scale), 0)
    if training is not None:
        stays = node.logical_or(node.logical_not(training), stays)
        found = node.where(training, found, x)
    return [found, stays]
