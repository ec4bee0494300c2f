"""Operators of com.microsoft in transformers, compared with their meaning in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.helper import make_graph, make_model, make_node, make_opsetid, make_tensor_value_info
from scipy.special import erf

import stepwell as sw

from ..harness import close, floats

DOMAIN = "com.microsoft"

Arrays = list[np.ndarray]


@dataclass
class Case:
    """A node, its operands, None for an omitted one, and what it means."""

    kind: str
    operands: Sequence[np.ndarray | None]
    expected: Callable[..., Sequence[np.ndarray | None]]
    attributes: dict[str, Any] = field(default_factory=dict[str, Any])
    domain: str = DOMAIN
    symbolic: dict[int, Sequence[int | str]] = field(default_factory=dict[int, Sequence[int | str]])
    """The shapes of some operands, with names for sizes."""

    def wanted(self) -> Sequence[np.ndarray | None]:
        """The results; None for one that is not compared."""
        return self.expected(*self.operands, **self.attributes)


def model(cases: Sequence[Case]) -> onnx.ModelProto:
    """All nodes in one model; results that are None are left out."""
    nodes, inputs, outputs = list[Any](), list[Any](), list[Any]()
    for number, case in enumerate(cases):
        names = ["" if x is None else f"x{number}_{i}" for i, x in enumerate(case.operands)]
        for i, (name, x) in enumerate(zip(names, case.operands, strict=True)):
            if x is not None:
                kind = onnx.helper.np_dtype_to_tensor_dtype(x.dtype)
                inputs.append(make_tensor_value_info(name, kind, case.symbolic.get(i, x.shape)))
        wanted = case.wanted()
        results = ["" if y is None else f"y{number}_{i}" for i, y in enumerate(wanted)]
        outputs += [onnx.ValueInfoProto(name=name) for name in results if name]
        node = make_node(case.kind, names, results, f"n{number}", **case.attributes)
        node.domain = case.domain
        nodes.append(node)
    graph = make_graph(nodes, "g", inputs, outputs)
    opsets = [make_opsetid("", 18), make_opsetid(DOMAIN, 1)]
    return make_model(graph, opset_imports=opsets, ir_version=9)


def as_meant(cases: Sequence[Case], all_tests: bool) -> tuple[sw.Executable, Arrays]:
    """Compare what is compiled, and the reference, with the meaning of each node.

    In quick tests it is compiled without a schedule. Returns what is compiled, and its operands.
    """
    module = sw.from_onnx(model(cases))
    arrays = [x for case in cases for x in case.operands if x is not None]
    wanted = [y for case in cases for y in case.wanted() if y is not None]
    exe = sw.compile(module, threads=1, opt_level=3 if all_tests else 0)
    for run in (module.run_reference, exe):
        close(run(*arrays), wanted, 1e-4, 2e-5)
    return exe, arrays


def ints(values: Any) -> np.ndarray:
    return np.array(values, np.int32)


# Activations, normalisations and products.


def gelu(x: np.ndarray) -> np.ndarray:
    return (x * (1 + erf(x / np.sqrt(2))) / 2).astype(np.float32)


def fast_gelu(x: np.ndarray) -> np.ndarray:
    inner = np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)
    return (x * (1 + np.tanh(inner)) / 2).astype(np.float32)


def layer_norm(x: np.ndarray, gamma: np.ndarray, beta: Any, epsilon: float) -> np.ndarray:
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    y = (x - mean) / np.sqrt(variance + np.float32(epsilon)) * gamma
    return y if beta is None else y + beta


def rms_norm(x: np.ndarray, gamma: np.ndarray, epsilon: float) -> np.ndarray:
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + np.float32(epsilon)) * gamma


def skip_layer_norm(
    x: Any, skip: Any, gamma: Any, beta: Any = None, bias: Any = None, epsilon: float = 1e-12
) -> Arrays:
    total = x + skip + (0 if bias is None else bias)
    return [layer_norm(total, gamma, beta, epsilon), None, None, total]  # type: ignore


def skip_rms_norm(x: Any, skip: Any, gamma: Any, bias: Any = None, epsilon: float = 1e-12) -> Any:
    total = x + skip + (0 if bias is None else bias)
    return [rms_norm(total, gamma, epsilon), None, None, total]


def embedded(
    ids: Any,
    segments: Any,
    words: Any,
    places: Any,
    kinds: Any,
    gamma: Any,
    beta: Any,
    mask: Any = None,
    own: Any = None,
    epsilon: float = 1e-12,
) -> Any:
    total = words[ids] + places[np.arange(ids.shape[1])[None] if own is None else own]
    if segments is not None:
        total = total + kinds[segments]
    count = np.zeros(len(ids), np.int32) if mask is None else mask.sum(1).astype(np.int32)
    return [layer_norm(total, gamma, beta, epsilon), count, total]


def fused_matmul(a: Any, b: Any, transA: int = 0, transB: int = 0, alpha: float = 1.0) -> Any:
    a, b = (np.swapaxes(x, -1, -2) if t else x for x, t in ((a, transA), (b, transB)))
    return [(np.float32(alpha) * (a @ b)).astype(np.float32)]


IDS, TABLE = ints([[1, 3, 0], [2, 2, 4]]), floats(5, 8)
NORMS = [
    Case("Gelu", [floats(3, 8)], lambda x: [gelu(x)]),
    Case("BiasGelu", [floats(2, 3, 8), floats(8)], lambda x, b: [gelu(x + b)]),
    Case("FastGelu", [floats(3, 8), floats(8)], lambda x, b: [fast_gelu(x + b)]),
    Case("FastGelu", [floats(3, 8)], lambda x: [fast_gelu(x)]),
    Case(
        "QuickGelu",
        [floats(3, 8)],
        lambda x, alpha: [(x / (1 + np.exp(-np.float32(alpha) * x)))],
        {"alpha": 1.5},
    ),
    Case(
        "SkipLayerNormalization",
        [floats(2, 3, 8), floats(2, 3, 8), floats(8), floats(8), floats(8)],
        skip_layer_norm,
        {"epsilon": 1e-5},
    ),
    Case("SkipLayerNormalization", [floats(2, 3, 8), floats(1, 3, 8), floats(8)], skip_layer_norm),
    Case(
        "SimplifiedLayerNormalization",
        [floats(2, 3, 8), floats(8)],
        lambda x, s, axis, epsilon: [rms_norm(x, s, epsilon)],
        {"axis": -1, "epsilon": 1e-6},
        domain="",
    ),
    Case(
        "SkipSimplifiedLayerNormalization",
        [floats(2, 3, 8), floats(2, 3, 8), floats(8), floats(8)],
        skip_rms_norm,
        {"epsilon": 1e-6},
    ),
    Case(
        "EmbedLayerNormalization",
        [
            IDS,
            IDS % 2,
            TABLE,
            floats(6, 8),
            floats(2, 8),
            floats(8),
            floats(8),
            ints([[1, 1, 0]] * 2),
        ],
        embedded,
        {"epsilon": 1e-12},
    ),
    Case(
        "EmbedLayerNormalization",
        [IDS, None, TABLE, floats(6, 8), None, floats(8), floats(8), None, ints([[5, 0, 1]] * 2)],
        embedded,
    ),
    Case(
        "FusedMatMul",
        [floats(2, 4, 3), floats(2, 5, 4)],
        fused_matmul,
        {"transA": 1, "transB": 1, "alpha": 0.5},
    ),
    Case("FusedMatMul", [floats(3, 4), floats(4, 5)], fused_matmul),
]


def test_activations_normalisations_and_products(all_tests: bool) -> None:
    as_meant(NORMS, all_tests)


# Attention.


def heads_of(x: np.ndarray, count: int) -> np.ndarray:
    batch, rows, width = x.shape
    return x.reshape(batch, rows, count, width // count).transpose(0, 2, 1, 3)


def flat(y: np.ndarray) -> np.ndarray:
    batch, heads, rows, width = y.shape
    return y.transpose(0, 2, 1, 3).reshape(batch, rows, heads * width).astype(np.float32)


def attended(
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    added: Any = 0,
    scale: float = 0,
    softcap: float = 0,
) -> np.ndarray:
    k, v = (np.repeat(x, q.shape[1] // x.shape[1], 1) for x in (k, v))
    scores = q.astype(float) @ k.swapaxes(-1, -2) * (scale or q.shape[-1] ** -0.5)
    scores = (np.tanh(scores / softcap) * softcap if softcap else scores) + added
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return flat(e / e.sum(-1, keepdims=True) @ v)


def left_out(mask: Any, keys: int, filler: float = -10000.0) -> Any:
    if mask is None:
        return 0.0
    if mask.ndim == 1:
        mask = np.arange(keys) < mask[:, None]
    return np.where(mask[:, None, None] if mask.ndim == 2 else mask[:, None], 0.0, filler)


def causal(queries: int, keys: int, window: int = -1) -> np.ndarray:
    place, key = np.arange(queries)[:, None] + keys - queries, np.arange(keys)
    kept = (key <= place) & ((key > place - window) | (window < 0))
    return np.where(kept, 0.0, -np.inf)


def packed(
    x: Any,
    w: Any,
    b: Any,
    mask: Any = None,
    past: Any = None,
    bias: Any = None,
    num_heads: int = 1,
    unidirectional: int = 0,
    scale: float = 0,
    qkv_hidden_sizes: Any = None,
    mask_filter_value: float = -10000.0,
) -> Any:
    y = x @ w + b
    sizes = qkv_hidden_sizes or [y.shape[-1] // 3] * 3
    q, k, v = (heads_of(p, num_heads) for p in np.split(y, np.cumsum(sizes)[:-1], -1))
    if past is not None:
        k, v = (np.concatenate([p, n], 2) for p, n in zip(past, (k, v), strict=True))
    keys = k.shape[2]
    added = left_out(mask, keys, mask_filter_value) + (0 if bias is None else bias)
    added = added + (causal(q.shape[2], keys) if unidirectional else 0)
    present = None if past is None else np.stack([k, v])
    return [attended(q, k, v, added, scale), present]


def multi_head(
    q: Any,
    k: Any = None,
    v: Any = None,
    b: Any = None,
    mask: Any = None,
    bias: Any = None,
    past_k: Any = None,
    past_v: Any = None,
    num_heads: int = 1,
    scale: float = 0,
    unidirectional: int = 0,
) -> Any:
    if q.ndim == 5:
        q, k, v = (q[:, :, :, n].transpose(0, 2, 1, 3) for n in range(3))
    else:
        if k.ndim == 5:
            k, v = (k[:, :, :, n].reshape(*k.shape[:2], -1) for n in range(2))
        if b is not None:
            parts = np.split(b, np.cumsum([q.shape[-1], k.shape[-1]]))
            q, k, v = (x + own for x, own in zip((q, k, v), parts, strict=True))
        q, k, v = (x if x.ndim == 4 else heads_of(x, num_heads) for x in (q, k, v))
    if past_k is not None:
        k, v = np.concatenate([past_k, k], 2), np.concatenate([past_v, v], 2)
    added = left_out(mask, k.shape[2]) + (0 if bias is None else bias)
    added = added + (causal(q.shape[2], k.shape[2]) if unidirectional else 0)
    y = attended(q, k, v, added, scale)
    return [y] if past_k is None else [y, k, v]


def turned(
    x: np.ndarray, cos: np.ndarray, sin: np.ndarray, places: np.ndarray, interleaved: int
) -> np.ndarray:
    c, s = cos[places][:, None], sin[places][:, None]
    half = cos.shape[1]
    y = x.copy()
    first = np.s_[..., 0 : 2 * half : 2] if interleaved else np.s_[..., :half]
    second = np.s_[..., 1 : 2 * half : 2] if interleaved else np.s_[..., half : 2 * half]
    y[first], y[second] = x[first] * c - x[second] * s, x[second] * c + x[first] * s
    return y


def rotary(
    x: Any,
    places: Any,
    cos: Any,
    sin: Any,
    interleaved: int = 0,
    num_heads: int = 0,
    rotary_embedding_dim: int = 0,
) -> Any:
    count = num_heads or (x.shape[-1] // (2 * cos.shape[1]) if x.ndim == 3 else 1)
    y = heads_of(x, count) if x.ndim == 3 else x
    if places.ndim == 1:
        places = places + np.arange(y.shape[2])[None]
    y = turned(y, cos, sin, places, interleaved)
    return [flat(y) if x.ndim == 3 else y]


def grouped(
    q: Any,
    k: Any,
    v: Any,
    past_k: Any,
    past_v: Any,
    lengths: Any,
    total: Any,
    cos: Any = None,
    sin: Any = None,
    num_heads: int = 1,
    kv_num_heads: int = 1,
    do_rotary: int = 0,
    rotary_interleaved: int = 0,
    local_window_size: int = -1,
    softcap: float = 0,
    scale: float = 0,
) -> Any:
    if k is None:
        width = q.shape[-1] // (num_heads + 2 * kv_num_heads)
        q, k, v = np.split(q, [num_heads * width, (num_heads + kv_num_heads) * width], -1)
    q, k, v = heads_of(q, num_heads), heads_of(k, kv_num_heads), heads_of(v, kv_num_heads)
    start = 0 if past_k is None else past_k.shape[2]
    if do_rotary:
        places = start + np.arange(q.shape[2])[None]
        q, k = (turned(x, cos, sin, places, rotary_interleaved) for x in (q, k))
    if past_k is not None:
        k, v = np.concatenate([past_k, k], 2), np.concatenate([past_v, v], 2)
    added = causal(q.shape[2], k.shape[2], local_window_size)
    return [attended(q, k, v, added, scale, softcap), k, v]


MULTI = [
    Case(
        "MultiHeadAttention",
        [floats(2, 3, 8), floats(2, 5, 8), floats(2, 5, 12)],
        multi_head,
        {"num_heads": 2},
    ),
    Case(
        "MultiHeadAttention",
        [
            floats(2, 3, 8),
            floats(2, 5, 8),
            floats(2, 5, 8),
            floats(24),
            ints([[1, 1, 0, 1, 0]] * 2),
            floats(1, 2, 3, 5),
        ],
        multi_head,
        {"num_heads": 2, "scale": 0.3},
    ),
    Case("MultiHeadAttention", [floats(2, 3, 2, 3, 4)], multi_head, {"num_heads": 2}),
    Case(
        "MultiHeadAttention", [floats(2, 3, 8), floats(2, 5, 2, 2, 4)], multi_head, {"num_heads": 2}
    ),
    Case(
        "MultiHeadAttention",
        [
            floats(2, 1, 8),
            floats(2, 1, 8),
            floats(2, 1, 8),
            None,
            None,
            None,
            floats(2, 2, 6, 4),
            floats(2, 2, 6, 4),
        ],
        multi_head,
        {"num_heads": 2, "unidirectional": 1},
        symbolic={
            6: ["b", 2, "p", 4],
            7: ["b", 2, "p", 4],
            0: ["b", 1, 8],
            1: ["b", 1, 8],
            2: ["b", 1, 8],
        },
    ),
]
PACKED = [
    Case(
        "Attention",
        [floats(2, 3, 6), floats(6, 24), floats(24), ints([3, 1])],
        packed,
        {"num_heads": 2},
    ),
    Case(
        "Attention",
        [floats(2, 3, 6), floats(6, 20), floats(20), ints([[1, 0, 1], [1, 1, 1]])],
        packed,
        {"num_heads": 2, "qkv_hidden_sizes": [8, 8, 4], "mask_filter_value": -100.0},
    ),
    Case(
        "Attention",
        [floats(2, 3, 6), floats(6, 24), floats(24), None, floats(2, 2, 2, 4, 4)],
        packed,
        {"num_heads": 2, "unidirectional": 1, "scale": 0.2},
    ),
]
CACHES = floats(9, 4), floats(9, 4)
WIDE = floats(9, 8), floats(9, 8)
GROUPED = [
    Case(
        "GroupQueryAttention",
        [
            floats(2, 5, 64),
            floats(2, 5, 32),
            floats(2, 5, 32),
            None,
            None,
            ints([4, 4]),
            ints(5),
            *WIDE,
        ],
        grouped,
        {"num_heads": 4, "kv_num_heads": 2, "do_rotary": 1, "local_window_size": 3},
    ),
    Case(
        "GroupQueryAttention",
        [
            floats(2, 1, 128),
            None,
            None,
            floats(2, 2, 6, 16),
            floats(2, 2, 6, 16),
            ints([6, 6]),
            ints(7),
            *WIDE,
        ],
        grouped,
        {
            "num_heads": 4,
            "kv_num_heads": 2,
            "do_rotary": 1,
            "rotary_interleaved": 1,
            "softcap": 2.0,
        },
    ),
]
ROTARY = [
    Case("RotaryEmbedding", [floats(2, 3, 16), np.array([2]), *CACHES], rotary),
    Case(
        "RotaryEmbedding",
        [floats(2, 2, 3, 8), np.array([[0, 4, 2]] * 2), *CACHES],
        rotary,
        {"interleaved": 1},
    ),
    Case(
        "RotaryEmbedding",
        [floats(2, 3, 20), np.array([[0, 4, 2]] * 2), *CACHES],
        rotary,
        {"num_heads": 2, "rotary_embedding_dim": 8},
    ),
]


def test_attention_of_heads(all_tests: bool) -> None:
    as_meant([*MULTI, *PACKED], all_tests)


def test_groups_of_heads_and_rotary_embeddings(all_tests: bool) -> None:
    exe, arrays = as_meant([*GROUPED, *ROTARY], all_tests)
    lengths = GROUPED[1].operands[5]
    arrays = [ints([6, 5]) if x is lengths else x for x in arrays]
    with pytest.raises(sw.StepwellError, match="seqlens_k is not that of the past"):
        exe(*arrays)


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (
            Case(
                "GroupQueryAttention",
                GROUPED[0].operands,
                grouped,
                {"num_heads": 4, "kv_num_heads": 2, "smooth_softmax": 1},
            ),
            "attribute smooth_softmax = 1 is not supported, only 0",
        ),
        (
            Case(
                "FusedMatMul", [floats(2, 3, 4), floats(2, 4, 5)], fused_matmul, {"transBatchA": 1}
            ),
            "attribute transBatchA = 1 is not supported, only 0",
        ),
        (
            Case(
                "RotaryEmbedding",
                [floats(2, 3, 4), np.array([2]), *CACHES],
                rotary,
                {"num_heads": 1},
            ),
            "angles for more numbers than a head has, expected at most 4, got 8",
        ),
    ],
)
def test_refused(case: Case, message: str) -> None:
    case.expected = lambda *arrays, **attributes: [floats(1)]
    with pytest.raises(sw.StepwellError, match=message):
        sw.from_onnx(model([case]))
