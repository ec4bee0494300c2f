"""Decisions of passes as text for people and as JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from ..errors import InputError, explain
from .decisions import Decision

SCHEMA = 1
"""The version of the JSON form; it increases when a key changes its meaning or is removed."""

_SHOWN = 6
_Key = TypeVar("_Key")


@dataclass(frozen=True)
class Section:
    """The decisions of one pass in one stage."""

    stage: str
    pass_name: str
    lines: tuple[Decision, ...]
    """Equal decisions are one, whose subject names all of theirs."""


def explanation(decisions: Iterable[Decision], format: str) -> str:
    """The decisions as text or JSON.

    Raises:
        InputError: if `format` is neither "text" nor "json".
    """
    if format == "text":
        return as_text(decisions)
    if format == "json":
        return as_json(decisions)
    raise InputError(
        explain("explain", "unknown format", expected='"text" or "json"', got=f'"{format}"')
    )


def as_text(decisions: Iterable[Decision]) -> str:
    """The decisions grouped by stage and pass, equal ones on one line."""
    lines: list[str] = []
    stage = None
    for section in sections(decisions):
        if section.stage != stage:
            stage = section.stage
            lines.append(stage or "outside of the stages")
        lines.append(f"  {section.pass_name or 'outside of a pass'}")
        lines += [f"    {line}" for line in section.lines]
    return "\n".join(lines) or "no decisions were taken"


def as_json(decisions: Iterable[Decision]) -> str:
    """The decisions as a JSON object, one entry each, in order."""
    entries = [record(decision) for decision in decisions]
    return json.dumps({"schema": SCHEMA, "decisions": entries}, indent=2)


def record(decision: Decision) -> dict[str, Any]:
    """A decision as a JSON object."""
    return {
        "stage": decision.stage or None,
        "pass": decision.pass_name or None,
        "kind": decision.kind,
        "subject": decision.subject,
        "nodes": list(decision.nodes),
        "places": list(decision.places),
        "what": decision.what,
        "why": decision.why,
        "cost": decision.cost,
    }


def sections(decisions: Iterable[Decision]) -> Iterator[Section]:
    """The decisions by stage and pass, in order; the runs of a pass in a stage are merged."""
    for (stage, pass_name), found in _by(decisions, lambda d: (d.stage, d.pass_name)).items():
        alike = _by(found, lambda d: (d.what, d.why, d.cost))
        lines = [
            Decision(
                _subjects(group), what, why, f"{cost} each" if cost and len(group) > 1 else cost
            )
            for (what, why, cost), group in alike.items()
        ]
        yield Section(stage, pass_name, tuple(lines))


def _by(
    decisions: Iterable[Decision], key: Callable[[Decision], _Key]
) -> dict[_Key, list[Decision]]:
    groups: dict[_Key, list[Decision]] = {}
    for decision in decisions:
        groups.setdefault(key(decision), []).append(decision)
    return groups


def _subjects(group: list[Decision]) -> str:
    """The subjects of decisions as text: ``node "a"; node "b"; and 3 more``."""
    subjects = list(dict.fromkeys(map(_subject, group)))
    shown, rest = subjects[:_SHOWN], len(subjects) - _SHOWN
    return "; ".join([*shown, *([f"and {rest} more"] if rest > 0 else [])])


def _subject(decision: Decision) -> str:
    """The subject of a decision, with those of its nodes that the subject does not name."""
    unnamed = [f'"{name}"' for name in decision.nodes if f'"{name}"' not in decision.subject]
    shown, rest = unnamed[:_SHOWN], len(unnamed) - _SHOWN
    more = f" and {rest} more" if rest > 0 else ""
    return f"{decision.subject} ({', '.join(shown)}{more})" if unnamed else decision.subject
