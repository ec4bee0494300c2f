"""Calls of primitive functions become calls in destination-passing style."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from xdsl.dialects import func
from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.ir import BlockArgument, Operation, SSAValue

from ...core.algebra.dims import Shape
from ...core.ir.typed import function_around, tensor_type
from ...dialects.graph import ops as graph
from ...dialects.graph.sizes.attributes import EQUAL, equal_attribute
from ...dialects.graph.sizes.computed import SizeAttr
from ...dialects.graph.sizes.shapes import SymbolicShapes

Call = graph.CallDpsOp | graph.CallPackedOp
CallT = TypeVar("CallT", func.CallOp, graph.CallDpsOp)


def by_callee(calls: Sequence[CallT]) -> Mapping[str, Sequence[CallT]]:
    """The calls of each function or kernel, by its name."""
    found = defaultdict[str, list[CallT]](list)
    for call in calls:
        found[call.callee.string_value()].append(call)
    return found


@dataclass(frozen=True)
class CallSizes:
    """The sizes of the results of calls, in the symbols of the function they are in."""

    shapes: dict[SSAValue, Shape] = field(default_factory=dict)
    computed: defaultdict[Operation, list[SizeAttr]] = field(
        default_factory=lambda: defaultdict[Operation, list[SizeAttr]](list)
    )
    """The sizes that arguments or results of a call hold."""


def call_sizes(functions: Sequence[func.FuncOp], calls: Sequence[func.CallOp]) -> CallSizes:
    """The sizes of the results of calls.

    The equalities of these sizes, which kernels do not know, become an attribute of the function.
    """
    sizes = CallSizes()
    calls_in = defaultdict[Operation | None, list[func.CallOp]](list)
    for call in calls:
        calls_in[function_around(call)].append(call)
    for function in functions:
        if not (inside := calls_in[function]):
            continue
        shapes = SymbolicShapes(function)
        _state_sizes(function, shapes)
        results = [r for c in inside for r in c.results if isinstance(r.type, TensorType)]
        sizes.shapes.update((result, shapes.shape(result)) for result in results)
        for name, size in shapes.computed.items():
            if size.op in inside:
                sizes.computed[size.op].append(SizeAttr.of(name, size))
        if shapes.equalities:
            pairs = ((left, right) for left, right, _ in shapes.equalities)
            function.attributes[EQUAL] = equal_attribute(pairs)
    return sizes


def _state_sizes(function: func.FuncOp, shapes: SymbolicShapes) -> None:
    """Let control flow state the names of the sizes that it computes: calls refer to them."""
    names = defaultdict[Operation, list[str]](list)
    for name, size in shapes.computed.items():
        if size.axis is not None:
            names[size.op].append(name)
    for op, own in names.items():
        if isinstance(op, graph.ControlFlowOp):
            op.state_sizes(own)


def single_call(function: func.FuncOp) -> Call | None:
    """The only operation of a function, if that is a call without a value at an index."""
    op, *rest = function.body.block.ops
    if not isinstance(op, Call) or op.refusal is None:
        return None
    returned = len(rest) == 1 and list(rest[0].operands) == list(op.results)
    return op if returned else None


def call_dps(call: func.CallOp, sizes: CallSizes, single: Call | None) -> Call:
    """The same call in destination-passing style, with the sizes of its results.

    `single` is the only operation of the called function, if that is a call.
    """
    types = [tensor_type(r) for r in call.results]
    dims = [
        [
            str(dim) if size == DYNAMIC_INDEX else ""
            for dim, size in zip(sizes.shapes[result], kind.get_shape(), strict=True)
        ]
        for result, kind in zip(call.results, types, strict=True)
    ]
    known = dims if any(name for row in dims for name in row) else None
    passed, computed = list(call.arguments), sizes.computed[call]
    if single is not None:
        passed = [passed[v.index] for v in single.arguments if isinstance(v, BlockArgument)]
        computed = [
            size if size.is_result else size.passed_as(passed.index(size.scalar(call)))
            for size in computed
        ]
    if isinstance(single, graph.CallPackedOp):
        new = graph.CallPackedOp(single.callee, passed, types, known, computed)
    else:
        callee = single.callee if single else call.callee
        new = graph.CallDpsOp(callee, passed, types, known, computed)
    new.location = call.location
    return new
