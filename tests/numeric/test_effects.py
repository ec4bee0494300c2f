"""Stores in reductions: none depends on a value that is accumulated, and operators make none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, ClassVar

import numpy as np
import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import MemRefType, f32
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineExpr
from xdsl.irdl import irdl_op_definition, operand_def, result_def

import stepwell as sw
from stepwell.core.algebra.dims import Shape
from stepwell.core.errors import CompileError, UnsupportedError
from stepwell.dialects.graph.attrs import FLOAT_TENSOR, SPARSE_TENSOR
from stepwell.dialects.graph.interfaces import FusionKind, GraphOp, ShapeFacts
from stepwell.dialects.graph.nests import scalars
from stepwell.dialects.graph.nests.buffers import Scalar
from stepwell.dialects.graph.nests.loop_nest import LoopNest
from stepwell.dialects.graph.nests.nest import Indices, WritingNest
from stepwell.dialects.graph.nests.operators import OperatorBody
from stepwell.dialects.loop.proofs.indices import Known

from .test_operators import random

EXPECTED = "a store in the loop depends on carried value 0, expected a serial loop that carries it"
ORIGIN: AffineExpr = AffineConstantExpr(0)


# Kernels in Python.


def running(k: Any, x: Any, y: Any, combine: str = "add", stored: Any = None) -> None:
    """The sum of a row up to each element, or what `stored` makes of it."""
    with k.loops(*x.shape) as (i, t):
        y[i, t] = 0
    with k.loops(x.shape[0]) as i:

        def step(t: Any, total: Any) -> Any:
            new = total + x[i, t]
            if stored is None:
                y[i, t] = new
            else:
                stored(k, y, i, t, new)
            return new

        k.reduce(x.shape[1], combine, x[0, 0] * 0, step)


def chosen(k: Any, y: Any, i: Any, t: Any, total: Any) -> None:
    y[i, t] = k.where(total > 10, 1, 0)


def combined(k: Any, y: Any, i: Any, t: Any, total: Any) -> None:
    y.accumulate((i, t), total, "add")


def placed(k: Any, y: Any, i: Any, t: Any, total: Any) -> None:
    with k.serial(1):
        y[i, k.minimum(k.maximum(k.cast(total, "i32"), 0), 3)] = 1.0


def guarded(k: Any, y: Any, i: Any, t: Any, total: Any) -> None:
    with k.serial(k.cast(k.where(total > 10, 1, 0), "i32")):
        y[i, t] = 1.0


def serial(k: Any, y: Any, i: Any, t: Any, total: Any) -> None:
    def step(_: Any, before: Any) -> tuple[Any]:
        y[i, t] = before
        return (before,)

    k.carry(2, [total], step)


def program(kernel: Callable[..., None]) -> sw.Executable:
    b = sw.Builder()
    x = b.input("x", ("n", "m"), "f32")
    b.output(b.call_kernel(sw.kernel(kernel), x, results=sw.TensorSpec(("n", "m"))))
    return sw.compile(b.module(), threads=2)


@pytest.mark.parametrize("stored", [None, chosen, combined, placed, guarded, serial])
def test_a_kernel_does_not_store_what_it_accumulates(stored: Any) -> None:
    with pytest.raises(CompileError, match=f"{EXPECTED}, such as k.carry, got a reduction by add"):
        program(lambda k, x, y: running(k, x, y, stored=stored))


def test_a_kernel_does_not_store_what_it_accumulates_over_a_row() -> None:
    def leak(k: Any, a: Any, x: Any, y: Any) -> None:
        with k.loops(*y.shape) as i:

            def step(column: Any, value: Any, total: Any) -> Any:
                y[i] = total
                return total + value * x[column]

            k.reduce(a.row(i), "add", x[0] * 0, step)

    b = sw.Builder()
    a, x = b.input("a", sw.SparseSpec(("n", "m"), "f32")), b.input("x", ("m",), "f32")
    with pytest.raises(CompileError, match=EXPECTED):
        b.call_kernel(sw.kernel(leak), a, x, results=sw.TensorSpec(("n",)))


def test_what_keeps_its_order_or_is_not_accumulated_may_be_stored() -> None:
    def carried(k: Any, x: Any, y: Any) -> None:
        with k.loops(x.shape[0]) as i:

            def step(t: Any, total: Any) -> tuple[Any]:
                y[i, t] = total + x[i, t]
                return (total + x[i, t],)

            k.carry(x.shape[1], [x[0, 0] * 0], step)

    def doubled(k: Any, x: Any, y: Any) -> None:
        with k.loops(x.shape[0]) as i:

            def step(t: Any, total: Any) -> Any:
                y[i, t] = x[i, t] * 2
                return total + x[i, t]

            k.reduce(x.shape[1], "add", x[0, 0] * 0, step)

    def custom(k: Any, x: Any, y: Any) -> None:
        running(k, x, y, "custom")

    x = random((5, 39))
    for kernel, expected in ((carried, x.cumsum(1)), (custom, x.cumsum(1)), (doubled, 2 * x)):
        # The order of additions is that of NumPy.
        np.testing.assert_allclose(program(kernel)(x), expected, rtol=1e-6, atol=1e-6)


# Text.


def test_a_kernel_as_text_does_not_store_what_it_accumulates() -> None:
    text = """
