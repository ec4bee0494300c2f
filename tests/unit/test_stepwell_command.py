"""The command `stepwell`: what a newcomer types, and what is said when it is wrong."""

from __future__ import annotations

import functools
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from rich.console import Console
from scipy.sparse import csr_array, save_npz

import stepwell as sw
from stepwell.backends.reference.samples import random_inputs
from stepwell.core.boundary.specs import ValueSpec
from stepwell.core.pipelines.stages import STAGES
from stepwell.frontends import gnn
from stepwell.runtime.executable import Executable
from stepwell.tools import bench, models, timing
from stepwell.tools import main as command

from ..harness import cases


def run(args: list[str]) -> int:
    """The exit code of the command."""
    try:
        command.main(args)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 1
    return 0


@pytest.fixture(scope="module")
def weights() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(1)
    return random.standard_normal((3, 5), np.float32), random.standard_normal(3, np.float32)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory, weights: tuple[np.ndarray, np.ndarray]) -> Path:
    """A saved model `x [batch, 5] -> y [batch, 3]`."""
    path = tmp_path_factory.mktemp("model") / "m.mlir"
    b = sw.Builder("main")
    x = b.input("x", ("batch", 5), "f32")
    b.output(b.relu(b.dense(x, weights[0], bias=weights[1])), name="y")
    b.module().save(path)
    return path


