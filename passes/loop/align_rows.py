"""Align gathered rows to as few cache lines as possible: `loop-align-rows`."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from fractions import Fraction

from xdsl.context import Context
from xdsl.dialects import memref
from xdsl.dialects.builtin import FixedBitwidthType, FunctionType, MemRefType, ModuleOp, TensorType
from xdsl.ir import OpResult, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ...core.ir.context import decide
from ...core.pipelines.budgets import EXACT
from ...dialects.graph import ops as graph
from ...dialects.loop.loops import loop_of
from ...dialects.loop.ops import KernelOp, LoadOp, PrefetchOp, StoreOp
from ...dialects.loop.proofs.in_place import sharing
from .steps.prefetch import LINE_BITS

_LINE = LINE_BITS // 8
_PLAIN = LoadOp | StoreOp | PrefetchOp | memref.DimOp
"""The operations that allow the rows of their buffer to become longer."""


def lines_of_a_row(row: int) -> Fraction:
    """The average number of lines that a row of `row` bytes touches, for contiguous rows."""
    period = math.lcm(row, _LINE) // row
    touched = sum((n * row + row - 1) // _LINE - n * row // _LINE + 1 for n in range(period))
    return Fraction(touched, period)


def aligned(row: int) -> int:
    """The bytes of a row, which is padded if that pays off.

    A row that divides a line, or is a multiple of one, touches the fewest lines. Padding pays off
    if it saves more lines than it makes the rows longer.
    """
    longer = 1 << (row - 1).bit_length() if row < _LINE else -(-row // _LINE) * _LINE
    saves = lines_of_a_row(row) * row > lines_of_a_row(longer) * longer
    return longer if saves else row


def _align(
    ctx: Context, call: graph.CallDpsOp, result: OpResult, kernels: Mapping[str, KernelOp]
) -> None:
    """Pad the rows of a result if that is legal and pays off."""
    kind = result.type
    assert isinstance(kind, TensorType)
    rows, columns = (*kind.get_shape(), 0, 0)[:2]
    element, size = kind.element_type, 0
    if isinstance(element, FixedBitwidthType):
        size = element.size
    if kind.get_num_dims() != 2 or columns < 1 or size < 1:
        return
    longer = aligned(columns * size) // size
    arguments = [] if longer == columns else _arguments(call, result, kernels)
    if not any(_is_gathered(kernel.body.block.args[n]) for kernel, n in arguments):
        return
    for kernel, number in arguments:
        # Change the type of the argument.
        Rewriter.replace_value_with_new_type(
            kernel.body.block.args[number], MemRefType(element, (rows, longer))
        )
        types = [arg.type for arg in kernel.body.block.args]
        count = len(kernel.function_type.inputs)
        kernel.function_type = FunctionType.from_lists(types[:count], types[count:])
    Rewriter.replace_value_with_new_type(result, TensorType(element, (rows, longer)))
    what = f"rows of {columns} elements take the place of {longer}"
    decide(ctx, call, what, "they are gathered, and lie in fewer cache lines so")


def _arguments(
    call: graph.CallDpsOp, result: OpResult, kernels: Mapping[str, KernelOp]
) -> list[tuple[KernelOp, int]]:
    """The arguments of kernels that are a result; none if something else uses it.

    Args:
        kernels: the kernels that only one call uses.
    """
    found: list[tuple[KernelOp, int]] = []
    for user, place in [(call, -1), *((use.operation, use.index) for use in result.uses)]:
        if not isinstance(user, graph.CallDpsOp):
            return []
        kernel = kernels.get(user.callee.root_reference.data)
        if kernel is None:
            return []
        number = user.places[place] + (result.index if user is call else 0)
        uses = kernel.body.block.args[number].uses
        if number in sharing(kernel) or not all(isinstance(use.operation, _PLAIN) for use in uses):
            return []
        found.append((kernel, number))
    return found


def _is_gathered(buffer: SSAValue) -> bool:
    """Whether a load from a buffer has an index that is not a number of an iteration."""
    loads = [use.operation for use in buffer.uses if isinstance(use.operation, LoadOp)]
    loops = (loop_of(index) for load in loads for index in load.indices)
    return any(loop is None or loop.over_entries for loop in loops)


class LoopAlignRowsPass(ModulePass):
    """Align gathered rows to as few cache lines as possible.

    A sparse product reads whole rows of its dense operand, in any order. If another kernel produces
    that operand, its rows are padded with elements that are never read or written, so that fewer
    rows straddle two lines.

    Before:

    ```mlir
    func.func @main(%at: tensor<1xi64>) -> tensor<1xf32> {
      %h = graph.call_dps @make() : () -> tensor<90x7xf32>
      %y = graph.call_dps @pick(%h, %at) : (tensor<90x7xf32>, tensor<1xi64>) -> tensor<1xf32>
      func.return %y : tensor<1xf32>
    }
    loop.kernel @make() -> (%y: memref<90x7xf32>) {}
    loop.kernel @pick(%x: memref<90x7xf32>, %at: memref<1xi64>) -> (%y: memref<1xf32>) {
      %n = loop.load %at () -> (0)() : memref<1xi64>, i64
      %r = arith.index_cast %n : i64 to index
      %v = loop.load %x (d0) -> (d0, 0)(%r) : memref<90x7xf32>, f32
      loop.store %v, %y () -> (0)() : f32, memref<1xf32>
    }
    ```

    After:

    ```mlir
    func.func @main(%at: tensor<1xi64>) -> tensor<1xf32> {
      %h = graph.call_dps @make() : () -> tensor<90x8xf32>
      %y = graph.call_dps @pick(%h, %at) : (tensor<90x8xf32>, tensor<1xi64>) -> tensor<1xf32>
      func.return %y : tensor<1xf32>
    }
    loop.kernel @make() -> (%y: memref<90x8xf32>) {}
    loop.kernel @pick(%x: memref<90x8xf32>, %at: memref<1xi64>) -> (%y: memref<1xf32>) {
      %n = loop.load %at () -> (0)() : memref<1xi64>, i64
      %r = arith.index_cast %n : i64 to index
      %v = loop.load %x (d0) -> (d0, 0)(%r) : memref<90x8xf32>, f32
      loop.store %v, %y () -> (0)() : f32, memref<1xf32>
    }
    ```

    Requires: kernels that are not scheduled. A kernel that several calls use, or that may write
        over its inputs, keeps its types, and so does what the program returns.
    Order: before `loop-schedule`, after which a kernel stays as it is.
    Leaves: the same program.
    """

    name = "loop-align-rows"
    budget = EXACT

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        calls = [call for call in op.walk() if isinstance(call, graph.CallDpsOp)]
        times = Counter(call.callee.root_reference.data for call in calls)
        kernels = {k.sym_name.data: k for k in op.ops if isinstance(k, KernelOp)}
        of_one_call = {name: kernel for name, kernel in kernels.items() if times[name] == 1}
        for call in calls:
            for result in call.results:
                _align(ctx, call, result, of_one_call)
