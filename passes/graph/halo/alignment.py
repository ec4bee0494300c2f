"""Which values of a function belong to the nodes or the edges of its graph, and how they are read.

It follows from the recordings of the operators (`dialects/graph/plan`), so that no operator is
listed: one that computes a slice of its result from the same slice of its operands works on the
nodes of a part as it does on all nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum, auto

from xdsl.dialects import func
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr

from ....core.algebra.dims import Dim
from ....core.errors import StepwellError
from ....core.ir.refusal import refused
from ....dialects.graph.interfaces import GraphOp
from ....dialects.graph.kinds import FusionKind
from ....dialects.graph.nests.accesses import (
    Atom,
    AtomKind,
    Read,
    RecordedLoopKind,
    Recording,
    atoms_in,
)
from ....dialects.graph.nests.recording import Recorder
from ....dialects.graph.partitions import OverParts, PartitionInterface
from ....dialects.graph.sizes.shapes import SymbolicShapes
from ....dialects.sparse_tensor import is_sparse

PASS = "graph-split-at-halo"


class RowSpace(Enum):
    """What the first dimension of a value runs over."""

    WHOLE = auto()
    """Neither nodes nor edges: each part has the whole value."""
    ROWS = auto()
    """The nodes."""
    ENTRIES = auto()
    """The stored entries of the graph."""
    GRAPH = auto()
    """The value is the graph itself."""


class SliceAccess(Enum):
    """Which slices of a value an operator reads for one of its own."""

    WHOLE = auto()
    SAME = auto()
    """The one of the same node or entry, or of the node in whose row an entry is, or those of
    the entries of a row."""
    COLUMNS = auto()
    """Those of the nodes in whose columns entries are."""


def graph_of(function: func.FuncOp, shapes: SymbolicShapes) -> BlockArgument | str:
    """The square sparse argument of a function; the reason in words where there is not one."""
    found = [
        argument
        for argument in function.args
        if is_sparse(argument.type)
        and shapes.shape(argument)[1] in _same(shapes, shapes.shape(argument)[0])
    ]
    if len(found) != 1:
        fact = "no graph" if not found else "several graphs"
        return f"{fact}, expected one square sparse argument, as of gnn.GraphSpec()"
    (graph,) = found
    nodes, edges = shapes.shape(graph)[0], shapes.nnz(graph)
    for what, size in (("nodes", nodes), ("edges", edges)):
        if size is None or size.is_static:
            return f"the number of {what} is fixed, expected a symbolic size, got {size}"
    return graph


def _same(shapes: SymbolicShapes, dim: Dim) -> set[Dim]:
    """The sizes that have to agree with one."""
    found, before = {dim}, 0
    while len(found) > before:
        before = len(found)
        for left, right, _ in shapes.equalities:
            if {left, right} & found:
                found |= {left, right}
    return found


class Alignment:
    """The spaces of all values of a function, and the accesses to all operands.

    Args:
        function: the program.
        shapes: its sizes.
        graph: the argument that is the graph.

    Raises:
        PassFailedException: if an operator combines nodes in another way than along the edges.
    """

    def __init__(self, function: func.FuncOp, shapes: SymbolicShapes, graph: BlockArgument) -> None:
        self.function, self.shapes, self.graph = function, shapes, graph
        self._recorder = Recorder()
        self.spaces: dict[SSAValue, RowSpace] = {}
        self.accesses: dict[Operation, tuple[SliceAccess, ...]] = {}
        """For each operand of an operator how it is read."""
        self.combined: dict[SSAValue, OverParts] = {}
        """The results over all nodes that follow from those of the parts."""
        self.numbered: set[Operation] = set()
        """Operators that compare the row of an entry with its column."""
        self._nodes = _same(shapes, shapes.shape(graph)[0])
        self._edges = _same(shapes, shapes.nnz(graph) or Dim.of(0))
        for argument in function.args:
            self.spaces[argument] = self._space_of_argument(argument)
        for op in function.body.block.ops:
            self._visit(op)

    @property
    def nodes(self) -> set[str]:
        """The names of the number of nodes."""
        return {name for dim in self._nodes for name in dim.symbols}

    @property
    def edges(self) -> set[str]:
        """The names of the number of stored entries."""
        return {name for dim in self._edges for name in dim.symbols}

    def is_of_part(self, value: SSAValue) -> bool:
        """Whether parts have different slices of a value."""
        return self.spaces[value] != RowSpace.WHOLE

    def recordings(self, op: GraphOp) -> list[Recording]:
        """What each result of an operator takes.

        Raises:
            PassFailedException: if the operator is opaque.
        """
        try:
            return [self._recorder.recording(op, number) for number in range(len(op.results))]
        except StepwellError as error:
            raise _refuse(op, "it is not known which nodes it combines", str(error)) from error

    def _space_of_argument(self, argument: BlockArgument) -> RowSpace:
        if argument is self.graph:
            return RowSpace.GRAPH
        sizes = self.shapes.shape(argument)
        if not sizes or sizes[0].is_static:
            return RowSpace.WHOLE
        if sizes[0] in self._nodes:
            return RowSpace.ROWS
        return RowSpace.ENTRIES if sizes[0] in self._edges else RowSpace.WHOLE

    def _visit(self, op: Operation) -> None:
        if isinstance(op, func.ReturnOp):
            for value in op.operands:
                if self.spaces[value] == RowSpace.ENTRIES:
                    raise _refuse(op, "a result has a slice for each edge", "one for each node")
            return
        self.accesses[op] = (SliceAccess.WHOLE,) * len(op.operands)
        whole = not any(map(self.is_of_part, op.operands))
        self.spaces.update(dict.fromkeys(op.results, RowSpace.WHOLE))
        if whole:
            return
        if not isinstance(op, GraphOp):
            raise _refuse(op, "it is not known which nodes it combines", "an operator")
        found = op.over_parts if isinstance(op, PartitionInterface) else None
        if found is not None and self._combine(op, found):
            return
        self._follow(op)

    def _combine(self, op: GraphOp, found: OverParts) -> bool:
        """Note a result over all nodes; False if it is one over something else."""
        spaces = [self.spaces[value] for value in op.operands]
        if not set(spaces) <= {RowSpace.WHOLE, RowSpace.ROWS}:
            return False
        self.combined[op.results[0]] = found
        self.accesses[op] = tuple(
            SliceAccess.SAME if space == RowSpace.ROWS else SliceAccess.WHOLE for space in spaces
        )
        return True

    def _follow(self, op: GraphOp) -> None:
        accesses: list[set[SliceAccess]] = [set() for _ in op.operands]
        for number, recording in enumerate(self.recordings(op)):
            reader = _AccessReader(self, op, recording)
            for operand, access in reader.accesses():
                accesses[operand].add(access)
            self.spaces[op.results[number]] = reader.space()
            if reader.is_numbered():
                self.numbered.add(op)
        if any(len(found) > 1 for found in accesses):
            raise _refuse(op, "an operand is read both by rows and by columns", "two operands")
        self.accesses[op] = tuple(
            found.pop()
            if found
            else SliceAccess.WHOLE
            if self.spaces[v] == RowSpace.WHOLE
            else SliceAccess.SAME
            for found, v in zip(accesses, op.operands, strict=True)
        )
        on_part = op.on_part if isinstance(op, PartitionInterface) else None
        if op in self.numbered and on_part is None:
            raise _refuse(op, "it depends on the numbers of nodes, which parts renumber")


class _AccessReader:
    """What one result of an operator reads."""

    def __init__(self, known: Alignment, op: GraphOp, recording: Recording) -> None:
        self.known, self.op, self.recording = known, op, recording
        self.own = self._own()
        self._found: set[RowSpace] = set()

    def space(self) -> RowSpace:
        """The space of the result.

        Raises:
            PassFailedException: if it is not that of nodes or of entries.
        """
        if len(self._found) != 1:
            raise _refuse(self.op, "it combines slices of all nodes", "slices along edges")
        return next(iter(self._found))

    def is_numbered(self) -> bool:
        """Whether it compares rows with columns.

        Raises:
            PassFailedException: if it depends on the number of nodes.
        """
        atoms, used = self.recording.atoms, self.recording.numbers
        sizes = {n for n in used if atoms[n].kind == AtomKind.SIZE}
        if sizes and any(d == 0 and self._is_of_part(n) for n, d in self.recording.sizes):
            raise _refuse(self.op, "it depends on the number of nodes")
        ends = (AtomKind.COLUMN, AtomKind.ROW_OF_ENTRY, AtomKind.COLUMN_OF_ENTRY)
        return any(atoms[n].kind in ends for n in used) or bool(used & atoms_in(self.own))

    def accesses(self) -> Iterator[tuple[int, SliceAccess]]:
        """Each operand that is read, with how.

        Raises:
            PassFailedException: if it is read in another way than along edges.
        """
        for loop in self.recording.loops:
            if loop.kind == RecordedLoopKind.ENTRIES and self._is_of_part(loop.matrix):
                of_entry = self._is_row_of_entry(loop.row[0])
                self._require(of_entry or loop.row[0] in self.own)
                self._found.add(RowSpace.ENTRIES if of_entry else RowSpace.ROWS)
        for atom in self.recording.atoms:
            if atom.matrix is not None and self._space(atom.matrix) == RowSpace.GRAPH:
                self._require(atom.position in self.own)
                self._found.add(RowSpace.ENTRIES)
        for read in self.recording.reads:
            yield read.operand, self._access(read)

    def _own(self) -> Sequence[AffineExpr]:
        """The first index of the slice that is computed."""
        if self.op.fusion != FusionKind.NEST:
            return [AffineExpr.dimension(0)] if self.recording.rank else []
        found = {write.index[0] for write in self.recording.writes if write.index}
        parallel = {
            AffineExpr.dimension(loop.atoms[0])
            for loop in self.recording.loops
            if loop.kind == RecordedLoopKind.PARALLEL and not loop.around
        }
        return sorted(found, key=str) if found <= parallel else []

    def _access(self, read: Read) -> SliceAccess:
        space = self._space(read.operand)
        if space == RowSpace.WHOLE:
            self._require(not atoms_in(self.own) & atoms_in(read.index))
            return SliceAccess.WHOLE
        place = read.index[0] if read.index else None
        if place in self.own:
            self._found.add(RowSpace.ROWS if space == RowSpace.ROWS else RowSpace.ENTRIES)
            return SliceAccess.SAME
        self._require(isinstance(place, AffineDimExpr))
        assert isinstance(place, AffineDimExpr)
        atom = self.recording.atoms[place.position]
        if space == RowSpace.ROWS:
            return self._access_to_rows(read, atom)
        self._require(atom.kind == AtomKind.POSITION and self._space_of(atom) == RowSpace.GRAPH)
        return SliceAccess.SAME

    def _access_to_rows(self, read: Read, atom: Atom) -> SliceAccess:
        """How a value with a slice for each node is read at a place that is not the own one."""
        if is_sparse(self.op.operands[read.operand].type):
            # The stored values of a row of sparse features.
            same = atom.loop is not None and self.recording.loops[atom.loop].matrix == read.operand
            self._require(atom.kind == AtomKind.POSITION and same)
            return SliceAccess.SAME
        self._require(self._space_of(atom) == RowSpace.GRAPH)
        if atom.kind == AtomKind.ROW_OF_ENTRY:
            return SliceAccess.SAME
        self._require(atom.kind in (AtomKind.COLUMN, AtomKind.COLUMN_OF_ENTRY))
        return SliceAccess.COLUMNS

    def _is_row_of_entry(self, place: AffineExpr) -> bool:
        """Whether an index is the row of the entry that the result has a slice for."""
        if not isinstance(place, AffineDimExpr):
            return False
        atom = self.recording.atoms[place.position]
        return atom.kind == AtomKind.ROW_OF_ENTRY and atom.position in self.own

    def _space(self, operand: int) -> RowSpace:
        return self.known.spaces[self.op.operands[operand]]

    def _space_of(self, atom: Atom) -> RowSpace | None:
        """The space of the matrix that an entry belongs to."""
        number = atom.matrix if atom.loop is None else self.recording.loops[atom.loop].matrix
        return None if number is None else self._space(number)

    def _is_of_part(self, number: int | None) -> bool:
        """Whether an operand, or a result after them, has slices of a part."""
        if number is None:
            return False
        return number >= len(self.op.operands) or self._space(number) != RowSpace.WHOLE

    def _require(self, holds: bool) -> None:
        if not holds:
            raise _refuse(self.op, "it combines slices of all nodes", "slices along edges")


def _refuse(op: Operation, fact: str, expected: object = None, got: object = None) -> Exception:
    subject = PASS if isinstance(op, func.FuncOp | func.ReturnOp) else f"{PASS}: {op.name}"
    return refused(op, fact, subject=subject, expected=expected, got=got)
