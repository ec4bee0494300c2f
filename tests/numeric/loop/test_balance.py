"""Rows in parts of about equal cost: each row once, wherever the entries are."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from xdsl.dialects.builtin import ModuleOp

import stepwell as sw
from stepwell.backends.reference.machine import ReferenceMachine, call, run_kernel
from stepwell.core.errors import CompileError
from stepwell.core.pipelines.staircase import pipeline, run_passes
from stepwell.core.registry import make_context
from stepwell.core.target import named
from stepwell.frontends import gnn
from stepwell.passes.loop.schedule import schedule_kernel
from stepwell.passes.loop.scheduler import thread_tiles
from stepwell.passes.loop.scheduler.knobs import Knobs
from stepwell.passes.loop.scheduler.replay import replay

QUICK = settings(max_examples=settings().max_examples * 40 // 100, deadline=None)
ROWS = st.one_of(
    st.lists(st.integers(0, 9), max_size=12),
    st.lists(st.just(0), max_size=5),
    st.tuples(st.integers(0, 5), st.integers(0, 5)).map(lambda n: [0] * n[0] + [90] + [1] * n[1]),
    st.lists(st.integers(0, 9), max_size=12).map(sorted),
)
"""How many entries rows have: any, none, one with most of them, the most ones last."""


def owners(labels: int, weight: int, rows: int | None, kind: str, each: int = 1) -> str:
    """A kernel that adds each label to the rows of the parts, `each` of them, which it is for."""
    y = f"memref<{'?' if rows is None else rows}xf32>"
    size = f"memref.dim %y, %c0 : {y}" if rows is None else f"arith.constant {rows} : index"
    of = f"of %parts weight {weight} : memref<?x{kind}>"
    return f"""
loop.kernel @owners(%indptr: memref<?x{kind}>, %labels: memref<{labels}xf32>) -> (%y: {y}) {{
  %c0 = arith.constant 0 : index
  %n = {size}
  %parts = arith.constant {labels * each} : index
  %zero = arith.constant 0.0 : f32
  loop.for "z" %z to {"%n" if rows is None else rows} {{
    loop.store %zero, %y (d0) -> (d0)(%z) : f32, {y}
  }}
  loop.for "t" %t to {labels} serial {{
    %label = loop.load %labels (d0) -> (d0)(%t) : memref<{labels}xf32>, f32
    %first = affine.apply affine_map<(d0) -> (d0 * {each})> (%t)
    %next = affine.apply affine_map<(d0) -> (d0 * {each} + {each})> (%t)
    %a = loop.partition_point %indptr rows %n part %first {of}
    %b = loop.partition_point %indptr rows %n part %next {of}
    loop.for "i" %i to min (d0, d1) -> (d1 - d0)(%a, %b) {{
      %old = loop.load %y (d0, d1) -> (d0 + d1)(%a, %i) : {y}, f32
      %sum = arith.addf %old, %label : f32
      loop.store %sum, %y (d0, d1) -> (d0 + d1)(%a, %i) : f32, {y}
    }}
  }}
}}"""


def begin(indptr: list[int], part: int, parts: int, weight: int) -> int:
    """The definition, in integers that do not overflow."""
    costs = [start + weight * row for row, start in enumerate(indptr)]
    return next(r for r, cost in enumerate(costs) if cost * parts >= part * costs[-1])


@QUICK
@given(
    entries=ROWS,
    parts=st.integers(1, 15),
    weight=st.one_of(st.integers(1, 9), st.just(1 << 16)),
    known=st.booleans(),
    kind=st.sampled_from(["i32", "i64"]),
    first=st.integers(0, 3),
)
@example(entries=[], parts=1, weight=1, known=False, kind="i32", first=0)
def test_parts_are_as_defined_at_every_stage(
    kernel_of, compiled_kernel, entries, parts, weight, known, kind, first
) -> None:
    """Each row is in one part, and that is the one which the definition says."""
    starts = [first, *(first + np.cumsum(entries, dtype=int)).tolist()]
    rows = len(entries)
    expected = np.zeros(rows, np.float32)
    for part in range(parts):
        ends = (begin(starts, t, parts, weight) for t in (part, part + 1))
        expected[slice(*ends)] += 2.0**part
    assert all(owner in 2.0 ** np.arange(parts) for owner in expected)
    kernel = kernel_of(owners(parts, weight, rows if known else None, kind))
    indptr = np.array(starts, kind.replace("i", "int"))
    labels = 2.0 ** np.arange(parts, dtype=np.float32)

    def arrays() -> list[np.ndarray]:
        return [indptr, labels, np.zeros(rows, np.float32)]

    run_kernel(kernel, given := arrays())
    np.testing.assert_array_equal(given[-1], expected)
    module = ModuleOp([kernel.clone()])
    for step in (pipeline()["loops"], "convert-scf-to-cf"):
        run_passes(make_context(target=named("host")), module, step)
        call(ReferenceMachine(module), next(iter(module.ops)), given := arrays())
        np.testing.assert_array_equal(given[-1], expected, step)
    compiled_kernel(kernel, given := arrays())
    np.testing.assert_array_equal(given[-1], expected)


def test_costs_near_the_end_of_64_bits(kernel_of, compiled_kernel) -> None:
    """Products of costs and numbers of parts would overflow: 2**61 entries, 2**30 parts."""
    text = owners(4, 1 << 16, None, "i64", each=1 << 28)
    rows = np.array([0, 2**58, 2**58 + 1, 2**59, 2**59, 2**60, 2**61], np.int64)
    arrays = [rows, np.arange(1, 5, dtype=np.float32), np.zeros(6, np.float32)]
    run_kernel(kernel_of(text), arrays)
    np.testing.assert_array_equal(arrays[-1], [1, 1, 1, 2, 2, 3])
    arrays[-1].fill(0)
    compiled_kernel(kernel_of(text), arrays)
    np.testing.assert_array_equal(arrays[-1], [1, 1, 1, 2, 2, 3])


def test_more_rows_than_there_are(kernel_of) -> None:
    arrays = [np.array([0, 2], np.int32), np.ones(2, np.float32), np.zeros(2, np.float32)]
    expected = r"loop.partition_point: index of dimension 0 is outside .* 0 <= index < 2, got 2"
    with pytest.raises(CompileError, match=expected):
        run_kernel(kernel_of(owners(2, 1, None, "i32")), arrays)


def products(rows: int | None, features: int, kind: str) -> str:
    """y = A x for a CSR matrix A, and the number of times that each row of y is written."""
    y = f"memref<{'?' if rows is None else rows}x{features + 1}xf32>"
    of = f"memref<?x{kind}>, memref<?x{kind}>"
    return f"""
