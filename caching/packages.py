"""The packages of plug-ins: what decides, beside the compiler, what a compilation results in.

A plug-in is known by the names and versions of its distribution and of all that it requires, and by
the contents of its files. An editable installation is the folder that it leads to.
"""

from __future__ import annotations

import functools
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec

from ..core.plugins import plugin_packages

_OWN = ("stepwell", "xdsl")
"""What plug-ins require, and the compiler consists of."""
_MOST_FILES = 10_000
"""A package of more files is not read."""
_REQUIRED = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)")


@dataclass(frozen=True)
class Package:
    """An installed distribution: its name, its version, and the names that are imported from it.

    There are no names where the version says enough.
    """

    name: str
    version: str
    modules: tuple[str, ...]


@functools.cache
def packages_of_plugins() -> tuple[Package, ...]:
    """The distributions of all plug-ins, and those that they require, in the order of their names.

    Raises:
        OSError: if a plug-in is of no distribution that is known, or its modules are not.
        StepwellError: if a plug-in cannot be loaded.
    """
    names = {*map(_normalised, plugin_packages())} - {*_OWN}
    found: dict[str, Package] = {}
    left = sorted(names)
    while left:
        name = left.pop()
        if name in found or name in _OWN:
            continue
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError as error:
            if name in names:
                raise OSError(f"the files of {name} are not known") from error
            continue
        is_read = name in names or _is_editable(distribution)
        modules = _modules(distribution) if is_read else ()
        if is_read and not modules:
            raise OSError(f"the modules of {name} are not known")
        found[name] = Package(name, distribution.version, modules)
        left += _required(distribution)
    return tuple(found[name] for name in sorted(found))


def modules_of_plugins() -> frozenset[str]:
    """The importable names of plug-ins, and of editable packages that they require.

    Raises:
        OSError, StepwellError: as `packages_of_plugins`.
    """
    return frozenset(module for package in packages_of_plugins() for module in package.modules)


def files_of_plugins() -> Iterator[str]:
    """The paths of all files that plug-ins consist of, in a fixed order.

    Raises:
        OSError: if they cannot be listed, or are too many.
        StepwellError: as `packages_of_plugins`.
    """
    for package in packages_of_plugins():
        for count, path in enumerate(_files_of(package)):
            if count >= _MOST_FILES:
                raise OSError(f"{package.name} has too many files")
            yield path


def _required(distribution: metadata.Distribution) -> Iterator[str]:
    """The names of the distributions that one requires, without its extras."""
    for text in distribution.requires or ():
        match = _REQUIRED.match(text)
        if match is not None and "extra ==" not in text:
            yield _normalised(match[1])


def _modules(distribution: metadata.Distribution) -> tuple[str, ...]:
    """The names by which the modules of a distribution are imported."""
    stated = (distribution.read_text("top_level.txt") or "").split()
    points = [point.value for point in distribution.entry_points if point.group == "xdsl.universe"]
    files = [file.parts[0] for file in distribution.files or () if file.suffix in (".py", ".so")]
    names = {re.split(r"[.:]", name)[0] for name in (*stated, *points, *files)}
    return tuple(sorted(name for name in names if name.isidentifier() and find_spec(name)))


def _files_of(package: Package) -> Iterator[str]:
    for module in package.modules:
        spec = find_spec(module)
        if spec is None:
            raise OSError(f"{module} is not there any more")
        if spec.submodule_search_locations is None:
            yield spec.origin or ""
        for folder in spec.submodule_search_locations or ():
            yield from _files_in(folder)


def _files_in(folder: str) -> Iterator[str]:
    with os.scandir(folder) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    for entry in entries:
        if entry.name.startswith(".") or entry.name == "__pycache__":
            continue
        if not entry.is_dir():
            yield entry.path
        elif entry.is_symlink():
            raise OSError(f"{entry.path} leads elsewhere")
        else:
            yield from _files_in(entry.path)


def _is_editable(distribution: metadata.Distribution) -> bool:
    """Whether its files are those of a folder in which somebody works."""
    text = distribution.read_text("direct_url.json")
    return text is not None and bool(json.loads(text).get("dir_info", {}).get("editable"))


def _normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
