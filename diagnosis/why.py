"""The fate of a node of the model: at every stage, and by which passes."""

from __future__ import annotations

import difflib
import inspect
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

from xdsl.dialects import func, llvm
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from ..core.errors import InputError, explain
from ..core.ir.context import CompilerContext, PassHook
from ..core.ir.printing import Listing
from ..core.ir.provenance import names
from ..core.ir.symbols import symbol_of
from ..dialects.loop.ops import ForOp, KernelOp
from ..driver.compilation import Compilation
from ..runtime.fate import MOST, Fate, NodeChange, NodePlace, listed

_GRAPH_STAGES = ("graph", "optimized", "fused")
"""The stages whose operations are listed one by one."""

_LONGEST = 160
"""The number of characters of an operation that are printed."""

_FUNCTIONS = (func.FuncOp, llvm.FuncOp, KernelOp)


def fate(compilation: Compilation, node: str) -> Fate:
    """What becomes of a node at each stage.

    Raises:
        InputError: if the model has no such node; it names those with the nearest names.
    """
    _check(node, compilation.listing)
    watch = _Watch(node)
    observed = replace(compilation, observers=(*compilation.observers, watch))
    work, ctx = observed.begin()
    stages: dict[str, tuple[NodePlace, ...]] = {}
    for stage in observed.descend(work, ctx):
        stages[stage] = tuple(_places(work.op, node, stage in _GRAPH_STAGES))
    return Fate(
        node,
        stages,
        tuple(_debug_lines(work.op, node, compilation.listing)),
        tuple(watch.changes),
        tuple(d for d in ctx.decisions if node in d.nodes),
        watch.vanished if not stages["llvm"] else None,
    )


def _check(node: str, listing: Listing) -> None:
    if node in listing.lines:
        return
    near = difflib.get_close_matches(str(node), listing.lines, 3, 0.5)
    hint = f"nearest names: {', '.join(near)}" if near else None
    if not listing.lines:
        hint = "no operation of the module has the name of a node"
    raise InputError(explain("why", f'the model has no node "{node}"', hint=hint))


class _Watch(PassHook):
    """Records which passes change the operations of a node, and which one removes the last."""

    def __init__(self, node: str) -> None:
        self.node = node
        self.changes: list[NodeChange] = []
        self.vanished: str | None = None
        self._before: list[Operation] = []
        self._names: tuple[str, ...] = ()
        self._unused = False

    def before_pass(self, ctx: CompilerContext, op: ModuleOp) -> None:
        """Record the operations of the node."""
        self._before = list(_of(op, self.node))
        self._names = _kinds(self._before)
        self._unused = not any(
            use.operation not in self._before
            for inner in self._before
            for result in inner.results
            for use in result.uses
        )

    def after_pass(self, ctx: CompilerContext, op: ModuleOp) -> None:
        """Record the operations that remain."""
        after = _kinds(_of(op, self.node))
        if ctx.stage in _GRAPH_STAGES and after != self._names:
            self.changes.append(NodeChange(ctx.stage, ctx.pass_name, self._names, after))
        if self._names and not after:
            self.vanished = f"nothing is left of it after {ctx.pass_name} ({ctx.stage}): "
            self.vanished += self._reason(ctx)

    def _reason(self, ctx: CompilerContext) -> str:
        """Why the pass removed it: its own reason, or its purpose."""
        for decision in reversed(ctx.decisions):
            current = (decision.stage, decision.pass_name) == (ctx.stage, ctx.pass_name)
            if current and self.node in decision.nodes:
                return f"{decision.what}, because {decision.why}"
        if self._unused:
            return "nothing used its results"
        summary = (inspect.getdoc(type(ctx.step)) or "").partition("\n")[0]
        return summary[:1].lower() + summary[1:].rstrip(".")


def _of(op: Operation, node: str) -> Iterator[Operation]:
    """The operations of a node, functions aside."""
    for inner in op.walk():
        if not isinstance(inner, _FUNCTIONS) and node in names(inner):
            yield inner


def _kinds(ops: Iterable[Operation]) -> tuple[str, ...]:
    return tuple(sorted(op.name for op in ops))


def _places(module: ModuleOp, node: str, as_text: bool) -> Iterator[NodePlace]:
    """The operations of a node in each function of a module."""
    for function in module.ops:
        found = list(_of(function, node))
        if not found:
            continue
        count = sum(not isinstance(op, _FUNCTIONS) for op in function.walk())
        in_full = as_text and len(found) <= MOST
        texts = tuple(map(_text, found)) if in_full else (listed(_kinds(found)),)
        others = dict.fromkeys(one for op in found for one in names(op) if one != node)
        name = symbol_of(function) or function.name
        yield NodePlace(name, texts, len(found), count, tuple(others), _loops(found))


def _loops(ops: Iterable[Operation]) -> tuple[str, ...]:
    """The loops of a kernel among some operations, each with its kind."""
    loops = [op for op in ops if isinstance(op, ForOp)]
    return tuple(f"{loop.loop_name.data} {loop.kind.data.value}" for loop in loops)


def _text(op: Operation) -> str:
    """An operation in one line, without the end of a long literal."""
    text = " ".join(str(op).split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _debug_lines(module: ModuleOp, node: str, listing: Listing) -> Iterator[str]:
    """The functions of the debug information that represent a node."""
    from ..backends.llvm.debug import place, scope_name

    for function in module.ops:
        symbol = symbol_of(function) or function.name
        scopes = Counter((scope_name(names(op)), op.location) for op in _of(function, node))
        for (scope, location), count in scopes.items():
            file, line = place(location, listing)
            times = "once" if count == 1 else f"{count} times"
            yield f'"{scope}", line {line} of {file}, {times} in @{symbol}'
