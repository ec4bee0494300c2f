"""Which writes of an operator are proved to reach every element of its results."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
import pytest
from xdsl.dialects import func
from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp, TensorType, f32, i64
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.irdl import irdl_op_definition, operand_def, result_def

from stepwell.backends.reference.machine import run_kernel
from stepwell.core.algebra.dims import Shape
from stepwell.core.errors import UnsupportedError
from stepwell.core.pipelines.staircase import run_passes
from stepwell.core.registry import make_context
from stepwell.dialects.graph.attrs import FLOAT_TENSOR, I64_TENSOR
from stepwell.dialects.graph.demands import DemandInterface, SizeResult
from stepwell.dialects.graph.interfaces import (
    FusionKind,
    GraphOp,
    ShapeFacts,
)
from stepwell.dialects.graph.nests import scalars
from stepwell.dialects.graph.nests.buffers import Scalar
from stepwell.dialects.graph.nests.nest import WritingNest
from stepwell.dialects.graph.nests.operators import OperatorBody
from stepwell.dialects.loop.attrs import LoopKind
from stepwell.dialects.loop.ops import KernelOp

ANY = DYNAMIC_INDEX
Writes = Callable[[Any, WritingNest], None]


class Outside(GraphOp):
    FUSION: ClassVar[FusionKind] = FusionKind.NEST
    WRITES: ClassVar[Writes]

    def reference(self, *arrays: object) -> tuple[Any, ...]:
        raise NotImplementedError

    def write(self, k: Any, *_: Any) -> None:
        nest: WritingNest = k.nest
        type(self).WRITES(self, nest)

    def extents(self, nest: WritingNest) -> list[AffineExpr]:
        return [nest.extent(self.operands[0], dim) for dim in range(2)]


@irdl_op_definition
class SameOp(Outside):
    name = "outside.same"

    x = operand_def(FLOAT_TENSOR)
    y = operand_def(FLOAT_TENSOR)
    result = result_def(FLOAT_TENSOR)

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        x, y = shapes
        return [tuple(facts.equal(a, b, "sizes differ") for a, b in zip(x, y, strict=True))]


@irdl_op_definition
class KeptOp(Outside, DemandInterface):
    """Some rows of x, and their number."""

    name = "outside.kept"

    x = operand_def(FLOAT_TENSOR)
    result = result_def(FLOAT_TENSOR)
    count = result_def(I64_TENSOR)

    @property
    def demands(self) -> tuple[SizeResult, ...]:
        return (SizeResult(self.count),)

    def infer_element_types(self) -> list[Attribute]:
        return [f32, i64]

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        (x,) = shapes
        return [(facts.size(self.count, x[0]), x[1]), ()]


def kernel_of(
    kind: type[Outside], writes: Writes, shape: Sequence[int], result: TensorType | None = None
) -> KernelOp:
    """The kernel of an operator, of which each result is used."""
    kind.WRITES = writes
    count = len(kind.get_irdl_definition().operands)
    block = Block(arg_types=[TensorType(f32, shape)] * count)
    op = kind(operands=list(block.args), result_type=result)
    block.add_ops([op, func.ReturnOp(*op.results)])
    types = [value.type for value in block.args], [value.type for value in op.results]
    module = ModuleOp([func.FuncOp("main", types, Region(block))])
    run_passes(make_context(), module, "graph-fuse-ops,convert-graph-to-loop")
    (kernel,) = (op for op in module.ops if isinstance(op, KernelOp))
    return kernel


def is_defined(kernel: KernelOp, x: np.ndarray) -> bool:
    """Whether a kernel stores all elements of its first result that there are."""
    y, count = np.full((8, 6), np.nan, np.float32), np.full((), 8)
    run_kernel(kernel, [*[x] * len(kernel.inputs), y, *[count] * (len(kernel.outputs) - 1)])
    return not np.isnan(y[: int(count)]).any()


def one(nest: WritingNest) -> SSAValue:
    return nest.constant(1.0, f32)


def whole(op: SameOp, nest: WritingNest) -> None:
    with nest.loops(op.extents(nest)) as index:
        nest.write(0, index, one(nest))


def of_the_other_operand(op: SameOp, nest: WritingNest) -> None:
    with nest.loops([nest.extent(op.y, dim) for dim in range(2)]) as index:
        nest.write(0, index, one(nest))


def of_the_result(op: SameOp, nest: WritingNest) -> None:
    with nest.loops([nest.extent(op.result, 1), nest.extent(op.result, 0)]) as (column, row):
        nest.write(0, (row, column), one(nest))


def reversed_rows(op: SameOp, nest: WritingNest) -> None:
    rows, columns = op.extents(nest)
    with nest.loops([rows, columns], LoopKind.SERIAL) as (row, column):
        nest.write(0, (rows - 1 - row, column), one(nest))


def first_row_and_others(op: SameOp, nest: WritingNest) -> None:
    rows, columns = op.extents(nest)
    with nest.loops([columns]) as (column,):
        nest.write(0, (AffineExpr.constant(0), column), one(nest))
    with nest.loops([rows - 1, columns]) as (row, column):
        nest.write(0, (row + 1, column), one(nest))


def tiles(op: SameOp, nest: WritingNest) -> None:
    rows, columns = op.extents(nest)
    with nest.loops([rows, columns // 4, AffineExpr.constant(4)]) as (row, tile, own):
        nest.write(0, (row, tile * 4 + own), one(nest))
    with nest.loops([rows, columns % 4]) as (row, own):
        nest.write(0, (row, columns // 4 * 4 + own), one(nest))


def quarters(op: SameOp, nest: WritingNest) -> None:
    rows, columns = op.extents(nest)
    three, two = AffineExpr.constant(3), AffineExpr.constant(2)
    for first, count in ((0, three), (3, rows - 3)):
        for start, size in ((0, two), (2, columns - 2)):
            with nest.loops([count, size]) as (row, column):
                nest.write(0, (row + first, column + start), one(nest))


def again(op: SameOp, nest: WritingNest) -> None:
    def times(_: AffineExpr, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        whole(op, nest)
        return carried

    nest.serial(AffineExpr.constant(3), [], times)


def cast(op: SameOp, nest: WritingNest) -> None:
    with nest.loops(op.extents(nest), LoopKind.SERIAL) as (row, column):
        own = scalars.from_index(nest, nest.value(column), i64)
        nest.write(0, (row, nest.index(own)), one(nest))


def filled(op: SameOp, nest: WritingNest) -> None:
    nest.fill(0, lambda _: one(nest))
    nest.update(0, (AffineExpr.constant(0),) * 2, one(nest), "add")


@pytest.mark.parametrize("shape", [(8, 6), (ANY, ANY), (8, ANY)], ids=str)
@pytest.mark.parametrize(
    "writes",
    [
        *(whole, of_the_other_operand, of_the_result, reversed_rows, first_row_and_others),
        *(tiles, quarters, again, cast, filled),
    ],
)
def test_writes_that_cover(writes: Writes, shape: Sequence[int]) -> None:
    kernel = kernel_of(SameOp, writes, shape)
    assert is_defined(kernel, np.zeros((8, 6), np.float32))


def test_a_result_of_a_size_that_is_known_better() -> None:
    kernel_of(SameOp, of_the_result, (ANY, ANY), TensorType(f32, (8, 6)))


def test_nothing_has_to_be_written_where_there_is_no_element() -> None:
    kernel_of(SameOp, lambda op, nest: None, (0, ANY))


def without_the_first_row(op: SameOp, nest: WritingNest) -> None:
    rows, columns = op.extents(nest)
    with nest.loops([rows - 1, columns]) as (row, column):
        nest.write(0, (row + 1, column), one(nest))


def without_the_second_row(op: SameOp, nest: WritingNest) -> None:
    rows, columns = op.extents(nest)
    with nest.loops([columns]) as (column,):
        nest.write(0, (AffineExpr.constant(0), column), one(nest))
    with nest.loops([rows - 2, columns]) as (row, column):
        nest.write(0, (row + 2, column), one(nest))


def every_second_column(op: SameOp, nest: WritingNest) -> None:
    rows, _ = op.extents(nest)
    with nest.loops([rows, AffineExpr.constant(3)]) as (row, column):
        nest.write(0, (row, column * 2), one(nest))


def the_diagonal(op: SameOp, nest: WritingNest) -> None:
    with nest.loops(op.extents(nest)) as (row, _):
        nest.write(0, (row, row), one(nest))


def some(op: SameOp, nest: WritingNest) -> None:
    with nest.loops(op.extents(nest)) as index:
        is_one = scalars.less(nest, nest.at(op.x, index), one(nest))
        k = OperatorBody(op, nest)
        with k.only_if(Scalar(k, is_one)):
            nest.write(0, index, one(nest))


def below_the_diagonal(op: SameOp, nest: WritingNest) -> None:
    rows, _ = op.extents(nest)
    with nest.loops([rows]) as (row,), nest.loops([row + 1]) as (column,):
        nest.write(0, (row, column), one(nest))


def at_a_computed_place(op: SameOp, nest: WritingNest) -> None:
    with nest.loops(op.extents(nest)) as (row, column):
        own = scalars.convert(nest, nest.at(op.x, (row, column)), f32, i64)
        nest.write(0, (row, nest.index(own)), one(nest))


def only_combined(op: SameOp, nest: WritingNest) -> None:
    with nest.loops(op.extents(nest)) as index:
        nest.update(0, index, one(nest), "add")


def in_a_loop_that_may_not_run(op: SameOp, nest: WritingNest) -> None:
    times = nest.extent(op.x, 0)
    nest.serial(times - 2, [], lambda _, carried: (whole(op, nest), carried)[1])


def a_number_of_columns(op: SameOp, nest: WritingNest) -> None:
    rows, columns = op.extents(nest)
    with nest.loops([rows, columns]) as (row, column):
        nest.write(0, (row, column // 2), one(nest))


NONE = "got none with a known place"


@pytest.mark.parametrize(
    ("writes", "got"),
    [
        (without_the_first_row, "got [1:8, 0:6]"),
        (without_the_second_row, "got [0:1, 0:6] and [2:8, 0:6]"),
        *((every_second_column, NONE), (the_diagonal, NONE), (some, NONE)),
        *((below_the_diagonal, NONE), (at_a_computed_place, NONE)),
        *((only_combined, "got nothing"), (a_number_of_columns, "got [0:8, 0:3]")),
    ],
)
def test_writes_that_do_not(writes: Writes, got: str) -> None:
    message = (
        "outside.same: not all elements of its result 0 are proved to be written, "
        f"expected writes that cover [8, 6], {got}; "
        "give all a first value by fill, then change elements by update"
    )
    with pytest.raises(UnsupportedError, match=re.escape(message)):
        kernel_of(SameOp, writes, (8, 6))


@pytest.mark.parametrize(
    "writes", [without_the_first_row, without_the_second_row, in_a_loop_that_may_not_run]
)
def test_writes_of_a_symbolic_size_that_do_not(writes: Writes) -> None:
    with pytest.raises(UnsupportedError, match=re.escape("cover [?, 6]")):
        kernel_of(SameOp, writes, (ANY, 6))


def kept(
    place: Callable[[WritingNest, SSAValue], SSAValue] = lambda nest, count: count,
    first: int = 0,
    step: int = 1,
    is_other: bool = False,
    columns: int = 0,
) -> Writes:
    """Writes that keep the rows whose first element is less than 1."""

    def write(op: KeptOp, nest: WritingNest) -> None:
        rows, width = op.extents(nest)

        def keep(row: AffineExpr, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            (count,) = carried
            element = nest.at(op.x, (row, AffineExpr.constant(0)))
            is_less = scalars.less(nest, element, one(nest))
            other = scalars.less(nest, one(nest), element)

            k = OperatorBody(op, nest)
            with (
                k.only_if(Scalar(k, other if is_other else is_less)),
                nest.loops([width - columns]) as (column,),
            ):
                target = nest.index(place(nest, count))
                nest.write(0, (target, column), nest.at(op.x, (row, column)))
            more = scalars.add(nest, count, nest.constant(step, i64))
            return [scalars.select(nest, is_less, more, count)]

        (count,) = nest.serial(rows, [nest.constant(first, i64)], keep)
        nest.write(1, (), count)

    return write


def after(nest: WritingNest, count: SSAValue) -> SSAValue:
    return scalars.add(nest, count, nest.constant(1, i64))


def all_rows(op: KeptOp, nest: WritingNest) -> None:
    with nest.loops(op.extents(nest)) as index:
        nest.write(0, index, one(nest))
    nest.write(1, (), nest.constant(3, i64))


@pytest.mark.parametrize("shape", [(8, 6), (ANY, ANY)], ids=str)
@pytest.mark.parametrize("writes", [kept(), all_rows])
def test_rows_that_are_counted(writes: Writes, shape: Sequence[int]) -> None:
    kernel, x = kernel_of(KeptOp, writes, shape), np.arange(48, dtype=np.float32).reshape(8, 6) % 5
    assert is_defined(kernel, x)


@pytest.mark.parametrize(
    "writes",
    [kept(after), kept(first=1), kept(step=2), kept(is_other=True), kept(columns=1)],
    ids=["another place", "start", "step", "condition", "columns"],
)
def test_rows_that_are_counted_and_not_written(writes: Writes) -> None:
    with pytest.raises(UnsupportedError, match=r"outside\.kept: not all elements of its result 0"):
        kernel_of(KeptOp, writes, (8, 6))
