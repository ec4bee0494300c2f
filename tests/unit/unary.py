"""The base of operators that tests define: a dense operand, and a result of the same shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.irdl import operand_def, result_def

from stepwell.core.algebra.dims import Shape
from stepwell.dialects.graph.attrs import ANY_TENSOR
from stepwell.dialects.graph.interfaces import GraphOp, ShapeFacts


class Unary(GraphOp):
    """An operator without a reference; a subclass defines `value_at` or `write`."""

    x = operand_def(ANY_TENSOR)
    result = result_def(ANY_TENSOR)

    assembly_format = "$x attr-dict `:` functional-type(operands, results)"

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        return [shapes[0]]

    def reference(self, *arrays: Any) -> tuple[Any, ...]:
        raise NotImplementedError
