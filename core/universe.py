"""What another package registers under the entry point `xdsl.universe`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from xdsl import universe

if TYPE_CHECKING:
    from xdsl.ir import Dialect
    from xdsl.passes import ModulePass

INTERFACE = 1
"""The version of the plug-in interface; `docs/stability.md` says what belongs to it."""

OLDEST_INTERFACE = 1
"""The oldest version for which plug-ins still work; those before `INTERFACE` with a warning."""


class Universe(universe.Universe):
    """xDSL's universe, with the version of Stepwell's interface that a plug-in is written for.

    Args:
        interface: that version: `INTERFACE` of the Stepwell that the plug-in was tested with, as
            a number. None for a plug-in whose dialects and passes use nothing of Stepwell.
        all_dialects: for the name of a dialect a function that loads it.
        all_passes: the same for passes.
        all_legalizations: for the name of an operator a function that loads what `graph-legalize`
            does with it: a rule, or a `stepwell.kernel`.
    """

    def __init__(
        self,
        *,
        interface: int | None = None,
        all_dialects: dict[str, Callable[[], Dialect]] | None = None,
        all_passes: dict[str, Callable[[], type[ModulePass]]] | None = None,
        all_legalizations: dict[str, Callable[[], Any]] | None = None,
    ) -> None:
        super().__init__(all_dialects=all_dialects, all_passes=all_passes)
        self.interface = interface
        self.all_legalizations = {} if all_legalizations is None else all_legalizations
