"""Partitions: parts reassemble into the graph, and halos are what other parts send."""

from __future__ import annotations

import gzip
import json
import resource
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

import stepwell as sw
from stepwell.core.progress import ProgressStep, followed
from stepwell.distributed import build, edges
from stepwell.distributed.partition import Partition
from stepwell.frontends.gnn import Graph

from ..harness import package


def entries(targets: Any, sources: Any, values: Any = None) -> list[tuple[int, int, float]]:
    """Entries by row and column; duplicates keep their order."""
    values = np.ones(len(targets)) if values is None else values
    found = zip(np.asarray(targets).tolist(), np.asarray(sources).tolist(), values, strict=True)
    return sorted(((t, s, float(v)) for t, s, v in found), key=lambda entry: entry[:2])


def reassembled(partition: Partition) -> list[tuple[int, int, float]]:
    """The entries of all parts, with the original numbers of nodes."""
    order = np.concatenate([partition.nodes(i) for i in range(partition.parts)])
    found: list[tuple[int, int, float]] = []
    for part in partition:
        columns = np.concatenate([np.arange(*part.rows), part.halo])
        rows = np.repeat(np.arange(*part.rows), np.diff(part.indptr))
        found += entries(order[rows], order[columns[part.indices]], part.matrix.data)
    return sorted(found, key=lambda entry: entry[:2])


def verify(partition: Partition, expected: list[tuple[int, int, float]], nodes: int) -> None:
    """All that a partition promises."""
    assert partition.num_nodes == nodes
    order = np.concatenate([partition.nodes(i) for i in range(partition.parts)])
    assert sorted(order.tolist()) == list(range(nodes))
    assert reassembled(partition) == expected
    parts = list(partition)
    for part in parts:
        assert (part.indptr.dtype, part.indices.dtype) == (np.int64, np.int32)
        crosses = [np.any(part.indices[a:b] >= part.num_rows) for a, b in bounds_of(part.indptr)]
        assert crosses == sorted(crosses)
        assert crosses.count(False) == part.inner
        for a, b in bounds_of(part.indptr):
            assert np.all(np.diff(part.indices[a:b]) >= 0)
        # Each node of the halo is needed, and is of the part that sends it.
        assert set(range(part.num_rows, part.num_rows + len(part.halo))) <= set(part.indices)
        for other, (a, b) in zip(parts, bounds_of(part.owners), strict=True):
            sent = other.sends[part.index]
            assert sent.dtype == np.int32
            np.testing.assert_array_equal(part.halo[a:b], other.rows[0] + sent)


def bounds_of(bounds: np.ndarray) -> list[tuple[int, int]]:
    return list(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True))


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, np.ndarray, np.ndarray | None]:
    """Nodes, edges and weights, with self loops, duplicates and nodes without edges."""
    nodes = draw(st.integers(1, 12))
    pairs = draw(st.lists(st.tuples(*[st.integers(0, nodes - 1)] * 2), max_size=40))
    ends = np.array(pairs, np.int64).reshape(-1, 2).T
    weighted = draw(st.booleans())
    return nodes, ends, np.arange(1, len(pairs) + 1.0) if weighted else None


@settings(max_examples=25, deadline=None)
@given(graph=graphs(), parts=st.integers(1, 14), data=st.data())
def test_parts_reassemble(
    graph: tuple[int, np.ndarray, np.ndarray | None], parts: int, data: st.DataObject
) -> None:
    nodes, ends, weights = graph
    labels = st.lists(st.integers(0, parts - 1), min_size=nodes, max_size=nodes)
    by = data.draw(st.one_of(st.just("rows"), labels))
    whole = Graph.from_edge_index(ends, nodes, weights)
    expected = entries(ends[1], ends[0], weights)
    with pytest.MonkeyPatch.context() as patch:
        # Several chunks, and several buckets in a part.
        patch.setattr(edges, "CHUNK", 7)
        patch.setattr(build, "BUCKET", 5)
        verify(sw.partition(whole, parts, by=by), expected, nodes)
        found = sw.partition(Stream(ends, weights), parts, by=by, num_nodes=nodes)
        verify(found, expected, nodes)


