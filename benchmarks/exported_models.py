"""Models of the usual kinds, as torch exports them to ONNX: random weights, the same in each run.

Each function makes one model; its arguments are sizes.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from onnx import ModelProto, TensorProto, helper, numpy_helper
from torch import nn
from torch.nn import functional

ANY = torch.export.Dim.DYNAMIC


class Exported(NamedTuple):
    """A model, inputs for it, and what torch computes from them with the module that was exported
    (None where the model has more than that)."""

    proto: ModelProto
    arrays: list[np.ndarray]
    expected: list[np.ndarray] | None
    module: nn.Module | None


def export(
    make: Callable[[], nn.Module],
    args: Sequence[torch.Tensor],
    sizes: Any = None,
    names: Sequence[str] | None = None,
) -> Exported:
    """Export a model by `torch.onnx.export`, which gets the symbolic sizes, if there are any."""
    torch.manual_seed(0)
    model: Any = make().eval()
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            statistics: Any = module
            statistics.running_mean.uniform_(-0.1, 0.1)
            statistics.running_var.uniform_(0.5, 2.0)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = model(*args)
        options: dict[str, Any] = {"input_names": names, "dynamic_shapes": sizes, "verbose": False}
        program: Any = torch.onnx.export(model, tuple(args), dynamo=True, **options)
    results = found if isinstance(found, tuple) else (found,)
    arrays, expected = ([x.numpy() for x in some] for some in (args, results))
    return Exported(program.model_proto, arrays, expected, model)


class Apply(nn.Module):
    """A function as a layer."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Any) -> Any:
        return self.function(x)


def recurrent(kind: str, *sizes: int, **options: bool) -> list[nn.Module]:
    """Recurrent layers, without their last state."""
    return [getattr(nn, kind)(*sizes, **options), Apply(lambda found: found[0])]


def language_model(
    kind: str,
    words: int = 10000,
    width: int = 256,
    layers: int = 2,
    batch: int = 1,
    steps: int = 64,
) -> Exported:
    """Tokens, LSTM or GRU layers, and a score for each word."""

    def make() -> nn.Module:
        return nn.Sequential(
            nn.Embedding(words, width),
            *recurrent(kind, width, width, layers, batch_first=True),
            nn.Linear(width, words),
        )

    return export(make, [_tokens(words, batch, steps)], names=["tokens"])


def _tokens(words: int, *shape: int) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(1).integers(0, words, shape))


def _numbers(*shape: int) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(1).standard_normal(shape, np.float32))


