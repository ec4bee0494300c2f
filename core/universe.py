"""What another package registers under the entry point `xdsl.universe`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from xdsl import universe

if TYPE_CHECKING:
    from xdsl.ir import Dialect
    from xdsl.passes import ModulePass


class Universe(universe.Universe):
    """xDSL's universe, with entries for `graph-legalize`.

    `all_legalizations` gives for the name of an operator a function that loads what is done
    with it: a rule, or a `stepwell.kernel`.
    """

    def __init__(
        self,
        *,
        all_dialects: dict[str, Callable[[], Dialect]] | None = None,
        all_passes: dict[str, Callable[[], type[ModulePass]]] | None = None,
        all_legalizations: dict[str, Callable[[], Any]] | None = None,
    ) -> None:
        super().__init__(all_dialects=all_dialects, all_passes=all_passes)
        self.all_legalizations = {} if all_legalizations is None else all_legalizations
