"""`stepwell report`: a page to look at a model and what became of it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..core.display import write_page
from ..core.errors import InputError, explain
from .command import CallOptions, CompileOptions
from .grouped import grouped
from .models import ARTEFACT
from .outputs import check_output
from .progress import passes_shown

_PAGES = (".html", ".htm")


@grouped
def report(
    model: Annotated[
        Path,
        typer.Argument(
            help="A model or a saved program, as for other commands; of two, each may also be a "
            "page that was written before.",
            show_default=False,
        ),
    ],
    after: Annotated[
        Path | None,
        typer.Argument(
            help="Another one, which is then shown, with what differs from the first one.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The file to write, of HTML.")
    ] = Path("report.html"),
    profile: Annotated[
        bool,
        typer.Option("--profile/--no-profile", help="Whether to run the models, for times."),
    ] = True,
    against: Annotated[
        Path | None,
        typer.Option(
            "--against",
            help="The same as a first one of two: what to compare with.",
            show_default=False,
        ),
    ] = None,
    *,
    calls: CallOptions,
    options: CompileOptions,
) -> None:
    """Write a page to look at a model: its graph, its kernels at every stage, passes, times.

    `stepwell report model.onnx -o report.html --size batch=64`

    The page is one file, which any browser opens from disk. A click on a node, a kernel, a line of
    code or an instruction marks what it became at all other stages. Without a profile, the
    `--target` may be another machine than this one.

    `stepwell report before after -o both.html` compares two of them, each a model, a saved program
    or a page: it writes the page of the second one, with what differs from the first one.
    """
    check_output("--output", output, "a page", _PAGES)
    if after is not None and against is not None:
        raise InputError(explain("report", "three reports", expected="two", got=f"{against}, too"))
    before, shown = (against, model) if after is None else (model, after)
    if before is None:
        if shown.suffix in _PAGES:
            fact, got = "a page is read to be compared with another one", shown.name
            raise InputError(explain("report", fact, expected="two reports", got=got))
        text = _page(shown, profile, calls, options)
    else:
        from ..report.comparing import compared

        earlier = _page(before, profile, calls, options)
        text = _page(shown, profile, calls, options)
        text = compared(text, earlier, str(shown), str(before))
    write_page(output, text)
    print(f"wrote {output}, {output.stat().st_size / 1e6:.1f} MB")


def _page(path: Path, profile: bool, calls: CallOptions, options: CompileOptions) -> str:
    """The page of a model or a saved program, or one that was written before."""
    if path.suffix in _PAGES:
        from ..report.comparing import read_page

        return read_page(path)
    if profile:
        exe, arrays = options.called(path, calls.arrays)
        with passes_shown("profiling, and collecting the stages"):
            return exe.report(inputs=arrays, repeat=calls.repeat)
    if path.suffix == ARTEFACT:
        exe = options.saved(path)
        with passes_shown("collecting the stages"):
            return exe.report()
    from ..diagnosis.inspection import inspected
    from ..runtime.profile import CallFacts

    compilation = options.way_down(options.load(path))
    with passes_shown("collecting the stages"):
        return inspected(compilation).report(CallFacts(), None)
