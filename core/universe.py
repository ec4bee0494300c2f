"""The object that another package registers under the entry point `xdsl.universe`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from xdsl import universe

if TYPE_CHECKING:
    from xdsl.ir import Dialect
    from xdsl.passes import ModulePass

INTERFACE = 2
"""The version of the plug-in interface, which `docs/stability.md` defines."""

OLDEST_INTERFACE = 2
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
        placements: where passes run in each compilation, by their names: "after graph-simplify" or
            "before graph-fuse-ops". A pass runs after the last, or before the first, of that name;
            not at levels of optimisation without it.
        all_importers: functions that import the module whose conversions ("onnx" or "torch")
            register themselves with `converts`, called before the first model is read.
        all_layers: functions that load layers of graph networks, by name: classes derived from
            `gnn.Layer`, which are then in `stepwell.frontends.gnn`.
        all_schedule_rules: functions that load rules of the default schedule, by name: functions of
            a `Schedule` and the name of a nest, which take steps and return the reason, or None
            for another nest. They are tried before those of Stepwell.
        all_processors: functions that load targets, by name: a `stepwell.Target` each.
    """

    def __init__(
        self,
        *,
        interface: int | None = None,
        all_dialects: dict[str, Callable[[], Dialect]] | None = None,
        all_passes: dict[str, Callable[[], type[ModulePass]]] | None = None,
        all_legalizations: dict[str, Callable[[], Any]] | None = None,
        placements: dict[str, str] | None = None,
        all_importers: dict[str, Callable[[], object]] | None = None,
        all_layers: dict[str, Callable[[], Any]] | None = None,
        all_schedule_rules: dict[str, Callable[[], Any]] | None = None,
        all_processors: dict[str, Callable[[], Any]] | None = None,
    ) -> None:
        super().__init__(all_dialects=all_dialects, all_passes=all_passes)
        self.interface = interface
        self.all_legalizations = all_legalizations or {}
        self.placements = placements or {}
        self.all_importers = all_importers or {}
        self.all_layers = all_layers or {}
        self.all_schedule_rules = all_schedule_rules or {}
        self.all_processors = all_processors or {}
