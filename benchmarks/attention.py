"""Attention beside PyTorch and onnxruntime: layers of BERT, and of a decoder with grouped heads.

    python benchmarks/attention.py               # everything, on one thread
    python benchmarks/attention.py --only causal

Single precision. onnxruntime has its `MultiHeadAttention` or `GroupQueryAttention`, whose operands
have the heads in each row, as they are there; for one token it also appends the key to the past.
A ratio is the best peer's time over ours, medians of interleaved rounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from harness import command, run
from onnx import ModelProto
from operators import Operator
from peers import Call, in_onnxruntime, one_node

import stepwell as sw

MICROSOFT = "com.microsoft"


@dataclass(frozen=True)
class Attention(Operator):
    """Attention of `heads`, some of which share keys; a causal one of the last queries."""

    batch: int
    heads: int
    shared: int
    causal: bool = False

    @property
    def scale(self) -> float:
        """What scores are multiplied by."""
        return float(self.arrays()[0].shape[-1] ** -0.5)

    def module(self) -> sw.Module:
        """The program."""
        b = sw.Builder("main")
        given = [b.input(n, x.shape, "f32") for n, x in zip("qkv", self.arrays(), strict=True)]
        right = 0 if self.causal else -1
        b.output(b.attention(*given, scale=self.scale, right=right, at_end=True), name="y")
        return b.module()

    def peers(self, arrays: Sequence[np.ndarray], threads: int) -> dict[str, Call]:
        """The peers that are installed."""
        operands = self._operands(arrays)
        theirs = in_onnxruntime(self._model(operands), operands, threads)
        apart = {who: lambda call=call: self._apart(call()) for who, call in theirs.items()}
        return super().peers(arrays, threads) | apart

    def _operands(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """What the operator of onnxruntime is given."""
        q, k, v = arrays
        if self.shared == 1:
            return [_joined(x) for x in arrays]
        rows, keys = q.shape[2], k.shape[2]
        past = [np.ascontiguousarray(x[:, :, : keys - rows]) for x in (k, v)]
        new = [_joined(x[:, :, keys - rows :]) for x in (k, v)]
        last = np.full(self.batch, keys - 1, np.int32)
        return [_joined(q), *new, *past, last, np.array(keys, np.int32)]

    def _model(self, operands: list[np.ndarray]) -> ModelProto:
        if self.shared == 1:
            options = {"num_heads": self.heads}
            return one_node("MultiHeadAttention", operands, (), options, 1, domain=MICROSOFT)
        options = {"num_heads": self.heads, "kv_num_heads": self.heads // self.shared}
        return one_node("GroupQueryAttention", operands, (), options, 3, domain=MICROSOFT)

    def _apart(self, y: np.ndarray) -> np.ndarray:
        """Heads in a dimension of their own."""
        return y.reshape(*y.shape[:2], self.heads, -1).transpose(0, 2, 1, 3)


def _joined(x: np.ndarray) -> np.ndarray:
    """All heads in each row."""
    return np.ascontiguousarray(x.transpose(0, 2, 1, 3)).reshape(x.shape[0], x.shape[2], -1)


def attention(
    batch: int, heads: int, queries: int, keys: int, shared: int = 1, causal: bool = False
) -> Attention:
    """Attention of heads of 64 numbers."""

    def in_torch(q: Any, k: Any, v: Any) -> Any:
        import torch

        # Its causal mask begins with the first key, not with the one at the place of the query.
        own = causal and queries == keys
        function = torch.nn.functional.scaled_dot_product_attention
        return function(q, k, v, is_causal=own, enable_gqa=shared > 1)

    own = (batch, heads // shared, keys, 64)
    shapes = (batch, heads, queries, 64), own, own
    return Attention(shapes, batch, heads, shared, causal, torch=in_torch)


OPERATORS: dict[str, Operator] = {
    "BERT, 128 words": attention(1, 12, 128, 128),
    "BERT, 128 words, batch of 8": attention(8, 12, 128, 128),
    "BERT, 512 words": attention(1, 12, 512, 512),
    "BERT, 512 words, batch of 8": attention(8, 12, 512, 512),
    "ViT, 197 patches": attention(1, 12, 197, 197),
    "causal, 4 heads for each of keys, 512 words": attention(1, 32, 512, 512, 4, True),
    "causal, 4 heads for each of keys, one word of 1025": attention(1, 32, 1, 1025, 4, True),
}


if __name__ == "__main__":
    command("attention", OPERATORS, run)
