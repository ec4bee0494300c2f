"""Kernels are scheduled and compiled for machines that are not here, and do not spill there.

A spill of a vector register in an innermost loop is what a register tile that is too large comes
to. LLVM marks spills, and the loops that blocks of its assembly belong to, by comments.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from dataclasses import replace

import llvmlite.binding as llvm
import numpy as np
import pytest

import stepwell as sw
from stepwell.backends.llvm import jit
from stepwell.backends.llvm.machine import machine
from stepwell.core.pipelines.staircase import pipeline
from stepwell.core.target import Target, named
from stepwell.driver.compilation import Compilation
from stepwell.driver.request import Request
from stepwell.frontends import gnn
from stepwell.tools.main import main

from ..harness import cases, close, floats

Build = Callable[[sw.Builder], object]


def built(operators: Build) -> sw.Module:
    b = sw.Builder("main")
    b.output(operators(b), name="y")
    return b.module()


def dense(rows: int | None, columns: int, inner: int, kind: str = "f32") -> sw.Module:
    def operators(b: sw.Builder) -> object:
        w = floats(columns, inner).astype({"f32": "f4", "f64": "f8"}[kind])
        return b.relu(b.dense(b.input("x", (rows, inner), kind), w, bias=w[:, 0].copy()))

    return built(operators)


def matmul(b: sw.Builder) -> object:
    return b.matmul(b.input("x", (96, 128), "f32"), b.input("z", (128, 160), "f32"))


def conv(b: sw.Builder) -> object:
    x = b.input("x", (1, 32, 30, 30), "f32")
    return b.relu(b.conv(x, floats(64, 32, 3, 3), bias=floats(64)))


def layers(features: int) -> sw.Module:
    """Sparse products of a graph at run time."""
    first = gnn.GCNConv(floats(24, features), floats(features))
    model = gnn.Sequential(first, gnn.ReLU(), gnn.GCNConv(floats(features, 7), floats(7)))
    return model.to_module(gnn.GraphSpec(), features=sw.TensorSpec((None, 24), "f32"))


MODELS: dict[str, Callable[[], sw.Module]] = {
    "matmul": lambda: built(matmul),
    "dense": lambda: dense(64, 128, 784),
    "dense of any batch": lambda: dense(None, 128, 100),
    "dense of one row": lambda: dense(1, 128, 784),
    "dense of odd sizes": lambda: dense(13, 70, 37),
    "dense in f64": lambda: dense(64, 96, 100, "f64"),
    "conv": lambda: built(conv),
    "softmax": lambda: built(lambda b: b.softmax(b.input("x", (64, 1000), "f32"))),
    "spmm of 16": lambda: layers(16),
    "spmm of 128": lambda: layers(128),
}
MACHINES = ("x86-64-v3", "x86-64-v4", "neoverse-n1", "apple-m1", "rv64gcv")
PAIRS = list(itertools.product(MODELS, MACHINES))
QUICK = ("x86-64-v3", "x86-64-v4", "rv64gcv")
"""Machines whose vectors differ in length and number; others run with all tests."""
SPARSE = [("spmm of 16", "x86-64-v3"), ("spmm of 16", "rv64gcv")]
USUAL = [pair for pair in PAIRS if pair[1] in QUICK and not pair[0].startswith("spmm")] + SPARSE
BLOCK = re.compile(r"(?:\.?L?(BB\d+_\d+):|(?:#|//|;) %bb\.\d+:)")
SPILL = re.compile(r"\b(?:[xyz]mm|[qdv])\d+\b.*-byte .*(?:Spill|Reload)")
"""A vector register, and what LLVM says of it; %xmm0 of x86-64, q0 and v0 of the others."""


def assembly(module: sw.Module, target: Target) -> str:
    """Assembly with LLVM's comments."""
    text = Compilation(Request(module, target, pipeline=pipeline())).text("llvm-ir")
    target_machine = machine(target)
    target_machine.set_asm_verbosity(True)
    effort = jit.Effort.LIGHT if " alloca " in text else jit.Effort.NONE
    return target_machine.emit_assembly(jit._optimized(text, target, target_machine, effort))


