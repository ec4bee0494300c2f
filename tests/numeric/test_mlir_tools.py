"""What MLIR's own tools say of whole programs: `mlir-opt` accepts, `mlir-translate` agrees.

`tests/lit/test_lit.py` says loudly where the tools are missing.
"""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from xdsl.dialects import func

import stepwell as sw
from stepwell.backends.llvm.boundary.code import ENTRY
from stepwell.backends.llvm.jit import CompiledModule, Effort
from stepwell.core.ir.public_function import is_public
from stepwell.core.pipelines.staircase import run_passes
from stepwell.core.registry import make_context
from stepwell.core.target import host
from stepwell.runtime.executable import Executable
from stepwell.runtime.loaded import Loaded

from ..harness import RNG, cases, floats, tool

W = floats(33, 19)
Program = tuple[sw.Module, tuple[Any, ...]]


def of_mlir(name: str) -> str:
    """The path of a tool of MLIR 22."""
    return shutil.which(f"{name}-22") or tool(name, "mlir-22-tools")


def piped(command: list[str], text: str) -> str:
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def dense() -> Program:
    b = sw.Builder("main")
    b.output(b.relu(b.dense(b.input("x", ("n", 19), "f32"), W, bias=W[:, 0].copy())))
    return b.module(), (floats(7, 19),)


def softmax() -> Program:
    b = sw.Builder("main")
    b.output(b.softmax(b.input("x", ("n", 19), "f32")))
    return b.module(), (floats(7, 19),)


def spmm() -> Program:
    b = sw.Builder("main")
    a = b.input("a", sw.SparseSpec(("n", "m"), "f32"))
    b.output(b.spmm(a, b.input("x", ("m", 19), "f32")))
    kept = RNG.random((9, 33)) < 0.2
    matrix = csr_array(np.where(kept, floats(9, 33), np.float32(0)))
    return b.module(), (matrix, W)


PROGRAMS: dict[str, Callable[[], Program]] = {"dense": dense, "softmax": softmax, "spmm": spmm}


def kernels(exe: Executable) -> str:
    """The functions of the stage `loops` that hold standard dialects only.

    Tiles that threads share become functions of their own, as on the way to the next stage.
    """
    module = sw.from_mlir(exe.ir("loops"), weights=sw.WeightStore())
    run_passes(make_context(), module.op, "rt-outline-tiles")
    for function in [op for op in module.op.ops if isinstance(op, func.FuncOp)]:
        if is_public(function) or any(op.name.startswith("rt.") for op in function.walk()):
            function.detach()
    return module.text()


PAIRS = [*itertools.product(PROGRAMS, [0, 3])]


@pytest.mark.parametrize("case", cases(PAIRS, [("dense", 3), ("softmax", 0)]), ids=str)
def test_mlir_opt_accepts_the_kernels(case: tuple[str, int]) -> None:
    name, level = case
    exe = sw.compile(PROGRAMS[name]()[0], threads=1, opt_level=level)
    text = kernels(exe)
    assert text.count("scf.for") > 0
    assert ("vector<" in text) == (level == 3)
    accepted = piped([of_mlir("mlir-opt")], text)
    assert accepted.count("func.func") == text.count("func.func")
    # Unlike the parser, the passes that lower it look at every operation.
    lowering = (
        "--convert-scf-to-cf --convert-vector-to-llvm --expand-strided-metadata "
        "--lower-affine --convert-math-to-llvm --convert-arith-to-llvm "
        "--finalize-memref-to-llvm --convert-func-to-llvm --convert-cf-to-llvm "
        "--reconcile-unrealized-casts"
    )
    lowered = piped([of_mlir("mlir-opt"), *lowering.split()], text)
    assert "unrealized_conversion_cast" not in lowered


@pytest.mark.parametrize("case", cases(PAIRS, [("spmm", 3), ("dense", 0)]), ids=str)
def test_mlir_translate_agrees(case: tuple[str, int]) -> None:
    """The program that mlir-translate makes of the stage `llvm` gives the same numbers."""
    name, level = case
    module, inputs = PROGRAMS[name]()
    exe = sw.compile(module, threads=1, opt_level=level)
    checked = piped([of_mlir("mlir-opt")], exe.ir("llvm"))
    # Attributes of the program name its sparse types, whose dialect mlir-translate does not know.
    to_llvm = [of_mlir("mlir-translate"), "--mlir-to-llvmir", "--allow-unregistered-dialect"]
    theirs = piped(to_llvm, checked)
    compiled = exe._loaded.program
    entry = re.search(rf'^define [^\n]*@"{ENTRY}"\(.*?^}}', compiled.keep.llvm_ir, re.M | re.S)
    assert entry is not None
    code = CompiledModule(theirs + entry[0], host(), Effort.NONE)
    again = Executable(Loaded(replace(compiled, entry=code.address(ENTRY), keep=code)))
    expected = module.run_reference(*inputs)
    np.testing.assert_array_equal(again(*inputs), exe(*inputs))
    np.testing.assert_allclose(again(*inputs), expected, rtol=1e-4, atol=1e-5)
