"""Bases of operators that work element by element."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.irdl import operand_def, result_def

from .....core.algebra.dims import Shape
from .....core.ir.typed import dense_array
from ...attrs import FLOAT_TENSOR, NUMERIC_TENSOR
from ...interfaces import (
    FusionKind,
    GraphOp,
    Indices,
    Nest,
    ShapeFacts,
    element_type,
    tensor_type,
    widened,
)

if TYPE_CHECKING:
    from ...interfaces import Array


class ElementwiseOp(GraphOp, ABC):
    """A function of scalars: operands of one element type that are broadcast as in NumPy."""

    FUSION: ClassVar[FusionKind] = FusionKind.ELEMENTWISE

    # `Any` lets subclasses name their operands.
    @abstractmethod
    def scalar(self, *args: Any, **kwargs: Any) -> SSAValue:
        """The function on scalars: ``scalar(nest, a, b)`` of two."""

    @abstractmethod
    def array(self, *args: Any, **kwargs: Any) -> np.ndarray:
        """The function on arrays, in the type in which it is computed: ``array(a, b)`` of two."""

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        return [broadcast_shapes(self, shapes, facts)]

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        operands = [widened(dense_array(array)) for array in arrays]
        # Overflow and invalid operations have the values of IEEE 754, and no warning.
        with np.errstate(all="ignore"):
            return self.stored(self.array(*operands))

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        operands = (nest.at(value, broadcast_index(value, index)) for value in self.operands)
        return self.scalar(nest, *operands)


def broadcast_shapes(op: GraphOp, shapes: Sequence[Shape], facts: ShapeFacts) -> Shape:
    """The shape of operands of one element type that are broadcast as in NumPy."""
    first, *others = map(element_type, op.operands)
    for other in others:
        if other != first:
            facts.fail("element types differ", first, other)
    return functools.reduce(facts.broadcast, shapes)


def broadcast_index(value: SSAValue, index: Indices) -> Indices:
    """The index into an operand that is broadcast to a result with this index."""
    sizes = tensor_type(value).get_shape()
    own = index[len(index) - len(sizes) :]
    zero = AffineExpr.constant(0)
    return tuple(zero if n == 1 else i for n, i in zip(sizes, own, strict=True))


class UnaryOp(ElementwiseOp, ABC):
    """An operator with one operand `x` and a result of the same type, by default any number."""

    x = operand_def(NUMERIC_TENSOR)
    result = result_def(NUMERIC_TENSOR)

    assembly_format = "$x attr-dict `:` functional-type(operands, results)"

    def __init__(self, x: SSAValue | Operation, result_type: Attribute | None = None) -> None:
        super().__init__(operands=[x], result_type=result_type)

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        # Never broadcast: at its own index, also where a size is 1.
        return self.scalar(nest, nest.at(self.x, index))


class FloatUnaryOp(UnaryOp, ABC):
    """A unary operator on floats."""

    x = operand_def(FLOAT_TENSOR)
    result = result_def(FLOAT_TENSOR)
