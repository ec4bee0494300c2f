"""Profiles: what they say of a program, and what cannot be profiled."""

from __future__ import annotations

import json
import re
import time
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import stepwell as sw
from stepwell.backends.llvm.jit import assembly
from stepwell.core.errors import InputError, StepwellError
from stepwell.core.pipelines import staircase as pipelines
from stepwell.core.target import host, named
from stepwell.diagnosis import profiling
from stepwell.driver.compilation import Compilation
from stepwell.driver.request import Request
from stepwell.frontends import gnn
from stepwell.runtime import limits as machine
from stepwell.runtime.limits import known_limits
from stepwell.runtime.profile import Profile, Row
from stepwell.tools import main as command

from ..harness import cases, floats

RUNS = 4


def mlp(batch: int | str = 8) -> sw.Module:
    b = sw.Builder("net")
    x = b.input("x", (batch, 64), "f32")
    h = b.relu(b.dense(x, floats(128, 64), name="fc1"), name="act")
    b.output(b.dense(h, floats(16, 128), name="fc2"), name="y")
    return b.module()


@cache
def executable(threads: int = 1) -> sw.Executable:
    """The perceptron, and the program with clocks that its profiles run."""
    return sw.compile(mlp(), threads=threads)


def row(rows: tuple[Row, ...], name: str) -> Row:
    (found,) = [row for row in rows if row.name == name]
    return found


def verify_profile(profile: Profile) -> None:
    """What holds for every profile."""
    assert profile.seconds > 0
    # The clock is read between kernels, too.
    assert sum(row.seconds for row in profile.kernels) <= profile.seconds
    for rows in (profile.kernels, profile.nodes):
        assert list(rows) == sorted(rows, key=lambda row: -row.seconds)
        assert all(row.seconds >= 0 for row in rows)
    nodes = sum(row.seconds for row in profile.nodes)
    assert nodes == pytest.approx(sum(row.seconds for row in profile.kernels), rel=1e-6)


@pytest.mark.parametrize("threads", [1, 2])
def test_kernels_and_nodes(threads: int) -> None:
    profile = executable(threads).profile(floats(8, 64), repeat=RUNS)
    verify_profile(profile)
    assert (profile.runs, profile.threads <= threads) == (RUNS, True)
    kernel = row(profile.kernels, "fused_dense_relu")
    assert (kernel.of, kernel.calls) == (("fc1", "act"), 1)
    assert kernel.flops == 8 * 128 * (2 * 64 + 1)
    assert kernel.bytes == 4 * (8 * 64 + 128 * 64 + 8 * 128)
    assert kernel.gflops == pytest.approx(kernel.flops / kernel.seconds / 1e9)
    assert row(profile.nodes, "fc1").flops == 8 * 128 * 2 * 64
    assert row(profile.nodes, "fc1").bytes == 4 * (8 * 64 + 128 * 64)
    assert row(profile.nodes, "act").flops == 8 * 128
    assert row(profile.nodes, "act").bytes == 4 * 8 * 128
    assert row(profile.nodes, "fc2").of == ("fused_dense",)
    assert row(profile.nodes, "fc2").seconds == row(profile.kernels, "fused_dense").seconds


def test_time_is_divided_by_what_the_machine_needs_at_least() -> None:
    profile = executable().profile(floats(8, 64), repeat=RUNS)
    limits, kernel = known_limits(1), row(profile.kernels, "fused_dense_relu")
    fc1, act = row(profile.nodes, "fc1"), row(profile.nodes, "act")
    assert kernel.bytes is not None
    least = [max(limits.seconds(n.flops or 0, n.bytes or 0, kernel.bytes)) for n in (fc1, act)]
    assert fc1.seconds / act.seconds == pytest.approx(least[0] / least[1])
    assert fc1.seconds + act.seconds == pytest.approx(kernel.seconds)
    assert kernel.limit is not None
    assert kernel.limit == pytest.approx(
        max(limits.seconds(kernel.flops or 0, kernel.bytes, kernel.bytes)) / kernel.seconds
    )
    assert kernel.bound in ("compute", "memory")


