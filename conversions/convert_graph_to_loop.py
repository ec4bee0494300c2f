"""Primitive functions become kernels: `convert-graph-to-loop`."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar, cast

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DictionaryAttr,
    IntegerAttr,
    ModuleOp,
    TensorType,
    UnitAttr,
    i64,
)
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ..core.actions import allowed, held_back
from ..core.budgets import SUMS
from ..core.context import CompilerContext
from ..core.dims import Shape
from ..core.exactness import ROUNDING_ATTRIBUTE
from ..core.refusal import refused
from ..dialects.graph import ops as graph
from ..dialects.graph.interfaces import GraphOp
from ..dialects.graph.plan.nest_plan import NestPlan, planned
from ..dialects.graph.plan.recording import Recorder
from ..dialects.graph.shapes import EQUAL, SymbolicShapes, equal_attribute
from ..dialects.loop import ops as loop
from ..dialects.loop.in_place import overwritable
from ..dialects.sparse_tensor import is_sparse
from .kernel import build_kernel
from .work import work_of

Call = graph.CallDpsOp | graph.CallPackedOp
CallT = TypeVar("CallT", func.CallOp, graph.CallDpsOp)


def _is_constant(value: SSAValue) -> bool:
    return isinstance(value.owner, graph.ConstantOp)


def _result_shapes(
    functions: Sequence[func.FuncOp], calls: Sequence[func.CallOp]
) -> dict[SSAValue, Shape]:
    """The shapes of the results of calls, in the symbols of the function they are in.

    What these sizes have to satisfy, which kernels do not say, is noted on the function.
    """
    result: dict[SSAValue, Shape] = {}
    calls_in = defaultdict[Operation | None, list[func.CallOp]](list)
    for call in calls:
        calls_in[call.parent_op()].append(call)
    for function in functions:
        if not (inside := calls_in[function]):
            continue
        shapes = SymbolicShapes(function)
        result |= {
            r: shapes.shape(r) for c in inside for r in c.results if isinstance(r.type, TensorType)
        }
        if shapes.equalities:
            pairs = ((left, right) for left, right, _ in shapes.equalities)
            function.attributes[EQUAL] = equal_attribute(pairs)
    return result


def _call_dps(
    call: func.CallOp, shapes: dict[SSAValue, Shape], single: Call | None
) -> graph.CallDpsOp | graph.CallPackedOp:
    """The same call in destination-passing style, with the sizes of its results.

    `single` is the call that is all there is in the function, if there is one.
    """
    types = [cast(TensorType, r.type) for r in call.results]
    dims = [
        [
            str(dim) if size == DYNAMIC_INDEX else ""
            for dim, size in zip(shapes[result], kind.get_shape(), strict=True)
        ]
        for result, kind in zip(call.results, types, strict=True)
    ]
    symbolic = any(name for row in dims for name in row)
    known = dims if symbolic else None
    if isinstance(single, graph.CallPackedOp):
        passed = [call.arguments[cast(BlockArgument, v).index] for v in single.arguments]
        new = graph.CallPackedOp(single.callee, passed, types, known)
    elif single is not None:
        passed = [call.arguments[cast(BlockArgument, v).index] for v in single.arguments]
        new = graph.CallDpsOp(single.callee, passed, types, known)
    else:
        new = graph.CallDpsOp(call.callee, call.arguments, types, known)
    new.location = call.location
    return new


def _is_inside(op: Operation) -> bool:
    """Whether an operation is in a primitive function."""
    function = op.parent_op()
    return function is not None and "graph.primitive" in function.attributes


def _by_callee(calls: Sequence[CallT]) -> Mapping[str, Sequence[CallT]]:
    """The calls of each function or kernel, by its name; none of one that is not called."""
    found = defaultdict[str, list[CallT]](list)
    for call in calls:
        found[call.callee.string_value()].append(call)
    return found


def _build_all(
    ctx: Context, module: ModuleOp, calls: Mapping[str, Sequence[func.CallOp]]
) -> dict[func.FuncOp, loop.KernelOp | Call]:
    """The kernel of each primitive function, or the call that is all there is in it.

    Args:
        ctx: where the work of each kernel is noted.
        module: the module with the functions.
        calls: see `_by_callee`.

    Raises:
        PassFailedException: if a function cannot be one kernel.
    """
    recorder = Recorder()
    built: dict[func.FuncOp, loop.KernelOp | Call] = {}
    for function in [f for f in module.ops if isinstance(f, func.FuncOp) and _is_primitive(f)]:
        name = function.sym_name.data
        if not allowed("build kernel", function):
            continue
        if (single := _single_call(function)) is not None:
            built[function] = single
            continue
        users = calls[name]
        constant = [
            bool(users) and all(_is_constant(c.arguments[number]) for c in users)
            for number in range(len(function.args))
        ]
        shapes = SymbolicShapes(function)
        plan = _plan_of(function, shapes, recorder)
        built[function] = build_kernel(function, constant, shapes, plan)
        if isinstance(ctx, CompilerContext):
            ctx.work[name] = work_of(function, shapes)
    return built


def _plan_of(function: func.FuncOp, shapes: SymbolicShapes, recorder: Recorder) -> NestPlan:
    """The plan of a primitive function.

    Raises:
        PassFailedException: if it cannot be one kernel.
    """
    plan = planned(function, shapes, recorder)
    if (refusal := plan.refusal) is not None:
        hint = "graph-fuse-ops makes functions that can be one kernel"
        raise refused(function, "cannot be one kernel", got=refusal.why, hint=hint)
    return plan


def _is_primitive(function: func.FuncOp) -> bool:
    return "graph.primitive" in function.attributes


def _single_call(function: func.FuncOp) -> Call | None:
    """The call without a value at an index that is all there is in a function."""
    op, *rest = function.body.block.ops
    if not isinstance(op, (graph.CallDpsOp, graph.CallPackedOp)) or op.has_value_at:
        return None
    returned = len(rest) == 1 and list(rest[0].operands) == list(op.results)
    return op if returned else None


def _mark_constants(kernel: loop.KernelOp, calls: Sequence[graph.CallDpsOp]) -> None:
    """Say of the inputs of a kernel that was there before whether all calls pass constants."""
    attrs = _argument_attrs(kernel)
    for number, (start, end) in enumerate(pairwise(calls[0].places)):
        if all(_is_constant(call.arguments[number]) for call in calls):
            for known in attrs[start:end]:
                known["loop.constant"] = UnitAttr()
    _set_argument_attrs(kernel, attrs)


def _mark_in_place(kernel: loop.KernelOp, calls: Sequence[graph.CallDpsOp]) -> None:
    """Say of the outputs of a kernel over which inputs they may be written, where that is of use:
    where a call passes what nobody needs after it."""
    dying: set[int] = set()
    for call in calls:
        for operand, position in zip(call.arguments, call.places, strict=False):
            if _is_dying(operand, call):
                dying.add(position)
    if not dying:
        return
    first, attrs = len(kernel.inputs), _argument_attrs(kernel)
    for number, output in enumerate(kernel.outputs, first):
        if inputs := [n for n in overwritable(kernel, output) if n in dying]:
            attrs[number][loop.IN_PLACE] = ArrayAttr(IntegerAttr(n, i64) for n in inputs)
    _set_argument_attrs(kernel, attrs)


def _mark_entries(
    kernel: loop.KernelOp,
    calls: Sequence[graph.CallDpsOp],
    shapes: Callable[[func.FuncOp], SymbolicShapes],
) -> None:
    """Say how many entries the sparse matrices have that are passed to a kernel, where that is
    known and the same in all calls."""
    attrs = _argument_attrs(kernel)
    for number, position in enumerate(calls[0].places[:-1]):
        if is_sparse(calls[0].arguments[number].type):
            counts = {
                shapes(cast(func.FuncOp, call.parent_op())).nnz(call.arguments[number])
                for call in calls
            }
            known = counts.pop()
            if not counts and known is not None and known.is_static:
                attrs[position + 1][loop.ENTRIES] = IntegerAttr(known.value, i64)
    _set_argument_attrs(kernel, attrs)


def _argument_attrs(kernel: loop.KernelOp) -> list[dict[str, Attribute]]:
    """The attributes of all arguments, to be changed."""
    return [kernel.attrs_of(number) for number in range(len(kernel.body.block.args))]


def _set_argument_attrs(kernel: loop.KernelOp, attrs: Sequence[dict[str, Attribute]]) -> None:
    kernel.arg_attrs = ArrayAttr(map(DictionaryAttr, attrs)) if any(attrs) else None


def _is_dying(value: SSAValue, call: Operation) -> bool:
    """Whether a value comes from another call, and this one is the last that needs it."""
    if not isinstance(value.owner, Call):
        return False
    users = [use.operation for use in value.uses if use.operation is not call]
    return all(user.parent is call.parent and user.is_before_in_block(call) for user in users)


def _refuse_rest(module: ModuleOp) -> None:
    """Raise on the first operator that is left outside of the kernels."""
    known = (graph.ConstantOp, graph.CallDpsOp, graph.CallPackedOp)
    for op in module.walk():
        if isinstance(op, GraphOp) and not isinstance(op, known):
            raise refused(
                op, "operator outside of a primitive function", hint="run graph-fuse-ops first"
            )


@dataclass(frozen=True)
class ConvertGraphToLoopPass(ModulePass):
    """Turn each primitive function into a loop kernel, and calls into destination passing.

    Before:

    ```mlir
    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %y = func.call @relu(%x) : (tensor<4xf32>) -> tensor<4xf32>
      func.return %y : tensor<4xf32>
    }
    func.func private @relu(%x: tensor<4xf32>) -> tensor<4xf32> attributes {graph.primitive} {
      %y = graph.relu %x : (tensor<4xf32>) -> tensor<4xf32>
      func.return %y : tensor<4xf32>
    }
    ```

    After:

    ```mlir
    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %y = graph.call_dps @relu(%x) : (tensor<4xf32>) -> tensor<4xf32>
      func.return %y : tensor<4xf32>
    }
    loop.kernel @relu(%x: memref<4xf32>) -> (%y: memref<4xf32>) {
      %0 = arith.constant 0.000000e+00 : f32
      loop.for "i" %i to 4 {
        %1 = loop.load %x (d0) -> (d0)(%i) : memref<4xf32>, f32
        %2 = arith.maximumf %1, %0 : f32
        loop.store %2, %y (d0) -> (d0)(%i) : f32, memref<4xf32>
      }
    }
    ```

    Requires: every operator that computes is inside of a primitive function.
    Leaves: constants and calls in the public function; no primitive function.
    """

    name = "convert-graph-to-loop"
    budget = SUMS

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        kernels = [k for k in op.ops if isinstance(k, loop.KernelOp)]
        merged = {c.callee for c in op.walk() if isinstance(c, graph.CallDpsOp) and _is_inside(c)}
        calls = [c for c in op.walk() if isinstance(c, func.CallOp)]
        built = _build_all(ctx, op, _by_callee(calls))
        functions = [f for f in op.ops if isinstance(f, func.FuncOp)]
        shapes = _result_shapes(functions, calls)
        replaced: dict[str, graph.CallDpsOp | graph.CallPackedOp | None] = {}
        for function, made in built.items():
            replaced[function.sym_name.data] = None if isinstance(made, loop.KernelOp) else made
        for call in calls:
            if (name := call.callee.string_value()) in replaced:
                Rewriter.replace_op(call, _call_dps(call, shapes, replaced[name]))
        for function, made in built.items():
            if isinstance(made, loop.KernelOp):
                Rewriter.replace_op(function, made, [])
            else:
                Rewriter.erase_op(function)
        if not held_back():
            _refuse_rest(op)
        # Rewrites of operators are over, and later dialects know nothing of it.
        op.attributes.pop(ROUNDING_ATTRIBUTE, None)
        users = _by_callee([c for c in op.walk() if isinstance(c, graph.CallDpsOp)])
        for kernel in kernels:
            if calls_of := users[kernel.sym_name.data]:
                _mark_constants(kernel, calls_of)
            elif any(callee.string_value() == kernel.sym_name.data for callee in merged):
                Rewriter.erase_op(kernel)
        shapes_of = functools.cache(SymbolicShapes)
        for kernel in [k for k in op.ops if isinstance(k, loop.KernelOp)]:
            if calls_of := users[kernel.sym_name.data]:
                _mark_in_place(kernel, calls_of)
                _mark_entries(kernel, calls_of, shapes_of)
