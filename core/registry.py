"""Dialects and passes by name: the folders are the list.

`passes/graph/fuse_ops.py` is the pass `graph-fuse-ops`, class `GraphFuseOpsPass`;
`passes/loop/steps/split.py` is `loop-split`, class `LoopSplitPass`;
`conversions/convert_graph_to_loop.py` is `convert-graph-to-loop`, class
`ConvertGraphToLoopPass`. Modules are imported when their dialect or pass is first used.
Other packages register theirs through xDSL's entry point `xdsl.universe`.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from .plugins import plugins

if TYPE_CHECKING:
    from xdsl.ir import Dialect
    from xdsl.passes import ModulePass

    from .ir.context import CompilerContext
    from .ir.weights import WeightStore
    from .target import Target

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


@functools.cache
def _own_passes() -> dict[str, Callable[[], type[ModulePass]]]:
    # The names of passes, of their modules below the package and of their classes are those of
    # the files.
    found: dict[str, Callable[[], type[ModulePass]]] = {}
    for prefix, folders in (
        ("graph-", ("passes/graph",)),
        ("loop-", ("passes/loop", "passes/loop/steps")),
        ("rt-", ("passes/rt",)),
        ("", ("conversions",)),
    ):
        files = (path for folder in folders for path in (_ROOT / folder).glob("*.py"))
        for path in sorted(files, key=lambda path: path.stem):
            if path.stem == "__init__" or (not prefix and not path.stem.startswith("convert_")):
                continue
            name = prefix + path.stem.replace("_", "-")
            class_name = "".join(word.capitalize() for word in name.split("-")) + "Pass"
            place = ".".join(path.relative_to(_ROOT).with_suffix("").parts)
            found[name] = _load(place, class_name)  # type: ignore[assignment]
    return found


def own_passes() -> dict[str, Callable[[], type[ModulePass]]]:
    """The passes of this project, by command-line name."""
    return dict(_own_passes())


def dialects() -> dict[str, Callable[[], Dialect]]:
    """All available dialects, by name: xDSL's, other packages', ours."""
    result: dict[str, Callable[[], Dialect]] = {}
    for plugin in plugins():
        result |= plugin.dialects(_DIALECTS)
    corrected = {name: _load(*place) for name, place in _CORRECTED.items()}
    return result | corrected | own_dialects()  # type: ignore[return-value]


def passes() -> dict[str, Callable[[], type[ModulePass]]]:
    """All available passes, by name: xDSL's, other packages', ours."""
    result: dict[str, Callable[[], type[ModulePass]]] = {}
    for plugin in plugins():
        result |= plugin.passes
    return result | own_passes()


def make_context(
    weights: WeightStore | None = None, target: Target | None = None
) -> CompilerContext:
    """A context with every dialect registered; each is loaded when first used."""
    from .ir.context import CompilerContext, builtin_dialect
    from .ir.weights import WeightStore

    ctx = CompilerContext(weights=weights if weights is not None else WeightStore(), target=target)
    for name, load in (dialects() | {"builtin": builtin_dialect}).items():
        ctx.register_dialect(name, load)
    return ctx


def backend(name: str) -> Callable[..., object]:
    """The function `run(module, inputs)` of the backend called `name`."""
    module = importlib.import_module(f"{_PACKAGE}.backends.{name}.interpreter")
    return module.run


def interpreter() -> Callable[..., object]:
    """The function `run(module, inputs)` that interprets a module at any stage that is IR."""
    return importlib.import_module(f"{_PACKAGE}.runtime.interpreted").run
