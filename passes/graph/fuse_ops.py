"""Operators are grouped, and each group becomes a function that is compiled to one kernel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import LocationAttr, ModuleOp
from xdsl.ir import Block
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ...core.algebra.dims import Dim, scaled
from ...core.ir.context import count, decide
from ...core.ir.provenance import inlined_for
from ...core.ir.walks import blocks_in
from ...core.pipelines.actions import allowed
from ...core.pipelines.budgets import EXACT
from ...core.pipelines.exactness import Exactness
from ...dialects.graph import ops as graph
from ...dialects.graph.attrs import PRIMITIVE
from ...dialects.graph.interfaces import GraphOp
from ...dialects.graph.plan.planner import obstacle
from ...dialects.graph.sizes.shapes import SymbolicShapes
from ...dialects.graph.views import is_view, joined_at
from ...dialects.stages import reach
from .defuse import erase_unused, inline, sizes_in_caller
from .fusion.grouping import Edge, Grouping
from .fusion.groups import Group, users_of
from .fusion.outlining import Outliner, has_kernel

_LONGEST_NAME = 8
_TAKES = "its result is the buffer of its operand, or a row of it"
_JOINS = "its operands are computed in the buffer of its result"


def _named(group: Group) -> Iterable[tuple[GraphOp, str]]:
    """Its operators with their names; the first part of a composite has its name, for all."""
    named: dict[GraphOp | LocationAttr, tuple[GraphOp, str]] = {}
    for op in group.ops:
        if (composite := inlined_for(op.location)) is None or isinstance(op, graph.CallDpsOp):
            named[op] = op, op.name
        else:
            named.setdefault(op.location, (op, composite))
    return named.values()


def _name(group: Group) -> str:
    names = [
        op.callee.string_value().removeprefix("fused_")
        if isinstance(op, graph.CallDpsOp)
        else name.partition(".")[2]
        for op, name in _named(group)
    ]
    mnemonics = [name.replace(".", "_") for name in names]
    shown, rest = mnemonics[:_LONGEST_NAME], len(mnemonics) - _LONGEST_NAME
    return "_".join(["fused", *shown, *([f"and_{rest}_more"] if rest > 0 else [])])


def _flops(group: Group, shapes: SymbolicShapes) -> str | None:
    """The work of a kernel in words; None where an operator does not say it."""
    total = Dim.of(0)
    for op in group.ops:
        work = op.flops(shapes)
        if work is None:
            return None
        total = total + work
    return scaled(total, "FLOP")


def _erase_unused(block: Block) -> None:
    for op in reversed(list(block.ops)):
        computed = has_kernel(op) or isinstance(op, graph.ConstantOp)
        if computed and not any(result.uses for result in op.results):
            Rewriter.erase_op(op)


def _dissolve_refused(ctx: Context, module: ModuleOp) -> None:
    """Put what cannot be one kernel back where the primitive functions are called."""
    functions = [f for f in module.walk() if isinstance(f, func.FuncOp)]
    primitives = {f.sym_name.data: f for f in functions if PRIMITIVE in f.attributes}
    refused: dict[str, func.FuncOp] = {}
    for name, function in primitives.items():
        if (why := obstacle(function)) is not None:
            decide(ctx, function, "its operators are grouped again", why, kind="missed")
            refused[name] = function
    calls = [c for f in functions for c in f.walk() if isinstance(c, func.CallOp)]
    for call in calls:
        if (function := refused.get(call.callee.string_value())) is not None:
            inline(call, function, *sizes_in_caller(call, function))
    erase_unused(module, refused)


def _is_view(group: Group, shapes: SymbolicShapes) -> bool:
    """Whether a group needs no kernel, and no kernel of the user's reads what it gives."""
    made = [value for op in group.ops for value in op.results]
    read = any(isinstance(user, graph.CallDpsOp) for user in users_of(made))
    return not read and all(is_view(op, shapes) for op in group.ops)


def _alone(group: Group, between: Iterable[Edge]) -> str:
    """Why one operator is a kernel, from the edges to its neighbours."""
    own = [edge.why for edge in between if group in (edge.maker, edge.reader)]
    return "; ".join(dict.fromkeys(own)) or "it has no neighbours that could be in it"


def _explain(
    ctx: Context, between: Iterable[Edge], primitives: Mapping[Group, func.FuncOp]
) -> None:
    """Say of each edge between two kernels why they are two; once for equal kernels."""
    said: set[tuple[func.FuncOp, func.FuncOp, str]] = set()
    for edge in between:
        maker, reader = primitives.get(edge.maker), primitives.get(edge.reader)
        if maker is None or reader is None or (maker, reader, edge.why) in said:
            continue
        said.add((maker, reader, edge.why))
        what = f"reads the result of @{maker.sym_name.data} from memory"
        decide(ctx, reader, what, edge.why, kind="missed")


