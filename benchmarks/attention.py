"""Attention beside PyTorch and onnxruntime: layers of BERT, and of a decoder with grouped heads.

Single precision. onnxruntime has its `MultiHeadAttention` or `GroupQueryAttention`, whose operands
have the heads in each row, as they are there; for one token it also appends the key to the past.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from harness import Case, Make, Table, run
from models import built
from onnx_writer import Node
from peers import Call, in_onnx


def _joined(x: np.ndarray) -> np.ndarray:
    """All heads in each row."""
    return np.ascontiguousarray(x.transpose(0, 2, 1, 3)).reshape(x.shape[0], x.shape[2], -1)


def _of_the_past(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> list[np.ndarray]:
    """The operands of grouped attention: keys and values that are new, and those before them."""
    rows, keys = q.shape[2], k.shape[2]
    past = [np.ascontiguousarray(x[:, :, : keys - rows]) for x in (k, v)]
    new = [_joined(x[:, :, keys - rows :]) for x in (k, v)]
    last = np.full(len(q), keys - 1, np.int32)
    return [_joined(q), *new, *past, last, np.array(keys, np.int32)]


def attention(
    batch: int, heads: int, queries: int, keys: int, shared: int = 1, causal: bool = False
) -> Make:
    """Attention of heads of 64 numbers; a causal one of the last queries."""

    def in_torch(t: Any, *x: Any) -> Any:
        # Its causal mask begins with the first key, not with the one at the place of the query.
        own = causal and queries == keys
        function = t.nn.functional.scaled_dot_product_attention
        return function(*x, is_causal=own, enable_gqa=shared > 1)

    def make() -> Case:
        rng = np.random.default_rng(0)
        shapes = (batch, heads, queries, 64), *[(batch, heads // shared, keys, 64)] * 2
        arrays = [rng.standard_normal(shape, np.float32) for shape in shapes]
        right = 0 if causal else -1
        options = {"scale": 0.125, "right": right, "at_end": True}
        module = built(lambda b, *x: b.attention(*x, **options), *arrays)

        def fused(threads: int) -> dict[str, Call]:
            kind, own = "MultiHeadAttention", {"num_heads": heads}
            operands, results = [_joined(x) for x in arrays], 1
            if shared > 1:
                kind, own = "GroupQueryAttention", own | {"kv_num_heads": heads // shared}
                operands, results = _of_the_past(*arrays), 3
            node = Node(kind, own, domain="com.microsoft", results=results).model(operands)
            apart, shape = dict[str, Call](), (batch, queries, heads, 64)
            for who, call in in_onnx(node, operands, threads, ["onnxruntime"]).items():
                assert callable(call)
                apart[who] = lambda call=call: call().reshape(shape).transpose(0, 2, 1, 3)
            return apart

        return Case(arrays, module=module, torch=in_torch, others=fused, flops=0)

    return make


CASES: dict[str, Make] = {
    "BERT, 128 words": attention(1, 12, 128, 128),
    "BERT, 128 words, batch of 8": attention(8, 12, 128, 128),
    "BERT, 512 words": attention(1, 12, 512, 512),
    "BERT, 512 words, batch of 8": attention(8, 12, 512, 512),
    "ViT, 197 patches": attention(1, 12, 197, 197),
    "causal, 4 heads for each of keys, 512 words": attention(1, 32, 512, 512, 4, True),
    "causal, 4 heads for each of keys, one word of 1025": attention(1, 32, 1, 1025, 4, True),
}
TABLES = [Table("attention", CASES, run)]
