"""How operators use their operands: queries of fusion, answered from recordings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr

from ....core.algebra.affine import polynomial
from ....core.algebra.injective import is_injective
from ...sparse_tensor import is_sparse
from ..interfaces import FusionKind, GraphOp, names_a_symbol, tensor_type
from ..nests.accesses import AtomKind, Read, RecordedLoopKind, Recording, atoms_in
from ..nests.recording import Recorder, is_reshape
from ..ops.sources.constant import ConstantOp
from ..traits import RecomputeCost

CHEAP = 6
"""The largest cost, in simple operations, of recomputing a value instead of storing it."""


def has_one_value(op: GraphOp) -> bool:
    """Whether an operator has one result, and that a value at each index."""
    return len(op.results) == 1 and op.fusion != FusionKind.NEST and op.refusal is None


class Uses:
    """How operators use their operands.

    Args:
        recorder: knows what operators read.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def is_cheap(self, op: GraphOp) -> bool:
        """Whether computing an element of an operator again costs no more than loading it."""
        if op.fusion == FusionKind.NEST:
            return False
        if (stated := op.get_trait(RecomputeCost)) is not None:
            return stated.operations <= CHEAP
        return all(not one.reduces and one.cost <= CHEAP for one in self._recordings(op))

    def slides(self, op: GraphOp) -> bool:
        """Whether an operator reads windows: at its own index plus that of a loop."""
        return any(
            len(atoms := atoms_in([expr])) > 1
            and any(recording.atoms[number].kind == AtomKind.LOOP for number in atoms)
            for recording in self._recordings(op)
            for read in recording.reads
            for expr in read.index
        )

    def gathers(self, op: GraphOp) -> bool:
        """Whether neighbours along the last dimension of a result are far apart in the operand."""
        if tensor_type(op.results[0]).get_shape()[-1:] in ((), (1,)):
            return False
        if not self.moves(op) or is_reshape(op):
            return False
        (recording,) = self._recordings(op)
        assert recording.moved is not None, "it moves elements"
        return recording.rank - 1 not in atoms_in(recording.reads[recording.moved].index[-1:])

    def at_own_index(self, op: Operation, value: SSAValue) -> bool:
        """Whether an elementwise operator reads an operand at its own index: not broadcast."""
        if not isinstance(op, GraphOp) or op.fusion != FusionKind.ELEMENTWISE:
            return False
        given, wanted = (tensor_type(v).get_shape() for v in (value, op.results[0]))
        return len(given) == len(wanted) and all(
            _is_own(expr, place) or (expr == AffineExpr.constant(0) and wanted[place] == 1)
            for _, read in self._reads(op, value)
            for place, expr in enumerate(read.index)
        )

    def is_pointwise(self, op: Operation) -> bool:
        """Whether an operator computes elements one by one, in tensors of any shape.

        Operands are broadcast as in NumPy. What a symbol stands for has shapes of its own.
        """
        if not isinstance(op, GraphOp) or op.fusion != FusionKind.ELEMENTWISE:
            return False
        if len(op.results) != 1 or names_a_symbol(op):
            return False
        (recording,) = self._recordings(op)
        zero = AffineExpr.constant(0)
        return all(
            _is_own(expr, place) or expr == zero
            for read in recording.reads
            for place, expr in enumerate(read.index, recording.rank - len(read.index))
        )

    def moves(self, op: GraphOp) -> bool:
        """Whether elements of a result are those of the first operand, each at most once."""
        if not op.operands or not has_one_value(op):
            return False
        (recording,) = self._recordings(op)
        if recording.moved is None or recording.reads[recording.moved].operand != 0:
            return False
        return is_reshape(op) or not self.repeats(op, op.operands[0])

    def place_of_axis(self, op: GraphOp, axis: int) -> int | None:
        """The dimension of a result whose index is that of an axis of the first operand.

        None if there is none, or if its size is not known to be that of the axis.
        """
        places = {read.index[axis] for _, read in self._reads(op, op.operands[0])}
        place = places.pop() if len(places) == 1 else None
        shape = tensor_type(op.results[0]).get_shape()
        if not isinstance(place, AffineDimExpr) or place.position >= len(shape):
            return None
        size = tensor_type(op.operands[0]).get_shape()[axis]
        return place.position if shape[place.position] == size != DYNAMIC_INDEX else None

    def repeats(self, op: Operation, value: SSAValue) -> bool:
        """Whether an operator may read an element of an operand more than once."""
        if not isinstance(op, GraphOp):
            return False
        reads = list(self._reads(op, value))
        # A read that names each element of the operand at most once.
        return len(reads) != 1 or not all(
            is_injective(read.index, _sizes(op, recording, read, needed=False))
            for recording, read in reads
        )

    def reads_row(self, op: GraphOp, value: SSAValue) -> bool:
        """Whether a reduction reads an operand only along the row of its own element."""
        return all(
            _are_own(read.index[:-1], 0) and _is_loop(recording, read.index[-1])
            for recording, read in self._reads(op, value)
        )

    def passes_index(self, op: GraphOp) -> bool:
        """Whether an operator has no loops and reads its operands by all of its own index.

        Then what is computed for it, and in which loops, follows from where it is needed.
        """
        if len(op.results) != 1:
            return False
        (recording,) = self._recordings(op)
        if recording.loops or len(recording.atoms) > recording.rank:
            return False
        used = atoms_in(expr for read in recording.reads for expr in read.index)
        sizes = tensor_type(op.results[0]).get_shape()
        return all(size == 1 or dim in used for dim, size in enumerate(sizes))

    def only_adds_axes(self, op: GraphOp) -> bool:
        """Whether an operator is a reshape that adds or removes axes of size 1 only."""
        if not is_reshape(op):
            return False
        given, wanted = (
            [n for n in tensor_type(v).get_shape() if n != 1]
            for v in (op.operands[0], op.results[0])
        )
        return given == wanted and given.count(DYNAMIC_INDEX) <= 1

    def is_tileable(self, op: GraphOp) -> bool:
        """Whether an operator is a sum of products that tiles of rows and columns reuse.

        That is a sum in one loop of factors that depend on the row or the column only, which
        are the last two indices. Of two neighbouring columns the latter is contiguous, or a
        constant, whose layout is free.
        """
        recordings = self._recordings(op)
        if len(recordings) != 1 or len(recordings[0].loops) != 1 or recordings[0].rank < 2:
            return False
        (recording,) = recordings
        row, column = (AffineExpr.dimension(recording.rank - n) for n in (2, 1))
        found = set[AffineExpr]()
        for read in (read for read in recording.reads if read.around):
            used = {e for expr in read.index for e in expr.dfs()} & {row, column}
            if len(used) != 1:
                return False
            found |= used
            layout_is_free = isinstance(op.operands[read.operand].owner, ConstantOp)
            contiguous = read.index[-1] == column
            if column in used and not layout_is_free and not contiguous:
                return False
        return found == {row, column} and recording.loops[0].kind == RecordedLoopKind.REDUCTION

    def walked(self, op: GraphOp) -> set[SSAValue]:
        """The matrices of which an operator visits the entries of the row of its element."""
        return {
            op.operands[loop.matrix]
            for recording in self._recordings(op)
            for loop in recording.loops
            if recording.rank and loop.matrix is not None and _is_own(loop.row[0], 0)
        }

    def combines_rows(self, op: GraphOp) -> bool:
        """Whether an element combines the entries of one row of a matrix, the first operand.

        Nothing else depends on which row it is: neither where it stands, nor what is read of other
        operands, nor the number of rows.
        """
        if not op.operands or not has_one_value(op):
            return False
        (recording,) = self._recordings(op)
        matrix = op.operands[0]
        if self.walked(op) != {matrix} or self.entries(op) or op.operands.count(matrix) > 1:
            return False
        own = {0}.union(*(loop.atoms[:1] for loop in recording.loops if loop.matrix is not None))
        others = [read for read in recording.reads if op.operands[read.operand] is not matrix]
        exprs = [expr for read in others for expr in read.index]
        exprs += [loop.extent for loop in recording.loops if loop.extent is not None]
        used = atoms_in(exprs) | recording.numbers
        rows = {(0, 0), (len(op.operands), 0)}
        loops = (loop.row for loop in recording.loops if loop.matrix is not None)
        return (
            not own & used
            and not rows & recording.sizes
            and all(_is_own(row[0], 0) for row in loops)
            and all(atom.position is None for atom in recording.atoms)
        )

    def reads_values(self, op: GraphOp) -> bool:
        """Whether an operator reads the stored values of the rows it visits, as products do."""
        walked = self.walked(op)
        return any(
            op.operands[read.operand] in walked
            for recording in self._recordings(op)
            for read in recording.reads
        )

    def entries(self, op: Operation) -> dict[SSAValue, SSAValue]:
        """The operands that are read by the positions of a matrix's entries, with that matrix."""
        if not isinstance(op, GraphOp):
            return {}
        found: dict[SSAValue, SSAValue] = {}
        for value in dict.fromkeys(op.operands):
            matrices = {_matrix_of(*pair) for pair in self._reads(op, value)}
            matrix = matrices.pop() if len(matrices) == 1 else None
            if matrix is not None and op.operands[matrix] is not value:
                found[value] = op.operands[matrix]
        return found

    def combines_entries(self, op: Operation, value: SSAValue) -> bool:
        """Whether an operator combines what the entries of its row have, reading each once."""
        if not isinstance(op, GraphOp) or not self.walked(op):
            return False
        return value in self.entries(op) and len(list(self._reads(op, value))) == 1

    def of_entries(self, op: GraphOp) -> set[SSAValue]:
        """The matrices of which an operator gives a value for each entry."""
        numbers = {
            number
            for recording in self._recordings(op)
            for number in range(len(op.operands))
            if is_sparse(op.operands[number].type) and _gives_entries_of(recording, number)
        }
        return {op.operands[number] for number in numbers}

    def start_of_part(self, op: Operation, value: SSAValue) -> int | None:
        """The first column that an operator reads of an operand, one for each of its own.

        None if it reads the operand in any other way. That is so for a slice of columns.
        """
        if not isinstance(op, GraphOp) or not self.passes_index(op):
            return None
        starts = set[int | None]()
        for recording, read in self._reads(op, value):
            *outer, last = read.index
            start = polynomial(last - AffineExpr.dimension(len(outer))).number
            same = len(read.index) == recording.rank and _are_own(outer, 0)
            starts.add(start if same else None)
        return starts.pop() if len(starts) == 1 else None

    def takes_rows(self, op: GraphOp) -> bool:
        """Whether an operator takes some rows of an operand as they are."""
        reads = [read for value in op.operands[:1] for _, read in self._reads(op, value)]
        if op.fusion != FusionKind.INJECTIVE or len(op.operands) != 1 or len(reads) != 1:
            return False
        if not reads[0].index:
            return False
        first, *rest = reads[0].index
        own = {e for e in first.dfs() if isinstance(e, AffineDimExpr)}
        whole = tensor_type(op.operands[0]).get_shape()[1:]
        same = tensor_type(op.results[0]).get_shape()[1:] == whole
        return own == {AffineExpr.dimension(0)} and same and _are_own(rest, 1)

    def longest_loop(self, op: GraphOp) -> float:
        """The largest number of iterations of a reduction in an element of an operator."""
        return max(
            (
                loop.extent.value if isinstance(loop.extent, AffineConstantExpr) else float("inf")
                for recording in self._recordings(op)
                for loop in recording.loops
                if loop.kind == RecordedLoopKind.REDUCTION
            ),
            default=0,
        )

    def _recordings(self, op: GraphOp) -> list[Recording]:
        return [self._recorder.recording(op, number) for number in range(len(op.results))]

    def _reads(self, op: GraphOp, value: SSAValue) -> Iterator[tuple[Recording, Read]]:
        numbers = [number for number, operand in enumerate(op.operands) if operand is value]
        for recording in self._recordings(op):
            yield from ((recording, read) for read in recording.reads if read.operand in numbers)


