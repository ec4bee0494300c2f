"""The values of a group: on which of its dimensions each depends, and which run a reduction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr

from ..interfaces import GraphOp, Sizes
from ..kinds import FusionKind
from ..nests.accesses import Read, RecordedLoopKind, Recording
from ..nests.recording import Recorder
from .uses import Uses

_REDUCTIONS = (RecordedLoopKind.REDUCTION, RecordedLoopKind.ENTRIES)


class GroupValues:
    """The operators and values of a group.

    Args:
        ops: the operators, in the order of their block.
        results: those of their results that are used outside of the group.
        shapes: the symbolic shapes of the values.
        recorder: knows what operators read.
    """

    def __init__(
        self,
        ops: Sequence[GraphOp],
        results: Sequence[SSAValue],
        shapes: Sizes,
        recorder: Recorder,
    ) -> None:
        self.ops, self.results = ops, results
        self.inside = set[object](ops)
        self.shapes, self.recorder = shapes, recorder
        self.uses = Uses(recorder)
        self._needed: dict[SSAValue, frozenset[int]] = {}
        self._reduced: dict[SSAValue, frozenset[int]] = {}

    def study(self) -> None:
        """Find out what the values depend on, in the order in which they are computed."""
        made = [(op, r) for op in self.ops if op.fusion != FusionKind.NEST for r in op.results]
        for op, result in made:
            recording = self.recording(result)
            dims = [self._dims(op, recording, read) for read in recording.reads]
            self._needed[result] = recording.dims_of(recording.sources.atoms).union(*dims)
            loops = [loop for loop in recording.loops if loop.kind in _REDUCTIONS]
            behind = [
                recording.dims_of(read.atoms_at(self._reduced[op.operands[read.operand]]))
                for read in recording.reads
                if op.operands[read.operand] in self._reduced
            ]
            for loop in loops:
                behind.append(recording.dims_of(loop.sources.atoms))
                behind += [dims[number] for number in loop.sources.reads]
            if loops or behind:
                self._reduced[result] = frozenset[int]().union(*behind)

    def recording(self, value: SSAValue) -> Recording:
        """The recording of a value that the group computes."""
        op = value.owner
        assert isinstance(op, GraphOp)
        return self.recorder.recording(op, op.results.index(value))

    def is_cheap(self, value: SSAValue) -> bool:
        """Whether computing an element again costs no more than loading it: see `Uses.is_cheap`."""
        op = value.owner
        assert isinstance(op, GraphOp)
        return self.uses.is_cheap(op)

    def needed(self, value: SSAValue, index: Sequence[AffineExpr]) -> list[AffineExpr]:
        """The expressions of an index on which the element of a value there depends."""
        places = self._needed.get(value)
        return list(index) if places is None else [index[place] for place in sorted(places)]

    def is_deep(self, value: SSAValue) -> bool:
        """Whether computing one element of a value runs a reduction."""
        return value in self._reduced

    def reduced(self, value: SSAValue, index: Sequence[AffineExpr]) -> list[AffineExpr]:
        """The expressions of an index on which the reductions that a value needs depend."""
        return [index[place] for place in sorted(self._reduced.get(value, ()))]

    def _dims(self, op: GraphOp, recording: Recording, read: Read) -> frozenset[int]:
        """The dimensions of a result on which a read for it depends."""
        places: Iterable[int] | None = self._needed.get(op.operands[read.operand])
        return recording.dims_of(
            read.atoms_at(range(len(read.index)) if places is None else places)
        )
