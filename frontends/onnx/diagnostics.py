"""What can be wrong with an ONNX model: broken (one error at once) or unsupported (collected)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ...core.errors import ImportModelError, explain

_LISTED = 100


class UnsupportedNodeError(Exception):
    """Raised inside a conversion: the node is valid ONNX that this version cannot express.

    The importer collects these and reports all of them in one `ImportModelError`.
    """


@dataclass(frozen=True)
class Problem:
    """One node that is not supported, and the closest thing that is."""

    node: str
    operator: str
    opset: int
    reason: str
    closest: str | None = None

    def __str__(self) -> str:
        closest = f"; closest supported: {self.closest}" if self.closest else ""
        return f'node "{self.node}": {self.operator} (opset {self.opset}): {self.reason}{closest}'


def broken(
    fact: str,
    *,
    subject: str = "onnx",
    expected: object = None,
    got: object = None,
    origin: str | None = None,
    hint: str | None = None,
) -> ImportModelError:
    """The error for a model that is no valid ONNX."""
    text = explain(subject, fact, expected=expected, got=got, origin=origin, hint=hint)
    return ImportModelError(text)


def unsupported(problems: Sequence[Problem]) -> ImportModelError:
    """One error for everything in a model that is not supported."""
    count = len(problems)
    noun = "node is" if count == 1 else "nodes are"
    lines = [f"onnx: {count} {noun} not supported", *(f"  {p}" for p in problems[:_LISTED])]
    rest = Counter(p.operator for p in problems[_LISTED:])
    if rest:
        names = ", ".join(f"{operator} ({n} times)" for operator, n in rest.most_common(_LISTED))
        lines.append(f"  and {count - _LISTED} more: {names}")
    return ImportModelError("\n".join(lines))
