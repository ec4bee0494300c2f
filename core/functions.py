"""Functions that programs call by name: `register_function`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .errors import CompileError, explain

_FUNCTIONS: dict[str, Callable[..., Any]] = {}


def register_function(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a function known under a name that `graph.call_packed` can call.

    The function is given NumPy arrays: its inputs, then one array for each result, which it
    fills. The arrays are views of the program's memory and valid during the call only.

        @sw.register_function("env.linear")
        def linear(x, w, y):
            np.matmul(x, w.T, out=y)
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        _FUNCTIONS[name] = function
        return function

    return register


def registered(name: str) -> Callable[..., Any]:
    """The function registered under a name.

    Raises:
        CompileError: if there is none.
    """
    if name not in _FUNCTIONS:
        known = ", ".join(sorted(_FUNCTIONS)) or "none"
        raise CompileError(explain(f'function "{name}"', "is not registered", got=known))
    return _FUNCTIONS[name]