@pytest.mark.parametrize(
    ("processor", "multiply_adds"),
    [("x86-64", 0), ("x86-64-v3", 15), ("x86-64-v4", 16), ("neoverse-v2", 16)],
)
def test_the_roof_is_measured_on_registers(processor: str, multiply_adds: int) -> None:
    target = named(processor)
    text = assembly(str(machine._module(target)), target)
    loop = text[text.index("multiply_add:") : text.index("read:")]
    assert not re.findall(r"%[re][sb]p|\bsp\b|\bcall|\bbl\b", loop), "nothing is on the stack"
    assert len(re.findall("vfmadd|fmla|fmad", loop)) == multiply_adds


def limited(limit: float, bound: str, name: str = "k") -> Row:
    return Row(name, ("n",), 1, 1.0, 1.0, 1, 1, limit, bound)


def test_limits_that_are_too_low_are_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A roof that was measured on a busy machine, at first: the best measurement counts."""
    good = machine.measure_limits(1, 12)
    slow = replace(good, gflops=1e-3, known=dict.fromkeys((1 << 16, 1 << 18), 0.001))
    monkeypatch.setattr(profiling, "known_limits", lambda threads: slow)
    profile = executable().profile(floats(8, 64), repeat=RUNS)
    assert slow.gflops > 0.1
    assert min(slow.known.values()) > 0.1
    assert profile.gflops == slow.gflops
    assert profile.refused == ""
    assert all(row.limit is None or row.limit <= 1.1 for row in profile.kernels)


def test_limits_below_what_kernels_reach_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = replace(known_limits(1), gflops=1e-3)
    measured: list[int] = []
    monkeypatch.setattr(limits, "raise_by_measuring", lambda: measured.append(1))
    monkeypatch.setattr(profiling, "known_limits", lambda threads: limits)
    profile = executable().profile(floats(8, 64), repeat=RUNS)
    assert len(measured) == 3
    assert all(row.limit is row.bound is None for row in (*profile.kernels, *profile.nodes))
    sentence = (
        r'"fused_dense\w*" reached \d+% of the limit by compute, measured 4 times: '
        "the machine was too busy to measure its limits, and none are shown"
    )
    assert re.fullmatch(sentence, profile.refused)
    assert str(profile).endswith(profile.refused)
    assert json.loads(profile.json())["refused"] == profile.refused


def test_a_kernel_that_reads_some_of_a_table_loses_its_own_limit() -> None:
    b = sw.Builder("net")
    rows = b.input("rows", (16,), "i64")
    taken = b.relu(b.gather(floats(20_000, 64), rows, axis=0), name="taken")
    b.output(b.dense(taken, floats(128, 64), name="fc1"), name="y")
    profile = sw.compile(b.module(), threads=1).profile(np.arange(16), repeat=RUNS)
    assert re.match(
        r'"fused_gather\w*" reached \d+% of the limit by memory, measured 4 times: it does not '
        "read all of its operands, or memory was busy with other programs",
        profile.refused,
    )
    assert row(profile.nodes, "taken").limit is None
    assert row(profile.nodes, "fc1").limit is not None


@pytest.mark.parametrize("bound", ["compute", "memory"])
def test_a_tenth_above_a_limit_is_noise(bound: str) -> None:
    rows = (limited(1.09, bound), limited(0.5, "memory", "other"))
    assert profiling._believable(rows, ()) == (rows, (), "")


def test_rows_are_gathered_at_some_rate() -> None:
    limits = known_limits(2)
    assert all(limits.gather(rows, width) > 0.1 for rows, width in ((1, 4), (1000, 260)))


def test_the_program_itself_has_no_clock() -> None:
    exe = executable()
    exe.profile(floats(8, 64), repeat=1)
    assert "clock" not in exe.ir("llvm-ir")
    assert "rt.record" not in exe.ir("loops")


def test_results_are_those_of_a_call() -> None:
    """The program with clocks is the program: what it computes is the same, bit for bit."""
    exe, x = executable(), floats(8, 64)
    before = exe(x)
    exe.profile(x, repeat=1)
    assert exe._origin is not None
    np.testing.assert_array_equal(exe._origin.staircase._profiler._exe(x), before)  # type: ignore[attr-defined]


def test_sizes_of_the_call_count() -> None:
    exe = sw.compile(mlp("batch"), threads=1)
    small, large = (exe.profile(floats(n, 64), repeat=RUNS) for n in (1, 100))
    one, many = (row(p.kernels, "fused_dense").flops for p in (small, large))
    assert (one, many) == (2 * 16 * 128, 100 * 2 * 16 * 128)


def test_a_kernel_that_several_nodes_share() -> None:
    b = sw.Builder("net")
    x = b.input("x", (16, 32), "f32")
    for number in range(3):
        x = b.relu(b.dense(x, floats(32, 32), name=f"fc{number}"), name=f"act{number}")
    b.output(x, name="y")
    profile = sw.compile(b.module(), threads=1).profile(floats(16, 32), repeat=RUNS)
    verify_profile(profile)
    (kernel,) = profile.kernels
    assert kernel.calls == 3
    assert kernel.flops == 3 * 16 * 32 * (2 * 32 + 1)
    names = {f"{kind}{number}" for kind in ("fc", "act") for number in range(3)}
    assert {row.name for row in profile.nodes} == names
    for number in range(3):
        assert row(profile.nodes, f"fc{number}").flops == 16 * 32 * 2 * 32


def test_sparse_inputs() -> None:
    graph = gnn.Graph.from_edge_index([[0, 1, 2, 3], [1, 2, 3, 0]], 4)
    model = gnn.Sequential(gnn.GCNConv(floats(5, 3), floats(3)))
    spec = sw.SparseSpec((4, 5), "f32")
    exe = sw.compile(model.to_module(graph, features=spec), threads=1)
    x = sp.csr_array(np.eye(4, 5, dtype=np.float32))
    profile = exe.profile(x, repeat=RUNS)
    verify_profile(profile)
    checked = row(profile.kernels, 'check of input "features"')
    assert (checked.of, checked.flops, checked.limit) == (("features",), None, None)
    assert sum(row.flops or 0 for row in profile.kernels) >= 2 * 4 * 3


def test_functions_and_kernels_of_the_user() -> None:
    @sw.kernel
    def double(k: Any, x: Any, y: Any) -> None:
        with k.loops(*y.shape) as i:
            y[i] = x[i] * 2.0

    @sw.register_function("test_profile.pause")
    def pause(x: np.ndarray, y: np.ndarray) -> None:
        time.sleep(0.002)
        y[...] = x

    b = sw.Builder("net")
    x = b.input("x", (8,), "f32")
    h = b.call_packed("test_profile.pause", x, results=sw.TensorSpec((8,), "f32"), name="wait")
    b.output(b.call_kernel(double, h, results=sw.TensorSpec((8,), "f32"), name="twice"), name="y")
    profile = sw.compile(b.module(), threads=1).profile(floats(8), repeat=RUNS)
    verify_profile(profile)
    slow = row(profile.kernels, "test_profile.pause")
    assert slow.of == ("wait",)
    assert slow.seconds > 0.002
    assert slow.flops is None
    assert slow.bytes == 2 * 4 * 8
    assert row(profile.nodes, "wait").part > 0.9
    assert "double" in {row.name for row in profile.kernels}


@pytest.mark.parametrize(
    "stage", cases(["fused", "scheduled", "buffers", "loops"], ["fused", "loops"])
)
def test_modules_of_later_stages(stage: str, tmp_path: Path) -> None:
    path = tmp_path / "m.mlir"
    compilation = Compilation(Request(mlp(), host(), pipeline=pipelines.pipeline(3, 1)))
    compilation.at(stage).save(path)
    profile = sw.compile(sw.from_mlir(path), threads=1).profile(floats(8, 64), repeat=RUNS)
    verify_profile(profile)
    assert {row.name for row in profile.nodes} == {"fc1", "act", "fc2"}
    assert (row(profile.kernels, "fused_dense").flops is not None) == (stage == "fused")


def test_a_program_without_nodes() -> None:
    b = sw.Builder("net")
    b.output(b.input("x", (8,), "f32"), name="y")
    profile = sw.compile(b.module(), threads=1).profile(floats(8), repeat=RUNS)
    assert {row.name for row in profile.kernels} <= {"copy of a result"}
    assert str(profile)


def test_text_and_json() -> None:
    profile = executable().profile(floats(8, 64), repeat=RUNS)
    lines = str(profile).splitlines()
    assert f"over {RUNS} runs on 1 thread; " in lines[0]
    assert lines[2].split() == [
        "kernel",
        "us",
        "time",
        "calls",
        "GFLOP/s",
        "GB/s",
        "of",
        "the",
        "limit",
        "nodes",
    ]
    assert lines[3].endswith("fc1, act")
    told = json.loads(profile.json())
    assert told == profile.to_dict()
    assert told["schema"] == 1
    assert {"name", "nodes", "calls", "seconds", "part", "flops", "bytes"} <= set(
        told["kernels"][0]
    )
    assert told["nodes"][0]["kernels"] == ["fused_dense_relu"]
    assert told["limits"]["gflops"] > 1


def test_inputs_that_do_not_fit_are_the_error_of_a_call() -> None:
    exe = executable()
    for inputs in ((), (floats(8, 63),), (floats(8, 64).astype(np.float64),), ("x",)):
        with pytest.raises(InputError) as call:
            exe(*inputs)
        with pytest.raises(InputError) as profile:
            exe.profile(*inputs)
        assert str(profile.value) == str(call.value)


@pytest.mark.parametrize("repeat", [0, -1, 1.5, True])
def test_a_wrong_repeat(repeat: Any) -> None:
    with pytest.raises(
        InputError, match=f"profile: wrong repeat, expected 1 or more, got {repeat}"
    ):
        executable().profile(floats(8, 64), repeat=repeat)


def test_a_machine_without_a_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: int) -> int:
        raise OSError(22, "Invalid argument")

    exe = executable()
    monkeypatch.setattr(time, "clock_gettime_ns", refuse)
    with pytest.raises(StepwellError, match="profile: this machine has no steady clock that"):
        exe.profile(floats(8, 64))


def run(args: list[str]) -> int | str | None:
    try:
        command.main(args)
    except SystemExit as end:
        return end.code
    return 0


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "mlp.mlir"
    mlp("batch").save(path)
    return path


def test_command(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["profile", str(model), "--level", "1", "--threads", "1", "--repeat", str(RUNS)]
    assert run([*arguments, "--size", "batch=3"]) == 0
    printed = capsys.readouterr().out
    assert "fused_dense_relu" in printed
    assert "fc1, act" in printed
    np.save(tmp_path / "x.npy", floats(5, 64))
    assert run([*arguments, "--json", "--input", f"x={tmp_path / 'x.npy'}"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {row["name"] for row in told["nodes"]} == {"fc1", "act", "fc2"}
    assert sum(row["flops"] for row in told["kernels"]) == 5 * (128 * 129 + 16 * 256)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--repeat", "0"], "profile: wrong repeat, expected 1 or more, got 0"),
        (["--input", "z=z.npy"], "--input: no such input"),
        (["--size", "rows=3"], "--size: no such symbolic size"),
    ],
)
def test_command_with_bad_input(
    arguments: list[str], message: str, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["profile", str(model), "--threads", "1", *arguments]) == 1
    printed = capsys.readouterr().err
    assert message in printed
    assert printed.count("\n") == 1
