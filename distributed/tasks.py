"""What workers do: functions of one part, which are pure but for the blocks that they fill."""

from __future__ import annotations

import functools
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import EllipsisType
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.boundary.specs import ValueSpec
from ..core.dtype_names import dtype_named
from ..core.errors import InputError, explain
from .partition import ring_to_csr, rows_to_csr
from .storage import folders
from .storage.blocks import PartBlock, hostname
from .storage.rows import gather, rows_of

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from ..runtime.executable import Executable
    from .partition import Part

Blocks = Mapping[str, PartBlock]
"""Blocks of one part by the names of their values."""


@dataclass(frozen=True)
class StageCode:
    """A compiled stage, and what a worker needs to know to call it.

    Attributes:
        program: the program, or what it is saved as.
        inputs: for each argument the name of the value, and whether it has the halo.
        results: the names of its results.
        specs: their shapes and dtypes.
        exchanged: the results that later stages read for the halo too.
        is_whole: whether it takes all rows at once.
    """

    program: Executable | bytes
    inputs: tuple[tuple[str, bool], ...]
    results: tuple[str, ...]
    specs: tuple[ValueSpec, ...]
    exchanged: frozenset[str]
    is_whole: bool

    @property
    def needed(self) -> set[str]:
        """The names of its arguments."""
        return {name for name, _ in self.inputs}

    @property
    def reads_halo(self) -> bool:
        """Whether it takes rows of the halo."""
        return any(halo for _, halo in self.inputs)

    @property
    def exe(self) -> Executable:
        """The program, compiled anew where this machine can run none of its code, or better."""
        return _fitted(self.program) if isinstance(self.program, bytes) else self.program


@functools.lru_cache(maxsize=64)
def _fitted(data: bytes) -> Executable:
    from ..api.loading import fitted

    return fitted(data)


@dataclass(frozen=True)
class Job:
    """The compiled stages of a program, and the names that it has.

    Attributes:
        stages: the stages.
        graph: the name of the graph.
        nodes: the name of the number of nodes of a part.
        columns: the name of the number of columns, which includes the halo.
        edges: the name of the number of stored entries.
    """

    stages: tuple[StageCode, ...]
    graph: str
    nodes: str
    columns: str
    edges: str


@dataclass(frozen=True)
class Setting:
    """What all tasks of a run share.

    Attributes:
        whole: the arguments of the program that are the same for all parts, by name.
        place: the folder for files; None for memory.
        host: the host that has created the folder; others create one of this name.
        kept: whether workers keep maps of files.
        ring: the rows of the rings that all parts share; None where they have halos of their own.
    """

    whole: Mapping[str, Any] = field(default_factory=dict)
    place: str | None = None
    host: str = ""
    kept: bool = False
    ring: int | None = None

    def columns(self, part: Part) -> int:
        """How many nodes a part reads: its own and the halo, or all."""
        return self.ring or part.num_rows + len(part.halo)

    def block(self, name: str, part: Part, shape: Sequence[int], dtype: Any) -> PartBlock:
        """A new block for a value of a part. An attempt that is repeated gets another one."""
        if self.place is not None and self.host != hostname():
            folders.join_folder(self.place)
        unique = f"{name}.{part.index}.{uuid.uuid4().hex[:12]}"
        return PartBlock.create(self.place, unique, shape, np.dtype(dtype), self.kept)


@dataclass(frozen=True, eq=False)
class PartSource:
    """Where a worker finds a part: in a folder that it can read, or here.

    Attributes:
        index: the number of the part.
        folder: the folder of its partition.
        part: the part itself, without a folder.
        key: that of the partition, if it is in a folder.
    """

    index: int
    folder: str | None = None
    part: Part | None = None
    key: str = ""

    def open(self) -> Part:
        """The part.

        Raises:
            InputError: if the folder has another partition now, or a file is damaged.
        """
        if self.part is not None:
            return self.part
        return _opened(str(self.folder), self.key, self.index)


@functools.lru_cache(maxsize=64)
def _opened(folder: str, key: str, index: int) -> Part:
    from .partition import Partition

    partition = Partition.load(folder)
    if partition.key != key:
        fact, hint = f"{folder} has another partition now", "load it anew"
        raise InputError(explain("distribute", fact, hint=hint))
    return partition[index]