def _convolution(inputs: int, outputs: int, window: int = 3, stride: int = 1) -> nn.Sequential:
    """A convolution, a batch norm, and SiLU."""
    conv = nn.Conv2d(inputs, outputs, window, stride, window // 2, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(outputs), nn.SiLU())


def text_reader(width: int = 64, length: int = 100, characters: int = 37) -> Exported:
    """A convolutional recurrent network for lines of text of 32 x `length`: Shi et al., 2015."""

    def make() -> nn.Module:
        channels = [1, width, 2 * width, 4 * width, 4 * width, 8 * width, 8 * width]
        pools = [(2, 2), (2, 2), None, (2, 1), None, (2, 1)]
        parts = list[nn.Module]()
        for (inputs, outputs), pool in zip(itertools.pairwise(channels), pools, strict=True):
            parts += [nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU()]
            parts += [] if pool is None else [nn.MaxPool2d(pool)]
        parts += [nn.Conv2d(8 * width, 8 * width, (2, 1)), nn.ReLU()]
        parts.append(Apply(lambda image: image.squeeze(2).permute(2, 0, 1)))
        parts += recurrent("LSTM", 8 * width, 4 * width, 2, bidirectional=True)
        return nn.Sequential(*parts, nn.Linear(8 * width, characters), nn.LogSoftmax(-1))

    return export(make, [_numbers(1, 1, 32, length)])


class EncoderLayer(nn.Module):
    """A layer of BERT."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.network = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        shape = (batch, length, self.heads, width // self.heads)
        q, k, v = (
            layer(x).view(shape).transpose(1, 2) for layer in (self.query, self.key, self.value)
        )
        mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = self.first(x + self.out(mixed.transpose(1, 2).reshape(batch, length, width)))
        return self.second(x + self.network(x))


class Encoder(nn.Module):
    """BERT: Devlin et al., 2018."""

    def __init__(self, words: int, width: int, heads: int, layers: int) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(512, width)
        self.kinds, self.norm = nn.Embedding(2, width), nn.LayerNorm(width)
        self.layers = nn.ModuleList(EncoderLayer(width, heads) for _ in range(layers))

    def forward(
        self, tokens: torch.Tensor, mask: torch.Tensor, kinds: torch.Tensor
    ) -> torch.Tensor:
        places = self.places(torch.arange(tokens.shape[1]))
        x = self.norm(self.words(tokens) + places + self.kinds(kinds))
        added = (1.0 - mask[:, None, None, :].to(x.dtype)) * torch.finfo(x.dtype).min
        for layer in self.layers:
            x = layer(x, added)
        return x


def encoder(
    words: int = 30522,
    width: int = 768,
    heads: int = 12,
    layers: int = 12,
    batch: int = 1,
    length: int = 128,
) -> Exported:
    """BERT for any batch and any length; the last fifth of each sequence is masked."""
    mask = torch.ones(batch, length, dtype=torch.int64)
    mask[:, length - length // 5 :] = 0
    args = [_tokens(words, batch, length), mask, _tokens(2, batch, length)]
    make = lambda: Encoder(words, width, heads, layers)  # noqa: E731
    sizes = [{0: ANY, 1: ANY}] * 3
    return export(make, args, sizes, ["input_ids", "attention_mask", "token_type_ids"])


class DecoderLayer(nn.Module):
    """A layer of Llama, for one new token."""

    def __init__(self, width: int, heads: int, shared: int) -> None:
        super().__init__()
        self.heads, self.shared, self.size = heads, shared, width // heads
        self.query, self.out = (nn.Linear(width, width, bias=False) for _ in range(2))
        self.key, self.value = (nn.Linear(width, shared * self.size, bias=False) for _ in range(2))
        self.gate, self.up = (nn.Linear(width, 3 * width, bias=False) for _ in range(2))
        self.down = nn.Linear(3 * width, width, bias=False)
        self.before, self.after = nn.RMSNorm(width, 1e-5), nn.RMSNorm(width, 1e-5)

    def forward(
        self, x: torch.Tensor, turn: tuple[torch.Tensor, torch.Tensor], *cache: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        y = self.before(x)
        query = rotated(self._heads(self.query(y), self.heads), turn)
        key = rotated(self._heads(self.key(y), self.shared), turn)
        value = self._heads(self.value(y), self.shared)
        keys, values = (torch.cat(pair, 2) for pair in zip(cache, (key, value), strict=True))
        mixed = functional.scaled_dot_product_attention(
            query, self._repeated(keys), self._repeated(values)
        )
        x = x + self.out(mixed.transpose(1, 2).reshape(x.shape))
        y = self.after(x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y)), keys, values

    def _heads(self, x: torch.Tensor, count: int) -> torch.Tensor:
        return x.view(x.shape[0], x.shape[1], count, self.size).transpose(1, 2)

    def _repeated(self, x: torch.Tensor) -> torch.Tensor:
        """Keys or values for each head of the query."""
        batch, shared, length, size = x.shape
        several = x[:, :, None].expand(batch, shared, self.heads // shared, length, size)
        return several.reshape(batch, self.heads, length, size)


def rotated(x: torch.Tensor, turn: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    """Rotary position embeddings: Su et al., 2021."""
    left, right = x.chunk(2, -1)
    return x * turn[0] + torch.cat((-right, left), -1) * turn[1]


class Decoder(nn.Module):
    """Llama: Touvron et al., 2023. One step, with the keys and values of the steps before it."""

    rates: torch.Tensor

    def __init__(self, words: int, width: int, heads: int, shared: int, layers: int) -> None:
        super().__init__()
        size = width // heads
        self.words, self.norm = nn.Embedding(words, width), nn.RMSNorm(width, 1e-5)
        self.layers = nn.ModuleList(DecoderLayer(width, heads, shared) for _ in range(layers))
        self.scores = nn.Linear(width, words, bias=False)
        self.register_buffer("rates", 10000.0 ** (-torch.arange(0, size, 2) / size))

    def forward(
        self, tokens: torch.Tensor, places: torch.Tensor, *cache: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        angles = places[:, None, :, None].float() * self.rates
        angles = torch.cat((angles, angles), -1)
        x, turn = self.words(tokens), (angles.cos(), angles.sin())
        extended = list[torch.Tensor]()
        for number, layer in enumerate(self.layers):
            x, *new = layer(x, turn, *cache[2 * number : 2 * number + 2])
            extended += new
        return self.scores(self.norm(x)), *extended


def decoder(
    words: int = 32000,
    width: int = 512,
    heads: int = 8,
    shared: int = 4,
    layers: int = 8,
    before: int = 255,
) -> Exported:
    """A step of a decoder for any batch, after any number of tokens."""
    args = [_tokens(words, 1, 1), torch.full((1, 1), before)]
    args += [_numbers(1, shared, before, width // heads) for _ in range(2 * layers)]
    sizes = {"tokens": {0: ANY}, "places": {0: ANY}, "cache": ({0: ANY, 2: ANY},) * (2 * layers)}
    names = [f"past.{k}.{kind}" for k in range(layers) for kind in ("key", "value")]
    make = lambda: Decoder(words, width, heads, shared, layers)  # noqa: E731
    return export(make, args, sizes, ["input_ids", "position_ids", *names])


class Segmenter(nn.Module):
    """U-Net: Ronneberger et al., 2015, with bilinear upsampling."""

    def __init__(self, width: int, levels: int, classes: int) -> None:
        super().__init__()
        widths = [width << level for level in range(levels)]
        self.down = nn.ModuleList(map(self._pair, [3, *widths], widths))
        self.up = nn.ModuleList(
            self._pair(large + small, small) for small, large in itertools.pairwise(widths)
        )
        self.classes = nn.Conv2d(width, classes, 1)

    @staticmethod
    def _pair(inputs: int, outputs: int) -> nn.Sequential:
        return nn.Sequential(_convolution(inputs, outputs), _convolution(outputs, outputs))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = list[torch.Tensor]()
        for level, layers in enumerate(self.down):
            x = layers(functional.max_pool2d(x, 2) if level else x)
            kept.append(x)
        kept.pop()
        for layers in reversed(self.up):
            x = functional.interpolate(x, scale_factor=2.0, mode="bilinear")
            x = layers(torch.cat((kept.pop(), x), 1))
        return self.classes(x)


def segmenter(width: int = 32, levels: int = 4, classes: int = 2, size: int = 128) -> Exported:
    return export(lambda: Segmenter(width, levels, classes), [_numbers(1, 3, size, size)])


class Bottlenecks(nn.Module):
    """The C2f block of YOLOv8: half of the channels go through more convolutions."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        half = outputs // 2
        self.first, self.last = _convolution(inputs, outputs, 1), _convolution(3 * half, outputs, 1)
        self.inner = nn.Sequential(_convolution(half, half), _convolution(half, half))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        left, right = self.first(x).chunk(2, 1)
        return self.last(torch.cat((left, right, right + self.inner(right)), 1))


class Pools(nn.Module):
    """Maxima over windows of several sizes, the SPPF block of YOLO."""

    def __init__(self, width: int) -> None:
        super().__init__()
        half = width // 2
        self.first, self.last = _convolution(width, half, 1), _convolution(4 * half, width, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = [self.first(x)]
        for _ in range(3):
            parts.append(functional.max_pool2d(parts[-1], 5, 1, 2))
        return self.last(torch.cat(parts, 1))


class Detector(nn.Module):
    """A detector in the style of YOLOv8: two scales, no anchors, the best boxes of each class."""

    STRIDES = (8, 16)
    centres: torch.Tensor
    scales: torch.Tensor

    def __init__(self, width: int, classes: int, size: int) -> None:
        super().__init__()
        self.fine = nn.Sequential(
            _convolution(3, width, 3, 2),
            *(_convolution(width, 2 * width, 3, 2), Bottlenecks(2 * width, 2 * width)),
            *(_convolution(2 * width, 4 * width, 3, 2), Bottlenecks(4 * width, 4 * width)),
        )
        self.coarse = nn.Sequential(
            *(_convolution(4 * width, 8 * width, 3, 2), Bottlenecks(8 * width, 8 * width)),
            Pools(8 * width),
        )
        self.joined = Bottlenecks(12 * width, 4 * width)
        self.halved = _convolution(4 * width, 4 * width, 3, 2)
        self.last = Bottlenecks(12 * width, 8 * width)
        self.heads = nn.ModuleList(
            nn.Sequential(_convolution(n, n), nn.Conv2d(n, 4 + classes, 1))
            for n in (4 * width, 8 * width)
        )
        self.register_buffer("centres", torch.cat([_centres(size, s) for s in self.STRIDES], 1))
        scales = [torch.full((1, (size // s) ** 2), float(s)) for s in self.STRIDES]
        self.register_buffer("scales", torch.cat(scales, 1))

    def forward(self, image: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        fine = self.fine(image)
        coarse = self.coarse(fine)
        doubled = functional.interpolate(coarse, scale_factor=2.0, mode="nearest")
        fine = self.joined(torch.cat((doubled, fine), 1))
        coarse = self.last(torch.cat((self.halved(fine), coarse), 1))
        found = [head(x).flatten(2) for head, x in zip(self.heads, (fine, coarse), strict=True)]
        numbers = torch.cat(found, 2)
        distances = functional.softplus(numbers[:, :4]) * 2 * self.scales
        low, high = self.centres - distances[:, :2], self.centres + distances[:, 2:]
        boxes = torch.cat((low, high), 1).transpose(1, 2)
        scores = (numbers[:, 4:] * 8).sigmoid()
        return boxes, scores


def _centres(size: int, stride: int) -> torch.Tensor:
    """The coordinates of the centres of cells of an image, [2, cells]."""
    places = (torch.arange(size // stride) + 0.5) * stride
    y, x = torch.meshgrid(places, places, indexing="ij")
    return torch.stack((x.flatten(), y.flatten()))


def detector(width: int = 16, classes: int = 20, size: int = 256, boxes: int = 20) -> Exported:
    """A detector for square images: all boxes and scores, and the best boxes of each class."""
    made = export(lambda: Detector(width, classes, size), [_numbers(1, 3, size, size)])
    graph, corners = made.proto.graph, made.proto.graph.output[0].name
    limits = {
        "most": np.array([boxes]),
        "overlap": np.array([0.5], np.float32),
        "least": np.array([0.4], np.float32),
    }
    limits |= {"first": np.array(0), "last": np.array(2)}
    graph.initializer.extend(numpy_helper.from_array(x, name) for name, x in limits.items())
    operands = [*(result.name for result in graph.output), "most", "overlap", "least"]
    for kind, own, result, axis in (
        ("NonMaxSuppression", operands, "chosen", None),
        ("Gather", ["chosen", "last"], "places", 1),
        ("Gather", [corners, "first"], "of_image", 0),
        ("Gather", ["of_image", "places"], "corners", 0),
    ):
        more: dict[str, Any] = {} if axis is None else {"axis": axis}
        graph.node.append(helper.make_node(kind, own, [result], f"node_{result}", **more))
    kinds = {"chosen": (TensorProto.INT64, ["n", 3]), "corners": (TensorProto.FLOAT, ["n", 4])}
    graph.output.extend(helper.make_tensor_value_info(name, *own) for name, own in kinds.items())
    return Exported(made.proto, made.arrays, None, None)
