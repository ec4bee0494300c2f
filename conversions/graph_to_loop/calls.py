"""Calls of primitive functions become calls in destination-passing style."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TypeVar

from xdsl.dialects import func
from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.ir import BlockArgument, Operation, SSAValue

from ...core.dims import Shape
from ...core.typed import function_around, tensor_type
from ...dialects.graph import ops as graph
from ...dialects.graph.shapes import EQUAL, SymbolicShapes, equal_attribute

Call = graph.CallDpsOp | graph.CallPackedOp
CallT = TypeVar("CallT", func.CallOp, graph.CallDpsOp)


def by_callee(calls: Sequence[CallT]) -> Mapping[str, Sequence[CallT]]:
    """The calls of each function or kernel, by its name."""
    found = defaultdict[str, list[CallT]](list)
    for call in calls:
        found[call.callee.string_value()].append(call)
    return found


def result_shapes(
    functions: Sequence[func.FuncOp], calls: Sequence[func.CallOp]
) -> dict[SSAValue, Shape]:
    """The shapes of the results of calls, in the symbols of the function they are in.

    The equalities of these sizes, which kernels do not know, become an attribute of the function.
    """
    result: dict[SSAValue, Shape] = {}
    calls_in = defaultdict[Operation | None, list[func.CallOp]](list)
    for call in calls:
        calls_in[function_around(call)].append(call)
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


def single_call(function: func.FuncOp) -> Call | None:
    """The only operation of a function, if that is a call without a value at an index."""
    op, *rest = function.body.block.ops
    if not isinstance(op, Call) or op.has_kernel:
        return None
    returned = len(rest) == 1 and list(rest[0].operands) == list(op.results)
    return op if returned else None


def call_dps(call: func.CallOp, shapes: dict[SSAValue, Shape], single: Call | None) -> Call:
    """The same call in destination-passing style, with the sizes of its results.

    `single` is the only operation of the called function, if that is a call.
    """
    types = [tensor_type(r) for r in call.results]
    dims = [
        [
            str(dim) if size == DYNAMIC_INDEX else ""
            for dim, size in zip(shapes[result], kind.get_shape(), strict=True)
        ]
        for result, kind in zip(call.results, types, strict=True)
    ]
    known = dims if any(name for row in dims for name in row) else None
    passed = list(call.arguments)
    if single is not None:
        passed = [passed[v.index] for v in single.arguments if isinstance(v, BlockArgument)]
    if isinstance(single, graph.CallPackedOp):
        new = graph.CallPackedOp(single.callee, passed, types, known)
    else:
        new = graph.CallDpsOp(single.callee if single else call.callee, passed, types, known)
    new.location = call.location
    return new
