"""Models of torch, compiled and called, beside torch itself."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import stepwell as sw

from ...harness import close, import_level, package, results

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    torch: Any = package("torch")

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
    """A module in evaluation mode as an executable.

    It has one thread, and the level of imports, unless options say otherwise.
    """
    usual = {"threads": 1, "opt_level": import_level()}
    return sw.compile(imported(model, args, dynamic_shapes), **{**usual, **options})


def imported(model: Any, args: Sequence[Any], dynamic_shapes: Any = None) -> sw.Module:
    """A module in evaluation mode as a program."""
    return sw.from_torch(model.eval(), tuple(args), dynamic_shapes=dynamic_shapes)


def normal(*shape: int) -> Any:
    """Normally distributed numbers, the same ones for a shape."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


def as_torch(
    model: Any,
    args: Sequence[Any],
    dynamic_shapes: Any = None,
    others: Sequence[Sequence[Any]] = (),
    *,
    compiles: bool = True,
    **options: Any,
) -> Any:
    """Compare a module with torch, for these arguments and others.

    Args:
        model: the module.
        args, dynamic_shapes: what it is exported with.
        others: more arguments.
        compiles: whether it is compiled; the reference runs it otherwise, which has the meaning of
            each operator: that is enough where operators of torch become those of this compiler.
        options: how it is compiled.
    """
    run: Any = (
        compiled(model, args, dynamic_shapes, **options)
        if compiles
        else imported(model, args, dynamic_shapes).run_reference
    )
    for given in (args, *others):
        close_to_torch(run(*(tensor.detach().numpy() for tensor in given)), model(*given))
    return run


def close_to_torch(got: Any, expected: Any) -> None:
    """The results of a call are those of torch, in their order."""
    leaves, _ = torch.utils._pytree.tree_flatten_with_path(expected)
    for (key, leaf), result in zip(leaves, results(got), strict=True):
        close(result, leaf.detach().numpy(), TOLERANCE, what=str(key))