func.func @main(%x: tensor<40xf32>) -> tensor<40xf32> {
  %y = graph.call_dps @k(%x) : (tensor<40xf32>) -> tensor<40xf32>
  func.return %y : tensor<40xf32>
}
loop.kernel @k(%x: memref<40xf32>) -> (%y: memref<40xf32>) {
  %z = arith.constant 0.0 : f32
  %s = loop.for "k" %k to 40 reduction carry(%acc = %z : f32 add) {
    %v = loop.load %x (d0) -> (d0)(%k) : memref<40xf32>, f32
    %t = arith.addf %acc, %v : f32
    loop.store %t, %y (d0) -> (d0)(%k) : f32, memref<40xf32>
    loop.yield %t : f32
  }
}
"""
    with pytest.raises(sw.StepwellError, match=EXPECTED):
        sw.from_mlir(text)
    exe = sw.compile(sw.from_mlir(text.replace("reduction", "serial").replace(" add)", ")")))
    x = random((40,))
    np.testing.assert_allclose(exe(x), x.cumsum(), rtol=1e-6, atol=1e-6)


# Operators of plug-ins.


@irdl_op_definition
class RowsOp(GraphOp):
    """An operator whose `DOES` is called with the nest and the index of each row."""

    name = "effects.rows"
    FUSION: ClassVar[FusionKind] = FusionKind.NEST
    DOES: ClassVar[Callable[..., Any]]
    FACTOR: ClassVar[int] = 1

    x = operand_def(FLOAT_TENSOR)
    result = result_def(FLOAT_TENSOR)
    assembly_format = "$x attr-dict `:` functional-type(operands, results)"

    def __init__(self, x: SSAValue, result_type: Attribute | None = None) -> None:
        super().__init__(operands=[x], result_type=result_type)

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        return [shapes[0]]

    def reference(self, *arrays: Any) -> tuple[np.ndarray, ...]:
        (x,) = arrays
        return self.stored(np.repeat(self.FACTOR * x.sum(1, keepdims=True), x.shape[1], 1))

    def write(self, k: Any, *_: Any) -> None:
        nest: WritingNest = k.nest
        nest.fill(0, lambda index: nest.constant(0.0, f32))
        with nest.loops([nest.extent(self.x, 0)]) as (row,):
            type(self).DOES(self, nest, row)


Term = Callable[[Indices], SSAValue]


def total(op: RowsOp, nest: WritingNest, row: AffineExpr, term: Term | None = None) -> SSAValue:
    """The sum of a row of x, or of terms at its indices."""

    def step(k: Indices, total: SSAValue) -> SSAValue:
        index = (row, *k)
        return scalars.add(nest, total, nest.at(op.x, index) if term is None else term(index))

    return nest.reduce([nest.extent(op.x, 1)], "add", nest.constant(0.0, f32), step)


def spread(op: RowsOp, nest: WritingNest, row: AffineExpr, value: SSAValue) -> None:
    with nest.loops([nest.extent(op.x, 1)]) as (column,):
        nest.update(0, (row, column), value)


def compiled(does: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> sw.Executable:
    monkeypatch.setattr(RowsOp, "DOES", staticmethod(does), raising=False)
    b = sw.Builder()
    b.output(b.apply(RowsOp, b.input("x", ("n", "m"), "f32")))
    return sw.compile(b.module(), threads=2, check=True)


def updates(op: RowsOp, nest: WritingNest, row: AffineExpr) -> None:
    def term(index: Indices) -> SSAValue:
        nest.update(0, index, nest.at(op.x, index), "add")
        return nest.at(op.x, index)

    total(op, nest, row, term)


def writes(op: RowsOp, nest: WritingNest, row: AffineExpr) -> None:
    def term(index: Indices) -> SSAValue:
        nest.write(0, index, nest.at(op.x, index))
        return nest.at(op.x, index)

    total(op, nest, row, term)


def puts(op: RowsOp, nest: WritingNest, row: AffineExpr) -> None:
    """A reduction whose local buffer is around it."""
    buffer = nest.local((AffineConstantExpr(1),), f32)
    buffer.put((ORIGIN,), nest.constant(0.0, f32))

    def term(index: Indices) -> SSAValue:
        buffer.put((ORIGIN,), nest.at(op.x, index), "add")
        return nest.at(op.x, index)

    total(op, nest, row, term)
    spread(op, nest, row, buffer.at((ORIGIN,)))


def guards_update(op: RowsOp, nest: WritingNest, row: AffineExpr) -> None:
    """An update in a loop in a step."""

    def term(index: Indices) -> SSAValue:
        value = nest.at(op.x, index)
        positive = scalars.less(nest, nest.constant(0.0, f32), value)
        k = OperatorBody(op, nest)
        with k.only_if(Scalar(k, positive)):
            nest.update(0, index, value)
        return value

    total(op, nest, row, term)


@pytest.mark.parametrize("does", [updates, writes, puts, guards_update])
def test_the_step_of_a_reduction_does_not_write(
    does: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    message = "effects.rows: writes in the step of a reduction, expected a step of nest.serial"
    with pytest.raises(UnsupportedError, match=message):
        compiled(does, monkeypatch)


@irdl_op_definition
class EntriesOp(GraphOp):
    """A sparse matrix as a dense one, written where a reduction visits its entries."""

    name = "effects.entries"
    FUSION: ClassVar[FusionKind] = FusionKind.NEST

    x = operand_def(SPARSE_TENSOR)
    result = result_def(FLOAT_TENSOR)
    assembly_format = "$x attr-dict `:` functional-type(operands, results)"

    def __init__(self, x: SSAValue, result_type: Attribute | None = None) -> None:
        super().__init__(operands=[x], result_type=result_type)

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        return [shapes[0]]

    def reference(self, *arrays: Any) -> tuple[np.ndarray, ...]:
        return self.stored(arrays[0].toarray())

    def write(self, k: Any, *_: Any) -> None:
        nest: WritingNest = k.nest

        def step(position: AffineExpr, column: AffineExpr, total: SSAValue) -> SSAValue:
            value = nest.stored_entry(self.x, position)
            nest.update(0, (row, column), value)
            return scalars.add(nest, total, value)

        nest.fill(0, lambda index: nest.constant(0.0, f32))
        with nest.loops([nest.extent(self.x, 0)]) as (row,):
            nest.pattern(self.x, row, "add", nest.constant(0.0, f32), step)


def test_a_reduction_over_entries_does_not_write() -> None:
    b = sw.Builder()
    matrix = b.input("x", sw.SparseSpec(("n", "m"), "f32"))
    b.output(b.apply(EntriesOp, matrix))
    with pytest.raises(UnsupportedError, match="entries: writes in the step of a reduction"):
        sw.compile(b.module(), threads=1)


def reads_twice(op: RowsOp, nest: WritingNest, row: AffineExpr) -> None:
    """1 * x + 2 * x, by equal reductions that read a buffer which changes in between."""
    buffer = nest.local((AffineConstantExpr(1),), f32)
    sums: list[SSAValue] = []
    for factor in (1.0, 2.0):
        buffer.put((ORIGIN,), nest.constant(factor, f32))

        def term(index: Indices) -> SSAValue:
            return scalars.mul(nest, nest.at(op.x, index), buffer.at((ORIGIN,)))

        sums.append(total(op, nest, row, term))
    spread(op, nest, row, scalars.add(nest, *sums))


def fills_own(op: RowsOp, nest: WritingNest, row: AffineExpr) -> None:
    """(x + 2 * x) by a local buffer of each iteration."""

    def term(index: Indices) -> SSAValue:
        buffer, x = nest.local((AffineConstantExpr(1),), f32), nest.at(op.x, index)
        buffer.put((ORIGIN,), x)
        buffer.put((ORIGIN,), scalars.add(nest, x, x), "add")
        return buffer.at((ORIGIN,))

    spread(op, nest, row, total(op, nest, row, term))


@pytest.mark.parametrize("does", [reads_twice, fills_own])
def test_a_reduction_may_read_what_changes_around_it_and_write_what_it_owns(
    does: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RowsOp, "FACTOR", 3)
    exe = compiled(does, monkeypatch)
    for shape in ((3, 5), (17, 1), (0, 4), (4, 0)):
        x = random(shape)
        # Three times a sum of up to 5 terms.
        np.testing.assert_allclose(exe(x), exe.run_at("graph", x), rtol=1e-5, atol=1e-5)


# Errors.


def test_an_error_leaves_the_open_loops_as_they_are() -> None:
    nest, op = LoopNest(Block(), Known), arith.ConstantOp.from_int_and_width(1, 1)
    with nest.loops([AffineConstantExpr(3)]) as (place,):
        buffer = nest.allocate(MemRefType(f32, [3]))
        with suppress(KeyError), nest.under(0), nest.standing_for(op):
            assert (nest.here, nest.sources) == (0, [op])
            raise KeyError
        assert (nest.here, nest.sources) == (1, [])
        nest.store(nest.constant(1.0, f32), buffer, (place,))