@Exactness.EXACT
@dataclass(frozen=True)
class GraphFuseOpsPass(ModulePass):
    """Group operators and move each group into a primitive function, one kernel each.

    Before:

    ```mlir
    func.func @main(%x: tensor<?x8xf32>, %w: tensor<4x8xf32>) -> tensor<?x4xf32> {
      %d = graph.dense %x, %w : (tensor<?x8xf32>, tensor<4x8xf32>) -> tensor<?x4xf32>
      %y = graph.relu %d : (tensor<?x4xf32>) -> tensor<?x4xf32>
      func.return %y : tensor<?x4xf32>
    }
    ```

    After:

    ```mlir
    func.func @main(%x: tensor<?x8xf32>, %w: tensor<4x8xf32>) -> tensor<?x4xf32> {
      %y = func.call @fused_dense_relu(%x, %w)
          : (tensor<?x8xf32>, tensor<4x8xf32>) -> tensor<?x4xf32>
      func.return %y : tensor<?x4xf32>
    }
    func.func private @fused_dense_relu(%x: tensor<?x8xf32>, %w: tensor<4x8xf32>)
        -> tensor<?x4xf32> attributes {graph.primitive} {
      %d = graph.dense %x, %w : (tensor<?x8xf32>, tensor<4x8xf32>) -> tensor<?x4xf32>
      %y = graph.relu %d : (tensor<?x4xf32>) -> tensor<?x4xf32>
      func.return %y : tensor<?x4xf32>
    }
    ```

    Two groups are merged where the plan of their kernel is legal and it pays: nothing is computed
    twice unless it is cheap, nothing at all for a contraction that reads it many times, and loops
    keep the order of the dimensions. What a contraction computes is stored in the padded tensor
    that a pad makes of it. Why two groups stay two kernels is reported for each edge
    between them (`fusion/grouping.py` has the order of the proposals). Groups of
    the same structure share one function. Constants with one value everywhere are cloned
    into the group, other constants are arguments. Operators without a value at an index stay
    where they are, and so do reshapes and rows that only other kernels read: these are in the
    buffers of what they are taken from. So does a concatenation whose operands are ranges of its
    elements, in order: their kernels store them there.

    A primitive function that is there already stays as it is if it can be one kernel; otherwise
    its operators are grouped again.

    Requires: nothing.
    Leaves: in each function that is not a primitive, only constants, calls, views, and operators
        that have no value at an index.
    """

    name = "graph-fuse-ops"
    budget = EXACT

    max_ops: int = 0
    """The largest number of operators in a group, at most 100; 0 is 100, 1 fuses nothing."""

    max_staged_width: int = 64
    """The largest width of a dense product that goes into one kernel with a sparse one, or with
    what reads its rows again."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        _dissolve_refused(ctx, op)
        outliner = Outliner(op)
        for function in [f for f in op.walk() if isinstance(f, func.FuncOp)]:
            if PRIMITIVE in function.attributes or len(function.body.blocks) != 1:
                continue
            for block in blocks_in(function):
                self._fuse(ctx, block, function, outliner)
        reach(op, "fused")

    def _fuse(self, ctx: Context, block: Block, function: func.FuncOp, outliner: Outliner) -> None:
        """Group the operators of a block of a function, and outline the groups."""
        _erase_unused(block)
        shapes = SymbolicShapes(function)
        grouping = Grouping(block, shapes, self.max_ops, self.max_staged_width)
        groups, between = grouping.groups, list(grouping.edges())
        for call in block.ops:
            if isinstance(call, graph.CallDpsOp) and (why := call.refusal) is not None:
                decide(ctx, call, f"{call.callee} is kept apart", why, kind="missed")
        costs = [_flops(group, shapes) for group in groups]
        views = [group for group in groups if _is_view(group, shapes)]
        primitives: dict[Group, func.FuncOp] = {}
        for group, cost in zip(groups, costs, strict=True):
            if len(group.ops) == 1 and isinstance(group.ops[0], graph.CallDpsOp):
                continue
            if group in views:
                what = "no kernel for " + ", ".join(part.name for part in group.ops)
                joins = any(joined_at(part) is not None for part in group.ops)
                decide(ctx, group.ops, what, _JOINS if joins else _TAKES)
                continue
            if not allowed("outline", group.ops[-1]):
                continue
            primitive = outliner.outline(group.ops, group.results, _name(group))
            primitives[group] = primitive
            what = "one kernel for " + ", ".join(name for _, name in _named(group))
            if len(group.ops) > 1:
                decide(ctx, primitive, what, group.why, cost)
                count(ctx, "operators fused with others", len(group.ops))
            else:
                decide(ctx, primitive, what, _alone(group, between), cost, "missed")
        _explain(ctx, between, primitives)
        _erase_unused(block)
