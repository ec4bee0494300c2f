"""Attention of ONNX."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto

from ....core.algebra.dims import Dim
from ...importing.attention import attended, joined_heads, split_heads
from ...importing.diagnostics import LeftToDefinitionError
from ...importing.elementwise import cast
from ...importing.values import Value
from ..nodes import Node
from ..registry import converts


@converts("Attention", since=23)
def attention(node: Node) -> list[Value | None]:
    if node.wants(3):
        raise LeftToDefinitionError("its scores are a result")
    if node.attr_int("softmax_precision", TensorProto.FLOAT) == TensorProto.DOUBLE:
        raise LeftToDefinitionError("its softmax is in double precision")
    node.ignore("qk_matmul_output_mode")
    counts = [node.attr_int(name) for name in ("q_num_heads", "kv_num_heads", "kv_num_heads")]
    given = [node.input(number) for number in range(3)]
    flat = given[0].rank == 3
    if flat and 0 in counts:
        raise node.broken("the numbers of heads are missing", "q_num_heads and kv_num_heads")
    q, k, v = (
        split_heads(node, x, count) if flat else x for x, count in zip(given, counts, strict=True)
    )
    rows = k.shape[2]
    past_k, past_v, lengths = node.optional(4), node.optional(5), node.optional(6)
    if past_k is not None and past_v is not None:
        k = node.concat([past_k, k], axis=2)
        v = node.concat([past_v, v], axis=2)
    dims = (q.shape[1], k.shape[1], q.shape[3], v.shape[3])
    if not all(dim.is_static for dim in dims):
        raise LeftToDefinitionError("the number or the width of its heads is not known")
    at_end = past_k is not None or lengths is not None
    # How many keys in front of its place and behind it a query is given; -1 for all.
    left, right = node.attr_int("left_window_size", -1), node.attr_int("right_window_size", -1)
    if min(left, right) < -1:
        raise node.broken("wrong window", "-1 or more", min(left, right))
    right = 0 if node.attr_int("is_causal") else right
    if max(left, right) >= 0 and past_k is not None and rows != q.shape[2]:
        raise LeftToDefinitionError("queries are not at the places of the new keys")
    if lengths is not None:
        lengths = cast(node, lengths, np.dtype(np.int64))
    properties = {"left": left, "right": right, "at_end": at_end, **_numbers(node, q)}
    y = attended(node, q, k, v, _mask(node, k.shape[2]), lengths, safe=True, **properties)
    return [joined_heads(node, y) if flat else y, k, v]


def _numbers(node: Node, q: Value) -> dict[str, Any]:
    scale = node.attr_float("scale") if node.has("scale") else 1 / np.sqrt(q.shape[3].value)
    return {"scale": float(scale), "softcap": node.attr_float("softcap")}


def _mask(node: Node, keys: Dim) -> Value | None:
    """The mask, which has all keys."""
    mask = node.optional(3)
    if mask is not None and (mask.rank == 0 or mask.shape[-1] != keys):
        raise LeftToDefinitionError("its mask is for fewer keys")
    return mask
