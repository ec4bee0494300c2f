"""The operator that limits elements to a range."""

from __future__ import annotations

import math as scalar_math
from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.interfaces import HasCanonicalizationPatternsInterface
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import operand_def, opt_prop_def, result_def, traits_def
from xdsl.pattern_rewriter import RewritePattern

from .....core.algebra.dims import Shape
from .....core.dtypes import dtype_of
from .....core.pipelines.exactness import EXACT
from ...attrs import NUMBER, NUMERIC_TENSOR, is_float, number_attr
from ...composite import CompositeOp, composite
from ...interfaces import ShapeFacts, element_type
from ...kinds import Precision
from ...op_builder import OpBuilder, V
from ...rules import rule
from ...traits import HalfPrecision, SignInterface


@composite()
class ClipOp(CompositeOp, SignInterface, HasCanonicalizationPatternsInterface):
    """min(max(x, minimum), maximum), each where it is given; NaN stays NaN.

    Where minimum > maximum everything is maximum. Bounds are f64, or for integers i64, or
    ui64 for larger ones; they are cut to the range of the type.

    %y = graph.clip %x minimum = 0.0 : f64 maximum = 6.0 : f64 : (tensor<3xf32>) -> tensor<3xf32>
    """

    name = "graph.clip"
    traits = traits_def(HalfPrecision(Precision.FOLLOW))

    x = operand_def(NUMERIC_TENSOR)
    minimum = opt_prop_def(NUMBER)
    maximum = opt_prop_def(NUMBER)
    result = result_def(NUMERIC_TENSOR)

    assembly_format = (
        "$x (`minimum` `=` $minimum^)? (`maximum` `=` $maximum^)? attr-dict `:` "
        "functional-type(operands, results)"
    )

    def __init__(
        self,
        x: SSAValue | Operation,
        minimum: float | int | None = None,
        maximum: float | int | None = None,
        result_type: Attribute | None = None,
    ) -> None:
        properties: dict[str, Attribute | None] = {
            "minimum": None if minimum is None else number_attr(minimum),
            "maximum": None if maximum is None else number_attr(maximum),
        }
        super().__init__(operands=[x], properties=properties, result_type=result_type)

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        return (clip_nothing,)

    @property
    def bounds(self) -> tuple[float | int | None, float | int | None]:
        """The lower and the upper bound as numbers of the element type."""
        return self._number(self.minimum), self._number(self.maximum)

    def _number(self, attr: Attribute | None) -> float | int | None:
        if not isinstance(attr, FloatAttr | IntegerAttr):
            return None
        element, value = element_type(self.x), attr.value.data
        if is_float(element):
            return float(value)
        limits = np.iinfo(dtype_of(element))
        if value == scalar_math.inf or value == -scalar_math.inf:
            return int(limits.max if value > 0 else limits.min)
        return min(max(int(value), int(limits.min)), int(limits.max))

    def is_nonnegative(self, operands: Sequence[bool]) -> bool:
        low, high = self.bounds
        return (high is None or high >= 0) and (operands[0] or (low is not None and low >= 0))

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        for what, attr in (("minimum", self.minimum), ("maximum", self.maximum)):
            if not isinstance(attr, FloatAttr | IntegerAttr):
                continue
            value = attr.value.data
            if scalar_math.isnan(value):
                facts.fail(f"{what} is not a number", got=value)
            whole = scalar_math.isinf(value) or value == int(value)
            if not is_float(element_type(self.x)) and not whole:
                facts.fail(f"{what} of an integer tensor is not whole", "a whole number", value)
        return [shapes[0]]

    def opens(self, late: bool) -> bool:
        return False

    def body(self, b: OpBuilder[V], x: V) -> V:
        low, high = self.bounds
        if low is not None:
            x = b.max(x, low)
        return x if high is None else b.min(x, high)


@rule("clip(x, minimum=None, maximum=None) == x", EXACT)
def clip_nothing() -> None: ...
