"""Two reports beside each other: what became faster, what is compiled differently, what is new."""

from __future__ import annotations

import base64
import binascii
import difflib
import json
import os
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ..core.errors import InputError, explain
from ..core.files.reading import LARGEST_TEXT, ReadingError, read_bytes
from .document import SCHEMA, ComparedDecision, ComparedRow, Comparison
from .page import Page, page_of

_DOCUMENT = re.compile(r'<script type="text/plain" id="document">([A-Za-z0-9+/=\s]*)</script>')
_PLACES = ("before", "after")
_MOST_BYTES = 1 << 30
"""The size of the largest document that is read: a small page could hold an endless one."""


def compared(
    page: str, against: str, name: str = "the page", other: str = "the other page"
) -> Page:
    """The page of a report with one more view, in which it is beside an earlier report.

    Args:
        page, against: the HTML of the report and of the earlier one.
        name, other: what errors call them.

    Raises:
        InputError: if one of both is not a report of this version of the page.
    """
    after, before = _document(page, name), _document(against, other)
    known = _known(after, name)
    after["against"] = asdict(_compare(_known(before, other), known))
    return page_of(known.title, json.dumps(after, separators=(",", ":")))


def read_page(path: str | os.PathLike[str]) -> str:
    """The HTML in a file.

    Raises:
        InputError: if it cannot be read, is too large, or is not text.
    """
    try:
        return read_bytes(path, LARGEST_TEXT).decode()
    except ReadingError as error:
        fact = f"cannot read {os.fspath(path)}: {error}"
        raise InputError(explain("report", fact)) from error
    except UnicodeDecodeError as error:
        raise _not_a_report(os.fspath(path)) from error


@dataclass(frozen=True)
class _ComparedParts:
    """The parts of a report that are compared: times in seconds, code of kernels, decisions."""

    title: str
    version: str
    target: str
    seconds: float | None
    arena: int | None
    kernels: Mapping[str, float | None]
    code: Mapping[str, str]
    nodes: Mapping[str, float | None]
    decisions: Mapping[ComparedDecision, None]


def _document(page: str, name: str) -> dict[str, Any]:
    """The document in a page.

    Raises:
        InputError: if there is none, or one of another version.
    """
    found = _DOCUMENT.search(page)
    try:
        packed = base64.b64decode(found[1] if found else "")
        unpacking = zlib.decompressobj(wbits=31)
        document = json.loads(unpacking.decompress(packed, _MOST_BYTES))
        json.dumps(document, allow_nan=False)
    except (binascii.Error, zlib.error, ValueError, RecursionError) as error:
        raise _not_a_report(name) from error
    if not isinstance(document, dict):
        raise _not_a_report(name)
    if document.get("schema") != SCHEMA:
        fact = f"{name} is a report of another version of the page"
        raise InputError(
            explain("report", fact, expected=f"schema {SCHEMA}", got=document.get("schema"))
        )
    return document


def _known(document: Mapping[str, Any], name: str) -> _ComparedParts:
    """The parts of a document that are compared.

    Raises:
        InputError: if a part is missing, or is no such part.
    """
    try:
        profile, memory, target = document["profile"], document["memory"], document["target"]
        stages = {stage["name"]: stage["functions"] for stage in document["stages"]}
        times, nodes = (
            {row["name"]: float(row["seconds"]) for row in (profile[key] if profile else ())}
            for key in ("kernels", "nodes")
        )
        code = {str(f["name"]): str(f["text"]) for f in stages.get("pseudo-code", ())}
        return _ComparedParts(
            title=str(document["title"]).encode(errors="replace").decode(),
            version=str(document["version"]),
            target=f"{target['name']} ({target['cpu']})",
            seconds=float(profile["seconds"]) if profile else None,
            arena=int(memory["size"]) if memory else None,
            kernels={one["name"]: times.get(one["name"]) for one in document["kernels"]},
            code=code,
            nodes={str(one): nodes.get(one) for one in document["nodes"]},
            decisions=dict.fromkeys(
                ComparedDecision(*(str(one[key]) for key in ("subject", "what", "why")))
                for one in document["decisions"]
            ),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _not_a_report(name) from error


def _not_a_report(name: str) -> InputError:
    fact = f"{name} is not a page of a report"
    return InputError(explain("report", fact, expected="what `stepwell report` wrote"))


def _compare(before: _ComparedParts, after: _ComparedParts) -> Comparison:
    """A report beside an earlier one."""
    return Comparison(
        title=before.title,
        version=before.version,
        target=before.target,
        seconds=(before.seconds, after.seconds),
        arena=(before.arena, after.arena),
        kernels=tuple(_rows(before.kernels, after.kernels, before.code, after.code)),
        nodes=tuple(_rows(before.nodes, after.nodes, {}, {})),
        removed=tuple(one for one in before.decisions if one not in after.decisions),
        added=tuple(one for one in after.decisions if one not in before.decisions),
    )


def _rows(
    before: Mapping[str, float | None],
    after: Mapping[str, float | None],
    old: Mapping[str, str],
    new: Mapping[str, str],
) -> Iterator[ComparedRow]:
    """Kernels or nodes of both reports by name, those of the later one first."""
    for name in {**after, **before}:
        place = "both" if name in before and name in after else _PLACES[name in after]
        texts = (old.get(name, "").splitlines(), new.get(name, "").splitlines())
        changed = place == "both" and texts[0] != texts[1]
        lines = difflib.unified_diff(*texts, n=len(texts[0]), lineterm="") if changed else ()
        yield ComparedRow(name, place, (before.get(name), after.get(name)), "\n".join(lines))
