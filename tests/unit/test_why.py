"""The fate of a node: where it is, what changed it, and why nothing is left."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import stepwell as sw
from stepwell.core.errors import InputError
from stepwell.core.pipelines.stages import IR_STAGES
from stepwell.runtime.fate import Fate, NodePlace
from stepwell.tools import main as command

from ..harness import floats


def model() -> sw.Module:
    """Nodes that are fused, folded into a weight, folded to a constant, merged, and dead."""
    b = sw.Builder("net")
    x = b.input("x", (1, 3, 8, 8), "f32")
    h = b.conv(x, floats(4, 3, 3, 3), name="conv")
    h = b.batch_norm(h, *floats(3, 4), np.ones(4, np.float32), name="norm")
    h = b.relu(h, name="act")
    b.exp(h, name="dead")
    one = b.constant(floats(4, 1, 1), name="one")
    total = b.add(one, one, name="total")
    left, right = b.tanh(h, name="left"), b.tanh(h, name="right")
    b.output(b.add(b.add(left, right, name="sum"), total, name="shift"), name="y")
    return b.module()


@pytest.fixture(scope="module")
def exe() -> sw.Executable:
    return sw.compile(model(), threads=2)


def only(fate: Fate, stage: str) -> NodePlace:
    (found,) = fate.stages[stage]
    return found


def test_a_node_that_is_fused(exe: sw.Executable) -> None:
    fate = exe.why("act")
    assert tuple(fate.stages) == IR_STAGES
    assert fate.vanished is None
    place = only(fate, "graph")
    assert (place.function, place.count, place.with_) == ("net", 1, ())
    assert "graph.relu" in place.operations[0]
    fused = {place.function: place for place in fate.stages["fused"]}
    (kernel,) = [name for name in fused if name != "net"]
    assert "func.call @" + kernel in fused["net"].operations[-1]
    assert [place.function for place in fate.stages["kernels"]] == ["net", kernel]
    assert any("parallel" in loop for loop in fate.stages["kernels"][1].loops)
    assert any(name.startswith(kernel) for name in (p.function for p in fate.stages["llvm"]))
    assert any(line.endswith(f"@{kernel}") or kernel in line for line in fate.lines)
    assert "graph-fuse-ops" in {decision.pass_name for decision in fate.decisions}
    assert all("act" in decision.nodes for decision in fate.decisions)


def test_debug_lines_are_those_of_the_text(exe: sw.Executable) -> None:
    lines = exe.ir("graph").splitlines()
    (number,) = [n for n, line in enumerate(lines, 1) if "graph.relu" in line]
    assert any(f'"act", line {number} of net.graph.mlir' in line for line in exe.why("act").lines)


def test_a_node_that_goes_into_another(exe: sw.Executable) -> None:
    fate = exe.why("norm")
    assert fate.vanished is None
    assert any("graph.batch_norm" in change.before for change in fate.changes)
    assert not any("graph.batch_norm" in o for p in fate.stages["optimized"] for o in p.operations)
    assert "conv" in {name for place in fate.stages["optimized"] for name in place.with_}


def test_a_node_that_is_a_constant(exe: sw.Executable) -> None:
    fate = exe.why("total")
    (change,) = [change for change in fate.changes if change.stage == "optimized"]
    assert (change.pass_name, change.before) == ("graph-fold-constant", ("graph.add",))
    assert change.after == ("graph.constant",)
    assert any(d.pass_name == "graph-fold-constant" for d in fate.decisions)
    assert "graph-fold-constant: graph.add became graph.constant" in str(fate)


def test_nodes_that_are_merged(exe: sw.Executable) -> None:
    left, right = exe.why("left"), exe.why("right")
    assert only(left, "optimized").with_ == ("right",)
    assert only(right, "optimized").with_ == ("left",)
    assert right.vanished is None


def test_a_node_that_nothing_uses(exe: sw.Executable) -> None:
    fate = exe.why("dead")
    assert fate.stages["graph"]
    assert not fate.stages["optimized"]
    assert fate.vanished is not None
    assert fate.vanished.startswith("nothing is left of it after ")
    assert fate.vanished.endswith("(optimized): nothing used its results")
    assert str(fate).splitlines()[-1].strip() == fate.vanished
    assert "  optimized: nothing\n" in str(fate)


def test_an_input_is_a_node_too(exe: sw.Executable) -> None:
    assert exe.why("x").stages["graph"] == ()


def test_unknown_nodes(exe: sw.Executable) -> None:
    near = 'why: the model has no node "convv"; nearest names: conv'
    with pytest.raises(InputError, match=near):
        exe.why("convv")
    with pytest.raises(InputError, match=r'^why: the model has no node "zzzzzzzz"$'):
        exe.why("zzzzzzzz")


def test_a_module_without_locations(tmp_path: Path) -> None:
    path = tmp_path / "m.mlir"
    path.write_text(
        "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
        "  %y = graph.relu %x : (tensor<4xf32>) -> tensor<4xf32>\n"
        "  func.return %y : tensor<4xf32>\n}\n"
    )
    exe = sw.compile(sw.from_mlir(path), threads=1)
    with pytest.raises(InputError, match="no operation of the module has the name of a node"):
        exe.why("fc1")
    assert exe.profile(floats(4), repeat=1).nodes == ()


def test_text_and_json(exe: sw.Executable) -> None:
    fate = exe.why("conv")
    text = str(fate).splitlines()
    assert text[0] == 'node "conv"'
    assert [line.strip() for line in text if line.strip() in IR_STAGES] == list(IR_STAGES)
    told = json.loads(fate.json())
    assert told["schema"] == 1
    assert set(told["stages"]) == set(IR_STAGES)
    assert {"function", "operations", "count", "of", "with", "loops"} == set(
        told["stages"]["graph"][0]
    )


def run(args: list[str]) -> int | str | None:
    try:
        command.main(args)
    except SystemExit as end:
        return end.code
    return 0


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.mlir"
    model().save(path)
    assert run(["why", "norm", str(path), "--threads", "1"]) == 0
    assert capsys.readouterr().out.startswith('node "norm"\n  graph\n    @net (')
    assert run(["why", "norm", str(path), "--threads", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["node"] == "norm"
    assert run(["why", "norn", str(path)]) == 1
    expected = 'why: the model has no node "norn"; nearest names: norm, one, conv'
    assert capsys.readouterr().err == f"stepwell: error: {expected}\n"