def test_help_shows_the_way(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    printed = capsys.readouterr().out
    for name in ("run", "compile", "bench", "explain", "demo", "pipeline"):
        assert re.search(rf"^\W*{name} ", printed, re.MULTILINE)
    assert "stepwell demo" in printed


def test_run_writes_what_numpy_computes(
    model: Path, weights: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    x = np.random.default_rng(2).standard_normal((7, 5), np.float32)
    np.save(tmp_path / "x.npy", x)
    output = tmp_path / "y.npy"
    assert run(["run", str(model), "-i", f"x={tmp_path}/x.npy", "-o", f"y={output}"]) == 0
    expected = np.maximum(x @ weights[0].T + weights[1], 0)
    # Sums of five products in another order.
    np.testing.assert_allclose(np.load(output), expected, rtol=1e-5, atol=1e-6)


def test_run_prints_results_that_go_nowhere(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(tmp_path / "x.npy", np.zeros((1, 5), np.float32))
    assert run(["run", str(model), "-i", str(tmp_path / "x.npy")]) == 0
    assert "y 1x3 float32" in capsys.readouterr().out


@pytest.mark.parametrize("stage", cases(["optimized", "scheduled", "loops", "llvm"], ["llvm"]))
def test_run_interprets_a_stage(
    model: Path, stage: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(tmp_path / "x.npy", np.ones((2, 5), np.float32))
    assert run(["run", str(model), "-i", str(tmp_path / "x.npy")]) == 0
    compiled = capsys.readouterr().out
    assert run(["run", str(model), "-i", str(tmp_path / "x.npy"), "--at", stage]) == 0
    assert capsys.readouterr().out == compiled
    assert run(["run", str(model), "--at", "loop"]) == 1
    assert 'did you mean "loops"' in capsys.readouterr().err


@pytest.mark.parametrize("stage", STAGES)
def test_compile_emits_every_stage(
    model: Path, stage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["compile", str(model), "--emit", stage]) == 0
    printed = capsys.readouterr().out
    mark = {"llvm-ir": "define ", "asm": "main:"}.get(stage, "builtin.module")
    assert mark in printed


def test_emitted_stage_can_be_read_back(model: Path, tmp_path: Path) -> None:
    x = np.random.default_rng(3).standard_normal((4, 5), np.float32)
    output = tmp_path / "fused.mlir"
    assert run(["compile", str(model), "--emit", "fused", "-o", str(output)]) == 0
    expected = sw.compile(sw.from_mlir(model))(x)
    assert np.array_equal(sw.compile(sw.from_mlir(output))(x), expected)


def test_compile_without_a_stage_says_what_was_made(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["compile", str(model)]) == 0
    printed = capsys.readouterr().out
    assert "takes x: batchx5xf32" in printed
    assert "gives y: batchx3xf32" in printed
    assert "graph > optimized > fused" in printed


@pytest.fixture
def few_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Benchmarks measure few times."""
    monkeypatch.setattr(bench, "measure", functools.partial(timing.measure, rounds=2))


@pytest.mark.usefixtures("few_rounds")
def test_bench_compares(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bench", str(model), "--vs", "numpy", "--size", "batch=3"]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"stepwell\W.*\d", printed)
    assert re.search(r"numpy\W.*\d", printed)


def test_stages_of_the_pipeline(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["pipeline", "--level", "0", "--stages"]) == 0
    printed = capsys.readouterr().out
    assert "kernels    convert-graph-to-loop\n" in printed
    assert "scheduled  (none at this level)\n" in printed


def test_pipeline_is_text_to_edit(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["pipeline", "--level", "1", "--threads", "2"]) == 0
    text = capsys.readouterr().out
    assert "# kernels\nconvert-graph-to-loop,\n" in text
    edited = tmp_path / "passes.txt"
    edited.write_text(text.replace("graph-fuse-ops,", "graph-fuse-ops{max-ops=1},"))
    assert run(["compile", str(model), "--emit", "fused", "--pipeline", str(edited)]) == 0
    assert capsys.readouterr().out.count("graph.primitive") == 2
    assert run(["compile", str(model), "--emit", "llvm", "--pipeline", str(edited)]) == 0
    assert "llvm.func" in capsys.readouterr().out


def test_explain_tells_decisions(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", str(model)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "fused" in lines
    assert "  graph-fuse-ops" in lines
    (kernel,) = [line for line in lines if line.endswith(" [33*batch FLOP]")]
    assert kernel.startswith("    @fused_dense_relu (")


def test_explain_gives_json_to_programs(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", str(model), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told == json.loads(sw.compile(sw.from_mlir(model)).explain("json"))
    (fused,) = [d for d in told["decisions"] if d["pass"] == "graph-fuse-ops"]
    assert fused["stage"] == "fused"
    assert fused["cost"] == "33*batch FLOP"


def test_explain_on_a_terminal_says_the_same(
    model: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(["explain", str(model)]) == 0
    plain = capsys.readouterr().out
    monkeypatch.setattr(command, "out", Console(force_terminal=True, width=4000))
    assert run(["explain", str(model)]) == 0
    coloured = capsys.readouterr().out
    assert "\x1b[" in coloured
    stripped = re.sub(r"\x1b\[[0-9;]*m", "", coloured)
    assert [line.rstrip() for line in stripped.splitlines()] == plain.splitlines()


def test_explain_an_onnx_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    node = helper.make_node("Relu", ["x"], ["y"], name="act")
    floats = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2, 3]) for n in "xy"]
    graph = helper.make_graph([node], "g", floats[:1], floats[1:])
    onnx.save(helper.make_model(graph, ir_version=10), tmp_path / "m.onnx")
    assert run(["explain", str(tmp_path / "m.onnx")]) == 0
    assert '@fused_relu ("act"): one kernel for graph.relu' in capsys.readouterr().out


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["compile", "{m}", "--emit", "loop"], 'got "loop"; did you mean "loops"'),
        (["compile", "missing.onnx"], "model: no such file: missing.onnx"),
        (["compile", "{m}", "--level", "9"], "unknown opt_level, expected 0, 1, 2 or 3, got 9"),
        (["compile", "{m}", "--target", "z80"], "target: unknown name, expected host, "),
        (["compile", "{m}", "--shape", "x=1x5"], "--shape: applies to ONNX models only"),
        (["compile", "{m}", "--shape", "x=axb"], "--shape: cannot read, expected x=64x784"),
        (["compile", "README.md", "--trusted"], "--trusted: applies to MLIR text only, got READ"),
        (["explain", "missing.onnx"], "model: no such file: missing.onnx"),
        (
            ["explain", "README.md"],
            "model: unknown kind of file, expected .onnx, .pt2, .mlir or ",
        ),
        (["explain", "{m}", "--pipeline", "no.txt"], "--pipeline: cannot read no.txt: No such"),
        (["explain", "{m}", "--pipeline", "README.md"], "pipeline: cannot read '# Stepwell"),
        (["run", "{m}"], "--input: missing: x: batchx5xf32; use --input NAME=FILE.npy"),
        (["run", "{m}", "-i", "z=z.npy"], "--input: no such input, expected x=FILE.npy, got z=z"),
        (["run", "{m}", "-i", "x=no.npy"], "--input: cannot read no.npy: No such file"),
        (["run", "{m}", "-i", "x={m}"], "not an array in NumPy's format"),
        (
            ["run", "{m}", "-i", "x={f}/x.npz"],
            "x.npz: it has arrays (a, b), expected a sparse matrix of SciPy; an array is read from",
        ),
        (["run", "{f}/m.onnx"], "m.onnx is a folder"),
        (["why", "{m}", "act"], "why: the node comes before the model; stepwell why act "),
        (["export", "{m}", "-o", "{m}"], "m.mlir is a file, expected a folder"),
        (["demo", "--save", "{m}"], "--save: "),
        (["bench", "{m}", "--vs", "abacus"], "--vs: unknown peer, expected numpy, onnxruntime"),
        (["bench", "{m}", "--vs", "onnxruntime"], "--vs: onnxruntime runs ONNX models only"),
        (["bench", "{m}", "--size", "n=3"], "--size: no such symbolic size, expected batch, got n"),
        (
            ["report", "{m}", "-o", "page.txt"],
            "--output: the name does not fit a page, expected one",
        ),
        (
            ["report", "{m}", "-o", "no/page.html"],
            "--output: cannot write no/page.html: the folder",
        ),
        (["compile", "{m}", "--threads", "100000"], "wrong threads, expected 1 to 256, got 100000"),
        (["pipeline", "--threads", "257"], "wrong threads, expected 1 to 256, got 257"),
        (["bench", "{m}", "--size", "batch"], "--size: cannot read, expected batch=64, got batch"),
    ],
)
def test_errors_are_one_line(
    model: Path, args: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = model.parent
    np.savez(folder / "x.npz", a=np.zeros(2), b=np.zeros(2))
    (folder / "m.onnx").mkdir(exist_ok=True)
    args = [arg.replace("{m}", str(model)).replace("{f}", str(folder)) for arg in args]
    assert run(args) == 1
    printed = capsys.readouterr()
    assert printed.err.startswith("stepwell: error: ")
    assert message in printed.err
    assert printed.err.count("\n") == 1


def test_defects_of_the_compiler_are_called_that(
    model: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def defect(*_: object) -> None:
        raise KeyError("w0")

    monkeypatch.setattr("stepwell.tools.command.load_model", defect)
    assert run(["compile", str(model)]) == 1
    expected = "stepwell: error: internal error: KeyError: 'w0'; --traceback shows where it arose"
    assert capsys.readouterr().err.strip() == expected
    with pytest.raises(KeyError):
        run(["--traceback", "compile", str(model)])


def test_everything_unsupported_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes = [
        helper.make_node("Sotfmax", ["x"], ["h"]),
        helper.make_node("ImageDecoder", ["h"], ["y"]),
    ]
    info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2, 3]) for n in ("x", "y")]
    path = tmp_path / "bad.onnx"
    onnx.save(helper.make_model(helper.make_graph(nodes, "bad", info[:1], info[1:])), path)
    assert run(["compile", str(path)]) == 1
    shown = capsys.readouterr().err.splitlines()
    assert shown[0] == "stepwell: error: onnx: 2 parts of the model are not supported"
    assert [line.split(":")[2].split()[0] for line in shown[1:]] == ["Sotfmax", "ImageDecoder"]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    b = sw.Builder()
    with b.node("fc1"):
        b.output(b.relu(b.matmul(b.input("x", ("batch", 4)), np.eye(4, dtype=np.float32))), "y")
    path = tmp_path_factory.mktemp("saved") / "m.stepwell"
    sw.compile(b.module(), threads=1).save(path)
    return path


def test_commands_show_saved_programs(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    exe = sw.load(saved)
    assert run(["explain", str(saved)]) == 0
    assert capsys.readouterr().out == exe.explain() + "\n"
    assert run(["compile", str(saved)]) == 0
    assert "compiled before, with optimized > fused" in capsys.readouterr().out
    assert run(["compile", str(saved), "--emit", "fused"]) == 0
    assert capsys.readouterr().out == exe.ir("fused")


@pytest.mark.slow
def test_commands_use_saved_programs(
    saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    again, library = tmp_path / "again.stepwell", tmp_path / "library"
    for args, expected in (
        (["compile", "{m}", "-o", str(again), "--for", "x86-64-v3"], "takes x: batchx4xf32"),
        (["why", "fc1", "{m}"], 'node "fc1"'),
        (["profile", "{m}", "--repeat", "2"], "fused_matmul_relu"),
        (["bench", "{m}", "--size", "batch=2", "--vs", "numpy"], "stepwell"),
        (["report", "{m}", "--no-profile", "-o", str(tmp_path / "r.html")], "r.html"),
        (["export", "{m}", "-o", str(library)], "m.h"),
    ):
        assert run([arg.replace("{m}", str(saved)) for arg in args]) == 0
        assert expected in capsys.readouterr().out
    x = np.array([[-1, 2, 3, -4]], np.float32)
    np.testing.assert_array_equal(sw.load(again)(x), sw.load(saved)(x))


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["explain", "-O", "1"], "--level: m.stepwell is compiled already"),
        (["run", "--threads", "2"], "--threads: m.stepwell is compiled already"),
        (["profile", "--shape", "x=1x4"], "--shape: m.stepwell is compiled already"),
        (
            ["compile", "--emit", "graph"],
            'the one in its file, expected "optimized", got "graph"',
        ),
        (["bench", "--vs", "onnxruntime"], "--vs: onnxruntime runs ONNX models only, got m.step"),
    ],
)
def test_what_a_saved_program_refuses(
    saved: Path, args: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([args[0], str(saved), *args[1:]]) == 1
    assert message in capsys.readouterr().err


def test_model_of_an_unknown_kind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m.pt").write_bytes(b"")
    assert run(["compile", str(tmp_path / "m.pt")]) == 1
    assert "expected .onnx, .pt2, .mlir or .stepwell, got m.pt" in capsys.readouterr().err


def test_wrong_array_is_named(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(tmp_path / "x.npy", np.zeros((1, 4), np.float32))
    assert run(["run", str(model), "-i", str(tmp_path / "x.npy")]) == 1
    assert "x" in capsys.readouterr().err


def test_sparse_matrices_are_read(tmp_path: Path) -> None:
    matrix = csr_array(np.eye(3, dtype=np.float32))
    save_npz(tmp_path / "a.npz", matrix)
    read = models.read_array(tmp_path / "a.npz")
    assert (read != matrix).nnz == 0


def test_random_inputs_fit() -> None:
    specs = [
        ValueSpec("x", ("n", 4), "f16"),
        ValueSpec("i", (3,), "i64"),
        ValueSpec("m", (2,), "i1"),
        ValueSpec("a", (10, 10), "f32", "csr", 20),
    ]
    x, i, m, a = random_inputs(specs, {"n": 2})
    assert (x.shape, x.dtype) == ((2, 4), np.float16)
    assert (i.shape, i.dtype, m.dtype) == ((3,), np.int64, np.bool_)
    assert (a.shape, a.dtype, a.nnz) == ((10, 10), np.float32, 20)


def graph_network() -> sw.Module:
    convolution = gnn.GCNConv(np.eye(4, 3, dtype=np.float32))
    spec, features = gnn.EdgeListSpec(weighted=True), sw.TensorSpec((None, 4))
    return gnn.Sequential(convolution).to_module(spec, features)


def test_random_edges_are_those_of_a_graph() -> None:
    module = graph_network()
    edges, weights, x = random_inputs(module.inputs, {"nodes": 50, "edges": 400}, module)
    assert (edges.shape, edges.dtype, weights.shape, x.shape) == (
        *((2, 400), np.int64),
        *((400,), (50, 4)),
    )
    for ends in edges:
        assert (ends.min(), ends.max()) == (0, 49)
        assert len(np.unique(ends)) > 40
    assert weights.min() >= 0.5
    assert x.min() < 0
    assert np.isfinite(module.run_reference(edges, weights, x)).all()
    no_nodes = random_inputs(module.inputs, {"nodes": 0, "edges": 0}, module)
    assert [array.size for array in no_nodes] == [0, 0, 0]


def test_random_indices_are_below_the_least_size() -> None:
    b = sw.Builder("main")
    i, j, k = (b.input(name, ("n",), "i64") for name in "ijk")
    table, small = np.ones((9, 2), np.float32), np.ones((3, 2), np.float32)
    b.output(b.gather(table, i) + b.gather(small, i) + b.gather(table, b.cast(j, "i32")), "y")
    b.output(k + 1, "z")
    module = b.module()
    found = random_inputs(module.inputs, {"n": 200}, module)
    assert [set(array.tolist()) for array in found] == [{0, 1, 2}, {*range(9)}, {0}]
    exe = sw.compile(module, threads=1)
    kernels = sw.from_mlir(exe.ir("kernels"), weights=exe.weights("kernels"), trusted=True)
    assert not np.any(random_inputs(module.inputs, {"n": 9}, kernels))


@pytest.mark.usefixtures("few_rounds")
def test_commands_make_edges_of_a_graph(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, saved = tmp_path / "m.mlir", tmp_path / "m.stepwell"
    graph_network().save(path)
    sw.compile(graph_network(), threads=1, opt_level=0).save(saved)
    sizes = ["--size", "nodes=30", "--size", "edges=90"]
    assert run(["bench", str(saved), "--vs", "numpy", *sizes]) == 0
    assert "nan" not in capsys.readouterr().out
    given = list[Any]()
    monkeypatch.setattr(Executable, "profile", lambda exe, *arrays, repeat: given.append(arrays))
    for arguments in ([str(path), "--level", "0"], [str(saved)]):
        run(["profile", *arguments, *sizes])
    assert len(given) == 2
    for edges, *_ in given:
        assert len(np.unique(edges)) > 20


@pytest.mark.parametrize(
    ("seconds", "text"), [(1.234e-5, "12.3 us"), (0.00456, "4.56 ms"), (1.2, "1.2 s")]
)
def test_durations_read_well(seconds: float, text: str) -> None:
    assert timing.duration(seconds) == text


def test_measure_interleaves_its_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "WARM_SECONDS", 0.0)
    called: list[str] = []
    calls = {n: (lambda n=n: called.append(n)) for n in ("a", "b")}
    times = timing.measure(calls, seconds=0.0)
    assert "".join(called) == "ab" + "aabb" * timing.ROUNDS
    assert times["a"].minimum <= times["a"].median
