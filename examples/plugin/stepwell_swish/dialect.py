"""The dialect `swish`: one operator, with all that the compiler asks of it."""

from typing import ClassVar

import numpy as np
from xdsl.dialects import math
from xdsl.ir import Dialect
from xdsl.irdl import irdl_op_definition, operand_def, result_def, traits_def
from xdsl.traits import Pure

from stepwell.dialects.graph import scalars
from stepwell.dialects.graph.attrs import FLOAT_TENSOR
from stepwell.dialects.graph.interfaces import FusionKind, GraphOp, widened


@irdl_op_definition
class SiluOp(GraphOp):
    """x * sigmoid(x), element by element (Elfwing et al., arXiv:1702.03118).

    %y = swish.silu %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
    """

    name = "swish.silu"
    FUSION: ClassVar = FusionKind.ELEMENTWISE

    x = operand_def(FLOAT_TENSOR)
    result = result_def(FLOAT_TENSOR)

    traits = traits_def(Pure())
    assembly_format = "$x attr-dict `:` functional-type(operands, results)"

    def __init__(self, x, result_type=None):
        super().__init__(operands=[x], result_type=result_type)

    def infer_shapes(self, shapes, facts):
        return [shapes[0]]

    def reference(self, *arrays):
        x = widened(np.asarray(arrays[0]))
        with np.errstate(over="ignore"):
            return self.stored(x / (1 + np.exp(-x)))

    def value_at(self, nest, index, result=0):
        """The conversion to `loop`: from here come fusion, vectors and threads."""
        x = nest.at(self.x, index)
        e = nest.insert(math.ExpOp(scalars.negative(nest, x)))
        return scalars.divide(nest, x, scalars.add(nest, nest.constant(1.0, x.type), e))


Swish = Dialect("swish", [SiluOp], [])
