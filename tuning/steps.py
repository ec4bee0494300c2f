"""The primitives of schedules as methods.

`steps.pyi`, which `make public` writes, has their signatures for editors and type checkers.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any, Self

from ..core.errors import explain
from ..dialects.loop.trace_text import Step
from ..passes.loop.scheduler.primitives import PRIMITIVES


class Steps:
    """Each primitive as a method, which takes a step on the kernel: ``split("i", 8)``."""

    def take(self, step: str | Step) -> Self:
        """Take a step."""
        raise NotImplementedError

    def __getattr__(self, name: str) -> Callable[..., Self]:
        """The primitive called `name` as a method."""
        if name not in PRIMITIVES:
            near = ", ".join(difflib.get_close_matches(name, PRIMITIVES, 3))
            hint = f"nearest: {near}" if near else f"there are {', '.join(PRIMITIVES)}"
            raise AttributeError(explain("schedule", f'no step "{name}"', hint=hint))
        primitive = PRIMITIVES[name]

        def method(*arguments: Any, **named: Any) -> Self:
            return self.take(Step(name, arguments, tuple(named.items())))

        method.__name__, method.__doc__ = name, primitive.function.__doc__
        method.__signature__ = primitive.signature  # type: ignore[attr-defined]
        return method

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *PRIMITIVES})
