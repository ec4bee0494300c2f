"""Builds a partition from a stream of edges in bounded memory.

The edges are read three times: to count the entries of each row, to find the rows that refer to
other parts, and to sort the edges, as words of target and source, into *buckets*: ranges of rows
whose entries fit memory. Beside a bucket, memory holds a few numbers for each node.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ..core.progress import report
from .edges import LARGEST, Chunk, Edges
from .errors import error
from .partition import Partition, array_name, assembled, facts_of
from .progress import reported
from .storage.arrays import ArrayFolder, Store, append_array

BUCKET = 1 << 24
"""The number of entries that are sorted at a time; a longer row is sorted at once."""
_LOW = np.uint64(0xFFFFFFFF)
_SHIFT = np.uint64(32)


@dataclass(frozen=True)
class Census:
    """What the first reading of a list of edges has found.

    Attributes:
        entries: int64 (N,), the number of entries of each row.
        weights: the dtype of the weights, None if all are 1.
    """

    entries: np.ndarray
    weights: np.dtype[Any] | None


def count(edges: Edges) -> Census:
    """Read edges for the first time.

    Raises:
        InputError: if a node is out of range.
    """
    known = edges.num_nodes
    entries = np.zeros(known or 0, np.int64)
    weights: np.dtype[Any] = np.dtype(np.float32)
    ones = True
    for targets, sources, values in edges.read():
        if not len(targets):
            continue
        largest = _largest(targets, sources, LARGEST if known is None else known)
        if largest >= len(entries):
            entries = np.concatenate([entries, np.zeros(largest + 1 - len(entries), np.int64)])
        if len(entries) <= 4 * len(targets):
            entries += np.bincount(targets, minlength=len(entries))
        else:
            np.add.at(entries, targets, 1)
        if values is not None:
            ones = ones and bool(np.all(values == 1))
            weights = np.dtype(np.float64) if values.dtype == np.float64 else weights
    return Census(entries, None if ones else weights)


def _largest(targets: np.ndarray, sources: np.ndarray, count: int) -> int:
    low = min(int(targets.min()), int(sources.min()))
    high = max(int(targets.max()), int(sources.max()))
    if low < 0 or high >= count:
        raise error("a node is out of range", f"0 to {count - 1}", low if low < 0 else high)
    return high


def even_ranges(entries: np.ndarray, parts: int) -> np.ndarray:
    """int64 (parts + 1,): bounds of ranges of rows of about equal numbers of entries."""
    # Rows without entries are distributed like others: each has a small cost.
    cost = np.concatenate([[0.0], np.cumsum(entries + 1.0 / (len(entries) + 1))])
    goals = cost[-1] * (np.arange(1, parts) / parts)
    after = np.searchsorted(cost, goals)
    nearer = after - (goals - cost[np.maximum(after - 1, 0)] < cost[after] - goals)
    return np.concatenate([[0], np.maximum.accumulate(nearer), [len(entries)]]).astype(np.int64)


def build(edges: Edges, census: Census, part_of: np.ndarray, parts: int, store: Store) -> Partition:
    """Read edges for the second and third time, and write the parts.

    Args:
        edges: the edges.
        census: what the first reading has found.
        part_of: (N,), the part of each node.
        parts: the number of parts.
        store: where arrays are written.

    Raises:
        InputError: if the edges change while they are read.
        OSError: if the store cannot be written.
    """
    number = int(census.entries.sum())
    order = _order(reported(edges, "finding inner rows", 0, 3 * number), part_of, parts)
    sizes = np.bincount(part_of, minlength=parts)
    plan = _Plan(
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        np.concatenate([[0], np.cumsum(census.entries[order.nodes])]),
        census.weights,
    )
    _write(store, "bounds", plan.bounds)
    if not order.is_identity:
        _write(store, "order", order.nodes)
    spill = _Spill(plan, store.path if isinstance(store, ArrayFolder) else None)
    try:
        spill.fill(reported(edges, "sorting edges", number, 3 * number), order.ranks())
        for index in range(parts):
            _write_part(spill, plan, index, store)
    finally:
        spill.remove()
    _write_sends(store, plan)
    if isinstance(store, ArrayFolder):
        store.finish(facts_of(order.inner))
    return assembled(store.arrays(), order.inner)


@dataclass(frozen=True)
class _Order:
    """The renumbering: the node at each place, and the number of inner rows of each part."""

    nodes: np.ndarray
    inner: list[int]

    @property
    def is_identity(self) -> bool:
        return bool(np.all(self.nodes[1:] > self.nodes[:-1]))

    def ranks(self) -> np.ndarray:
        """uint32 (N,): the place of each node."""
        ranks = np.empty(len(self.nodes), np.uint32)
        ranks[self.nodes] = np.arange(len(self.nodes), dtype=np.uint32)
        return ranks


def _order(edges: Edges, part_of: np.ndarray, parts: int) -> _Order:
    """Nodes by part; those of which no entry refers to another part come first in theirs."""
    # A sort of 16 bits takes linear time.
    group = part_of.astype(np.uint16 if 2 * parts <= 1 << 16 else np.uint32) * 2
    for targets, sources, _ in edges.read():
        if _is_within(targets, sources, len(part_of)):
            group[targets[part_of[targets] != part_of[sources]]] |= 1
    inner = np.bincount(group, minlength=2 * parts)[::2]
    return _Order(np.argsort(group, kind="stable"), inner.tolist())


def _is_within(targets: np.ndarray, sources: np.ndarray, count: int) -> bool:
    """Whether there are edges, of nodes that have been counted: a file may have changed."""
    return len(targets) > 0 and _largest(targets, sources, count) < count


@dataclass(frozen=True)
class _Plan:
    """The layout of a partition.

    Attributes:
        bounds: int64 (parts + 1,), the first place of each part.
        starts: int64 (N + 1,), the first entry of each place.
        weights: the dtype of values, or None.
    """

    bounds: np.ndarray
    starts: np.ndarray
    weights: np.dtype[Any] | None

    def buckets(self, index: int) -> Iterator[tuple[int, int]]:
        """The ranges of places of a part whose entries fit memory, of at least one place each."""
        first, end = map(int, self.bounds[index : index + 2])
        while first < end:
            limit = self.starts[first] + BUCKET
            last = int(np.searchsorted(self.starts, limit, "right")) - 1
            last = min(max(last, first + 1), end)
            yield first, last
            first = last

    def report(self, index: int, place: int) -> None:
        """Report that a part is written from a place on, after edges were read twice."""
        done, total = int(self.starts[place]), int(self.starts[-1])
        note = f"{done / 1e6:.1f} M of {total / 1e6:.1f} M edges"
        text = f"writing part {index + 1} of {len(self.bounds) - 1}"
        report(text, 2 * total + done, 3 * total, note)


class _Spill:
    """Unsorted entries by bucket: words of target and source, and values."""

    def __init__(self, plan: _Plan, folder: Path | None) -> None:
        parts = range(len(plan.bounds) - 1)
        self._plan, self._folder = plan, folder
        ranges = [bucket for index in parts for bucket in plan.buckets(index)]
        self._number = {bucket: number for number, bucket in enumerate(ranges)}
        self._firsts = np.array([first for first, _ in ranges], np.uint64) << _SHIFT
        self._pieces: dict[str, list[np.ndarray]] = {}

    def fill(self, edges: Edges, ranks: np.ndarray) -> None:
        """Distribute all edges."""
        for chunk in edges.read():
            if not _is_within(chunk[0], chunk[1], len(ranks)):
                continue
            keys, values = self._sorted(chunk, ranks)
            cuts = [*np.searchsorted(keys, self._firsts).tolist(), len(keys)]
            for number, (begin, end) in enumerate(pairwise(cuts)):
                if begin < end:
                    self._append(f"{number}.keys", keys[begin:end])
                    if values is not None:
                        self._append(f"{number}.values", values[begin:end])

    def _sorted(self, chunk: Chunk, ranks: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        targets, sources, values = chunk
        keys = ranks[targets].astype(np.uint64) << _SHIFT
        keys |= ranks[sources]
        if self._plan.weights is None:
            keys.sort()
            return keys, None
        order = np.argsort(keys, kind="stable")
        weights = np.ones(len(keys)) if values is None else values
        return keys[order], weights[order].astype(self._plan.weights, copy=False)

    def _append(self, name: str, array: np.ndarray) -> None:
        if self._folder is None:
            self._pieces.setdefault(name, []).append(array.copy())
            return
        append_array(self._folder / f"spill{name}", array)

    def read(self, bucket: tuple[int, int]) -> tuple[np.ndarray, np.ndarray | None]:
        """The words of a bucket, and the values if they are not all 1."""
        number = self._number[bucket]
        keys = self._read(f"{number}.keys", np.dtype(np.uint64))
        expected = int(self._plan.starts[bucket[1]] - self._plan.starts[bucket[0]])
        if len(keys) != expected:
            raise error("the edges changed while they were read", expected, len(keys))
        weights = self._plan.weights
        return keys, None if weights is None else self._read(f"{number}.values", weights)

    def _read(self, name: str, dtype: np.dtype[Any]) -> np.ndarray:
        if self._folder is None:
            return np.concatenate([np.zeros(0, dtype), *self._pieces.get(name, [])])
        path = self._folder / f"spill{name}"
        return np.fromfile(path, dtype) if path.exists() else np.zeros(0, dtype)

    def release(self, bucket: tuple[int, int]) -> None:
        """Forget a bucket."""
        for what in ("keys", "values"):
            self._pieces.pop(name := f"{self._number[bucket]}.{what}", None)
            if self._folder is not None:
                (self._folder / f"spill{name}").unlink(missing_ok=True)

    def remove(self) -> None:
        """Forget all."""
        for bucket in self._number:
            self.release(bucket)


def _write_part(spill: _Spill, plan: _Plan, index: int, store: Store) -> None:
    """Write all arrays of a part but those of what it sends."""
    first, end = map(int, plan.bounds[index : index + 2])
    # The nodes of other parts that the part refers to.
    found = np.zeros(plan.bounds[-1], np.bool_)
    for number in plan.buckets(index):
        found[(spill.read(number)[0] & _LOW).astype(np.uint32)] = True
    found[plan.bounds[index] : plan.bounds[index + 1]] = False
    halo = np.flatnonzero(found)
    columns = int(plan.bounds[index + 1] - plan.bounds[index]) + len(halo)
    if columns > np.iinfo(np.int32).max:
        raise error("a part has too many columns for 32 bits", "more parts", columns)
    local = np.zeros(plan.bounds[-1], np.uint32)
    local[first:end] = np.arange(end - first)
    local[halo] = np.arange(end - first, end - first + len(halo))
    _write(store, array_name(index, "halo"), halo)
    _write(store, array_name(index, "owners"), np.searchsorted(halo, plan.bounds))
    starts = plan.starts[first : end + 1]
    _write(store, array_name(index, "indptr"), starts - starts[0])
    number = int(starts[-1] - starts[0])
    indices = store.create(array_name(index, "indices"), np.int32, number)
    values = None
    if plan.weights is not None:
        values = store.create(array_name(index, "values"), plan.weights, number)
    for bucket in plan.buckets(index):
        plan.report(index, bucket[0])
        keys, weights = spill.read(bucket)
        keys = (keys & ~_LOW) | local[(keys & _LOW).astype(np.uint32)]
        if weights is None or values is None:
            keys.sort()
        else:
            order = np.argsort(keys, kind="stable")
            keys = keys[order]
            values.append(weights[order])
        indices.append((keys & _LOW).astype(np.int32))
        spill.release(bucket)


def _write_sends(store: Store, plan: _Plan) -> None:
    """Write what each part sends: the rows that are in the halos of others."""
    arrays, parts = store.arrays(), len(plan.bounds) - 1
    halos = [arrays[array_name(index, "halo")] for index in range(parts)]
    owners = [arrays[array_name(index, "owners")] for index in range(parts)]
    for index in range(parts):
        ranges = [own[index : index + 2] for own in owners]
        counts = [int(end - begin) for begin, end in ranges]
        writer = store.create(array_name(index, "sends"), np.int32, sum(counts))
        for halo, (begin, end) in zip(halos, ranges, strict=True):
            writer.append((halo[begin:end] - plan.bounds[index]).astype(np.int32))
        _write(store, array_name(index, "receivers"), np.cumsum([0, *counts]))


def _write(store: Store, name: str, array: np.ndarray) -> None:
    writer = store.create(name, np.int64, len(array))
    writer.append(array)
