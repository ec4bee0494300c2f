"""Activations, normalisations and products of com.microsoft, as in exported transformers."""

from __future__ import annotations

import numpy as np

from ...importing.elementwise import cast
from ...importing.shapes import matrix_product, places_of, transposed, unsqueezed
from ...importing.values import Value
from ..nodes import Node
from ..registry import converts
from .microsoft_fused import MICROSOFT


@converts("Gelu", since=1, domain=MICROSOFT)
def gelu(node: Node) -> Value:
    return node.gelu(node.input(0))


@converts("BiasGelu", since=1, domain=MICROSOFT)
def bias_gelu(node: Node) -> Value:
    return node.gelu(node.add(node.input(0), node.input(1)))


@converts("FastGelu", since=1, domain=MICROSOFT)
def fast_gelu(node: Node) -> Value:
    x = _plus(node, node.input(0), node.optional(1))
    return node.gelu(x, approximate="tanh")


@converts("QuickGelu", since=1, domain=MICROSOFT)
def quick_gelu(node: Node) -> Value:
    # x / (1 + exp(-alpha x))
    x = node.input(0)
    scaled = node.mul(x, node.attr_float("alpha", 1.702))
    return node.mul(x, node.sigmoid(scaled))


def _plus(node: Node, x: Value, other: Value | None) -> Value:
    return x if other is None else node.add(x, other)


@converts("SimplifiedLayerNormalization", since=1, domain=MICROSOFT)
@converts("SimplifiedLayerNormalization", since=1)
def simplified_layer_normalization(node: Node) -> list[Value | None]:
    x, scale = node.input(0), node.input(1)
    axis = node.axis(node.attr_int("axis", -1), x.rank)
    node.insist({"stash_type": 1})
    _refuse_statistics(node, [1])
    epsilon = node.attr_float("epsilon", 1e-5)
    return [node.rms_norm(x, scale, axis=axis, epsilon=epsilon)]


@converts("SkipLayerNormalization", since=1, domain=MICROSOFT)
def skip_layer_normalization(node: Node) -> list[Value | None]:
    # layer_norm(x + skip + bias), and that sum
    gamma, beta = node.input(2), node.optional(3)
    total = _skipped(node, node.optional(4))
    epsilon = node.attr_float("epsilon", 1e-12)
    y = node.layer_norm(total, gamma, beta, axis=-1, epsilon=epsilon)
    return [y, None, None, total]


@converts("SkipSimplifiedLayerNormalization", since=1, domain=MICROSOFT)
def skip_simplified_layer_normalization(node: Node) -> list[Value | None]:
    total, epsilon = _skipped(node, node.optional(3)), node.attr_float("epsilon", 1e-12)
    y = node.rms_norm(total, node.input(2), axis=-1, epsilon=epsilon)
    return [y, None, None, total]


def _skipped(node: Node, bias: Value | None) -> Value:
    """The sum of the first two operands and a bias."""
    _refuse_statistics(node, [1, 2])
    return _plus(node, node.add(node.input(0), node.input(1)), bias)


def _refuse_statistics(node: Node, results: list[int]) -> None:
    """Refuse results that only training uses: means, and inverse deviations."""
    for number in results:
        if node.wants(number):
            raise node.unsupported(f"result {number}, statistics for training, is not supported")


@converts("EmbedLayerNormalization", since=1, domain=MICROSOFT)
def embed_layer_normalization(node: Node) -> list[Value | None]:
    ids, segments, mask = node.input(0), node.optional(1), node.optional(7)
    node.insist({"mask_index_type": 0})
    if ids.rank != 2:
        raise node.broken("operand 0 has the wrong rank", 2, ids.rank)
    total = node.gather(node.input(2), ids, axis=0)
    places = node.optional(8)
    if places is None:
        places = unsqueezed(node, places_of(node, ids.shape[1]), [0])
    total = _plus(node, total, node.gather(node.input(3), places, axis=0))
    table = node.optional(4)
    if segments is not None and table is not None:
        total = _plus(node, total, node.gather(table, segments, axis=0))
    epsilon = node.attr_float("epsilon", 1e-12)
    y = node.layer_norm(total, node.input(5), node.input(6), axis=-1, epsilon=epsilon)
    return [y, _counted(node, ids, mask) if node.wants(1) else None, total]


def _counted(node: Node, ids: Value, mask: Value | None) -> Value:
    """The number of ones in each row of the mask, or 0 without one, as an i32."""
    if mask is None:
        # A comparison that never holds: a zero for each row.
        mask = node.less(ids, ids)
        ones = cast(node, mask, np.dtype(np.int32))
    else:
        one = node.known(np.array(1, mask.dtype))
        ones = cast(node, node.equal(mask, one), np.dtype(np.int32))
    return node.reduce(ones, kind="sum", axes=[1], keepdims=False)


@converts("FusedMatMul", since=1, domain=MICROSOFT)
def fused_matmul(node: Node) -> Value:
    # alpha * a b, of transposed matrices
    node.insist({"transBatchA": 0, "transBatchB": 0})
    a = _matrix(node, node.input(0), node.attr_int("transA"))
    b = _matrix(node, node.input(1), node.attr_int("transB"))
    product, alpha = matrix_product(node, a, b), node.attr_float("alpha", 1.0)
    return product if alpha == 1 else node.mul(product, alpha)


def _matrix(node: Node, x: Value, transpose: int) -> Value:
    if not transpose or x.rank < 2:
        return x
    return transposed(node, x, [*range(x.rank - 2), x.rank - 1, x.rank - 2])
