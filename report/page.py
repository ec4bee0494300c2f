"""The page of a report: one file of HTML with everything in it.

The document is in it as compressed base64, and texts of a model become text nodes in the browser,
so that nothing in a model is markup or script.
"""

from __future__ import annotations

import base64
import gzip
import html
from functools import cache
from importlib.resources import files
from string import Template

from .document import ReportDocument

VENDORED = ("d3.min.js", "dagre.min.js")
"""Libraries from npm; their licences are beside them."""

_SCRIPTS = (
    *(
        "dom.js",
        "model.js",
        "code.js",
        "layout.js",
        "graph.js",
        "staircase.js",
        "passes.js",
        "charts.js",
        "compared.js",
    ),
    *("search.js", "page.js"),
)
"""The parts of the script, in order: they are one scope."""


class Page(str):
    """The HTML of a report, which notebooks display in a frame."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<report, {len(self) // 1000} kB of HTML>"

    def _repr_html_(self) -> str:
        source = html.escape(self)
        style = "width:100%;height:720px;border:1px solid #8884;border-radius:8px"
        return f'<iframe srcdoc="{source}" style="{style}" title="report"></iframe>'


def page(report: ReportDocument) -> Page:
    """The page of a document."""
    return page_of(report.title, report.json())


def page_of(title: str, document: str) -> Page:
    """The page of a document that is JSON."""
    # The time of compression would be in the bytes.
    packed = gzip.compress(document.encode(), 9, mtime=0)
    return Page(
        Template(_text("page.html")).substitute(
            title=html.escape(f"{title}: a Stepwell report"),
            style=_style(),
            document=base64.b64encode(packed).decode(),
            vendored="\n".join(f"<script>\n{_vendored(name)}\n</script>" for name in VENDORED),
            script=_script(),
        )
    )


@cache
def _script() -> str:
    """The parts of the script as one, with a scope of its own."""
    parts = "\n".join(_text(name) for name in _SCRIPTS)
    return f'(() => {{\n"use strict";\n{parts}}})();'


@cache
def _style() -> str:
    """The style, with colours for dark pages by choice and by the system."""
    dark = _text("dark.css")
    return Template(_text("style.css")).substitute(
        dark=f':root[data-theme="dark"] {{\n{dark}}}\n'
        "@media (prefers-color-scheme: dark) {\n"
        f':root:not([data-theme="light"]) {{\n{dark}}}\n}}'
    )


def _vendored(name: str) -> str:
    licence = _text(f"vendor/{name.removesuffix('.min.js')}.LICENSE")
    return f"/*! {name}\n{licence}*/\n{_text(f'vendor/{name}')}"


@cache
def _text(name: str) -> str:
    return files(__name__.rpartition(".")[0]).joinpath("static", name).read_text(encoding="utf-8")
