"""Attention beside PyTorch and onnxruntime: layers of BERT, and of a decoder with grouped heads.

Single precision. onnxruntime has its `MultiHeadAttention` or `GroupQueryAttention`, whose operands
have the heads in each row, as they are there; for one token it also appends the key to the past.
A ratio is the best peer's time over ours, medians of interleaved rounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from harness import Table, run
from operators import Operator
from peers import Call, Node, in_onnx


@dataclass(frozen=True, kw_only=True)
class Attention(Operator):
    """Attention of `heads`, some of which share keys."""

    heads: int
    shared: int

    def peers(self, arrays: Sequence[np.ndarray], threads: int) -> dict[str, Call]:
        kind, options = "MultiHeadAttention", {"num_heads": self.heads}
        operands = [_joined(x) for x in arrays]
        if self.shared > 1:
            kind, options = "GroupQueryAttention", options | {"kv_num_heads": arrays[1].shape[1]}
            operands = _of_the_past(*arrays)
        results = 1 if self.shared == 1 else 3
        model = Node(kind, options, domain="com.microsoft", results=results).model(operands)
        theirs = in_onnx(model, operands, threads)
        apart = {who: lambda call=call: self._apart(call()) for who, call in theirs.items()}
        return super().peers(arrays, threads) | apart

    def _apart(self, y: np.ndarray) -> np.ndarray:
        """Heads in a dimension of their own."""
        return y.reshape(*y.shape[:2], self.heads, -1).transpose(0, 2, 1, 3)


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
) -> Attention:
    """Attention of heads of 64 numbers; a causal one of the last queries."""

    def in_torch(t: Any, *x: Any) -> Any:
        # Its causal mask begins with the first key, not with the one at the place of the query.
        own = causal and queries == keys
        function = t.nn.functional.scaled_dot_product_attention
        return function(*x, is_causal=own, enable_gqa=shared > 1)

    right = 0 if causal else -1
    own = (batch, heads // shared, keys, 64)
    return Attention(
        inputs=((batch, heads, queries, 64), own, own),
        build=lambda b, *x: b.attention(*x, scale=0.125, right=right, at_end=True),
        torch=in_torch,
        heads=heads,
        shared=shared,
    )


OPERATORS: dict[str, Operator] = {
    "BERT, 128 words": attention(1, 12, 128, 128),
    "BERT, 128 words, batch of 8": attention(8, 12, 128, 128),
    "BERT, 512 words": attention(1, 12, 512, 512),
    "BERT, 512 words, batch of 8": attention(8, 12, 512, 512),
    "ViT, 197 patches": attention(1, 12, 197, 197),
    "causal, 4 heads for each of keys, 512 words": attention(1, 32, 512, 512, 4, True),
    "causal, 4 heads for each of keys, one word of 1025": attention(1, 32, 1, 1025, 4, True),
}
TABLES = [Table("attention", OPERATORS, run)]