class Stream:
    """A list of edges that is read in pieces of three."""

    def __init__(self, ends: np.ndarray, weights: np.ndarray | None = None) -> None:
        self.ends, self.weights = ends, weights

    def __iter__(self) -> Iterator[Any]:
        for first in range(0, self.ends.shape[1], 3):
            piece = self.ends[:, first : first + 3]
            yield piece if self.weights is None else (piece, self.weights[first : first + 3])


def ring(nodes: int) -> np.ndarray:
    """Edges from each node to the next two."""
    node = np.arange(nodes)
    return np.stack([np.tile(node, 2), np.concatenate([node + 1, node + 2]) % nodes])


def test_by_rows_are_ranges_of_equal_numbers_of_entries() -> None:
    counts = np.array([0, 5, 1, 1, 1, 1, 1, 0, 0, 0])
    ends = np.stack([np.zeros(10, np.int64), np.repeat(np.arange(10), counts)])
    found = sw.partition(ends, 2, num_nodes=10)
    assert [set(found.nodes(i).tolist()) for i in range(2)] == [{0, 1}, set(range(2, 10))]
    # Without entries, rows are distributed evenly.
    empty = sw.partition(np.zeros((2, 0), np.int64), 5, num_nodes=10)
    assert empty.bounds.tolist() == [0, 2, 4, 6, 8, 10]
    assert empty.order is None
    assert sw.partition(np.zeros((2, 0), np.int64), 3).num_nodes == 0


def test_inner_rows_come_first_in_ranges_of_rows() -> None:
    found = sw.partition(ring(12), 3)
    assert [sorted(found.nodes(i).tolist()) for i in range(3)] == [
        list(range(4 * i, 4 * i + 4)) for i in range(3)
    ]
    assert [part.inner for part in found] == [2, 2, 2]
    assert found.nodes(1).tolist() == [6, 7, 4, 5]


def test_a_folder_is_mapped(tmp_path: Path) -> None:
    weights = np.arange(1, 25, dtype=np.float32)
    whole = Graph.from_edge_index(ring(12), 12, weights)
    expected = entries(*ring(12)[::-1], weights)
    made = sw.partition(whole, 3, out=tmp_path / "a")
    sw.partition(whole, 3).save(tmp_path / "b")
    for found in (made, Partition.load(tmp_path / "a"), Partition.load(tmp_path / "b")):
        verify(found, expected, 12)
        assert isinstance(found[1].indices.base, np.memmap)
    assert not list(tmp_path.glob("*/spill*"))
    assert made.folder == tmp_path / "a"
    names = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert names == sorted(path.name for path in (tmp_path / "b").iterdir())


def write_ogb(folder: Path, ends: np.ndarray, nodes: int, archive: bool) -> Path:
    raw = folder / "raw"
    raw.mkdir(parents=True)
    if archive:
        np.savez_compressed(raw / "data.npz", edge_index=ends, num_nodes_list=np.array([nodes]))
        return folder
    with gzip.open(raw / "edge.csv.gz", "wt") as file:
        np.savetxt(file, ends.T, "%d", delimiter=",")
    with gzip.open(raw / "num-node-list.csv.gz", "wt") as file:
        file.write(f"{nodes}\n")
    return folder


def test_edge_lists_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edges, "CHUNK", 5)
    ends = ring(9)
    expected = entries(*ends[::-1])
    np.save(tmp_path / "two_rows.npy", ends.astype(np.int32))
    np.save(tmp_path / "pairs.npy", ends.T)
    for path in (
        *(tmp_path / "two_rows.npy", tmp_path / "pairs.npy"),
        *(write_ogb(tmp_path / str(kind), ends, 9, kind) for kind in (False, True)),
    ):
        verify(sw.partition(path, 2), expected, 9)
    both = sw.partition(tmp_path / "pairs.npy", 2, undirected=True)
    verify(both, entries([*ends[1], *ends[0]], [*ends[0], *ends[1]]), 9)


