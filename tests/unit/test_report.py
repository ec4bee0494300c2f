"""The document of a report: what it says of a program, and what a page does with it."""

from __future__ import annotations

import base64
import gzip
import io
import json
import re
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import scipy.sparse as sp
from rich.console import Console

import stepwell as sw
from stepwell.core import progress
from stepwell.core.errors import InputError, StepwellError
from stepwell.core.pipelines.stages import STAGES
from stepwell.core.progress import ProgressStep
from stepwell.dialects.loop.ops import KernelOp
from stepwell.dialects.loop.trace import structure_of
from stepwell.driver.compilation import Compilation
from stepwell.driver.request import Request
from stepwell.frontends import gnn
from stepwell.passes.loop.scheduler.records import Record, write_records
from stepwell.report import weights
from stepwell.report.collecting import PSEUDO, collect
from stepwell.report.comparing import compared, read_page
from stepwell.report.document import ReportDocument, ReportedWeight, StageFunction
from stepwell.report.model_graph import module_path
from stepwell.report.sparsity import pattern
from stepwell.report.weights import weight_of
from stepwell.tools import main as command
from stepwell.tools import progress as commands

from ..harness import floats

HOSTILE = "act</script><script>alert(1)</script>"


KINDS = ("graph.conv", "graph.relu")
SOFTMAX = ("graph.softmax",)


def model() -> sw.Module:
    """Two kernels, two operators of one node, and a node with a hostile name."""
    b = sw.Builder("net")
    x = b.input("x", (8, 64), "f32")
    h = b.relu(b.dense(x, floats(128, 64), name="block/fc1"), name=HOSTILE)
    h = b.mul(b.softmax(b.dense(h, floats(16, 128), name="block/fc2"), name="twice"), 2.0)
    b.output(b.exp(h, name="twice"), name="y")
    return b.module()


def one_operator(name: str, operator: str) -> sw.Module:
    """A kernel."""
    b = sw.Builder(name)
    b.output(getattr(b, operator)(b.input("x", (8, 64), "f32"), name=name), name="y")
    return b.module()


@cache
def executable() -> sw.Executable:
    return sw.compile(model(), threads=1)


@cache
def page() -> str:
    return executable().report()


@cache
def report() -> ReportDocument:
    return collect(Compilation.of(Request(model(), "x86-64-v3", threads=1)))


def document(page: str) -> dict[str, Any]:
    """The document in a page."""
    found = re.search(r'id="document">([^<]*)<', page)
    assert found is not None
    return json.loads(gzip.decompress(base64.b64decode(found[1])))


def function(stage: str, name: str) -> StageFunction:
    (found,) = [s for s in report().stages if s.name == stage]
    return next(f for f in found.functions if f.name == name)


def nodes_of(stage: str, name: str, text: str) -> set[str]:
    """The names of the nodes of the lines of a function that contain a text."""
    found = function(stage, name)
    lines = zip(found.text.splitlines(), found.marks, strict=False)
    marks = [report().marks[mark] for line, mark in lines if text in line]
    assert marks
    return {report().nodes[node] for mark in marks for node in mark.nodes}


def origins_of(stage: str, name: str, text: str) -> set[int]:
    found = function(stage, name)
    lines = zip(found.text.splitlines(), found.marks, strict=False)
    return {o for line, mark in lines if text in line for o in report().marks[mark].origins}


def test_stages_and_kernels() -> None:
    found = report()
    assert [stage.name for stage in found.stages] == [PSEUDO, *STAGES]
    names = [kernel.name for kernel in found.kernels]
    assert names[0] == "fused_dense_relu"
    assert len(names) == 2
    assert "vectorize" in found.kernels[0].schedule
    assert [found.nodes[node] for node in found.kernels[0].nodes] == ["block/fc1", HOSTILE]
    for stage in found.stages[4:]:
        owners = {k for one in stage.functions for k in one.kernels}
        assert owners == {0, 1}, stage.name
    for stage in found.stages:
        for one in stage.functions:
            assert len(one.marks) == len(one.text.splitlines()), one.name


