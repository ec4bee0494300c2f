"""`loop-legalize-vectors` only adds attributes: a program means, and becomes, the same."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import stepwell as sw
from stepwell.compilation import Compilation
from stepwell.core.pipelines import pipeline, run_passes
from stepwell.core.registry import make_context
from stepwell.core.target import host, named
from stepwell.dialects.loop.ops import KernelOp
from stepwell.passes.loop.legalize_vectors import legalize_vectors
from stepwell.passes.loop.vectorize import vectorize


@pytest.mark.parametrize("machine", ["x86-64-v4", "x86-64-v3", "neoverse-n1"])
@pytest.mark.parametrize("size", [1, 7, 32, 45])
def test_a_legalised_kernel_means_the_same(
    machine: str, size: int, same_before_and_after: Callable[..., KernelOp], kernels, normal
) -> None:
    """The interpreter takes legalised kernels, and computes what it did."""

    def legalised(kernel: KernelOp) -> KernelOp:
        kernel = vectorize(kernel, ["j"])
        legalize_vectors(kernel, named(machine))
        assert ("loop.vectors" in kernel.attributes) == (size > 1)
        return kernel

    inputs = [normal(3, size), np.zeros((3, size), np.float32)]
    same_before_and_after(kernels.softmax(3, size), inputs, legalised)


def test_a_legalised_program_is_one_of_stage_buffers() -> None:
    """Its text compiles to what the program does, for another machine than its own too."""
    b = sw.Builder("main")
    w = np.random.default_rng(3).standard_normal((20, 33)).astype(np.float32)
    b.output(b.exp(b.dense(b.input("x", ("n", 33)), w)), name="y")
    exe = sw.compile(b.module(), threads=1)
    buffers = Compilation(b.module(), host(), pipeline()).at("buffers")
    for target in ("neoverse-n1", "host"):
        ctx = make_context(buffers.weights, target=named(target))
        run_passes(ctx, buffers.op, "loop-legalize-vectors")
    text = str(buffers.op)
    assert "#loop.vectors<" in text
    again = sw.from_mlir(text, weights=exe.weights("buffers"))
    assert sw.compile(again, threads=1).ir("llvm") == exe.ir("llvm")
