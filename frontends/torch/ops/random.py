"""Random numbers of graphs that `torch.compile` gives to a backend.

torch draws a seed for them in each call, from the generator that `torch.manual_seed` sets; the
numbers are a function of the seed and their places (`graph.random_uniform`).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ....dialects.graph.ops.sources.threefry import FLOAT_BITS, first_word_of
from ...importing.shapes import broadcast
from ...importing.values import Value
from ..library import library
from ..nodes import Node
from ..registry import converts

_NAME = "stepwell::random_uniform"


@functools.cache
def random_uniform() -> Any:
    """The operator of torch: f32 in [0, 1) of a size, for a seed of 64 bits without dimensions."""
    torch = library()
    torch.library.define(_NAME, "(Tensor seed, SymInt[] size) -> Tensor")
    torch.library.impl(_NAME, "CompositeExplicitAutograd")(_computed_by_torch)
    torch.library.register_fake(_NAME)(lambda seed, size: seed.new_empty(size, dtype=torch.float32))
    return torch.ops.stepwell.random_uniform.default


def is_seed(node: Any) -> bool:
    """Whether a node of a graph draws a seed for these numbers."""
    return bool(node.users) and all(user.target == random_uniform() for user in node.users)


def _computed_by_torch(seed: Any, size: Sequence[int]) -> Any:
    torch = library()
    places = torch.arange(int(np.prod(size)), device=seed.device).reshape(size)
    word = first_word_of(seed, places) >> (32 - FLOAT_BITS)
    return word.to(torch.float32) * 2.0**-FLOAT_BITS


@converts("stepwell.random_uniform.default")
def uniform(node: Node, seed: Value, size: Sequence[Any]) -> Value:
    return node.random_uniform(broadcast(node, seed, node.result_shape))
