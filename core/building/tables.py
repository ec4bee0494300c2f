"""Tables of functions, by the class of the operation that they convert."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeAlias, TypeVar

from xdsl.ir import Operation

OpT = TypeVar("OpT", bound=Operation)
StateT = TypeVar("StateT")
ResultT = TypeVar("ResultT")
Handler: TypeAlias = Callable[[OpT, StateT], ResultT]
"""Converts an operation, given the state of the conversion."""


class HandlerTable(dict[type[Operation], Handler[Any, StateT, ResultT]], Generic[StateT, ResultT]):
    """Handlers of operations, by class; `on` types each handler after its classes."""

    def on(
        self, *kinds: type[OpT]
    ) -> Callable[[Handler[OpT, StateT, ResultT]], Handler[OpT, StateT, ResultT]]:
        """Decorator: the function converts operations of these classes."""

        def register(function: Handler[OpT, StateT, ResultT]) -> Handler[OpT, StateT, ResultT]:
            for kind in kinds:
                self[kind] = function
            return function

        return register
