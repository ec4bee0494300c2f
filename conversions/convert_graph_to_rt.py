"""Tensors of the public function become buffers, in one planned arena: `convert-graph-to-rt`.

In `graph_to_rt/`, `function.py` is the function on buffers under construction, with sizes by
`sizes.py`, and by `computed.py` those that calls compute. `arena.py` places buffers in the slots
that `slots.py` plans, `constants.py` emits constants, `calls.py` converts calls, `checks.py`
checks the indices that callers pass, and `copies.py` copies buffers to a device and back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, func, memref
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, TensorType, i32
from xdsl.ir import Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriterListener
from xdsl.rewriter import Rewriter

from ..core.algebra.dims import Dim
from ..core.errors import counted
from ..core.ir.context import count, decide, known_to, weights_of
from ..core.ir.public_function import is_public
from ..core.ir.refusal import refused
from ..core.ir.walks import erase_dead, operations_in
from ..core.ir.weights import WeightStore
from ..core.pipelines.budgets import EXACT
from ..dialects.graph import ops as graph
from ..dialects.graph.interfaces import GraphOp
from ..dialects.graph.signature import signature_attributes
from ..dialects.loop.ops import KernelOp
from ..dialects.rt import ops as rt
from ..dialects.stages import reach
from .graph_to_rt.arena import Arena
from .graph_to_rt.calls import CallConversion
from .graph_to_rt.checks import check_inputs, check_sizes, indices_of, refuse_work_of_the_host
from .graph_to_rt.constants import Constants
from .graph_to_rt.copies import place_copies
from .graph_to_rt.function import BufferFunction, BufferPlace, Producer, location_of
from .graph_to_rt.guards import check_guards

_TAKEN = (graph.ControlFlowOp, graph.YieldOp, GraphOp, func.ReturnOp)
"""The classes of operations of a public function."""


def _convert(
    source: func.FuncOp, weights: WeightStore, copy_indices: bool, has_device: bool
) -> tuple[func.FuncOp, Arena, tuple[list[SSAValue], list[SSAValue]]]:
    """The function on buffers, its arena, and the buffers of inputs and of results."""
    function = BufferFunction(source, has_device)
    inputs = [buffer for arg in function.arguments for buffer in function.buffers[arg]]
    for op in operations_in(source.body):
        # Any other operation may be on more than tensors.
        if not isinstance(op, _TAKEN):
            fact = "cannot be converted to the run time"
            raise refused(op, fact, expected="operations of graph")
    constants = Constants(function, weights)
    check_guards(function)
    check_sizes(function)
    indices = indices_of(function) if copy_indices else {}
    if not indices:
        check_inputs(function)
    for value, buffers in zip(function.returned, function.outputs, strict=True):
        if not isinstance(value.owner, Producer) or value in indices or value in function.in_arena:
            continue
        if function.shapes.is_computed(*function.shapes.shape(value)):
            function.places.setdefault(value, BufferPlace(buffers[0]))
        else:
            function.buffers.setdefault(value, buffers)
    arena = Arena(function, indices)
    arena.begin()
    if indices:
        check_inputs(function)
    calls = CallConversion(function, constants, arena)
    for op in source.body.block.ops:
        if not isinstance(op, func.ReturnOp):
            calls.convert(op)
    for value, buffers in zip(function.returned, function.outputs, strict=True):
        if value in function.in_arena:
            continue
        with function.standing_for(location_of(value)):
            _copy_result(function, constants.buffers_of(value), value, buffers)
    calls.sizes.report()
    status = function.insert(arith.ConstantOp(IntegerAttr(0, i32)))
    function.append(func.ReturnOp(status))
    kind = ([arg.type for arg in function.block.args], [i32])
    region = Region(function.block)
    results = [buffer for buffers in function.outputs for buffer in buffers]
    results += [b for v in function.in_arena for b in constants.buffers_of(v) if b.uses]
    erase_dead(region, PatternRewriterListener())
    constants.renumber()
    result = func.FuncOp(source.sym_name.data, kind, region, source.sym_visibility)
    result.location = source.location
    facts = function.shapes, function.reported, arena.first.size
    result.attributes.update(signature_attributes(source, *facts))
    return result, arena, (inputs, results)


def _copy_result(
    function: BufferFunction,
    given: Sequence[SSAValue],
    value: SSAValue,
    buffers: Sequence[SSAValue],
) -> None:
    """Copy a result into the buffers of the caller where it is not there."""
    place = function.places.get(value)
    if place is not None and place.memory is buffers[0]:
        return
    if place is not None:
        assert isinstance(value.owner, Operation)
        (kind,) = (buffer.type for buffer in given)
        shape = function.shapes.shape(value)
        buffers = [function.view_at(BufferPlace(buffers[0]), kind, shape, value.owner)]
    for source, target in zip(given, buffers, strict=True):
        if source is not target:
            function.append(memref.CopyOp(source, target))


def _check(function: func.FuncOp) -> None:
    """Raise where a public function is not one on tensors."""
    kinds = (*function.function_type.inputs, *function.function_type.outputs)
    if rt.ContextType() in kinds:
        expected = "one on tensors"
        raise refused(function, "the function is on buffers already", expected=expected)
    if other := [kind for kind in kinds if not isinstance(kind, TensorType)]:
        fact = "an argument or a result is no tensor"
        raise refused(function, fact, expected="tensors", got=other[0])


@dataclass(frozen=True)
class ConvertGraphToRtPass(ModulePass):
    """Give the public function buffers for tensors, an arena, and checks of its inputs.

    Before:

    ```mlir
    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %y = graph.call_dps @relu(%x) : (tensor<4xf32>) -> tensor<4xf32>
      func.return %y : tensor<4xf32>
    }
    loop.kernel @relu(%x: memref<4xf32>) -> (%y: memref<4xf32>) {
    }
    ```

    After:

    ```mlir
    func.func @main(%ctx: !rt.context, %x: memref<4xf32>, %result: memref<4xf32>) -> i32
        attributes {graph.signature = (tensor<4xf32>) -> tensor<4xf32>} {
      rt.call @relu(%x, %result) : memref<4xf32>, memref<4xf32>
      %0 = arith.constant 0 : i32
      func.return %0 : i32
    }
    loop.kernel @relu(%x: memref<4xf32>) -> (%y: memref<4xf32>) {
    }
    ```

    Kernels with loops for a device run there, where the target has one, and buffers that the host
    or the device needs from the other are copied (`rt.to_device`, `rt.to_host`). For such a target
    a kernel that does anything outside of these loops is refused.

    Requires: the public function has only constants, calls, and views: reshapes, rows,
        and concatenations whose parts kernels store in place.
    Leaves: no operation of the graph dialect.
    """

    name = "convert-graph-to-rt"
    budget = EXACT

    copy_indices: bool = False
    """Whether indices are copied before they are checked, so that nothing can change them after."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        public = [f for f in op.ops if isinstance(f, func.FuncOp) and is_public(f)]
        target = known_to(ctx).target
        has_device = target is None or target.device is not None
        if public:
            reach(op, "buffers")
        if target is not None and has_device:
            for kernel in [k for k in op.ops if isinstance(k, KernelOp)]:
                refuse_work_of_the_host(kernel)
        for function in public:
            _check(function)
            converted, arena, buffers = _convert(
                function, weights_of(ctx), self.copy_indices, has_device
            )
            Rewriter.replace_op(function, converted, [])
            copies = place_copies(converted.body, *buffers)
            plans = [part.plan for part in arena.parts]
            count(ctx, "buffers in the arena", sum(len(plan.slot_of) for plan in plans))
            if copies:
                what = counted(copies, "copy", "copies") + " between the host and the device"
                decide(ctx, converted, what, "code of the host reads or writes these buffers")
            for plan in plans:
                total = sum(plan.slots, Dim.of(0))
                slots = counted(len(plan.slots), "slot")
                decide(
                    ctx,
                    converted,
                    f"arena of {slots} for {counted(len(plan.slot_of), 'buffer')}",
                    "those of one slot are never needed at the same time",
                    f"peak of {total} bytes",
                )
