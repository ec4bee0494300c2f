"""Primitive functions become kernels: `convert-graph-to-loop`.

In `graph_to_loop/`, `kernel.py` builds the kernel of a function, with `nest.py`, `loops.py` and
`sizes.py`, on the arguments that `arguments.py` pairs. `calls.py` converts calls, and `marks.py`
marks kernels with facts that hold in all their calls.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ..core.ir.context import Work, known_to
from ..core.ir.provenance import names
from ..core.ir.refusal import refused
from ..core.ir.walks import operations_in
from ..core.pipelines.actions import allowed, held_back
from ..core.pipelines.budgets import SUMS
from ..core.pipelines.exactness import ROUNDING_ATTRIBUTE
from ..dialects.graph import ops as graph
from ..dialects.graph.attrs import PRIMITIVE
from ..dialects.graph.interfaces import GraphOp
from ..dialects.graph.nests.proofs import HINT, described, outside_of_call
from ..dialects.graph.nests.recording import Recorder
from ..dialects.graph.plan.moved import bytes_of
from ..dialects.graph.plan.nest_plan import NestPlan
from ..dialects.graph.plan.planner import planned
from ..dialects.graph.plan.visibility import StoredRounding
from ..dialects.graph.rearranging import is_alias
from ..dialects.graph.sizes.shapes import SymbolicShapes
from ..dialects.graph.views import joined_at
from ..dialects.loop import ops as loop
from ..dialects.stages import reach
from .graph_to_loop.calls import Call, by_callee, call_dps, call_sizes, single_call
from .graph_to_loop.kernel import build_kernel
from .graph_to_loop.marks import is_constant, mark_constants, mark_entries, mark_in_place


def _is_inside(op: Operation) -> bool:
    """Whether an operation is in a primitive function."""
    function = op.parent_op()
    return function is not None and PRIMITIVE in function.attributes


def _build_all(
    ctx: Context, module: ModuleOp, calls: Mapping[str, Sequence[func.CallOp]]
) -> dict[func.FuncOp, loop.KernelOp | Call]:
    """The kernel of each primitive function, or its only operation if that is a call.

    Args:
        ctx: records the work of each kernel.
        module: the module with the functions.
        calls: see `by_callee`.

    Raises:
        PassFailedException: if a function cannot be one kernel.
    """
    recorder, work, rounding = Recorder(), known_to(ctx).work, StoredRounding(module)
    built: dict[func.FuncOp, loop.KernelOp | Call] = {}
    for function in [
        f for f in module.ops if isinstance(f, func.FuncOp) and PRIMITIVE in f.attributes
    ]:
        name = function.sym_name.data
        if not allowed("build kernel", function):
            continue
        if (single := single_call(function)) is not None:
            built[function] = single
            continue
        users = calls[name]
        constant = [
            bool(users) and all(is_constant(c.arguments[number]) for c in users)
            for number in range(len(function.args))
        ]
        shapes = SymbolicShapes(function)
        plan = _plan_of(function, shapes, recorder)
        built[function] = build_kernel(function, constant, shapes, plan, rounding)
        work[name] = _work_of(function, shapes)
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


def _require_inside(kernel: loop.KernelOp, call: graph.CallDpsOp) -> None:
    """Raise if an access of a kernel that users wrote may be outside of its buffer."""
    if (found := outside_of_call(kernel, call.arguments)) is not None:
        fact, expected, got = described(found)
        subject = f"kernel {kernel.sym_name.data}"
        raise refused(call, fact, subject=subject, expected=expected, got=got, hint=HINT)


def _work_of(function: func.FuncOp, shapes: SymbolicShapes) -> tuple[Work, ...]:
    """The work of each operator of a primitive function, in sizes of its arguments."""
    last = function.body.block.last_op
    returned = set(last.operands) if last is not None else set[SSAValue]()
    found: list[Work] = []
    for op in function.body.block.ops:
        if isinstance(op, GraphOp):
            # Bytes are read from arguments and written to results of the function.
            read = [v for v in dict.fromkeys(op.operands) if isinstance(v, BlockArgument)]
            written = [value for value in op.results if value in returned]
            sizes = op.flops(shapes), bytes_of([*read, *written], shapes)
            known = (None if size is None else shapes.in_arguments(size) for size in sizes)
            found.append(Work(names(op), *known))
    return tuple(found)


def _refuse_rest(module: ModuleOp) -> None:
    """Raise for the first operator left outside a kernel."""
    known = (graph.ConstantOp, graph.CallDpsOp, graph.CallPackedOp)
    for op in operations_in(module):
        if isinstance(op, GraphOp) and not (
            is_alias(op) or joined_at(op) is not None or isinstance(op, known)
        ):
            fact, hint = "operator outside of a primitive function", "run graph-fuse-ops first"
            if op.refusal is not None:
                fact = "an opaque operator has no kernel"
                hint = "one of constants is folded, others are replaced where a pass knows the user"
            raise refused(op, fact, hint=hint)


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

    Requires: every operator that computes is inside a primitive function.
    Leaves: constants, calls and assembled matrices in the public function; no primitive function.
    """

    name = "convert-graph-to-loop"
    budget = SUMS

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        kernels = [k for k in op.ops if isinstance(k, loop.KernelOp)]
        merged = {
            c.callee for c in operations_in(op) if isinstance(c, graph.CallDpsOp) and _is_inside(c)
        }
        calls = [c for c in operations_in(op) if isinstance(c, func.CallOp)]
        built = _build_all(ctx, op, by_callee(calls))
        functions = [f for f in op.ops if isinstance(f, func.FuncOp)]
        sizes = call_sizes(functions, calls)
        replaced: dict[str, Call | None] = {}
        for function, made in built.items():
            replaced[function.sym_name.data] = None if isinstance(made, loop.KernelOp) else made
        for call in calls:
            if (name := call.callee.string_value()) in replaced:
                Rewriter.replace_op(call, call_dps(call, sizes, replaced[name]))
        for function, made in built.items():
            if isinstance(made, loop.KernelOp):
                Rewriter.replace_op(function, made, [])
            else:
                Rewriter.erase_op(function)
        if not held_back():
            _refuse_rest(op)
            reach(op, "kernels")
        # Operators are not rewritten any more, and later dialects do not know the attribute.
        op.attributes.pop(ROUNDING_ATTRIBUTE, None)
        users = by_callee([c for c in operations_in(op) if isinstance(c, graph.CallDpsOp)])
        for kernel in kernels:
            if calls_of := users[kernel.sym_name.data]:
                _require_inside(kernel, calls_of[0])
                mark_constants(kernel, calls_of)
            elif any(callee.string_value() == kernel.sym_name.data for callee in merged):
                Rewriter.erase_op(kernel)
        shapes_of = functools.cache(SymbolicShapes)
        for kernel in [k for k in op.ops if isinstance(k, loop.KernelOp)]:
            if calls_of := users[kernel.sym_name.data]:
                mark_in_place(kernel, calls_of)
                mark_entries(kernel, calls_of, shapes_of)