def test_lines_know_their_operators() -> None:
    kernel = "fused_dense_relu"
    assert nodes_of("graph", "net", "graph.relu") == {HOSTILE}
    assert nodes_of("scheduled", kernel, "arith.maximumf") == {HOSTILE}
    assert nodes_of("llvm-ir", kernel, "@llvm.fma") == {"block/fc1"}
    assert nodes_of("asm", kernel, "vfmadd") == {"block/fc1"}


def test_instructions_lead_back_to_the_schedule() -> None:
    kernel = "fused_dense_relu"
    multiplied = origins_of("scheduled", kernel, "math.fma")
    assert multiplied
    for stage, text in (("llvm", "llvm.intr.fma"), ("llvm-ir", "@llvm.fma"), ("asm", "vfmadd")):
        assert origins_of(stage, kernel, text) == multiplied, stage
    assert multiplied < origins_of(PSEUDO, kernel, " * ")


def test_most_lines_are_marked() -> None:
    for stage in report().stages:
        marks = [mark for one in stage.functions if one.kernels for mark in one.marks]
        if stage.name not in ("llvm-ir", "graph", "optimized"):
            assert sum(mark > 0 for mark in marks) > 0.6 * len(marks), stage.name


def test_pseudo_code() -> None:
    text = function(PSEUDO, "fused_dense_relu").text
    assert text.startswith("kernel fused_dense_relu(x: f32[8, 64], dense_w: f32[")
    assert "for k in range(64):  # reduction by add" in text
    assert re.search(r"acc = x\[.*0:\d+, k\] \* dense_w\[.*\] \+ acc", text)
    assert re.search(r"y\[.*\] = max\(acc, 0\)", text)


def test_graph() -> None:
    graph = report().graph
    kinds = [one.kind.removeprefix("graph.") for one in graph.operators]
    assert kinds == ["input", "dense", "relu", "dense", "softmax", "mul", "exp", "output"]
    dense, twice = graph.operators[1], graph.operators[4]
    assert (dense.name, dense.kernels, dense.path) == ("block/fc1", (0,), ("block",))
    assert (twice.name, twice.kernels, twice.types) == ("twice", (1,), ("8x16 f32",))
    # Each operator has numbers of its own, also those that one node became.
    assert not set(twice.nodes) & set(graph.operators[6].nodes)
    edges = {(edge.source, edge.target) for edge in graph.edges}
    assert edges == {(n, n + 1) for n in range(7)}


def test_attributes_and_weights_of_operators() -> None:
    b = sw.Builder("net")
    x = b.input("x", (1, 1, 5, 5), "f32")
    w = np.array([[[[np.inf, 0.0], [2.0, -2.0]]]], np.float32)
    h = b.conv(x, w, strides=(2, 1), name="conv")
    b.output(b.softmax(h, axis=-1), name="y")
    graph = collect(Compilation.of(Request(b.module(), "x86-64-v3", threads=1))).graph
    conv, softmax = (next(o for o in graph.operators if o.kind == k) for k in KINDS[:1] + SOFTMAX)
    assert {("strides", "[2, 1]"), ("groups", "1")} <= {*conv.attributes}
    assert softmax.attributes == (("axis", "-1"),)
    ((operand, number),) = conv.weights
    assert (operand, softmax.weights) == ("w", ())
    deviation = pytest.approx((8 / 3) ** 0.5)
    assert graph.weights[number] == ReportedWeight(
        "conv_w", "1x1x2x2 f32", 16, 1, -2.0, 2.0, 0.0, deviation, 0.25
    )