def _are_own(index: Iterable[AffineExpr], first: int) -> bool:
    """Whether expressions are the own indices from a place on."""
    return all(_is_own(expr, place) for place, expr in enumerate(index, first))


def _is_own(expr: AffineExpr, place: int) -> bool:
    return isinstance(expr, AffineDimExpr) and expr.position == place


def _is_loop(recording: Recording, expr: AffineExpr) -> bool:
    """Whether an index is the variable of a loop that the operator opens."""
    return isinstance(expr, AffineDimExpr) and recording.atoms[expr.position].kind == AtomKind.LOOP


def _gives_entries_of(recording: Recording, matrix: int) -> bool:
    """Whether the first index of an element is the position of an entry of a matrix."""
    if not recording.rank:
        return False
    own = AffineExpr.dimension(0)
    known = (atom.matrix == matrix and atom.position == own for atom in recording.atoms)
    read = (one.operand == matrix and one.index == (own,) for one in recording.reads)
    return any(known) or any(read)


def _matrix_of(recording: Recording, read: Read) -> int | None:
    """The operand of whose entries the first index of a read is the position."""
    if not read.index or not isinstance(place := read.index[0], AffineDimExpr):
        return None
    atom = recording.atoms[place.position]
    if atom.kind == AtomKind.POSITION and atom.loop is not None:
        return recording.loops[atom.loop].matrix
    positions = {a.matrix for a in recording.atoms if a.position == place}
    return positions.pop() if len(positions) == 1 else None


def _sizes(
    op: GraphOp, recording: Recording, read: Read, needed: bool
) -> dict[AffineExpr, int | None]:
    """The sizes of the indices of the result and of the loops around a read.

    With `needed`, only of those that the index of the read is made of. The position of an entry
    has one row and one column, which are left out.
    """
    shape = tensor_type(op.results[0]).get_shape()[: recording.rank]
    sizes: dict[AffineExpr, int | None] = {
        AffineExpr.dimension(place): size if size >= 0 else None for place, size in enumerate(shape)
    }
    for number in read.around:
        loop = recording.loops[number]
        extent = loop.extent.value if isinstance(loop.extent, AffineConstantExpr) else None
        sizes |= dict.fromkeys(map(AffineExpr.dimension, loop.atoms), extent)
    used = {e for expr in read.index for e in expr.dfs()}
    for loop in (recording.loops[number] for number in read.around):
        if loop.matrix is not None and AffineExpr.dimension(loop.atoms[0]) in read.index:
            for known in (*loop.row, *map(AffineExpr.dimension, loop.atoms[1:])):
                sizes.pop(known, None)
    return {atom: size for atom, size in sizes.items() if not needed or atom in used}
