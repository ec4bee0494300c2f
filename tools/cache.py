"""`stepwell cache`: the cache of compiled programs."""

from __future__ import annotations

from typing import Annotated

import typer

from ..caching.folder import OFF, VARIABLE, Folder, folder_of_user
from ..core.errors import StepwellError, counted, explain
from .command import out


def cache(
    clear: Annotated[bool, typer.Option("--clear", help="Remove everything in it.")] = False,
) -> None:
    """Show the cache of compiled programs, or clear it.

    `stepwell cache`

    `STEPWELL_CACHE` names its folder; `STEPWELL_CACHE=off` turns it off.
    """
    folder = folder_of_user()
    if folder is None:
        out.print(f"off; {VARIABLE} names a folder for it, or is {OFF}", highlight=False)
        return
    if not folder.path.exists():
        out.print(f"{folder.path}\nempty", highlight=False, markup=False, soft_wrap=True)
        return
    trouble = folder.trouble()
    if trouble is not None:
        fact, expected = f"{folder.path} is not used: {trouble}", "a folder that only you write to"
        raise StepwellError(explain("cache", fact, expected=expected))
    if clear:
        folder.clear()
    out.print(_described(folder), highlight=False, markup=False, soft_wrap=True)


def _described(folder: Folder) -> str:
    """The folder, its entries, their size and its limit, and how often they were used."""
    from ..core.files.reading import amount

    entries, uses = folder.entries(), folder.uses()
    programs, kernels = (
        sum(entry.name.endswith(ending) for entry in entries) for ending in (".program", ".kernel")
    )
    size = sum(entry.size for entry in entries)
    return "\n".join(
        (
            str(folder.path),
            f"{counted(programs, 'program')}, {counted(kernels, 'kernel')}",
            f"{amount(size)} of at most {amount(folder.limit)}",
            f"used {counted(uses, 'time')}",
        )
    )
