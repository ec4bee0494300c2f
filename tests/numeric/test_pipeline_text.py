"""The pipeline is a text: `stepwell-opt` and `sw.compile` make the same of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import random_array

import stepwell as sw
from stepwell.api.pipeline import Pipeline
from stepwell.core.pipelines.staircase import OPT_LEVELS, pipeline, pipeline_text, split_pipeline
from stepwell.core.pipelines.text import entries, plain
from stepwell.core.registry import make_context
from stepwell.driver.compilation import Compilation
from stepwell.driver.request import Request
from stepwell.frontends import gnn
from stepwell.tools import main as command
from stepwell.tools import stepwell_opt

from ..harness import RNG, cases, close, floats, same


def mlp() -> tuple[sw.Module, list[Any]]:
    b = sw.Builder("main")
    x = b.input("x", ("batch", 20), "f32")
    h = b.relu(b.dense(x, floats(33, 20), floats(33), name="fc1"), name="act")
    b.output(b.softmax(b.dense(h, floats(5, 33), name="fc2"), axis=-1), name="y")
    return b.module(), [floats(7, 20)]


def gcn() -> tuple[sw.Module, list[Any]]:
    adjacency = random_array((9, 9), density=0.3, rng=RNG, dtype=np.float32)
    graph = gnn.Graph.from_scipy((adjacency + adjacency.T).tocsr())
    layers = (gnn.GCNConv(floats(6, 4), floats(4)), gnn.ReLU(), gnn.GCNConv(floats(4, 3)))
    module = gnn.Sequential(*layers).to_module(graph, sw.TensorSpec((9, 6), "f32"))
    return module, [floats(9, 6)]


def conv() -> tuple[sw.Module, list[Any]]:
    b = sw.Builder("main")
    x = b.input("x", (1, 3, 9, 9), "f32")
    h = b.conv(x, floats(4, 3, 3, 3), floats(4), name="conv1")
    ones, statistics = np.ones(4, np.float32), floats(4) ** 2 + 0.5
    h = b.relu(b.batch_norm(h, statistics, ones, ones, statistics, epsilon=1e-5, axis=1))
    b.output(b.pool(b.pad(h, [0, 0, 1, 1], [0, 0, 0, 0]), "max", [2, 2], strides=[2, 2]), name="y")
    return b.module(), [floats(1, 3, 9, 9)]


def modules(module: sw.Module, **options: Any) -> dict[str, str]:
    """The text of each stage on one way down."""
    compilation = Compilation.of(Request(module, **options))
    work, ctx = compilation.begin()
    return {stage: work.text() for stage in compilation.descend(work, ctx)}


MODELS = pytest.mark.parametrize("model", cases([gcn, mlp, conv], [gcn]))
Model = Callable[[], tuple[sw.Module, list[Any]]]


@MODELS
@pytest.mark.parametrize("way", cases([(3, 1), (3, 2), (0, 1)], [(3, 2)]), ids=str)
def test_stepwell_opt_makes_what_compile_makes(
    model: Model, way: tuple[int, int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    level, threads = way
    module, _ = model()
    module.save(tmp_path / "m.mlir")
    read = sw.from_mlir(tmp_path / "m.mlir")
    text = Compilation.of(Request(read, threads=threads, opt_level=level)).text("llvm")
    with pytest.raises(SystemExit, match="0"):
        command.main(["pipeline", "--level", str(level), "--threads", str(threads)])
    passes = capsys.readouterr().out
    stepwell_opt.main([str(tmp_path / "m.mlir"), "-p", passes])
    assert capsys.readouterr().out == text


@MODELS
def test_compile_takes_the_text(model: Model, all_tests: bool) -> None:
    module, inputs = model()
    texts = pipeline(3, threads=1)
    plain_exe = sw.compile(module, threads=1)
    exe = sw.compile(module, pipeline=pipeline_text(texts))
    assert exe.stages == plain_exe.stages
    assert not all_tests or exe.ir("llvm-ir") == plain_exe.ir("llvm-ir")
    same(exe(*inputs), plain_exe(*inputs))
    expected = modules(module, threads=1)
    assert modules(module, pipeline=pipeline_text(texts)) == expected
    assert modules(module, pipeline=texts) == expected


def test_an_edited_text_is_what_runs() -> None:
    module, inputs = mlp()
    text = pipeline_text(pipeline(3, threads=2))
    edited = text.replace("graph-fuse-ops", "graph-fuse-ops{max-ops=1}").replace(
        "loop-schedule{threads=2},", "# without a schedule"
    )
    exe = sw.compile(module, pipeline=edited)
    assert exe.ir("fused").count("graph.primitive") == 14  # softmax is 11 operators
    assert "vector" not in exe.ir("scheduled")
    # Sums of 33 products in another order.
    close(exe(*inputs), module.run_reference(*inputs), 1e-4, atol=1e-6)


def test_a_module_of_a_later_stage_goes_on_from_there(tmp_path: Path) -> None:
    module, inputs = conv()
    exe = sw.compile(module, threads=1)
    (tmp_path / "m.mlir").write_text(exe.ir("buffers"))
    exe.weights("buffers").save(tmp_path / "m.safetensors")
    later = sw.from_mlir(tmp_path / "m.mlir")
    rest = ",".join(pipeline()[stage] for stage in ("loops", "llvm"))
    goes_on = sw.compile(later, pipeline=rest)
    assert goes_on.ir("llvm") == exe.ir("llvm")
    with pytest.raises(
        sw.CompileError, match="a pass comes too late, expected a pass that leads to"
    ):
        sw.compile(later, pipeline=pipeline_text(pipeline()))
    same(goes_on(*inputs), exe(*inputs))


@pytest.mark.parametrize("level", OPT_LEVELS)
@pytest.mark.parametrize("threads", [1, 2])
def test_the_text_falls_into_the_same_stages(level: int, threads: int) -> None:
    texts = pipeline(level, threads)
    assert split_pipeline(pipeline_text(texts)) == texts


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", 'stops short of stage "kernels", expected convert-graph-to-loop'),
        ("graph-fuse-ops", 'stops short of stage "kernels", expected convert-graph-to-loop'),
        ("convert-graph-to-loop,", 'stops short of stage "buffers", expected convert-graph-to-rt'),
        (
            "convert-graph-to-loop,convert-graph-to-rt,convert-loop-to-scf,convert-scf-to-cf",
            'stops short of stage "llvm", expected convert-to-llvm',
        ),
        (
            "convert-graph-to-loop,graph-fuse-ops",
            'expected a pass that leads to stage "scheduled" or beyond, got graph-fuse-ops',
        ),
        ("graph-fuse-ops convert-graph-to-loop", "cannot read"),
        ("graph-fuse-opz,convert-graph-to-loop", 'unknown pass "graph-fuse-opz"; nearest'),
    ],
)
def test_texts_that_do_not_lead_to_code(text: str, message: str) -> None:
    module, _ = mlp()
    with pytest.raises(sw.CompileError, match=f"pipeline: .*{message}"):
        sw.compile(module, pipeline=text)


def test_an_unknown_pass_in_the_text() -> None:
    module, _ = mlp()
    text = pipeline_text(pipeline()).replace("graph-dce", "graph-dcee")
    told = 'pipeline: unknown pass "graph-dcee"; nearest names: graph-dce'
    with pytest.raises(sw.CompileError, match=told):
        sw.compile(module, pipeline=text)


def test_arguments_that_contradict_the_text() -> None:
    module, _ = mlp()
    told = "the pipeline has another number of threads, expected 2, got 1"
    with pytest.raises(sw.CompileError, match=told):
        sw.compile(module, threads=2, pipeline=pipeline_text(pipeline()))
    with pytest.raises(sw.CompileError, match="expected 1, got 2"):
        sw.compile(module, threads=1, pipeline=sw.pipeline(threads=2))
    texts = {stage: text for stage, text in pipeline().items() if stage != "loops"}
    with pytest.raises(sw.CompileError, match='the pipeline lacks stage "loops", expected a text'):
        sw.compile(module, pipeline=texts)


def test_passes_are_added_by_name(all_tests: bool) -> None:
    names = [entry.name for entry in entries(str(sw.pipeline(threads=1)))]
    first, last = names.index("graph-simplify"), len(names) - names[::-1].index("graph-simplify")
    begun = sw.pipeline(threads=1)
    edited = begun.after("graph-simplify", "cse,graph-dce").before("graph-simplify", "symbol-dce")
    added = [*names[:first], "symbol-dce", *names[first:last], "cse", "graph-dce", *names[last:]]
    assert [entry.name for entry in entries(str(edited))] == added
    assert str(begun) == pipeline_text(pipeline())
    few = begun.replace("graph-fuse-ops", "graph-fuse-ops{max-ops=1}").replace("graph-cse", "")
    assert few["fused"] == "graph-fuse-ops{max-ops=1}"
    assert "graph-cse" not in few["optimized"]
    module, inputs = mlp()
    fused = Compilation.of(Request(module, pipeline=few, threads=1)).text("fused")
    assert fused.count("graph.primitive") == 14  # softmax is 11 operators
    if all_tests:
        exe = sw.compile(module, pipeline=few, threads=1)
        close(exe(*inputs), module.run_reference(*inputs), 1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("edit", "told"),
    [
        (lambda p: p.after("graph-simplfy", "cse"), 'unknown pass "graph-simplfy"; nearest names'),
        (lambda p: p.before("cse", "canonicalize"), 'unknown pass "cse"'),
        (lambda p: p.after("graph-dce", "cse{"), "pipeline: cannot read"),
        (lambda p: p.replace("convert-graph-to-loop", ""), 'it stops short of stage "kernels"'),
        (lambda p: p.after("convert-loop-to-scf", "graph-dce,graph-fuse-ops"), "comes too late"),
    ],
)
def test_edits_that_are_wrong(edit: Callable[[Pipeline], Pipeline], told: str) -> None:
    with pytest.raises(sw.CompileError, match=told):
        edit(sw.pipeline())


def test_comments_and_gaps_are_for_people() -> None:
    text = '\n# head\n a,\n  # b\n\tc{x=1  y="p, # q"} ,\n d{ z } \n'
    assert plain(text) == 'a,c{x=1  y="p, # q"},d{z}'


def test_decisions_name_their_stage() -> None:
    b = sw.Builder("main")
    b.output(b.relu(b.input("x", (3, 4), "f32") + 1.0))
    told = sw.compile(b.module(), pipeline=pipeline_text(pipeline())).decisions
    assert {d.stage for d in told if d.pass_name == "graph-fuse-ops"} == {"fused"}
    assert make_context().stage == ""