@pytest.mark.parametrize(
    ("array", "facts"),
    [
        (np.zeros((0, 3), np.float32), (0, 0, None, None, None, None, None)),
        (np.full(2, np.nan, np.float32), (8, 2, None, None, None, None, 0.0)),
        (np.array([True, False, True, True]), (4, 0, 0.0, 1.0, 0.75, 0.1875**0.5, 0.25)),
        (np.array([1e308, 1e308]), (16, 0, 1e308, 1e308, None, None, 0.0)),
        (
            sp.csr_array([[0.0, 3.0], [0.0, 0.0]]),
            (8, 0, 0.0, 3.0, 0.75, 1.6875**0.5, 0.75),
        ),
    ],
    ids=["empty", "nan", "bool", "huge", "sparse"],
)
def test_statistics_of_weights(array: Any, facts: tuple[Any, ...]) -> None:
    found = weight_of("w", "", array)
    assert (found.bytes, found.not_finite, found.least, found.most) == facts[:4]
    assert (found.mean, found.deviation, found.zeros) == pytest.approx(facts[4:])


def test_statistics_piece_by_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    array = floats(40, 25)
    monkeypatch.setattr(weights, "_PIECE", 7)
    found = weight_of("w", "", array)
    assert (found.least, found.most) == (array.min(), array.max())
    wide = array.astype(np.float64)
    assert (found.mean, found.deviation) == pytest.approx((wide.mean(), wide.std()))


def test_the_main_kernel_of_an_operator_comes_first() -> None:
    """The kernel before a convolution moves elements into the layout that it reads."""
    b = sw.Builder("main")
    x = b.pad(b.input("x", (1, 3, 30, 30), "f32"), [0, 0, 1, 1], [0, 0, 1, 1])
    x = b.pad(b.relu(b.conv(x, floats(64, 3, 3, 3))), [0, 0, 1, 1], [0, 0, 1, 1])
    b.output(b.relu(b.conv(x, floats(64, 64, 3, 3))), name="y")
    found = collect(Compilation.of(Request(b.module(), "x86-64-v3", threads=1)))
    conv, relu = (next(o for o in found.graph.operators if o.kind == k) for k in KINDS)
    assert [found.kernels[kernel].name for kernel in conv.kernels] == [
        "fused_blocked_conv_relu_pad",
        "fused_pad_reshape_transpose",
    ]
    assert relu.kernels == conv.kernels[:1]


def test_each_call_of_a_kernel_has_its_operators() -> None:
    """A kernel is called twice, with the result of its first call too: neither splits nor joins."""
    b = sw.Builder("net")
    x = b.input("x", (8, 16), "f32")
    first = b.relu(b.dense(x, floats(16, 16)))
    b.output(b.relu(b.dense(first, 2 * floats(16, 16))), name="y")
    found = collect(Compilation.of(Request(b.module(), threads=1)))
    assert [one.name for one in found.kernels] == ["fused_dense_relu"]
    calls = [(one.kind, one.call) for one in found.graph.operators]
    kinds = [("graph.dense", 0), ("graph.relu", 0), ("graph.dense", 1), ("graph.relu", 1)]
    assert calls == [("input", -1), *kinds, ("output", -1)]


def test_factors_of_a_normalised_matrix_belong_to_it() -> None:
    layer = gnn.Sequential(gnn.GCNConv(floats(4, 8), floats(8)))
    module = layer.to_module(gnn.GraphSpec(), sw.TensorSpec((None, 4), "f32"))
    found = collect(Compilation.of(Request(module, "x86-64-v3", threads=1)))
    (normalize,) = [one for one in found.graph.operators if one.kind == "graph.normalize"]
    assert [found.kernels[kernel].name for kernel in normalize.kernels[:1]] == [
        "fused_degree_reshape_missing_self_loops_reshape"
    ]


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("/layer1/layer1.0/conv1/Conv", ("layer1", "layer1.0", "conv1")),
        ("layer1.0.conv1", ("layer1", "0")),
        ("fc1", ()),
        ("models/net.py:12", ()),
    ],
)
def test_modules_of_a_model(name: str, path: tuple[str, ...]) -> None:
    assert module_path(name) == path


