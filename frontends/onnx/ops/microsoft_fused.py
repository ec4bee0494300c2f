"""Products of com.microsoft with an activation, as the optimiser of onnxruntime writes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...importing.elementwise import clip
from ...importing.values import Value
from ..nodes import Node
from ..registry import converts
from .contraction import gemm
from .window import conv

MICROSOFT = "com.microsoft"


@dataclass(frozen=True)
class _FusedActivation:
    """An activation, and the number of its parameters."""

    apply: Callable[..., Value]
    parameters: int = 0


_FUNCTIONS = {
    "Relu": _FusedActivation(lambda node, x: node.relu(x)),
    "Tanh": _FusedActivation(lambda node, x: node.tanh(x)),
    "Sigmoid": _FusedActivation(lambda node, x: node.sigmoid(x)),
    "LeakyRelu": _FusedActivation(lambda node, x, alpha: node.leaky_relu(x, alpha=alpha), 1),
    "Clip": _FusedActivation(clip, 2),
    "HardSigmoid": _FusedActivation(
        lambda node, x, alpha, beta: node.hard_sigmoid(x, alpha, beta), 2
    ),
}
"""The activations that onnxruntime fuses, by the names of their operators."""


def _activated(node: Node, x: Value, given: Sequence[float]) -> Value:
    """The activation that a node names, of x.

    Args:
        node: the node.
        x: the product.
        given: the parameters of the activation.
    """
    name = node.attr_string("activation")
    if not name:
        return x
    function = _FUNCTIONS.get(name)
    if function is None:
        raise node.unsupported(f"activation {name} is not supported", ", ".join(_FUNCTIONS))
    if len(given) < function.parameters:
        fact = f"wrong number of parameters of activation {name}"
        raise node.broken(fact, function.parameters, len(given))
    return function.apply(node, x, *given[: function.parameters])


@converts("FusedConv", since=1, domain=MICROSOFT)
def fused_conv(node: Node) -> Value:
    # activation(conv(x, w, bias) + z)
    y, z = conv(node), node.optional(3)
    total = y if z is None else node.add(y, z)
    return _activated(node, total, node.attr_floats("activation_params") or ())


@converts("FusedGemm", since=1, domain=MICROSOFT)
def fused_gemm(node: Node) -> Value:
    # activation(gemm(a, b, c))
    names = ("activation_alpha", "activation_beta", "activation_gamma")
    given = [node.attr_float(name) for name in names]
    return _activated(node, gemm(node), given)
