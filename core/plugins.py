"""What other packages register by the entry point `xdsl.universe`: tables of what they bring."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from .deprecation import warn_deprecated
from .errors import StepwellError, explain, first_line

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from xdsl.ir import Dialect
    from xdsl.passes import ModulePass
    from xdsl.universe import Universe

_Loaded = TypeVar("_Loaded")
_PACKAGE = __name__.rpartition(".core.")[0]


@dataclass(frozen=True)
class Plugin:
    """The loaders that another installed package registers, by name; errors name the package."""

    package: str
    universe: Universe

    @property
    def interface(self) -> int | None:
        """The stated version of the plug-in interface, if any."""
        return getattr(self.universe, "interface", None)

    def check_interface(self) -> None:
        """Check the stated interface version against ours.

        Raises:
            StepwellError: if it is unsupported.
        """
        from . import universe  # late, as it is xDSL's

        stated, subject = self.interface, f'package "{self.package}"'
        if stated is None and self.legalizations:
            self._warn_of_no_interface("its table of graph-legalize")
        if stated is None or stated == universe.INTERFACE:
            return
        newest, oldest = universe.INTERFACE, universe.OLDEST_INTERFACE
        if type(stated) is not int or not oldest <= stated <= newest:
            newer = type(stated) is int and stated > newest
            hint = f"install a newer {'Stepwell' if newer else 'version of the package'}"
            known = f"{oldest} to {newest}" if oldest < newest else f"{newest}"
            fact = "is written for another version of the plug-in interface"
            raise StepwellError(explain(subject, fact, expected=known, got=stated, hint=hint))
        fact = f"is written for version {stated} of the plug-in interface"
        warn_deprecated(subject, fact, hint=f"version {newest} takes its place")

    def dialects(self, own: Collection[str]) -> dict[str, Callable[[], Dialect]]:
        """Its dialects, by name.

        Raises:
            StepwellError: if one has the name of one of our own.
        """
        clash = sorted(self.universe.all_dialects.keys() & own)
        if clash:
            fact = f'registers the dialect "{clash[0]}", which is Stepwell\'s own'
            raise StepwellError(explain(f'package "{self.package}"', fact))
        return {
            name: functools.partial(self._dialect, name, load)
            for name, load in self.universe.all_dialects.items()
        }

    @property
    def passes(self) -> dict[str, Callable[[], type[ModulePass]]]:
        """Its passes, by command-line name."""
        return {name: self._named(load) for name, load in self.universe.all_passes.items()}

    def loaders(self, what: str) -> dict[str, Callable[[], Any]]:
        """The functions of one table of a `stepwell.Universe`, by name."""
        entries = getattr(self.universe, what, {})
        return {name: self._named(load) for name, load in entries.items()}

    @property
    def legalizations(self) -> dict[str, Callable[[], Any]]:
        """Its table of `graph-legalize`."""
        return self.loaders("all_legalizations")

    def error(self, fact: str, **more: Any) -> StepwellError:
        """An error that names the package."""
        return StepwellError(explain(f'package "{self.package}"', fact, **more))

    def _dialect(self, name: str, load: Callable[[], Dialect]) -> Dialect:
        dialect = _load_of(self.package, load)
        if self.interface is None:
            classes = (base for op in dialect.operations for base in op.__mro__)
            if any(base.__module__.startswith(f"{_PACKAGE}.") for base in classes):
                # Its operations derive from classes of this package.
                self._warn_of_no_interface(f'its dialect "{name}"')
        return dialect

    def _warn_of_no_interface(self, subject: str) -> None:
        fact = f"{subject} uses Stepwell and states no version of the plug-in interface"
        from .universe import INTERFACE

        hint = f"register stepwell.Universe(interface={INTERFACE}, ...)"
        warn_deprecated(f'package "{self.package}"', fact, hint=hint)

    def _named(self, load: Callable[[], _Loaded]) -> Callable[[], _Loaded]:
        return lambda: _load_of(self.package, load)


def _load_of(package: str, load: Callable[[], _Loaded]) -> _Loaded:
    """Load something of another package.

    Raises:
        StepwellError: for any failure in that package.
    """
    try:
        return load()
    except Exception as error:
        # The boundary to third-party code: an import may raise anything.
        fact = f"cannot be loaded: {type(error).__name__}: {first_line(error)}"
        hint = "repair or uninstall it"
        raise StepwellError(explain(f'package "{package}"', fact, hint=hint)) from error


def _points() -> tuple[tuple[str, EntryPoint], ...]:
    """The entry points of other packages, and the names of the packages; nothing is loaded."""
    from importlib.metadata import entry_points

    found = sorted(entry_points(group="xdsl.universe"), key=lambda point: point.name)
    roots = [point.value.partition(":")[0].partition(".")[0] for point in found]
    others = [point for point, root in zip(found, roots, strict=True) if root != _PACKAGE]
    return tuple((p.name if p.dist is None else p.dist.name, p) for p in others)


@functools.cache
def plugins() -> tuple[Plugin, ...]:
    """The universes that other installed packages register."""
    from xdsl.universe import Universe

    found: list[Plugin] = []
    for package, point in _points():
        universe = _load_of(package, point.load)
        if not isinstance(universe, Universe):
            fact = f'entry point "{point.name}" is not a universe'
            expected, got = "xdsl.universe.Universe", type(universe).__name__
            subject = f'package "{package}"'
            raise StepwellError(explain(subject, fact, expected=expected, got=got))
        plugin = Plugin(package, universe)
        plugin.check_interface()
        found.append(plugin)
    return tuple(found)


def plugin_packages() -> frozenset[str]:
    """The names of the packages other than xDSL that register anything, all of which load.

    Raises:
        StepwellError: if one cannot be loaded.
    """
    names = frozenset(package for package, _ in _points()) - {"xdsl"}
    if names:
        plugins()
    return names


def late_packages() -> str | None:
    """A hint that names packages which were installed since plug-ins were looked up, if any."""
    known = {plugin.package for plugin in plugins()}
    late = sorted({package for package, _ in _points()} - known)
    if not late:
        return None
    names = ", ".join(f'the package "{name}"' for name in late)
    return f"{names} was installed after this process had begun: start it again"


def has_plugins() -> bool:
    """Whether packages other than xDSL register anything."""
    return any(plugin.package != "xdsl" for plugin in plugins())


def legalizations() -> list[dict[str, Callable[[], Any]]]:
    """The tables of `graph-legalize` that other packages register, by operator."""
    return [plugin.legalizations for plugin in plugins()]


def placements() -> Iterator[tuple[str, str, str, Callable[..., StepwellError]]]:
    """The passes that other packages add to each compilation.

    Returns:
        The name of each, "after" or "before", the pass there, and what words an error about it.

    Raises:
        StepwellError: for something else.
    """
    for plugin in plugins():
        for name, place in getattr(plugin.universe, "placements", {}).items():
            side, _, anchor = str(place).partition(" ")
            if side not in ("after", "before") or not anchor:
                expected = '"after <pass>" or "before <pass>"'
                raise plugin.error(f"wrong place of {name}", expected=expected, got=f'"{place}"')
            if name not in plugin.universe.all_passes:
                raise plugin.error(f"gives a place to {name}, which is not one of its passes")
            yield name, side, anchor, plugin.error


def load_importers(frontend: str) -> None:
    """Import what other packages register for a frontend, "onnx" or "torch".

    Raises:
        StepwellError: if that fails, or a package registers something for another frontend.
    """
    for plugin in plugins():
        found = plugin.loaders("all_importers")
        if strangers := sorted(found.keys() - {"onnx", "torch"}):
            fact, expected = "registers conversions of no frontend", "onnx or torch"
            raise plugin.error(fact, expected=expected, got=strangers[0])
        if frontend in found:
            found[frontend]()


def layers() -> dict[str, Callable[[], Any]]:
    """The layers of graph networks that other packages register, by name."""
    return {n: load for plugin in plugins() for n, load in plugin.loaders("all_layers").items()}


def schedule_rules() -> list[tuple[str, Callable[..., Any], Callable[..., StepwellError]]]:
    """The rules of the default schedule that other packages register.

    Returns:
        The name of each, the rule, and what words an error about it.
    """
    return [
        (name, load(), plugin.error)
        for plugin in plugins()
        for name, load in plugin.loaders("all_schedule_rules").items()
    ]


def processors() -> Iterator[tuple[str, Any, Callable[..., StepwellError]]]:
    """The targets that other packages register.

    Returns:
        The name of each, the object, and what words an error about it.
    """
    for plugin in plugins():
        for name, load in plugin.loaders("all_processors").items():
            yield name, load(), plugin.error