def test_passes_and_decisions() -> None:
    runs = {run.name: run for run in report().passes}
    changed = {one.function: one for one in runs["graph-fuse-ops"].differences}
    assert {"net", "fused_dense_relu"} <= changed.keys()
    assert "+    %0 = graph.dense" in changed["fused_dense_relu"].text.replace("+  ", "+    ")
    assert changed["fused_dense_relu"].removed == 0 < changed["fused_dense_relu"].added
    subjects = [one["subject"] for one in report().decisions]
    assert "@fused_dense_relu" in subjects
    assert not any("<stepwell report>" in json.dumps(one) for one in report().decisions)


def test_a_page_with_a_profile(tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    made = executable().report(file, inputs=(floats(8, 64),), repeat=2)
    assert file.read_text() == made
    assert repr(made) == f"<report, {len(made) // 1000} kB of HTML>"
    found = document(made)
    assert {row["name"] for row in found["profile"]["kernels"]} >= {"fused_dense_relu"}
    assert found["memory"]["steps"][0] == "fused_dense_relu"
    (slot,) = found["memory"]["slots"]
    assert (slot["size"], slot["first"], slot["last"]) == (8 * 128 * 4, 0, 1)


def test_a_page_is_self_contained_and_escaped() -> None:
    assert "alert(1)" not in page()
    assert HOSTILE in document(page())["nodes"]
    assert not re.search(r'(?:src|href)="', page())
    assert not re.search(r"@import|url\((?!#)", page())
    for licence in ("Copyright 2010-2026 Mike Bostock", "Copyright (c) 2012-2014 Chris Pettitt"):
        assert licence in page()


def test_symbolic_sizes_and_sparse_matrices() -> None:
    graph = gnn.Graph.from_edge_index(np.array([[0, 1, 2, 2], [1, 2, 0, 1]]), 3)
    model = gnn.Sequential(gnn.GCNConv(floats(4, 8), floats(8)), gnn.ReLU())
    module = model.to_module(gnn.GraphSpec(), sw.TensorSpec((None, 4), "f32"))
    exe = sw.compile(module, threads=1, opt_level=1)
    found = document(exe.report(inputs=(graph, floats(3, 4)), repeat=2))
    (matrix,) = found["patterns"]
    assert (matrix["shape"], matrix["entries"], matrix["columns"]) == ([3, 3], 4, 3)
    assert matrix["cells"] == [0, 0, 1, 1, 0, 1, 0, 1, 0]
    assert matrix["lengths"] == [[1, 2], [2, 1]]
    assert found["memory"]["size"] > 0
    text = "\n".join(one["text"] for one in found["stages"][0]["functions"])
    assert re.search(r"for \w+, \w+ in entries\(\w+_indptr, \w+_indices, row=", text), text


def test_the_pattern_of_a_large_matrix() -> None:
    lengths = np.arange(400) % 40
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    indices = np.concatenate([np.arange(n) for n in lengths])
    found = pattern("m", (400, 40), indptr, indices)
    assert (found.columns, len(found.cells), sum(found.cells)) == (40, 96 * 40, len(indices))
    assert found.cells[:40] == (4, 3, 2, 1) + (0,) * 36  # of rows 0 to 4
    assert found.lengths == ((0, 10), (1, 10), (2, 20), (4, 40), (8, 80), (16, 160), (32, 80))
    assert found.longest == 39
    assert pattern("m", (0, 0), np.zeros(1, np.int32), np.zeros(0, np.int32)).cells == (0,)


def test_a_module_of_a_later_stage() -> None:
    module = sw.from_mlir(executable().ir("loops"), weights=executable().weights("loops"))
    found = collect(Compilation.of(Request(module)))
    assert found.graph.operators == ()
    assert [stage.name for stage in found.stages] == list(STAGES[STAGES.index("loops") :])


def test_measured_schedules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compilation = Compilation.of(Request(model(), "x86-64-v3", threads=1))
    kernels = [op for op in compilation.at("kernels").op.ops if isinstance(op, KernelOp)]
    known = Record(structure_of(kernels[0]), "x86-64-v3", 1, "vectorize(j)", 0.75, kept=True)
    traces = {"": 1.5, "split(gone, 8)": 0.5, "vectorize(i)": None}
    others = [replace(known, trace=t, ratio=r, kept=False) for t, r in traces.items()]
    others.append(replace(known, trace="split(i, 2)", ratio=1.1, predicted=1.25))
    write_records(tmp_path / "records", [known, *others])
    monkeypatch.setenv("STEPWELL_TUNING", str(tmp_path / "records"))
    trials = collect(compilation).trials
    found = {trial.trace: trial for trial in trials}
    default = report().kernels[0].schedule
    assert found.keys() == {"", "vectorize(j)", "split(i, 2)", default}
    assert (found[default].measured, found[default].predicted) == (1.0, 1.0)
    assert (found["vectorize(j)"].measured, found["vectorize(j)"].kept) == (0.75, True)
    assert found["split(i, 2)"].predicted == 1.25  # as it was recorded
    # Older records have no prediction; scalar code has many more instructions.
    assert found[""].predicted > 4 * found["vectorize(j)"].predicted > 0


def test_errors(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"call: wrong number of inputs, expected 1 \(x\), got 2"):
        executable().report(inputs=(floats(8, 64), floats(8, 64)))
    with pytest.raises(StepwellError, match=r"report: cannot write .*: No such file or directory"):
        executable().report(tmp_path / "missing" / "report.html")


def test_two_reports(tmp_path: Path) -> None:
    """The same model for another processor, and another model, beside the first."""
    before, x = tmp_path / "before.html", floats(8, 64)
    sw.compile(model(), target="x86-64", threads=1).report(before, inputs=(x,), repeat=2)
    found = document(executable().report(inputs=(x,), repeat=2, against=before))
    against = found["against"]
    assert against["target"] == "x86-64 (x86-64)"
    profiles = (document(before.read_text())["profile"], found["profile"])
    assert against["seconds"] == [one["seconds"] for one in profiles]
    rows = {row["name"]: row for row in against["kernels"]}
    assert {row["place"] for row in rows.values()} == {"both"}
    assert all(all(row["seconds"]) for row in rows.values())
    assert "+" in rows["fused_dense_relu"]["difference"]
    assert any("register tile" in one["why"] for one in against["removed"])
    assert not {*map(str, against["removed"])} & {*map(str, against["added"])}
    same = document(compared(page(), read_page(before)))["against"]
    assert same["seconds"][1] is None

    exe = sw.compile(one_operator("other", "exp"), threads=1)
    other = document(exe.report(against=before))["against"]
    places = {row["name"]: row["place"] for row in other["kernels"]}
    assert places["fused_exp"] == "after"
    assert places["fused_dense_relu"] == "before"


def test_a_report_beside_itself(tmp_path: Path) -> None:
    path = tmp_path / "r.html"
    path.write_text(page())
    against = document(executable().report(against=path))["against"]
    assert against["removed"] == against["added"] == []
    assert {row["difference"] for row in against["kernels"]} == {""}


def packed(value: str) -> str:
    text = base64.b64encode(gzip.compress(value.encode(), mtime=0)).decode()
    return f'<script type="text/plain" id="document">{text}</script>'


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<html></html>",
        '<script type="text/plain" id="document">AAAA</script>',
        packed("no JSON"),
        packed("[]"),
        packed('{"schema": 1}'),
        packed('{"schema": 1, "x": NaN}'),
        packed('{"schema": 1, "x": 1e999}'),
        packed("[" * 100_000),
        packed('{"schema": 1, "profile": 3, "memory": 3, "target": 3, "stages": 3}'),
    ],
)
def test_what_is_not_a_report_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "r.html"
    path.write_text(text)
    fact = r"report: \S+r.html is not a page of a report, expected what `stepwell report` wrote"
    with pytest.raises(InputError, match=fact):
        compared(page(), read_page(path), other=str(path))