def test_a_self_loop_has_one_direction() -> None:
    found = sw.partition(np.array([[0, 1, 2], [0, 2, 2]]), 2, undirected=True)
    verify(found, entries([0, 2, 1, 2], [0, 1, 2, 2]), 3)


def test_edge_lists_in_parquet(tmp_path: Path) -> None:
    pyarrow, parquet = package("pyarrow"), package("pyarrow.parquet")
    ends, weights = ring(9), np.arange(18.0)
    for name, piece in (("a", slice(0, 10)), ("b", slice(10, 18))):
        table = {"from": ends[0, piece], "to": ends[1, piece], "w": weights[piece]}
        parquet.write_table(pyarrow.table(table), tmp_path / f"{name}.parquet")
    found = sw.partition(tmp_path, 2)
    verify(found, entries(ends[1], ends[0], weights), 9)
    (tmp_path / "b.parquet").write_bytes(b"PAR1")
    with pytest.raises(sw.InputError, match=r"partition: cannot read .*b\.parquet: "):
        sw.partition(tmp_path, 2)


def test_metis(monkeypatch: pytest.MonkeyPatch) -> None:
    package("pymetis")
    # Two rings, whose nodes alternate.
    ends = np.concatenate([2 * ring(10), 2 * ring(10) + 1], axis=1)
    whole = Graph.from_edge_index(ends, 20)
    found = sw.partition(whole, 2, by="metis")
    verify(found, entries(*ends[::-1]), 20)
    assert [len(part.halo) for part in found] == [0, 0]


def test_metis_of_edges_in_both_directions() -> None:
    """A matrix that has each edge once is cut like one that has both directions."""
    package("pymetis")
    sources = np.concatenate([np.arange(20), np.arange(20, 40), [3]])
    targets = np.concatenate([(np.arange(20) + 1) % 20, 20 + (np.arange(20) + 1) % 20, [27]])
    once = Graph.from_edge_index(np.stack([sources, targets]), 40)
    both = np.concatenate([sources, targets]), np.concatenate([targets, sources])
    found = sw.partition(once, 2, by="metis", undirected=True)
    wanted = sw.partition(Graph.from_edge_index(np.stack(both), 40), 2, by="metis")
    assert [part.num_entries for part in found] == [41, 41]
    for part, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(found.nodes(part.index), wanted.nodes(part.index))
        np.testing.assert_array_equal(part.matrix.toarray(), other.matrix.toarray())
        assert len(part.halo) == 1


def test_ones_have_no_values() -> None:
    part = sw.partition(ring(6), 2)[0]
    assert part.values is None
    assert part.matrix.dtype == np.float32
    assert part.to_csr("f64").dtype == np.float64
    with pytest.raises(sw.InputError, match="Part: unknown dtype, expected f32 or f64, got f16"):
        part.to_csr("f16")
    double = csr_array(np.array([[0, 2.5], [0, 0]]))
    assert sw.partition(double, 1)[0].matrix.dtype == np.float64


