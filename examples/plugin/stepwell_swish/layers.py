"""The layer `gnn.Swish`."""

from stepwell.frontends import gnn


class Swish(gnn.Layer):
    """x * sigmoid(x), element by element."""

    def emit(self, context, x, name):
        return context.builder.op.swish.silu(x, name=name)
