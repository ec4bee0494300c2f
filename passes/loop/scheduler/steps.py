"""The primitives as methods of a schedule.

`steps.pyi`, which `make public` writes, has their signatures for editors and type checkers.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ...primitive import Primitive
from .primitives import PRIMITIVES


class StepMethods:
    """Each primitive as a method, which returns handles to the loops that it makes."""

    def _take(self, step: Primitive, given: inspect.BoundArguments) -> Any:
        """Take a step with these arguments; return its handles."""
        raise NotImplementedError


def _method(step: Primitive) -> Callable[..., Any]:
    signature = step.signature

    def method(self: StepMethods, *arguments: Any, **named: Any) -> Any:
        return self._take(step, signature.bind(*arguments, **named))

    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = [own, *signature.parameters.values()]
    method.__name__, method.__doc__ = step.name, step.function.__doc__
    method.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        parameters, return_annotation=step.result
    )
    return method


for _step in PRIMITIVES.values():
    setattr(StepMethods, _step.name, _method(_step))
