"""`graph.softmax` and `graph.log_softmax`."""

from __future__ import annotations

from abc import ABC
from typing import ClassVar

from xdsl.dialects.builtin import f64
from xdsl.irdl import operand_def, result_def, traits_def

from ...attrs import FLOAT_TENSOR
from ...axes import AxisOp
from ...composite import CompositeOp
from ...constructors import operator
from ...interfaces import FusionKind, element_type, rank
from ...op_builder import OpBuilder, V
from ...remapped_axes import TransposableInterface
from ...traits import NeverNegative
from ..elementwise.functions import SmallExpOp


class NormalizedExponentialOp(AxisOp, CompositeOp, TransposableInterface, ABC):
    """Common code of `softmax` and `log_softmax`, by the maximum and the sum of exp along one axis.

    A row with a NaN or an inf, or of -inf only, is NaN, as in NumPy. The maximum ignores a NaN,
    which makes the sum NaN.
    """

    FUSION: ClassVar[FusionKind] = FusionKind.REDUCTION

    x = operand_def(FLOAT_TENSOR)
    result = result_def(FLOAT_TENSOR)

    assembly_format = "$x `axis` `=` $axis attr-dict `:` functional-type(operands, results)"

    def opens(self, late: bool) -> bool:
        # Rows with a stride would be computed by four kernels, 1.3 times slower out of the caches.
        return late and self.axis_from_front == rank(self.x) - 1

    def along(self, b: OpBuilder[V], kind: str, x: V) -> V:
        """A reduction along the axis, which is kept with size 1."""
        return b.reduce(x, kind, [self.axis_from_front], keepdims=True)


@operator(axis=-1)
class SoftmaxOp(NormalizedExponentialOp):
    """exp(x - max) / sum(exp(x - max)) along one axis.

    %y = graph.softmax %x axis = -1 : (tensor<4x3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.softmax"
    traits = traits_def(NeverNegative())

    def body(self, b: OpBuilder[V], x: V) -> V:
        # The number of `scalars.origin_of_softmax`; `where` is cheaper than `max`.
        maximum = self.along(b, "maxnum", x)
        below = b.add(maximum, -500.0 if element_type(self.x) == f64 else -60.0)
        least = b.where(b.less(maximum, 0.0), maximum, 0.0)
        powers = b.apply(SmallExpOp, b.sub(x, b.where(b.less(least, below), below, least)))
        return b.mul(powers, b.div(1.0, self.along(b, "sum", powers)))


@operator(axis=-1)
class LogSoftmaxOp(NormalizedExponentialOp):
    """x - max - log(sum(exp(x - max))) along one axis.

    %y = graph.log_softmax %x axis = -1 : (tensor<4x3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.log_softmax"

    def body(self, b: OpBuilder[V], x: V) -> V:
        shifted = b.sub(x, self.along(b, "maxnum", x))
        return b.sub(shifted, b.log(self.along(b, "sum", b.apply(SmallExpOp, shifted))))
