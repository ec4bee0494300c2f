"""The results of a node, by a conversion or an evaluation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import NodeProto
from onnx.defs import OpSchema

from ..importing.nodes import LARGEST_CONSTANT, LARGEST_FOLDED
from ..importing.values import Value
from .diagnostics import broken
from .nodes import Node
from .registry import Evaluation, converter, evaluation
from .schemas import not_supported


def check_counts(proto: NodeProto, name: str, schema: OpSchema | None) -> None:
    """Compare the numbers of operands and results with ONNX's declaration of the operator."""
    if schema is None:
        return
    counts = (
        ("operands", len(proto.input), schema.max_input),
        ("results", len(proto.output), schema.max_output),
    )
    for what, count, most in counts:
        if count > most:
            raise broken(
                f"too many {what}",
                subject=f"onnx.{proto.op_type}",
                expected=f"at most {most}",
                got=count,
                origin=f'node "{name}"',
            )


def converted(node: Node, domain: str, *, blocked: bool) -> Sequence[Value | None]:
    """The results of a node by its conversion or evaluation; empty if it is `blocked`.

    Raises:
        UnsupportedNodeError: if there is none for it.
    """
    known = converter(domain, node.operator, node.opset)
    evaluate = evaluation(domain, node.operator, node.opset)
    if known is None and evaluate is None:
        raise not_supported(domain, node.operator, node.opset)
    node.insist(known.only if known is not None else {})
    if blocked:
        return []
    results = _evaluated(node, evaluate, LARGEST_FOLDED if known else LARGEST_CONSTANT)
    if results is not None:
        return _complete(node, results)
    if known is None:
        raise not_supported(domain, node.operator, node.opset)
    node.folds = evaluate is not None and _are_known(node, LARGEST_FOLDED)
    made = known.convert(node)
    return _complete(node, [made] if isinstance(made, Value) else list(made))


def _evaluated(node: Node, evaluate: Evaluation | None, limit: int) -> list[Value] | None:
    """The results of a node with small, known operands; None if it is converted."""
    if evaluate is None or not _are_known(node, limit):
        return None
    try:
        with np.errstate(all="ignore"):
            result = evaluate(node)
    except (ValueError, IndexError, TypeError, OverflowError) as error:
        raise node.broken(f"operands do not fit: {error}") from error
    if result is None or isinstance(result, Value):
        return None if result is None else [result]
    symbolic = [value.dtype for value in node.inputs if value is not None and value.is_symbolic]
    return [node.known(result, symbolic[0] if result.dtype == object else None)]


def _are_known(node: Node, limit: int) -> bool:
    """Whether there are operands, of which the contents are known and not large."""
    operands = [value.contents for value in node.inputs if value is not None]
    known = [array for array in operands if array is not None and array.size <= limit]
    return bool(known) and len(known) == len(operands)


def _complete(node: Node, results: Sequence[Value | None]) -> Sequence[Value | None]:
    """`results`, after checks that all attributes were read and all used results are present."""
    unread = node.unread()
    if unread:
        raise node.unsupported(f"attribute {', '.join(unread)} is not supported")
    return wanted(node, results)


def wanted(node: Node, results: Sequence[Value | None]) -> Sequence[Value | None]:
    """`results`, after a check that all used ones are present."""
    for index in range(len(node.outputs)):
        given = index in node.withheld or (index < len(results) and results[index] is not None)
        if node.wants(index) and not given:
            raise node.unsupported(f"result {index} is not supported")
    return results