WRONG: list[tuple[Any, dict[str, Any], str]] = [
    (ring(4), {"parts": 0}, "wrong number of parts, expected 1 or more, got 0"),
    (ring(4), {"by": "columns"}, 'unknown way to partition, expected by="rows", "metis" or labels'),
    (ring(4), {"by": [0, 1, 0]}, r"the labels have the wrong shape, expected \(4,\), got \(3,\)"),
    (ring(4), {"by": [0, 1, 2, 0]}, "a label is out of range, expected 0 to 1, got 2"),
    (ring(4), {"by": [0, 1, -1, 0]}, "a label is out of range, expected 0 to 1, got -1"),
    (ring(4), {"by": [0.0] * 4}, "the labels have the wrong dtype, expected integers, got float64"),
    (ring(4), {"by": "metis"}, 'by="metis" needs the graph in memory'),
    (ring(4), {"num_nodes": 3}, "a node is out of range, expected 0 to 2, got 3"),
    (ring(4), {"num_nodes": -1}, "num_nodes is wrong, expected a count or None, got -1"),
    (ring(4) - 1, {}, "a node is out of range, expected 0 to 4294967295, got -1"),
    (ring(4) + 2.0, {}, "the edges have the wrong dtype, expected integers, got float64"),
    (np.zeros((3, 5), int), {}, r"the edges have the wrong shape, .*, got \(3, 5\)"),
    (iter([ring(4)]), {}, "the stream can be read only once"),
    (3, {}, "not a graph, expected a Graph, .*, got int"),
    ([(ring(4), np.ones(3))], {}, r"the weights have the wrong shape, expected \(8,\), got \(3,\)"),
    ([(ring(4), np.array(["a"] * 8))], {}, "the weights have the wrong dtype"),
    (csr_array((2, 3)), {}, r"the matrix is not square, expected \(N, N\), got \(2, 3\)"),
    (csr_array((2, 2), dtype=np.complex64), {}, "the matrix has the wrong dtype"),
    (Graph.from_edge_index(ring(4), 4), {"num_nodes": 5}, "num_nodes is not that of the graph"),
    ("edges.txt", {}, r"unknown kind of file, expected \.npy, \.parquet or a folder, got "),
    ("none.npy", {}, r"cannot read none\.npy: No such file or directory"),
]


@pytest.mark.parametrize(("graph", "given", "message"), WRONG)
def test_wrong_arguments(graph: Any, given: dict[str, Any], message: str) -> None:
    with pytest.raises(sw.InputError, match=f"^partition: {message}"):
        sw.partition(graph, **{"parts": 2, **given})


def test_damaged_edge_lists(tmp_path: Path) -> None:
    np.save(tmp_path / "edges.npy", ring(9))
    data = (tmp_path / "edges.npy").read_bytes()
    (tmp_path / "edges.npy").write_bytes(data[:-8])
    with pytest.raises(sw.InputError, match=r"read .*edges\.npy: .* less data than it claims"):
        sw.partition(tmp_path / "edges.npy", 2)
    for archive, name in ((False, "edge.csv.gz"), (True, "data.npz")):
        folder = write_ogb(tmp_path / name, ring(9), 9, archive)
        file = folder / "raw" / name
        file.write_bytes(file.read_bytes()[:-30])
        with pytest.raises(sw.InputError, match=rf"partition: cannot read .*{name}: "):
            sw.partition(folder, 2)
    folder = write_ogb(tmp_path / "several", ring(9), 9, False)
    with gzip.open(folder / "raw" / "num-node-list.csv.gz", "wt") as file:
        file.write("4\n5\n")
    with pytest.raises(sw.InputError, match=r"several has several graphs, expected 1, got 2|raw"):
        sw.partition(folder, 2)
    (tmp_path / "empty").mkdir()
    if _has_pyarrow():
        with pytest.raises(sw.InputError, match=r"empty has no \.parquet file"):
            sw.partition(tmp_path / "empty", 2)


def _has_pyarrow() -> bool:
    return find_spec("pyarrow") is not None


def test_edges_that_change_between_readings() -> None:
    class Growing:
        readings = 0

        def __iter__(self) -> Iterator[np.ndarray]:
            self.readings += 1
            yield ring(4 + (self.readings == 3))[:, : 8 + (self.readings == 3)] % 4

    with pytest.raises(sw.InputError, match="partition: the edges changed while they were read"):
        sw.partition(Growing(), 2)