loop.kernel @products(%indptr: memref<?x{kind}>, %indices: memref<?x{kind}>, %v: memref<?xf32>,
                      %x: memref<?x{features}xf32>, %one: memref<1xf32>) -> (%y: {y}) {{
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = memref.dim %y, %c0 : {y}
  loop.for "z" %z to {"%n" if rows is None else rows} {{
    loop.store %zero, %y (d0) -> (d0, {features})(%z) : f32, {y}
  }}
  loop.for "i" %i to {"%n" if rows is None else rows} {{
    %old = loop.load %y (d0) -> (d0, {features})(%i) : {y}, f32
    %more = loop.load %one () -> (0)() : memref<1xf32>, f32
    %count = arith.addf %old, %more : f32
    loop.store %count, %y (d0) -> (d0, {features})(%i) : f32, {y}
    loop.for "j" %j to {features} {{
      %s = loop.for "e" %p, %c of %indptr, %indices row (d0) -> (d0)(%i)
          reduction carry(%acc = %zero : f32 add) : {of} {{
        %a = loop.load %v (d0) -> (d0)(%p) : memref<?xf32>, f32
        %b = loop.load %x (d0, d1) -> (d0, d1)(%c, %j) : memref<?x{features}xf32>, f32
        %t = math.fma %a, %b, %acc : f32
        loop.yield %t : f32
      }}
      loop.store %s, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, {y}
    }}
  }}
}}"""


@QUICK
@given(
    entries=ROWS,
    factor=st.integers(1, 9),
    weight=st.integers(1, 9),
    known=st.booleans(),
    kind=st.sampled_from(["i32", "i64"]),
    steps=st.sampled_from(
        ["", "tiles(i0)", "tiles(i0); unroll(e, 3)", "split(i1, 2)", "unroll(e, 2)"]
    ),
)
def test_balanced_products_are_the_same_numbers(
    kernel_of, compiled_kernel, entries, factor, weight, known, kind, steps
) -> None:
    """Bit by bit where sums are not unrolled, every row once; interpreted and as machine code."""
    rng = np.random.default_rng(sum(entries))
    columns, features, rows = 100, 3, len(entries)
    starts = np.concatenate([[0], np.cumsum(entries, dtype=int)])
    chosen = [np.sort(rng.choice(columns, n, replace=False)) for n in entries]
    dtype = kind.replace("i", "int")
    inputs = [
        starts.astype(dtype),
        np.concatenate([*chosen, []]).astype(dtype),
        rng.standard_normal(starts[-1]).astype(np.float32),
        rng.standard_normal((columns, features)).astype(np.float32),
        np.ones(1, np.float32),
    ]
    kernel = kernel_of(products(rows if known else None, features, kind))
    run_kernel(kernel, [*inputs, expected := np.zeros((rows, features + 1), np.float32)])
    assert (expected[:, features] == 1).all()
    trace = f"balance(i, e, {factor}, weight={weight})"
    scheduled = replay(kernel, "; ".join(filter(None, [trace, steps])))
    for run in (run_kernel, compiled_kernel):
        run(scheduled, [*inputs, got := np.zeros_like(expected)])
        if "unroll" in steps:
            np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)
        else:
            np.testing.assert_array_equal(got, expected)


@pytest.fixture
def small_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiles so small that the rows of a little graph are many of them."""
    for size in ("SMALLEST", "LARGEST"):
        monkeypatch.setattr(thread_tiles, size, 200)


