"""All operators of the `graph` dialect, under the one name by which others import them.

from stepwell.dialects.graph import ops as graph

y = graph.ReluOp(graph.DenseOp(x, w, bias))

The files `ops_*.py` are the list; type checkers read `ops.pyi`, which `make public` writes.
"""

from __future__ import annotations

import importlib
from pathlib import Path

from .ops_constant import splat_of as splat_of
from .ops_control import yielded as yielded

MODULES = [
    importlib.import_module(f".{path.stem}", __package__)
    for path in sorted(Path(__file__).parent.glob("ops_*.py"))
]
"""The files of operators."""

globals().update(
    (name, value)
    for module in MODULES
    for name, value in vars(module).items()
    if name.endswith("Op") and not name.startswith("_") and value.__module__ == module.__name__
)
