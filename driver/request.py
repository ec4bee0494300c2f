"""`Request`: a module, and the arguments that decide what its program is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.pipelines.stages import IR_STAGES
from ..core.target import Device, Target, named

if TYPE_CHECKING:
    from ..core.ir.module import Module


@dataclass(frozen=True)
class Request:
    """A module, and the arguments of `stepwell.compile` that decide what its program is.

    It is made where arguments come in: in Python, on the command line, or from a file that states
    them. A *settled* request looks nothing up: `target` is a `Target`, `pipeline` has the passes of
    each stage, and `schedules` what records had (see `driver.compilation.settled`).
    """

    module: Module
    target: str | Target = "host"
    threads: int | None = None
    opt_level: int = 3
    pipeline: str | Mapping[str, str] | None = None
    legalize: Mapping[str, Any] | None = None
    records: str | Path | bool | None = False
    copy_indices: bool = False
    rounding: str | None = None
    schedule: str | None = None
    """The traces of kernels by their names, ``@kernel: steps @other: steps``."""
    schedules: Mapping[str, str] | None = None
    """The traces that tuning has found, by the structure of kernels; None for those of records."""

    @property
    def passes(self) -> Mapping[str, str]:
        """The passes of each stage, of a settled request."""
        assert not isinstance(self.pipeline, str | None)
        return self.pipeline

    def recipe(self, stage: str) -> Mapping[str, Any]:
        """A settled request as values of JSON, for its module at a stage."""
        target = named(self.target)
        own = {name: getattr(target, name) for name in Target.__dataclass_fields__}
        if target.device is not None:
            own["device"] = asdict(target.device)
        return {
            "stage": stage,
            "passes": dict(self.passes),
            "schedules": dict(self.schedules or {}),
            "target": {name: value for name, value in own.items() if name != "legalize"},
        }

    @staticmethod
    def of_recipe(module: Module, recipe: Mapping[str, Any]) -> Request:
        """The settled request of a recipe, for the module at its stage."""
        # The passes that lead to it have run.
        reached = IR_STAGES[: IR_STAGES.index(recipe["stage"]) + 1]
        passes = {s: "" if s in reached else text for s, text in recipe["passes"].items()}
        facts, schedules = dict(recipe["target"]), recipe["schedules"]
        if (device := facts.get("device")) is not None:
            facts["device"] = Device(**device)
        return Request(module, Target(**facts), pipeline=passes, schedules=schedules)

    def on(self, target: Target) -> Request:
        """A settled request for another target."""
        # Schedules were found by measuring on one target.
        return self if target == self.target else replace(self, target=target, schedules={})
