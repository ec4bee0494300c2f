"""Dead code elimination: operations without effects, and private functions."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, StringAttr, SymbolRefAttr
from xdsl.ir import Attribute, Operation, ParametrizedAttribute
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriterListener
from xdsl.rewriter import Rewriter
from xdsl.traits import ConstantLike, SymbolOpInterface
from xdsl.transforms.dead_code_elimination import region_dce

from ...core.ir.context import decide
from ...core.pipelines.budgets import EXACT
from ...core.pipelines.exactness import Exactness
from ...dialects.graph.attrs import PRIMITIVE


def _symbol(op: Operation) -> str | None:
    """The symbol that an operation defines; None if it defines none."""
    trait = op.get_trait(SymbolOpInterface)
    name = None if trait is None else trait.get_sym_attr_name(op)
    return None if name is None else name.data


def _is_private(op: Operation) -> bool:
    return op.get_attr_or_prop("sym_visibility") == StringAttr("private")


def references(op: Operation) -> Iterator[str]:
    """The symbols that an operation, regions included, refers to."""
    for inner in op.walk():
        for attribute in (*inner.properties.values(), *inner.attributes.values()):
            yield from _symbols_in(attribute)


def _symbols_in(attribute: Attribute) -> Iterator[str]:
    if isinstance(attribute, SymbolRefAttr):
        yield attribute.root_reference.data
    nested = attribute.parameters if isinstance(attribute, ParametrizedAttribute) else ()
    data = getattr(attribute, "data", None)
    if isinstance(data, tuple):
        nested = data
    elif isinstance(data, dict):
        nested = tuple(data.values())
    for part in nested:
        if isinstance(part, Attribute):
            yield from _symbols_in(part)


def _erase_dead_calls(ctx: Context, module: ModuleOp) -> bool:
    """Erase calls of primitive functions, which have no effects, where no result is used."""
    primitives = {_symbol(op) for op in module.ops if PRIMITIVE in op.attributes}
    calls = [op for op in module.walk(reverse=True) if isinstance(op, func.CallOp)]
    dead = False
    for call in calls:
        used = any(result.uses for result in call.results)
        if not used and call.callee.string_value() in primitives:
            _report(ctx, call)
            Rewriter.erase_op(call)
            dead = True
    return dead


def _report(ctx: Context, op: Operation) -> None:
    if not op.has_trait(ConstantLike):
        decide(ctx, op, f"erase {op.name}", "its results are not used")


def _erase_dead_functions(ctx: Context, module: ModuleOp) -> None:
    """Erase private symbols without live references."""
    named = {name: op for op in module.ops if (name := _symbol(op)) is not None}
    live: set[str] = set()
    queue = [op for op in module.ops if _symbol(op) is None or not _is_private(op)]
    while queue:
        for name in references(queue.pop()):
            if name in named and name not in live:
                live.add(name)
                queue.append(named[name])
    for name, op in named.items():
        if _is_private(op) and name not in live:
            decide(ctx, op, "erase", "nothing live refers to it")
            Rewriter.erase_op(op)


@Exactness.EXACT
class GraphDcePass(ModulePass):
    """Erase operations with unused results, and private functions without callers.

    Before:

    ```mlir
    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %unused = graph.exp %x : (tensor<4xf32>) -> tensor<4xf32>
      func.return %x : tensor<4xf32>
    }
    func.func private @fused_relu(%x: tensor<4xf32>) -> tensor<4xf32>
        attributes {graph.primitive} {
      %y = graph.relu %x : (tensor<4xf32>) -> tensor<4xf32>
      func.return %y : tensor<4xf32>
    }
    ```

    After:

    ```mlir
    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      func.return %x : tensor<4xf32>
    }
    ```

    Operations are erased by xDSL's `dce`; a call of a primitive function has no effects. A
    function is live if a public one reaches it: two dead ones that call each other are erased.

    Requires: nothing.
    Leaves: no private symbol that is unreachable from the public ones.
    """

    name = "graph-dce"
    budget = EXACT

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        listener = PatternRewriterListener(operation_removal_handler=[lambda o: _report(ctx, o)])
        region_dce(op.body, listener)
        while _erase_dead_calls(ctx, op):
            region_dce(op.body, listener)
        _erase_dead_functions(ctx, op)