@pytest.mark.parametrize("hidden", [None, 7])
def test_default_shares_rows_by_their_entries(kernels, kernel_of, hidden) -> None:
    kernel = kernel_of(kernels.spmm(16, hidden))
    kernel.detach()
    schedule, _ = schedule_kernel(kernel.clone(), named("x86-64-v4"))
    assert re.match(r"balance\(i, e, \d+, weight=\d+\); tiles\(i0\); ", str(schedule))
    half = schedule_kernel(kernel, named("x86-64-v4"), Knobs(tile_scale=0.5))[0]
    rows, fewer = (int(re.findall(r"\d+", str(s))[0]) for s in (schedule, half))
    assert rows // 2 - 1 <= fewer <= rows // 2


def test_rows_weigh_more_where_they_are_more_work(kernels, kernel_of) -> None:
    def weight(text: str) -> int:
        kernel = kernel_of(text)
        kernel.detach()
        trace = str(schedule_kernel(kernel, named("x86-64-v3"))[0])
        (found,) = re.findall(r"weight=(\d+)", trace)
        return int(found)

    narrow, wide, layer = kernels.spmm(2), kernels.spmm(256), kernels.spmm(16, 64)
    assert weight(wide) < weight(narrow) < weight(layer)


def graph() -> csr_array:
    """A power law, with the rows of many entries last, and some without any."""
    rng = np.random.default_rng(3)
    degrees = np.minimum(90 // np.arange(1, 61), 50)[::-1] * (np.arange(60) % 7 > 0)
    rows = np.repeat(np.arange(60), degrees)
    columns = np.concatenate([rng.choice(60, degree, replace=False) for degree in degrees])
    return csr_array((np.ones(len(rows), np.float32), (rows, columns)), shape=(60, 60))


def layers(kind: str) -> sw.Module:
    """A layer of a network on any graph."""
    rng = np.random.default_rng(4)
    w, v = rng.standard_normal((5, 6), np.float32), rng.standard_normal((6, 3), np.float32)
    convolution = {
        "gcn": [gnn.GCNConv(w, w[0]), gnn.ReLU(), gnn.GCNConv(v, v[0])],
        "gat": [gnn.GATConv(w.T.copy(), w[None, :1], w[None, 1:2])],
        "sage": [gnn.SAGEConv(w.T.copy(), w[0], w.T.copy())],
    }
    features = sw.TensorSpec((None, 5), "f32")
    return gnn.Sequential(*convolution[kind]).to_module(gnn.GraphSpec(), features=features)


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize(
    "kind", ["sage", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("gcn", "gat"))]
)
def test_networks_after_each_pass_and_on_any_number_of_threads(kind, all_tests) -> None:
    x = np.random.default_rng(5).standard_normal((60, 5), np.float32)
    module, inputs = layers(kind), (graph(), x)
    exe = sw.compile(module, threads=1, check=inputs)
    assert "balance(i" in exe.ir("scheduled")
    expected = exe(*inputs)
    for threads in (2, 3) if all_tests else (3,):
        many = sw.compile(module, threads=threads)
        for _ in range(3):
            np.testing.assert_array_equal(many(*inputs), expected)
