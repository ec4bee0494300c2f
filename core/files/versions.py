"""Versions of stored formats: IR text, tuning records, traces, weights.

Writers state the version of the format; readers upgrade older content step by step and refuse newer
content. `docs/stability.md` defines when a version changes, and for how long content can be
upgraded.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from .formats import Format
from .reading import STRING

if TYPE_CHECKING:
    import numpy as np

KEY = "stepwell.version"
"""The key of the version in the attributes of a module and in the metadata of a weight file."""


_CASES = re.compile(
    r"split\([\w.]+, *(?P<factor>\d{1,3}), *(?:tail=)?cases(?:, *(?:cases=)?(?P<most>\d{1,3}))?\)"
    r"|vectorize\((?P<loops>[\w., ]+), *cases=(?P<axes>\d{1,3})(?:, *suffix=(?P<end>\w+))?\)"
    r"|prefetch\((?P<read>\d+), *(?P<loop>[\w.]+), *(?P<ahead>\d+), *(?:cases=)?(?P<hints>\d{1,3})"
    r"(?:, *(?:suffix=)?(?P<infix>\w+))?\)"
)


def _cases_by_name(trace: str) -> str:
    """Steps of version 1 on the nests that a split made for up to n remaining rows, `cases=n`, as
    steps on loops of these names."""
    numbers: list[int] = []

    def by_name(step: re.Match[str]) -> str:
        if factor := step["factor"]:
            most = max(int(step["most"] or 0), int(factor) - 1)
            numbers[:] = [n for n in range(1, most + 1) if n != int(factor)]
            return step[0]
        most = int(step["axes"] or step["hints"])
        ends = [f"{step['end'] or step['infix'] or 't'}{n}" for n in numbers if n <= most]
        if step["loops"]:
            loops = re.split(r", *", step["loops"])
            return f"vectorize({', '.join(loop + end for end in ('', *ends) for loop in loops)})"
        read, loop, ahead = step["read"], step["loop"], step["ahead"]
        return "; ".join(f"prefetch({read}, {loop}{end}, {ahead})" for end in ("", *ends))

    return _CASES.sub(by_name, trace)


def _record_by_name(fields: dict[str, Any]) -> dict[str, Any]:
    trace = fields.get("trace")
    return {**fields, "trace": _cases_by_name(trace)} if isinstance(trace, str) else fields


IR_TEXT = Format[str](1)
"""MLIR text of any stage. Text without a version, as people write it, has the current one."""

RECORD = Format[dict[str, Any]](
    3,
    {
        0: lambda fields: fields,
        1: _record_by_name,
        2: lambda fields: {**fields, "predicted": None},
    },
)
"""A tuning record, as the fields of its line. The first records, without a version, have 0."""

TRACE = Format[str](2, {1: _cases_by_name})
"""The text of traces. One without a version, as people write it, has the current one."""

WEIGHTS = Format[dict[str, "np.ndarray"]](1)
"""The arrays of a safetensors file. A file without a version is from another tool."""

_STATED = re.compile(rf"{STRING}|//[^\n]*|\bstepwell\.version = (?P<version>\d{{1,18}})\b")
_HEADER = re.compile(
    rf"builtin\.module(?: @(?:[\w.$-]+|{STRING}))?(?P<attributes> attributes \{{)?"
)


def stated_in(text: str) -> re.Match[str] | None:
    """The match for the version that MLIR text states, in group `version`; None if none."""
    if KEY not in text:
        return None
    return next((match for match in _STATED.finditer(text) if match["version"]), None)


def with_version(text: str) -> str:
    """The text of a module, with the version added to its attributes."""
    header = _HEADER.match(text)
    assert header is not None, "the text of a module begins with its name"
    stated = f"{KEY} = {IR_TEXT.version} : i64"
    added = f"{stated}, " if header["attributes"] else f" attributes {{{stated}}}"
    return f"{text[: header.end()]}{added}{text[header.end() :]}"
