"""Operators that work element by element on three operands: fma, and the choice by a condition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from xdsl.dialects import math
from xdsl.interfaces import HasCanonicalizationPatternsInterface
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import operand_def, result_def, traits_def
from xdsl.pattern_rewriter import RewritePattern

from .....core.algebra.dims import Dim, Shape, product
from .....core.ir.typed import dense_array
from .....core.pipelines.exactness import EXACT
from ...attrs import FLOAT_TENSOR, STORED_TENSOR, TRUTH_TENSOR
from ...constructors import operator
from ...interfaces import Nest, ShapeFacts, Sizes, broadcasts, element_type
from ...kinds import Precision
from ...nests import scalars
from ...rules import rule
from ...traits import HalfPrecision
from ..sources.constant import splat_of
from .bases import ElementwiseOp

if TYPE_CHECKING:
    from ...interfaces import Array


def wide_fma(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """a * b + c in a wider type: f64, or long double for f64.

    A product of two f32 is exact in f64, so that only the sum is rounded before the result.
    """
    wide = np.float64 if a.dtype.itemsize < 8 else np.longdouble
    return np.multiply(a, b, dtype=wide) + c


@operator()
class FmaOp(ElementwiseOp):
    """a * b + c, rounded once, in f32 for 16 bits; the three are broadcast as in NumPy.

    %y = graph.fma %a, %b, %c
        : (tensor<4x3xf32>, tensor<3xf32>, tensor<4x1xf32>) -> tensor<4x3xf32>
    """

    name = "graph.fma"

    a = operand_def(FLOAT_TENSOR)
    b = operand_def(FLOAT_TENSOR)
    c = operand_def(FLOAT_TENSOR)
    result = result_def(FLOAT_TENSOR)

    assembly_format = "$a `,` $b `,` $c attr-dict `:` functional-type(operands, results)"

    def flops(self, sizes: Sizes) -> Dim:
        return Dim.of(2) * product(sizes.shape(self.result))

    def scalar(self, nest: Nest, a: SSAValue, b: SSAValue, c: SSAValue) -> SSAValue:
        return nest.insert(math.FmaOp(a, b, c))

    def array(self, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        return wide_fma(a, b, c).astype(a.dtype)


@operator()
class WhereOp(ElementwiseOp, HasCanonicalizationPatternsInterface):
    """a where the condition holds, else b; the three are broadcast as in NumPy.

    Both are computed everywhere, and one is discarded.

    %y = graph.where %c, %a, %b
        : (tensor<4x1xi1>, tensor<4x3xf32>, tensor<3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.where"
    traits = traits_def(HalfPrecision(Precision.FOLLOW))

    condition = operand_def(TRUTH_TENSOR)
    a = operand_def(STORED_TENSOR)
    b = operand_def(STORED_TENSOR)
    result = result_def(STORED_TENSOR)

    assembly_format = "$condition `,` $a `,` $b attr-dict `:` functional-type(operands, results)"

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        return (where_same, where_known)

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        condition, a, b = shapes
        if element_type(self.a) != element_type(self.b):
            facts.fail("element types differ", element_type(self.a), element_type(self.b))
        return [facts.broadcast(condition, facts.broadcast(a, b))]

    def infer_element_types(self) -> list[Attribute]:
        return [element_type(self.a)]

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        # Elements are not computed with: those of any type are as they are.
        return self.stored(self.array(*map(dense_array, arrays)))

    def scalar(self, nest: Nest, condition: SSAValue, a: SSAValue, b: SSAValue) -> SSAValue:
        return scalars.select(nest, condition, a, b)

    def array(self, condition: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.where(condition, a, b)


@rule("where(p, x, x) == x  for a condition p that broadcasts to x", EXACT)
def where_same(p: SSAValue, x: SSAValue) -> bool:
    return broadcasts(p, x)


@rule(
    "where(c, x, y) == chosen  which is x for true, y for false, and to which the others broadcast",
    EXACT,
)
def where_known(c: SSAValue, x: SSAValue, y: SSAValue) -> Mapping[str, SSAValue] | None:
    condition = splat_of(c)
    if condition is None:
        return None
    chosen, other = (x, y) if condition else (y, x)
    known = broadcasts(c, chosen) and broadcasts(other, chosen)
    return {"chosen": chosen} if known else None