@dataclass(frozen=True)
class Halo:
    """Where rows of the halo come from.

    Attributes:
        owner: the part that has them.
        first: its first node.
        blocks: its blocks, which this host can map; or
        packed: its rows for this part, which have travelled, by value.
    """

    owner: int
    first: int
    blocks: Blocks | None = None
    packed: Mapping[str, np.ndarray] | None = None

    def __sizeof__(self) -> int:
        """The bytes in memory, by which Dask plans."""
        return 64 + sum(array.nbytes for array in (self.packed or {}).values())


@dataclass(frozen=True)
class Made:
    """What a stage has made of a part.

    Attributes:
        blocks: the results.
        shared: the bytes of the halo that were read from maps of other parts.
        sent: those that travelled.
    """

    blocks: dict[str, PartBlock] = field(default_factory=dict)
    shared: int = 0
    sent: int = 0


def load(
    setting: Setting,
    given: PartSource,
    rows: np.ndarray,
    source: Any,
    exchanged: bool,
    spare: PartBlock | None = None,
) -> PartBlock:
    """Rows of an argument of the program as a block.

    Args:
        setting: what all tasks share.
        given: the part.
        rows: the original numbers of its nodes.
        source: the argument: an array, a sparse matrix, the path of an `.npy` file, or an object
            with `read(rows)`; or the rows themselves, as a tuple.
        exchanged: whether the block has room for the halo.
        spare: a block to use again.
    """
    part = given.open()
    found = rows_of("", source[0] if isinstance(source, tuple) else source)
    count = len(rows) + (len(part.halo) if exchanged else 0)
    block = spare or setting.block("input", part, (count, *found.shape[1:]), found.dtype)
    own = block.open_rows(slice(len(rows)), write=True)
    gather(found, np.arange(len(rows)) if isinstance(source, tuple) else rows, own)
    return block


def pack(given: PartSource, receiver: int, values: Sequence[str], blocks: Blocks) -> Halo:
    """The rows of values that another part has in its halo."""
    part = given.open()
    rows, own = part.sends[receiver], slice(part.num_rows)
    packed = {value: np.take(blocks[value].open_rows(own), rows, axis=0) for value in values}
    return Halo(part.index, part.rows[0], packed=packed)


def receive(given: PartSource, blocks: Blocks, received: Sequence[str], *halos: Halo) -> Made:
    """Write rows of the halo that have travelled in their place.

    Args:
        given: the part.
        blocks: the values of the part.
        received: the values that are exchanged.
        halos: the rows, from each other part that sends some.
    """
    return Made(sent=_receive(given.open(), blocks, received, halos)[1])


def array_of_block(block: PartBlock, count: int | None) -> np.ndarray:
    """A block, or its first rows, to be sent elsewhere."""
    return block.open_rows(... if count is None else slice(count))


def start(
    job: Job,
    number: int,
    setting: Setting,
    given: PartSource,
    blocks: Blocks,
    spares: Blocks,
) -> Made:
    """Make room for the results of a stage, and compute the rows that need no halo.

    Args:
        job: the program.
        number: the stage.
        setting: what all tasks share.
        given: the part.
        blocks: the values of the part.
        spares: blocks for results that are used again.
    """
    call, made = _begun(job, number, setting, given, blocks, spares)
    if not call.stage.is_whole:
        call.compute(0, call.part.inner, call.part.num_rows)
    return Made(made)


def finish(
    job: Job,
    number: int,
    setting: Setting,
    given: PartSource,
    blocks: Blocks,
    made: Made,
    received: Sequence[str],
    arrived: Made,
    *halos: Halo,
) -> Made:
    """Take in the halo of a stage, and compute the rows that need it.

    Args:
        job: the program.
        number: the stage.
        setting: what all tasks share.
        given: the part.
        blocks: the values of the part.
        made: what `start` has returned.
        received: the values that are exchanged before this stage.
        arrived: what `receive` has returned.
        halos: where the rest of the halo comes from, for each other part that has some of it.
    """
    stage, part = job.stages[number], given.open()
    shared, _ = _receive(part, blocks, received, halos)
    call = _Call(job, stage, setting, part, {**blocks, **made.blocks})
    begin = 0 if stage.is_whole else part.inner
    call.compute(begin, part.num_rows, setting.columns(part))
    return Made(made.blocks, shared, arrived.sent)


def compute(
    job: Job,
    number: int,
    setting: Setting,
    given: PartSource,
    blocks: Blocks,
    spares: Blocks,
    received: Sequence[str],
    *halos: Halo,
) -> Made:
    """Compute all rows of a stage whose halo is there already: `start` and `finish` in one."""
    call, made = _begun(job, number, setting, given, blocks, spares)
    part = call.part
    if setting.ring is None:
        shared, sent = _receive(part, blocks, received, halos)
    else:
        shared, sent = len(part.halo) * sum(blocks[value].row_bytes for value in received), 0
    call.compute(0, part.num_rows, setting.columns(part))
    return Made(made, shared, sent)


