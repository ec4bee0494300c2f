"""The dialect `swish`: one operator, with all that the compiler asks of it."""

from xdsl.ir import Dialect

from stepwell.dialects.graph.composite import CompositeOp, composite
from stepwell.dialects.graph.ops_elementwise import FloatUnaryOp


@composite()
class SiluOp(CompositeOp, FloatUnaryOp):
    """x * sigmoid(x), element by element (Elfwing et al., arXiv:1702.03118).

    %y = swish.silu %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
    """

    name = "swish.silu"

    def body(self, b, x):
        """The operator in others: from here come its meaning, fusion, vectors and threads."""
        return b.mul(x, b.sigmoid(x))


Swish = Dialect("swish", [SiluOp], [])
