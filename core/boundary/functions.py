"""Functions that programs call by name: `register_function`."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

from ..errors import CompileError, InputError, StepwellError, explain

_FUNCTIONS: dict[str, Callable[..., Any]] = {}


def register_function(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function under a name that `graph.call_packed` can call.

    The function receives its inputs, then one array to fill for each result. Dense ones are NumPy
    arrays, sparse ones `scipy.sparse.csr_array`: views of the program's memory, valid during the
    call only, with read-only inputs. The results must depend on the inputs only. Registering a name
    again affects only later compilations.

        @sw.register_function("env.linear")
        def linear(x, w, y):
            np.matmul(x, w.T, out=y)

    Raises:
        InputError: if the name is empty, or the function is not callable.
    """
    if not isinstance(name, str) or not name:
        fact = "wrong name of a function"
        raise InputError(explain("register_function", fact, expected="a text", got=repr(name)))

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        if not callable(function):
            got = type(function).__name__
            subject = f'function "{name}"'
            raise InputError(explain(subject, "cannot be called", expected="a function", got=got))
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


def place_of(name: str) -> str:
    """Where another process finds a registered function: ``module:name``.

    Raises:
        CompileError: if it is at no such place.
    """
    function = registered(name)
    module, path = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    place = f"{module}:{path}"
    if module in (None, "__main__") or _at(place) is not function:
        fact = "another process cannot find it"
        expected = "a function at the top level of a module that can be imported"
        raise CompileError(explain(f'function "{name}"', fact, expected=expected, got=place))
    return place


def found(name: str, place: str) -> Callable[..., Any]:
    """The function registered under a name, else the one at a place, which is registered.

    Raises:
        CompileError: if there is none at that place.
    """
    if name not in _FUNCTIONS:
        function = _at(place)
        if not callable(function):
            fact = "is not registered, and not found where it was"
            raise CompileError(explain(f'function "{name}"', fact, expected=place))
        _FUNCTIONS.setdefault(name, function)
    return _FUNCTIONS[name]


def _at(place: str) -> object:
    """What a module has under a name; None if there is nothing."""
    module, _, path = place.partition(":")
    try:
        return getattr(importlib.import_module(module), path, None)
    except ImportError:
        return None


def call(
    name: str, function: Callable[..., Any], inputs: Sequence[Any], outputs: Sequence[Any]
) -> None:
    """Call the function registered as `name`, which writes to `outputs`.

    Raises:
        StepwellError: naming the function, if it raises, or returns a value.
    """
    try:
        given = function(*inputs, *outputs)
    except Exception as error:
        # The boundary to user code, which may raise anything.
        text = " ".join(f"{type(error).__name__}: {error}".split())
        raise StepwellError(explain(f'function "{name}"', f"raised {text}")) from error
    if given is not None and not any(given is output for output in outputs):
        raise StepwellError(
            explain(
                f'function "{name}"',
                "returned a value",
                expected="None",
                got=type(given).__name__,
                hint="results are written into the last arguments, y[...] = value",
            )
        )
