"""What notebooks display: HTML without scripts, in the colours of the notebook."""

from __future__ import annotations

import html
import inspect
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import singledispatch
from typing import Any

from xdsl.dialects import func

from ..core.boundary.specs import ValueSpec
from ..core.display import ScheduledKernel
from ..core.ir.module import Module
from ..core.ir.printing import module_text
from ..dialects.graph.nests.kernels import Kernel
from ..frontends.gnn.graph import Graph
from ..runtime.executable import Executable
from ..runtime.profile import HEADINGS, Profile, Row
from .document import SparsityPattern
from .marking import ELIDED
from .sparsity import pattern

_MOST = 40
"""The number of rows of a table that are shown."""

_BOX = "border:1px solid #8884;border-radius:8px;padding:10px 14px;max-width:960px"
_PRE = (
    "max-height:420px;overflow:auto;font-size:12px;line-height:1.4;background:none;white-space:pre;"
    "font-family:var(--jp-code-font-family,monospace)"
)
_BLUE = "#4c78d8"
_SIDE = 240
"""The longer side of the drawing of a matrix, in pixels."""


@singledispatch
def html_of(value: object) -> str:
    """The HTML of an object.

    Raises:
        TypeError: if objects of its class are not displayed.
    """
    raise TypeError(f"no display of {type(value).__name__}")


@html_of.register
def _(module: Module) -> str:
    text = module_text(module.op, elide=ELIDED)
    functions = [op for op in module.op.ops if isinstance(op, func.FuncOp)]
    kinds = Counter(op.name for f in functions for op in f.walk() if op.name.startswith("graph."))
    counted = ", ".join(f"{count} {name}" for name, count in kinds.most_common(8))
    facts = [*_interface(module.inputs, module.outputs), ("operators", counted)]
    return _box(f"module {module.program.sym_name.data}", _facts(facts), _text("IR", text))


@html_of.register
def _(exe: Executable) -> str:
    facts = [*_interface(exe.inputs, exe.outputs), ("stages", ", ".join(exe.stages))]
    return _box("executable", _facts(facts), _text("decisions", exe.explain()))


@html_of.register
def _(kernel: Kernel) -> str:
    try:
        text = inspect.getsource(inspect.unwrap(kernel.function))
    except (OSError, TypeError):
        # Functions of an interactive session without a history have no source.
        text = inspect.getdoc(kernel.function) or ""
    return _box(f"kernel {kernel.name}", _text("Python", inspect.cleandoc(text), is_open=True))


@html_of.register
def _(schedule: ScheduledKernel) -> str:
    steps = "".join(f"<li><code>{html.escape(step)}</code></li>" for step in schedule.steps)
    listed = f'<ol start="0">{steps}</ol>' if steps else "<p>no steps</p>"
    text = _text("the kernel", schedule.text, is_open=True)
    return _box(f"schedule of @{schedule.kernel}", listed, text)


@html_of.register
def _(profile: Profile) -> str:
    tables = (
        _times(name, members, rows)
        for name, members, rows in (
            ("kernel", "nodes", profile.kernels),
            ("node", "kernels", profile.nodes),
        )
    )
    return _box("profile", f"<p>{html.escape(profile.summary())}</p>", *tables)


@html_of.register
def _(graph: Graph) -> str:
    matrix = graph.adjacency
    shape = (graph.num_nodes, graph.num_nodes)
    return spy("graph", pattern("adjacency", shape, matrix.indptr, matrix.indices))


def load_ipython_extension(shell: Any) -> None:
    """Let notebooks display the sparse matrices of SciPy as well: `%load_ext stepwell`."""
    from scipy.sparse import sparray, spmatrix

    formatter = shell.display_formatter.formatters["text/html"]
    for kind in (sparray, spmatrix):
        formatter.for_type(kind, _matrix)


def _matrix(matrix: Any) -> str | None:
    """The HTML of a sparse matrix of SciPy; None for a sparse vector."""
    if matrix.ndim != 2:
        return None
    rows, columns = matrix.shape
    csr = matrix.tocsr()
    found = pattern("matrix", (rows, columns), csr.indptr, csr.indices)
    return spy(f"sparse matrix of {matrix.dtype}", found)


