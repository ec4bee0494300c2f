"""What `make docs` does beside mkdocs itself: notebooks, pages listed by their files, a check."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import nbformat
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from nbclient import NotebookClient
from nbformat import NotebookNode

RATIONALE = "rationale"
NOTEBOOKS = "notebooks"

BOOSTS = {"reference/python.md": 10, f"{RATIONALE}/": 0.3}
"""How much more pages count in a search, by how their paths begin."""

LOADED = re.compile(
    r"""<(?:script|img|iframe|source)\b[^>]*\bsrc="?(https?:)?//|"""
    r"""<link\b(?![^>]*canonical)[^>]*\bhref="?(https?:)?//|@import|url\("?(https?:)?//"""
)
"""What a browser would load from another place."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put every note of `rationale/` into the navigation, in the order of their numbers."""
    section = next(part[name] for part in config.nav or () for name in part if name == "Rationale")
    section += [f"{RATIONALE}/{note.name}" for note in notes_of(config)]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for each notebook, with the outputs of a run."""
    for path in sorted((Path(config.docs_dir) / NOTEBOOKS).glob("*.ipynb")):
        name = f"{NOTEBOOKS}/{path.stem}.md"
        files.append(File.generated(config, name, content=page_of(path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links to notebooks to their pages, list the notes, and order what a search finds."""
    for beginning, boost in BOOSTS.items():
        if page.file.src_uri.startswith(beginning):
            page.meta["search"] = {"boost": boost}
    if page.file.src_uri == f"{RATIONALE}/index.md":
        titles = (note.read_text(encoding="utf-8").partition("\n")[0] for note in notes_of(config))
        links = zip(titles, notes_of(config), strict=True)
        markdown += "".join(f"\n- [{title.lstrip('# ')}]({note.name})" for title, note in links)
    return re.sub(r"\.ipynb\)", ".md)", markdown)


def notes_of(config: MkDocsConfig) -> list[Path]:
    """The notes of `rationale/`, in the order of their numbers."""
    return sorted((Path(config.docs_dir) / RATIONALE).glob("[0-9]*.md"))


def on_post_build(config: MkDocsConfig) -> None:
    """Refuse a site that loads anything from elsewhere.

    Raises:
        PluginError: naming the first page that does.
    """
    for page in sorted(Path(config.site_dir).rglob("*.html")):
        found = LOADED.search(page.read_text(encoding="utf-8"))
        if found is not None:
            raise PluginError(f"{page}: it loads from another place: {found.group()}")


def page_of(path: Path) -> str:
    """Run a notebook, and return its page in Markdown."""
    notebook = nbformat.read(path, as_version=4)
    resources = {"metadata": {"path": str(path.parent)}}
    NotebookClient(notebook, kernel_name="python3", resources=resources).execute()
    return "\n\n".join(part for cell in notebook.cells for part in _cell(cell)) + "\n"


def _cell(cell: NotebookNode) -> Iterator[str]:
    if cell.cell_type == "markdown":
        yield cell.source
        return
    yield f"```python\n{cell.source}\n```"
    for output in cell.outputs:
        yield _output(output.get("data") or {"text/plain": output.get("text", "")})


def _output(data: dict[str, str]) -> str:
    """What a cell displays. Colours of code are those of the theme, in place of its own."""
    if "text/markdown" in data:
        return data["text/markdown"]
    if "text/html" in data:
        html = re.sub(r"<style>.*?</style>", "", data["text/html"], flags=re.DOTALL)
        # The theme colours, and scrolls, code within `pre`.
        html = re.sub(r"(<pre[^>]*>)(.*?)(</pre>)", r"\1<code>\2</code>\3", html, flags=re.DOTALL)
        return f'<div class="output">\n{html}\n</div>'
    return f"```text\n{data['text/plain']}\n```"
