"""Dialects and passes by name: the folders are the list.

`passes/graph/fuse_ops.py` is the pass `graph-fuse-ops`, class `GraphFuseOpsPass`;
`conversions/convert_graph_to_loop.py` is `convert-graph-to-loop`, class
`ConvertGraphToLoopPass`. Modules are imported when their dialect or pass is first used.
Other packages register theirs through xDSL's entry point `xdsl.universe`.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from . import universe
from .context import CompilerContext
from .deprecation import warn_deprecated
from .errors import StepwellError, explain, first_line
from .resources import builtin_dialect
from .target import Target
from .weights import WeightStore

if TYPE_CHECKING:
    from xdsl.ir import Dialect
    from xdsl.passes import ModulePass
    from xdsl.universe import Universe

_Loaded = TypeVar("_Loaded")
_PACKAGE = __name__.rpartition(".core.")[0]
_ROOT = Path(__file__).parent.parent

_DIALECTS = {
    "graph": ("dialects.graph.dialect", "Graph"),
    "loop": ("dialects.loop.dialect", "Loop"),
    "rt": ("dialects.rt.dialect", "Rt"),
    "sparse_tensor": ("dialects.sparse_tensor", "SparseTensor"),
    "x86vector": ("dialects.x86vector", "X86Vector"),
}

_CORRECTED = {
    "arith": ("dialects.upstream.dialect", "Arith"),
    "llvm": ("dialects.upstream.dialect", "Llvm"),
    "memref": ("dialects.upstream.dialect", "MemRef"),
    "scf": ("dialects.upstream.dialect", "Scf"),
    "vector": ("dialects.upstream.dialect", "Vector"),
}
"""xDSL's dialects, extended by operations that they lack or restrict to scalars."""

CORRECTED_PASSES = ("convert-scf-to-cf",)
"""Passes of this project that replace those of xDSL with the same names."""


def _load(module: str, name: str) -> Callable[[], object]:
    return lambda: getattr(importlib.import_module(f"{_PACKAGE}.{module}"), name)


def own_dialects() -> dict[str, Callable[[], Dialect]]:
    """The dialects of this project, by name."""
    return {name: _load(*place) for name, place in _DIALECTS.items()}  # type: ignore[misc]


def _pass_files() -> dict[str, tuple[str, str]]:
    """Pass name -> (module below the package, class name), from the file names."""
    places: dict[str, tuple[str, str]] = {}
    for folder, prefix in (
        ("passes/graph", "graph-"),
        ("passes/loop", "loop-"),
        ("passes/rt", "rt-"),
        ("conversions", ""),
    ):
        for path in sorted((_ROOT / folder).glob("*.py")):
            if path.stem == "__init__" or (not prefix and not path.stem.startswith("convert_")):
                continue
            name = prefix + path.stem.replace("_", "-")
            class_name = "".join(word.capitalize() for word in name.split("-")) + "Pass"
            places[name] = (f"{folder.replace('/', '.')}.{path.stem}", class_name)
    return places


def own_passes() -> dict[str, Callable[[], type[ModulePass]]]:
    """The passes of this project, by command-line name."""
    return {name: _load(*place) for name, place in _pass_files().items()}  # type: ignore[misc]


@dataclass(frozen=True)
class _Plugin:
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

    @property
    def dialects(self) -> dict[str, Callable[[], Dialect]]:
        clash = sorted(self.universe.all_dialects.keys() & _DIALECTS.keys())
        if clash:
            fact = f'registers the dialect "{clash[0]}", which is Stepwell\'s own'
            raise StepwellError(explain(f'package "{self.package}"', fact))
        return {
            name: functools.partial(self._dialect, name, load)
            for name, load in self.universe.all_dialects.items()
        }

    @property
    def passes(self) -> dict[str, Callable[[], type[ModulePass]]]:
        return {name: self._named(load) for name, load in self.universe.all_passes.items()}

    @property
    def legalizations(self) -> dict[str, Callable[[], Any]]:
        entries = getattr(self.universe, "all_legalizations", {})
        return {name: self._named(load) for name, load in entries.items()}

    def _dialect(self, name: str, load: Callable[[], Dialect]) -> Dialect:
        dialect = _load_of(self.package, load)
        if self.interface is None and _is_written_against_us(dialect):
            self._warn_of_no_interface(f'its dialect "{name}"')
        return dialect

    def _warn_of_no_interface(self, subject: str) -> None:
        fact = f"{subject} uses Stepwell and states no version of the plug-in interface"
        hint = f"register stepwell.Universe(interface={universe.INTERFACE}, ...)"
        warn_deprecated(f'package "{self.package}"', fact, hint=hint)

    def _named(self, load: Callable[[], _Loaded]) -> Callable[[], _Loaded]:
        return lambda: _load_of(self.package, load)


def _is_written_against_us(dialect: Dialect) -> bool:
    """Whether a dialect of another package derives operations from classes of this one."""
    classes = (base for op in dialect.operations for base in op.__mro__)
    return any(base.__module__.startswith(f"{_PACKAGE}.") for base in classes)


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


@functools.cache
def _others() -> tuple[_Plugin, ...]:
    """The universes that other installed packages register."""
    from importlib.metadata import entry_points

    from xdsl.universe import Universe

    plugins: list[_Plugin] = []
    for point in sorted(entry_points(group="xdsl.universe"), key=lambda point: point.name):
        if point.value.partition(":")[0].partition(".")[0] == _PACKAGE:
            continue
        package = point.dist.name if point.dist is not None else point.name
        found = _load_of(package, point.load)
        if not isinstance(found, Universe):
            fact = f'entry point "{point.name}" is not a universe'
            expected, got = "xdsl.universe.Universe", type(found).__name__
            subject = f'package "{package}"'
            raise StepwellError(explain(subject, fact, expected=expected, got=got))
        plugin = _Plugin(package, found)
        plugin.check_interface()
        plugins.append(plugin)
    return tuple(plugins)


def has_plugins() -> bool:
    """Whether packages other than xDSL register anything."""
    return any(plugin.package != "xdsl" for plugin in _others())


def dialects() -> dict[str, Callable[[], Dialect]]:
    """All available dialects, by name: xDSL's, other packages', ours."""
    result: dict[str, Callable[[], Dialect]] = {}
    for plugin in _others():
        result |= plugin.dialects
    corrected = {name: _load(*place) for name, place in _CORRECTED.items()}
    return result | corrected | own_dialects()  # type: ignore[return-value]


def passes() -> dict[str, Callable[[], type[ModulePass]]]:
    """All available passes, by name: xDSL's, other packages', ours."""
    result: dict[str, Callable[[], type[ModulePass]]] = {}
    for plugin in _others():
        result |= plugin.passes
    return result | own_passes()


def legalizations() -> list[dict[str, Callable[[], Any]]]:
    """The tables of `graph-legalize` that other packages register, by operator."""
    return [plugin.legalizations for plugin in _others()]


def make_context(
    weights: WeightStore | None = None, target: Target | None = None
) -> CompilerContext:
    """A context with every dialect registered; each is loaded when first used."""
    ctx = CompilerContext(weights=weights if weights is not None else WeightStore(), target=target)
    for name, load in (dialects() | {"builtin": builtin_dialect}).items():
        ctx.register_dialect(name, load)
    return ctx


def backend(name: str) -> Callable[..., object]:
    """The function `run(module, inputs)` of the backend called `name`."""
    module = importlib.import_module(f"{_PACKAGE}.backends.{name}.interpreter")
    return module.run
