"""Models of torch, compiled and called, beside torch itself."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import stepwell as sw

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    torch: Any = pytest.importorskip("torch", reason="torch is not installed")

# What is compared is a sum of few numbers, in another order.
TOLERANCE = 1e-5


class Functions(torch.nn.Module):
    """Several functions of the same tensors: the results by their names."""

    def __init__(self, functions: dict[str, Callable[..., Any]]) -> None:
        super().__init__()
        self.functions = functions

    def forward(self, *tensors: Any) -> dict[str, Any]:
        return {name: function(*tensors) for name, function in self.functions.items()}


def compiled(model: Any, args: Sequence[Any], dynamic_shapes: Any = None, **options: Any) -> Any:
    """A module in evaluation mode as an executable."""
    module = sw.from_torch(model.eval(), tuple(args), dynamic_shapes=dynamic_shapes)
    return sw.compile(module, **options)


def check(
    model: Any,
    args: Sequence[Any],
    dynamic_shapes: Any = None,
    others: Sequence[Sequence[Any]] = (),
) -> Any:
    """Compare a compiled module with torch, for these arguments and others."""
    exe = compiled(model, args, dynamic_shapes)
    for given in (args, *others):
        same(exe(*(tensor.detach().numpy() for tensor in given)), model(*given))
    return exe


def same(got: Any, expected: Any) -> None:
    """The results of a call are those of torch, in their order."""
    leaves, _ = torch.utils._pytree.tree_flatten_with_path(expected)
    results = got if isinstance(got, tuple) else (got,)
    assert len(results) == len(leaves)
    for (key, leaf), result in zip(leaves, results, strict=True):
        want = leaf.detach().numpy()
        assert (result.dtype, result.shape) == (want.dtype, want.shape), key
        np.testing.assert_allclose(result, want, rtol=TOLERANCE, atol=TOLERANCE, err_msg=str(key))
