"""`SplitProgram`: a program on a graph as stages that run on one part, and what they exchange.

The module that `graph-split-at-halo` makes says it all: its public function calls the stages, and
exchanges rows in between. Here it is taken apart, into a module for each stage.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import SSAValue

from ..core.boundary.specs import ValueSpec
from ..core.errors import CompileError, InputError, explain
from ..core.ir.context import CompilerContext
from ..core.ir.module import Module
from ..core.ir.symbols import find_symbol
from ..core.ir.typed import returned
from ..core.pipelines.decisions import Decision
from ..core.pipelines.staircase import run_passes
from ..core.registry import make_context
from ..dialects.graph.attrs import ReduceKind
from ..dialects.graph.ops import CombineOp, ExchangeOp
from ..dialects.graph.sizes.shapes import SymbolicShapes
from ..passes.graph.halo.alignment import graph_of
from ..passes.graph.halo.emission import WHOLE_PART
from .edge_lists import take_graph
from .partition import Partition

_BEFORE = (
    "graph-open-composites",
    "graph-cse",
    "graph-fold-constant",
    "canonicalize",
    "graph-canonicalize-ops",
    "graph-simplify",
    "graph-raise-messages",
    "graph-compute-before-gather",
    "graph-order-contractions",
    "graph-decompose-sparse",
    "canonicalize",
    "graph-canonicalize-ops",
    "graph-simplify",
    "graph-cse",
    "graph-dce",
)


@dataclass(frozen=True)
class StageInput:
    """An argument of a stage, or of the program: which value it is, and of which nodes.

    Attributes:
        value: the name of the value.
        halo: whether it has the rows of the halo, after the own ones.
    """

    value: str
    halo: bool = False


@dataclass(frozen=True)
class PartStage:
    """A function of values of one part.

    Attributes:
        module: its IR.
        inputs: its arguments.
        results: the names of its results.
        received: the values that are exchanged before it, and not before an earlier one.
        whole: whether it takes all rows of a part at once.
    """

    module: Module
    inputs: tuple[StageInput, ...]
    results: tuple[str, ...]
    received: tuple[str, ...]
    whole: bool

    @property
    def along_edges(self) -> frozenset[str]:
        """The values whose rows entries of the graph refer to."""
        return frozenset(i.value for i in self.inputs if i.halo)

    def includes_rows(self, given: StageInput) -> bool:
        """Whether another argument begins with the rows of this one."""
        return self.whole and not given.halo and given.value in self.along_edges


@dataclass(frozen=True)
class PartSizes:
    """The names that a program has for the sizes of a part."""

    nodes: str
    columns: str
    edges: str


@dataclass(frozen=True)
class SplitProgram:
    """A program in stages.

    Attributes:
        inputs: the arguments of the program, by name.
        outputs: its results, with the value that each is.
        stages: its stages, in order.
        graph: the name of the graph.
        sizes: the names of its sizes.
        specs: shape and dtype of each value of a part.
        combined: the results over all nodes, and how parts combine them.
        module: the module of which it is made, with all stages.
        decisions: what was cut, and why.
        unweighted: whether each edge of the graph weighs 1.
    """

    inputs: tuple[ValueSpec, ...]
    outputs: tuple[tuple[ValueSpec, str], ...]
    stages: tuple[PartStage, ...]
    graph: str
    sizes: PartSizes
    specs: Mapping[str, ValueSpec]
    combined: Mapping[str, ReduceKind]
    module: Module
    decisions: tuple[Decision, ...]
    unweighted: bool = False

    def check_graph(self, subject: str, partition: Partition) -> None:
        """Raise `InputError` if a graph has weights that the program has no use for."""
        if self.unweighted and any(part.values is not None for part in partition):
            fact, expected = "the edges of the partition have weights", "none, or weighted=True"
            raise InputError(explain(subject, fact, expected=f"{expected} of gnn.EdgeListSpec"))

    def refuse_sparse(self, subject: str) -> None:
        """Raise `CompileError` if an argument beside the graph is sparse."""
        for spec in self.inputs:
            if spec.format is not None and spec.name != self.graph:
                fact = f'argument "{spec.name}" is a second sparse matrix'
                expected = "a program of sw.TensorSpec; a sparse matrix of rows fits it"
                raise CompileError(explain(subject, fact, expected=expected))

    def is_of_rows(self, value: str) -> bool:
        """Whether a value has a row for each node."""
        shape = self.specs[value].shape
        return bool(shape) and shape[0] == self.sizes.nodes

    def is_of_entries(self, value: str) -> bool:
        """Whether a value has a row for each stored entry."""
        shape = self.specs[value].shape
        return bool(shape) and shape[0] == self.sizes.edges

    def last_use(self, value: str) -> int:
        """The number of the last stage that reads a value; that of all where it is a result."""
        if any(value == name for _, name in self.outputs):
            return len(self.stages)
        uses = [n for n, stage in enumerate(self.stages) for i in stage.inputs if i.value == value]
        return max(uses, default=-1)


def split(module: Module, sent: int = 64) -> SplitProgram:
    """Cut a program where it needs rows of other parts.

    Args:
        module: a program with a graph among its arguments, such as one of ``gnn.GraphSpec()``, or
            with an edge list, as of ``gnn.EdgeListSpec()``, which becomes one.
        sent: the operations on numbers in the time in which a byte travels to another part.

    Raises:
        CompileError: if it has no graph, or combines nodes in another way than along its edges.
    """
    if not isinstance(module, Module):
        got = type(module).__name__
        fact = "not a module"
        raise CompileError(explain("distribute", fact, expected="stepwell.Module", got=got))
    copy = module.clone()
    weighted = take_graph(copy.main)
    context = make_context(copy.weights)
    graph = graph_of(copy.main, SymbolicShapes(copy.main))
    if isinstance(graph, str):
        raise CompileError(f"distribute: {graph}")
    run_passes(context, copy.op, ",".join((*_BEFORE, f"graph-split-at-halo{{sent={sent}}}")))
    copy.verify()
    return _read(copy, context, weighted is False)


def _read(module: Module, context: CompilerContext, unweighted: bool) -> SplitProgram:
    reader = _StageReader(module)
    main = module.main
    names = reader.names
    graph = next(spec for spec in module.inputs if spec.format and _is_graph(spec))
    outputs = tuple(zip(module.outputs, (names[v] for v in returned(main)), strict=True))
    specs = {spec.name: spec for spec in module.inputs} | reader.specs
    sizes = PartSizes(str(graph.shape[0]), str(graph.shape[1]), str(graph.nnz))
    # Parts know the sizes of the graph, and workers make room for results before a call.
    known = {sizes.nodes, sizes.columns, sizes.edges}
    for one in specs.values():
        for size in one.shape if one.format is None else ():
            if isinstance(size, str) and size not in known:
                fact = f'"{one.name}" has the symbolic size "{size}"'
                expected = f'numbers, or "{sizes.nodes}" and "{sizes.edges}" of the graph'
                raise CompileError(explain("distribute", fact, expected=expected))
    stages, decisions = tuple(reader.stages), (*module.decisions, *context.decisions)
    inputs = tuple(module.inputs)
    facts = graph.name, sizes, specs, reader.combined
    return SplitProgram(inputs, outputs, stages, *facts, module, decisions, unweighted)


def _is_graph(spec: ValueSpec) -> bool:
    return all(isinstance(size, str) for size in spec.shape)


class _StageReader:
    """Reads the stages out of the public function of a module."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.names: dict[SSAValue, str] = {}
        """The names of values by rows."""
        self.stages: list[PartStage] = []
        self.specs: dict[str, ValueSpec] = {}
        self.combined: dict[str, ReduceKind] = {}
        self._around: dict[SSAValue, str] = {}
        self._pending: list[str] = []
        for argument, spec in zip(module.main.args, module.inputs, strict=True):
            self.names[argument] = spec.name
        for op in module.main.body.block.ops:
            if isinstance(op, ExchangeOp):
                self._around[op.result] = self.names[op.x]
                self._pending.append(self.names[op.x])
            elif isinstance(op, CombineOp):
                self.names[op.result] = self.names[op.x]
                self.combined[self.names[op.x]] = op.kind.data
            elif isinstance(op, func.CallOp):
                self._call(op)

    def _call(self, call: func.CallOp) -> None:
        callee = find_symbol(call, call.callee)
        assert isinstance(callee, func.FuncOp)
        module = self._alone(callee)
        inputs = tuple(
            StageInput(self._around[v], True) if v in self._around else StageInput(self.names[v])
            for v in call.operands
        )
        number = len(self.stages)
        for place, (result, spec) in enumerate(zip(call.results, module.outputs, strict=True)):
            self.names[result] = f"{number}.{place}"
            self.specs[self.names[result]] = spec
        results = tuple(self.names[result] for result in call.results)
        received, self._pending = tuple(self._pending), []
        whole = WHOLE_PART in callee.attributes
        self.stages.append(PartStage(module, inputs, results, received, whole))

    def _alone(self, function: func.FuncOp) -> Module:
        """A stage as a module of its own."""
        copy = function.clone()
        copy.sym_name = StringAttr("main")
        copy.sym_visibility = StringAttr("public")
        return Module(ModuleOp([copy]), self.module.weights.copy())