def spy(title: str, found: SparsityPattern) -> str:
    """A sparse matrix: where entries are, and how long rows are."""
    rows, columns = found.shape
    facts = [
        ("shape", f"{rows} x {columns}"),
        ("entries", f"{found.entries}, at most {found.longest} in a row"),
    ]
    style = "display:flex;flex-wrap:wrap;gap:24px;align-items:flex-start"
    drawings = f'<div style="{style}">{_cells(found)}{_lengths(found)}</div>'
    return _box(title, _facts(facts), drawings)


def _cells(found: SparsityPattern) -> str:
    """The grid of a pattern as SVG."""
    down = len(found.cells) // found.columns
    most = max(found.cells, default=0) or 1
    longer = max(*found.shape, 1)
    width, height = (max(48, round(_SIDE * size / longer)) for size in reversed(found.shape))
    squares = "".join(
        f'<rect x="{place % found.columns}" y="{place // found.columns}" width="1" height="1" '
        f'opacity="{0.3 + 0.7 * count / most:.2f}"/>'
        for place, count in enumerate(found.cells)
        if count
    )
    return (
        f'<svg viewBox="0 0 {found.columns} {down}" width="{width}" height="{height}" role="img" '
        f'aria-label="entries of {html.escape(found.name)}" fill="{_BLUE}" '
        f'style="border:1px solid #8884" preserveAspectRatio="none">{squares}</svg>'
    )


def _lengths(found: SparsityPattern) -> str:
    """The histogram of row lengths as a table with bars."""
    most = max((rows for _, rows in found.lengths), default=0) or 1
    starts = [least for least, _ in found.lengths]
    ends = [start - 1 for start in starts[1:]] + [found.longest]
    if starts != [0, *(1 << n for n in range(len(starts) - 1))]:
        ends = starts  # each length that occurs has a bin of its own
    lines = [
        (str(least) if least == end else f"{least} to {end}", str(rows), _bar(rows / most))
        for (least, rows), end in zip(found.lengths[:_MOST], ends, strict=False)
        if rows
    ]
    return _table(("entries in a row", "rows", ""), lines, raw={2})


def _times(name: str, members: str, rows: Sequence[Row]) -> str:
    most = max((row.seconds for row in rows), default=0) or 1
    heads = (name, "", *HEADINGS, members)
    lines = [
        (cells[0], _bar(row.seconds / most), *cells[1:])
        for row in rows[:_MOST]
        for cells in [row.cells()]
    ]
    return _table(heads, lines, raw={1})


def _bar(part: float) -> str:
    style = f"width:{max(1, round(120 * part))}px;height:10px;border-radius:2px;background:{_BLUE}"
    return f'<div style="{style}"></div>'


def _interface(
    inputs: Iterable[ValueSpec], outputs: Iterable[ValueSpec]
) -> Iterator[tuple[str, str]]:
    yield "takes", "; ".join(map(_value, inputs))
    yield "gives", "; ".join(map(_value, outputs))


def _value(spec: ValueSpec) -> str:
    """An input or a result: its name, element type and shape."""
    sizes = ", ".join(map(str, spec.shape))
    sparse = f" as {spec.format}, {spec.nnz} entries" if spec.format else ""
    return f"{spec.name}: {spec.dtype}[{sizes}]{sparse}"


def _facts(facts: Iterable[tuple[str, str]]) -> str:
    return _table((), [(f"{name}", text) for name, text in facts if text])


def _table(
    heads: Sequence[str],
    rows: Iterable[Sequence[str]],
    raw: frozenset[int] | set[int] = frozenset(),
) -> str:
    """A table of texts; columns in `raw` are markup already."""
    head = "".join(f'<th style="text-align:left">{html.escape(one)}</th>' for one in heads)
    lines = "".join(
        "<tr>"
        + "".join(
            f'<td style="text-align:left">{cell if n in raw else html.escape(cell)}</td>'
            for n, cell in enumerate(row)
        )
        + "</tr>"
        for row in rows
    )
    return (
        f"<table>{f'<thead><tr>{head}</tr></thead>' if heads else ''}<tbody>{lines}</tbody></table>"
    )


def _text(title: str, text: str, is_open: bool = False) -> str:
    opened = " open" if is_open else ""
    body = f'<pre style="{_PRE}">{html.escape(text)}</pre>'
    return f"<details{opened}><summary>{title}</summary>{body}</details>"


def _box(title: str, *parts: str) -> str:
    body = "".join(parts)
    return f'<div style="{_BOX}"><b>{html.escape(title)}</b>{body}</div>'
