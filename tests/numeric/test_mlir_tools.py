"""MLIR's own tools as a second opinion on whole models: a dense, a softmax and a sparse one."""

from __future__ import annotations

import dataclasses
import shutil
import subprocess
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from xdsl.dialects import func

import stepwell as sw
from stepwell.backends.llvm.jit import CompiledModule, Effort
from stepwell.core.target import host
from stepwell.runtime.executable import Executable

Model = tuple[sw.Module, tuple[Any, ...]]


def tool(name: str) -> str:
    found = shutil.which(f"{name}-22") or shutil.which(name)
    if found is None:
        pytest.skip(f"{name} 22 is not installed: Debian's package mlir-22-tools has it")
    return found


def piped(command: Sequence[str], text: str) -> str:
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def dense() -> Model:
    rng = np.random.default_rng(0)
    b = sw.Builder("main")
    x = b.input("x", (13, 23), "f32")
    w, bias = rng.standard_normal((33, 23), np.float32), rng.standard_normal(33, np.float32)
    b.output(b.relu(b.dense(x, w, bias)), name="y")
    return b.module(), (rng.standard_normal((13, 23), np.float32),)


def softmax() -> Model:
    b = sw.Builder("main")
    b.output(b.softmax(b.input("x", (5, 37), "f32")), name="y")
    return b.module(), (np.random.default_rng(1).standard_normal((5, 37), np.float32),)


def sparse() -> Model:
    rng = np.random.default_rng(2)
    values = rng.standard_normal((11, 9), np.float32) * (rng.random((11, 9)) < 0.4)
    b = sw.Builder("main")
    a = b.input("a", sw.SparseSpec((11, 9), "f32"))
    b.output(b.relu(b.spmm(a, rng.standard_normal((9, 16), np.float32))), name="y")
    return b.module(), (csr_array(values.astype(np.float32)),)


MODELS = {"dense": dense, "softmax": softmax, "sparse": sparse}


@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize("name", MODELS)
def test_upstream_reads_the_kernels_of_the_loops_stage(name: str, level: int) -> None:
    module, _ = MODELS[name]()
    loops = sw.from_mlir(sw.compile(module, threads=1, opt_level=level).ir("loops"))
    for function in [f for f in loops.op.ops if isinstance(f, func.FuncOp)]:
        if function.sym_name.data == "main":
            function.detach()
            function.erase()
    dialects = {op.name.partition(".")[0] for op in loops.op.walk()}
    assert dialects <= {"builtin", "func", "scf", "memref", "vector", "arith", "math"}
    assert "scf.for" in piped([tool("mlir-opt")], str(loops))


@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize("name", ["dense", "sparse"])
def test_upstream_translates_the_llvm_stage_of_a_model(name: str, level: int) -> None:
    module, inputs = MODELS[name]()
    exe = sw.compile(module, threads=1, opt_level=level)
    checked = piped([tool("mlir-opt")], exe.ir("llvm"))
    text = piped([tool("mlir-translate"), "--mlir-to-llvmir"], checked)
    code = CompiledModule(text, host(), Effort.NONE)
    program = dataclasses.replace(exe._program, entry=code.address("main"), keep=(exe, code))
    theirs = Executable(exe._signature, program, exe.ir, exe.stages, [])
    np.testing.assert_array_equal(theirs(*inputs), exe(*inputs))
    np.testing.assert_allclose(theirs(*inputs), module.run_reference(*inputs), rtol=2e-5, atol=1e-5)
