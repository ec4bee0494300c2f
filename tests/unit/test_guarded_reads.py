"""A read that its guard alone keeps inside of its buffer stays in the guard."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Dialect, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.irdl import irdl_op_definition
from xdsl.parser import Parser

import stepwell as sw
from stepwell.backends.reference.machine import run_kernel
from stepwell.core.ir.weights import WeightStore
from stepwell.core.pipelines.staircase import run_passes
from stepwell.core.registry import make_context
from stepwell.core.target import named
from stepwell.dialects.graph.interfaces import (
    FusionKind,
    Indices,
    Nest,
    element_type,
)
from stepwell.dialects.graph.nests import scalars
from stepwell.dialects.graph.nests.guards import guarded, is_inside
from stepwell.dialects.loop.loops import enclosing
from stepwell.dialects.loop.ops import ForOp, KernelOp, LoadOp
from stepwell.driver.compilation import Compilation
from stepwell.driver.request import Request
from stepwell.frontends import gnn

from .unary import Unary

ZERO = AffineExpr.constant(0)


class Guarded(Unary):
    FUSION: ClassVar[FusionKind] = FusionKind.INJECTIVE


@irdl_op_definition
class BeforeOp(Guarded):
    """y[i, j] = x[i - 1, j], in the first row the least number."""

    name = "guarded.before"

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        row, one = index[0], AffineExpr.constant(1)
        inside = is_inside(nest, row, one, nest.extent(self.x, 0))
        place = (row + -1, index[1])
        return guarded(nest, inside, lambda _: nest.at(self.x, place), element_type(self.x))


@irdl_op_definition
class RowBeforeOp(Guarded):
    """y[i, j] = sum of x[i - 1], in the first row the least number."""

    name = "guarded.row_before"

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        row, one = index[0], AffineExpr.constant(1)
        inside = is_inside(nest, row, one, nest.extent(self.x, 0))

        def total(_: AffineExpr) -> SSAValue:
            kind = element_type(self.x)

            def step(k: Indices, so_far: SSAValue) -> SSAValue:
                return scalars.add(nest, so_far, nest.at(self.x, (row + -1, k[0])))

            size, zero = nest.extent(self.x, 1), scalars.zero(nest, kind)
            return nest.reduce([size], "add", zero, step)

        return guarded(nest, inside, total, element_type(self.x))


@irdl_op_definition
class SharesOp(Guarded):
    """y[i, j] = sum of x[i] // x[i, j] where that is not 0, else the least number."""

    name = "guarded.shares"

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        kind, divisor = element_type(self.x), nest.at(self.x, index)
        zero = scalars.zero(nest, kind)
        not_zero = nest.insert(arith.CmpiOp(divisor, zero, "ne"))

        def total(_: AffineExpr) -> SSAValue:
            def step(k: Indices, so_far: SSAValue) -> SSAValue:
                x = nest.at(self.x, (index[0], k[0]))
                return scalars.add(nest, so_far, nest.insert(arith.DivSIOp(x, divisor)))

            return nest.reduce([nest.extent(self.x, 1)], "add", zero, step)

        return guarded(nest, not_zero, total, kind)


@irdl_op_definition
class FirstOp(Guarded):
    """y[i] = x[0], which there is where i is."""

    name = "guarded.first"

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        return nest.at(self.x, (index[0] * 0,))


@irdl_op_definition
class AtBorderOp(Guarded):
    """y[i, j] = max over k < x.shape[1] of x[0, k], which needs no guard once there is a row."""

    name = "guarded.at_border"

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        def step(k: Indices, most: SSAValue) -> SSAValue:
            return scalars.maximum(nest, most, nest.at(self.x, (ZERO, k[0])))

        zero = scalars.zero(nest, element_type(self.x))
        return nest.reduce([nest.extent(self.x, 1)], "max", zero, step)


DIALECT = Dialect("guarded", [BeforeOp, RowBeforeOp, SharesOp, FirstOp, AtBorderOp])


def kernel_of(name: str, kind: str) -> KernelOp:
    ctx = make_context(WeightStore(), named("x86-64-v4"))
    ctx.load_dialect(DIALECT)
    body = f"%y = guarded.{name} %x : ({kind}) -> {kind} func.return %y : {kind}"
    text = f"func.func @main(%x: {kind}) -> {kind} {{ {body} }}"
    module = Parser(ctx, text).parse_module()
    assert isinstance(module, ModuleOp)
    module.verify()
    run_passes(ctx, module, "graph-fuse-ops,convert-graph-to-loop")
    module.verify()
    (kernel,) = [op for op in module.ops if isinstance(op, KernelOp)]
    return kernel


def interpreted(name: str, kind: str, x: np.ndarray) -> np.ndarray:
    """What the interpreter computes, which refuses accesses outside of buffers."""
    kernel = kernel_of(name, kind)
    assert "loop.fits" not in str(kernel), "no size has to be checked"
    run_kernel(kernel, [x, got := np.empty_like(x)])
    return got


def matrix(rows: int) -> np.ndarray:
    return np.arange(1, 1 + 3 * rows, dtype=np.float32).reshape(rows, 3)


@pytest.mark.parametrize("columns", ["3", "?"])
@pytest.mark.parametrize("rows", [0, 1, 4])
def test_reads_before_the_first_row(rows: int, columns: str) -> None:
    x, kind = matrix(rows), f"tensor<?x{columns}xf32>"
    shifted = np.concatenate([np.full((1, 3), -np.inf, np.float32), x])[:rows]
    np.testing.assert_array_equal(interpreted("before", kind, x), shifted)
    sums = np.repeat(shifted.sum(axis=1, keepdims=True), 3, axis=1)
    np.testing.assert_array_equal(interpreted("row_before", kind, x), sums)


def test_a_division_stays_in_its_guard_with_its_loop() -> None:
    x = np.array([[0, 2, 8], [-1, 0, 5]], np.int32)
    got = interpreted("shares", "tensor<?x?xi32>", x)
    least = np.iinfo(np.int32).min
    np.testing.assert_array_equal(got, [[least, 5, 1], [-4, least, 1]])


def test_the_first_element_is_read_where_there_is_one() -> None:
    for size in (0, 3):
        x = np.arange(5, 5 + size, dtype=np.float32)
        np.testing.assert_array_equal(interpreted("first", "tensor<?xf32>", x), np.full(size, 5.0))


@pytest.mark.parametrize(("kind", "around"), [("tensor<3x?xf32>", 1), ("tensor<?x3xf32>", 2)])
def test_what_needs_no_guard_is_hoisted(kind: str, around: int) -> None:
    """The sum over k of x[0, k] leaves all loops, or all but those that have to run."""
    (load,) = [op for op in kernel_of("at_border", kind).walk() if isinstance(op, LoadOp)]
    loops, parent = 0, load.parent_op()
    while not isinstance(parent, KernelOp):
        assert parent is not None
        loops, parent = loops + 1, parent.parent_op()
    assert loops == around


def test_sizes_that_are_checked_to_be_equal_need_no_guard() -> None:
    """The maximum and the sum of a softmax over edges leave the loop over the edges."""
    one = np.ones((4, 4), np.float32)
    module = gnn.Sequential(gnn.GATConv(one, one[None, :1], one[None, :1])).to_module(
        gnn.GraphSpec(), features=sw.TensorSpec((None, 4))
    )
    for op in Compilation.of(Request(module, threads=1)).at("kernels").op.walk():
        if isinstance(op, ForOp) and op.over_entries:
            assert not any(isinstance(loop, ForOp) and loop.over_entries for loop in enclosing(op))