def test_reports_that_cannot_be_compared(tmp_path: Path) -> None:
    path = tmp_path / "r.html"
    path.write_text(packed('{"schema": 7}'))
    fact = r"r.html is a report of another version of the page, expected schema 1, got 7"
    with pytest.raises(InputError, match=fact):
        executable().report(against=path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="is not a page of a report"):
        executable().report(against=path)
    with pytest.raises(InputError, match=r"report: cannot read \S+: No such file"):
        executable().report(against=tmp_path / "missing.html")


def test_the_command_compares_pages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one_operator("net", "exp").save(tmp_path / "m.mlir")
    one, two, both = (str(tmp_path / name) for name in ("a.html", "b.html", "c.html"))
    calls = (
        [str(tmp_path / "m.mlir"), "-o", one, "--no-profile", "--target", "x86-64"],
        [str(tmp_path / "m.mlir"), "-o", two, "--no-profile", "--against", one],
        [two, one, "-o", both],
        [one, "-o", both],
        [one, two, "-o", both, "--against", two],
    )
    codes: list[object] = []
    for call in calls:
        with pytest.raises(SystemExit) as stopped:
            command.main(["report", *call])
        codes.append(stopped.value.code)
    assert codes == [0, 0, 0, 1, 1]
    errors = re.sub(r"\s+", " ", capsys.readouterr().err)
    assert "a page is read to be compared with another one, expected two reports, got a" in errors
    assert "report: three reports, expected two, got " in errors
    found = [document(Path(path).read_text()) for path in (one, two, both)]
    assert found[0]["against"] is None
    assert found[1]["against"]["removed"] == found[2]["against"]["added"] != []
    assert {**found[2], "against": None} == found[0]


