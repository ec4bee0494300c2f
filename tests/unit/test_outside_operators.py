"""Operators that the core does not know are fused, recomputed and laid out like its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects import arith, func, math
from xdsl.dialects.builtin import IntegerAttr, IntegerType, ModuleOp, f32
from xdsl.ir import Dialect, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.parser import Parser

from stepwell.backends.reference.machine import run_kernel
from stepwell.core.algebra.dims import Shape
from stepwell.core.errors import CompileError
from stepwell.core.ir.weights import WeightStore
from stepwell.core.pipelines.staircase import run_passes
from stepwell.core.registry import make_context
from stepwell.core.target import named
from stepwell.dialects.graph.attrs import FLOAT_TENSOR, SPARSE_TENSOR
from stepwell.dialects.graph.interfaces import (
    FusionKind,
    GraphOp,
    Indices,
    Nest,
    ShapeFacts,
    element_type,
)
from stepwell.dialects.graph.nests import scalars
from stepwell.dialects.graph.nests.body import KernelBody
from stepwell.dialects.graph.nests.buffers import Buffer, Scalar
from stepwell.dialects.graph.nests.nest import WritingNest
from stepwell.dialects.graph.ops.sparse.sparse_forms import sparse_form
from stepwell.dialects.graph.traits import KeepsNonnegative, RecomputeCost
from stepwell.dialects.loop.loops import loops_in
from stepwell.dialects.loop.ops import KernelOp

from .unary import Unary


@irdl_op_definition
class TwiceOp(Unary):
    name = "outside.twice"
    FUSION: ClassVar[FusionKind] = FusionKind.ELEMENTWISE
    traits = traits_def(KeepsNonnegative())

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        x = nest.at(self.x, index)
        return scalars.add(nest, x, x)


@irdl_op_definition
class ShiftedOp(Unary):
    """x + by: it keeps 0 where nothing is added."""

    name = "outside.shifted"
    FUSION: ClassVar[FusionKind] = FusionKind.ELEMENTWISE

    by = prop_def(IntegerAttr[IntegerType])

    assembly_format = "$x `by` $by attr-dict `:` functional-type(operands, results)"

    def reference(self, *arrays: Any) -> tuple[np.ndarray, ...]:
        return self.stored(arrays[0] + self.by.value.data)


@irdl_op_definition
class SmoothOp(Unary):
    """y[i, j] = 0.5 * y[i, j - 1] + x[i, j]: each element depends on the one before it."""

    name = "outside.smooth"
    FUSION: ClassVar[FusionKind] = FusionKind.NEST

    def write(self, k: KernelBody, x: Buffer, result: Buffer) -> None:
        with k.loops(x.shape[0]) as row:

            def step(column: Any, before: Scalar) -> tuple[Scalar]:
                new = before * 0.5 + x[row, column]
                result[row, column] = new
                return (new,)

            k.carry(x.shape[1], [k.scalar(0.0, x.type)], step)


class Wrong(Unary):
    FUSION: ClassVar[FusionKind] = FusionKind.NEST


@irdl_op_definition
class CollidingOp(Wrong):
    name = "outside.colliding"

    def write(self, k: Any, *_: Any) -> None:
        nest: WritingNest = k.nest
        extents = [nest.extent(self.x, dim) for dim in range(2)]
        with nest.loops([*extents, AffineExpr.constant(2)]) as (row, column, again):
            value = scalars.from_index(nest, nest.value(again), f32)
            nest.write(0, (row, column), value)


@irdl_op_definition
class OtherRankOp(Wrong):
    name = "outside.other_rank"

    def write(self, k: Any, *_: Any) -> None:
        nest: WritingNest = k.nest
        with nest.loops([nest.extent(self.x, 0)]) as (row,):
            nest.write(0, (row,), nest.at(self.x, (row, row)))


@irdl_op_definition
class OtherTypeOp(Wrong):
    name = "outside.other_type"

    def write(self, k: Any, *_: Any) -> None:
        nest: WritingNest = k.nest
        with nest.loops([nest.extent(self.x, dim) for dim in range(2)]) as index:
            nest.write(0, index, nest.value(index[0]))


@irdl_op_definition
class OtherResultOp(Wrong):
    name = "outside.other_result"

    def write(self, k: Any, *_: Any) -> None:
        nest: WritingNest = k.nest
        with nest.loops([nest.extent(self.x, dim) for dim in range(2)]) as index:
            nest.write(0, index, nest.at(self.x, index))
            nest.write(1, index, nest.at(self.x, index))


@irdl_op_definition
class TwiceWrittenOp(Wrong):
    name = "outside.twice_written"

    def write(self, k: Any, *_: Any) -> None:
        nest: WritingNest = k.nest
        with nest.loops([nest.extent(self.x, dim) for dim in range(2)]) as index:
            nest.write(0, index, nest.at(self.x, index))
            nest.write(0, index, nest.constant(1.0, f32))


@irdl_op_definition
class OtherCombinerOp(Wrong):
    name = "outside.other_combiner"

    def write(self, k: Any, *_: Any) -> None:
        nest: WritingNest = k.nest
        nest.fill(0, lambda index: nest.at(self.x, index))
        with nest.loops([nest.extent(self.x, dim) for dim in range(2)]) as index:
            nest.update(0, index, nest.at(self.x, index), "sub")


@irdl_op_definition
class NothingOp(Wrong):
    name = "outside.nothing"

    def write(self, k: Any, *_: Any) -> None:
        pass


@irdl_op_definition
class ForgetfulOp(Wrong):
    name = "outside.forgetful"

    def write(self, k: Any, *_: Any) -> None:
        nest: WritingNest = k.nest
        rows, columns = (nest.extent(self.x, dim) for dim in range(2))
        with nest.loops([rows - 1, columns]) as (row, column):
            nest.write(0, (row + 1, column), nest.at(self.x, (row, column)))


@irdl_op_definition
class ChangedCarryOp(Wrong):
    name = "outside.changed_carry"

    def write(self, k: Any, *_: Any) -> None:
        nest: WritingNest = k.nest
        one = nest.constant(1.0, f32)
        nest.serial(nest.extent(self.x, 0), [one], lambda place, _: [nest.value(place)])
        with nest.loops([nest.extent(self.x, dim) for dim in range(2)]) as index:
            nest.write(0, index, one)


@irdl_op_definition
class SlowOp(Unary):
    name = "outside.slow"
    FUSION: ClassVar[FusionKind] = FusionKind.ELEMENTWISE

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        return nest.insert(math.TanhOp(nest.at(self.x, index)))


@irdl_op_definition
class StatedOp(Unary):
    name = "outside.stated"
    FUSION: ClassVar[FusionKind] = FusionKind.ELEMENTWISE
    traits = traits_def(RecomputeCost(1))

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        return nest.insert(math.TanhOp(nest.at(self.x, index)))


@irdl_op_definition
class SwapOp(Unary):
    name = "outside.swap"
    FUSION: ClassVar[FusionKind] = FusionKind.INJECTIVE

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        return [tuple(reversed(shapes[0]))]

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        return nest.at(self.x, tuple(reversed(index)))


@irdl_op_definition
class RowSumOp(Unary):
    name = "outside.row_sum"
    FUSION: ClassVar[FusionKind] = FusionKind.REDUCTION

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        return [(shapes[0][0], shapes[0][1] * 0 + 1)]

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        zero = scalars.zero(nest, element_type(self.x))

        def step(k: Indices, total: SSAValue) -> SSAValue:
            return scalars.add(nest, total, nest.at(self.x, (index[0], *k)))

        return nest.reduce([nest.extent(self.x, 1)], "add", zero, step)


@irdl_op_definition
class LogSumExpOp(Unary):
    """The running maximum of a row, and the sum that it rescales, in one reduction."""

    name = "outside.log_sum_exp"
    FUSION: ClassVar[FusionKind] = FusionKind.REDUCTION

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        return [(shapes[0][0], shapes[0][1] * 0 + 1)]

    def reference(self, *arrays: Any) -> tuple[np.ndarray, ...]:
        return self.stored(np.log(np.exp(arrays[0]).sum(axis=1, keepdims=True)))

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        kind = element_type(self.x)

        def steps(k: Indices, totals: Sequence[SSAValue]) -> Sequence[SSAValue]:
            top, total = totals
            value = nest.at(self.x, (index[0], *k))
            higher = scalars.maximum(nest, top, value)
            before, own = (
                nest.insert(math.ExpOp(scalars.sub(nest, one, higher))) for one in (top, value)
            )
            return [higher, scalars.fma(nest, total, before, own)]

        lowest = nest.constant(-1e30, kind)
        inits = [lowest, scalars.zero(nest, kind)]
        extents = [nest.extent(self.x, 1)]
        top, total = nest.reduce_several(extents, ["max", "custom"], inits, steps)
        return scalars.add(nest, top, nest.insert(math.LogOp(total)))


@irdl_op_definition
class GapOp(GraphOp):
    """The distance of the ends of each stored entry of a matrix."""

    name = "outside.gap"
    FUSION: ClassVar[FusionKind] = FusionKind.INJECTIVE

    a = operand_def(SPARSE_TENSOR)
    x = operand_def(FLOAT_TENSOR)
    result = result_def(FLOAT_TENSOR)

    assembly_format = "$a `,` $x attr-dict `:` functional-type(operands, results)"

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        return [(facts.entries(self.a),)]

    def reference(self, *arrays: object) -> tuple[np.ndarray, ...]:
        raise NotImplementedError

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        row, column = nest.entry(self.a, index[0])
        return nest.insert(arith.SubfOp(nest.at(self.x, (row,)), nest.at(self.x, (column,))))


DIALECT = Dialect(
    "outside",
    [
        TwiceOp,
        ShiftedOp,
        SlowOp,
        StatedOp,
        SwapOp,
        RowSumOp,
        LogSumExpOp,
        GapOp,
        *(SmoothOp, CollidingOp, OtherRankOp, OtherTypeOp, NothingOp, ForgetfulOp),
        *(ChangedCarryOp, OtherResultOp, TwiceWrittenOp, OtherCombinerOp),
    ],
)
X, ROW = "tensor<8x6xf32>", "tensor<8x1xf32>"
CSR = (
    "#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), "
    "posWidth = 32, crdWidth = 32 }>\n"
)
A, NUMBERS, ENTRIES = "tensor<8x8xf32, #csr>", "tensor<8xf32>", "tensor<?xf32>"


def after(passes: str, body: str, arguments: str, result: str) -> str:
    return str(module_after(passes, body, arguments, result))


def context() -> Context:
    ctx = make_context(WeightStore(), named("x86-64-v4"))
    ctx.load_dialect(DIALECT)
    return ctx


def function_of(body: str, arguments: str, result: str) -> str:
    return f"{CSR}func.func @main({arguments}) -> {result} {{\n{body}\n}}"


def module_after(passes: str, body: str, arguments: str, result: str) -> ModuleOp:
    ctx = context()
    module = Parser(ctx, function_of(body, arguments, result)).parse_module()
    assert isinstance(module, ModuleOp)
    module.verify()
    run_passes(ctx, module, passes)
    return module


@pytest.mark.parametrize(
    ("body", "result", "called"),
    [
        # An epilogue.
        (
            (
                f"%d = graph.dense %x, %w : ({X}, tensor<4x6xf32>) -> tensor<8x4xf32>\n"
                "%y = outside.slow %d : (tensor<8x4xf32>) -> tensor<8x4xf32>\n"
                "func.return %y : tensor<8x4xf32>"
            ),
            "tensor<8x4xf32>",
            ["fused_dense_slow"],
        ),
        # What is cheap is computed again for each of its readers' elements, other things are not.
        (
            (
                f"%t = outside.twice %x : ({X}) -> {X}\n"
                f"%y = graph.softmax %t axis = -1 : ({X}) -> {X}\nfunc.return %y : {X}"
            ),
            X,
            ["fused_twice_softmax"],
        ),
        (
            (
                f"%t = outside.slow %x : ({X}) -> {X}\n"
                f"%y = graph.softmax %t axis = -1 : ({X}) -> {X}\nfunc.return %y : {X}"
            ),
            X,
            ["fused_slow_softmax"],
        ),
        (
            (
                f"%t = outside.stated %x : ({X}) -> {X}\n"
                f"%y = graph.softmax %t axis = -1 : ({X}) -> {X}\nfunc.return %y : {X}"
            ),
            X,
            ["fused_stated_softmax"],
        ),
        # What is read once is computed where it is read, however much it costs.
        (
            (
                f"%t = outside.slow %x : ({X}) -> {X}\n"
                f"%y = outside.swap %t : ({X}) -> tensor<6x8xf32>\nfunc.return %y : tensor<6x8xf32>"
            ),
            "tensor<6x8xf32>",
            ["fused_slow_swap"],
        ),
        # A reduction of rows is computed before its row is visited.
        (
            (
                f"%s = outside.row_sum %x : ({X}) -> {ROW}\n"
                f"%y = graph.div %x, %s : ({X}, {ROW}) -> {X}\nfunc.return %y : {X}"
            ),
            X,
            ["fused_row_sum_div"],
        ),
        # What there is for each entry is computed where a kernel visits the entries of a row.
        (
            (
                f"%g = outside.gap %a, %n : ({A}, {NUMBERS}) -> {ENTRIES}\n"
                f"%s = graph.edge_softmax %a, %g : ({A}, {ENTRIES}) -> {ENTRIES}\n"
                f"%y = graph.aggregate sum %a, %x weights %s : ({A}, {X}, {ENTRIES}) -> {X}\n"
                f"func.return %y : {X}"
            ),
            X,
            ["fused_gap_edge_softmax_aggregate"],
        ),
    ],
    ids=["epilogue", "cheap", "kept row", "stated", "injective", "rows", "entries"],
)
def test_groups(body: str, result: str, called: list[str]) -> None:
    arguments = f"%x: {X}, %w: tensor<4x6xf32>, %a: {A}, %n: {NUMBERS}"
    text = after("graph-fuse-ops", body, arguments, result)
    main = text.partition("func.func private")[0]
    assert [name for name in called if f"call @{name}(" in main] == called
    assert main.count("func.call") == len(called)
    passes = "graph-fuse-ops,convert-graph-to-loop"
    assert "loop.kernel" in after(passes, body, arguments, result)


@pytest.mark.parametrize(("maker", "relus"), [("graph.exp", 0), ("graph.neg", 1)])
def test_the_sign_of_a_result_is_known(maker: str, relus: int) -> None:
    body = (
        f"%e = {maker} %x : ({X}) -> {X}\n%t = outside.twice %e : ({X}) -> {X}\n"
        f"%y = graph.relu %t : ({X}) -> {X}\nfunc.return %y : {X}"
    )
    assert after("graph-simplify", body, f"%x: {X}", X).count("graph.relu") == relus


def test_elementwise_operators_work_on_blocks_of_channels() -> None:
    image = "tensor<1x64x3x3xf32>"
    steps = "strides = [1, 1] dilations = [1, 1] groups = 1"
    weights = "%w = graph.constant dense<1.0> : tensor<64x64x1x1xf32>"
    conv = f"graph.conv {{}}, %w {steps} : ({image}, tensor<64x64x1x1xf32>) -> {image}"
    body = (
        f"{weights}\n%a = {conv.format('%x')}\n%b = outside.slow %a : ({image}) -> {image}\n"
        f"%y = {conv.format('%b')}\nfunc.return %y : {image}"
    )
    text = after("graph-alter-op-layout", body, f"%x: {image}", image)
    assert text.count("graph.blocked_conv") == 2
    (line,) = [line for line in text.splitlines() if "outside.slow" in line]
    assert image not in line


@pytest.mark.parametrize(
    ("stride", "heights", "kernels"),
    [(1, (12, 10, 8), 2), (3, (18, 6, 2), 1)],
    ids=["overlap", "apart"],
)
def test_windows_that_overlap_read_what_is_stored(
    stride: int, heights: tuple[int, int, int], kernels: int
) -> None:
    image, inner, outer = (f"tensor<1x4x{height}x9xf32>" for height in heights)
    pool = f"graph.pool max {{}} window = [3, 1] strides = [{stride}, 1] dilations = [1, 1]"
    body = (
        f"%a = {pool.format('%x')} : ({image}) -> {inner}\n"
        f"%y = {pool.format('%a')} : ({inner}) -> {outer}\nfunc.return %y : {outer}"
    )
    text = after("graph-fuse-ops", body, f"%x: {image}", outer)
    assert text.partition("func.func private")[0].count("func.call") == kernels


@pytest.mark.parametrize(("by", "kept"), [(0, True), (1, False)])
def test_operators_that_keep_zero_work_on_stored_values(by: int, kept: bool) -> None:
    ctx = make_context(WeightStore())
    ctx.load_dialect(DIALECT)
    text = f"""{CSR}func.func @main(%a: {A}, %x: tensor<8x8xf32>) -> tensor<8x8xf32> {{
      %y = outside.shifted %x by {by} : i64 : (tensor<8x8xf32>) -> tensor<8x8xf32>
      func.return %y : tensor<8x8xf32>
    }}"""
    (function,) = Parser(ctx, text).parse_module().ops
    assert isinstance(function, func.FuncOp)
    shifted = next(op for op in function.walk() if isinstance(op, ShiftedOp))
    forms = sparse_form(shifted, [function.args[0]])
    names = None if forms is None else [op.name for op in forms]
    assert names == (["graph.entries", "outside.shifted", "graph.with_entries"] if kept else None)


@pytest.mark.parametrize("scheduled", [False, True])
def test_several_values_are_accumulated_in_one_reduction(scheduled: bool) -> None:
    """A log-softmax: the reduction is before the row that what follows it visits."""
    body = (
        f"%s = outside.log_sum_exp %x : ({X}) -> {ROW}\n"
        f"%y = graph.sub %x, %s : ({X}, {ROW}) -> {X}\nfunc.return %y : {X}"
    )
    passes = "graph-fuse-ops,convert-graph-to-loop" + (",loop-schedule" if scheduled else "")
    module = module_after(passes, body, f"%x: {X}", X)
    (kernel,) = (op for op in module.ops if isinstance(op, KernelOp))
    carrying = [loop for loop in loops_in(kernel.body.block) if loop.is_reduction]
    assert [loop.combines for loop in carrying] == [["max", "custom"]]
    x = np.random.default_rng(5).standard_normal((8, 6)).astype(np.float32)
    got = np.empty_like(x)
    run_kernel(kernel, [x, got])
    expected = x - np.log(np.exp(x).sum(axis=1, keepdims=True))
    # Sums of 6 exponentials, rescaled at each larger one.
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


def test_written_loops_take_in_what_they_read_and_what_follows() -> None:
    body = f"""
      %r = outside.twice %x : ({X}) -> {X}
      %s = outside.smooth %r : ({X}) -> {X}
      %y = outside.twice %s : ({X}) -> {X}
      func.return %y : {X}"""
    module = module_after("graph-fuse-ops,convert-graph-to-loop", body, f"%x: {X}", X)
    (kernel,) = (op for op in module.ops if isinstance(op, KernelOp))
    x = np.random.default_rng(5).standard_normal((8, 6)).astype(np.float32)
    expected, got = np.zeros_like(x), np.empty_like(x)
    for column in range(6):
        expected[:, column] = 0.5 * expected[:, column - 1] + 2 * x[:, column]
    run_kernel(kernel, [x, got])
    np.testing.assert_allclose(got, 2 * expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("colliding", 'outside.colliding: writes loops that are not valid.*loop "l"'),
        ("other_rank", "outside.other_rank: writes at an index of another rank, expected 2, got 1"),
        ("other_type", "outside.other_type: writes a scalar of another type, expected f32"),
        ("other_result", "writes a result that it does not have, expected 0 to 0, got 1"),
        ("twice_written", "outside.twice_written: writes an element twice"),
        ("other_combiner", "unknown combiner, expected add, mul, max, min, got sub"),
        ("nothing", "outside.nothing: not all elements of its result 0 are proved to be written"),
        ("forgetful", r"result 0 .*writes that cover \[8, 6\], got \[1:8, 0:6\]"),
        ("changed_carry", "a step returns values of other types, expected f32, got index"),
    ],
)
def test_wrong_loops_are_an_error_that_names_the_operator(name: str, message: str) -> None:
    body = f"""
      %y = outside.{name} %x : ({X}) -> {X} loc("here")
      func.return %y : {X}"""
    with pytest.raises(CompileError, match=message) as found:
        module_after("graph-fuse-ops,convert-graph-to-loop", body, f"%x: {X}", X)
    assert str(found.value).count('node "here"') == 1
