"""Recurrent layers stay whole in an export.

torch exports them step by step, for one number of steps. While a module is exported, the functions
that its layers call are operators of their own, `stepwell::lstm` and others, with the parameters of
`aten::lstm.input`.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .library import library

_PARAMETERS = (
    "Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, "
    "bool bidirectional, bool batch_first"
)
_SCHEMAS = {
    "lstm": f"(Tensor input, Tensor[] hx, {_PARAMETERS}) -> (Tensor, Tensor, Tensor)",
    **dict.fromkeys(
        ("gru", "rnn_tanh", "rnn_relu"),
        f"(Tensor input, Tensor hx, {_PARAMETERS}) -> (Tensor, Tensor)",
    ),
}


@contextlib.contextmanager
def whole_layers() -> Iterator[None]:
    """Within the context, layers of `torch.nn` call the operators of this file."""
    functions = library()._VF
    _define()
    before = {name: getattr(functions, name) for name in _SCHEMAS}
    try:
        for name, original in before.items():
            setattr(functions, name, _operator(name, original))
        yield
    finally:
        for name, original in before.items():
            setattr(functions, name, original)


def _operator(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    """The operator; torch's own function for packed sequences."""
    found = getattr(library().ops.stepwell, name).default

    def call(*args: Any) -> Any:
        is_packed = not isinstance(args[3], bool)
        return original(*args) if is_packed else found(*args)

    return call


@functools.cache
def _define() -> Any:
    """The operators: their schemas, and the shapes of their results."""
    torch = library()
    defined = torch.library.Library("stepwell", "FRAGMENT")
    for name, schema in _SCHEMAS.items():
        defined.define(name + schema)
        torch.library.register_fake(f"stepwell::{name}", _shapes, lib=defined)
    return defined


def _shapes(
    x: Any,
    hx: Any,
    params: Sequence[Any],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> Any:
    """Results for all steps, and the last states."""
    states = hx if isinstance(hx, (list, tuple)) else [hx]
    width = states[0].shape[-1] * (2 if bidirectional else 1)
    return (x.new_empty(*x.shape[:-1], width), *(state.new_empty(state.shape) for state in states))
