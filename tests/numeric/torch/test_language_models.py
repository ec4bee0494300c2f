"""Language models and image networks as users write them, for any batch and length."""

from __future__ import annotations

from typing import Any

import pytest

from .compared import as_torch, normal, torch

nn, F = torch.nn, torch.nn.functional
BATCH, LENGTH, PAST = (torch.export.Dim(name) for name in ("batch", "length", "past"))
IDS = torch.tensor([[1, 4, 2, 4], [4, 3, 2, 9]])


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(0)


class Decoder(nn.Module):
    """A step of a decoder: rotary positions, grouped heads, and a cache of keys and values."""

    def __init__(self, width: int = 16, heads: int = 4, groups: int = 2) -> None:
        super().__init__()
        self.size = width // heads
        self.tokens = nn.Embedding(30, width)
        self.before, self.between = nn.RMSNorm(width), nn.RMSNorm(width)
        self.query, self.out = (nn.Linear(width, width, bias=False) for _ in range(2))
        self.key, self.value = (nn.Linear(width, groups * self.size, bias=False) for _ in range(2))
        self.gate, self.up = (nn.Linear(width, 32, bias=False) for _ in range(2))
        self.down = nn.Linear(32, width, bias=False)
        frequencies = 10000 ** (-torch.arange(0, self.size, 2) / self.size)
        self.register_buffer("frequencies", frequencies, persistent=False)

    def heads(self, x: Any) -> Any:
        return x.unflatten(-1, (-1, self.size)).transpose(1, 2)

    def turned(self, x: Any, places: Any) -> Any:
        angles = torch.outer(places.float(), self.frequencies).repeat(1, 2)
        first, second = x.chunk(2, -1)
        return x * angles.cos() + torch.cat([-second, first], -1) * angles.sin()

    def forward(self, ids: Any, keys: Any, values: Any) -> Any:
        past = keys.shape[2]
        places = torch.arange(past, past + ids.shape[1])
        x = self.tokens(ids)
        y = self.before(x)
        query, key = (self.turned(self.heads(p(y)), places) for p in (self.query, self.key))
        keys = torch.cat([keys, key], 2)
        values = torch.cat([values, self.heads(self.value(y))], 2)
        mask = torch.arange(keys.shape[2]) <= places[:, None]
        found = F.scaled_dot_product_attention(query, keys, values, mask, enable_gqa=True)
        x = x + self.out(found.transpose(1, 2).flatten(2))
        y = self.between(x)
        x = x + self.down(F.silu(self.gate(y)) * self.up(y))
        return x @ self.tokens.weight.T, keys, values


@pytest.mark.slow
def test_decoder_with_a_cache() -> None:
    args = [IDS, normal(2, 2, 3, 4), normal(2, 2, 3, 4)]
    first = [IDS, *(torch.zeros(2, 2, 0, 4) for _ in range(2))]
    one = [IDS[:1, :1], normal(1, 2, 6, 4), normal(1, 2, 6, 4)]
    cache = {0: BATCH, 2: PAST}
    as_torch(Decoder(), args, ({0: BATCH, 1: LENGTH}, cache, cache), [first, one])


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(20, 8, padding_idx=0)
        self.layers = nn.LSTM(8, 12, 2, batch_first=True, dropout=0.1)
        self.out = nn.Linear(12, 20)

    def forward(self, ids: Any, h: Any, c: Any) -> Any:
        y, state = self.layers(self.tokens(ids), (h, c))
        return F.log_softmax(self.out(y), -1), state


@pytest.mark.slow
def test_recurrent_language_model() -> None:
    args = [IDS, normal(2, 2, 12), normal(2, 2, 12)]
    other = [IDS[:1, :3], normal(2, 1, 12), normal(2, 1, 12)]
    as_torch(Recurrent(), args, ({0: BATCH, 1: LENGTH}, {1: BATCH}, {1: BATCH}), [other])


class Padded(nn.Module):
    """An encoder and attention that leave out padding, and a causal encoder."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x: Any, padding: Any) -> Any:
        causal = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        return (
            self.encoder(x, src_key_padding_mask=padding),
            self.encoder(x, mask=causal, is_causal=True),
            self.attention(x, x, x, key_padding_mask=padding),
        )


@pytest.mark.slow
def test_encoders_with_padding() -> None:
    padding = torch.tensor([[False, False, False, True, True], [False] * 5])
    sizes = {0: BATCH, 1: LENGTH}
    other = [normal(3, 7, 8), torch.arange(7) > torch.tensor([[6], [2], [0]])]
    as_torch(Padded(), [normal(2, 5, 8), padding], (sizes, sizes), [other])


class Images(nn.Module):
    """A network that halves images and doubles them again."""

    def __init__(self, mode: str) -> None:
        super().__init__()
        self.down, self.inner = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 6, 3, padding=1)
        self.up = nn.Upsample(scale_factor=2, mode=mode)
        self.norm, self.out = nn.BatchNorm2d(10), nn.Conv2d(10, 2, 1)

    def forward(self, x: Any) -> Any:
        large = self.down(x).relu()
        small = self.inner(F.max_pool2d(large, 2)).relu()
        return self.out(self.norm(torch.cat([large, self.up(small)], 1)))


class Both(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.networks = nn.ModuleList(Images(mode) for mode in ("bilinear", "nearest"))

    def forward(self, x: Any) -> Any:
        return [network(x) for network in self.networks]


def test_images_that_are_halved_and_doubled(all_tests: bool) -> None:
    others = [[normal(1, 3, 8, 8)]]
    as_torch(Both(), [normal(2, 3, 8, 8)], ({0: BATCH},), others, compiles=all_tests)