def test_damaged_folders(tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    sw.partition(ring(40), 2, out=folder)
    with pytest.raises(sw.InputError, match=r"partition: .*parts has a partition already"):
        sw.partition(ring(40), 2, out=folder)
    for name in ("part1.indices", "part1.halo", "part0.sends", "bounds"):
        file = folder / f"{name}.npy"
        data = file.read_bytes()
        damages = {
            "the array has less data than it claims": data[:-4],
            "another array, expected .* of int.., got 3 of int8": _npy(np.zeros(3, np.int8)),
            "the array does not fit the others": data[:128] + b"\x7f" * (len(data) - 128),
        }
        for fact, damage in damages.items():
            if name == "part1.indices" and fact.startswith("the array does not"):
                continue  # Calls check columns.
            file.write_bytes(damage)
            with pytest.raises(sw.InputError, match=rf"^partition: cannot read .*: .*{fact}"):
                list(Partition.load(folder))
        file.unlink()
        with pytest.raises(sw.InputError, match=rf"cannot read .*{name}\.npy: No such file"):
            list(Partition.load(folder))
        file.write_bytes(data)
    verify(Partition.load(folder), entries(*ring(40)[::-1]), 40)


def _npy(array: np.ndarray) -> bytes:
    from io import BytesIO

    stream = BytesIO()
    np.save(stream, array)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("change", "fact"),
    [
        ({"kind": "model"}, "not the header of a partition"),
        ({"version": 7}, "unknown version, expected 1, got 7"),
        ({"arrays": {"bounds": ["int64", -1]}}, "not a list of arrays"),
        ({"arrays": {"bounds": ["int64", 3]}}, r'no array "part0\.indptr"'),
        ({"inner": ["a"]}, "no number of inner rows"),
        ({"inner": [99, 0]}, "wrong numbers of inner rows"),
    ],
)
def test_damaged_headers(tmp_path: Path, change: dict[str, Any], fact: str) -> None:
    sw.partition(ring(6), 2, out=tmp_path)
    header = tmp_path / "partition.json"
    header.write_text(json.dumps({**json.loads(header.read_text()), **change}))
    with pytest.raises(sw.InputError, match=rf"partition: cannot read .*json: {fact}$"):
        Partition.load(tmp_path)


def test_an_unfinished_folder_is_no_partition(tmp_path: Path) -> None:
    """A disk that is full is one error, and leaves neither a header nor unsorted edges."""
    ends = np.tile(ring(400), 10)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        with pytest.raises(sw.InputError, match=r"partition: cannot write .*: File too large"):
            sw.partition(ends, 2, out=tmp_path / "full")
        made = sw.partition(ends, 2)
        with pytest.raises(sw.InputError, match=r"partition: cannot write .*: File too large"):
            made.save(tmp_path / "saved")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not list(tmp_path.glob("*/spill*"))
    for name in ("full", "saved"):
        with pytest.raises(sw.InputError, match=r"cannot read .*partition\.json: No such file"):
            Partition.load(tmp_path / name)


def test_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edges, "CHUNK", 30)
    steps = list[ProgressStep]()
    with followed(steps.append):
        sw.partition(ring(40), 2)
    texts = list(dict.fromkeys(step.text for step in steps))
    assert texts == [
        *("counting edges", "finding inner rows", "sorting edges"),
        *("writing part 1 of 2", "writing part 2 of 2"),
    ]
    count = ring(40).shape[1]
    counted = [(step.done, step.total) for step in steps if step.text == "counting edges"]
    assert counted == [(n, None) for n in range(0, count, 30)]
    done = [step.done for step in steps[len(counted) :]]
    assert done == sorted(done)
    assert {step.total for step in steps[len(counted) :]} == {3 * count}
    assert done[-1] == 2 * count + count // 2


def test_no_such_part() -> None:
    found = sw.partition(ring(6), 2)
    with pytest.raises(IndexError, match="part 2 of 2"):
        found[2]


def test_text_of_a_partition_and_its_parts() -> None:
    edge_index = np.array([[0, 1, 2], [1, 2, 0]])
    partition = sw.partition(Graph.from_edge_index(edge_index, 3), 2)
    assert repr(partition) == "Partition(bounds=int64[3], order=int64[3])"
    assert repr(partition[0]) == (
        "Part(index=0, rows=(0, 2), indptr=int64[3], indices=int32[2], values=None, inner=1, "
        "halo=int64[1], owners=int64[3], sends=[int32[0], int32[1]])"
    )
