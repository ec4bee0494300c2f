"""The document of a compilation: it is lowered once more, and looked at on the way."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from xdsl.dialects import func
from xdsl.ir import Operation

from ..core.ir.module import Module
from ..core.pipelines.explanation import record
from ..core.pipelines.stages import IR_STAGES, TEXT_STAGES
from ..core.progress import report as report_step
from ..dialects.graph.interfaces import GraphOp
from ..dialects.graph.kinds import FusionKind
from ..dialects.loop.ops import KernelOp
from ..dialects.loop.trace import trace_of
from ..driver.compilation import CODE_GENERATION, Compilation
from ..runtime.profile import CallFacts
from .document import (
    ArenaTimeline,
    Mark,
    ModelGraph,
    ModelOperator,
    ReportDocument,
    ReportedKernel,
    ReportedStage,
    StageFunction,
    Trial,
)
from .edge_lists import EdgeList, edge_lists_of
from .machine_text import machine_texts
from .marking import WHOLE, Marks, is_name, number_nodes, number_operations, printed, symbol
from .memory import memory_of
from .model_graph import model_graph
from .pass_changes import PassChanges
from .pseudo_code import pseudo_code
from .sparsity import patterns_of
from .trials import trials_of

PSEUDO = "pseudo-code"
"""The name under which the page shows kernels as pseudo-code."""

_OF_OPERATORS = IR_STAGES[: IR_STAGES.index("kernels")]
_WITH_GRAPH = IR_STAGES[: IR_STAGES.index("buffers")]

_WITH_EDGES = "optimized"
"""The stage at which edges are sorted, where they are at all, and operators not yet grouped."""

_NUMBERED = "scheduled"
"""The stage whose operations later stages are traced back to."""


def collect(compilation: Compilation, calls: CallFacts | None = None) -> ReportDocument:
    """Lower a module once more, and collect what a report shows.

    Raises:
        CompileError: if a pass refuses the module.
    """
    return _Collector(compilation, calls or CallFacts()).report()


class _Collector:
    """Looks at a compilation, from stage to stage."""

    def __init__(self, compilation: Compilation, calls: CallFacts) -> None:
        self.changes = PassChanges()
        observers = (*compilation.observers, self.changes)
        self.compilation = replace(compilation, observers=observers, verify="kernels")
        self.calls = calls
        self.marks = Marks()
        self.stages: list[ReportedStage] = []
        self.pseudo: list[StageFunction] = []
        self.kernels: dict[str, ReportedKernel] = {}
        self.memory: ArenaTimeline | None = None
        self.trials: tuple[Trial, ...] = ()
        self.edge_lists: tuple[EdgeList, ...] = ()
        self.owners: dict[int, int] = {}
        """The kernel of each numbered operation."""
        self.groups: dict[str, tuple[int, ...]] = {}
        """The nodes of each function of stage `fused`."""
        self.computed: dict[str, list[tuple[str, bool, tuple[int, ...]]]] = {}
        """The operators in each of them: their kind, whether they only move elements, and their
        nodes."""
        self.called: list[tuple[str, tuple[int, ...]]] = []
        """The calls of these functions, in order, with the nodes that each computes."""

    def report(self) -> ReportDocument:
        """The document."""
        module, target = self.compilation.module, self.compilation.target
        work, ctx = self.compilation.begin()
        nodes = number_nodes(work.op, self.compilation.start in _OF_OPERATORS)
        # Past the level of operators the graph is empty.
        if self.compilation.start not in _WITH_GRAPH:
            graph = ModelGraph((), ())
        else:
            graph = model_graph(work.main, self.marks, nodes, work.weights)
        for stage in self.compilation.descend(work, ctx):
            self._look(stage, work)
        done = sum(map(len, ctx.applied.values()))
        report_step(CODE_GENERATION, done, done + 1)
        texts = machine_texts(work.op, self.compilation.target, self.marks)
        for name, found in zip(TEXT_STAGES, texts, strict=True):
            functions = (
                StageFunction(f.name, (), "\n".join(f.lines), tuple(f.marks)) for f in found
            )
            self.stages.append(ReportedStage(name, tuple(functions)))
        profile = self.calls.profile
        return ReportDocument(
            title=module.program.sym_name.data,
            version=importlib.metadata.version("stepwell"),
            target={"name": target.name, "cpu": target.cpu, "vector_bits": target.vector_bits},
            inputs=tuple(map(str, module.inputs)),
            outputs=tuple(map(str, module.outputs)),
            nodes=nodes,
            kernels=tuple(self.kernels.values()),
            graph=self._with_kernels(graph),
            stages=tuple(self._all_stages()),
            marks=self.marks.all,
            decisions=tuple(_plain(record(decision)) for decision in ctx.decisions),
            passes=tuple(self.changes.runs),
            profile=None if profile is None else profile.to_dict(),
            memory=self.memory,
            patterns=patterns_of(module, self.calls.inputs, self.edge_lists, self.calls.sizes),
            trials=self.trials,
        )

    def _look(self, stage: str, work: Module) -> None:
        """Look at a stage; at `scheduled`, number its operations first."""
        if stage == _WITH_EDGES and self.calls.inputs:
            self.edge_lists = edge_lists_of(work.main)
        if stage == "fused":
            self.groups = {symbol(op): self._nodes_of(op) for op in work.op.ops}
            self.computed = {symbol(op): list(self._operators_in(op)) for op in work.op.ops}
            calls = [op for op in work.main.walk() if isinstance(op, func.CallOp)]
            self.called = [(op.callee.string_value(), self.marks.of(op).nodes) for op in calls]
        kernels = [op for op in work.op.ops if isinstance(op, KernelOp)]
        if stage == "kernels":
            self.trials = trials_of(self.compilation)
        if stage == _NUMBERED:
            number_operations(kernels)
        if not self.kernels or stage == _NUMBERED:
            self._keep_kernels(kernels)
        if stage == "buffers":
            self.memory = memory_of(work.main, self.marks, self.calls.sizes)
        self.stages.append(ReportedStage(stage, tuple(map(self._function, work.op.ops))))

    def _keep_kernels(self, kernels: Iterable[KernelOp]) -> None:
        """Keep the kernels of a stage, and their pseudo-code."""
        self.kernels, self.pseudo = {}, []
        for number, op in enumerate(kernels):
            name = symbol(op)
            nodes = self.groups.get(name) or self._nodes_of(op)
            self.kernels[name] = ReportedKernel(name, nodes, trace_of(op))
            origins = [origin for inner in op.walk() for origin in self.marks.of(inner).origins]
            self.owners.update(dict.fromkeys(origins, number))
            lines = pseudo_code(op)
            found = [
                Mark(nodes, WHOLE) if op in ops else self.marks.of_all(ops) for _, ops in lines
            ]
            text = "\n".join(line for line, _ in lines)
            marks = tuple(map(self.marks.number, found))
            self.pseudo.append(StageFunction(name, (number,), text, marks))

    def _all_stages(self) -> Iterator[ReportedStage]:
        if self.pseudo:
            yield ReportedStage(PSEUDO, tuple(self.pseudo))
        for stage in self.stages:
            functions = [replace(f, kernels=self._kernels_of(f)) for f in stage.functions]
            yield ReportedStage(stage.name, tuple(functions))

    def _function(self, op: Operation) -> StageFunction:
        found = self.changes.printed.get(op) or printed(op)
        return StageFunction(symbol(op), (), found.text, found.marks(op, self.marks))

    def _kernels_of(self, function: StageFunction) -> tuple[int, ...]:
        """The kernels that a function belongs to: that of its name, or those of its lines."""
        if function.name == self.compilation.module.program.sym_name.data:
            return ()
        if function.name in self.kernels:
            return (list(self.kernels).index(function.name),)
        every = self.marks.all
        origins = (o for mark in dict.fromkeys(function.marks) for o in every[mark].origins)
        return tuple(dict.fromkeys(self.owners[o] for o in origins if o in self.owners))

    def _nodes_of(self, op: Operation) -> tuple[int, ...]:
        """The nodes of the operations in a function."""
        return tuple(dict.fromkeys(n for inner in op.walk() for n in self.marks.of(inner).nodes))

    def _operators_in(self, op: Operation) -> Iterator[tuple[str, bool, tuple[int, ...]]]:
        """The operators in a function of stage `fused`."""
        for inner in op.walk():
            if isinstance(inner, GraphOp):
                moves = inner.fusion in (FusionKind.INJECTIVE, FusionKind.BROADCAST)
                yield inner.name, moves, self.marks.of(inner).nodes

    def _with_kernels(self, graph: ModelGraph) -> ModelGraph:
        """The graph with the kernels that compute each operator, the main one first."""
        by_node: dict[int, list[int]] = {}
        for number, kernel in enumerate(self.kernels.values()):
            for node in kernel.nodes:
                by_node.setdefault(node, []).append(number)
        names = list(self.kernels)
        operators: list[ModelOperator] = []
        for one in graph.operators:
            found = dict.fromkeys(k for n in one.nodes for k in by_node.get(n, ()))
            ranked = sorted(found, key=lambda k: -self._share(names[k], one))
            call = self._call(names[ranked[0]], one) if ranked else -1
            operators.append(replace(one, kernels=tuple(ranked), call=call))
        return replace(graph, operators=tuple(operators))

    def _call(self, kernel: str, operator: ModelOperator) -> int:
        """The number of the first call of a kernel that computes an operator, else -1."""
        nodes = set(operator.nodes)
        calls = enumerate(self.called)
        return next((n for n, (name, own) in calls if name == kernel and nodes & {*own}), -1)

    def _share(self, kernel: str, operator: ModelOperator) -> int:
        """How much of an operator a kernel computes: 2 if it has the operator itself, 1 if it
        computes a part of it, 0 if it only moves elements for it."""
        nodes = set(operator.nodes)
        parts = [part for part in self.computed.get(kernel, ()) if nodes.intersection(part[2])]
        if any(kind == operator.kind for kind, _, _ in parts):
            return 2
        return int(any(not moves for _, moves, _ in parts))


def _plain(decision: dict[str, Any]) -> dict[str, Any]:
    """A decision without positions in files, which are numbers here."""
    nodes = [name for name in decision["nodes"] if is_name(name)]
    return {**decision, "nodes": nodes, "places": []}