def _begun(
    job: Job, number: int, setting: Setting, given: PartSource, blocks: Blocks, spares: Blocks
) -> tuple[_Call, dict[str, PartBlock]]:
    """A stage on a part, and the blocks for its results."""
    stage, part = job.stages[number], given.open()
    made: dict[str, PartBlock] = {}
    for name, spec in zip(stage.results, stage.specs, strict=True):
        shape = shape_of(job, part, spec, name in stage.exchanged)
        dtype = dtype_named(spec.dtype)
        made[name] = spares.get(name) or setting.block(name, part, shape, dtype)
    return _Call(job, stage, setting, part, {**blocks, **made}), made


def _receive(
    part: Part, blocks: Blocks, received: Sequence[str], halos: Sequence[Halo]
) -> tuple[int, int]:
    """Write the halos of values; returns the bytes from maps of other parts and those sent."""
    shared = sent = 0
    for value in received:
        target = blocks[value].open_rows(slice(part.num_rows, None), write=True)
        for halo in halos:
            first, end = (int(n) for n in part.owners[halo.owner :][:2])
            _take(target[first:end], part, value, halo)
            size = target[first:end].nbytes
            shared, sent = (shared + size, sent) if halo.packed is None else (shared, sent + size)
    return shared, sent


def _take(target: np.ndarray, part: Part, value: str, halo: Halo) -> None:
    """Write the rows of the halo that another part owns."""
    if halo.packed is not None:
        target[...] = halo.packed[value]
        return
    assert halo.blocks is not None
    rows = part.halo[slice(*part.owners[halo.owner :][:2])] - halo.first
    # With another mode NumPy copies what it fills, in order to restore it after an error.
    np.take(halo.blocks[value].open(), rows, axis=0, out=target, mode="clip")


@dataclass(frozen=True)
class _Call:
    """Calls of a stage on some rows of a part."""

    job: Job
    stage: StageCode
    setting: Setting
    part: Part
    blocks: Blocks

    def compute(self, first: int, end: int, columns: int) -> None:
        """Compute rows of all results, from `first` up to `end`, which read so many columns."""
        if first == end and all(self._is_sliced(spec) for spec in self.stage.specs):
            return
        arguments = [
            self._argument(name, spec, halo, (first, end), columns)
            for (name, halo), spec in zip(self.stage.inputs, self.stage.exe.inputs, strict=True)
        ]
        outs = [
            self.blocks[name].open_rows(self._rows(spec, (first, end)), write=True)
            for name, spec in zip(self.stage.results, self.stage.specs, strict=True)
        ]
        self.stage.exe(*arguments, out=tuple(outs) if len(outs) > 1 else outs[0])

    def _argument(
        self, name: str, spec: ValueSpec, halo: bool, rows: tuple[int, int], columns: int
    ) -> Any:
        if name == self.job.graph:
            return self._matrix(spec, rows, columns)
        if name in self.setting.whole:
            return self.setting.whole[name]
        return self.blocks[name].open_rows(slice(columns) if halo else self._rows(spec, rows))

    def _is_sliced(self, spec: ValueSpec) -> bool:
        return bool(spec.shape) and spec.shape[0] in (self.job.nodes, self.job.edges)

    def _rows(self, spec: ValueSpec, rows: tuple[int, int]) -> slice | EllipsisType:
        """Where a value has some rows, or their entries."""
        if not self._is_sliced(spec):
            return ...
        if spec.shape[0] == self.job.nodes:
            return slice(*rows)
        return slice(*(int(self.part.indptr[row]) for row in rows))

    def _matrix(self, spec: ValueSpec, rows: tuple[int, int], columns: int) -> csr_array:
        """Rows of the matrix of the part; with a ring, all."""
        if self.setting.ring is not None:
            return ring_to_csr(self.part, spec.dtype, columns)
        return rows_to_csr(self.part, spec.dtype, rows, columns)


def shape_of(job: Job, part: Part, spec: ValueSpec, exchanged: bool) -> tuple[int, ...]:
    """The shape of a value on a part."""
    sizes = {job.nodes: part.num_rows, job.edges: part.num_entries}
    if exchanged:
        sizes[job.nodes] += len(part.halo)
    return tuple(size if isinstance(size, int) else sizes[size] for size in spec.shape)
