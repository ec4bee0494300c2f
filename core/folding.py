"""The text of a stage as people read it: without nests of remainders, and in short lines."""

from __future__ import annotations

import re
from collections.abc import Iterator

_WIDTH = 120
"""The most characters of a line."""

_REMAINDER = re.compile(r'(?P<head>(?P<indent> *)(?:%[\w, %:]+ = )?loop\.for "\w+?t\d*").*\{$')
"""The first line of a loop over what a split leaves, whose name ends with t or t1, t2, ..."""


def folded(text: str) -> str:
    """A text in which each nest of a remainder is one line, and long lines are cut.

    It is for people: it cannot be parsed.
    """
    lines = list[str]()
    for line in _without_remainders(iter(text.splitlines())):
        end = " {" if line.endswith(" {") else ""
        short = f"{line[: _WIDTH - 3 - len(end)]}...{end}"
        lines.append(line if len(line) <= _WIDTH else short)
    return "\n".join(lines) + "\n"


def _without_remainders(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        found = _REMAINDER.fullmatch(line)
        if found is None:
            yield line
            continue
        end, count = found["indent"] + "}", 0
        for inner in lines:
            if inner == end or inner.startswith(f"{end} "):
                break
            count += 1
        yield f"{found['head']} ... {{ {count} lines }}"
