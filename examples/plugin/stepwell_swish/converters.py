"""Conversions: the ONNX operator `Silu` of the domain swish.example, and torch's swish::silu."""


def load_onnx():
    from stepwell.frontends.onnx.registry import converts

    from .dialect import SiluOp

    @converts("Silu", domain="swish.example", since=1)
    def silu(node):
        return node.apply(SiluOp, node.input(0))


def load_torch():
    from stepwell.frontends.torch.registry import converts

    from .dialect import SiluOp

    @converts("swish.silu.default")
    def silu(node, x):
        return node.apply(SiluOp, x)