def test_the_command_compares_models(tmp_path: Path) -> None:
    """Two models, and a page with a model; the second one is what the page shows."""
    paths = [str(tmp_path / name) for name in ("m.mlir", "other.mlir", "one.html", "two.html")]
    one_operator("net", "neg").save(paths[0])
    one_operator("other", "exp").save(paths[1])
    for before, after, output in ((*paths[:2], paths[2]), (paths[2], paths[0], paths[3])):
        with pytest.raises(SystemExit) as stopped:
            command.main(["report", before, after, "-o", output, "--no-profile"])
        assert stopped.value.code == 0
    for path, title, other in ((paths[2], "other", "net"), (paths[3], "net", "other")):
        found = document(Path(path).read_text())
        assert (found["title"], found["against"]["title"]) == (title, other)
        rows = {row["name"]: row["place"] for row in found["against"]["kernels"]}
        assert rows["fused_exp"] == ("after" if title == "other" else "before")


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model().save(tmp_path / "m.mlir")
    out = tmp_path / "r.html"
    options = ["--no-profile", "--target", "aarch64", "--threads", "1"]
    with pytest.raises(SystemExit) as stopped:
        command.main(["report", str(tmp_path / "m.mlir"), "-o", str(out), *options])
    assert stopped.value.code == 0
    assert re.fullmatch(
        r"wrote .*r\.html, 0\.\d MB\n", capsys.readouterr().out.replace("\n", "", 0)
    )
    found = document(out.read_text())
    assert found["target"]["name"] == "aarch64"
    assert found["profile"] is None
    (asm,) = [stage for stage in found["stages"] if stage["name"] == "asm"]
    assert "fmla" in asm["functions"][1]["text"]