def innermost_loops(text: str) -> list[list[str]]:
    """The lines of the innermost loops of kernels."""
    loops: list[list[str]] = []
    for function in re.split(r"(?m)^(?=_?[a-z]\w*:)", text):
        if not function.lstrip("_").startswith("fused_"):
            continue
        blocks: list[tuple[str | None, list[str]]] = [(None, [])]
        for line in function.splitlines():
            if match := BLOCK.match(line):
                blocks.append((match[1], []))
            blocks[-1][1].append(line)
        own = {name: lines for name, lines in blocks if "This Inner Loop" in "".join(lines[:14])}
        for _, lines in blocks:
            header = re.search(r"in Loop: Header=(BB\d+_\d+)", "".join(lines[:2]))
            if header and header[1] in own:
                own[header[1]] = own[header[1]] + lines
        loops += own.values()
    return loops


def spills(loops: list[list[str]]) -> list[str]:
    return [line for loop in loops for line in loop if SPILL.search(line)]


@pytest.mark.parametrize("pair", cases(PAIRS, USUAL), ids="-".join)
def test_innermost_loops_do_not_spill(pair: tuple[str, str]) -> None:
    model, name = pair
    loops = innermost_loops(assembly(MODELS[model](), named(name)))
    assert loops
    fused = r"vfmadd|\bfmla\b|vfmacc"
    if model != "softmax":
        assert re.search(fused, "\n".join(line for loop in loops for line in loop))
    assert spills(loops) == []


@pytest.mark.parametrize(
    ("name", "registers"),
    [("x86-64-v3", 30), ("neoverse-n1", 40), pytest.param("rv64gcv", 60, marks=pytest.mark.slow)],
)
def test_a_tile_that_is_too_large_is_seen_to_spill(name: str, registers: int) -> None:
    """What the test above would say of a target that claims, and needs, too many registers."""
    wrong = replace(named(name), vector_registers=registers, general_registers=60, fma_latency=16)
    assert spills(innermost_loops(assembly(MODELS["dense of any batch"](), wrong)))


@pytest.mark.parametrize("name", MACHINES)
def test_lanes_are_those_of_the_machine(name: str) -> None:
    text = assembly(MODELS["dense"](), named(name))
    registers = {"x86-64-v3": "%ymm1", "x86-64-v4": "%zmm1", "rv64gcv": "v8"}
    assert re.search(registers.get(name, r"v1\.4s|fmla\.4s"), text)
    if name == "x86-64-v3":
        assert "%zmm" not in text


OTHER_X86 = "sapphirerapids" if llvm.get_host_cpu_name().startswith("znver") else "znver4"
"""A processor of the other maker; each has instructions that the other one has not."""


@pytest.mark.parametrize(
    "name",
    cases(["neoverse-n1", "apple-m1", "rv64gcv", OTHER_X86], ["neoverse-n1", "rv64gcv", OTHER_X86]),
)
def test_a_program_for_another_machine_is_looked_at_but_not_called(name: str) -> None:
    if llvm.get_process_triple().startswith(name[:2]):
        pytest.skip("needs a machine of another kind")
    module, x = MODELS["dense of odd sizes"](), floats(13, 37)
    exe = sw.compile(module, target=name)
    assert re.search(r"fmla|vfmacc|vfmadd", exe.ir("asm"))
    assert exe.ir("scheduled") == Compilation.of(Request(module, name)).text("scheduled")
    assert "register tile" in exe.explain()
    close(exe.run_at("scheduled", x), module.run_reference(x))
    for call in (exe, exe.profile, lambda x: exe(x=x)):
        with pytest.raises(sw.TargetError, match=f"^{name}: cannot run here, expected "):
            call(x)
    with pytest.raises(sw.InputError, match="wrong shape"):
        exe(x.T.copy())


@pytest.mark.parametrize("name", cases(["neoverse-n1", "rv64gcv"], ["neoverse-n1"]))
def test_commands_for_another_machine(name: str, tmp_path, capsys) -> None:
    path = tmp_path / "m.mlir"
    MODELS["dense of odd sizes"]().save(path)
    main_raises(["compile", str(path), "--emit", "asm", "--target", name])
    assert re.search(r"fmla|vfmacc|vfmadd", capsys.readouterr().out)
    main_raises(["compile", str(path), "--target", name])
    assert "register tile" in capsys.readouterr().out
    np.save(tmp_path / "x.npy", floats(13, 37))
    main_raises(["run", str(path), "--target", name, "--input", f"x={tmp_path / 'x.npy'}"])
    captured = capsys.readouterr()
    assert re.search(f"stepwell: error: {name}: cannot run here, expected ", captured.err)


def main_raises(arguments: list[str]) -> None:
    with pytest.raises(SystemExit):
        main(arguments)
