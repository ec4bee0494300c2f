"""The document of a report: what the page shows, as values of JSON.

Names and texts of the model are in it as they are; the page writes them as text, never as markup.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

SCHEMA = 1
"""The version of the document; it increases when a key changes its meaning or is removed."""


@dataclass(frozen=True)
class Mark:
    """What a line of text stands for.

    `nodes` are numbers of operators of the model. `origins` are numbers of operations of stage
    `scheduled`, which later stages have in their locations, or 0 alone for a function as a whole;
    empty where a line does not come from there.
    """

    nodes: tuple[int, ...]
    origins: tuple[int, ...]


@dataclass(frozen=True)
class StageFunction:
    """A function of a stage: its text, and for each line the number of its mark.

    `kernels` are numbers of the kernels that it belongs to: none for the program itself.
    """

    name: str
    kernels: tuple[int, ...]
    text: str
    marks: tuple[int, ...]


@dataclass(frozen=True)
class ReportedStage:
    """The functions of a stage, in order."""

    name: str
    functions: tuple[StageFunction, ...]


@dataclass(frozen=True)
class ReportedKernel:
    """A kernel: its name, its nodes by number, and the trace of its schedule."""

    name: str
    nodes: tuple[int, ...]
    schedule: str


@dataclass(frozen=True)
class ModelOperator:
    """An operator of the model, an input or a result.

    `kind` is the name of the operation, "input" or "output". `nodes` and `kernels` are numbers,
    `path` the modules of the model that it is in, outermost first. `call` is the number of the call
    of its first kernel that computes it, -1 without one: a kernel may be called several times.
    `attributes` are names and values as text, `weights` names of operands and numbers of the
    weights that they are.
    """

    name: str
    kind: str
    text: str
    types: tuple[str, ...]
    nodes: tuple[int, ...]
    kernels: tuple[int, ...]
    path: tuple[str, ...]
    call: int = -1
    attributes: tuple[tuple[str, str], ...] = ()
    weights: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class ReportedWeight:
    """A constant of the model in few numbers.

    `least`, `most`, `mean` and `deviation` (that of the whole population) are of the elements that
    are finite, `not_finite` counts the others, and `zeros` is a fraction of all elements. They are
    None where there are no such elements, or beyond double precision. Elements that a sparse
    matrix does not store are zeros; its `bytes` are those of the stored elements.
    """

    name: str
    type: str
    bytes: int
    not_finite: int
    least: float | None = None
    most: float | None = None
    mean: float | None = None
    deviation: float | None = None
    zeros: float | None = None


@dataclass(frozen=True)
class ModelEdge:
    """A value that one operator computes and another one reads, by their numbers."""

    source: int
    target: int
    type: str


@dataclass(frozen=True)
class ModelGraph:
    """The operators of the model, the values between them, and the constants that they read."""

    operators: tuple[ModelOperator, ...]
    edges: tuple[ModelEdge, ...]
    weights: tuple[ReportedWeight, ...] = ()


@dataclass(frozen=True)
class PassDiff:
    """What a pass changed in a function: a unified diff, "" if it is too long to be shown.

    `removed` and `added` count lines.
    """

    function: str
    removed: int
    added: int
    text: str


@dataclass(frozen=True)
class PassRun:
    """A run of a pass in the stage that it leads to, and the functions that it changed."""

    stage: str
    name: str
    seconds: float
    differences: tuple[PassDiff, ...]


@dataclass(frozen=True)
class ArenaSlot:
    """A buffer in the arena: its bytes, and the first and the last step at which it is used."""

    name: str
    nodes: tuple[int, ...]
    offset: int
    size: int
    first: int
    last: int


@dataclass(frozen=True)
class ArenaTimeline:
    """The arena over time: the calls of the program, in order, and the buffers between them."""

    size: int
    steps: tuple[str, ...]
    slots: tuple[ArenaSlot, ...]


@dataclass(frozen=True)
class SparsityPattern:
    """Where a sparse matrix has entries.

    `cells` counts entries in each cell of a grid over the matrix, row by row, `columns` cells in a
    row. `lengths` are pairs: the least number of entries of a row in a bin, and the number of rows.
    """

    name: str
    shape: tuple[int, int]
    entries: int
    columns: int
    cells: tuple[int, ...]
    lengths: tuple[tuple[int, int], ...]
    longest: int


@dataclass(frozen=True)
class Trial:
    """A measured schedule of a kernel, relative to the default one.

    Both are the time of a program with the schedule over that with the default one: `predicted` by
    the number of vector instructions, as it was recorded by the search, and `measured`.
    """

    kernel: int
    trace: str
    predicted: float
    measured: float
    kept: bool


@dataclass(frozen=True)
class ComparedRow:
    """A kernel or a node in two reports.

    `place` says which of them have it: "both", "before" or "after". `seconds` are of both, None
    without a profile, or where one lacks it. `difference` is a unified diff of its pseudo-code, ""
    where that is the same.
    """

    name: str
    place: str
    seconds: tuple[float | None, float | None]
    difference: str


@dataclass(frozen=True)
class ComparedDecision:
    """A decision that one of two reports has."""

    subject: str
    what: str
    why: str


@dataclass(frozen=True)
class Comparison:
    """A report beside an earlier one, whose title, version and target these are.

    `seconds` of a run and the bytes of the `arena` are of the earlier and of this report, None
    where unknown. `removed` are decisions that only the earlier one has, `added` those that only
    this one has.
    """

    title: str
    version: str
    target: str
    seconds: tuple[float | None, float | None]
    arena: tuple[int | None, int | None]
    kernels: tuple[ComparedRow, ...]
    nodes: tuple[ComparedRow, ...]
    removed: tuple[ComparedDecision, ...]
    added: tuple[ComparedDecision, ...]


@dataclass(frozen=True)
class ReportDocument:
    """All that a page shows. Numbers of nodes and kernels are places in `nodes` and `kernels`.

    `nodes` has the name of each operator of the model; operators of one node have the same name.
    """

    title: str
    version: str
    target: Mapping[str, Any]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: tuple[str, ...]
    kernels: tuple[ReportedKernel, ...]
    graph: ModelGraph
    stages: tuple[ReportedStage, ...]
    marks: tuple[Mark, ...]
    """Mark 0 is empty."""
    decisions: tuple[Mapping[str, Any], ...]
    passes: tuple[PassRun, ...]
    profile: Mapping[str, Any] | None = None
    memory: ArenaTimeline | None = None
    patterns: tuple[SparsityPattern, ...] = ()
    trials: tuple[Trial, ...] = ()
    against: Comparison | None = None
    schema: int = field(default=SCHEMA)

    def json(self) -> str:
        """The document as a JSON object, in one line."""
        return json.dumps(asdict(self), separators=(",", ":"), allow_nan=False)
