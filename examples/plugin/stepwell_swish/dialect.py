"""The dialect `swish`: one operator, with all that the compiler asks of it."""

from xdsl.ir import Dialect
from xdsl.irdl import operand_def, result_def

from stepwell.dialects.graph.attrs import FLOAT_TENSOR
from stepwell.dialects.graph.composite import CompositeOp, composite


@composite()
class SiluOp(CompositeOp):
    """x * sigmoid(x), element by element (Elfwing et al., arXiv:1702.03118).

    %y = swish.silu %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
    """

    name = "swish.silu"

    x = operand_def(FLOAT_TENSOR)
    result = result_def(FLOAT_TENSOR)

    def body(self, b, x):
        """The operator in others: from here come its meaning, fusion, vectors and threads."""
        return b.mul(x, b.sigmoid(x))


Swish = Dialect("swish", [SiluOp], [])
