"""`loop-legalize-vectors` only adds attributes: a program means, and becomes, the same."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import stepwell as sw
from stepwell.core.pipelines.staircase import run_passes
from stepwell.core.registry import make_context
from stepwell.core.target import named
from stepwell.dialects.loop.ops import KernelOp
from stepwell.driver.compilation import Compilation
from stepwell.driver.request import Request
from stepwell.passes.loop.legalize_vectors import legalize_vectors
from stepwell.passes.loop.steps.vectorize import vectorize


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
    compilation = Compilation.of(Request(b.module(), threads=1))
    buffers = compilation.at("buffers")
    for target in ("neoverse-n1", "host"):
        ctx = make_context(buffers.weights, target=named(target))
        run_passes(ctx, buffers.op, "loop-legalize-vectors")
    text = str(buffers.op)
    assert "#loop.vectors<" in text
    again = Compilation.of(Request(sw.from_mlir(text, weights=buffers.weights), threads=1))
    assert again.text("llvm") == compilation.text("llvm")


def test_axes_are_merged_for_folds_only(kernel_of, compiled_kernel, normal) -> None:
    """Blocks of which other blocks are made row by row keep their rows apart."""
    stretched = """
    loop.kernel @stretched(%x: memref<2x4xf32>) -> (%y: memref<4xf32>, %z: memref<3x2x4xf32>) {
      %v = loop.load %x ()[s0, s1] -> (s0, s1)() : memref<2x4xf32>, vector<2x4xf32>
      %f = loop.fold %v axis 0 add : vector<2x4xf32> -> vector<1x4xf32>
      loop.store %f, %y ()[s0, s1] -> (s0 + s1)() : vector<1x4xf32>, memref<4xf32>
      %b = vector.broadcast %v : vector<2x4xf32> to vector<3x2x4xf32>
      loop.store %b, %z ()[s0, s1, s2] -> (s0, s1, s2)() : vector<3x2x4xf32>, memref<3x2x4xf32>
    }"""
    x, y, z = normal(2, 4), normal(4), normal(3, 2, 4)
    compiled_kernel(kernel_of(stretched), [x, y, z])
    np.testing.assert_array_equal(y, x[0] + x[1])
    np.testing.assert_array_equal(z, np.broadcast_to(x, z.shape))
    twice = """
    loop.kernel @twice(%x: memref<3x2x4xf32>) -> (%y: memref<3x4xf32>, %z: memref<2x4xf32>) {
      %v = loop.load %x ()[s0, s1, s2] -> (s0, s1, s2)() : memref<3x2x4xf32>, vector<3x2x4xf32>
      %f = loop.fold %v axis 1 add : vector<3x2x4xf32> -> vector<3x1x4xf32>
      loop.store %f, %y ()[s0, s1, s2] -> (s0, s1 + s2)() : vector<3x1x4xf32>, memref<3x4xf32>
      %g = loop.fold %v axis 0 add : vector<3x2x4xf32> -> vector<1x2x4xf32>
      loop.store %g, %z ()[s0, s1, s2] -> (s0 + s1, s2)() : vector<1x2x4xf32>, memref<2x4xf32>
    }"""
    x, y, z = normal(3, 2, 4), normal(3, 4), normal(2, 4)
    compiled_kernel(kernel_of(twice), [x, y, z])
    np.testing.assert_array_equal(y, x[:, 0] + x[:, 1])
    # Pairs first: the third row comes last.
    np.testing.assert_array_equal(z, x[0] + x[1] + x[2])