def test_command_shows_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=100, color_system=None)
    monkeypatch.setattr(commands, "err", console)
    monkeypatch.setattr(progress, "AFTER", 0.0)
    out = tmp_path / "r.html"
    one_operator("net", "exp").save(tmp_path / "m.mlir")
    steps = list[ProgressStep]()
    with progress.followed(steps.append), pytest.raises(SystemExit) as stopped:
        command.main(["report", str(tmp_path / "m.mlir"), "-o", str(out), "--no-profile"])
    assert stopped.value.code == 0
    assert [step.done for step in steps] == [*range(len(steps))]
    assert (steps[-1].text, steps[-1].total) == ("code generation", len(steps))
    assert "collecting the stages" in cast(io.StringIO, console.file).getvalue()


def test_notebooks_display_matrices_of_scipy() -> None:
    made: dict[type, Any] = {}
    formatter = SimpleNamespace(for_type=made.__setitem__)
    shell = SimpleNamespace(display_formatter=SimpleNamespace(formatters={"text/html": formatter}))
    sw.load_ipython_extension(shell)
    for matrix in (sp.csr_array(np.eye(3, 5)), sp.coo_matrix(np.eye(3, 5))):
        show = next(show for kind, show in made.items() if isinstance(matrix, kind))
        assert "3 x 5" in show(matrix)
        assert show(matrix).count("<rect") == 3
    assert made[sp.sparray](sp.coo_array(np.ones(3))) is None
    wide = made[sp.sparray](sp.csr_array((100, 200)))
    assert 'width="240" height="120"' in wide, "a drawing has the proportions of the matrix"
    many = np.repeat([0, 1, *range(2, 30)], 2)
    rows = sp.csr_array((np.arange(40) < many[:, None]).astype(float))
    labels = re.findall(
        r"<td[^>]*>([0-9]+(?: to [0-9]+)?)</td><td[^>]*>\d+</td><td[^>]*><div",
        made[sp.sparray](rows),
    )
    assert labels == ["0", "1", "2 to 3", "4 to 7", "8 to 15", "16 to 29"]


@sw.kernel
def doubled(k: Any, x: Any, y: Any) -> None:
    with k.loops(*y.shape) as (i,):
        y[i] = x[i] + x[i]


def test_operators_of_a_notebook_are_named_by_the_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    """As IPython knows it; the file of a cell has a number for a name."""
    names = {"/tmp/ipykernel_1/123.py": ("Cell", "In[3]")}
    shell = SimpleNamespace(compile=SimpleNamespace(format_code_name=names.get))
    ipython = SimpleNamespace(get_ipython=lambda: shell)
    monkeypatch.setitem(sys.modules, "IPython", cast(Any, ipython))
    source = "b.output(b.relu(\n    b.input('x', (2,), 'f32')), name='y')"
    for path, name in (("/tmp/ipykernel_1/123.py", "In[3]:1"), ("/home/model.py", "model.py:1")):
        b = sw.Builder("main")
        exec(compile(source, path, "exec"), {"b": b})
        (relu,) = [op for op in b.module().op.walk() if op.name == "graph.relu"]
        assert name in str(relu.location).replace('":', ":").replace('"', "")


def test_notebooks_display_objects() -> None:
    graph = gnn.Graph.from_edge_index(np.array([[0, 1, 2, 2], [1, 2, 0, 1]]), 3)
    profile = executable().profile(floats(8, 64), repeat=2)
    for value, texts in (
        (model(), ("module net", "x: f32[8, 64]", "2 graph.dense", "dense_resource")),
        (executable(), ("y: f32[8, 16]", "one kernel for graph.dense, graph.relu")),
        (profile, ("fused_dense_relu", "per run", "of the limit", "<td", "block/fc1")),
        (doubled, ("kernel doubled", "y[i] = x[i] + x[i]")),
        (graph, ("3 x 3", "4, at most 2 in a row", "<svg")),
    ):
        found = value._repr_html_()
        assert all(text in found for text in texts), found
        assert "<script" not in found
    frame = getattr(page(), "_repr_html_")()  # noqa: B009
    assert frame.startswith('<iframe srcdoc="&lt;!doctype html&gt;')
