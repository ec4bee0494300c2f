"""Dialects that no stage of the staircase has."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import ModuleOp

from ..core.errors import UnsupportedError, explain
from ..core.ir.provenance import origin
from ..core.ir.walks import operations_in
from ..core.pipelines import staircase as pipelines
from ..core.plugins import plugins
from ..core.registry import own_dialects, own_passes

UPSTREAM = ("func", "arith", "cf", "llvm", "math", "memref", "scf", "vector")
"""The dialects of upstream that stages have."""
INDICES = ("affine.apply", "affine.min")
"""Operations of one more, in kernels."""


def check_dialects(module: ModuleOp, passes: Mapping[str, str]) -> None:
    """Check that conversions know the dialects of a module.

    Dialects of plug-ins are known to their own operations and passes, and where a pipeline has
    passes of others, these may convert any dialect.

    Raises:
        UnsupportedError: naming the first operation of another dialect.
    """
    usual = own_passes().keys() | pipelines.passes_in(pipelines.own_pipeline())
    if pipelines.passes_in(passes) - usual:
        return
    known = {"builtin", *UPSTREAM, *own_dialects()}
    for op in operations_in(module):
        dialect = op.name.partition(".")[0]
        if dialect not in known and op.name not in INDICES and _is_of_xdsl(dialect):
            fact = f"no stage has the dialect {dialect}"
            expected = ", ".join((*own_dialects(), *UPSTREAM, *INDICES))
            raise UnsupportedError(explain(op.name, fact, expected=expected, origin=origin(op)))


def _is_of_xdsl(dialect: str) -> bool:
    """Whether a dialect is one that xDSL brings."""
    return any(p.package == "xdsl" and dialect in p.universe.all_dialects for p in plugins())
