"""The object that another package registers under the entry point `xdsl.universe`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from xdsl import universe

if TYPE_CHECKING:
    from xdsl.ir import Dialect
    from xdsl.passes import ModulePass

INTERFACE = 1
"""The version of the plug-in interface, which `docs/stability.md` defines."""

OLDEST_INTERFACE = 1
"""The oldest version for which plug-ins still work; those below `INTERFACE` with a warning."""


class Universe(universe.Universe):
    """xDSL's universe, with the version of Stepwell's interface that a plug-in is written for.

    Args:
        interface: that version as a number: `INTERFACE` of the Stepwell that the plug-in was tested
            with. None for a plug-in whose dialects and passes do not use Stepwell.
        all_dialects: functions that load dialects, by name.
        all_passes: functions that load passes, by name.
        all_legalizations: functions that load replacements for `graph-legalize`, by operator: each
            a rule, or a `stepwell.kernel`.
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
