"""Modules, provenance, pipelines, targets and the registry."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects import test

import stepwell as sw
from stepwell.core import registry
from stepwell.core.errors import explain
from stepwell.core.ir import provenance
from stepwell.core.ir.context import CompilerContext, decide
from stepwell.core.ir.weights import WeightStore
from stepwell.core.pipelines import staircase as pipelines
from stepwell.core.pipelines.stages import IR_STAGES, check_stage
from stepwell.core.target import named


def small_module() -> sw.Module:
    b = sw.Builder("main")
    x = b.input("x", ("n", 3), "f32")
    b.output(b.dense(x, np.ones((2, 3), np.float32), name="fc"), name="y")
    return b.module()


def test_wording_of_errors() -> None:
    text = explain("op", "fact", expected=1, got=2, origin='node "a"', hint="do this")
    assert text == 'op: fact, expected 1, got 2 (node "a"); do this'
    assert explain("op", "fact") == "op: fact"
    assert explain("op", "fact", got="x" * 5000) == f"op: fact, got {'x' * 1000}..."
    assert explain("x" * 5000, "fact") == f"{'x' * 1000}...: fact"


def test_inputs_and_outputs_of_a_module() -> None:
    module = small_module()
    assert [str(spec) for spec in module.inputs] == ["x: nx3xf32"]
    assert module.outputs[0].name == "y"
    assert module.outputs[0].dtype == "f32"


def test_a_module_needs_one_public_function() -> None:
    module = sw.from_mlir("builtin.module {}")
    with pytest.raises(sw.CompileError, match="module: one public function is needed"):
        _ = module.main


def test_saving_is_all_or_nothing(tmp_path: Path) -> None:
    module = small_module()
    module.save(tmp_path / "m.mlir")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.mlir", "m.safetensors"]
    again = sw.from_mlir(tmp_path / "m.mlir")
    assert str(again) == str(module)
    x = np.ones((4, 3), np.float32)
    np.testing.assert_array_equal(again.run_reference(x), module.run_reference(x))
    with pytest.raises(sw.StepwellError, match="save: cannot write"):
        module.save(tmp_path / "missing" / "m.mlir")
    fact = r"cannot write .*m\.safetensors: weights are written to this file"
    with pytest.raises(sw.StepwellError, match=f"^save: {fact}, expected another ending$"):
        module.save(tmp_path / "m.safetensors")
    assert str(sw.from_mlir(tmp_path / "m.mlir")) == str(module)


@pytest.mark.parametrize("is_of_weights", [True, False], ids=["weights", "text"])
def test_what_cannot_be_saved_leaves_older_files(
    is_of_weights: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **options: object) -> str:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    module = small_module()
    names = ["m.mlir", "m.safetensors"]
    for name in names:
        (tmp_path / name).write_text("older")
    kind, method = (WeightStore, "save") if is_of_weights else (sw.Module, "text")
    monkeypatch.setattr(kind, method, fails)
    with pytest.raises(sw.StepwellError, match=r"^save: cannot write .*m\.mlir: No space left"):
        module.save(tmp_path / "m.mlir")
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    assert {(tmp_path / name).read_text() for name in names} == {"older"}


def test_names_of_nodes_are_kept_and_fused() -> None:
    ops = [test.TestOp(), test.TestOp(), test.TestOp(), test.TestOp()]
    for op, name in zip(ops, ["a", "b", "a"], strict=False):
        op.location = provenance.named(name)
    assert provenance.origin(ops[0]) == 'node "a"'
    assert provenance.origin(ops[3]) is None
    both = test.TestOp()
    both.location = provenance.fuse(ops)
    assert provenance.names(both) == ("a", "b")
    assert provenance.origin(both) == 'nodes "a", "b"'
    again = test.TestOp()
    again.location = provenance.fuse([both, ops[0]])
    assert provenance.names(again) == ("a", "b")


def test_decisions_are_kept_by_our_context_only() -> None:
    ctx = CompilerContext()
    decide(ctx, "@k", "did this", "of that", "3 FLOP")
    assert str(ctx.decisions[0]) == "@k: did this, because of that [3 FLOP]"
    decide(Context(), "@k", "did this", "of that")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "graph-fuse-opz",
            'pipeline: unknown pass "graph-fuse-opz"; nearest names: graph-fuse-ops',
        ),
        ("graph-fuse-ops{", "pipeline: cannot read 'graph-fuse-ops{'"),
        ("graph-fuse-ops{no-such=1}", "graph-fuse-ops: bad options"),
    ],
)
def test_pipelines_that_are_wrong(text: str, message: str) -> None:
    with pytest.raises(sw.CompileError, match=re.escape(message)):
        pipelines.parse_passes(text, registry.passes())


def test_stages_and_levels_that_do_not_exist() -> None:
    with pytest.raises(sw.CompileError, match=r'stage: unknown name.*did you mean "loops"'):
        check_stage("loop")
    with pytest.raises(sw.CompileError, match="compile: unknown opt_level, expected 0, 1, 2 or 3"):
        pipelines.pipeline(7)


def test_every_stage_but_the_first_has_a_pipeline_of_known_passes() -> None:
    for level in pipelines.OPT_LEVELS:
        texts = pipelines.pipeline(level)
        assert tuple(texts) == IR_STAGES[1:]
        for text in texts.values():
            pipelines.parse_passes(text, registry.passes())


def test_targets() -> None:
    v3, v4 = named("x86-64-v3"), named("x86-64-v4")
    assert (v3.lanes(32), v4.lanes(32), v4.lanes(64)) == (8, 16, 8)
    assert named("host").lanes(32) >= 1
    with pytest.raises(sw.TargetError, match=r'target: unknown name, expected host, .*got "m68k"'):
        named("m68k")


def test_targets_with_a_device() -> None:
    made = named("cuda:sm_90,emulated")
    assert made.device is not None
    assert (made.device.name, made.device.emulated) == ("sm_90", True)
    assert (made.cpu, made.features) == (named("host").cpu, named("host").features)
    real = named("cuda:sm_100").device
    assert real is not None
    assert (real.name, real.features, real.emulated) == ("sm_100", "+ptx86", False)
    for name in ("cuda:sm_1,emulated", "cuda:sm_90,fast", "cuda,emulated", "cudasm_90,emulated"):
        with pytest.raises(sw.TargetError, match=f'target: unknown device, .*got "{name}"'):
            named(name)


def test_passes_are_found_by_their_file_names() -> None:
    own = registry.own_passes()
    for name in ("graph-fuse-ops", "loop-schedule", "rt-outline-tiles", "convert-graph-to-loop"):
        assert own[name]().name == name
    assert {"canonicalize", "cse"} <= set(registry.passes()), "xDSL's passes are there too"
    assert {"graph", "loop", "rt", "sparse_tensor", "scf"} <= set(registry.dialects())
