"""Unsupported parts of models: all are collected, and reported in one error."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ...core.errors import ImportModelError

_LISTED = 100


class UnsupportedNodeError(Exception):
    """Raised inside a conversion: the node is valid, but this version cannot express it.

    The importer collects these and reports all of them in one `ImportModelError`.

    Attributes:
        reason: the unsupported feature.
        closest: the closest supported feature, or None.
    """

    def __init__(self, reason: str, closest: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.closest = closest


class LeftToDefinitionError(UnsupportedNodeError):
    """Raised inside a conversion that leaves a form of its operator to the definition of it."""


class BlockedError(Exception):
    """A node needs the result of an unsupported one, which is reported already."""


class BranchError(Exception):
    """Raised where a branch of a condition cannot be converted, which matters if it is taken.

    Args:
        problems: what of it is not supported.
        error: what is wrong with it.
    """

    def __init__(self, problems: Sequence[Problem], error: ImportModelError | None) -> None:
        super().__init__("; ".join([*map(str, problems), *([] if error is None else [str(error)])]))
        self.problems, self.error = list(problems), error


@dataclass(frozen=True)
class Problem:
    """An unsupported part of a model, and the closest supported feature.

    Attributes:
        part: such as ``node "conv1"`` or ``input "x"``.
        what: the operator of a node, with its version.
        reason: the unsupported feature.
        closest: the closest supported feature, or None.
    """

    part: str
    what: str | None
    reason: str
    closest: str | None

    def __str__(self) -> str:
        what = f"{self.what}: " if self.what else ""
        closest = f"; closest supported: {self.closest}" if self.closest else ""
        return f"{self.part}: {what}{self.reason}{closest}"


def unsupported(subject: str, problems: Sequence[Problem]) -> ImportModelError:
    """One error for all unsupported parts of a model."""
    count = len(problems)
    parts = "part of the model is" if count == 1 else "parts of the model are"
    lines = [f"{subject}: {count} {parts} not supported", *(f"  {p}" for p in problems[:_LISTED])]
    rest = Counter(p.what or p.part.partition(" ")[0] for p in problems[_LISTED:])
    if rest:
        names = ", ".join(f"{what} {n} times" for what, n in rest.most_common(_LISTED))
        lines.append(f"  and {count - _LISTED} more: {names}")
    return ImportModelError("\n".join(lines))
