"""Attention and rotary embeddings of com.microsoft, as in exported transformers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.algebra.dims import Dim
from ...importing.attention import attended, joined_heads, split_heads
from ...importing.elementwise import cast
from ...importing.selection import apart
from ...importing.shapes import matrix_product, places_of, reshaped, transposed, unsqueezed
from ...importing.values import Value
from ..nodes import Node
from ..registry import converts
from .microsoft_fused import MICROSOFT

_I64 = np.dtype(np.int64)


def _scale(node: Node, q: Value) -> float:
    """The attribute `scale`, or 1 / sqrt of the width of heads."""
    given = node.attr_float("scale", 0.0)
    if given:
        return given
    if not q.shape[-1].is_static:
        raise node.unsupported("heads of a width that is not known")
    return float(1 / np.sqrt(q.shape[-1].value))


@converts("Attention", since=1, domain=MICROSOFT)
def attention(node: Node) -> list[Value | None]:
    x, weights, bias = node.input(0), node.input(1), node.optional(2)
    heads = node.attr_int("num_heads")
    node.insist({"do_rotary": 0, "past_present_share_buffer": 0})
    node.ignore("rotary_embedding_dim")
    if node.optional(6) is not None:
        raise node.unsupported("a past in a shared buffer is not supported")
    projected = matrix_product(node, x, weights)
    if bias is not None:
        projected = node.add(projected, bias)
    sizes = node.attr_ints("qkv_hidden_sizes")
    width = projected.shape[2].exact_div(Dim.of(3))
    if sizes is None and (width is None or not width.is_static):
        raise node.broken("the weights are not those of q, k and v", got=projected.shape[2])
    sizes = sizes or [width.value] * 3 if width is not None else sizes
    assert sizes is not None
    q, k, v = (split_heads(node, part, heads) for part in apart(node, projected, 2, sizes))
    past, present = node.optional(4), None
    if past is not None:
        old_k, old_v = (reshaped(node, p, p.shape[1:]) for p in apart(node, past, 0, [1, 1]))
        k, v = _appended(node, old_k, k), _appended(node, old_v, v)
    if node.wants(1):
        present = node.concat([unsqueezed(node, part, [0]) for part in (k, v)], axis=0)
    y = _masked(node, q, k, v, node.optional(3), node.optional(5))
    return [joined_heads(node, y), present]


@converts("MultiHeadAttention", since=1, domain=MICROSOFT)
def multi_head_attention(node: Node) -> list[Value | None]:
    heads = node.attr_int("num_heads")
    for number in (8, 9):
        if node.optional(number) is not None:
            raise node.unsupported(f"operand {number}, of a shared buffer, is not supported")
    if node.wants(3):
        raise node.unsupported("result 3, the scores, is not supported")
    q, k, v = _queries_keys_values(node, heads)
    past_k, past_v = node.optional(6), node.optional(7)
    if past_k is not None and past_v is not None:
        k, v = _appended(node, past_k, k), _appended(node, past_v, v)
    y = _masked(node, q, k, v, node.optional(4), node.optional(5))
    return [joined_heads(node, y), k if node.wants(1) else None, v if node.wants(2) else None]


def _queries_keys_values(node: Node, heads: int) -> tuple[Value, Value, Value]:
    """q, k and v as [B, H, L, D], from operands that have them apart or packed."""
    given, key, value = node.input(0), node.optional(1), node.optional(2)
    if given.rank == 5:  # [B, L, H, 3, D]
        _refuse_bias(node)
        parts = [
            reshaped(node, p, [*p.shape[:3], p.shape[4]]) for p in apart(node, given, 3, [1] * 3)
        ]
        q, k, v = (transposed(node, part, [0, 2, 1, 3]) for part in parts)
        return q, k, v
    if key is None:
        raise node.broken("operand 1 is missing")
    if key.rank == 5:  # [B, S, H, 2, D]
        _refuse_bias(node)
        parts = [
            reshaped(node, p, [*p.shape[:3], p.shape[4]]) for p in apart(node, key, 3, [1] * 2)
        ]
        k, v = (transposed(node, part, [0, 2, 1, 3]) for part in parts)
        return split_heads(node, given, heads), k, v
    if value is None:
        raise node.broken("operand 2 is missing")
    every = [given, key, value]
    bias = node.optional(3)
    if bias is not None:
        sizes = [part.shape[2 if part.rank == 3 else 3] for part in every]
        if any(part.rank == 4 for part in every) or not all(size.is_static for size in sizes):
            raise node.unsupported("a bias of keys in the form of a past is not supported")
        biases = apart(node, bias, 0, [size.value for size in sizes])
        every = [node.add(p, b) for p, b in zip(every, biases, strict=True)]
    q, k, v = (part if part.rank == 4 else split_heads(node, part, heads) for part in every)
    return q, k, v


def _unpacked(node: Node, x: Value, count: int) -> list[Value]:
    """The parts of [B, L, H, count, D] as [B, H, L, D]."""
    parts = (reshaped(node, p, [*p.shape[:3], p.shape[4]]) for p in apart(node, x, 3, [1] * count))
    return [transposed(node, part, [0, 2, 1, 3]) for part in parts]


def _refuse_bias(node: Node) -> None:
    if node.optional(3) is not None:
        raise node.unsupported("a bias of packed operands is not supported")


def _appended(node: Node, past: Value, new: Value) -> Value:
    """Keys or values of the past, and new ones."""
    return node.concat([past, new], axis=2)


def _masked(
    node: Node, q: Value, k: Value, v: Value, mask: Value | None, bias: Value | None
) -> Value:
    """Attention with the masks that `Attention` and `MultiHeadAttention` know."""
    causal = bool(node.attr_int("unidirectional"))
    filler = node.attr_float("mask_filter_value", -10000.0)
    added = bias
    if mask is not None:
        kept = _kept(node, mask, k.shape[2])
        left_out = node.where(kept, node.scalar(0.0, q), filler)
        added = left_out if bias is None else node.add(bias, left_out)
    properties: dict[str, Any] = {"scale": _scale(node, q), "safe": True}
    if causal:
        properties |= {"right": 0, "at_end": True}
    return attended(node, q, k, v, added, **properties)


def _kept(node: Node, mask: Value, keys: Dim) -> Value:
    """Which keys a mask of integers keeps, in a shape that broadcasts to [B, H, L, S]."""
    if mask.rank == 1:
        # The number of keys of each element of the batch.
        places = places_of(node, keys)
        ends = unsqueezed(node, cast(node, mask, _I64), [1, 2, 3])
        return node.less(places, ends)
    kept = node.greater(mask, node.known(np.array(0, mask.dtype)))
    if mask.rank == 4:
        return kept
    if mask.rank > 4:
        raise node.broken("the mask has the wrong rank", "1 to 4", mask.rank)
    return unsqueezed(node, kept, [1, 2] if mask.rank == 2 else [1])


@converts("RotaryEmbedding", since=1, domain=MICROSOFT)
def rotary_embedding(node: Node) -> Value:
    x, places = node.input(0), node.input(1)
    node.insist({"is_packed_batching": 0})
    node.ignore("scale")
    heads, partial = node.attr_int("num_heads"), node.attr_int("rotary_embedding_dim")
    interleaved = bool(node.attr_int("interleaved"))
    cos, sin = node.input(2), node.input(3)
    flat = x.rank == 3
    if flat:
        width = cos.shape[1] * 2
        count = Dim.of(heads) if heads else x.shape[2].exact_div(width)
        if (partial and not heads) or count is None or not count.is_static:
            raise node.broken("the number of heads is not known", "num_heads")
        x = split_heads(node, x, count.value)
    if places.rank == 1:
        # The place of the first row.
        every = places_of(node, x.shape[2])
        places = unsqueezed(node, node.add(every, places), [0])
    rotated = _rotated(node, x, cos, sin, places, interleaved)
    return joined_heads(node, rotated) if flat else rotated


def _rotated(
    node: Node, x: Value, cos: Value, sin: Value, places: Value, interleaved: bool
) -> Value:
    """x, of shape [B, H, L, D], with pairs of numbers rotated by angles of the place of a row."""
    half = cos.shape[1]
    if not half.is_static or not x.shape[3].is_static:
        raise node.unsupported("heads of a width that is not known")
    size, width = 2 * half.value, x.shape[3].value
    if size > width:
        raise node.broken("angles for more numbers than a head has", f"at most {width}", size)
    kept: list[Value] = []
    if size < width:
        x, rest = apart(node, x, 3, [size, width - size])
        kept.append(rest)
    c, s = (unsqueezed(node, node.gather(table, places, axis=0), [1]) for table in (cos, sin))
    if interleaved:
        pairs = reshaped(node, x, [*x.shape[:3], half, Dim.of(2)])
        a, b = (reshaped(node, p, [*p.shape[:4]]) for p in apart(node, pairs, 4, [1, 1]))
    else:
        a, b = apart(node, x, 3, [half.value, half.value])
    turned = [
        node.sub(node.mul(a, c), node.mul(b, s)),
        node.add(node.mul(b, c), node.mul(a, s)),
    ]
    if interleaved:
        apart_ = [unsqueezed(node, part, [4]) for part in turned]
        joined = reshaped(node, node.concat(apart_, axis=4), x.shape)
        return node.concat([joined, *kept], axis=3) if kept else joined
    return node.concat([*turned, *kept], axis=3)


@converts("GroupQueryAttention", since=1, domain=MICROSOFT)
def group_query_attention(node: Node) -> list[Value | None]:
    heads, shared = node.attr_int("num_heads"), node.attr_int("kv_num_heads")
    node.insist(
        {"smooth_softmax": 0, "qk_output": 0, "k_quant_type": "NONE", "v_quant_type": "NONE"}
    )
    node.ignore("kv_cache_bit_width")
    q, k, v = _grouped(node, heads, shared)
    past_k, past_v, lengths = node.optional(3), node.optional(4), node.input(5)
    bias = node.optional(10)
    if node.optional(11) is not None:
        raise node.unsupported("operand 11, a sink of heads, is not supported")
    start = Dim.of(0) if past_k is None else past_k.shape[2]
    counts = _counts(node, lengths, q.shape[2], start)
    if node.attr_int("do_rotary"):
        q, k = _placed(node, q, k, start)
    if past_k is not None and past_v is not None:
        k, v = _appended(node, past_k, k), _appended(node, past_v, v)
    window = node.attr_int("local_window_size", -1)
    properties: dict[str, Any] = {
        "scale": _scale(node, q),
        "softcap": node.attr_float("softcap", 0.0),
        "left": window - 1 if window > 0 else -1,
        "right": 0,
        "at_end": start != 0,
        "safe": True,
    }
    y = attended(node, q, k, v, bias, counts, **properties)
    return [joined_heads(node, y), k, v]


def _grouped(node: Node, heads: int, shared: int) -> tuple[Value, Value, Value]:
    """q, k and v as [B, H, L, D], from operands that have them apart or in one."""
    given, key, value = node.input(0), node.optional(1), node.optional(2)
    if key is None or value is None:
        width = given.shape[2].exact_div(Dim.of(heads + 2 * shared))
        if width is None or not width.is_static:
            raise node.broken("the width is not that of q, k and v", got=given.shape[2])
        sizes = [heads * width.value, shared * width.value, shared * width.value]
        given, key, value = apart(node, given, 2, sizes)
    parts = ((given, heads), (key, shared), (value, shared))
    q, k, v = (split_heads(node, part, count) for part, count in parts)
    return q, k, v


def _counts(node: Node, lengths: Value, rows: Dim, start: Dim) -> Value | None:
    """How many keys each element of the batch has.

    Without a past, elements of a batch may have different numbers. With one all keys count: new
    ones follow those of the past.
    """
    wide = cast(node, reshaped(node, lengths, [lengths.shape[0]]), _I64)
    counts = node.add(wide, node.known(np.array(1)))
    if start == 0:
        return counts
    total = node.number(start + rows)
    same = node.equal(counts, total)
    every = node.reduce(cast(node, same, _I64), kind="min", axes=[0], keepdims=False)
    holds = cast(node, every, np.dtype(np.bool_))
    message = (
        f"onnx.GroupQueryAttention: seqlens_k is not that of the past and the new keys, "
        f"expected their number less 1 ({node.origin})"
    )
    return node.check(counts, holds, [], message)


def _placed(node: Node, q: Value, k: Value, start: Dim) -> tuple[Value, Value]:
    """q and k, rotated by the angles of their places."""
    cos, sin, places = node.input(7), node.input(8), node.optional(9)
    if places is None:
        every = places_of(node, q.shape[2])
        if start != 0:
            every = node.add(every, node.number(start))
        places = unsqueezed(node, every, [0])
    interleaved = bool(node.attr_int("rotary_interleaved"))
    return (
        _rotated(node, q, cos, sin, places, interleaved),
        _rotated(node, k, cos, sin, places, interleaved),
    )
