"""The inverse of fusion: inline primitive functions into their callers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, SymbolRefAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import PassFailedException

from ...core.algebra.dims import Dim, Shape
from ...core.errors import explain
from ...core.ir.context import decide
from ...core.ir.provenance import fuse, names, origin
from ...core.ir.typed import function_around
from ...core.ir.walks import blocks_in
from ...core.pipelines.actions import allowed
from ...core.pipelines.budgets import EXACT
from ...core.pipelines.exactness import Exactness
from ...dialects.graph import ops as graph
from ...dialects.graph.attrs import PRIMITIVE
from ...dialects.graph.interfaces import GraphOp
from ...dialects.graph.ops.control.call import CallLikeOp
from ...dialects.graph.sizes.computed import SizeAttr
from ...dialects.graph.sizes.shapes import SymbolicShapes
from ...dialects.stages import STAGE


def inline(
    call: func.CallOp,
    primitive: func.FuncOp,
    dims: Mapping[SSAValue, Shape] = MappingProxyType({}),
    computed: Mapping[Operation, Sequence[SizeAttr]] = MappingProxyType({}),
) -> None:
    """Replace a call by the operations of the primitive function that it calls.

    Args:
        call: the call.
        primitive: the function.
        dims: shapes of results of calls in the function, in symbols of the caller, which the
            inlined calls then state.
        computed: sizes that these calls compute, in symbols of the caller.
    """
    body = primitive.body.block
    values: dict[SSAValue, SSAValue] = dict(zip(body.args, call.arguments, strict=True))
    called = set(names(call))
    new: list[Operation] = []
    for op in body.ops:
        if isinstance(op, func.ReturnOp):
            break
        copy = op.clone(values)
        # A function of several groups carries the names of the first one only.
        if not set(names(op)) <= called:
            copy.location = call.location
        if isinstance(copy, CallLikeOp) and all(result in dims for result in op.results):
            copy.state_dims([dims[result] for result in op.results])
        if isinstance(copy, CallLikeOp) and op in computed:
            copy.result_sizes = ArrayAttr(computed[op])
        new.append(copy)
    assert body.last_op is not None
    results = [values[v] for v in body.last_op.operands]
    for result, old in zip(results, call.results, strict=True):
        result.name_hint = old.name_hint
    Rewriter.replace_op(call, new, results)


def sizes_in_caller(
    call: func.CallOp, primitive: func.FuncOp
) -> tuple[dict[SSAValue, Shape], dict[Operation, list[SizeAttr]]]:
    """The shapes of results of calls in a primitive function, in symbols of its caller.

    Also the sizes among them that these calls compute.
    """
    calls = [op for op in primitive.body.block.ops if isinstance(op, CallLikeOp)]
    caller, last = function_around(call), primitive.body.block.last_op
    if not calls or caller is None or last is None:
        return {}, {}
    inner, outer = SymbolicShapes(primitive), SymbolicShapes(caller)
    sizes: dict[str, Dim] = {}
    for name, (number, dimension) in inner.bindings.items():
        argument = call.arguments[number]
        size = outer.shape(argument)[dimension] if isinstance(dimension, int) else None
        sizes[name] = size or outer.nnz(argument) or Dim.symbol(name)
    given = zip(primitive.body.block.args, call.arguments, strict=True)
    outside = dict[SSAValue, SSAValue](given) | dict(zip(last.operands, call.results, strict=True))
    named = {size.value: name for name, size in outer.computed.items()}
    computed = defaultdict[Operation, list[SizeAttr]](list)
    for name, size in inner.computed.items():
        symbol = named.get(outside.get(size.value, size.value), name)
        sizes[name] = Dim.symbol(symbol)
        computed[size.op].append(SizeAttr.of(symbol, size).with_sizes(sizes))
    shapes: dict[SSAValue, Shape] = {
        result: tuple(dim.substitute(sizes) for dim in inner.shape(result))
        for op in calls
        for result in op.results
    }
    return shapes, {op: computed[op] for op in calls if op in computed}


def _merge_literals(block: Block) -> None:
    """Merge equal literals: fusion gives each group its own."""
    known: dict[Attribute, graph.ConstantOp] = {}
    for op in list(block.ops):
        if not isinstance(op, graph.ConstantOp) or op.key is not None:
            continue
        first = known.setdefault(op.value, op)
        if first is not op:
            first.location = fuse([first, op])
            Rewriter.replace_op(op, (), first.results)


def _is_operator(op: Operation) -> bool:
    """Whether `op` only computes its results, so that it may be anywhere before its users."""
    return isinstance(op, GraphOp) and not isinstance(op, CallLikeOp)


def _sort(block: Block) -> None:
    """Order operators by their uses; erase unused ones.

    Fusion moves operators. This order depends on the computation alone, so that it is the
    same before fusion and after it. Other operations keep their relative order.
    """
    order: dict[Operation, None] = {}
    for root in block.ops:
        # The path from a root to the operation being visited, by which a cycle is detected.
        stack = {} if _is_operator(root) else {root: _makers(root, block)}
        while stack:
            op, makers = next(reversed(stack.items()))
            maker = next(makers, None)
            if maker is None:
                order[op] = None
                stack.popitem()
            elif maker in stack:
                fact, where = f"{maker.name} depends on its own result", origin(maker)
                raise PassFailedException(explain(GraphDefusePass.name, fact, origin=where))
            elif maker not in order:
                stack[maker] = _makers(maker, block)
    for op in reversed([op for op in block.ops if op not in order]):
        Rewriter.erase_op(op)
    for op in order:
        op.detach()
    block.add_ops(order)


def _makers(op: Operation, block: Block) -> Iterator[Operation]:
    """The producers in `block` of the operands of `op` and of the operations in it."""
    for inner in op.walk():
        for operand in inner.operands:
            if isinstance(operand.owner, Operation) and operand.owner.parent is block:
                yield operand.owner


def erase_unused(module: ModuleOp, primitives: Mapping[str, func.FuncOp]) -> None:
    """Erase primitive functions that are no longer referenced."""
    attributes = (
        a for op in module.walk() for a in (*op.properties.values(), *op.attributes.values())
    )
    named = {a.root_reference.data for a in attributes if isinstance(a, SymbolRefAttr)}
    for name, function in primitives.items():
        if name not in named:
            Rewriter.erase_op(function)


@Exactness.EXACT
class GraphDefusePass(ModulePass):
    """Inline primitive functions into their callers.

    Before:

    ```mlir
    func.func @main(%x: tensor<?x8xf32>, %w: tensor<4x8xf32>) -> tensor<?x4xf32> {
      %y = func.call @fused(%x, %w) : (tensor<?x8xf32>, tensor<4x8xf32>) -> tensor<?x4xf32>
      func.return %y : tensor<?x4xf32>
    }
    func.func private @fused(%x: tensor<?x8xf32>, %w: tensor<4x8xf32>)
        -> tensor<?x4xf32> attributes {graph.primitive} {
      %d = graph.dense %x, %w : (tensor<?x8xf32>, tensor<4x8xf32>) -> tensor<?x4xf32>
      %y = graph.relu %d : (tensor<?x4xf32>) -> tensor<?x4xf32>
      func.return %y : tensor<?x4xf32>
    }
    ```

    After:

    ```mlir
    func.func @main(%x: tensor<?x8xf32>, %w: tensor<4x8xf32>) -> tensor<?x4xf32> {
      %d = graph.dense %x, %w : (tensor<?x8xf32>, tensor<4x8xf32>) -> tensor<?x4xf32>
      %y = graph.relu %d : (tensor<?x4xf32>) -> tensor<?x4xf32>
      func.return %y : tensor<?x4xf32>
    }
    ```

    Operators are sorted by their uses, and equal literals are merged, which undoes what fusion
    did to both. So ``defuse(fuse(m))`` prints like ``defuse(m)``, and like ``m`` if `m` is
    already in that order. Operators of a function of several groups get the names of the call.

    Requires: nothing.
    Leaves: no call of a primitive function, no unreferenced primitive function, no operator
        whose results are unused.
    """

    name = "graph-defuse"
    budget = EXACT

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = [f for f in op.walk() if isinstance(f, func.FuncOp)]
        primitives = {f.sym_name.data: f for f in functions if PRIMITIVE in f.attributes}
        for function in functions:
            if len(function.body.blocks) != 1 or function.sym_name.data in primitives:
                continue
            for call in [c for c in function.walk() if isinstance(c, func.CallOp)]:
                primitive = primitives.get(call.callee.string_value())
                if primitive is not None and allowed("inline", call):
                    what = f"inline @{primitive.sym_name.data}"
                    decide(ctx, call, what, "it was only a fusion group")
                    inline(call, primitive)
            for block in blocks_in(function):
                _merge_literals(block)
                _sort(block)
        erase_unused(op, primitives)
        op.attributes.pop(STAGE, None)
