"""`reduce`: small modules that fail as large ones do, and the commands `bisect` and `reduce`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

import stepwell as sw
from stepwell.core.registry import passes
from stepwell.diagnosis.reduction import Command
from stepwell.dialects.graph import ops as graph
from stepwell.driver.compilation import Compilation
from stepwell.driver.request import Request
from stepwell.tools import main, stepwell_opt

from ...harness import cases, floats

Plant = Callable[[str, Callable[[ModuleOp], None]], None]

EARLY = "graph-canonicalize-ops,graph-simplify"


def program(steps: int, seed: int = 0, size: int = 12) -> sw.Module:
    """A random program with several results, on rows of a size."""
    rng = np.random.default_rng(seed)
    b = sw.Builder("main")
    values = [b.input("x", ("n", size)), b.input("y", ("n", size))]
    weights = [rng.standard_normal((size, size)).astype(np.float32) / 4 for _ in range(4)]
    for _ in range(steps):
        one, other = (values[-1 - k] for k in rng.integers(0, min(12, len(values)), 2))
        made = [
            lambda one, other: b.dense(one, weights[rng.integers(4)]),
            lambda one, other: b.tanh(one),
            b.add,
            lambda one, other: b.mul(b.tanh(one), other),
            lambda one, other: b.sub(one, b.tanh(other)),
            lambda one, other: b.div(one, np.float32(4)),
        ]
        values.append(made[rng.integers(len(made))](one, other))
    for value in values[-4:]:
        b.output(value)
    return b.module()


@pytest.fixture
def plant(monkeypatch: pytest.MonkeyPatch) -> Plant:
    """A function that adds a mistake to a pass."""

    def add(name: str, mistake: Callable[[ModuleOp], None]) -> None:
        kind = passes()[name]()
        apply = kind.apply

        def wrong(self: ModulePass, ctx: Context, op: ModuleOp) -> None:
            apply(self, ctx, op)
            mistake(op)

        monkeypatch.setattr(kind, "apply", wrong)

    return add


def swapped(kind: type[Operation]) -> Callable[[ModuleOp], None]:
    """Let each operation of a kind have its operands the wrong way round."""

    def mistake(module: ModuleOp) -> None:
        for op in module.walk():
            if isinstance(op, kind):
                op.operands = [op.operands[1], op.operands[0]]

    return mistake


def crash_on_tanh(module: ModuleOp) -> None:
    if any(isinstance(op, graph.TanhOp) for op in module.walk()):
        raise IndexError("list index out of range")


def names(module: sw.Module) -> list[str]:
    (block,) = module.main.body.blocks
    return [op.name for op in block.ops]


@pytest.mark.parametrize(
    ("steps", "options"),
    [
        (30, {"pipeline": EARLY}),
        *(pytest.param(steps, {"threads": 1}, marks=pytest.mark.slow) for steps in (30, 200)),
    ],
)
def test_a_mistake_among_many_steps(steps: int, options: Any, plant: Plant) -> None:
    plant("graph-simplify", swapped(graph.SubOp))
    large = program(steps)
    before = len(large.weights)
    found = sw.reduce(large, **options)
    assert found.operations_before > steps
    assert found.operations < 10
    assert "graph.sub" in names(found.module)
    found.module.verify()
    assert found.blame is not None
    assert found.blame.pass_name == "graph-simplify"
    sizes = [n for spec in found.module.inputs for n in spec.shape if isinstance(n, int)]
    assert max(sizes) == 1
    assert len(found.module.weights) == 0
    assert len(large.weights) == before > 0


@pytest.mark.parametrize("steps", cases([60, 200], [60]))
def test_a_crash(
    steps: int, plant: Plant, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plant("graph-fuse-ops", crash_on_tanh)
    found = sw.reduce(program(steps), threads=1)
    assert names(found.module) == ["graph.tanh", "func.return"]
    assert found.blame is not None
    assert found.blame.diff() == ""
    path = found.save(tmp_path / "small.mlir")
    with pytest.raises(SystemExit):
        stepwell_opt.main(["--run-reproducer", str(path)])
    said = capsys.readouterr().err
    error = "graph-fuse-ops: internal error: IndexError: list index out of range"
    assert said == f"stepwell-opt: error: {error}\n"


def test_a_mistake_in_kernels(plant: Plant) -> None:
    plant("convert-loop-to-scf", swapped(arith.SubfOp))
    found = sw.reduce(program(7, seed=3, size=4), threads=1)
    assert found.operations < 8
    assert found.blame is not None
    assert found.blame.pass_name == "convert-loop-to-scf"


def test_the_module_of_a_later_stage(plant: Plant) -> None:
    b, w = sw.Builder("main"), floats(2, 2)
    x, y = b.input("x", ("n", 2)), b.input("y", ("n", 2))
    b.output(b.relu(b.dense(x, w)))
    b.output(b.sub(y, x))
    compilation = Compilation.of(Request(b.module(), threads=1))
    kernels = compilation.at("kernels")
    before = kernels.text().count("\n")
    plant("convert-loop-to-scf", swapped(arith.SubfOp))
    found = sw.reduce(kernels, threads=1)
    assert "arith.subf" in found.module.text()
    assert found.module.text().count("\n") < 2 * before / 3


def test_inputs_stay_what_they_are(plant: Plant) -> None:
    plant("graph-simplify", swapped(graph.SubOp))
    given = [floats(3, 12), floats(3, 12)]
    found = sw.reduce(program(20), given, pipeline=EARLY)
    assert [spec.shape for spec in found.module.inputs] == [("n", 12)] * 2
    assert found.operations < 10


def test_a_test_of_ones_own() -> None:
    def has_dense(module: sw.Module) -> bool:
        return "graph.dense" in names(module)

    found = sw.reduce(program(60), test=has_dense)
    assert names(found.module)[-2:] == ["graph.dense", "func.return"]
    assert found.blame is None
    with pytest.raises(sw.CompileError, match="the test does not fail the original module"):
        sw.reduce(program(5), test=lambda module: False)
    with pytest.raises(sw.CompileError, match="reduce: nothing fails; pass a test that says"):
        sw.reduce(program(3), pipeline="graph-simplify")


def test_a_command(tmp_path: Path) -> None:
    script = tmp_path / "test.sh"
    script.write_text('! grep -q graph.dense "$1"\n')
    found = sw.reduce(program(12), test=Command(f"sh {script}"))
    assert found.operations <= 3
    slow = tmp_path / "slow.py"
    slow.write_text("import time\ntime.sleep(60)\n")
    assert not Command(f"{sys.executable} {slow}", timeout=0.2)(program(1))
    with pytest.raises(sw.InputError, match="--test: cannot run /nowhere/at/all: No such file"):
        Command("/nowhere/at/all")(program(1))
    with pytest.raises(sw.InputError, match="--test: no command"):
        Command(" ")
    with pytest.raises(sw.InputError, match=r"^--test: malformed command: no closing quotation,"):
        Command("it's")


def run(args: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """The exit status of the command, and what it prints."""
    with pytest.raises(SystemExit) as stop:
        main.main(args)
    printed = capsys.readouterr()
    assert isinstance(stop.value.code, int)
    return stop.value.code, printed.out, printed.err


def test_the_commands(plant: Plant, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, found, small = (str(tmp_path / name) for name in ("m.mlir", "found.mlir", "s.mlir"))
    program(12).save(path)
    passes = ["-p", EARLY]
    status, _, said = run(["bisect", path, *passes], capsys)
    assert (status, said) == (1, "stepwell: error: bisect: nothing fails\n")
    plant("graph-simplify", swapped(graph.SubOp))
    status, shown, _ = run(["bisect", path, *passes, "-o", found], capsys)
    assert status == 0
    lines = shown.splitlines()
    assert lines[0].startswith("graph-simplify: it changes result")
    assert lines[1] == "pass 2 of 2: graph-simplify"
    assert lines[-1] == f"reproducer: {found}"
    # A reproducer brings its passes and its inputs.
    status, shown, _ = run(["bisect", found], capsys)
    assert (status, shown.splitlines()[1]) == (0, "pass 1 of 1: graph-simplify")
    status, shown, said = run(["reduce", path, *passes, "-o", small], capsys)
    assert (status, shown) == (0, "")
    assert said.startswith("reduced ")
    assert "graph.sub" in Path(small).read_text()
    status, shown, _ = run(["reduce", path, *passes], capsys)
    assert shown.startswith("builtin.module attributes {")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["-p", "canonicalise"], 'unknown pass "canonicalise"; nearest names: canonicalize'),
        (
            ["-p", "a", "--pipeline", "b"],
            "--passes: is given together with --pipeline, expected one of",
        ),
        (["--pipeline", "nowhere"], "--pipeline: cannot read nowhere: No such file or directory"),
        (["--input", "z=z.npy"], "--input: no such input, expected x=FILE.npy or y=FILE.npy"),
        (["-o", "/nowhere/found.mlir"], "--output: cannot write /nowhere/found.mlir: the folder"),
        (["--expected", "z=z.npy"], "--expected: no such expected, expected result0=FILE.npy"),
    ],
)
def test_commands_that_cannot_be_done(
    args: list[str],
    message: str,
    plant: Plant,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "m.mlir"
    program(3).save(path)
    plant("graph-simplify", crash)
    status, _, said = run(["bisect", str(path), *args], capsys)
    assert status == 1
    assert said.count("\n") == 1
    assert message in said


def crash(op: ModuleOp) -> None:
    raise IndexError("list index out of range")
